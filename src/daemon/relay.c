/* SPDX-License-Identifier: MIT */
/*
 * Bytes between two pairs of descriptors.
 *
 * Owns: two streams.
 * Driven by: their input; whichever end stops first.
 * Invariants: input is taken only while the other side takes output, so that memory is
 * bounded by one buffer each way.
 */
#include "mcpvisor/relay.h"

#include "mcpvisor/err.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RELAY_MAGIC 0x726c6179u
#define SIDE_MAGIC  0x736964u
#define RELAY_BYTES (1024u * 1024)
/* After the client has gone the daemon's last answers are waited for. */
#define RELAY_LAST_MS 2000

struct relay_side {
	unsigned magic;
	struct relay *r;
	struct stream *s;
	struct relay_side *peer;
	bool ended, broken; /* nothing more comes from it; it takes nothing more */
};

struct relay {
	unsigned magic;
	struct relay_side client, daemon;
	struct timer timer;
	struct deferred over;
	bool ok;
	void (*done)(void *arg, bool ok);
	void *arg;
};

static void
side_move(struct relay_side *side)
{
	size_t n;
	const char *p = stream_peek(side->s, &n);
	struct iovec iov = {(void *)(uintptr_t)p, n};

	if (n == 0)
		return;
	if (stream_writev(side->peer->s, &iov, 1) == MV_OK)
		stream_consume(side->s, n);
	if (stream_out_pending(side->peer->s) > RELAY_BYTES)
		stream_pause(side->s, true);
}

static void
on_input(void *arg)
{
	struct relay_side *side = arg;

	MCPVISOR_ASSERT(side->magic == SIDE_MAGIC);
	side_move(side);
}

static void
on_drained(void *arg)
{
	struct relay_side *side = arg;

	MCPVISOR_ASSERT(side->magic == SIDE_MAGIC);
	stream_pause(side->peer->s, false);
	if (side->r->daemon.ended)
		deferred_ask(&side->r->over);
}

static void
on_read_end(void *arg, enum stream_end end)
{
	struct relay_side *side = arg;
	struct relay *r = side->r;

	MCPVISOR_ASSERT(side->magic == SIDE_MAGIC);
	(void)end;
	side->ended = true;
	if (side == &r->daemon) {
		r->ok = r->client.ended;
		stream_flush(r->client.s);
		deferred_ask(&r->over);
	} else {
		stream_end_write(r->daemon.s, false);
		timer_set(&r->timer, RELAY_LAST_MS);
	}
}

static void
on_write_end(void *arg, int errnum)
{
	struct relay_side *side = arg;
	struct relay *r = side->r;

	MCPVISOR_ASSERT(side->magic == SIDE_MAGIC);
	(void)errnum;
	side->broken = true;
	if (side == &r->client)
		deferred_ask(&r->over);
	else if (!timer_is_set(&r->timer))
		timer_set(&r->timer, RELAY_LAST_MS); /* it may have said something yet */
}

static const struct stream_cb callbacks = {.on_input = on_input,
    .on_drained = on_drained,
    .on_read_end = on_read_end,
    .on_write_end = on_write_end};

/* Whichever of the two comes first is the end. */
static void
relay_done(struct relay *r)
{
	timer_clear(&r->timer);
	deferred_cancel(&r->over);
	r->done(r->arg, r->ok);
}

static void
on_over(void *arg)
{
	struct relay *r = arg;

	MCPVISOR_ASSERT(r->magic == RELAY_MAGIC);
	/* What the daemon said last may still be on its way out. */
	if (!r->client.broken && stream_out_pending(r->client.s) > 0) {
		if (!timer_is_set(&r->timer))
			timer_set(&r->timer, RELAY_LAST_MS);
		return;
	}
	relay_done(r);
}

static void
on_timer(void *arg)
{
	struct relay *r = arg;

	MCPVISOR_ASSERT(r->magic == RELAY_MAGIC);
	relay_done(r);
}

static int
relay_connect(const char *path, struct mv_errtext *et)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		mv_errtext_set(et, "%s: the path is too long for a socket", path);
		return -1;
	}
	memcpy(sa.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) != 0) {
		mv_errtext_set(
		    et, "%s: %s; is mcpvisor serve running?", path, strerror(errno));
		if (fd >= 0)
			(void)close(fd);
		return -1;
	}
	return fd;
}

enum mv_err
relay_new(
    struct loop *l, const struct relay_opts *o, struct relay **out, struct mv_errtext *et)
{
	int fd = relay_connect(o->path, et);
	struct stream_opts inner = {
	    .rfd = fd, .wfd = fd, .in_max = RELAY_BYTES, .out_max = SIZE_MAX};
	struct stream_opts outer = {
	    .rfd = o->rfd, .wfd = o->wfd, .in_max = RELAY_BYTES, .out_max = SIZE_MAX};
	struct relay *r;

	if (fd < 0)
		return MV_SYSTEM;
	r = mem_xcalloc(1, sizeof(*r));
	r->magic = RELAY_MAGIC;
	r->done = o->done;
	r->arg = o->arg;
	timer_init(&r->timer, l, on_timer, r);
	deferred_init(&r->over, l, on_over, r);
	r->client = (struct relay_side){.magic = SIDE_MAGIC, .r = r, .peer = &r->daemon};
	r->daemon = (struct relay_side){.magic = SIDE_MAGIC, .r = r, .peer = &r->client};
	r->client.s = stream_new(l, &outer, &callbacks, &r->client);
	r->daemon.s = stream_new(l, &inner, &callbacks, &r->daemon);
	*out = r;
	return MV_OK;
}

void
relay_free(struct relay *r)
{
	if (r == NULL)
		return;
	stream_free(r->client.s);
	stream_free(r->daemon.s);
	timer_fini(&r->timer);
	deferred_cancel(&r->over);
	r->magic = 0;
	mem_free(r);
}
