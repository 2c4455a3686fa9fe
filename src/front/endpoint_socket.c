/* SPDX-License-Identifier: MIT */
/*
 * Connections on a unix socket: HTTP, or newline-delimited messages, told apart by their
 * first byte.
 *
 * Owns: each connection that speaks lines, with its link and client.
 * Driven by: the listener, the link, a timer for those that leave with calls open.
 * Invariants: a connection is HTTP from a letter on, lines from anything else; the end of
 * one ends no upstream.
 */
#include "endpoint_http_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/link.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKET_MAGIC 0x736f636bu
#define SNIFF_MS     10000

struct socket_client {
	unsigned magic;
	struct endpoint_http *e;
	struct socket_client *next, **prev;
	struct http_door *door; /* while it is not known what it speaks */
	int fd;			/* the same; else -1 */
	uid_t uid;
	struct watch watch;
	struct link *link;
	struct client *client;
	bool ended;	 /* its input: it goes when its calls have */
	size_t out_seen; /* what it had not taken, and since when it takes nothing */
	uint64_t out_since_ms;
	struct timer timer;
	struct deferred check;
};

static void
socket_free(struct socket_client *s)
{
	struct endpoint_http *e = s->e;

	e->n_sockets--;
	*s->prev = s->next;
	if (s->next != NULL)
		s->next->prev = s->prev;
	client_free(s->client);
	link_free(s->link);
	if (s->fd >= 0) {
		watch_fini(&s->watch);
		(void)close(s->fd);
	}
	http_door_unref(s->door);
	timer_fini(&s->timer);
	deferred_cancel(&s->check);
	s->magic = 0;
	mem_free(s);
	deferred_ask(&e->check);
}

static void
on_socket_check(void *arg)
{
	struct socket_client *s = arg;

	if (s->ended && client_in_flight(s->client) == 0 &&
	    (s->link == NULL || link_out_pending(s->link) == 0))
		socket_free(s);
}

static void
on_socket_timer(void *arg)
{
	socket_free(arg);
}

/* As long as there is memory a client may read when it likes. */
void
sockets_sweep(struct endpoint_http *e)
{
	uint64_t now = clock_now_ms();
	struct socket_client *next;

	for (struct socket_client *s = e->sockets; s != NULL; s = next) {
		size_t out = s->link != NULL ? link_out_pending(s->link) : 0;
		bool stuck = out > 0 && s->out_seen > 0 && out >= s->out_seen;

		next = s->next;
		if (s->client != NULL && client_in_flight(s->client) == 0)
			client_rest(s->client);
		s->out_seen = out;
		if (!stuck) {
			s->out_since_ms = now;
		} else if (mem_is_short() && now - s->out_since_ms >= e->o.http.idle_ms) {
			LOG_LIMITED(LOG_LV_WARNING, "socket",
			    "ended, memory is short and it does not read",
			    "uid=%u bytes=%zu", (unsigned)s->uid, out);
			socket_free(s);
		}
	}
}

static void
on_message(void *arg, const struct link_msg *m)
{
	struct socket_client *s = arg;

	MCPVISOR_ASSERT(s->magic == SOCKET_MAGIC);
	/* Once we have ended it nobody would have the answer. */
	if (!s->ended)
		client_on_message(s->client, m);
}

static void
on_bad(void *arg, enum mv_err err, struct jtext id, bool is_reply, const char *line,
    size_t len)
{
	struct socket_client *s = arg;

	(void)line;
	(void)len;
	if (!is_reply && !s->ended)
		client_on_bad(s->client, err, id);
}

static void
socket_end(struct socket_client *s)
{
	if (s->ended)
		return;
	s->ended = true;
	timer_set(&s->timer, s->e->o.drain_ms);
	deferred_ask(&s->check);
}

static void
on_end(void *arg)
{
	socket_end(arg);
}

static void
on_write_end(void *arg, int errnum)
{
	struct socket_client *s = arg;

	(void)errnum;
	s->ended = true;
	timer_set(&s->timer, 0);
}

static void
on_drained(void *arg)
{
	struct socket_client *s = arg;

	if (s->ended)
		deferred_ask(&s->check);
}

static const struct link_cb link_callbacks = {
    .on_message = on_message,
    .on_bad = on_bad,
    .on_end = on_end,
    .on_write_end = on_write_end,
    .on_drained = on_drained,
};

static enum mv_err
on_send(void *arg, const struct iovec *iov, int n)
{
	struct socket_client *s = arg;

	return link_send(s->link, iov, n);
}

static void
on_idle(void *arg)
{
	struct socket_client *s = arg;

	if (s->ended)
		deferred_ask(&s->check);
	deferred_ask(&s->e->check);
}

