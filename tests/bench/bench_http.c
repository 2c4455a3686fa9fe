/* SPDX-License-Identifier: MIT */
/*
 * Load over Streamable HTTP: one call in flight on each connection, each answer checked.
 *
 * usage: bench_http [options] --port N        (bench_http --help: the options)
 *
 * Prints one line of key=value words. Exit status 1 when an answer was wrong or missing.
 *
 * Owns: the connections, and the time at which each call left.
 * Driven by: itself, until the time is over or a limit is reached.
 * Invariants: a connection has one request outstanding at most; an answer is right only
 * if its status is 200, its id is that of the request of its own connection, and
 * its text is that call's. With --plain, only the status and the length count.
 */
#include "bench_call.h"
#include "bench_options.h"
#include "bench_proc.h"

#include "mcpvisor/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNS_MAX   512
#define CALLS_MAX   4000000
#define BUFFER_MAX  ((size_t)256 * 1024 * 1024)
#define READ_BYTES  ((size_t)256 * 1024)
#define SESSION_MAX 600
#define PATH	    "/mcp"

struct options {
	bool modern, plain;
	unsigned port, conns, warm_ms, ms, bytes, blob, limit_s, pid;
};

struct conn {
	int fd;
	char session[SESSION_MAX]; /* "": none */
	struct buf in, out;
	size_t off;	   /* of out, that has left */
	size_t head, need; /* of the answer that comes; need 0: its head is not whole */
	unsigned long long id;
	uint64_t sent_ns; /* 0: nothing is outstanding */
};

struct load {
	struct options o;
	struct calls calls;
	struct conn conns[CONNS_MAX];
	struct pollfd fds[CONNS_MAX];
	unsigned long long last_id;
	uint64_t limit_ns, bytes;
	unsigned answered, bad;
	uint64_t *took_ns;
};

static _Noreturn void
die(const char *why)
{
	fprintf(stderr, "bench_http: %s\n", why);
	exit(1);
}

static void
conn_open(struct conn *c, unsigned port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&at, sizeof(at)) != 0)
		die("cannot connect");
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	buf_init(&c->in, BUFFER_MAX);
	buf_init(&c->out, BUFFER_MAX);
}

/* A request with that body; name is of the tool that it calls. */
static void
put_http(const struct load *l, struct conn *c, const char *method, const struct buf *name,
    const struct buf *body)
{
	struct buf *out = &c->out;

	buf_addf(out,
	    "POST " PATH " HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
	    "Content-Type: application/json\r\n"
	    "Accept: application/json, text/event-stream\r\n",
	    l->o.port);
	if (l->o.modern) {
		buf_addf(out,
		    "MCP-Protocol-Version: " CALL_MODERN "\r\nMcp-Method: %s\r\n",
		    method);
		if (name != NULL)
			buf_addf(out, "Mcp-Name: %.*s\r\n", (int)name->len, name->data);
	} else if (c->session[0] != '\0') {
		buf_addf(out,
		    "MCP-Protocol-Version: " CALL_LEGACY "\r\nMcp-Session-Id: %s\r\n",
		    c->session);
	}
	buf_addf(out, "Content-Length: %zu\r\n\r\n", body->len);
	buf_add(out, body->data, body->len);
}

static bool
conn_write(struct conn *c)
{
	while (c->off < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->off, c->out.len - c->off,
		    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
		c->off += n > 0 ? (size_t)n : 0;
	}
	c->off = 0;
	buf_reset(&c->out);
	return true;
}

