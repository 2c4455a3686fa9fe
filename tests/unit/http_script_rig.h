/* SPDX-License-Identifier: MIT */
/*
 * An HTTP server that says what a script has for it: one step for each request, in the
 * order in which they come.
 */
#ifndef HTTP_SCRIPT_RIG_H
#define HTTP_SCRIPT_RIG_H

#include "mcpvisor/buf.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#define CONNS_MAX 512

#define JSON   "application/json"
#define EVENTS "text/event-stream"

enum how {
	WHOLE, /* with Content-Length */
	CLOSE, /* until the connection closes */
	STAY,  /* chunked, and more may come */
	CUT,   /* chunked, and the connection closes within */
	NEVER, /* no answer */
	BREAK, /* the connection closes instead */
};

/* want: texts between '|' that the request has; one after '!' that it does not have. */
struct step {
	const char *want;
	enum how how;
	int status;
	const char *type; /* NULL: none */
	const char *body;
	const char *extra; /* lines of the head, with their ends */
};

struct conn {
	int fd;
	struct watch watch;
	struct buf in, out;
	bool ends;
};

static struct loop *l;
static struct buf request; /* the last one */
static struct watch listening;
static int listen_fd, port;
static struct conn conns[CONNS_MAX];
static struct conn *last; /* that was answered */
static int n_conns, n_closed;
static const struct step *steps;
static int n_steps, at_step;
static size_t piece;	/* how much is written at once; 0: all */
static bool is_lenient; /* what is beyond the script is not answered */

static inline void
conn_close(struct conn *c)
{
	if (c->fd < 0)
		return;
	watch_fini(&c->watch);
	close(c->fd);
	c->fd = -1;
	n_closed++;
	loop_stop(l, 0);
}

static inline void
conn_write(struct conn *c)
{
	size_t n = piece && piece < c->out.len ? piece : c->out.len;
	ssize_t did = n > 0 ? send(c->fd, c->out.data, n, MSG_NOSIGNAL) : 0;

	if (did < 0) {
		ck_assert(errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
		if (errno != EAGAIN)
			conn_close(c);
		return;
	}
	buf_drop(&c->out, (size_t)did);
	watch_want(&c->watch, c->out.len > 0 ? WATCH_READ | WATCH_WRITE : WATCH_READ);
	if (c->out.len == 0 && c->ends)
		conn_close(c);
}

static inline void
say_chunk(struct conn *c, const char *text)
{
	if (*text)
		buf_addf(&c->out, "%zx\r\n%s\r\n", strlen(text), text);
	conn_write(c);
}

static inline void
conn_answer(struct conn *c, const struct step *s)
{
	const char *body = s->body ? s->body : "";

	last = c;
	if (s->how == NEVER)
		return;
	if (s->how == BREAK) {
		conn_close(c);
		return;
	}
	buf_addf(&c->out, "HTTP/1.1 %d X\r\n%s", s->status, s->extra ? s->extra : "");
	if (s->type)
		buf_addf(&c->out, "Content-Type: %s\r\n", s->type);
	if (s->how == WHOLE && s->status != 204)
		buf_addf(&c->out, "Content-Length: %zu\r\n", strlen(body));
	if (s->how == CLOSE)
		buf_add_str(&c->out, "Connection: close\r\n");
	if (s->how == STAY || s->how == CUT)
		buf_add_str(&c->out, "Transfer-Encoding: chunked\r\n");
	buf_add_str(&c->out, "\r\n");
	c->ends = s->how == CLOSE || s->how == CUT;
	if (s->how == STAY || s->how == CUT) {
		say_chunk(c, body);
		return;
	}
	buf_add_str(&c->out, body);
	conn_write(c);
}

static inline bool
has_text(const char *text, const char *want, size_t n)
{
	char part[512];

	ck_assert_uint_lt(n, sizeof(part));
	memcpy(part, want, n);
	part[n] = '\0';
	return strcasestr(text, part) != NULL;
}

static inline void
check_request(const char *want)
{
	const char *text = buf_cstr(&request);

	while (*want) {
		size_t n = strcspn(want, "|");
		bool not = *want == '!';

		ck_assert_msg(has_text(text, want + not, n - not ) != not,
		    "step %d: not as \"%s\":\n%s", at_step, want, text);
		want += n + (want[n] == '|');
	}
}

/* Whether a whole request was there. */
static inline bool
conn_take(struct conn *c)
{
	const char *text = buf_cstr(&c->in), *end = strstr(text, "\r\n\r\n"), *len;
	size_t n;

	if (!end)
		return false;
	n = (size_t)(end - text) + 4;
	len = strcasestr(text, "Content-Length: ");
	if (len && len < end)
		n += strtoul(len + 16, NULL, 10);
	if (c->in.len < n)
		return false;
	buf_reset(&request);
	buf_add(&request, text, n);
	buf_drop(&c->in, n);
	if (is_lenient && at_step >= n_steps) {
		conn_close(c);
		return false;
	}
	ck_assert_msg(at_step < n_steps, "not in the script:\n%s", buf_cstr(&request));
	check_request(steps[at_step].want);
	conn_answer(c, &steps[at_step]);
	at_step++;
	loop_stop(l, 0);
	return c->fd >= 0;
}

static inline void
conn_ready(struct conn *c, unsigned ready)
{
	char text[4096];
	ssize_t n;

	if (ready & WATCH_WRITE)
		conn_write(c);
	if (c->fd < 0)
		return;
	n = recv(c->fd, text, sizeof(text), 0);
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		conn_close(c);
		return;
	}
	if (n > 0)
		buf_add(&c->in, text, (size_t)n);
	while (conn_take(c))
		;
}

/* Memory may be made to fail for the link, but not here. */
static inline void
on_conn(void *arg, unsigned ready)
{
	mem_fail_hold(true);
	conn_ready(arg, ready);
	mem_fail_hold(false);
}

static inline void
on_listen(void *arg, unsigned ready)
{
	struct conn *c = &conns[n_conns];
	int one = 1;

	(void)arg;
	(void)ready;
	ck_assert_int_lt(n_conns, CONNS_MAX);
	c->fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (c->fd < 0)
		return;
	n_conns++;
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	buf_init(&c->in, 1u << 20);
	buf_init(&c->out, 1u << 20);
	c->ends = false;
	watch_init(&c->watch, l, c->fd, on_conn, c);
	watch_want(&c->watch, WATCH_READ);
}

#endif
