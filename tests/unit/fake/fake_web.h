/* SPDX-License-Identifier: MIT */
/*
 * An HTTP server on the loop of the test, on 127.0.0.1, with a canned answer for each
 * path. It speaks TLS, or something other than HTTP/1.1, through functions of the test.
 */
#ifndef FAKE_WEB_H
#define FAKE_WEB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/loop.h"

#define WEB_CONNS 160

struct canned {
	const char *path;
	const char *head; /* all of it, or what goes before n bytes of body */
	const char *body;
	size_t n;
	bool is_silent; /* no answer */
	bool is_once;	/* none to the second request of a connection, which ends */
	bool ends;	/* the connection ends after it */
};

struct web;
struct web_conn {
	struct web *web;
	int fd; /* -1: over */
	void *tls;
	struct watch watch;
	struct buf in, out;
	unsigned requests;
	bool ends;
};

/* read and write as recv and send. */
struct web_tls {
	void *(*accept)(int fd);
	ssize_t (*read)(void *tls, void *p, size_t n);
	ssize_t (*write)(void *tls, const void *p, size_t n);
	void (*close)(void *tls);
};

struct web {
	struct loop *l;
	int fd;
	uint16_t port;
	struct watch watch;
	struct web_conn conns[WEB_CONNS]; /* all there ever were */
	int n_conns;
	unsigned n_requests;
	struct buf last;	      /* request */
	const struct canned *answers; /* ended by one without a path */
	const struct web_tls *tls;    /* NULL: none */
	/* Takes what it can of c->in and adds to c->out; NULL: HTTP/1.1. */
	void (*take)(struct web_conn *c);
};

void web_start(struct web *w, struct loop *l);
void web_stop(struct web *w);
void web_listen(struct web *w, bool on);
/* A socket of the kind on 127.0.0.1 and a port of the system's choice. */
int web_socket(int type, uint16_t *port);

#endif
