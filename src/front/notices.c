/* SPDX-License-Identifier: MIT */
/*
 * What a client hears without having asked in this moment: changed lists, log
 * messages.
 *
 * Driven by: the gateway.
 * Invariants: a modern request that did not ask for log messages never causes one to
 * be sent.
 */
#include "client_ask_priv.h"
#include "client_priv.h"
#include "client_task_priv.h"

#include "mcpvisor/metrics.h"

#include <stdio.h>

static void
session_send_changed(struct client *c, unsigned kinds)
{
	enum method sent = METHOD_UNKNOWN;
	char text[128];
	struct iovec iov = {text, 0};
	enum mv_err err;

	/* What could not be said before is still to be said. */
	kinds |= c->missed;
	c->missed = 0;
	for (unsigned k = 0; k < LIST_MAX; k++) {
		enum method m = list_changed_method((enum list_kind)k);

		/* Kinds that share a notification are neighbours in the table. */
		if ((kinds & (1u << k)) == 0 || m == sent)
			continue;
		sent = m;
		iov.iov_len = (size_t)snprintf(text, sizeof(text),
		    "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"}", method_name(m));
		err = c->cb->send(c->arg, &iov, 1);
		if (err != MV_OK)
			c->missed |= kinds; /* said with the next, or by a new channel */
		else if (!c->observer.has_stream)
			c->kept |= kinds;
	}
}

void
client_channel_opened(struct client *c)
{
	gateway_set_stream(c->g, &c->observer, true);
	c->kept = 0;
	session_send_changed(c, 0);
	client_asks_resend(c);
}

void
client_channel_lost(struct client *c)
{
	c->missed |= c->kept;
	c->kept = 0;
}

void
client_channel_closed(struct client *c)
{
	gateway_set_stream(c->g, &c->observer, false);
}

void
client_on_changed(void *arg, unsigned kinds)
{
	struct client *c = arg;

	MCPVISOR_ASSERT(c->magic == CLIENT_MAGIC);
	if (c->session.open)
		session_send_changed(c, kinds);
	listen_on_changed(c, kinds);
}

void
client_on_elicited(void *arg, struct upstream *u, const struct link_msg *m)
{
	struct client *c = arg;
	struct iovec iov = {(void *)(uintptr_t)m->base, m->len};

	(void)u;
	/* The revision that it came with went away with the sessions. */
	if (c->session.open && c->session.revision == REVISION_2025_11_25)
		client_send(c, &iov, 1);
	else
		metrics_add(METRIC_NOTICES_DROPPED, 1);
}

struct log_wish {
	enum mcp_level level; /* of the message */
	bool any, all;
};

static bool
log_wish_of(struct upstream_req *r, void *arg)
{
	struct log_wish *w = arg;

	w->any = true;
	w->all = w->all && r->level != MCP_LV_MAX && r->level <= w->level;
	return w->all;
}

void
client_on_log(void *arg, struct upstream *u, const struct link_msg *m)
{
	struct client *c = arg;
	struct log_wish w = {
	    .level = mcp_level_parse(jtext_of(m->base, m->json->slot[JSON_P_LEVEL])),
	    .all = true};
	struct json_edits ed;
	struct json_span whole = {0, (uint32_t)m->len};
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	bool wanted;

	json_edits_init(&ed);
	MCPVISOR_ASSERT(c->magic == CLIENT_MAGIC);
	if (c->is_shared) {
		wanted = false; /* its requests know nothing of each other */
	} else if (c->session.open) {
		/* A session that never set a level leaves it to the server. */
		wanted = c->session.level == MCP_LV_MAX || w.level >= c->session.level;
	} else {
		/* It may belong to any call in flight there: all of them must want it. */
		upstream_each_req(u, log_wish_of, &w);
		wanted = w.any && w.all;
	}
	if (!wanted || w.level == MCP_LV_MAX) {
		metrics_add(METRIC_NOTICES_DROPPED, 1);
		return;
	}
	task_edit_notice(c, u, m, &ed);
	client_send(c, iov, json_edit_pieces(m->base, whole, &ed, iov));
}
