/* SPDX-License-Identifier: MIT */
/*
 * The upstream of the benchmark: an MCP server on stdin and stdout that does as
 * little as a server can, so that what is measured is what stands before it.
 *
 * usage: bench_echo [--legacy | --modern] [--tools N] [--page N] [--wait MS]
 *            [--stamp FILE] [--http PORT]
 *
 * Tools: echo {text} says text; blob {bytes, head} says head, then x up to that many
 * bytes; --tools adds N that are never called. --page N lists N tools a page. --wait is
 * how long it takes before it lists; --stamp FILE has the time (CLOCK_MONOTONIC, ns) at
 * which it had written its last page.
 * --http PORT serves HTTP on 127.0.0.1 instead.
 * Owns: one buffer a direction.
 * Driven by: its standard input.
 * Invariants: all answers to what one read brought leave in one write; an answer
 * has resultType exactly when its request has the _meta of 2026-07-28.
 */
#include "bench_echo.h"
#include "bench_json.h"

#include "mcpvisor/buf.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FLUSH_BYTES   ((size_t)256 * 1024)
#define BLOB_MAX      ((unsigned long long)32 * 1024 * 1024)
#define LATEST_LEGACY "2025-11-25"
#define MODERN	      "2026-07-28"
#define META_VERSION  "io.modelcontextprotocol/protocolVersion"
#define N_NAMED	      2
#define MANY_TOOLS    1000000
#define CACHE_MEMBERS ",\"ttlMs\":3600000,\"cacheScope\":\"public\""
#define DUMMY_FILL                                                                       \
	"A tool that is listed and never called. Its text has the length of "            \
	"what real tools say of themselves, because it is length that costs: "           \
	"it is read, kept, merged and written again for each client that asks."

struct request {
	struct piece id, method, params;
	bool modern;
};

static const char *const named[N_NAMED] = {
    "{\"name\":\"echo\",\"description\":\"Says what it is told.\",\"inputSchema\":"
    "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
    "\"required\":[\"text\"]}}",
    "{\"name\":\"blob\",\"description\":\"Says much.\",\"inputSchema\":{\"type\":"
    "\"object\",\"properties\":{\"bytes\":{\"type\":\"integer\"},\"head\":"
    "{\"type\":\"string\"}},\"required\":[\"bytes\"]}}"};

static void
server_stamp(struct server *s)
{
	struct timespec ts;
	FILE *f;

	s->listed = false;
	if (s->stamp == NULL || clock_gettime(CLOCK_MONOTONIC, &ts) != 0)
		return;
	f = fopen(s->stamp, "we");
	if (f == NULL ||
	    fprintf(f, "%lld%09ld\n", (long long)ts.tv_sec, ts.tv_nsec) < 0 ||
	    fclose(f) != 0)
		exit(1);
}

