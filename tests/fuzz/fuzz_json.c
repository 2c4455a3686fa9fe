/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: the scanner, the readers and the splicer.
 *
 * In pieces a text is what it is in one go; jansson accepts and refuses the same texts,
 * but for the differences in the table below, and reads the same values in them; a text
 * with members cut and values replaced is well-formed, and what was not named is in it
 * byte for byte.
 */
#include "fuzz_rig.h"

#include <jansson.h>
#include <sys/uio.h>

#undef json_is_true /* jansson's macro of that name */

/* ---- in pieces ---- */

struct result {
	enum mv_err err;
	struct json_msg msg;
};

static void
scan_pieces(struct result *r, const char *p, size_t n, struct dice *d)
{
	struct json_scan s;

	memset(r, 0xa5, sizeof(*r));
	json_scan_init(&s, &r->msg, true);
	for (size_t at = 0; at < n;) {
		size_t len = d != NULL ? dice_piece(d, n - at) : n - at;
		char *copy = exact_copy(p + at, len);

		MCPVISOR_ASSERT(json_scan_feed(&s, copy, len) == s.err);
		mem_free(copy);
		at += len;
	}
	r->err = json_scan_end(&s);
}

static void
check_spans(const struct json_msg *m, size_t n)
{
	for (unsigned i = 0; i < JSON_SLOT_MAX; i++)
		MCPVISOR_ASSERT(m->slot[i].len == 0 ||
				(m->slot[i].off + (size_t)m->slot[i].len <= n &&
				    m->key_off[i] < m->slot[i].off));
	MCPVISOR_ASSERT(m->n_uris <= CAP_RESULT_URIS);
	for (unsigned i = 0; i < m->n_uris; i++)
		MCPVISOR_ASSERT(m->uris[i].off + (size_t)m->uris[i].len <= n);
}

static void
check_same(const struct result *a, const struct result *b)
{
	MCPVISOR_ASSERT(a->err == b->err && a->msg.kind == b->msg.kind);
	MCPVISOR_ASSERT(a->msg.duplicate == b->msg.duplicate);
	MCPVISOR_ASSERT(memcmp(a->msg.slot, b->msg.slot, sizeof(a->msg.slot)) == 0);
	for (unsigned i = 0; i < JSON_SLOT_MAX; i++)
		MCPVISOR_ASSERT(
		    a->msg.slot[i].len == 0 || a->msg.key_off[i] == b->msg.key_off[i]);
	MCPVISOR_ASSERT(a->msg.n_uris == b->msg.n_uris);
	MCPVISOR_ASSERT(memcmp(a->msg.uris, b->msg.uris,
			    a->msg.n_uris * sizeof(a->msg.uris[0])) == 0);
}

/* ---- beside jansson ---- */

/* All that the two may differ in: what we say, what jansson says (accepted: the code is
 * unknown), the words that its message then begins with, or what the text then has.
 * README.md has the reasons. Accepted by both, and read alike but for this: of members
 * with one key jansson keeps the last. */
static const struct {
	enum mv_err ours;
	enum json_error_code theirs;
	const char *words; /* NULL: any */
	bool has_nul;
} differences[] = {
    {MV_OK, json_error_numeric_overflow, "too big integer", false},
    {MV_OK, json_error_numeric_overflow, "too big negative integer", false},
    {MV_OK, json_error_numeric_overflow, "real number overflow", false},
    {MV_OK, json_error_invalid_syntax, "invalid Unicode '\\u", false},
    {MV_OK, json_error_null_byte_in_key, NULL, false},
    {MV_TOO_DEEP, json_error_unknown, NULL, false},
    {MV_SYNTAX, json_error_unknown, NULL, true},
};

static bool
may_differ(enum mv_err ours, enum json_error_code theirs, const char *words, bool has_nul)
{
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
		const char *want = differences[i].words;

		if (ours == differences[i].ours && theirs == differences[i].theirs &&
		    (want == NULL || strncmp(words, want, strlen(want)) == 0) &&
		    (has_nul || !differences[i].has_nul))
			return true;
	}
	return false;
}

static void check_value(struct jtext t, const json_t *v);

