/* SPDX-License-Identifier: MIT */
/*
 * The text behind an imported tree: lines of members and numbers as they were written,
 * which a parsed tree no longer knows.
 *
 * Owns: nothing; all results point into the caller's text.
 * Driven by: the import.
 */
#include "import_text_priv.h"

#include <string.h>

#include "mcpvisor/json.h"

static struct jtext
text_of(struct import_text t)
{
	struct jtext j = {t.p, t.n};

	return j;
}

struct import_text
import_text_member(struct import_text object, const char *key)
{
	struct jtext v = json_member(text_of(object), key);
	struct import_text t = {v.p, v.n};

	return t;
}

int
import_text_lines(const char *from, const char *to)
{
	int n = 0;

	while (from < to && (from = memchr(from, '\n', (size_t)(to - from)))) {
		n++;
		from++;
	}
	return n;
}

void
import_cursor_init(struct import_cursor *c, const char *base, struct import_text object)
{
	struct json_iter it;

	json_iter_init(&it, text_of(object));
	c->at = it.p;
	c->end = it.end;
	c->counted = base;
	c->line = 1;
}

bool
import_cursor_next(struct import_cursor *c, struct import_text *value)
{
	struct json_iter it = {c->at, c->end};
	struct jtext key, v;

	if (!json_next_member(&it, &key, &v))
		return false;
	c->at = it.p;
	c->line += import_text_lines(c->counted, key.p);
	c->counted = key.p;
	value->p = v.p;
	value->n = v.n;
	return true;
}
