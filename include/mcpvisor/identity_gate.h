/* SPDX-License-Identifier: MIT */
/*
 * What is known of who the upstreams take a client for: answers of identity tools that
 * are kept for a while, each for one principal alone, and whether an upstream knew
 * anybody. No timers: ages are looked at when something is asked for.
 *
 * A principal is whose credentials a call is made with: IDENTITY_SHARED where all clients
 * have the same, else text that stands for one client and no other. NULL: nobody can
 * tell. Then nothing is kept and no state is noted.
 */
#ifndef MCPVISOR_IDENTITY_GATE_H
#define MCPVISOR_IDENTITY_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/identity.h"
#include "mcpvisor/json.h"

#define IDENTITY_SHARED "shared"

struct identity_gate;

struct identity_gate *identity_gate_new(void);
void identity_gate_free(struct identity_gate *g); /* NULL is allowed */

/* What was asked, of whom and for whom; everything is borrowed. Equal bytes are equal
 * questions: spelled otherwise it is another one. */
struct identity_key {
	const char *principal;
	const char *upstream;
	uint64_t generation; /* of the credentials, when the call was sent */
	bool is_modern;	     /* the client's era: its upstream may have looked at that */
	struct jtext tool;   /* as the upstream calls it */
	struct jtext arguments; /* as they came; absent: none */
};

/* What came of it. */
struct identity_answer {
	enum identity_verdict verdict;
	bool is_partial;     /* a part of it is missing (label.h) */
	bool is_retry;	     /* the call carried inputResponses or requestState */
	uint64_t generation; /* of the credentials now */
	uint64_t max_bytes;  /* of a result that is kept; 0: none is */
	struct jtext result; /* as it is sent to the client; copied */
	uint64_t now_ms;
};
/* For each answer to an identity tool: notes what it says of the principal; drops what
 * was kept for the key, and keeps this one instead if it may. True: it is kept. */
bool identity_gate_answer(struct identity_gate *g, const struct identity_key *k,
    const struct identity_answer *a);

/* The result that is kept, and its age; absent: none, or none that is younger than
 * max_age_ms. Borrowed until the next call that changes g. */
struct jtext identity_gate_get(struct identity_gate *g, const struct identity_key *k,
    uint64_t now_ms, uint64_t max_age_ms, uint64_t *age_ms);

/* Any call of that principal was refused for its credentials (HTTP 401 or 403, or an
 * UNAUTHENTICATED): drops what is kept for it there; it is unresolved. */
void identity_gate_refused(struct identity_gate *g, const char *principal,
    const char *upstream, uint64_t now_ms);

/* Drops answers that are kept: of an upstream that restarted, reconnected, got new
 * credentials or has other tools; of a principal; NULL: of any. States stay. */
void identity_gate_drop(
    struct identity_gate *g, const char *principal, const char *upstream);
/* The same with the states: for what is gone, or configured otherwise. */
void identity_gate_forget(
    struct identity_gate *g, const char *principal, const char *upstream);

struct identity_state {
	enum identity_verdict is; /* UNKNOWN, RESOLVED or UNRESOLVED */
	uint64_t since_ms;	  /* of is */
	uint64_t n_unresolved;	  /* answers since it was resolved */
	uint64_t error_ms;	  /* of the last answer that was an error; 0: none was */
};
/* False: nothing was ever noted, and *s is UNKNOWN. */
bool identity_gate_state(const struct identity_gate *g, const char *principal,
    const char *upstream, struct identity_state *s);

/* Principals of an upstream in each state; NULL: of all. */
struct identity_counts {
	uint32_t unknown, resolved, unresolved;
};
void identity_gate_count(
    const struct identity_gate *g, const char *upstream, struct identity_counts *c);
/* Answers that are kept, and their bytes with all that belongs to them. */
size_t identity_gate_entries(const struct identity_gate *g, size_t *bytes);

#endif
