/* SPDX-License-Identifier: MIT */
/*
 * The control socket: its connections.
 *
 * Owns: the listener, and each connection with its stream.
 * Driven by: the listener, the streams, a timer a connection.
 * Invariants: a request is answered when the answer before it has left, so one connection
 * never has more than one answer in memory; each has a time for its next request and
 * for taking an answer; what one of them does is nothing to the others.
 */
#include "mcpvisor/control.h"

#include "control_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/framer.h"
#include "mcpvisor/listener.h"
#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CONTROL_MAGIC 0x6374726cu
#define CONN_MAGIC    0x6374636eu
#define IN_ROOM	      4096 /* above a request, to see that it is over */

struct control_conn {
	unsigned magic;
	struct control *c;
	struct control_conn *next, **prev;
	struct stream *stream;
	int fd; /* the stream's */
	uid_t uid;
	struct framer framer;
	struct timer timer;
	const char *behind; /* the request at hand: what has been read after it */
	size_t n_behind;
	bool ended; /* its input */
};

struct control {
	unsigned magic;
	struct loop *loop;
	struct listener *listener;
	struct control_ops ops;
	void *arg;
	struct control_conn *conns;
	size_t n_conns, n_others; /* of these, of other users */
};

static void
on_destroy(void *p)
{
	struct control_conn *k = p;

	k->magic = 0;
	mem_free(k);
}

static void
conn_free(struct control_conn *k)
{
	k->c->n_conns--;
	k->c->n_others -= !control_is_owner(k->uid);
	*k->prev = k->next;
	if (k->next != NULL)
		k->next->prev = k->prev;
	stream_free(k->stream);
	timer_fini(&k->timer);
	loop_defer_free(k->c->loop, on_destroy, k);
}

static void
on_late(void *arg)
{
	struct control_conn *k = arg;

	MCPVISOR_ASSERT(k->magic == CONN_MAGIC);
	LOG_DEBUG("control", "too slow", "uid=%u", (unsigned)k->uid);
	conn_free(k);
}

/* The stream closes its own descriptor, so another one for the same socket is given
 * away. What the other side wrote behind its request goes with it. */
