/* SPDX-License-Identifier: MIT */
/*
 * Load over the standard input and output of an MCP server: calls with a window in
 * flight, each answer checked; and what they cost the server.
 *
 * usage: bench_load [options] -- COMMAND [ARG...]     (bench_load --help: the options)
 *
 * Prints one line of key=value words. Exit status 1 when an answer was wrong or
 * missing, or the server did not end well.
 *
 * Owns: the peer, and the time at which each call left.
 * Driven by: itself, until the calls are answered or a limit is reached.
 * Invariants: a call is outstanding from its sending to its one answer; an answer is
 * right only if its id is outstanding and its text begins with that id, ends in the
 * expected fill and has the expected length.
 */
#include "bench_json.h"
#include "bench_peer.h"
#include "bench_proc.h"

#include "mcpvisor/mem.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TARGETS_MAX 64
#define CALLS_MAX   2000000
#define CURSOR_MAX  256
#define MODERN_META                                                                      \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","         \
	"\"io.modelcontextprotocol/clientCapabilities\":{},"                             \
	"\"io.modelcontextprotocol/clientInfo\":{\"name\":\"bench_load\",\"version\":"   \
	"\"1\"}}"

struct options {
	bool modern, quiet;
	unsigned window, calls, warm, bytes, blob, lists, tools, settle_ms, limit_s;
	unsigned ms;
};

struct load {
	struct options o;
	struct peer peer;
	struct buf targets[TARGETS_MAX]; /* a call up to its arguments' braces */
	unsigned n_targets;
	unsigned long long last_id;
	unsigned n_tools;
	/* The run at hand; by id - first_id. */
	unsigned long long first_id;
	unsigned sent, answered, bad;
	uint64_t *sent_ns, *took_ns; /* sent_ns 0: not outstanding */
};

struct figures {
	double ready_ms, list_ms, secs, rate, cpu_us, mb_per_s;
	double p50_us, p99_us;
	uint64_t list_bytes;
	struct bench_mem idle, loaded;
	bool ended_well;
};

static _Noreturn void
die(const char *why)
{
	fprintf(stderr, "bench_load: %s\n", why);
	exit(1);
}

static bool
ends_in(struct piece name, const char *word)
{
	size_t n = strlen(word);

	return name.n == n ? memcmp(name.p, word, n) == 0
			   : name.n > n && name.p[name.n - n - 1] == '_' &&
				 memcmp(name.p + name.n - n, word, n) == 0;
}

static void
on_tool(void *arg, struct piece tool)
{
	struct load *l = arg;
	struct piece name = bench_string(bench_member(tool, "name"));
	struct buf *b;

	l->n_tools++;
	if (!ends_in(name, l->o.blob ? "blob" : "echo") || l->n_targets >= TARGETS_MAX)
		return;
	b = &l->targets[l->n_targets++];
	buf_init(b, 65536);
	buf_add_str(b, ",\"method\":\"tools/call\",\"params\":{");
	buf_add_str(b, l->o.modern ? MODERN_META ",\"name\":\"" : "\"name\":\"");
	buf_add(b, name.p, name.n);
	buf_add_str(b, "\",\"arguments\":{");
	if (l->o.blob)
		buf_addf(b, "\"bytes\":%u,", l->o.blob);
	buf_add_str(b, l->o.blob ? "\"head\":\"" : "\"text\":\"");
}

/* Waits for the answer to id. False when none comes. */
static bool
await(struct load *l, unsigned long long id, struct piece *result)
{
	static const char *const keys[] = {"id", "result", "method"};
	struct piece line, v[3];
	unsigned long long got;

	do {
		while (peer_next_line(&l->peer, &line)) {
			if (!bench_members(line, keys, v, 3))
				die("the peer wrote what is no message");
			if (v[2].n != 0 || !bench_number(v[0], &got) || got != id)
				continue;
			*result = v[1];
			return v[1].n != 0;
		}
	} while (peer_turn(&l->peer));
	return false;
}

