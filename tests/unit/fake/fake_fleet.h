/* SPDX-License-Identifier: MIT */
/* A gateway over fake upstreams, on the fake loop. */
#ifndef FAKE_FLEET_H
#define FAKE_FLEET_H

#include "mcpvisor/gateway.h"

#include "fake/fake_loop.h"
#include "fake/fake_upstream.h"

#define FLEET_MAX     4
#define FLEET_WAIT_MS 5000

struct fleet {
	struct loop *loop;
	struct gateway *g;
	struct upstream_conf *confs[FLEET_MAX];
	struct upstream *u[FLEET_MAX]; /* alpha, beta, gamma, delta */
	size_t n;
};

/* n upstreams; nothing has started. prefixes NULL: the default for all. */
struct fleet *fleet_new(size_t n, const char *const *prefixes);
/* The same, started, ready and settled, with empty lists and all capabilities. */
struct fleet *fleet_running(size_t n);
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
