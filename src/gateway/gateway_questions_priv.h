/* SPDX-License-Identifier: MIT */
/* Questions of upstreams, inside the gateway. */
#ifndef MCPVISOR_GATEWAY_QUESTIONS_PRIV_H
#define MCPVISOR_GATEWAY_QUESTIONS_PRIV_H

#include "gateway_priv.h"

/* gateway_questions.c */
void gateway_questions_init(struct gateway *g);
void gateway_questions_fini(struct gateway *g);
/* Tells m's upstream, before it starts, what its client can do, if that is known. */
void member_declare(struct member *m);
/* The one client that m is for, whatever is in flight; NULL: there are several. */
struct gateway_observer *member_sole_client(const struct member *m);
/* What m's upstream says may be about a call that nobody waits for any more. */
bool member_may_be_late(const struct member *m, const struct gateway_observer *who);
/* Whether whoever can be asked caps needs an instance of u of its own. */
bool gateway_needs_own(const struct gateway *g, const struct upstream *u, unsigned caps);
/* by: the request on whose stream q came; NULL: that is not known. */
void gateway_on_question(struct member *m, struct upstream_req *by, struct question *q);
/* o is gone. */
void gateway_questions_leave(struct gateway *g, const struct gateway_observer *o);

/* gateway_elicitations.c */
void elicitations_init(struct gateway *g);
void elicitations_fini(struct gateway *g);
/* notifications/elicitation/complete of m's upstream. */
void gateway_on_elicited(struct member *m, const struct link_msg *msg);
/* o is gone. */
void elicitations_leave(struct gateway *g, const struct gateway_observer *o);

#endif