static void
check_string(struct jtext t, const char *s, size_t n)
{
	struct buf b;

	buf_init(&b, t.n);
	MCPVISOR_ASSERT(json_string_decode(t, &b) && b.err == MV_OK);
	MCPVISOR_ASSERT(b.len == n && (n == 0 || memcmp(b.data, s, n) == 0));
	MCPVISOR_ASSERT(strlen(s) != n || json_string_is(t, s));
	buf_fini(&b);
}

static void
check_object(struct jtext t, const json_t *v)
{
	struct json_iter it;
	struct jtext key, value;
	size_t n = 0;

	json_iter_init(&it, t);
	while (json_next_member(&it, &key, &value))
		n++;
	MCPVISOR_ASSERT(n >= json_object_size(v));
	if (n > json_object_size(v))
		return;
	json_iter_init(&it, t);
	while (json_next_member(&it, &key, &value)) {
		const json_t *theirs;
		struct buf b;

		buf_init(&b, key.n);
		MCPVISOR_ASSERT(json_string_decode(key, &b) && b.err == MV_OK);
		theirs = json_object_getn(v, b.len > 0 ? b.data : "", b.len);
		MCPVISOR_ASSERT(theirs != NULL);
		buf_fini(&b);
		check_value(value, theirs);
	}
}

static void
check_array(struct jtext t, const json_t *v)
{
	struct json_iter it;
	struct jtext value;
	size_t n = 0;

	json_iter_init(&it, t);
	for (; json_next_element(&it, &value); n++)
		check_value(value, json_array_get(v, n));
	MCPVISOR_ASSERT(n == json_array_size(v));
}

static void
check_value(struct jtext t, const json_t *v)
{
	int64_t i = 0;

	switch (json_typeof(v)) {
	case JSON_OBJECT:
		check_object(t, v);
		break;
	case JSON_ARRAY:
		check_array(t, v);
		break;
	case JSON_STRING:
		check_string(t, json_string_value(v), json_string_length(v));
		break;
	case JSON_INTEGER:
		MCPVISOR_ASSERT(json_int(t, &i) && i == json_integer_value(v));
		break;
	case JSON_REAL:
		MCPVISOR_ASSERT(!json_int(t, &i) && !json_is_id(t));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
	case JSON_NULL:
		MCPVISOR_ASSERT(json_is_true(t) == (json_typeof(v) == JSON_TRUE));
		break;
	}
}

/* Without the white space around it. */
static struct jtext
trimmed(const char *p, size_t n)
{
	while (n > 0 && memchr(" \t\r\n", p[n - 1], 4) != NULL)
		n--;
	for (; n > 0 && memchr(" \t\r\n", *p, 4) != NULL; n--)
		p++;
	return (struct jtext){p, n};
}

static void
check_beside_jansson(const struct result *r, const char *p, size_t n)
{
	json_error_t e;
	json_t *v = json_loadb(p, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);

	if ((v != NULL) != (r->err == MV_OK))
		MCPVISOR_ASSERT(may_differ(r->err,
		    v != NULL ? json_error_unknown : json_error_code(&e), e.text,
		    n > 0 && memchr(p, '\0', n) != NULL));
	else if (v != NULL)
		check_value(trimmed(p, n), v);
	json_decref(v);
}

/* ---- spliced ---- */

#define MEMBERS_MAX 64
#define EDITS_MAX   8

struct member {
	struct jtext key, value;
	bool cut, replaced;
};

struct splice {
	const char *base;
	struct json_span whole;
	struct jtext object; /* the one that is edited */
	struct member m[MEMBERS_MAX];
	unsigned n;
};

/* Takes the object t, or goes down into a member or element of it, by the dice. */
static bool
choose_object(struct jtext t, struct dice *d, struct jtext *object)
{
	for (unsigned depth = 0; depth < 8; depth++) {
		struct jtext key, value, inner = {NULL, 0};
		struct json_iter it;
		bool is_object = jtext_type(t) == '{';
		unsigned seen = 0;

		if (is_object)
			*object = t;
		json_iter_init(&it, t);
		while (is_object ? json_next_member(&it, &key, &value)
				 : json_next_element(&it, &value))
			if ((jtext_type(value) == '{' || jtext_type(value) == '[') &&
			    dice_roll(d, ++seen) == 0)
				inner = value;
		if (inner.n == 0 || (is_object && dice_roll(d, 3) == 0))
			break;
		t = inner;
	}
	return object->n != 0;
}

