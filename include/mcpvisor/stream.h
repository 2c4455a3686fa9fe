/* SPDX-License-Identifier: MIT */
/*
 * A non-blocking byte stream over one or two descriptors (pipes, sockets,
 * terminals, files), with an input buffer that its reader consumes and an
 * output queue that is flushed at the end of the turn.
 */
#ifndef MCPVISOR_STREAM_H
#define MCPVISOR_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "mcpvisor/err.h"

struct loop;
struct stream;

enum stream_end {
	STREAM_END_EOF,	  /* the peer closed its writing side */
	STREAM_END_ERROR, /* read or write failed (EPIPE, ECONNRESET, ...) */
};

struct stream_opts {
	int rfd;	/* -1: write only */
	int wfd;	/* -1: read only; may equal rfd for a socket */
	size_t in_max;	/* the most unconsumed input; reading pauses there */
	size_t out_max; /* the most queued output */
	/* Reads on while memory is short (mem_is_short), up to mem_is_exhausted: what it
	 * brings ends calls, and so gets memory free. Others wait from the budget on, and
	 * in the order in which they came they go on when there is room again. One whose
	 * peer has hung up counts as vital, so that its end is seen. */
	bool is_vital;
	/* Never waits for memory: it uses little, and is needed most when there is none.
	 */
	bool is_exempt;
};

struct stream_cb {
	/* New input is in the buffer. The reader peeks and consumes; what it
	 * leaves stays. May close the stream; may call stream_free. */
	void (*on_input)(void *arg);
	/* The queue became empty after it was not. May be NULL. */
	void (*on_drained)(void *arg);
	/* Reading ended (all input was offered first) or writing failed. Comes at
	 * most once for each direction; the stream stays valid. After a write error
	 * queued output is gone and stream_write returns MV_CLOSED. */
	void (*on_read_end)(void *arg, enum stream_end end);
	void (*on_write_end)(void *arg, int errnum);
};

/* Takes the descriptors (closes them on free) and makes them non-blocking
 * without touching a file description that others share: pipes and terminals
 * are opened anew through /proc/self/fd, sockets use MSG_DONTWAIT. Files are
 * written as they are. Never calls back before returning. */
struct stream *stream_new(
    struct loop *l, const struct stream_opts *o, const struct stream_cb *cb, void *arg);
/* Allowed inside callbacks; no callback comes after. Unsent output is dropped. */
void stream_free(struct stream *s);

/* Input: a pointer to all unconsumed bytes, valid until the next call. */
const char *stream_peek(const struct stream *s, size_t *n);
void stream_consume(struct stream *s, size_t n);
/* Bytes that were read from the descriptor already, before the stream was made; before
 * its first turn. MV_NOMEM: nothing happened. */
enum mv_err stream_put_back(
    struct stream *s, const char *p, size_t n) MCPVISOR_MUST_CHECK;
/* While paused nothing is read and no on_input or on_read_end comes; after it,
 * what is left is offered again. */
void stream_pause(struct stream *s, bool paused);
/* on_input again at the end of this turn, if unconsumed bytes are left: for a
 * reader that stops at its budget. */
void stream_again(struct stream *s);

/* Queues all pieces or nothing (one copy). MV_BUSY: over out_max; MV_CLOSED;
 * MV_NOMEM. Bytes leave at the end of the turn. */
enum mv_err stream_writev(
    struct stream *s, const struct iovec *iov, int n) MCPVISOR_MUST_CHECK;
size_t stream_out_pending(const struct stream *s);
/* Tries to write what is queued now. */
void stream_flush(struct stream *s);
/* Closes the writing side once the queue is empty (now: at once, dropping it). */
void stream_end_write(struct stream *s, bool now);

#endif
