/* SPDX-License-Identifier: MIT */
/* A gateway over fake upstreams, on the fake loop. */
#ifndef FAKE_FLEET_H
#define FAKE_FLEET_H

#include "mcpvisor/gateway.h"

#include "fake/fake_loop.h"
#include "fake/fake_upstream.h"

#define FLEET_MAX     4
#define FLEET_WAIT_MS 5000

/* What one conf would hold: freed when the gateway says that nothing points to it, so
 * that a pointer kept too long is found. */
struct fleet_conf {
	struct upstream_conf *confs[FLEET_MAX];
	size_t n;
	struct profile_conf *profiles[FLEET_MAX];
	size_t n_profiles;
	bool one_client, can_ask; /* of struct gateway_opts */
	struct fleet_conf *next;
};

struct fleet {
	struct loop *loop;
	struct gateway *g;
	struct fleet_conf *conf; /* the one in use */
	struct fleet_conf *old;	 /* those before it, oldest first */
	struct upstream_conf **confs;
	struct upstream *u[FLEET_MAX]; /* alpha, beta, gamma, delta */
	size_t n;
	/* What the gateway called. */
	unsigned made, memories, released;
	struct upstream *last_made, *last_memory;
	void (*on_made)(
	    struct fleet *f, struct upstream *u); /* the test's; may be NULL */
};

/* alpha and so on, n of them. Given to fleet_from or fleet_apply. */
struct fleet_conf *fleet_conf_new(size_t n);
/* Puts a view behind the others that shows the upstreams that fit one of the patterns,
 * which are separated by spaces. */
struct profile_conf *fleet_conf_profile(
    struct fleet_conf *c, const char *name, const char *upstreams);
/* An upstream's conf behind the others, e.g. one that is not of the four. */
struct upstream_conf *fleet_conf_add(struct fleet_conf *c, const char *name);

/* Takes c. Nothing has started. */
struct fleet *fleet_from(struct fleet_conf *c);
/* n upstreams; nothing has started. prefixes NULL: the default for all. */
struct fleet *fleet_new(size_t n, const char *const *prefixes);
/* gateway_apply; takes c. f->u is then what there is. */
void fleet_apply(struct fleet *f, struct fleet_conf *c, uint32_t drain_ms);
/* f->u anew from the gateway. */
void fleet_look(struct fleet *f);
/* The same, started, ready and settled, with empty lists and all capabilities. */
struct fleet *fleet_running(size_t n);
struct fleet *fleet_running_from(struct fleet_conf *c);
/* Running, with alpha's tools a, b.c and d (as "\u0064") and beta's tool a; a prompt a
 * each; alpha's file:///a and db://{+any}; beta's file:///b, a twin of file:///a and
 * db://users/{id}. */
struct fleet *fleet_full(void);
void fleet_free(struct fleet *f);
/* Makes u[i] ready, with empty lists where it has none, and settled. */
void fleet_ready(struct fleet *f, size_t i);
/* Publishes a list of definitions {"name": ...} (or the key of that kind) of u[i]; ends
 * with NULL. */
void fleet_list(struct fleet *f, size_t i, enum list_kind kind, ...);

static inline struct jtext
text_of(const char *s)
{
	struct jtext t = {s, __builtin_strlen(s)};

	return t;
}

/* Scans a message that a client might send. json is the caller's. */
struct link_msg fleet_scan(const char *text, struct json_msg *json);

/* ck_assert_str_eq for what has a length. */
void assert_text(struct jtext t, const char *want);

#endif