static void
on_dead(void *arg)
{
	struct socket_client *s = arg;

	s->ended = true;
	timer_set(&s->timer, 0);
}

static const struct client_cb client_callbacks = {
    .send = on_send, .on_idle = on_idle, .on_dead = on_dead};

/* fd is taken. */
static void
socket_become_lines(
    struct socket_client *s, int fd, unsigned view, const char *buffered, size_t n)
{
	struct link_opts o = {.rfd = fd,
	    .wfd = fd,
	    .message_max = CAP_MESSAGE_BYTES,
	    .out_max = CAP_OUT_BYTES,
	    .buffered = buffered,
	    .n_buffered = n};

	LOG_INFO("socket", "client", "uid=%u", (unsigned)s->uid);
	s->link = link_new(s->e->loop, &o, &link_callbacks, s);
	if (s->link == NULL) {
		socket_free(s);
		return;
	}
	s->client = client_new(s->e->loop, s->e->g, view, &client_callbacks, s);
	client_set_own_instances(s->client, true);
	client_channel_opened(s->client);
}

static struct socket_client *
socket_new(struct endpoint_http *e, uid_t uid)
{
	struct socket_client *s = mem_xcalloc(1, sizeof(*s));

	s->magic = SOCKET_MAGIC;
	s->e = e;
	s->fd = -1;
	s->uid = uid;
	timer_init(&s->timer, e->loop, on_socket_timer, s);
	deferred_init(&s->check, e->loop, on_socket_check, s);
	s->next = e->sockets;
	if (s->next != NULL)
		s->next->prev = &s->next;
	s->prev = &e->sockets;
	e->sockets = s;
	e->n_sockets++;
	return s;
}

static bool
socket_has_room(const struct endpoint_http *e, uid_t uid)
{
	if (e->n_sockets < e->o.http.connections_max)
		return true;
	LOG_LIMITED(
	    LOG_LV_WARNING, "socket", "too many connections", "uid=%u", (unsigned)uid);
	return false;
}

/* What it speaks is known: neither fd nor door are held for it any more. */
static int
socket_let_go(struct socket_client *s, struct http_door **door)
{
	int fd = s->fd;

	watch_fini(&s->watch);
	timer_clear(&s->timer);
	*door = s->door;
	s->door = NULL;
	s->fd = -1;
	return fd;
}

/* A request line begins with a letter, which no JSON text on a line of its own that is
 * a message does. */
static void
on_first_byte(void *arg, unsigned ready)
{
	struct socket_client *s = arg;
	const struct http_mount *m = s->door->rows[0].mount;
	unsigned char c = 0;
	ssize_t n = recv(s->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
	struct endpoint_http *e = s->e;
	struct http_door *door;
	uid_t uid = s->uid;
	int fd;

	(void)ready;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && (c | 0x20) >= 'a' && (c | 0x20) <= 'z') {
		fd = socket_let_go(s, &door);
		socket_free(s);
		http_server_add(e->server, fd, uid, door);
	} else if (n > 0 && !m->is_gone) {
		fd = socket_let_go(s, &door);
		socket_become_lines(s, fd, m->view, NULL, 0);
		http_door_unref(door);
	} else {
		socket_free(s);
	}
}

void
socket_accept(struct http_door *d, int fd, uid_t uid)
{
	struct socket_client *s;

	if (!socket_has_room(d->e, uid)) {
		(void)close(fd);
		return;
	}
	s = socket_new(d->e, uid);
	s->door = http_door_ref(d);
	s->fd = fd;
	watch_init(&s->watch, d->e->loop, fd, on_first_byte, s);
	watch_want(&s->watch, WATCH_READ);
	timer_set(&s->timer, SNIFF_MS);
}

void
endpoint_http_add_lines(struct endpoint_http *e, int fd, uid_t uid, unsigned view,
    const char *buffered, size_t n)
{
	if (e->state != HTTP_ST_OPEN || !socket_has_room(e, uid))
		(void)close(fd);
	else
		socket_become_lines(socket_new(e, uid), fd, view, buffered, n);
}

void
sockets_finish(struct endpoint_http *e)
{
	struct socket_client *next;

	for (struct socket_client *s = e->sockets; s != NULL; s = next) {
		next = s->next;
		if (s->client == NULL) {
			socket_free(s); /* it has not said a word */
			continue;
		}
		client_finish(s->client);
		link_end_write(s->link, false);
		socket_end(s);
	}
}

void
sockets_free(struct endpoint_http *e)
{
	while (e->sockets != NULL)
		socket_free(e->sockets);
}

size_t
sockets_in_flight(const struct endpoint_http *e)
{
	size_t n = 0;

	for (const struct socket_client *s = e->sockets; s != NULL; s = s->next)
		n += s->client != NULL ? client_in_flight(s->client) : 0;
	return n;
}
