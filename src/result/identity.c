/* SPDX-License-Identifier: MIT */
/*
 * Which tools tell who it is, what they say, and what a model is told of it.
 *
 * Owns: nothing but what is in a conf.
 * Driven by: the gateway, for each result of such a tool.
 * Invariants: a result is never changed but by one block more, and never becomes a
 * failure; in doubt nobody is known.
 */
#include "mcpvisor/identity.h"

#include "identity_priv.h"
#include "payload_priv.h"

#include "mcpvisor/glob.h"
#include "mcpvisor/label.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define HINT_BEGIN "Identity check: "
#define HINT_END                                                                         \
	" returned no user. The stored credentials may have expired; reconnect before "  \
	"relying on who the current user is."

const char *
identity_verdict_text(enum identity_verdict v)
{
	static const char *const texts[] = {
#define X(id, name) name,
	    IDENTITY_VERDICTS(X)
#undef X
	};

	return v < IDENTITY_VERDICT_MAX ? texts[v] : "?";
}

static void
words_free(char **words)
{
	for (char **w = words; w != NULL && *w != NULL; w++)
		mem_free(*w);
	mem_free(words);
}

void
identity_conf_fini(struct identity_conf *c)
{
	for (struct pattern **p = c->patterns; p != NULL && *p != NULL; p++)
		pattern_free(*p);
	mem_free(c->patterns);
	words_free(c->null_texts);
	words_free(c->tools);
	mem_free(c->path);
	memset(c, 0, sizeof(*c));
}

/* ---- names ---- */

static bool
is_separator(char c)
{
	return c == '_' || c == '-' || c == '.';
}

/* The next character of a name that is more than its spelling, in lower case; -1: the
 * end. */
static int
next_folded(struct jtext *name)
{
	while (name->n > 0) {
		char c = *name->p++;

		name->n--;
		if (c >= 'A' && c <= 'Z')
			return c | 0x20;
		if (!is_separator(c))
			return (unsigned char)c;
	}
	return -1;
}

static bool
folds_to(struct jtext name, const char *word)
{
	for (; *word != '\0'; word++)
		if (next_folded(&name) != *word)
			return false;
	return next_folded(&name) < 0;
}

/* What follows the name of the upstream, if that is a segment in front. */
static struct jtext
without_upstream(struct jtext name, const char *upstream)
{
	struct jtext rest = name, first = {upstream, strlen(upstream)};
	int c;

	while ((c = next_folded(&first)) >= 0)
		if (next_folded(&rest) != c)
			return name;
	return rest.n > 0 && is_separator(rest.p[0]) ? rest : name;
}