static void
read_members(struct splice *s)
{
	struct json_iter it;
	struct member *m = s->m;

	s->n = 0;
	json_iter_init(&it, s->object);
	while (s->n < MEMBERS_MAX && json_next_member(&it, &m->key, &m->value)) {
		m->cut = m->replaced = false;
		m++;
		s->n++;
	}
}

static uint32_t
offset_of(const struct splice *s, const char *p)
{
	return (uint32_t)(p - s->base);
}

static struct json_span
span_of(const struct splice *s, struct jtext t)
{
	return (struct json_span){offset_of(s, t.p), (uint32_t)t.n};
}

#define PUT "[0]"

static void
edit_some(struct splice *s, struct json_edits *ed, struct dice *d)
{
	unsigned tries = 1 + (unsigned)dice_roll(d, EDITS_MAX);

	for (unsigned i = 0; i < tries && s->n > 0; i++) {
		struct member *m = &s->m[dice_roll(d, s->n)];

		if (m->cut || m->replaced)
			continue;
		if (dice_roll(d, 3) > 0) {
			m->cut = true;
			json_edit_cut(ed, s->base, span_of(s, s->object),
			    offset_of(s, m->key.p), span_of(s, m->value));
		} else {
			m->replaced = true;
			json_edit_add(ed, offset_of(s, m->value.p), (uint32_t)m->value.n,
			    PUT, strlen(PUT));
		}
	}
}

/* after is the object as it became: the members that are left, in order. */
static void
check_members(const struct splice *s, struct jtext after)
{
	struct json_iter it;
	struct jtext key, value, put = {PUT, strlen(PUT)};

	json_iter_init(&it, after);
	for (unsigned i = 0; i < s->n; i++) {
		const struct member *m = &s->m[i];

		if (m->cut)
			continue;
		MCPVISOR_ASSERT(json_next_member(&it, &key, &value));
		MCPVISOR_ASSERT(same_bytes(key, m->key));
		MCPVISOR_ASSERT(same_bytes(value, m->replaced ? put : m->value));
	}
	if (s->n < MEMBERS_MAX)
		MCPVISOR_ASSERT(!json_next_member(&it, &key, &value));
}

static void
check_spliced(const struct splice *s, const struct json_edits *ed)
{
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	int n = json_edit_pieces(s->base, s->whole, ed, iov);
	size_t before = (size_t)(s->object.p - s->base);
	size_t after = s->whole.len - before - s->object.n;
	struct json_msg json;
	struct buf out;

	MCPVISOR_ASSERT(n <= 2 * JSON_EDITS_MAX + 1);
	buf_init(&out, SIZE_MAX / 2);
	for (int i = 0; i < n; i++)
		buf_add(&out, iov[i].iov_base, iov[i].iov_len);
	MCPVISOR_ASSERT(json_scan(&json, out.data, out.len, false) == MV_OK);
	MCPVISOR_ASSERT(out.len >= before + after + 2);
	MCPVISOR_ASSERT(memcmp(out.data, s->base, before) == 0);
	MCPVISOR_ASSERT(memcmp(out.data + out.len - after, s->base + s->whole.len - after,
			    after) == 0);
	check_members(s, (struct jtext){out.data + before, out.len - before - after});
	buf_fini(&out);
}

static void
check_splices(const char *p, size_t n, struct dice *d)
{
	struct splice s = {.base = p, .whole = {0, (uint32_t)n}};
	struct json_edits ed = {.n = 0};

	if (!choose_object(trimmed(p, n), d, &s.object))
		return;
	read_members(&s);
	edit_some(&s, &ed, d);
	check_spliced(&s, &ed);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = exact_copy(data, size);
	struct dice d = dice_of(data, size);
	struct result whole, parts;

	scan_pieces(&whole, text, size, NULL);
	scan_pieces(&parts, text, size, &d);
	check_same(&whole, &parts);
	check_spans(&whole.msg, size);
	check_beside_jansson(&whole, text, size);
	if (whole.err == MV_OK) {
		check_splices(text, size, &d);
		check_splices(text, size, &d);
	}
	mem_free(text);
	return 0;
}
