/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets.
 *
 * Owns: the socket, and the file of a unix socket that it made itself.
 * Driven by: a watch, and a timer while nothing can be accepted.
 * Invariants: a file is removed only while it is the one that we bound; a lack of
 * descriptors, or a socket that fails by itself, stops the accepting instead of spinning
 * on a socket that stays ready;
 * after a callback l->dead is looked at first.
 */
#include "mcpvisor/listener.h"

#include "listener_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <netinet/tcp.h>

#define LISTENER_MAGIC	 0x6c73746eu
#define ACCEPTS_PER_TURN 64
#define LOOK_AWAY_MS	 1000

struct listener {
	unsigned magic;
	struct loop *loop;
	struct listener_cb cb;
	void *arg;
	int fd;
	bool dead;
	struct watch watch;
	struct timer look_away;
	struct listener_file file;
	struct listener_place place;
	char *given; /* the address as it was asked for */
	char address[LISTENER_TEXT_BYTES];
};

static void
listener_wants(struct listener *l)
{
	watch_want(&l->watch, timer_is_set(&l->look_away) ? 0 : WATCH_READ);
}

static void
on_looked_away(void *arg)
{
	struct listener *l = arg;

	MCPVISOR_ASSERT(l->magic == LISTENER_MAGIC);
	listener_wants(l);
}

static uid_t
listener_peer(const struct listener *l, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int on = 1;

	if (l->place.a.sa.sa_family != AF_UNIX) {
		/* Answers are written whole: nothing is gained by waiting for more. */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		return (uid_t)-1;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return (uid_t)-1;
	return cred.uid;
}

/* That one connection has failed before we saw it: Linux hands its error on. Anything
 * else fails the next time as well. */
static bool
accept_may_go_on(int errnum)
{
	static const int passing[] = {EINTR, ECONNABORTED, EPROTO, EPERM, ETIMEDOUT,
	    ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH, ENONET, ENOPROTOOPT};

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		if (passing[i] == errnum)
			return true;
	return false;
}

static void
on_ready(void *arg, unsigned ready)
{
	struct listener *l = arg;

	MCPVISOR_ASSERT(l->magic == LISTENER_MAGIC);
	(void)ready;
	for (int i = 0; i < ACCEPTS_PER_TURN && !l->dead; i++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof(peer);
		int fd = accept4(
		    l->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			l->cb.on_accept(l->arg, fd, listener_peer(l, fd));
			continue;
		}
		if (errno == EAGAIN)
			return;
		if (!accept_may_go_on(errno)) {
			LOG_LIMITED(LOG_LV_WARNING, "listener", "cannot accept",
			    "address=%s errno=%d", l->address, errno);
			timer_set(&l->look_away, LOOK_AWAY_MS);
			listener_wants(l);
			return;
		}
	}
}

enum mv_err
listener_new(struct loop *loop, const char *address, const struct listener_cb *cb,
    void *arg, struct listener **out, struct mv_errtext *et)
{
	struct listener_place place;
	struct listener *l;
	enum mv_err err;
	bool loopback;

	*out = NULL;
	err = listener_check(address, &loopback, et);
	if (err != MV_OK || !listener_place_parse(address, &place))
		return err;
	l = mem_xcalloc(1, sizeof(*l));
	l->magic = LISTENER_MAGIC;
	l->loop = loop;
	l->cb = *cb;
	l->arg = arg;
	l->fd = -1;
	l->given = mem_xstrdup(address);
	timer_init(&l->look_away, loop, on_looked_away, l);
	err = listener_open(address, &place, &l->fd, &l->file, et);
	if (err == MV_OK && !listener_place_of_fd(l->fd, &l->place)) {
		mv_errtext_set(
		    et, "cannot listen on %s: %s", address, strerrordesc_np(errno));
		err = MV_SYSTEM;
	}
	if (err != MV_OK) {
		listener_free(l);
		return err;
	}
	listener_place_text(&l->place, l->address, sizeof(l->address));
	watch_init(&l->watch, loop, l->fd, on_ready, l);
	listener_wants(l);
	*out = l;
	return MV_OK;
}

static void
on_destroy(void *p)
{
	struct listener *l = p;

	MCPVISOR_ASSERT(l->magic == LISTENER_MAGIC);
	l->magic = 0;
	mem_free(l->given);
	mem_free(l);
}

void
listener_free(struct listener *l)
{
	struct stat st;

	if (!l || l->dead)
		return;
	l->dead = true;
	timer_fini(&l->look_away);
	if (l->watch.loop)
		watch_fini(&l->watch);
	/* Another process may have put its own in the place of ours. */
	if (listener_file_is_ours(&l->file, &st))
		(void)unlink(l->file.path);
	if (l->fd >= 0)
		close(l->fd);
	loop_defer_free(l->loop, on_destroy, l);
}

const char *
listener_address(const struct listener *l)
{
	return l->address;
}

bool
listener_is_loopback(const struct listener *l)
{
	return listener_place_is_loopback(&l->place);
}

bool
listener_serves(const struct listener *l, const char *address)
{
	struct listener_place p;
	struct stat st;

	/* Without its file nobody reaches it: it has to be made anew. */
	if (l->file.path[0] && !listener_file_is_ours(&l->file, &st))
		return false;
	return strcmp(l->given, address) == 0 ||
	       (listener_place_parse(address, &p) &&
		   listener_place_is_same(&p, &l->place));
}

enum mv_err
listener_set_access(
    struct listener *l, unsigned mode, const char *group, struct mv_errtext *et)
{
	return listener_file_set_access(&l->file, mode, group, et);
}
