/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets.
 *
 * Owns: the socket, and the file of a unix socket that it made itself.
 * Driven by: a watch, and a timer while descriptors are short.
 * Invariants: a file is removed only while it is the one that we bound; a lack of
 * descriptors stops the accepting instead of spinning on a socket that stays ready;
 * after a callback l->dead is looked at first.
 */
#include "mcpvisor/listener.h"

#include "mcpvisor/log.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#define LISTENER_MAGIC	 0x6c73746eu
#define ACCEPTS_PER_TURN 64
#define SHORTAGE_MS	 1000

union any_address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

struct listener {
	unsigned magic;
	struct loop *loop;
	struct listener_cb cb;
	void *arg;
	int fd;
	bool dead, paused, loopback, is_unix;
	struct watch watch;
	struct timer shortage;
	dev_t dev; /* of a unix socket's file */
	ino_t ino;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	char address[160];
};

static bool
address_port(const char *s, in_port_t *port)
{
	unsigned long n = 0;
	size_t digits = strspn(s, "0123456789");

	if (digits == 0 || digits > 5 || s[digits])
		return false;
	for (; *s; s++)
		n = n * 10 + (unsigned long)(*s - '0');
	if (n > 65535)
		return false;
	*port = htons((uint16_t)n);
	return true;
}

static bool
address_unix(const char *path, union any_address *a, socklen_t *len)
{
	size_t n = strlen(path);

	if (path[0] != '/' || n >= sizeof(a->un.sun_path))
		return false;
	a->un.sun_family = AF_UNIX;
	memcpy(a->un.sun_path, path, n + 1);
	*len = (socklen_t)sizeof(a->un);
	return true;
}

/* No names but localhost: resolving one could block, and could change. */
static bool
address_host(const char *host, size_t n, union any_address *a, socklen_t *len)
{
	char text[INET6_ADDRSTRLEN];

	if (n == 0 || (n == 9 && memcmp(host, "localhost", 9) == 0)) {
		host = "127.0.0.1";
		n = 9;
	}
	if (host[0] == '[') {
		if (n < 3 || host[n - 1] != ']' || n - 2 >= sizeof(text))
			return false;
		memcpy(text, host + 1, n - 2);
		text[n - 2] = '\0';
		a->v6.sin6_family = AF_INET6;
		*len = (socklen_t)sizeof(a->v6);
		return inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1;
	}
	if (n >= sizeof(text))
		return false;
	memcpy(text, host, n);
	text[n] = '\0';
	a->v4.sin_family = AF_INET;
	*len = (socklen_t)sizeof(a->v4);
	return inet_pton(AF_INET, text, &a->v4.sin_addr) == 1;
}

static bool
address_parse(const char *s, union any_address *a, socklen_t *len)
{
	const char *colon = strrchr(s, ':');
	in_port_t port;

	memset(a, 0, sizeof(*a));
	if (strncmp(s, "unix:", 5) == 0)
		return address_unix(s + 5, a, len);
	if (!colon || !address_port(colon + 1, &port) ||
	    !address_host(s, (size_t)(colon - s), a, len))
		return false;
	if (a->sa.sa_family == AF_INET6)
		a->v6.sin6_port = port;
	else
		a->v4.sin_port = port;
	return true;
}

static bool
address_is_loopback(const union any_address *a)
{
	if (a->sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
	if (a->sa.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	return true;
}

enum mv_err
listener_check(const char *address, bool *loopback, struct mv_errtext *et)
{
	union any_address a;
	socklen_t len;

	if (!address_parse(address, &a, &len)) {
		mv_errtext_set(et,
		    "\"%s\" is not an address: want ADDRESS:PORT, [ADDRESS]:PORT, "
		    "localhost:PORT, :PORT or unix:/PATH",
		    address);
		return MV_CONF;
	}
	*loopback = address_is_loopback(&a);
	return MV_OK;
}

static void
listener_wants(struct listener *l)
{
	watch_want(&l->watch, l->paused || timer_is_set(&l->shortage) ? 0 : WATCH_READ);
}

static void
on_shortage_over(void *arg)
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

	if (!l->is_unix) {
		/* Answers are written whole: nothing is gained by waiting for more. */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		return (uid_t)-1;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return (uid_t)-1;
	return cred.uid;
}

static void
on_ready(void *arg, unsigned ready)
{
	struct listener *l = arg;

	MCPVISOR_ASSERT(l->magic == LISTENER_MAGIC);
	(void)ready;
	for (int i = 0; i < ACCEPTS_PER_TURN && !l->dead && !l->paused; i++) {
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
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM) {
			LOG_LIMITED(LOG_LV_WARNING, "listener", "cannot accept",
			    "address=%s errno=%d", l->address, errno);
			timer_set(&l->shortage, SHORTAGE_MS);
			listener_wants(l);
			return;
		}
		/* Else that one connection has failed before we saw it. */
	}
}

/* A file that nobody listens on any more goes; MV_OK says that it went. */
static enum mv_err
listener_clear_stale(const union any_address *a, socklen_t len, struct mv_errtext *et)
{
	const char *path = a->un.sun_path;
	struct stat st;
	bool refused;
	int fd;

	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		mv_errtext_set(et, "%s exists and is not a socket", path);
		return MV_SYSTEM;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		mv_errtext_set(
		    et, "cannot listen on %s: %s", path, strerrordesc_np(errno));
		return MV_SYSTEM;
	}
	refused = connect(fd, &a->sa, len) != 0 && errno == ECONNREFUSED;
	close(fd);
	if (!refused) {
		mv_errtext_set(et, "%s: somebody listens there already", path);
		return MV_BUSY;
	}
	if (unlink(path) != 0 && errno != ENOENT) {
		mv_errtext_set(et, "cannot remove %s: %s", path, strerrordesc_np(errno));
		return MV_SYSTEM;
	}
	return MV_OK;
}

