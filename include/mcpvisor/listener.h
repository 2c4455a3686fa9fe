/* SPDX-License-Identifier: MIT */
/* Listening sockets: TCP and unix, accepting without ever spinning: out of descriptors,
 * or when the socket fails by itself, it looks away for a second. */
#ifndef MCPVISOR_LISTENER_H
#define MCPVISOR_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "mcpvisor/err.h"

struct loop;
struct listener;

struct listener_cb {
	/* fd is the receiver's; close-on-exec, non-blocking. uid is the peer's on a unix
	 * socket, else (uid_t)-1. */
	void (*on_accept)(void *arg, int fd, uid_t uid);
};

/* "127.0.0.1:7332", "[::1]:7332", ":0" (loopback, any port), "localhost:80",
 * "unix:/path" (mode 0600; a stale socket of nobody is replaced, a live one is MV_BUSY),
 * or "systemd:NAME", a socket that the service manager has opened and named so
 * (LISTEN_FDNAMES; sd_listen_fds(3)).
 * MV_CONF with *et: not an address; MV_SYSTEM with *et: the system said no. */
enum mv_err listener_new(struct loop *l, const char *address,
    const struct listener_cb *cb, void *arg, struct listener **out,
    struct mv_errtext *et) MCPVISOR_MUST_CHECK;
/* Sets mode and group (NULL: that of its birth) of the file of a unix socket that we
 * made; others: MV_OK. MV_CONF with *et: there is no such group; MV_SYSTEM. */
enum mv_err listener_set_access(struct listener *l, unsigned mode, const char *group,
    struct mv_errtext *et) MCPVISOR_MUST_CHECK;
/* Closes; a unix socket's file goes if we made it. */
void listener_free(struct listener *l);
/* Whether address names the very socket: the text it was made from, or where it is bound;
 * not one of ours whose file has gone. */
bool listener_serves(const struct listener *l, const char *address);
/* What was bound, as "127.0.0.1:43211" or "unix:/path". */
const char *listener_address(const struct listener *l);
bool listener_is_loopback(const struct listener *l); /* or a unix socket */
/* Parses without binding: whether address is loopback or a unix socket. One of the
 * service manager's that was not handed to us counts as such. */
enum mv_err listener_check(
    const char *address, bool *loopback, struct mv_errtext *et) MCPVISOR_MUST_CHECK;

#endif
