/* SPDX-License-Identifier: MIT */
/* An endpoint on real sockets in virtual time, and clients that speak to it. */
#ifndef CHECK_ENDPOINT_RIG_H
#define CHECK_ENDPOINT_RIG_H

#include "mcpvisor/endpoint_http.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/mem.h"

#include "fake/fake_fleet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>

#define TURNS_MAX 100000
#define END	  "\r\n\r\n"

static struct fleet *f;
static struct endpoint_http *e;
static struct mv_errtext et;
static char folder[64], path[96], address[128];
static unsigned stopped;

struct peer {
	int fd;
	struct buf in;
	bool eof;
};

/* alpha has the tool a, beta the tool b; "all" shows both, "dev" beta alone. */
static inline void
setup(void)
{
	struct fleet_conf *c = fleet_conf_new(2);
	struct endpoint_http_opts o = endpoint_http_defaults;

	(void)fleet_conf_profile(c, "all", "alpha beta");
	(void)fleet_conf_profile(c, "dev", "beta");
	f = fleet_running_from(c);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fleet_list(f, 1, LIST_TOOLS, "b", NULL);
	o.http = http_server_defaults;
	e = endpoint_http_new(f->loop, f->g, &o);
	stopped = 0;
	memset(&et, 0, sizeof(et));
	(void)snprintf(folder, sizeof(folder), "/tmp/check-doors-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/sock", folder);
	(void)snprintf(address, sizeof(address), "unix:%s", path);
}

static inline void
teardown(void)
{
	endpoint_http_free(e);
	fake_loop_settle(f->loop);
	fleet_free(f);
	ck_assert_int_eq(rmdir(folder), 0);
}

static inline enum mv_err
serve(const struct endpoint_listen *rows, size_t n)
{
	enum mv_err err = endpoint_http_set_listen(e, rows, n, &et);

	fake_loop_settle(f->loop);
	return err;
}

#define SERVE(rows) ck_assert_int_eq(serve(rows, sizeof(rows) / sizeof((rows)[0])), MV_OK)

static inline int
try_dial(const char *where)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_un un;
	} a;
	socklen_t len = sizeof(a.v4);
	int fd;

	memset(&a, 0, sizeof(a));
	if (strncmp(where, "unix:", 5) == 0) {
		ck_assert_uint_lt(strlen(where + 5), sizeof(a.un.sun_path));
		a.un.sun_family = AF_UNIX;
		memcpy(a.un.sun_path, where + 5, strlen(where + 5) + 1);
		len = sizeof(a.un);
	} else {
		a.v4.sin_family = AF_INET;
		a.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		a.v4.sin_port =
		    htons((uint16_t)strtoul(strrchr(where, ':') + 1, NULL, 10));
	}
	fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	if (connect(fd, &a.sa, len) == 0)
		return fd;
	close(fd);
	return -1;
}

static inline struct peer *
peer_of(int fd)
{
	struct peer *p = mem_xcalloc(1, sizeof(*p));

	ck_assert_int_ge(fd, 0);
	p->fd = fd;
	buf_init(&p->in, (size_t)1 << 24);
	return p;
}

static inline struct peer *
dial(size_t row)
{
	return peer_of(try_dial(endpoint_http_address(e, row)));
}

static inline void
hang_up(struct peer *p)
{
	close(p->fd);
	buf_fini(&p->in);
	mem_free(p);
	fake_loop_settle(f->loop);
}

static inline void
say(struct peer *p, const char *text)
{
	ck_assert_int_eq(
	    send(p->fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Whatever there is by now. */
static inline void
hear(struct peer *p)
{
	char text[4096];
	ssize_t n;

	fake_loop_settle(f->loop);
	while ((n = recv(p->fd, text, sizeof(text), MSG_DONTWAIT)) > 0)
		buf_add(&p->in, text, (size_t)n);
	p->eof = p->eof || n == 0 || errno == ECONNRESET;
}

/* Eats what comes, up to the text and with it. */
static inline void
expect(struct peer *p, const char *text)
{
	const char *at;

	for (int i = 0; (at = strstr(buf_cstr(&p->in), text)) == NULL; i++) {
		ck_assert_msg(i < TURNS_MAX && !p->eof, "no \"%s\" but \"%s\"", text,
		    buf_cstr(&p->in));
		hear(p);
	}
	buf_drop(&p->in, (size_t)(at - p->in.data) + strlen(text));
}

static inline void
expect_end(struct peer *p)
{
	for (int i = 0; !p->eof; i++) {
		ck_assert_int_lt(i, TURNS_MAX);
		hear(p);
	}
}

static inline void
on_stopped(void *arg)
{
	ck_assert_ptr_eq(arg, &stopped);
	stopped++;
}

#include "suite_rig.h"

#endif