static enum mv_err
listener_bind(int fd, const char *address, const union any_address *a, socklen_t len,
    struct mv_errtext *et)
{
	enum mv_err err = MV_OK;
	int on = 1;

	if (a->sa.sa_family == AF_UNIX) {
		/* The file gets the mode that the socket has at bind: at no moment may
		 * anybody else connect. */
		(void)fchmod(fd, 0600);
	} else {
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	}
	if (bind(fd, &a->sa, len) == 0)
		return MV_OK;
	if (errno == EADDRINUSE && a->sa.sa_family == AF_UNIX) {
		err = listener_clear_stale(a, len, et);
		if (err != MV_OK)
			return err;
		if (bind(fd, &a->sa, len) == 0)
			return MV_OK;
		err = MV_BUSY; /* taken meanwhile */
	}
	mv_errtext_set(et, "cannot listen on %s: %s", address, strerrordesc_np(errno));
	return err == MV_OK ? MV_SYSTEM : err;
}

static enum mv_err
listener_open(struct listener *l, const char *address, const union any_address *a,
    socklen_t len, struct mv_errtext *et)
{
	enum mv_err err;
	struct stat st;

	l->fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0) {
		mv_errtext_set(
		    et, "cannot listen on %s: %s", address, strerrordesc_np(errno));
		return MV_SYSTEM;
	}
	err = listener_bind(l->fd, address, a, len, et);
	if (err != MV_OK)
		return err;
	if (l->is_unix && lstat(a->un.sun_path, &st) == 0) {
		memcpy(l->path, a->un.sun_path, sizeof(l->path));
		l->dev = st.st_dev;
		l->ino = st.st_ino;
	}
	if (listen(l->fd, SOMAXCONN) != 0) {
		mv_errtext_set(
		    et, "cannot listen on %s: %s", address, strerrordesc_np(errno));
		return MV_SYSTEM;
	}
	return MV_OK;
}

/* With the port that the system chose. */
static void
listener_name(struct listener *l, const char *address)
{
	union any_address a;
	socklen_t len = sizeof(a);
	char text[INET6_ADDRSTRLEN] = "";

	memset(&a, 0, sizeof(a));
	if (l->is_unix || getsockname(l->fd, &a.sa, &len) != 0) {
		snprintf(l->address, sizeof(l->address), "%s", address);
	} else if (a.sa.sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &a.v6.sin6_addr, text, sizeof(text));
		snprintf(l->address, sizeof(l->address), "[%s]:%u", text,
		    (unsigned)ntohs(a.v6.sin6_port));
	} else {
		(void)inet_ntop(AF_INET, &a.v4.sin_addr, text, sizeof(text));
		snprintf(l->address, sizeof(l->address), "%s:%u", text,
		    (unsigned)ntohs(a.v4.sin_port));
	}
}

enum mv_err
listener_new(struct loop *loop, const char *address, const struct listener_cb *cb,
    void *arg, struct listener **out, struct mv_errtext *et)
{
	struct listener *l;
	union any_address a;
	enum mv_err err;
	socklen_t len = 0;
	bool loopback;

	*out = NULL;
	err = listener_check(address, &loopback, et);
	if (err != MV_OK || !address_parse(address, &a, &len))
		return err;
	l = mem_xcalloc(1, sizeof(*l));
	l->magic = LISTENER_MAGIC;
	l->loop = loop;
	l->cb = *cb;
	l->arg = arg;
	l->loopback = loopback;
	l->is_unix = a.sa.sa_family == AF_UNIX;
	timer_init(&l->shortage, loop, on_shortage_over, l);
	err = listener_open(l, address, &a, len, et);
	if (err != MV_OK) {
		listener_free(l);
		return err;
	}
	listener_name(l, address);
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
	mem_free(l);
}

void
listener_free(struct listener *l)
{
	struct stat st;

	if (!l || l->dead)
		return;
	l->dead = true;
	timer_fini(&l->shortage);
	if (l->watch.loop)
		watch_fini(&l->watch);
	/* Another process may have put its own in the place of ours. */
	if (l->path[0] && lstat(l->path, &st) == 0 && st.st_dev == l->dev &&
	    st.st_ino == l->ino)
		(void)unlink(l->path);
	if (l->fd >= 0)
		close(l->fd);
	loop_defer_free(l->loop, on_destroy, l);
}

void
listener_pause(struct listener *l, bool paused)
{
	if (l->dead)
		return;
	l->paused = paused;
	listener_wants(l);
}

const char *
listener_address(const struct listener *l)
{
	return l->address;
}

bool
listener_is_loopback(const struct listener *l)
{
	return l->loopback;
}
