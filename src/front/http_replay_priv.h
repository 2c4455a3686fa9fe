/* SPDX-License-Identifier: MIT */
/* Event streams of legacy sessions whose events can be asked for again. */
#ifndef MCPVISOR_HTTP_REPLAY_PRIV_H
#define MCPVISOR_HTTP_REPLAY_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "mcpvisor/err.h"
#include "mcpvisor/http_parse.h"
#include "mcpvisor/json.h"

struct http_call;
struct http_replay;
struct http_session;

#define TRACK_MAGIC 0x7472636bu

struct http_event {
	struct http_event *next;
	uint64_t n;
	size_t len;
	char data[];
};

/* One stream, over all the connections that carry it one after the other. */
struct http_track {
	unsigned magic;
	struct http_replay *of;
	struct http_track *next, **prev; /* of the session's, newest first */
	struct http_call *carrier;	 /* NULL: its client is away */
	struct http_event *first, **tail;
	uint32_t number;
	uint64_t last;	 /* number of the event that was made last; 0: none yet */
	uint64_t handed; /* up to here they went to a connection */
	uint64_t due_ms; /* while nobody carries it: then it goes */
	bool is_notices; /* what belongs to no request, by GET */
	bool is_over;	 /* nothing more will come */
	bool is_settled; /* ... and all of it was taken by a connection that stood */
};

/* http_event_id.c */
#define HTTP_EVENT_ID_BYTES 64
struct http_event_id {
	bool is_notices;
	uint32_t epoch, number;
	uint64_t n;
};
void http_event_id_put(const struct http_event_id *id, char out[HTTP_EVENT_ID_BYTES]);
/* False: it is none that we write. */
bool http_event_id_parse(struct http_text t, struct http_event_id *id);

/* http_replay.c */
/* Makes k's stream one that can be taken up again, where its session's revision knows
 * that; else k->track stays NULL. */
void http_track_begin(struct http_call *k);
/* The event that has nothing but the id of where k's stream goes on, if there are such.
 */
void http_track_prime(struct http_call *k);
/* One message to the client, now or when it comes back. MV_OK: sent or kept. */
enum mv_err http_track_send(
    struct http_track *t, const struct iovec *iov, int n) MCPVISOR_MUST_CHECK;
/* The last one, with which t ends. id: of its request, absent for a batch. */
void http_track_answer(
    struct http_track *t, struct jtext id, const struct iovec *iov, int n);
/* Nothing more will come. */
void http_track_end(struct http_track *t);
/* k's exchange is over. */
void http_track_leave(struct http_call *k, bool gone);
/* What a Last-Event-ID names. False: a request's stream that is over, with nothing left
 * for who has that event. *t NULL: nothing that is known. */
bool http_track_find(
    struct http_session *s, struct http_text id, struct http_track **t, uint64_t *after);
/* k carries t from now on, and brings what came after that event. */
void http_track_resume(struct http_call *k, struct http_track *t, uint64_t after);

/* The track that takes notices while no stream is open, made if there is none yet; NULL:
 * none does. */
struct http_track *http_replay_away(struct http_session *s);
/* k, a stream for notices, has been opened: what waited for it follows. */
void http_replay_return(struct http_call *k);
/* Whether an answer waits for its client to come back. Drops what has waited long enough.
 */
bool http_replay_sweep(struct http_session *s);
void http_replay_free(struct http_session *s);

/* http_get.c */
/* Opens the stream that a GET in k's session asks for. */
void http_session_get(struct http_call *k, const struct http_head *h);
/* k, a stream for notices, is over. */
void http_session_leave(struct http_call *k);

#endif
