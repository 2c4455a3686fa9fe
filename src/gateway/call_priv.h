/* SPDX-License-Identifier: MIT */
/* What the files of a call share. */
#ifndef MCPVISOR_CALL_PRIV_H
#define MCPVISOR_CALL_PRIV_H

#include "mcpvisor/call.h"
#include "mcpvisor/identity.h"

/* call_route.c */
/* Finds c->u, and c->route for what goes by a name; fills in req->target. The errors are
 * those of call_start. */
enum mv_err call_route(struct call *c, struct upstream_call *req) MCPVISOR_MUST_CHECK;
/* Nobody has what req names: whose it would be by its name, among those that have not
 * told what they have. Not a route. NULL: nobody's. */
struct upstream *call_suspect(struct call *c, const struct upstream_call *req);

/* call.c: the end of c, whose outcome has been looked at. */
/* Sets why; returns MV_PARAMS. */
enum mv_err call_refuse(struct call *c, enum wording w, struct jtext value);
void call_finish(struct call *c, const struct outcome *o);

/* call_answer.c */
/* The definition of the tool by its upstream; absent: there is none now. */
struct jtext call_definition(const struct call *c);
/* o is c's result, of a tool: sets its label and answer, and counts them. */
void call_judge(struct call *c, struct outcome *o);

/* call_identity.c */
/* c is about to be sent to c->u. True: it is answered from what is known already, by
 * on_done, not before this returns. */
bool call_ask_identity(struct call *c, const struct upstream_call *req);
/* c, which asks, has been sent to c->u. */
void call_note_sent(struct call *c);
/* Its client is asked something meanwhile: its answer is none for another time. */
void call_note_asked(struct call *c);
/* What o, which is labelled, says of who c's upstream acts for. NONE: it was not asked.
 */
enum identity_verdict call_note_identity(struct call *c, const struct outcome *o);
/* c ended otherwise. */
void call_note_failure(struct call *c, const struct outcome *o);
/* Forgets what it keeps of c, and an answer that was still to come. True: there was one.
 */
bool call_forget_identity(struct call *c);

/* Whether call_note_identity has nothing to note of a result. */
static inline bool
call_is_silent(const struct call *c, const struct label *l)
{
	return c->identity == NULL && l->code[0] == '\0' &&
	       upstream_refusals(c->u) == c->refusals;
}

#endif
