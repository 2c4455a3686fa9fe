/* SPDX-License-Identifier: MIT */
/*
 * Requests that nobody waits for any more.
 *
 * Owns: nothing.
 * Driven by: clients that cancel, time limits.
 * Invariants: the upstream hears of it with its own id, once; or sees it, where the
 * stream of the request is closed; initialize and server/discover are never cancelled.
 */
#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"

#define PIECES_MAX (2 * JSON_EDITS_MAX + 1)

static void
call_send_cancelled(struct upstream *u, uint64_t id, const struct link_msg *cancel)
{
	struct json_edits ed;
	struct iovec iov[PIECES_MAX];
	struct json_span at;
	struct buf b, num;
	int n;

	json_edits_init(&ed);
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
			"\"params\":");
	buf_init(&num, 32);
	buf_add_u64(&num, id);
	/* The client's words go along unless they carry its own _meta. */
	if (cancel != NULL && cancel->json->slot[JSON_P_REQUEST_ID].len != 0 &&
	    cancel->json->slot[JSON_P_META].len == 0) {
		at = cancel->json->slot[JSON_P_REQUEST_ID];
		json_edit_add(&ed, at.off, at.len, num.data, num.len);
		n = json_edit_pieces(
		    cancel->base, cancel->json->slot[JSON_PARAMS], &ed, iov);
		for (int i = 0; i < n; i++)
			buf_add(&b, iov[i].iov_base, iov[i].iov_len);
	} else {
		buf_add_str(&b, "{\"requestId\":");
		buf_add(&b, num.data, num.len);
		buf_add_char(&b, '}');
	}
	buf_add_char(&b, '}');
	if (num.err == MV_OK)
		(void)upstream_write(u, &b);
	buf_fini(&num);
	buf_fini(&b);
}

void
upstream_withdraw(struct upstream_req *r, const struct link_msg *cancel)
{
	struct upstream *u = r->u;
	uint64_t id = r->id;

	if (r->is_call && id != 0) {
		if (u->withdrawn_ms == 0)
			u->withdrawn_owner = r->owner;
		else if (u->withdrawn_owner != r->owner)
			u->withdrawn_owner = NULL;
		u->withdrawn_ms = clock_now_ms();
	}
	if (!upstream_drop(r) && id != 0 && upstream_is_open(u) && r != &u->init &&
	    r != &u->discover)
		call_send_cancelled(u, id, cancel);
}

void
upstream_cancel(struct upstream_req *r, const struct link_msg *cancel)
{
	if (r->u == NULL)
		return;
	if (r->is_call)
		r->u->stats.cancelled++;
	upstream_withdraw(r, cancel);
}
