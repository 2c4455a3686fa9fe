/* SPDX-License-Identifier: MIT */
/*
 * Reads the top level of a text that the scanner refuses, for its id.
 *
 * Owns: nothing. Driven by: link, http_link.
 * Invariants: what is nested is skipped by its brackets and strings alone; the
 * first departure from the form of an object at the top level ends the search,
 * so that noise yields nothing; the first id counts.
 */
#include "salvage_priv.h"

#include "mcpvisor/mem.h"

#include <string.h>

enum {
	SALVAGE_START,
	SALVAGE_KEY,
	SALVAGE_IN_KEY,
	SALVAGE_COLON,
	SALVAGE_VALUE,
	SALVAGE_STRING,
	SALVAGE_SCALAR,
	SALVAGE_NESTED,
	SALVAGE_NEXT,
	SALVAGE_DEAD
};

void
salvage_init(struct salvage *s)
{
	memset(s, 0, sizeof(*s));
}

static bool
salvage_key_is(const struct salvage *s, const char *key)
{
	return s->key_len == strlen(key) && memcmp(s->key, key, s->key_len) == 0;
}

static void
salvage_save(struct salvage *s, char c)
{
	if (!s->saving)
		return;
	if (s->id_len < sizeof(s->id)) {
		s->id[s->id_len++] = c;
	} else {
		s->id_len = 0;
		s->saving = false;
	}
}

static void
salvage_end_value(struct salvage *s)
{
	s->id_complete = s->id_complete || s->saving;
	s->saving = false;
	s->state = SALVAGE_NEXT;
}

static void
salvage_in_key(struct salvage *s, char c)
{
	if (s->escaped) {
		s->escaped = false;
	} else if (c == '"') {
		s->state = SALVAGE_COLON;
		return;
	} else if (c == '\\') {
		s->escaped = true;
	}
	/* Too long, or with an escape: none of ours. */
	if (s->escaped || s->key_len >= sizeof(s->key))
		s->key_len = sizeof(s->key);
	else
		s->key[s->key_len++] = c;
}

static void
salvage_begin_value(struct salvage *s, char c)
{
	s->has_version = s->has_version || salvage_key_is(s, "jsonrpc");
	s->is_reply =
	    s->is_reply || salvage_key_is(s, "result") || salvage_key_is(s, "error");
	if (c == '{' || c == '[') {
		s->depth++;
		s->state = SALVAGE_NESTED;
		return;
	}
	if (!s->id_seen && salvage_key_is(s, "id")) {
		s->id_seen = true;
		s->saving = true;
	}
	salvage_save(s, c);
	s->state = c == '"' ? SALVAGE_STRING : SALVAGE_SCALAR;
}

static void
salvage_in_string(struct salvage *s, char c)
{
	salvage_save(s, c);
	if (s->escaped)
		s->escaped = false;
	else if (c == '\\')
		s->escaped = true;
	else if (c == '"')
		salvage_end_value(s);
}

static void
salvage_nested(struct salvage *s, char c)
{
	if (s->escaped) {
		s->escaped = false;
	} else if (s->in_string) {
		s->escaped = c == '\\';
		s->in_string = c != '"';
	} else if (c == '"') {
		s->in_string = true;
	} else if (c == '{' || c == '[') {
		s->depth++;
	} else if ((c == '}' || c == ']') && --s->depth == 0) {
		s->state = SALVAGE_NEXT;
	}
}

/* Between tokens: one byte is right, and leads on. */
static void
salvage_expect(struct salvage *s, char c, char right, unsigned state)
{
	s->state = c == right ? state : SALVAGE_DEAD;
}

static void
salvage_between(struct salvage *s, char c)
{
	if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
		return;
	switch (s->state) {
	case SALVAGE_START:
		salvage_expect(s, c, '{', SALVAGE_KEY);
		break;
	case SALVAGE_KEY:
		s->key_len = 0;
		salvage_expect(s, c, '"', SALVAGE_IN_KEY);
		break;
	case SALVAGE_COLON:
		salvage_expect(s, c, ':', SALVAGE_VALUE);
		break;
	case SALVAGE_VALUE:
		salvage_begin_value(s, c);
		break;
	default:
		salvage_expect(s, c, ',', SALVAGE_KEY);
		break;
	}
}

static bool
salvage_ends_scalar(char c)
{
	return c == ',' || c == '}' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

void
salvage_feed(struct salvage *s, const char *p, size_t n)
{
	for (size_t i = 0; i < n && s->state != SALVAGE_DEAD; i++) {
		if (s->state == SALVAGE_NESTED) {
			salvage_nested(s, p[i]);
		} else if (s->state == SALVAGE_IN_KEY) {
			salvage_in_key(s, p[i]);
		} else if (s->state == SALVAGE_STRING) {
			salvage_in_string(s, p[i]);
		} else if (s->state == SALVAGE_SCALAR && !salvage_ends_scalar(p[i])) {
			salvage_save(s, p[i]);
		} else {
			if (s->state == SALVAGE_SCALAR)
				salvage_end_value(s);
			salvage_between(s, p[i]);
		}
	}
}

struct refused *
refused_new(void)
{
	struct refused *r = mem_xalloc(sizeof(*r));

	salvage_init(&r->salvage);
	r->head_len = 0;
	return r;
}

void
refused_feed(struct refused *r, const char *p, size_t n)
{
	size_t part =
	    sizeof(r->head) - r->head_len < n ? sizeof(r->head) - r->head_len : n;

	if (n == 0)
		return;
	memcpy(r->head + r->head_len, p, part);
	r->head_len += part;
	salvage_feed(&r->salvage, p, n);
}

struct jtext
refused_id(const struct refused *r, enum mv_err err, bool is_cut, struct json_msg *json)
{
	const struct salvage *s = &r->salvage;
	struct jtext id = {s->id, s->id_len}, none = {NULL, 0};

	if (!s->id_complete)
		return none;
	/* Cut off by the end, which says more of its request than half a reply does. */
	if (is_cut && s->is_reply && err != MV_TOO_LONG)
		return none;
	/* What is not even JSON must at least say that it is meant for us. */
	if (err == MV_SYNTAX && !s->has_version)
		return none;
	if (json_scan(json, id.p, id.n, false) != MV_OK || !json_is_id(id))
		return none;
	return id;
}