static bool
conn_read(struct load *l, struct conn *c)
{
	ssize_t n;

	if (buf_reserve(&c->in, READ_BYTES) != MV_OK)
		return false;
	n = recv(c->fd, c->in.data + c->in.len, c->in.cap - c->in.len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->in.len += (size_t)n;
	l->bytes += (uint64_t)n;
	return n > 0;
}

/* The value of a header in the head of the answer; absent: n 0. */
static struct piece
conn_header(const struct conn *c, const char *name)
{
	size_t n = strlen(name);
	const char *p = c->in.data, *end = p + c->head;

	while ((p = memmem(p, (size_t)(end - p), "\r\n", 2)) != NULL) {
		const char *stop;

		p += 2;
		if ((size_t)(end - p) <= n || strncasecmp(p, name, n) != 0)
			continue;
		stop = memmem(p, (size_t)(end - p), "\r\n", 2);
		if (stop == NULL)
			break;
		for (p += n; p < stop && *p == ' '; p++)
			;
		return (struct piece){p, (size_t)(stop - p)};
	}
	return (struct piece){NULL, 0};
}

/* Whether a whole answer is there; then its body. */
static bool
conn_has_answer(struct conn *c, struct piece *body)
{
	unsigned long long n;
	const char *end;

	if (c->need == 0) {
		end = c->in.len > 0 ? memmem(c->in.data, c->in.len, "\r\n\r\n", 4) : NULL;
		if (end == NULL)
			return false;
		c->head = (size_t)(end + 4 - c->in.data);
		if (!bench_number(conn_header(c, "Content-Length:"), &n))
			die("an answer without Content-Length");
		c->need = c->head + (size_t)n;
	}
	*body = (struct piece){c->in.data + c->head, c->need - c->head};
	return c->in.len >= c->need;
}

static void
conn_drop_answer(struct conn *c)
{
	buf_drop(&c->in, c->need);
	c->need = 0;
}

static bool
conn_status_is(const struct conn *c, const char *status)
{
	return c->head > 12 && memcmp(c->in.data + 9, status, 3) == 0;
}

/* Sends what is in out and waits for its answer, which stays until it is dropped. */
static struct piece
conn_ask(struct load *l, struct conn *c, const char *status)
{
	struct piece body;

	for (;;) {
		struct pollfd p = {.fd = c->fd, .events = POLLIN};

		if (!conn_write(c) || bench_now_ns() > l->limit_ns)
			die("no answer");
		if (c->off < c->out.len)
			p.events |= POLLOUT;
		(void)poll(&p, 1, 100);
		if ((p.revents & ~POLLOUT) != 0 && !conn_read(l, c))
			die("the connection has ended");
		if (conn_has_answer(c, &body))
			break;
	}
	if (!conn_status_is(c, status))
		die("an answer has the wrong status");
	return body;
}

/* A legacy session for c alone. */
static void
conn_say_hello(struct load *l, struct conn *c)
{
	static const char note[] =
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
	struct piece id;
	struct buf b;

	buf_init(&b, BUFFER_MAX);
	call_put_initialize(&l->calls, &b, ++l->last_id);
	put_http(l, c, "initialize", NULL, &b);
	(void)conn_ask(l, c, "200");
	id = conn_header(c, "Mcp-Session-Id:");
	if (id.n >= SESSION_MAX)
		die("the session id is too long");
	(void)snprintf(
	    c->session, sizeof(c->session), "%.*s", (int)id.n, id.n ? id.p : "");
	conn_drop_answer(c);
	buf_reset(&b);
	buf_add_str(&b, note);
	put_http(l, c, "", NULL, &b);
	(void)conn_ask(l, c, "202");
	conn_drop_answer(c);
	buf_fini(&b);
}

static void
find_tools(struct load *l, struct conn *c)
{
	struct piece result, cursor;
	struct buf b;

	buf_init(&b, BUFFER_MAX);
	call_put_request(&l->calls, &b, ++l->last_id, "tools/list", "");
	put_http(l, c, "tools/list", NULL, &b);
	result = bench_member(conn_ask(l, c, "200"), "result");
	if (!call_take_list(&l->calls, result, &cursor) || l->calls.n_targets == 0)
		die("no tool to call in the list");
	conn_drop_answer(c);
	buf_fini(&b);
}

static void
send_call(struct load *l, struct conn *c, struct buf *b)
{
	static const struct call_target none;

	c->id = ++l->last_id;
	buf_reset(b);
	if (l->o.plain)
		buf_add_str(b, "{}");
	else
		call_put(&l->calls, b, c->id);
	put_http(l, c, "tools/call",
	    l->o.plain ? &none.name : &call_target_of(&l->calls, c->id)->name, b);
	c->sent_ns = bench_now_ns();
	if (!conn_write(c))
		die("the connection has ended");
}

static bool
answer_is_right(const struct load *l, const struct conn *c, struct piece body)
{
	static const char *const keys[] = {"id", "result"};
	unsigned long long id;
	struct piece v[2];

	if (!conn_status_is(c, "200"))
		return false;
	if (l->o.plain)
		return body.n >= (l->o.blob ? l->o.blob : l->o.bytes);
	return bench_members(body, keys, v, 2) && bench_number(v[0], &id) &&
	       id == c->id && call_is_right(&l->calls, id, v[1]);
}

/* Returns how many answers came. */
static unsigned
take_answers(struct load *l)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->o.conns; i++) {
		struct conn *c = &l->conns[i];
		struct piece body;

		if (c->sent_ns == 0 || l->fds[i].revents == 0)
			continue;
		if (!conn_write(c) ||
		    ((l->fds[i].revents & ~POLLOUT) != 0 && !conn_read(l, c)))
			die("the connection has ended");
		if (!conn_has_answer(c, &body))
			continue;
		if (l->answered < CALLS_MAX)
			l->took_ns[l->answered++] = bench_now_ns() - c->sent_ns;
		if (!answer_is_right(l, c, body))
			l->bad++;
		conn_drop_answer(c);
		c->sent_ns = 0;
		n++;
	}
	return n;
}

