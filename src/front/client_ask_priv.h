/* SPDX-License-Identifier: MIT */
/* How clients are asked: requests to legacy ones, results of modern ones' calls. */
#ifndef MCPVISOR_CLIENT_ASK_PRIV_H
#define MCPVISOR_CLIENT_ASK_PRIV_H

#include "client_priv.h"

/* One request of ours to a legacy client. */
struct ask_what {
	enum method method;
	struct jtext params; /* absent: none */
	struct jtext first;  /* members that go in at the front of params, with a comma at
				their end */
	uint32_t limit_ms;
};
struct ask_ops {
	/* A response, of either kind; the ask is over. */
	void (*on_answer)(void *arg, const struct link_msg *m);
	/* There will be none, for the reason given; the ask is over. */
	void (*on_lost)(void *arg, enum wording why);
	void (*on_progress)(void *arg, const struct link_msg *m); /* may be NULL */
};
struct ask {
	struct ask *next, **prev;
	struct client *c;
	struct request *r; /* of whose call it is; NULL: none is known, or it is over */
	uint64_t id;
	uint64_t due_ms;
	uint32_t limit_ms;
	bool is_sent;
	struct buf unsent; /* its message, until it has left */
	const struct ask_ops *ops;
	void *arg;
};

/* asks.c */
/* Whether its session declared what m with these params needs. */
bool client_can_be_asked(const struct client *c, enum method m, struct jtext params);
/* Asks. ops hears of the one end, unless ask_drop comes first; never before returning.
 * r: of whose call it is a part, or NULL. NULL: it cannot be asked now. */
struct ask *client_ask(struct client *c, struct request *r, const struct ask_what *what,
    const struct ask_ops *ops, void *arg);
/* Nobody waits for its answer any more: the client is told. */
void ask_drop(struct ask *a);
/* Passes q on, of r's call or of none that is known; or refuses it. */
void client_take_question(struct client *c, struct request *r, struct question *q);
/* False: it answers nothing that was asked. */
bool client_on_response(struct client *c, const struct link_msg *m);
void client_on_progress(struct client *c, const struct link_msg *m);
/* r is over: its asks go on without it, or (lose) end as well. */
void request_lose_asks(struct request *r, bool lose);
void client_lose_asks(struct client *c);
/* What found no stream goes out now. */
void client_asks_resend(struct client *c);
void client_on_ask_timer(void *arg);
/* The client has got the answer to its initialize: it may be asked. */
void client_note_greeted(struct client *c);
/* o, a legacy upstream's error, sends r's legacy client to URLs: it hears when those are
 * done with. */
void request_note_elicitations(struct request *r, const struct outcome *o);
/* How long an ask waits for a stream. */
#define ASK_STREAM_MS 30000

/* parked.c */
/* q is of r's call: its client is asked, and comes back with the answer. */
void parked_take_question(struct request *r, struct question *q);
/* Whether fresh is the return to a call that is parked: it goes on under fresh's name, or
 * fresh has been answered. */
bool parked_resume(struct request *fresh, const struct link_msg *m);
/* The end of a detached request, for the one who comes back. */
void parked_keep_end(
    struct request *r, int status, const char *member, const struct iovec *body, int n);
void parked_free(struct parked *p); /* NULL is allowed */
void client_on_question(void *arg, struct upstream *u, struct question *q);

/* parked_handle.c */
#define PARKED_NONCE_BYTES 16
/* Notes what a handle given out for r, which m is, will be good for. */
void parked_bind(struct request *r, const struct link_msg *m);
/* Appends one for r, which is bound; its number goes into nonce. */
void parked_put_handle(
    const struct request *r, uint32_t ms, unsigned char *nonce, struct buf *out);
/* Whether text is a handle that was given out for a request like r, which is bound, to
 * the same; its number goes into nonce. */
bool parked_read_handle(const struct request *r, struct jtext text, unsigned char *nonce);

/* handle_input.c */
/* o, an input_required result, is the end of r's call for now: asks r's client. */
void input_begin(struct request *r, const struct outcome *o);
void input_free(struct input *in); /* NULL is allowed */
/* r's call ends without an answer for this reason. */
void request_fail_call(struct request *r, enum mv_err err, const char *detail);

#endif
