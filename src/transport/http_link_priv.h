/* SPDX-License-Identifier: MIT */
/* Shared by the parts of http_link; what each does is said in its file. */
#ifndef MCPVISOR_HTTP_LINK_PRIV_H
#define MCPVISOR_HTTP_LINK_PRIV_H

#include "mcpvisor/http_link.h"

#include "salvage_priv.h"

#include "mcpvisor/curl_loop.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/sse.h"

#define HTTP_LINK_MAGIC 0x686c6e6bu
#define HTTP_TALK_MAGIC 0x68746c6bu

/* One thing that we ask of the server and all that comes of it: answers, redirections,
 * the second message of a new session, the GETs that take up a broken stream. */
enum talk_kind { TALK_REQUEST, TALK_NOTE, TALK_STREAM, TALK_ENDPOINT, TALK_DELETE };

/* X(STATE, name) */
#define TALK_STATES(X)                                                                   \
	X(NEW, "new")	  /* nothing was sent */                                         \
	X(SENT, "sent")	  /* no head of an answer yet */                                 \
	X(BODY, "body")	  /* the head is in */                                           \
	X(DRAIN, "drain") /* the response is in: the rest may come, for a while */       \
	X(WAIT, "wait")	  /* for its time to be sent again */                            \
	X(HELD, "held")	  /* for a new session */                                        \
	X(OVER, "over")

enum talk_state {
#define X(id, name) TALK_ST_##id,
	TALK_STATES(X)
#undef X
	    TALK_ST_MAX
};

/* What the body of the answer is to us. */
enum talk_body { TALK_AS_TEXT, TALK_AS_JSON, TALK_AS_EVENTS, TALK_AS_MAX };

struct http_talk {
	unsigned magic;
	enum talk_kind kind;
	enum talk_state state;
	enum mv_err start_err;		/* why it could not be sent again */
	struct http_talk *next, **prev; /* of the link's */
	struct http_link *link;
	struct transfer *transfer;
	struct timer timer;

	/* What is sent. */
	uint64_t id;
	char *body; /* until the answer cannot ask for it again */
	size_t body_len;
	char *lines;	/* as http_message has them */
	struct buf url; /* where redirections led; empty: the link's */
	unsigned redirects, renewals;
	unsigned session_no; /* the session it was sent with */
	bool has_session;
	bool is_initialize;
	bool is_apart;	  /* as http_message has it */
	bool is_resuming; /* a request, by GET */
	char *session;	  /* the one that it ends; NULL: that of the link */

	/* The answer. */
	bool is_answered; /* a response to id has come, or a note was taken */
	bool is_plain;	  /* the text is for people */
	enum talk_body as;
	int status; /* 0: none */
	uint32_t retry_after_s;
	char content_type[64];
	char *location, *www_authenticate; /* NULL: none */
	struct buf in;			   /* JSON, or the beginning of a text */
	size_t skipped;			   /* of a text, beyond that */
	struct refused *refused;	   /* a message over the limit */

	/* Its streams. */
	struct sse_parser *events; /* NULL: none so far */
	uint64_t retry_ms;
	uint64_t opened_ms;
	unsigned tries; /* since there was an event, or a stream that lasted */
	bool has_retry;
	bool was_open;
};

struct http_link {
	unsigned magic;
	struct loop *loop;
	struct curl_loop *curl;
	struct http_link_opts o;
	struct http_link_cb cb;
	void *arg;
	bool dead;
	enum http_mode mode;
	char revision[32]; /* "": none */
	bool is_resumable;

	struct buf session;  /* empty: none */
	unsigned session_no; /* moved with each initialize, and when it is forgotten */
	bool is_lost;	     /* the server does not know it, and there is no new one */
	bool is_renewing;    /* from then on until http_link_renew */
	uint64_t doubted_ms; /* when a 400 was taken for a word on it; 0: never */

