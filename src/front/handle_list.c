/* SPDX-License-Identifier: MIT */
/*
 * The four list methods: the merged array as one page.
 *
 * Invariants: a list waits for upstreams that are starting, bounded; one page has
 * everything, so there is no cursor that we could have handed out.
 * Spec: server/utilities/pagination, server/utilities/caching.
 */
#include "client_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/param_headers.h"

#include <stdio.h>
#include <string.h>

/* Over HTTP a client of this revision must refuse a tool whose headers it could not
 * form: better to leave it out here, for that client alone. */
static struct jtext
list_without_unusable(struct request *r, struct jtext body)
{
	static const char mark[] = "x-mcp-header";
	struct buf *out = &r->c->scratch;
	struct json_iter it;
	struct jtext def;

	if (memmem(body.p, body.n, mark, sizeof(mark) - 1) == NULL)
		return body;
	buf_reset(out);
	buf_add_char(out, '[');
	json_iter_init(&it, body);
	while (json_next_element(&it, &def)) {
		const char *fault = param_headers_check(def, NULL);
		struct jtext name = json_member(def, "name");

		if (fault != NULL) {
			LOG_LIMITED(LOG_LV_WARNING, "list", "tool left out",
			    "name=%s why=%s", LOG_ESC(name.p, name.n),
			    LOG_ESC(fault, strlen(fault)));
			continue;
		}
		if (out->len > 1)
			buf_add_char(out, ',');
		json_put(out, def);
	}
	buf_add_char(out, ']');
	return out->err == MV_OK ? (struct jtext){out->data, out->len} : body;
}

static void
list_reply(void *arg)
{
	struct request *r = arg;
	struct gateway *g = r->c->g;
	enum list_kind kind = list_kind_of(r->method);
	struct gateway_list l = gateway_list(g, r->c->observer.view, kind);
	struct iovec iov[3];
	char head[256], tail[96];
	int n;

	if (kind == LIST_TOOLS && r->era->modern && r->port != NULL)
		l.body = list_without_unusable(r, l.body);
	n = snprintf(
	    head, sizeof(head), "{%s\"%s\":", r->era->result_members, list_member(kind));
	iov[0] = (struct iovec){head, (size_t)n};
	iov[1] = (struct iovec){(void *)(uintptr_t)l.body.p, l.body.n};
	if (r->era->modern)
		n = snprintf(tail, sizeof(tail), ",\"ttlMs\":%llu,\"cacheScope\":\"%s\"}",
		    (unsigned long long)l.ttl_ms, l.is_private ? "private" : "public");
	else
		n = snprintf(tail, sizeof(tail), "}");
	iov[2] = (struct iovec){tail, (size_t)n};
	request_reply(r, "result", iov, 3);
}

void
handle_list(struct request *r, const struct link_msg *m)
{
	struct jtext cursor = jtext_of(m->base, m->json->slot[JSON_P_CURSOR]);

	if (cursor.n != 0 && jtext_type(cursor) != 'n') {
		request_fail(r, WORDING_CURSOR_ONE_PAGE, cursor);
		return;
	}
	r->waiter.fn = list_reply;
	r->waiter.arg = r;
	if (!gateway_wait(r->c->g, &r->waiter))
		list_reply(r);
}
