/* SPDX-License-Identifier: MIT */
/*
 * The headers that say once more what is in the body of a modern request, among them
 * those that a tool's definition asks for.
 *
 * Owns: the index of the tools that ask for such headers.
 * Driven by: what is sent; lists that come; errors that say that headers were wrong.
 * Invariants: they are made from the bytes that are sent; a call is sent a second time at
 * most, and only one that asks for headers of its own is kept for that.
 * Spec: 2026-07-28 basic/transports/streamable-http, Request Metadata.
 */
#include "upstream_remote_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/header_value.h"
#include "mcpvisor/log.h"
#include "mcpvisor/param_headers.h"

#include <string.h>

/* Errors by which a server of the time before shows itself. */
enum { RPC_REQUEST = -32600, RPC_NO_METHOD = -32601, RPC_SERVER = -32000 };

/* The name or URI as it is sent. */
static struct jtext
call_name(const struct upstream_call *c)
{
	enum json_slot slot = method_name_slot(c->method);
	struct json_span at = {0, 0};

	if (slot != JSON_SLOT_MAX)
		at = c->json->slot[slot];
	if (at.len != 0 && c->target.put != NULL && c->target.off == at.off)
		return (struct jtext){c->target.put, c->target.put_len};
	return jtext_of(c->base, at);
}

static void
line_put(struct buf *out, const char *name, struct jtext value)
{
	buf_add_str(out, name);
	buf_add_str(out, ": ");
	header_value_put(out, value);
	buf_add_char(out, '\0');
}

/* ---- what tools ask for ---- */

static void
index_build(struct remote *rm, const struct ulist *l)
{
	bool any;

	strmap_free(rm->annotated);
	rm->annotated = strmap_new();
	rm->index_hash = l->hash;
	rm->index_n = l->n;
	rm->has_index = true;
	for (uint32_t i = 0; i < l->n; i++) {
		buf_reset(&rm->name);
		if (param_headers_check(ulist_def(l, i), &any) != NULL || !any ||
		    !json_string_decode(ulist_name(l, i), &rm->name) ||
		    buf_cstr(&rm->name) == NULL)
			continue;
		if (strmap_get(rm->annotated, rm->name.data, rm->name.len) == NULL)
			(void)!strmap_put(rm->annotated, rm->name.data, rm->name.len,
			    (void *)(uintptr_t)(i + 1));
	}
}

/* The definition of a tool that asks for headers; absent: it asks for none. */
static struct jtext
index_find(struct remote *rm, struct jtext name)
{
	const struct ulist *l = &rm->u->lists[LIST_TOOLS];
	struct jtext none = {NULL, 0};
	uintptr_t i;

	if (!rm->has_index || rm->index_hash != l->hash || rm->index_n != l->n)
		index_build(rm, l);
	if (strmap_count(rm->annotated) == 0)
		return none;
	buf_reset(&rm->name);
	if (!json_string_decode(name, &rm->name) || buf_cstr(&rm->name) == NULL)
		return none;
	i = (uintptr_t)strmap_get(rm->annotated, rm->name.data, rm->name.len);
	return i != 0 ? ulist_def(l, (uint32_t)i - 1) : none;
}

static void
lines_put_mirrors(struct buf *out, const struct param_headers *h)
{
	for (unsigned i = 0; i < h->n; i++) {
		struct jtext value = h->of[i].value;

		/* What no header can say is left to the server to refuse. */
		if (value.n != 0 && jtext_type(value) != 'n' && !h->of[i].doubled &&
		    header_value_fit(value) == HEADER_FIT_YES)
			line_put(out, param_headers_name(h, i), value);
	}
}

static enum mv_err
lines_put_params(
    struct remote *rm, struct jtext definition, const struct iovec *iov, int n)
{
	struct param_headers h;
	struct jtext params;
	struct buf text;

	buf_init(&text, CAP_MESSAGE_BYTES);
	for (int i = 0; i < n; i++)
		buf_add(&text, iov[i].iov_base, iov[i].iov_len);
	params = json_member((struct jtext){text.data, text.len}, "params");
	if (text.err == MV_OK && param_headers_find(&h, definition, params) == NULL)
		lines_put_mirrors(&rm->lines, &h);
	if (text.err == MV_OK)
		param_headers_fini(&h);
	rm->is_annotated = true;
	if (text.err != MV_OK)
		rm->lines.err = text.err;
	buf_fini(&text);
	return rm->lines.err;
}