static double
run(struct load *l, unsigned ms)
{
	uint64_t start = bench_now_ns(), until = start + ms * UINT64_C(1000000);
	unsigned open = 0;
	struct buf b;

	l->answered = 0;
	l->bytes = 0;
	buf_init(&b, BUFFER_MAX);
	do {
		bool more = bench_now_ns() < until;

		for (unsigned i = 0; i < l->o.conns; i++) {
			struct conn *c = &l->conns[i];

			if (more && c->sent_ns == 0) {
				send_call(l, c, &b);
				open++;
			}
			l->fds[i] = (struct pollfd){.fd = c->sent_ns ? c->fd : -1,
			    .events = c->off < c->out.len ? POLLIN | POLLOUT : POLLIN};
		}
		(void)poll(l->fds, l->o.conns, 1000);
		open -= take_answers(l);
		if (bench_now_ns() > l->limit_ns)
			die("an answer does not come");
	} while (open > 0 || bench_now_ns() < until);
	buf_fini(&b);
	return (double)(bench_now_ns() - start) / 1e9;
}

static void
measure(struct load *l)
{
	double secs, middle, late;
	uint64_t cpu;

	(void)run(l, l->o.warm_ms);
	cpu = bench_cpu_ns((pid_t)l->o.pid);
	secs = run(l, l->o.ms);
	cpu = bench_cpu_ns((pid_t)l->o.pid) - cpu;
	if (l->answered == 0)
		die("no answer at all");
	middle = call_percentile_us(l->took_ns, l->answered, 50);
	late = call_percentile_us(l->took_ns, l->answered, 99);
	printf("calls=%u secs=%.3f rate=%.0f p50_us=%.1f p99_us=%.1f mb_per_s=%.1f "
	       "cpu_us=%.2f bad=%u\n",
	    l->answered, secs, l->answered / secs, middle, late,
	    (double)l->bytes / 1e6 / secs, (double)cpu / 1e3 / l->answered, l->bad);
}

static void
take_options(struct options *o, int argc, char **argv)
{
	static const char usage[] = "bench_http [options] --port N";
	const struct bench_option rows[] = {
	    {"modern", "revision " CALL_MODERN ", else " CALL_LEGACY, &o->modern, NULL,
		0},
	    {"plain", "any answer with status 200 and that length is right", &o->plain,
		NULL, 0},
	    {"port", "where to connect to, on 127.0.0.1", NULL, &o->port, 65535},
	    {"conns", "connections, one call in flight on each (1)", NULL, &o->conns,
		CONNS_MAX},
	    {"warm", "ms of calls before those that are measured (100)", NULL,
		&o->warm_ms, 60000},
	    {"ms", "ms that are measured (1000)", NULL, &o->ms, 60000},
	    {"bytes", "length of an echoed text (100)", NULL, &o->bytes, 1000000},
	    {"blob", "call blob for that many bytes instead of echo", NULL, &o->blob,
		32000000},
	    {"limit", "seconds until all is given up (30)", NULL, &o->limit_s, 600},
	    {"pid", "process whose CPU time is told", NULL, &o->pid, 0x7fffffff},
	};
	const size_t n = sizeof(rows) / sizeof(rows[0]);

	*o = (struct options){
	    .conns = 1, .warm_ms = 100, .ms = 1000, .bytes = 100, .limit_s = 30};
	if (bench_take_options(usage, rows, n, argc, argv) != argc || o->port == 0 ||
	    o->conns == 0)
		bench_usage(usage, rows, n, 2);
}

int
main(int argc, char **argv)
{
	static struct load l;

	take_options(&l.o, argc, argv);
	l.calls =
	    (struct calls){.modern = l.o.modern, .bytes = l.o.bytes, .blob = l.o.blob};
	l.limit_ns = bench_now_ns() + l.o.limit_s * UINT64_C(1000000000);
	l.took_ns = mem_xcalloc(CALLS_MAX, sizeof(*l.took_ns));
	for (unsigned i = 0; i < l.o.conns; i++) {
		conn_open(&l.conns[i], l.o.port);
		if (!l.o.modern && !l.o.plain)
			conn_say_hello(&l, &l.conns[i]);
	}
	if (!l.o.plain)
		find_tools(&l, &l.conns[0]);
	measure(&l);
	for (unsigned i = 0; i < l.o.conns; i++) {
		(void)close(l.conns[i].fd);
		buf_fini(&l.conns[i].in);
		buf_fini(&l.conns[i].out);
	}
	call_forget(&l.calls);
	mem_free(l.took_ns);
	return l.bad != 0;
}
