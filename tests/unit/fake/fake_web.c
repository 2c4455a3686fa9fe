/* SPDX-License-Identifier: MIT */
/*
 * An HTTP server with canned answers.
 *
 * Owns: its socket and connections. Driven by: the loop of the test.
 */
#include "fake_web.h"

#include "mcpvisor/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>

static void
conn_end(struct web_conn *c)
{
	if (c->fd < 0)
		return;
	watch_fini(&c->watch);
	if (c->tls)
		c->web->tls->close(c->tls);
	close(c->fd);
	c->fd = -1;
	buf_fini(&c->in);
	buf_fini(&c->out);
}

static void
conn_flush(struct web_conn *c)
{
	while (c->out.len > 0) {
		ssize_t n = c->tls ? c->web->tls->write(c->tls, c->out.data, c->out.len)
				   : send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL);

		if (n <= 0) {
			if (errno == EAGAIN)
				watch_want(&c->watch, WATCH_READ | WATCH_WRITE);
			else
				conn_end(c);
			return;
		}
		buf_drop(&c->out, (size_t)n);
	}
	watch_want(&c->watch, WATCH_READ);
	if (c->ends)
		conn_end(c);
}

/* Length of the first request in the buffer; 0: it is not all there. */
static size_t
conn_request(struct web_conn *c)
{
	const char *text = buf_cstr(&c->in), *end, *length;
	size_t n;

	end = text ? strstr(text, "\r\n\r\n") : NULL;
	if (!end)
		return 0;
	n = (size_t)(end - text) + 4;
	length = strcasestr(text, "\r\ncontent-length:");
	if (length && length < end)
		n += strtoul(length + 17, NULL, 10);
	return n <= c->in.len ? n : 0;
}

static const struct canned *
canned_find(const struct canned *all, const char *request)
{
	const char *p = strchr(request, ' ');
	size_t n;

	ck_assert_ptr_nonnull(p);
	p++;
	if (strncmp(p, "http://", 7) == 0)
		p = strchr(p + 7, '/'); /* we are a proxy */
	ck_assert_ptr_nonnull(p);
	n = strcspn(p, " ?");
	for (const struct canned *a = all; a->path; a++) {
		if (strlen(a->path) == n && memcmp(a->path, p, n) == 0)
			return a;
	}
	ck_abort_msg("no answer to %.*s", (int)n, p);
	return NULL;
}

static void
conn_answer(struct web_conn *c, size_t n)
{
	struct web *w = c->web;
	const struct canned *a = canned_find(w->answers, c->in.data);

	buf_reset(&w->last);
	buf_add(&w->last, c->in.data, n);
	(void)buf_cstr(&w->last);
	buf_drop(&c->in, n);
	w->n_requests++;
	if (c->requests++ > 0 && a->is_once) {
		conn_end(c);
		return;
	}
	if (a->is_silent)
		return;
	buf_add_str(&c->out, a->head);
	buf_add(&c->out, a->body, a->n);
	c->ends = a->ends;
}

static void
conn_take(struct web_conn *c)
{
	size_t n;

	if (c->web->take)
		c->web->take(c);
	while (!c->web->take && c->fd >= 0 && (n = conn_request(c)) > 0)
		conn_answer(c, n);
	if (c->fd >= 0)
		conn_flush(c);
}

static void
on_conn(void *arg, unsigned ready)
{
	struct web_conn *c = arg;
	static char chunk[65536];
	ssize_t n = 1;

	mem_fail_hold(true);
	if (ready & WATCH_WRITE)
		conn_flush(c);
	while (c->fd >= 0 && n > 0) {
		n = c->tls ? c->web->tls->read(c->tls, chunk, sizeof(chunk))
			   : recv(c->fd, chunk, sizeof(chunk), 0);
		if (n > 0) {
			buf_add(&c->in, chunk, (size_t)n);
			conn_take(c);
		} else if (n == 0 || errno != EAGAIN) {
			conn_end(c);
		}
	}
	mem_fail_hold(false);
}

static void
on_dial(void *arg, unsigned ready)
{
	struct web *w = arg;
	int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct web_conn *c = &w->conns[w->n_conns];

	(void)ready;
	if (fd < 0)
		return;
	ck_assert_int_lt(w->n_conns, WEB_CONNS);
	w->n_conns++;
	memset(c, 0, sizeof(*c));
	c->web = w;
	c->fd = fd;
	buf_init(&c->in, 1u << 26);
	buf_init(&c->out, 1u << 26);
	if (w->tls)
		c->tls = w->tls->accept(fd);
	watch_init(&c->watch, w->l, fd, on_conn, c);
	watch_want(&c->watch, WATCH_READ);
}

int
web_socket(int type, uint16_t *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), room = 65536;

	/* What a slow reader leaves must not fit in between. */
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

void
web_listen(struct web *w, bool on)
{
	watch_want(&w->watch, on ? WATCH_READ : 0);
}

void
web_start(struct web *w, struct loop *l)
{
	memset(w, 0, sizeof(*w));
	w->l = l;
	buf_init(&w->last, 1u << 26);
	w->fd = web_socket(SOCK_STREAM, &w->port);
	ck_assert_int_eq(listen(w->fd, 128), 0);
	watch_init(&w->watch, l, w->fd, on_dial, w);
	web_listen(w, true);
}

void
web_stop(struct web *w)
{
	for (int i = 0; i < w->n_conns; i++)
		conn_end(&w->conns[i]);
	watch_fini(&w->watch);
	close(w->fd);
	buf_fini(&w->last);
}