static bool
is_word_of_identity(struct jtext name)
{
	static const char *const words[] = {"me", "getme", "viewer", "getviewer",
	    "whoami", "hfwhoami", "currentuser", "getcurrentuser", "getauthenticateduser",
	    "authenticateduser", "myself", "getmyself", "self", "getself", "userinfo",
	    "getuserinfo", "atlassianuserinfo", "getusercontext", "authtest", "identity",
	    "getidentity"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (folds_to(name, words[i]))
			return true;
	return false;
}

/* What has to be told something, or changes something, is no question of who; nor is what
 * takes long to look at. */
static bool
may_be_question(struct jtext definition)
{
	struct jtext required, hint, first;
	struct json_iter it;

	if (definition.n > CAP_DEFINITION_WALK_BYTES)
		return false;
	required = json_member(json_member(definition, "inputSchema"), "required");
	hint = json_member(json_member(definition, "annotations"), "readOnlyHint");
	json_iter_init(&it, required);
	if (jtext_type(required) == '[' && json_next_element(&it, &first))
		return false;
	return !jtext_is_equal(hint, (struct jtext){"false", 5});
}

static bool
is_tool_by_name(const char *upstream, struct jtext name, struct jtext definition)
{
	return (is_word_of_identity(name) ||
		   is_word_of_identity(without_upstream(name, upstream))) &&
	       may_be_question(definition);
}

bool
identity_is_tool(const struct identity_conf *c, const char *upstream, struct jtext name,
    struct jtext definition)
{
	if (c->tools == NULL)
		return is_tool_by_name(upstream, name, definition);
	for (char *const *t = c->tools; *t != NULL; t++) {
		if (strcmp(*t, "none") == 0)
			continue;
		if (strcmp(*t, "auto") == 0 ? is_tool_by_name(upstream, name, definition)
					    : glob_match(*t, name.p, name.n))
			return true;
	}
	return false;
}

/* ---- verdicts ---- */

static bool
fits_any(struct pattern *const *patterns, struct jtext text, size_t *steps)
{
	for (; text.p != NULL && patterns != NULL && *patterns != NULL; patterns++)
		if (pattern_matches(*patterns, text.p, text.n, steps))
			return true;
	return false;
}

static enum identity_verdict
judge_value(const struct identity_conf *c, struct jtext value)
{
	bool is_nobody, is_too_deep = false;

	if (c->path != NULL && c->path[0] != '\0') {
		value = pointer_get(value, c->path);
		is_nobody =
		    value.n == 0 || value.p[0] == 'n' || json_string_is(value, "");
	} else {
		is_nobody = identity_value_is_null_like(value, &is_too_deep);
	}
	if (is_too_deep)
		return IDENTITY_UNKNOWN;
	return is_nobody ? IDENTITY_UNRESOLVED : IDENTITY_RESOLVED;
}

static enum identity_verdict
judge_payload(const struct identity_conf *c, const struct payload *p)
{
	size_t steps = PATTERN_STEPS;

	if (fits_any(c->patterns, p->text, &steps) ||
	    fits_any(c->patterns, p->inner, &steps))
		return IDENTITY_UNRESOLVED;
	/* It may be that one of them fits. */
	if (steps == 0)
		return IDENTITY_UNKNOWN;
	switch (p->kind) {
	case PAYLOAD_VALUE:
		return judge_value(c, p->value);
	case PAYLOAD_BLANK:
		return IDENTITY_UNRESOLVED;
	case PAYLOAD_NONE:
	case PAYLOAD_OTHER:
	case PAYLOAD_PROSE:
	case PAYLOAD_LOST:
		break;
	}
	return IDENTITY_UNKNOWN;
}

enum identity_verdict
identity_judge(const struct identity_conf *c, const char *base,
    const struct json_msg *json, bool is_error)
{
	struct jtext result = jtext_of(base, json->slot[JSON_RESULT]);
	struct jtext type = jtext_of(base, json->slot[JSON_RESULT_TYPE]);
	enum identity_verdict v;
	struct payload p;

	if (result.n == 0)
		return IDENTITY_ERROR;
	if (type.n > 0 && !json_string_is(type, "complete"))
		return IDENTITY_UNKNOWN;
	if (is_error)
		return IDENTITY_ERROR;
	payload_find(&p, base, json, IDENTITY_BYTES);
	v = judge_payload(c, &p);
	payload_fini(&p);
	return v;
}

bool
identity_is_null_answer(const char *base, const struct json_msg *json)
{
	struct payload p;
	bool is;

	payload_find(&p, base, json, IDENTITY_BYTES);
	is = p.kind == PAYLOAD_NONE || p.kind == PAYLOAD_BLANK ||
	     (p.kind == PAYLOAD_VALUE && identity_is_null_like(p.value));
	payload_fini(&p);
	return is;
}

/* ---- the hint ---- */

/* Ours, or that of another proxy on the way, which calls the upstream otherwise. */
static bool
is_hint(struct jtext block)
{
	struct jtext text = json_member(block, "text");
	size_t begin = sizeof(HINT_BEGIN) - 1;

	return text.n > begin + 1 && memcmp(text.p + 1, HINT_BEGIN, begin) == 0 &&
	       memmem(text.p, text.n, HINT_END, sizeof(HINT_END) - 1) != NULL;
}

/* Whether something stands before the end of an array, or will. */
static bool
needs_comma(const struct json_edits *ed, struct json_span array, bool has_blocks)
{
	for (unsigned i = 0; i < ed->n; i++) {
		const struct json_edit *e = &ed->e[i];

		if (e->off > array.off && e->off < array.off + array.len &&
		    e->put_len > 0)
			return true;
	}
	return has_blocks;
}

bool
identity_put_hint(struct json_edits *ed, const char *upstream, const char *base,
    const struct json_msg *json, struct buf *out)
{
	struct jtext result = jtext_of(base, json->slot[JSON_RESULT]);
	struct jtext content = json_member(result, "content"), block;
	bool has_blocks = false, fits;
	struct json_span array;
	struct json_iter it;
	struct buf text;

	if (jtext_type(content) != '[' || ed->n == JSON_EDITS_MAX)
		return false;
	json_iter_init(&it, content);
	for (; json_next_element(&it, &block); has_blocks = true)
		if (is_hint(block))
			return false;
	array.off = (uint32_t)(content.p - base);
	array.len = (uint32_t)content.n;
	buf_init(&text, out->max);
	buf_add_str(&text, HINT_BEGIN);
	buf_add_str(&text, upstream);
	buf_add_str(&text, HINT_END);
	buf_add_str(out, needs_comma(ed, array, has_blocks) ? "," : "");
	buf_add_str(out, "{\"type\":\"text\",\"text\":");
	json_put_string(out, text.data, text.len);
	buf_add_char(out, '}');
	fits = text.err == MV_OK && out->err == MV_OK;
	if (fits)
		json_edit_add(ed, array.off + array.len - 1, 0, out->data, out->len);
	buf_fini(&text);
	return fits;
}