	struct http_talk *talks, **talks_tail; /* in the order of their messages */
	struct idmap *requests;		       /* by id: those that can be cancelled */
	struct http_talk *stream;	       /* NULL: none is wanted */
	bool has_no_stream;		       /* the server */
	bool stream_is_told;		       /* on_stream has come, or will */
	struct deferred stream_known;
	struct http_talk *endpoint;  /* HTTP+SSE: the stream; NULL: none */
	struct buf endpoint_url;     /* empty: not known */
	struct http_talk *late_end;  /* DELETE of a session that is not there yet */
	void (*on_ended)(void *arg); /* of the session */
	void *ended_arg;

	size_t pending;	      /* bytes of bodies that are kept */
	unsigned n_notes;     /* talks of that kind */
	struct json_msg json; /* of the message at hand */
};

/* ---- http_link.c ---- */

/* What became of the stream that was asked for is known. */
void link_tell_stream(struct http_link *k);
/* An initialize has brought a session, or is over: one that was to be ended is, now. */
void link_end_late(struct http_link *k);

/* ---- http_link_talk.c: life of a talk ---- */

struct http_talk *talk_new(struct http_link *k, enum talk_kind kind);
/* Sends, or sends again, what it has to. On failure nothing has changed but the state,
 * NEW then. */
enum mv_err talk_start(struct http_talk *x) MCPVISOR_MUST_CHECK;
/* The same; a failure becomes one of the talk, in a later turn. */
void talk_again(struct http_talk *x);
void talk_set(struct http_talk *x, enum talk_state next, const char *reason);
/* Once more after so many milliseconds. */
void talk_wait(struct http_talk *x, uint64_t ms, const char *reason);
/* Where it is sent to. NULL: no memory. */
const char *talk_url(struct http_talk *x);
/* Its transfer is ended, if it has one. */
void talk_hang_up(struct http_talk *x);
/* It is over, without a word. */
void talk_end(struct http_talk *x);
/* It is over, and this is why: its kind's callback. text is copied; NULL: what err says.
 */
void talk_fail(struct http_talk *x, enum mv_err err, const char *text);
/* The same, with a text of printf's form. */
void talk_failf(struct http_talk *x, enum mv_err err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* It is over as it should be. */
void talk_finish(struct http_talk *x);
/* Bytes that a second sending would need are not needed any more. */
void talk_drop_body(struct http_talk *x);

/* A response may be followed by the end of its stream, so that the connection can be used
 * again; by no more. */
#define DRAIN_MS 2000

static inline bool
talk_is_over(const struct http_talk *x)
{
	return x->state == TALK_ST_OVER;
}

/* Whether it asks for a stream by GET. */
static inline bool
talk_is_get(const struct http_talk *x)
{
	return x->kind == TALK_STREAM || x->kind == TALK_ENDPOINT || x->is_resuming;
}

/* ---- http_link_answer.c: heads and ends of answers ---- */

void talk_on_head(struct http_talk *x, const struct transfer_head *h);
/* The transfer has ended. */
void talk_on_end(struct http_talk *x, enum mv_err err, const char *text);
/* The answer is not what was hoped for. */
void talk_refuse(struct http_talk *x, enum mv_err err);

/* ---- http_link_body.c: bodies, and the messages in them ---- */

void talk_feed(struct http_talk *x, const char *p, size_t n);
/* The whole body of a JSON answer is in. is_failure: of a status that is no success; what
 * is no message is no news then. */
void talk_end_json(struct http_talk *x, bool is_failure);
void talk_forget_answer(struct http_talk *x);
struct sse_parser *talk_parser_new(struct http_talk *x); /* ends with mem_free */

/* ---- http_link_stream.c: streams that are taken up again ---- */

/* The stream of a talk begins. */
void talk_begin_events(struct http_talk *x);
/* An event has come. */
void talk_note_event(struct http_talk *x);
/* The stream has ended, well or not. */
void talk_end_events(struct http_talk *x, enum mv_err err, const char *text);
/* The id of the event after which the server is asked to go on; "": from anywhere. */
const char *talk_last_id(struct http_talk *x);
/* Another try later. False: it is no stream that is taken up again, or there were too
 * many. */
bool talk_retry(struct http_talk *x);

#endif