static void
server_flush(struct server *s)
{
	size_t off = 0;

	if (s->out.err != MV_OK)
		exit(1);
	while (off < s->out.len) {
		ssize_t n = write(STDOUT_FILENO, s->out.data + off, s->out.len - off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			exit(1);
		off += (size_t)n;
	}
	if (s->listed)
		server_stamp(s);
	buf_reset(&s->out);
}

static void
put_id(struct server *s, const struct request *r)
{
	buf_add_str(&s->out, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add(&s->out, r->id.p, r->id.n);
}

static void
put_result(struct server *s, const struct request *r)
{
	put_id(s, r);
	buf_add_str(&s->out,
	    r->modern ? ",\"result\":{\"resultType\":\"complete\"," : ",\"result\":{");
}

static void
put_error(struct server *s, const struct request *r, int code, const char *message)
{
	put_id(s, r);
	buf_addf(
	    &s->out, ",\"error\":{\"code\":%d,\"message\":\"%s\"}}\n", code, message);
}

static void
on_initialize(struct server *s, const struct request *r)
{
	static const char *const legacy[] = {
	    "2024-11-05", "2025-03-26", "2025-06-18", LATEST_LEGACY};
	struct piece asked = bench_string(bench_member(r->params, "protocolVersion"));
	const char *version = LATEST_LEGACY;

	for (size_t i = 0; i < sizeof(legacy) / sizeof(legacy[0]); i++)
		if (bench_is(asked, legacy[i]))
			version = legacy[i];
	put_result(s, r);
	buf_addf(&s->out,
	    "\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},\"serverInfo\":"
	    "{\"name\":\"bench_echo\",\"version\":\"1\"}}}\n",
	    version);
}

static void
on_discover(struct server *s, const struct request *r)
{
	put_result(s, r);
	buf_add_str(&s->out,
	    "\"supportedVersions\":[\"" MODERN "\"],\"capabilities\":{\"tools\":{}}"
	    ",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":"
	    "{\"name\":\"bench_echo\",\"version\":\"1\"}}" CACHE_MEMBERS "}}\n");
}

static void
put_tool(struct server *s, unsigned long long i)
{
	if (i < N_NAMED) {
		buf_add_str(&s->out, named[i]);
		return;
	}
	buf_add_str(&s->out, "{\"name\":\"dummy_");
	buf_add_u64(&s->out, i - N_NAMED);
	buf_add_str(&s->out,
	    "\",\"title\":\"Dummy\",\"description\":\"" DUMMY_FILL
	    "\",\"inputSchema\":{\"type\":"
	    "\"object\",\"properties\":{\"path\":{\"type\":\"string\",\"description\":"
	    "\"where to look\"},\"limit\":{\"type\":\"integer\",\"minimum\":1}},"
	    "\"required\":[\"path\"]},\"annotations\":{\"readOnlyHint\":true}}");
}

static void
on_list(struct server *s, const struct request *r)
{
	struct piece cursor = bench_string(bench_member(r->params, "cursor"));
	unsigned long long all = s->tools + N_NAMED, from = 0, to = all;

	if (cursor.n != 0 && (!bench_number(cursor, &from) || from >= all)) {
		put_error(s, r, -32602, "Unknown cursor");
		return;
	}
	if (s->page != 0 && all - from > s->page)
		to = from + s->page;
	if (s->wait_ms > 0)
		(void)poll(NULL, 0, (int)s->wait_ms);
	put_result(s, r);
	buf_add_str(&s->out, "\"tools\":[");
	for (unsigned long long i = from; i < to; i++) {
		if (i > from)
			buf_add_char(&s->out, ',');
		put_tool(s, i);
	}
	buf_add_char(&s->out, ']');
	if (to < all)
		buf_addf(&s->out, ",\"nextCursor\":\"%llu\"", to);
	buf_add_str(&s->out, r->modern ? CACHE_MEMBERS "}}\n" : "}}\n");
	s->listed = to == all;
}

static void
put_content(struct server *s, const struct request *r)
{
	put_result(s, r);
	buf_add_str(&s->out, "\"content\":[{\"type\":\"text\",\"text\":\"");
}

static void
call_blob(struct server *s, const struct request *r, struct piece arguments)
{
	static const char *const keys[] = {"bytes", "head"};
	struct piece value[2], head;
	unsigned long long bytes;

	if (!bench_members(arguments, keys, value, 2) ||
	    !bench_number(value[0], &bytes) || bytes > BLOB_MAX) {
		put_error(s, r, -32602, "bytes is missing or too many");
		return;
	}
	head = bench_string(value[1]);
	if (head.n > bytes)
		head.n = (size_t)bytes;
	put_content(s, r);
	buf_add(&s->out, head.p, head.n);
	if (buf_reserve(&s->out, (size_t)bytes) == MV_OK) {
		memset(s->out.data + s->out.len, 'x', (size_t)bytes - head.n);
		s->out.len += (size_t)bytes - head.n;
	}
	buf_add_str(&s->out, "\"}]}}\n");
}

static void
on_call(struct server *s, const struct request *r)
{
	static const char *const keys[] = {"name", "arguments"};
	struct piece value[2], name, text;

	(void)bench_members(r->params, keys, value, 2);
	name = bench_string(value[0]);
	if (bench_is(name, "echo")) {
		text = bench_string(bench_member(value[1], "text"));
		put_content(s, r);
		buf_add(&s->out, text.p, text.n);
		buf_add_str(&s->out, "\"}]}}\n");
	} else if (bench_is(name, "blob")) {
		call_blob(s, r, value[1]);
	} else {
		put_error(s, r, -32602, "Unknown tool");
	}
}

static void
on_ping(struct server *s, const struct request *r)
{
	put_id(s, r);
	buf_add_str(&s->out, ",\"result\":{}}\n");
}

static const struct {
	const char *method;
	enum era era; /* not known in the other one */
	void (*fn)(struct server *s, const struct request *r);
} methods[] = {
    {"tools/call", ERA_BOTH, on_call},
    {"tools/list", ERA_BOTH, on_list},
    {"initialize", ERA_LEGACY, on_initialize},
    {"server/discover", ERA_MODERN, on_discover},
    {"ping", ERA_BOTH, on_ping},
};

static void
server_answer(struct server *s, const struct request *r)
{
	struct piece method = bench_string(r->method);

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		enum era era = methods[i].era;

		if (!bench_is(method, methods[i].method))
			continue;
		if (s->era != ERA_BOTH && era != ERA_BOTH && era != s->era)
			break;
		if (s->era == ERA_MODERN && !r->modern)
			put_error(s, r, -32602, "params._meta is missing");
		else
			methods[i].fn(s, r);
		return;
	}
	put_error(s, r, -32601, "Method not found");
}

void
server_on_line(struct server *s, const char *line, size_t n)
{
	static const char *const keys[] = {"id", "method", "params"};
	struct piece v[3];
	struct request r;

	if (n == 0)
		return;
	if (!bench_members((struct piece){line, n}, keys, v, 3)) {
		r = (struct request){.id = {"null", 4}};
		put_error(s, &r, -32700, "Parse error");
		return;
	}
	r = (struct request){.id = v[0], .method = v[1], .params = v[2]};
	/* Without an id it is a notification, and none is of interest. */
	if (r.id.n == 0)
		return;
	r.modern = s->era != ERA_LEGACY &&
		   bench_member(bench_member(r.params, "_meta"), META_VERSION).n != 0;
	server_answer(s, &r);
}

/* What is left is the beginning of a line. */
static void
server_take_lines(struct server *s, size_t seen)
{
	size_t start = 0;
	const char *nl;

	while ((nl = memchr(s->in.data + seen, '\n', s->in.len - seen)) != NULL) {
		size_t at = (size_t)(nl - s->in.data);

		server_on_line(s, s->in.data + start, at - start);
		if (s->out.len >= FLUSH_BYTES)
			server_flush(s);
		start = seen = at + 1;
	}
	buf_drop(&s->in, start);
}

static int
server_run(struct server *s)
{
	for (;;) {
		size_t seen = s->in.len;
		ssize_t n;

		if (buf_reserve(&s->in, ECHO_READ_BYTES) != MV_OK)
			return 1;
		n = read(STDIN_FILENO, s->in.data + s->in.len, s->in.cap - s->in.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0;
		s->in.len += (size_t)n;
		server_take_lines(s, seen);
		server_flush(s);
	}
}

static bool
server_take_options(struct server *s, int argc, char **argv)
{
	const struct {
		const char *name;
		unsigned long long *number;
	} rows[] = {{"--tools", &s->tools}, {"--page", &s->page}, {"--wait", &s->wait_ms},
	    {"--http", &s->port}};

	for (int i = 1; i < argc; i++) {
		size_t k = 0;

		if (strcmp(argv[i], "--legacy") == 0) {
			s->era = ERA_LEGACY;
			continue;
		}
		if (strcmp(argv[i], "--modern") == 0) {
			s->era = ERA_MODERN;
			continue;
		}
		if (i + 1 == argc)
			return false;
		if (strcmp(argv[i], "--stamp") == 0) {
			s->stamp = argv[++i];
			continue;
		}
		while (k < sizeof(rows) / sizeof(rows[0]) &&
		       strcmp(argv[i], rows[k].name) != 0)
			k++;
		i++;
		if (k == sizeof(rows) / sizeof(rows[0]) ||
		    !bench_number(
			(struct piece){argv[i], strlen(argv[i])}, rows[k].number) ||
		    *rows[k].number > MANY_TOOLS)
			return false;
	}
	return true;
}

int
main(int argc, char **argv)
{
	static struct server s;
	int code;

	if (!server_take_options(&s, argc, argv)) {
		fprintf(stderr,
		    "usage: bench_echo [--legacy | --modern] [--tools N] [--page N] "
		    "[--wait MS] [--stamp FILE] [--http PORT]\n");
		return 2;
	}
	buf_init(&s.in, ECHO_MESSAGE_MAX);
	buf_init(&s.out, 8 * ECHO_MESSAGE_MAX);
	code = s.port != 0 ? server_run_http(&s) : server_run(&s);
	buf_fini(&s.in);
	buf_fini(&s.out);
	return code;
}