enum mv_err
remote_put_lines(struct remote *rm, const struct upstream_message *what,
    const struct iovec *iov, int n)
{
	struct jtext name = {NULL, 0}, definition = {NULL, 0};
	struct buf *out = &rm->lines;

	buf_reset(out);
	buf_addf(out, "MCP-Protocol-Version: %s", revision_text(REVISION_LATEST_MODERN));
	buf_add_char(out, '\0');
	buf_addf(out, "Mcp-Method: %s", method_name(what->method));
	buf_add_char(out, '\0');
	if (what->call != NULL)
		name = call_name(what->call);
	if (name.n != 0)
		line_put(out, "Mcp-Name", name);
	if (name.n != 0 && what->method == METHOD_TOOLS_CALL)
		definition = index_find(rm, name);
	if (definition.n != 0 && lines_put_params(rm, definition, iov, n) != MV_OK)
		return out->err;
	buf_add_char(out, '\0');
	return out->err;
}

void
remote_on_sent(struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	if (!u->remote->is_annotated || r->is_repaired || r->held != NULL ||
	    u->held_bytes + c->len > u->conf->queue_bytes)
		return;
	r->held = upstream_call_dup(c); /* without it there is no second time */
	if (r->held != NULL)
		u->held_bytes += r->held->len;
}

/* ---- errors ---- */

static bool
error_of_modern(struct remote *rm, struct upstream_req *r, int64_t code)
{
	struct upstream *u = rm->u;

	if (code == RPC_NO_METHOD || code == RPC_REQUEST || code == RPC_SERVER ||
	    code == RPC_VERSION)
		remote_doubt(rm);
	if (code != RPC_HEADER_MISMATCH || !r->is_call || r->is_repaired)
		return false;
	/* Its definitions have changed, and it has not told us. */
	upstream_list_changed(u, METHOD_N_TOOLS_CHANGED);
	if (r->held == NULL || !u->caps.tools)
		return false;
	LOG_LIMITED(LOG_LV_NOTICE, "remote", "headers refused, sent anew", "upstream=%s",
	    UNAME(u));
	r->is_repaired = true;
	upstream_hold_again(r);
	return true;
}

bool
remote_on_error(struct upstream *u, struct upstream_req *r, const struct outcome *o)
{
	int64_t code = 0;

	if (u->era == NULL || r == &u->discover || r == &u->init)
		return false;
	(void)json_int(jtext_of(o->base, o->json->slot[JSON_E_CODE]), &code);
	if (u->era->mirrors)
		return error_of_modern(u->remote, r, code);
	if (u->conf->era != ERA_AUTO ||
	    (code != RPC_HEADER_MISMATCH && code != RPC_VERSION))
		return false;
	/* Only a modern server knows these: it is one now. Ends r as well. */
	return remote_flip_to_modern(u->remote);
}

/* ---- lists ---- */

static void
list_log_left_out(const struct upstream *u, struct jtext name, const char *why)
{
	LOG_LIMITED(LOG_LV_WARNING, "remote", "tool left out",
	    "upstream=%s name=%s why=%s", UNAME(u), LOG_ESC(name.p, name.n),
	    LOG_ESC(why, strlen(why)));
}

static bool
list_has_unusable(const struct ulist *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (param_headers_check(ulist_def(l, i), NULL) != NULL)
			return true;
	return false;
}

/* A client must not show a tool whose headers it cannot form, to anybody. */
void
remote_on_list(struct upstream *u, enum list_kind kind, struct ulist *l)
{
	struct ulist sound;
	const char *why;

	if (kind != LIST_TOOLS || u->era == NULL || !u->era->mirrors ||
	    !list_has_unusable(l))
		return;
	ulist_init(&sound, kind);
	sound.pages = l->pages;
	sound.ttl_ms = l->ttl_ms;
	sound.is_private = l->is_private;
	for (uint32_t i = 0; i < l->n; i++) {
		why = param_headers_check(ulist_def(l, i), NULL);
		if (why == NULL && ulist_add_def(&sound, ulist_def(l, i)) != MV_OK)
			why = "no memory";
		if (why != NULL)
			list_log_left_out(u, ulist_name(l, i), why);
	}
	ulist_fini(l);
	*l = sound;
}

void
remote_on_listed(struct upstream *u, enum list_kind kind)
{
	if (kind == LIST_TOOLS && u->held != NULL)
		deferred_ask(&u->remote->resend);
}
