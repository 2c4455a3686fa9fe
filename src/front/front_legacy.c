/* SPDX-License-Identifier: MIT */
/*
 * The client-side adapter for 2024-11-05 to 2025-11-25.
 *
 * Invariants: results pass without any edit: members that a modern upstream adds are
 * unknown to a legacy client and harmless.
 */
#include "client_priv.h"
#include "client_task_priv.h"

#include "mcpvisor/wording.h"

/* A client would take it for a method that is not there. */
const char *
front_map_no_method(const struct request *r, const struct outcome *o, struct buf *out)
{
	if (r->method != METHOD_TOOLS_CALL)
		return NULL;
	if (task_is_refusal(r, out))
		return out->len > 0 ? "error" : NULL;
	wording_put_recoded(out, o->body, -32602);
	return "error";
}

static void
legacy_edit_result(
    const struct request *r, const struct outcome *o, struct json_edits *ed)
{
	(void)r;
	(void)o;
	(void)ed;
}

static const char *
legacy_map_error(
    const struct request *r, const struct outcome *o, int64_t code, struct buf *out)
{
	struct jtext uri =
	    json_member(jtext_of(o->base, o->json->slot[JSON_E_DATA]), "uri");

	/* Upstreams do not know what we put before it. */
	if (read_is_prefixed(r) && uri.n != 0)
		uri = (struct jtext){r->uri.data, r->uri.len};
	switch (code) {
	case -32601:
		return front_map_no_method(r, o, out);
	case -32002:
		if (!read_is_prefixed(r))
			return NULL;
		__attribute__((fallthrough));
	case -32602:
		if (r->method != METHOD_RESOURCES_READ || jtext_type(uri) != '"')
			return NULL;
		wording_put_no_resource(out, r->era->no_resource_code, uri);
		return "error";
	default:
		return NULL;
	}
}

const struct front_era front_legacy = {
    .name = "legacy",
    .modern = false,
    .no_resource_code = -32002,
    .result_members = "",
    .edit_result = legacy_edit_result,
    .map_error = legacy_map_error,
};
