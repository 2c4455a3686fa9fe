/* SPDX-License-Identifier: MIT */
/* What the parts of listening sockets share: addresses, and how they are opened. */
#ifndef MCPVISOR_LISTENER_PRIV_H
#define MCPVISOR_LISTENER_PRIV_H

#include "mcpvisor/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <netinet/in.h>

#define LISTENER_TEXT_BYTES 160

union any_address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

/* Of what the conf says, or of a socket. */
struct listener_place {
	union any_address a;
	socklen_t len;
	const char *inherited; /* "systemd:NAME": the name, in the text that was parsed */
};

/* The file of a unix socket that we made; path "": there is none. */
struct listener_file {
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	dev_t dev;
	ino_t ino;
	gid_t gid; /* that it was born with */
};

/* listener_address.c */
bool listener_place_parse(const char *s, struct listener_place *p);
bool listener_place_of_fd(int fd, struct listener_place *p);
bool listener_place_is_loopback(const struct listener_place *p);
/* Both lead to one socket. Any port is no port. */
bool listener_place_is_same(
    const struct listener_place *p, const struct listener_place *q);
void listener_place_text(const struct listener_place *p, char *out, size_t size);

/* listener_open.c */
enum mv_err listener_open(const char *address, const struct listener_place *p, int *fd,
    struct listener_file *file, struct mv_errtext *et) MCPVISOR_MUST_CHECK;
/* Whether the file is there and still ours. */
bool listener_file_is_ours(const struct listener_file *f, struct stat *st);
/* See listener_set_access. */
enum mv_err listener_file_set_access(const struct listener_file *f, unsigned mode,
    const char *group, struct mv_errtext *et) MCPVISOR_MUST_CHECK;

/* listener_inherit.c: sockets that the service manager has opened. */
/* The one of that name; -1 with *et: there is none, or more than one. It stays open for a
 * later look. */
int listener_find_inherited(const char *name, struct mv_errtext *et);
/* A descriptor of our own for it. */
enum mv_err listener_adopt(
    const char *name, int *fd, struct mv_errtext *et) MCPVISOR_MUST_CHECK;

#endif
