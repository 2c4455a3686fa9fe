/* SPDX-License-Identifier: MIT */
/*
 * Who wants to hear of a resource: many subscribers, one watch at the owner.
 */
#ifndef MCPVISOR_SUBSCRIPTION_H
#define MCPVISOR_SUBSCRIPTION_H

#include "mcpvisor/gateway.h"

struct subscription;

/* One client's wish about one URI; a member of its owner, who sets the first part. */
struct subscriber {
	/* The owner's answer, o NULL for yes; once. After a no it is removed. May come
	 * before subscription_add returns. */
	void (*on_settled)(void *arg, const struct outcome *o);
	void (*on_updated)(void *arg, const struct link_msg *m);
	void *arg;
	struct subscription *sub;
	struct subscriber *next, **prev;
	bool settled;
};

/* uri is a JSON string, copied. MV_NOT_FOUND, MV_UNSUPPORTED, MV_TOO_LONG, or why the
 * owner cannot take it: then nothing happened. */
enum mv_err subscription_add(
    struct gateway *g, struct jtext uri, struct subscriber *s) MCPVISOR_MUST_CHECK;
void subscription_remove(struct subscriber *s); /* fine when not added */

#endif
