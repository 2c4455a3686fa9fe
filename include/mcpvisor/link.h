/* SPDX-License-Identifier: MIT */
/*
 * A link carries whole JSON-RPC messages over newline framing, in both
 * directions, for a client on stdin and stdout and for a child alike.
 * Spec: basic/transports, stdio (every revision).
 */
#ifndef MCPVISOR_LINK_H
#define MCPVISOR_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "mcpvisor/envelope.h"

struct link;
struct loop;

/* One received message. Everything points into the link's buffer and is valid
 * until the callback returns. */
struct link_msg {
	const char *base;
	size_t len;
	const struct json_msg *json;
	struct envelope env;
};

struct link_opts {
	int rfd, wfd; /* taken; may be equal */
	size_t message_max;
	size_t out_max;
	bool want_uris;
	bool is_vital; /* see stream_opts */
	/* Bytes that were read from rfd already; n_buffered 0: none. */
	const char *buffered;
	size_t n_buffered;
};

struct link_cb {
	/* May free the link. env.kind is never ENVELOPE_BATCH's content: elements
	 * of a batch are the receiver's to walk, with link_scan. */
	void (*on_message)(void *arg, const struct link_msg *m);
	/* A line that is no message: not JSON (MV_SYNTAX, MV_UTF8, MV_TOO_DEEP), or
	 * over the limit (MV_TOO_LONG). id is what could still be read of it, is_reply
	 * whether a result or error member came with it; a reply that the end of the
	 * input cuts off has no id. line is at most the first bytes of it. Empty lines
	 * are skipped in silence. May free the link. */
	void (*on_bad)(void *arg, enum mv_err err, struct jtext id, bool is_reply,
	    const char *line, size_t len);
	/* No more input: end of file or an error. Once. May free the link. */
	void (*on_end)(void *arg);
	/* The peer reads no more; output is gone. Once. May free the link. */
	void (*on_write_end)(void *arg, int errnum);
	/* All output has left. May be NULL. */
	void (*on_drained)(void *arg);
};

/* Never calls back before returning. NULL: no memory for what was buffered; the
 * descriptors are closed all the same. */
struct link *link_new(
    struct loop *l, const struct link_opts *o, const struct link_cb *cb, void *arg);
/* Allowed inside callbacks; no callback comes after. */
void link_free(struct link *k);

/* Sends one message given in pieces, without its newline, which link adds. The
 * pieces are copied; together they must be one well-formed message without a raw
 * newline, which holds for whatever came over a link and for what buf builds.
 * MV_BUSY, MV_CLOSED or MV_NOMEM: nothing was queued. */
enum mv_err link_send(struct link *k, const struct iovec *iov, int n) MCPVISOR_MUST_CHECK;
enum mv_err link_send_buf(struct link *k, const struct buf *b) MCPVISOR_MUST_CHECK;
size_t link_out_pending(const struct link *k);
void link_pause(struct link *k, bool paused);
/* Closes the writing side when all has left; now: at once. */
void link_end_write(struct link *k, bool now);

/* Scans one text (an element of a batch, or a message made by us) into m; json is
 * the caller's memory that m points to. */
enum mv_err link_scan(const char *p, size_t n, struct json_msg *json, struct link_msg *m);

#endif
