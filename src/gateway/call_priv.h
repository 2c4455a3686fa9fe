/* SPDX-License-Identifier: MIT */
/* What the files of a call share. */
#ifndef MCPVISOR_CALL_PRIV_H
#define MCPVISOR_CALL_PRIV_H

#include "mcpvisor/call.h"

/* call_route.c */
/* Finds c->u, and c->route for what goes by a name; fills in req->target. The errors are
 * those of call_start. */
enum mv_err call_route(struct call *c, struct upstream_call *req) MCPVISOR_MUST_CHECK;
/* Nobody has what req names: whose it would be by its name, among those that have not
 * told what they have. Not a route. NULL: nobody's. */
struct upstream *call_suspect(struct call *c, const struct upstream_call *req);

#endif