static void
put_request(struct load *l, const char *method, const char *members)
{
	struct buf *out = &l->peer.out;

	buf_add_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add_u64(out, ++l->last_id);
	buf_addf(out, ",\"method\":\"%s\",\"params\":{%s%s%s}}\n", method,
	    l->o.modern ? MODERN_META : "", l->o.modern && members[0] ? "," : "",
	    members);
}

static void
say_hello(struct load *l)
{
	struct piece result;

	if (l->o.modern)
		return; /* each request says who asks */
	put_request(l, "initialize",
	    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":"
	    "{\"name\":\"bench_load\",\"version\":\"1\"}");
	if (!await(l, l->last_id, &result))
		die("initialize was not answered");
	buf_add_str(&l->peer.out,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
}

static void
list_all(struct load *l)
{
	static const char *const keys[] = {"tools", "nextCursor"};
	char members[CURSOR_MAX + 16] = "";
	struct piece result, v[2];

	for (unsigned i = 0; i < l->n_targets; i++)
		buf_fini(&l->targets[i]);
	l->n_tools = l->n_targets = 0;
	do {
		put_request(l, "tools/list", members);
		if (!await(l, l->last_id, &result) ||
		    !bench_members(result, keys, v, 2) ||
		    !bench_elements(v[0], on_tool, l))
			die("tools/list was not answered by a list");
		if (v[1].n >= CURSOR_MAX)
			die("the cursor is too long");
		(void)snprintf(members, sizeof(members), "\"cursor\":%.*s", (int)v[1].n,
		    v[1].n ? v[1].p : "");
	} while (v[1].n != 0);
}

/* Until all tools are there; an endpoint may answer while upstreams still start. */
static void
get_ready(struct load *l)
{
	say_hello(l);
	do {
		list_all(l);
		if (bench_now_ns() > l->peer.limit_ns)
			die("the list does not become complete");
	} while (l->n_tools < l->o.tools);
}

static void
call_send(struct load *l)
{
	static char fill[1024];
	unsigned long long id = ++l->last_id;
	const struct buf *t = &l->targets[id % l->n_targets];
	struct buf *out = &l->peer.out;
	size_t start;

	memset(fill, 'x', sizeof(fill));
	buf_add_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add_u64(out, id);
	buf_add(out, t->data, t->len);
	start = out->len;
	buf_add_u64(out, id);
	buf_add_char(out, ' ');
	while (l->o.blob == 0 && out->len - start < l->o.bytes) {
		size_t lacks = l->o.bytes - (out->len - start);

		buf_add(out, fill, lacks < sizeof(fill) ? lacks : sizeof(fill));
	}
	buf_add_str(out, "\"}}}\n");
}

static void
keep_first(void *arg, struct piece element)
{
	struct piece *first = arg;

	if (first->n == 0)
		*first = element;
}

static bool
text_is_right(const struct load *l, unsigned long long id, struct piece text)
{
	char head[32];
	size_t n = (size_t)snprintf(head, sizeof(head), "%llu ", id);
	size_t want = l->o.blob ? l->o.blob : l->o.bytes;

	if (want < n + 1)
		want = n;
	if (text.n != want || memcmp(text.p, head, n) != 0)
		return false;
	/* All of the rest is x if the first is, and each equals the one before it. */
	return text.n == n || (text.p[n] == 'x' && memcmp(text.p + n, text.p + n + 1,
						       text.n - n - 1) == 0);
}

/* Notices are none of our business; all else answers a call of ours, or is wrong. */
static void
on_answer(struct load *l, struct piece line)
{
	static const char *const keys[] = {"id", "result", "method"};
	struct piece v[3], first = {NULL, 0};
	unsigned long long id, at;

	if (!bench_members(line, keys, v, 3)) {
		l->bad++;
		return;
	}
	if (v[2].n != 0)
		return;
	if (!bench_number(v[0], &id) || id < l->first_id ||
	    (at = id - l->first_id) >= l->sent || l->sent_ns[at] == 0) {
		l->bad++;
		return;
	}
	l->took_ns[l->answered++] = l->peer.read_ns - l->sent_ns[at];
	l->sent_ns[at] = 0;
	if (!bench_elements(bench_member(v[1], "content"), keep_first, &first) ||
	    !text_is_right(l, id, bench_string(bench_member(first, "text"))))
		l->bad++;
}

static double
run(struct load *l, unsigned calls, unsigned ms)
{
	uint64_t start = bench_now_ns(), now = start;
	uint64_t until = start + ms * UINT64_C(1000000);
	struct piece line;

	l->sent = l->answered = 0;
	l->first_id = l->last_id + 1;
	for (;;) {
		while (l->sent < calls && l->sent - l->answered < l->o.window &&
		       now < until) {
			l->sent_ns[l->sent++] = now;
			call_send(l);
		}
		if (l->answered == l->sent)
			break;
		if (!peer_turn(&l->peer)) {
			l->bad += l->sent - l->answered; /* lost */
			break;
		}
		while (peer_next_line(&l->peer, &line))
			on_answer(l, line);
		now = bench_now_ns();
	}
	return (double)(bench_now_ns() - start) / 1e9;
}

static int
by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double
percentile_us(const struct load *l, double part)
{
	unsigned at = (unsigned)(part * l->answered);

	if (l->answered == 0)
		return 0;
	return (double)l->took_ns[at < l->answered ? at : l->answered - 1] / 1e3;
}

static void
measure_lists(struct load *l, struct figures *f)
{
	uint64_t start = bench_now_ns(), bytes = l->peer.bytes;

	for (unsigned i = 0; i < l->o.lists; i++)
		list_all(l);
	f->list_ms = (double)(bench_now_ns() - start) / 1e6 / l->o.lists;
	f->list_bytes = (l->peer.bytes - bytes) / l->o.lists;
}

static void
measure_calls(struct load *l, struct figures *f)
{
	uint64_t cpu, bytes;

	if (l->n_targets == 0)
		die("no tool to call in the list");
	(void)run(l, l->o.warm, l->o.ms);
	bytes = l->peer.bytes;
	cpu = bench_cpu_ns(l->peer.pid);
	f->secs = run(l, l->o.calls, l->o.ms);
	cpu = bench_cpu_ns(l->peer.pid) - cpu;
	if (l->answered == 0)
		return;
	f->rate = l->answered / f->secs;
	f->cpu_us = (double)cpu / 1e3 / l->answered;
	f->mb_per_s = (double)(l->peer.bytes - bytes) / 1e6 / f->secs;
	qsort(l->took_ns, l->answered, sizeof(*l->took_ns), by_size);
	f->p50_us = percentile_us(l, 0.50);
	f->p99_us = percentile_us(l, 0.99);
}

static void
print_figures(const struct load *l, const struct figures *f)
{
	printf("ready_ms=%.2f tools=%u idle_processes=%u idle_rss_kb=%llu "
	       "idle_private_kb=%llu idle_anon_kb=%llu",
	    f->ready_ms, l->n_tools, f->idle.processes,
	    (unsigned long long)f->idle.rss_kb, (unsigned long long)f->idle.private_kb,
	    (unsigned long long)f->idle.anon_kb);
	if (l->o.lists)
		printf(" list_ms=%.2f list_bytes=%llu", f->list_ms,
		    (unsigned long long)f->list_bytes);
	if (l->o.calls)
		printf(
		    " calls=%u secs=%.3f rate=%.0f p50_us=%.1f p99_us=%.1f cpu_us=%.2f "
		    "mb_per_s=%.1f",
		    l->answered, f->secs, f->rate, f->p50_us, f->p99_us, f->cpu_us,
		    f->mb_per_s);
	printf(" end_rss_kb=%llu end_private_kb=%llu end_anon_kb=%llu bad=%u "
	       "ended_well=%d\n",
	    (unsigned long long)f->loaded.rss_kb,
	    (unsigned long long)f->loaded.private_kb,
	    (unsigned long long)f->loaded.anon_kb, l->bad, (int)f->ended_well);
}

struct option_row {
	const char *name;
	size_t off;
	unsigned max;
	const char *doc;
};

#define ROW(name, field, max, doc)                                                       \
	{                                                                                \
		name, offsetof(struct options, field), max, doc                          \
	}

static const struct option_row rows[] = {
    ROW("window", window, 4096, "calls in flight (1)"),
    ROW("calls", calls, CALLS_MAX, "calls that are measured (0)"),
    ROW("warm", warm, CALLS_MAX, "calls before them (0)"),
    ROW("ms", ms, 60000, "send no more after this time (60000)"),
    ROW("bytes", bytes, 1000000, "length of an echoed text (100)"),
    ROW("blob", blob, 32000000, "call blob for that many bytes instead of echo"),
    ROW("lists", lists, 1000, "complete lists of tools that are measured (0)"),
    ROW("tools", tools, 1000000, "ready when that many tools are listed (1)"),
    ROW("settle", settle_ms, 10000, "ms of rest before idle memory is read (0)"),
    ROW("limit", limit_s, 600, "seconds until all is given up (30)"),
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static _Noreturn void
usage(int code)
{
	FILE *f = code ? stderr : stdout;

	fprintf(f, "usage: bench_load [options] -- COMMAND [ARG...]\n"
		   "  --modern     revision 2026-07-28, else 2025-11-25\n"
		   "  --quiet      without the command's standard error\n");
	for (size_t i = 0; i < N_ROWS; i++)
		fprintf(f, "  --%-7s N  %s\n", rows[i].name, rows[i].doc);
	exit(code);
}

/* Returns the index of the command in argv. */
static int
take_options(struct options *o, int argc, char **argv)
{
	int i;

	*o = (struct options){
	    .window = 1, .ms = 60000, .bytes = 100, .tools = 1, .limit_s = 30};
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *name = argv[i] + (strncmp(argv[i], "--", 2) == 0 ? 2 : 0);
		unsigned long long v;
		size_t k = 0;

		if (strcmp(name, "help") == 0)
			usage(0);
		if (strcmp(name, "modern") == 0)
			o->modern = true;
		else if (strcmp(name, "quiet") == 0)
			o->quiet = true;
		else {
			while (k < N_ROWS && strcmp(rows[k].name, name) != 0)
				k++;
			if (k == N_ROWS || ++i >= argc ||
			    !bench_number((struct piece){argv[i], strlen(argv[i])}, &v) ||
			    v > rows[k].max)
				usage(2);
			*(unsigned *)(void *)((char *)o + rows[k].off) = (unsigned)v;
		}
	}
	if (i + 1 >= argc || o->window == 0)
		usage(2);
	return i + 1;
}

int
main(int argc, char **argv)
{
	static struct load l;
	struct figures f = {0};
	int command = take_options(&l.o, argc, argv);
	unsigned most = l.o.calls > l.o.warm ? l.o.calls : l.o.warm;
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	uint64_t start;

	sigaction(SIGPIPE, &ignore, NULL);
	l.sent_ns = mem_xcalloc(most + 1, sizeof(*l.sent_ns));
	l.took_ns = mem_xcalloc(most + 1, sizeof(*l.took_ns));
	start = bench_now_ns();
	if (!peer_start(&l.peer, argv + command, l.o.quiet, l.o.limit_s))
		return 1;
	get_ready(&l);
	f.ready_ms = (double)(bench_now_ns() - start) / 1e6;
	(void)usleep(l.o.settle_ms * 1000);
	bench_mem_of(l.peer.pid, &f.idle);
	if (l.o.lists)
		measure_lists(&l, &f);
	if (l.o.calls)
		measure_calls(&l, &f);
	bench_mem_of(l.peer.pid, &f.loaded);
	f.ended_well = peer_end(&l.peer);
	print_figures(&l, &f);
	for (unsigned i = 0; i < l.n_targets; i++)
		buf_fini(&l.targets[i]);
	mem_free(l.sent_ns);
	mem_free(l.took_ns);
	return l.bad != 0 || !f.ended_well;
}
