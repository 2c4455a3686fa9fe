/* SPDX-License-Identifier: MIT */
/* What an upstream is made of beside itself. */
#ifndef MCPVISOR_UPSTREAM_PARTS_PRIV_H
#define MCPVISOR_UPSTREAM_PARTS_PRIV_H

#include "mcpvisor/backoff.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/upstream.h"

struct strmap;

/* The fetching of one list: at most one run under way and one asked for. */
struct lister {
	struct upstream *u;
	enum list_kind kind;
	bool running, again, unsupported;
	bool is_guess;	     /* it never came: it counts as empty */
	unsigned fails;	     /* in a row */
	struct ulist next;   /* being filled */
	struct strmap *seen; /* cursors of this run */
	struct upstream_req req;
	struct timer timer; /* pause before the next run, or end of the ttl */
	uint64_t started_ms;
};

/* One subscriptions/listen of ours at a modern upstream. */
struct mlisten {
	struct upstream *u;
	struct upstream_req req; /* in flight as long as it is open */
	bool acked;
};

#endif
