/* SPDX-License-Identifier: MIT */
/*
 * The server of the benchmark over HTTP/1.1: what a server that forwards nothing needs.
 *
 * Owns: the connections, a buffer a direction each.
 * Driven by: epoll.
 * Invariants: takes what the generator here sends, whole requests with Content-Length,
 * and looks at no header else.
 */
#include "bench_echo.h"

#include "mcpvisor/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 64

struct conn {
	int fd;
	bool waits; /* for room to write */
	struct buf in, out;
	size_t off; /* of out, that has left */
};

static bool
conn_write(int ep, struct conn *c)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};

	while (c->off < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->off, c->out.len - c->off,
		    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0 && errno != EINTR)
			return false;
		c->off += n > 0 ? (size_t)n : 0;
	}
	if (c->off == c->out.len) {
		c->off = 0;
		buf_reset(&c->out);
	}
	if (c->waits != (c->out.len > 0)) {
		c->waits = c->out.len > 0;
		ev.events = c->waits ? EPOLLIN | EPOLLOUT : EPOLLIN;
		return epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &ev) == 0;
	}
	return true;
}

static void
conn_answer(struct server *s, struct conn *c, const char *body, size_t n)
{
	buf_reset(&s->out);
	server_on_line(s, body, n);
	if (s->out.len == 0) {
		buf_add_str(
		    &c->out, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
		return;
	}
	buf_addf(&c->out,
	    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	    "Content-Length: %zu\r\n\r\n",
	    s->out.len - 1);
	buf_add(&c->out, s->out.data, s->out.len - 1);
}

/* The body's length; the head ends in an empty line. */
static size_t
head_length(const char *head, const char *end)
{
	static const char name[] = "\r\nContent-Length:";

	for (; end - head > (ptrdiff_t)sizeof(name); head++)
		if (*head == '\r' && strncasecmp(head, name, sizeof(name) - 1) == 0)
			return strtoul(head + sizeof(name) - 1, NULL, 10);
	return 0;
}

static void
conn_take(struct server *s, struct conn *c)
{
	size_t used = 0;

	for (;;) {
		const char *p = c->in.data + used, *end;
		size_t have = c->in.len - used, body;

		end = have > 0 ? memmem(p, have, "\r\n\r\n", 4) : NULL;
		if (end == NULL)
			break;
		body = head_length(p, end + 4);
		if (have < (size_t)(end + 4 - p) + body)
			break;
		conn_answer(s, c, end + 4, body);
		used += (size_t)(end + 4 - p) + body;
	}
	buf_drop(&c->in, used);
}

static bool
conn_read(struct server *s, struct conn *c)
{
	ssize_t n;

	if (buf_reserve(&c->in, ECHO_READ_BYTES) != MV_OK)
		return false;
	n = recv(c->fd, c->in.data + c->in.len, c->in.cap - c->in.len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->in.len += (size_t)n;
	conn_take(s, c);
	return n > 0 && c->out.err == MV_OK && s->out.err == MV_OK;
}

static void
conn_end(struct conn *c)
{
	(void)close(c->fd);
	buf_fini(&c->in);
	buf_fini(&c->out);
	mem_free(c);
}

static void
conn_accept(int ep, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), one = 1;
	struct epoll_event ev = {.events = EPOLLIN};
	struct conn *c;

	if (fd < 0)
		return;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c = mem_xcalloc(1, sizeof(*c));
	c->fd = fd;
	buf_init(&c->in, ECHO_MESSAGE_MAX);
	buf_init(&c->out, 8 * ECHO_MESSAGE_MAX);
	ev.data.ptr = c;
	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) != 0)
		conn_end(c);
}

static int
listen_on(unsigned long long port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) != 0 ||
	    listen(fd, 1024) != 0) {
		perror("bench_echo: listen");
		return -1;
	}
	return fd;
}

int
server_run_http(struct server *s)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), listener = listen_on(s->port);
	struct epoll_event ev[EVENTS_MAX] = {{.events = EPOLLIN}};
	int n;

	if (ep < 0 || listener < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, listener, ev) != 0)
		return 1;
	while ((n = epoll_wait(ep, ev, EVENTS_MAX, -1)) >= 0 || errno == EINTR) {
		for (int i = 0; i < n; i++) {
			struct conn *c = ev[i].data.ptr;

			if (c == NULL) {
				conn_accept(ep, listener);
				continue;
			}
			if (((ev[i].events & ~(unsigned)EPOLLOUT) != 0 &&
				!conn_read(s, c)) ||
			    !conn_write(ep, c))
				conn_end(c);
		}
	}
	return 1;
}