static enum mv_err
conn_take(void *conn, const char *profile)
{
	struct control_conn *k = conn;
	struct pollfd p = {.fd = k->fd, .events = POLLOUT};
	enum mv_err err;
	int fd;

	/* The answer has to go out now, before anything of the new owner's. */
	if (poll(&p, 1, 0) != 1 || p.revents != POLLOUT)
		return MV_BUSY;
	fd = fcntl(k->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return MV_SYSTEM;
	err = k->c->ops.take_mcp(k->c->arg, fd, k->uid, profile, k->behind, k->n_behind);
	if (err != MV_OK)
		(void)close(fd);
	return err;
}

/* False: k has gone. */
static bool
conn_send(struct control_conn *k, struct buf *answer, bool last)
{
	struct iovec iov;
	bool sent;

	buf_add_char(answer, '\n');
	iov = (struct iovec){answer->data, answer->len};
	sent = answer->err == MV_OK && stream_writev(k->stream, &iov, 1) == MV_OK;
	if (sent && last)
		stream_flush(k->stream);
	if (!sent || last) {
		conn_free(k);
		return false;
	}
	timer_set(&k->timer, CONTROL_WAIT_MS);
	return true;
}

static bool
conn_answer(struct control_conn *k, const char *line, size_t n)
{
	struct control_asker a = {.ops = &k->c->ops,
	    .arg = k->c->arg,
	    .uid = k->uid,
	    .take = conn_take,
	    .conn = k};
	struct buf answer;
	bool alive;

	buf_init(&answer, CAP_CONTROL_BYTES);
	control_run(&a, line, n, &answer);
	alive = conn_send(k, &answer, a.taken);
	buf_fini(&answer);
	return alive;
}

static bool
conn_refuse_long(struct control_conn *k)
{
	struct buf answer;
	bool alive;

	buf_init(&answer, CAP_CONTROL_BYTES);
	control_put_error(&answer, mv_err_reason(MV_TOO_LONG), "the request is too long");
	alive = conn_send(k, &answer, false);
	buf_fini(&answer);
	return alive;
}

/* Answers what is there, one at a time. */
static void
conn_turn(struct control_conn *k)
{
	while (stream_out_pending(k->stream) == 0) {
		size_t n, len, consume;
		const char *line, *p = stream_peek(k->stream, &n);
		enum framer_event ev =
		    k->ended ? framer_finish(&k->framer, p, n, &line, &len, &consume)
			     : framer_next(&k->framer, p, n, &line, &len, &consume);

		if (ev == FRAMER_NEED) {
			if (k->ended)
				conn_free(k);
			return;
		}
		k->behind = p + consume;
		k->n_behind = n - consume;
		if (ev == FRAMER_LINE && len > 0 && !conn_answer(k, line, len))
			return;
		if (ev == FRAMER_LONG_END && !conn_refuse_long(k))
			return;
		stream_consume(k->stream, consume);
	}
}

static void
on_input(void *arg)
{
	struct control_conn *k = arg;

	MCPVISOR_ASSERT(k->magic == CONN_MAGIC);
	conn_turn(k);
}

static void
on_drained(void *arg)
{
	struct control_conn *k = arg;

	MCPVISOR_ASSERT(k->magic == CONN_MAGIC);
	timer_set(&k->timer, CONTROL_WAIT_MS);
	conn_turn(k);
}

static void
on_read_end(void *arg, enum stream_end end)
{
	struct control_conn *k = arg;

	MCPVISOR_ASSERT(k->magic == CONN_MAGIC);
	(void)end;
	k->ended = true;
	conn_turn(k);
}

static void
on_write_end(void *arg, int errnum)
{
	struct control_conn *k = arg;

	MCPVISOR_ASSERT(k->magic == CONN_MAGIC);
	(void)errnum;
	conn_free(k);
}

static const struct stream_cb stream_callbacks = {
    .on_input = on_input,
    .on_drained = on_drained,
    .on_read_end = on_read_end,
    .on_write_end = on_write_end,
};

/* As much as fits at once: nobody waits for one who is turned away. */
static void
control_turn_away(int fd, uid_t uid)
{
	static const char answer[] = "{\"ok\":false,\"error\":\"too many connections\","
				     "\"reason\":\"busy\"}\n";

	LOG_LIMITED(
	    LOG_LV_WARNING, "control", "too many connections", "uid=%u", (unsigned)uid);
	(void)!send(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)close(fd);
}

static void
on_accept(void *arg, int fd, uid_t uid)
{
	struct control *c = arg;
	const struct stream_opts o = {.rfd = fd,
	    .wfd = fd,
	    .in_max = CONTROL_REQUEST_BYTES + IN_ROOM,
	    .out_max = CAP_CONTROL_BYTES + IN_ROOM,
	    .is_exempt = true};
	struct control_conn *k;

	MCPVISOR_ASSERT(c->magic == CONTROL_MAGIC);
	/* Those who may only look leave room for those who may do something about it. */
	if (c->n_conns >= CONTROL_CONNECTIONS ||
	    (!control_is_owner(uid) && c->n_others >= CONTROL_OTHERS)) {
		control_turn_away(fd, uid);
		return;
	}
	k = mem_xcalloc(1, sizeof(*k));
	k->magic = CONN_MAGIC;
	k->c = c;
	k->fd = fd;
	k->uid = uid;
	framer_init(&k->framer, CONTROL_REQUEST_BYTES);
	timer_init(&k->timer, c->loop, on_late, k);
	timer_set(&k->timer, CONTROL_WAIT_MS);
	k->stream = stream_new(c->loop, &o, &stream_callbacks, k);
	k->next = c->conns;
	if (k->next != NULL)
		k->next->prev = &k->next;
	k->prev = &c->conns;
	c->conns = k;
	c->n_conns++;
	c->n_others += !control_is_owner(uid);
}

enum mv_err
control_new(struct loop *l, const struct control_opts *o, const struct control_ops *ops,
    void *arg, struct control **out, struct mv_errtext *et)
{
	static const struct listener_cb callbacks = {.on_accept = on_accept};
	char address[sizeof("unix:") + sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct control *c;
	enum mv_err err;

	*out = NULL;
	if (snprintf(address, sizeof(address), "unix:%s", o->path) >=
	    (int)sizeof(address)) {
		mv_errtext_set(et, "%s: the path of a socket is too long", o->path);
		return MV_CONF;
	}
	/* Of the service's own folder alone: elsewhere it would hide a slip. */
	if (strcmp(o->path, CONTROL_SYSTEM_PATH) == 0)
		(void)mkdir("/run/mcpvisor", 0755);
	c = mem_xcalloc(1, sizeof(*c));
	c->magic = CONTROL_MAGIC;
	c->loop = l;
	c->ops = *ops;
	c->arg = arg;
	err = listener_new(l, address, &callbacks, c, &c->listener, et);
	if (err == MV_OK)
		err = listener_set_access(c->listener, o->mode, o->group, et);
	if (err != MV_OK) {
		control_free(c);
		return err;
	}
	*out = c;
	return MV_OK;
}

void
control_free(struct control *c)
{
	if (c == NULL)
		return;
	MCPVISOR_ASSERT(c->magic == CONTROL_MAGIC);
	listener_free(c->listener);
	while (c->conns != NULL)
		conn_free(c->conns);
	c->magic = 0;
	mem_free(c);
}

const char *
control_default_path(char *out, size_t size)
{
	const char *dir = getenv("RUNTIME_DIRECTORY"), *name = "control.sock";
	int n;

	if (dir == NULL || dir[0] != '/') {
		dir = getenv("XDG_RUNTIME_DIR");
		name = "mcpvisor.control";
	}
	if (dir != NULL && dir[0] == '/') {
		/* The service manager may give several, with colons between them. */
		n = snprintf(out, size, "%.*s/%s", (int)strcspn(dir, ":"), dir, name);
	} else if (geteuid() == 0) {
		n = snprintf(out, size, "%s", CONTROL_SYSTEM_PATH);
	} else {
		return NULL;
	}
	return n > 0 && (size_t)n < size ? out : NULL;
}
