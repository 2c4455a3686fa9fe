/* SPDX-License-Identifier: MIT */
/*
 * The client-side adapter for 2026-07-28.
 *
 * Invariants: an upstream's result gets what the revision requires and it lacks, by
 * insertion at its front; nothing is taken out of it.
 * Spec: basic/index, _meta and Error Codes; server/utilities/caching.
 */
#include "client_priv.h"

#include "mcpvisor/wording.h"

int
front_status_of(const struct front_era *era, int64_t code)
{
	/* The codes that this revision reserves for itself so far. */
	return era->modern && code <= -32020 && code >= -32022 ? 400 : 200;
}

bool
client_is_modern(const struct json_msg *json)
{
	return json->slot[JSON_M_VERSION].len != 0 ||
	       json->slot[JSON_M_CLIENT_INFO].len != 0 ||
	       json->slot[JSON_M_CLIENT_CAPS].len != 0;
}

bool
front_modern_check_meta(const struct link_msg *m, struct buf *out)
{
	static const struct {
		enum json_slot slot;
		char type;
		bool required;
		enum wording wording;
	} rules[] = {
	    {JSON_M_VERSION, '"', true, WORDING_META_VERSION},
	    {JSON_M_CLIENT_CAPS, '{', true, WORDING_META_CAPABILITIES},
	    {JSON_M_CLIENT_INFO, '{', false, WORDING_META_INFO},
	};
	struct jtext level = jtext_of(m->base, m->json->slot[JSON_M_LOG_LEVEL]);

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct jtext v = jtext_of(m->base, m->json->slot[rules[i].slot]);

		if (v.n == 0 ? rules[i].required : jtext_type(v) != rules[i].type) {
			wording_put(out, rules[i].wording, v);
			return false;
		}
	}
	if (level.n != 0 && mcp_level_parse(level) == MCP_LV_MAX) {
		wording_put(out, WORDING_META_LEVEL, level);
		return false;
	}
	return true;
}

bool
front_modern_check_revision(const struct link_msg *m, struct buf *out)
{
	struct jtext version = jtext_of(m->base, m->json->slot[JSON_M_VERSION]);
	enum revision revision = revision_parse(version);

	if (revision == REVISION_NONE || !revision_is_modern(revision)) {
		wording_put_revision(out, "[\"2026-07-28\"]", version);
		return false;
	}
	return true;
}

static bool
result_is_cacheable(const struct request *r, const struct outcome *o)
{
	return r->method == METHOD_RESOURCES_READ && o->kind == OUTCOME_RESULT;
}

static void
modern_edit_result(
    const struct request *r, const struct outcome *o, struct json_edits *ed)
{
	/* Constant texts of what may be missing: bit 1 the type, bit 2 the ttl, bit 4 the
	 * scope; the comma is there because such a result is never empty otherwise. */
	static const struct jtext missing[8] = {
#define TEXT(s) {s, sizeof(s) - 1}
	    TEXT(""),
	    TEXT("\"resultType\":\"complete\","),
	    TEXT("\"ttlMs\":0,"),
	    TEXT("\"resultType\":\"complete\",\"ttlMs\":0,"),
	    TEXT("\"cacheScope\":\"private\","),
	    TEXT("\"resultType\":\"complete\",\"cacheScope\":\"private\","),
	    TEXT("\"ttlMs\":0,\"cacheScope\":\"private\","),
	    TEXT("\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\","),
#undef TEXT
	};
	const struct json_span *slot = o->json->slot;
	struct json_iter it;
	struct jtext key, value;
	unsigned lacks = slot[JSON_RESULT_TYPE].len == 0;
	size_t n;

	if (result_is_cacheable(r, o)) {
		lacks |= slot[JSON_TTL_MS].len == 0 ? 2u : 0;
		lacks |= slot[JSON_CACHE_SCOPE].len == 0 ? 4u : 0;
	}
	n = missing[lacks].n;
	if (n == 0)
		return;
	json_iter_init(&it, o->body);
	if (!json_next_member(&it, &key, &value))
		n--; /* an empty object takes no comma */
	json_edit_add(ed, slot[JSON_RESULT].off + 1, 0, missing[lacks].p, n);
}

void
front_put_elicitation(struct buf *out, struct jtext params)
{
	struct json_iter it;
	struct jtext key, value;
	const char *sep = "";

	buf_add_str(out, "{\"method\":\"elicitation/create\",\"params\":{");
	json_iter_init(&it, params);
	while (json_next_member(&it, &key, &value)) {
		if (json_string_is(key, "elicitationId"))
			continue;
		buf_add_str(out, sep);
		sep = ",";
		json_put(out, key);
		buf_add_char(out, ':');
		json_put(out, value);
	}
	buf_add_str(out, "}}");
}

/* A code of 2025-11-25 that this revision forbids to send: what it asks for is an
 * input_required result now. */
static const char *
modern_map_elicitations(const struct request *r, const struct outcome *o, struct buf *out)
{
	struct jtext all =
	    json_member(jtext_of(o->base, o->json->slot[JSON_E_DATA]), "elicitations");
	struct wording_failure f = {.err = MV_PROTOCOL,
	    .method = r->method,
	    .upstream = upstream_name(r->call.u),
	    .detail = wording_text(WORDING_WHY_URLS_NONE)};
	struct json_iter it;
	struct jtext one;
	unsigned n = 0;

	/* Others have no such result. */
	if (!method_may_require_input(r->method)) {
		f.detail = wording_text(WORDING_WHY_NOT_HERE);
		wording_put_failure(out, &f);
		return "error";
	}
	if ((r->call.caps & CLIENT_CAP_ELICITATION_URL) == 0) {
		wording_put_needed(
		    out, CLIENT_CAP_ELICITATION | CLIENT_CAP_ELICITATION_URL);
		return "error";
	}
	buf_add_str(out, "{\"resultType\":\"input_required\",\"inputRequests\":{");
	json_iter_init(&it, all);
	while (jtext_type(all) == '[' && json_next_element(&it, &one)) {
		if (jtext_type(one) != '{')
			continue;
		buf_addf(out, "%s\"url-%u\":", n > 0 ? "," : "", n + 1);
		front_put_elicitation(out, one);
		n++;
	}
	buf_add_str(out, "}}");
	if (n > 0)
		return "result";
	buf_reset(out);
	wording_put_failure(out, &f);
	return "error";
}

static const char *
modern_map_error(
    const struct request *r, const struct outcome *o, int64_t code, struct buf *out)
{
	struct jtext uri = {r->uri.data, r->uri.len};

	switch (code) {
	case -32601:
		return front_map_no_method(r, o, out);
	case -32002:
		if (r->method != METHOD_RESOURCES_READ)
			return NULL;
		wording_put_no_resource(out, r->era->no_resource_code, uri);
		return "error";
	case -32042:
		return modern_map_elicitations(r, o, out);
	default:
		return NULL;
	}
}

const struct front_era front_modern = {
    .name = "modern",
    .modern = true,
    .no_resource_code = -32602,
    .result_members =
	"\"resultType\":\"complete\","
	"\"_meta\":{\"io.modelcontextprotocol/serverInfo\":" SERVER_INFO "},",
    .edit_result = modern_edit_result,
    .map_error = modern_map_error,
};
