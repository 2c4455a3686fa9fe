/* SPDX-License-Identifier: MIT */
/*
 * Where a result says what it says.
 *
 * Owns: the buffers of a payload, which hold strings that had escapes.
 * Driven by: identity and sample; label has use of its parts.
 * Invariants: the message is only read; of a payload at most three strings are decoded,
 * and none that is longer than the bound.
 */
#include "payload_priv.h"

#include <string.h>

/* Strings within strings that are still looked into. */
#define PAYLOAD_QUOTES 2

static const struct jtext none;

struct jtext
payload_decode(struct jtext string, struct buf *scratch)
{
	scratch->max = string.n;
	return json_text(string, scratch);
}

static struct jtext
trim_spaces(struct jtext s)
{
	for (; s.n > 0 && json_is_space(s.p[0]); s.n--)
		s.p++;
	while (s.n > 0 && json_is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

struct jtext
payload_trim(struct jtext s)
{
	if (s.n >= 3 && memcmp(s.p, "\xef\xbb\xbf", 3) == 0) {
		s.p += 3;
		s.n -= 3;
	}
	return trim_spaces(s);
}

static size_t
count_ticks(const char *p, const char *end)
{
	const char *from = p;

	while (p < end && *p == '`')
		p++;
	return (size_t)(p - from);
}

/* The fence that ends s has at least n ticks, on a line of its own. */
static bool
cut_closing(struct jtext *s, size_t n)
{
	size_t ticks = 0;

	for (; s->n > 0 && s->p[s->n - 1] == '`'; s->n--)
		ticks++;
	while (s->n > 0 && (s->p[s->n - 1] == ' ' || s->p[s->n - 1] == '\t'))
		s->n--;
	return ticks >= n && s->n > 0 && s->p[s->n - 1] == '\n';
}

struct jtext
payload_unfence(struct jtext s)
{
	struct jtext info;
	const char *eol;
	size_t open;

	s = payload_trim(s);
	open = count_ticks(s.p, s.p + s.n);
	eol = open < 3 ? NULL : memchr(s.p, '\n', s.n);
	if (eol == NULL)
		return none;
	info = trim_spaces((struct jtext){s.p + open, (size_t)(eol - s.p) - open});
	if (info.n > 0 && !jtext_is_equal(info, (struct jtext){"json", 4}) &&
	    !jtext_is_equal(info, (struct jtext){"JSON", 4}))
		return none;
	/* The line's end stays: it may be that of an empty block, too. */
	s.n -= (size_t)(eol - s.p);
	s.p = eol;
	return cut_closing(&s, open) ? s : none;
}

struct jtext
payload_json(struct jtext s)
{
	struct json_scan scan;
	struct json_msg json;

	s = payload_trim(s);
	/* Most texts are prose. */
	if (s.n == 0 || strchr("{[\"tfn-0123456789", s.p[0]) == NULL || s.p[0] == '\0')
		return none;
	json_scan_init(&scan, &json, false);
	scan.max_depth = PAYLOAD_DEPTH;
	if (json_scan_feed(&scan, s.p, s.n) != MV_OK || json_scan_end(&scan) != MV_OK)
		return none;
	return s;
}

/* Looks into a JSON string. False: it holds no JSON, and p->inner is its text. */
static bool
look_inside(struct payload *p, struct jtext string, unsigned quotes)
{
	struct jtext value = string;

	for (unsigned i = 0; i < quotes && jtext_type(value) == '"'; i++) {
		/* One buffer holds what the other is filled from. */
		p->inner = payload_decode(value, &p->bufs[1 + i % 2]);
		if (p->inner.p == NULL) {
			p->kind = PAYLOAD_LOST;
			return true;
		}
		value = payload_json(p->inner);
		if (value.n == 0)
			return false;
	}
	p->kind = PAYLOAD_VALUE;
	p->value = value;
	if (jtext_type(value) != '"')
		p->inner = none;
	return true;
}

static void
look_at_text(struct payload *p)
{
	struct jtext value = payload_json(p->text);

	p->inner = p->text;
	if (value.n == 0)
		value = payload_json(payload_unfence(p->text));
	if (value.n > 0 && look_inside(p, value, PAYLOAD_QUOTES))
		return;
	p->kind = PAYLOAD_PROSE;
	/* Nothing in quotes is a value all the same. */
	if (value.n > 0 && payload_trim(p->inner).n == 0) {
		p->kind = PAYLOAD_VALUE;
		p->value = value;
	}
}

struct jtext
payload_unwrap(struct jtext object)
{
	struct jtext key, value, other;
	struct json_iter it;

	if (jtext_type(object) != '{')
		return none;
	json_iter_init(&it, object);
	if (!json_next_member(&it, &key, &value) || !json_string_is(key, "result") ||
	    json_next_member(&it, &key, &other))
		return none;
	return value;
}

static void
look_at_structured(struct payload *p, struct jtext structured)
{
	struct jtext string =
	    jtext_type(structured) == '"' ? structured : payload_unwrap(structured);

	if (jtext_type(string) == '"' && look_inside(p, string, PAYLOAD_QUOTES))
		return;
	p->kind = PAYLOAD_VALUE;
	p->value = structured;
}

static void
look_at_content(struct payload *p, size_t max_bytes)
{
	struct json_iter it;
	struct jtext block;

	p->kind = PAYLOAD_BLANK;
	json_iter_init(&it, p->content);
	while (json_next_element(&it, &block)) {
		struct jtext text = json_member(block, "text");

		if (!json_string_is(json_member(block, "type"), "text") ||
		    jtext_type(text) != '"') {
			p->kind = PAYLOAD_OTHER;
			continue;
		}
		p->text = text.n > max_bytes ? none : payload_decode(text, &p->bufs[0]);
		if (p->text.p == NULL) {
			p->kind = PAYLOAD_LOST;
			return;
		}
		if (payload_trim(p->text).n > 0) {
			look_at_text(p);
			return;
		}
	}
	p->text = none;
}

void
payload_find(
    struct payload *p, const char *base, const struct json_msg *json, size_t max_bytes)
{
	struct jtext result = jtext_of(base, json->slot[JSON_RESULT]), structured;

	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < sizeof(p->bufs) / sizeof(p->bufs[0]); i++)
		buf_init(&p->bufs[i], CAP_MESSAGE_BYTES);
	if (result.n > max_bytes && result.n > CAP_RESULT_WALK_BYTES) {
		p->kind = PAYLOAD_LOST;
		return;
	}
	structured = json_member(result, "structuredContent");
	p->content = json_member(result, "content");
	if (jtext_type(p->content) != '[')
		p->content = none;
	if (structured.n > max_bytes)
		p->kind = PAYLOAD_LOST;
	else if (structured.n > 0)
		look_at_structured(p, structured);
	else if (p->content.n > 0)
		look_at_content(p, max_bytes);
}

void
payload_fini(struct payload *p)
{
	for (size_t i = 0; i < sizeof(p->bufs) / sizeof(p->bufs[0]); i++)
		buf_fini(&p->bufs[i]);
}
