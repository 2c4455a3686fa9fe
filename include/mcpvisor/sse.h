/* SPDX-License-Identifier: MIT */
/*
 * A parser of event streams, resumable at any byte.
 * Spec: WHATWG HTML, 9.2.6 Interpreting an event stream.
 *
 * Bytes are not decoded: what is no UTF-8 passes as it came.
 */
#ifndef MCPVISOR_SSE_H
#define MCPVISOR_SSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/err.h"

/* Longer ids count as none: the stream cannot be taken up again from there. A longer type
 * is cut to this. */
#define SSE_ID_BYTES   1024
#define SSE_TYPE_BYTES 64

struct sse_event {
	const char *type; /* "message" if it named none */
	char *data; /* the lines joined by \n; may hold NUL; may be NULL if len is 0; the
		       receiver may change it in place */
	size_t len;
	const char *id; /* the last event id as of this event; "" if none */
};

/* All is valid until the callback returns. The parser must not be ended inside one, but
 * its owner may free what it belongs to at the end of the turn. */
struct sse_cb {
	/* An event with a data field. False: stop (the parser takes no more). */
	bool (*on_event)(void *arg, const struct sse_event *e);
	/* An event without data moved the last event id; may be NULL. */
	void (*on_id)(void *arg, const char *id);
	/* retry: the server says how long to wait before reconnecting; may be NULL. */
	void (*on_retry)(void *arg, uint64_t ms);
	/* Data of an event over the limit, in parts that are not kept: joined they are
	 * what on_event would have brought. The last one (end, of no bytes) comes with
	 * the event's end, as on_event would; the id is moved by then. Not NULL. */
	bool (*on_long)(void *arg, const char *part, size_t len, bool end);
};

struct sse_parser {
	const struct sse_cb *cb;
	void *arg;
	size_t data_max; /* of one event */
	struct buf data, type, id, id_next, value;
	uint64_t retry_ms;
	uint8_t state, field, name_len;
	char name[8];
	uint8_t bom; /* bytes of it seen */
	bool after_cr, stopped, failed, is_long, has_data, is_bad_value, has_digits;
};

void sse_init(struct sse_parser *p, size_t data_max, const struct sse_cb *cb, void *arg);
void sse_fini(struct sse_parser *p);
/* A new connection: an unfinished event is dropped, the last event id stays. */
void sse_reset(struct sse_parser *p);
/* MV_NOMEM: bytes were lost, the stream is of no more use. */
enum mv_err sse_feed(struct sse_parser *p, const char *s, size_t n) MCPVISOR_MUST_CHECK;
/* "" if none was sent. */
const char *sse_last_id(struct sse_parser *p);

#endif
