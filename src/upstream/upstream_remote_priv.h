/* SPDX-License-Identifier: MIT */
/* What the files of a remote upstream share. */
#ifndef MCPVISOR_UPSTREAM_REMOTE_PRIV_H
#define MCPVISOR_UPSTREAM_REMOTE_PRIV_H

#include "upstream_priv.h"

#include "mcpvisor/backoff.h"
#include "mcpvisor/http_link.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/loop.h"

#define REMOTE_MAGIC 0x72656d6fu

/* X(STATE, name) */
#define REMOTE_STATES(X)                                                                 \
	X(DOWN, "down")	      /* not wanted */                                           \
	X(UP, "up")	      /* spoken to, as long as that works */                     \
	X(ENDING, "ending")   /* what is left of it ends */                              \
	X(BACKOFF, "backoff") /* waits for its next start */                             \
	X(FAILED, "failed")   /* budget spent: parked */                                 \
	X(REFUSED, "refused") /* our credentials are: parked until they change */

enum remote_state {
#define X(id, name) REMOTE_ST_##id,
	REMOTE_STATES(X)
#undef X
	    REMOTE_ST_MAX
};

/* X(EVENT, name) */
#define REMOTE_EVENTS(X)                                                                 \
	X(START, "start")                                                                \
	X(STOP, "stop")                                                                  \
	X(RESTART, "restart")                                                            \
	X(DIE, "die") /* for the reason in end */                                        \
	X(OVER, "over")                                                                  \
	X(TIMER, "timer")

enum remote_event {
#define X(id, name) REMOTE_EV_##id,
	REMOTE_EVENTS(X)
#undef X
	    REMOTE_EV_MAX
};

struct remote {
	unsigned magic;
	enum remote_state state;
	struct upstream *u;
	struct curl_loop *curl;
	struct http_link *link; /* in UP and ENDING */
	struct child_ladder ladder;
	uint32_t least_ms; /* the server asks to be left alone so long */
	struct backoff backoff;
	struct child_end end;
	struct timer timer;	   /* in BACKOFF and REFUSED */
	struct timer stream_timer; /* while opening */
	struct deferred over;
	struct deferred resend; /* of calls that wait for a new list */
	uint64_t resume_ms;	/* end of BACKOFF */
	uint64_t ready_ms;	/* of this life; 0: it never was */
	uint64_t doubts_ms;	/* when its era was doubted last */
	uint64_t flipped_ms;	/* when a legacy one seemed modern, in vain; 0: never */
	uint64_t lost_ms;	/* when it lost a session last */
	unsigned n_lost;	/* that it lost in this life, one soon after the other */
	uint64_t init_id; /* of the initialize that waits for the endpoint; 0: none */
	struct buf init;  /* that */
	/* Credentials, by hash of the headers. */
	uint64_t first_hash;   /* sent first in this life */
	uint64_t sent_hash;    /* sent last; 0: they could not be had */
	uint64_t refused_hash; /* in REFUSED */
	/* Header lines of a message */
	struct buf lines, name;
	struct strmap *annotated; /* names of tools that ask for such: index + 1 */
	uint64_t index_hash;	  /* of the list that annotated is of */
	uint32_t index_n;
	enum http_mode mode;
	bool wanted;	   /* up; apart from what is */
	bool has_endpoint; /* HTTP+SSE: messages can be sent */
	bool greeting;	   /* notifications/initialized is under way */
	bool opening;	   /* then the stream of what comes unasked */
	bool has_sent;	   /* first_hash is set */
	bool is_annotated; /* the call sent last has Mcp-Param-* headers */
	bool has_index;
	char where[280];      /* host and port */
	char refusal[256];    /* why it does not speak Streamable HTTP */
	char no_headers[512]; /* why they could not be had */
};

/* upstream_remote.c */
void remote_dispatch(struct remote *rm, enum remote_event ev);
/* It is of no use any more, and this is why. */
void remote_die(struct remote *rm, enum mv_err err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool
remote_is_up(const struct remote *rm)
{
	return rm->state == REMOTE_ST_UP;
}

/* upstream_remote_link.c: what the server answers, and what that means. */
void remote_open(struct remote *rm); /* makes the link */
void remote_put_opts(const struct remote *rm, struct http_link_opts *o);
/* Whether our credentials are others than those that were refused. */
bool remote_has_other_credentials(struct remote *rm);

/* Its words, without the place if they begin with it. */
const char *remote_words(const struct remote *rm, const struct http_failure *f);

/* upstream_remote_era.c: which era and transport it speaks. */
void remote_discover_failed(struct remote *rm, const struct http_failure *f);
void remote_initialize_failed(struct remote *rm, const struct http_failure *f);
void remote_on_endpoint(struct remote *rm, const struct http_failure *f);
void remote_greet(struct remote *rm);
/* The server has taken that we are there. */
void remote_greeted(struct remote *rm);
/* Its stream is open, or there is none, or it has had its time. */
void remote_opened(struct remote *rm);
void remote_session_lost(struct remote *rm);
/* An answer does not fit the era it is thought to speak: asks again. */
void remote_doubt(struct remote *rm);
/* It does not speak that era for certain. */
void remote_flip(struct remote *rm);
/* A legacy one says what only a modern one would. False: so it did not long ago, and was
 * none after all. */
bool remote_flip_to_modern(struct remote *rm);
/* A status by which a server may say that it does not know what was asked. */
bool remote_is_refusal(const struct http_failure *f);

/* upstream_remote_headers.c: headers that mirror bodies. */
/* Fills lines for a message of a modern request. */
enum mv_err remote_put_lines(struct remote *rm, const struct upstream_message *what,
    const struct iovec *iov, int n) MCPVISOR_MUST_CHECK;
void remote_on_sent(
    struct upstream *u, struct upstream_req *r, const struct upstream_call *c);
bool remote_on_error(struct upstream *u, struct upstream_req *r, const struct outcome *o);
void remote_on_list(struct upstream *u, enum list_kind kind, struct ulist *l);
void remote_on_listed(struct upstream *u, enum list_kind kind);

/* upstream_challenge.c: appends what a WWW-Authenticate header asks for, for people. */
void challenge_put(struct buf *out, const char *header);

#endif
