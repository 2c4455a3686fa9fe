/* SPDX-License-Identifier: MIT */
/*
 * The structure of a JSON text: nesting, members, and the spans of the few
 * members that we act on.
 *
 * Owns: nothing but its caller's struct json_scan. Driven by: json_scan_feed, with
 * pieces of any size.
 * Invariants: never recursive; a byte is looked at once; after JSON_ST_FAILED
 * nothing is read; st.level is JSON_LV_OTHER unless the innermost container is
 * an object whose members are looked at.
 */
#include "json_scan_priv.h"

#include <string.h>

static inline bool
in_array(const struct json_scan *s)
{
	unsigned d = s->depth - 1;

	return s->st.is_array[d / 64] >> (d % 64) & 1;
}

static void
record_slot(struct json_scan *s, unsigned slot, uint32_t off, uint32_t end)
{
	s->msg->slot[slot].off = off;
	s->msg->slot[slot].len = end - off;
}

void
scan_value_end(struct json_scan *s, uint32_t end, bool is_string)
{
	if (s->st.slot != JSON_SLOT_NONE) {
		record_slot(s, s->st.slot, s->st.value_off, end);
		s->st.slot = JSON_SLOT_NONE;
	}
	if (s->st.is_uri) {
		s->st.is_uri = false;
		if (is_string && s->msg->n_uris < CAP_RESULT_URIS) {
			s->msg->uris[s->msg->n_uris].off = s->st.value_off;
			s->msg->uris[s->msg->n_uris].len = end - s->st.value_off;
			s->msg->n_uris++;
		}
	}
	s->st.state = s->depth > 0 ? JSON_ST_AFTER : JSON_ST_DONE;
}

static enum json_level
level_of_new(const struct json_scan *s, bool array)
{
	if (array)
		return JSON_LV_OTHER;
	if (s->depth == 0)
		return JSON_LV_TOP;
	return s->st.slot != JSON_SLOT_NONE ? slot_inner((enum json_slot)s->st.slot)
					    : JSON_LV_OTHER;
}

static void
open_container(struct json_scan *s, bool array)
{
	uint64_t *word = &s->st.is_array[s->depth / 64];
	uint64_t bit = UINT64_C(1) << (s->depth % 64);

	if (s->depth >= s->max_depth) {
		scan_soft_error(s, MV_TOO_DEEP);
		s->st.skipped = 1;
		s->st.state = JSON_ST_SKIP;
		return;
	}
	*word = array ? *word | bit : *word & ~bit;
	s->st.level = (uint8_t)level_of_new(s, array);
	s->depth++;
	if (s->depth <= JSON_SCAN_NEST) {
		s->st.levels[s->depth] = s->st.level;
		s->st.slots[s->depth] = s->st.slot;
		s->st.opened[s->depth] = s->st.value_off;
	}
	if (s->want_uris && s->st.slot == JSON_RESULT)
		s->st.result_depth = s->depth;
	s->st.slot = JSON_SLOT_NONE;
	s->st.is_uri = false;
	s->st.state = array ? JSON_ST_FIRST_ELEMENT : JSON_ST_FIRST_KEY;
}

/* p is the closing bracket. */
static const unsigned char *
close_container(struct json_scan *s, const unsigned char *p)
{
	unsigned d = s->depth;

	if (d <= JSON_SCAN_NEST && s->st.slots[d] != JSON_SLOT_NONE)
		record_slot(s, s->st.slots[d], s->st.opened[d], scan_offset(s, p + 1));
	if (d == s->st.result_depth)
		s->st.result_depth = 0;
	s->depth = d - 1;
	s->st.level =
	    d > 1 && d - 1 <= JSON_SCAN_NEST ? s->st.levels[d - 1] : JSON_LV_OTHER;
	s->st.state = s->depth > 0 ? JSON_ST_AFTER : JSON_ST_DONE;
	return p + 1;
}

static enum json_kind
kind_of(unsigned char c)
{
	if (c == '{')
		return JSON_K_OBJECT;
	if (c == '[')
		return JSON_K_ARRAY;
	return c == '"' ? JSON_K_STRING : JSON_K_SCALAR;
}

static const unsigned char *
begin_value(struct json_scan *s, const unsigned char *p, const unsigned char *end)
{
	unsigned char c = *p;

	if (s->depth == 0)
		s->msg->kind = kind_of(c);
	s->st.value_off = scan_offset(s, p);
	if (c == '"') {
		s->st.state = JSON_ST_STRING;
		return scan_string(s, p + 1, end);
	}
	if (c == '{' || c == '[') {
		open_container(s, c == '[');
		return p + 1;
	}
	if (c == '-')
		s->st.state = JSON_ST_MINUS;
	else if (c == '0')
		s->st.state = JSON_ST_ZERO;
	else if (c >= '1' && c <= '9')
		s->st.state = JSON_ST_INT;
	else
		return scan_literal_begin(s, c) ? p + 1 : scan_fail(s, p);
	return scan_number(s, p + 1, end);
}

static const unsigned char *
after_key(struct json_scan *s, const unsigned char *p, const unsigned char *end)
{
	s->st.key_wanted = false;
	s->st.state = JSON_ST_VALUE;
	if (*p != ':')
		return scan_fail(s, p);
	p++;
	return p < end && !json_is_space((char)*p) ? begin_value(s, p, end) : p;
}

static const unsigned char *
begin_key(struct json_scan *s, const unsigned char *p, const unsigned char *end)
{
	if (*p != '"')
		return scan_fail(s, p);
	s->st.in_key = true;
	s->st.key_wanted = s->st.level != JSON_LV_OTHER || s->st.result_depth > 0;
	s->st.key_lost = false;
	s->st.key_len = 0;
	s->st.key_off = scan_offset(s, p);
	s->st.state = JSON_ST_STRING;
	p = scan_string(s, p + 1, end);
	return p < end && s->st.state == JSON_ST_COLON && *p == ':' ? after_key(s, p, end)
								    : p;
}

static const unsigned char *
after_value(struct json_scan *s, const unsigned char *p, const unsigned char *end)
{
	bool array = in_array(s);

	if (*p == ',') {
		s->st.state = array ? JSON_ST_VALUE : JSON_ST_KEY;
		p++;
		return !array && p < end && *p == '"' ? begin_key(s, p, end) : p;
	}
	return *p == (array ? ']' : '}') ? close_container(s, p) : scan_fail(s, p);
}

/* Below the depth bound only the end of the container is of interest. */
static const unsigned char *
scan_skipped(struct json_scan *s, const unsigned char *p, const unsigned char *end)
{
	for (; p < end; p++) {
		if (s->st.state == JSON_ST_SKIP_ESCAPE) {
			s->st.state = JSON_ST_SKIP_STRING;
		} else if (s->st.state == JSON_ST_SKIP_STRING) {
			if (*p == '"')
				s->st.state = JSON_ST_SKIP;
			else if (*p == '\\')
				s->st.state = JSON_ST_SKIP_ESCAPE;
		} else if (*p == '"') {
			s->st.state = JSON_ST_SKIP_STRING;
		} else if (*p == '[' || *p == '{') {
			s->st.skipped++;
		} else if ((*p == ']' || *p == '}') && --s->st.skipped == 0) {
			p++;
			scan_value_end(s, scan_offset(s, p), false);
			break;
		}
	}
	return p;
}

/* One step: a token or a few, or as much of one as there is. */
static const unsigned char *
scan_some(struct json_scan *s, const unsigned char *p, const unsigned char *end)
{
	if (s->st.state <= JSON_ST_DONE) {
		while (json_is_space((char)*p)) {
			if (++p == end)
				return p;
		}
	}
	switch ((enum json_state)s->st.state) {
	case JSON_ST_VALUE:
		return begin_value(s, p, end);
	case JSON_ST_FIRST_ELEMENT:
		return *p == ']' ? close_container(s, p) : begin_value(s, p, end);
	case JSON_ST_FIRST_KEY:
		return *p == '}' ? close_container(s, p) : begin_key(s, p, end);
	case JSON_ST_KEY:
		return begin_key(s, p, end);
	case JSON_ST_COLON:
		return after_key(s, p, end);
	case JSON_ST_AFTER:
		return after_value(s, p, end);
	case JSON_ST_SKIP:
	case JSON_ST_SKIP_STRING:
	case JSON_ST_SKIP_ESCAPE:
		return scan_skipped(s, p, end);
	case JSON_ST_STRING:
		return scan_string(s, p, end);
	case JSON_ST_ESCAPE:
	case JSON_ST_HEX:
		return scan_escape(s, p, end);
	case JSON_ST_MINUS:
	case JSON_ST_ZERO:
	case JSON_ST_INT:
	case JSON_ST_POINT:
	case JSON_ST_FRACTION:
	case JSON_ST_E:
	case JSON_ST_E_SIGN:
	case JSON_ST_EXPONENT:
		return scan_number(s, p, end);
	case JSON_ST_LITERAL:
		return scan_literal(s, p, end);
	case JSON_ST_DONE:
	case JSON_ST_FAILED:
		break;
	}
	return scan_fail(s, p);
}

void
json_scan_init(struct json_scan *s, struct json_msg *msg, bool want_uris)
{
	memset(msg, 0, offsetof(struct json_msg, uris));
	memset(s, 0, offsetof(struct json_scan, st.key));
	s->msg = msg;
	s->max_depth = CAP_JSON_DEPTH;
	s->want_uris = want_uris;
	s->st.state = JSON_ST_VALUE;
	s->st.level = JSON_LV_OTHER;
	s->st.slot = JSON_SLOT_NONE;
}

enum mv_err
json_scan_feed(struct json_scan *s, const char *bytes, size_t n)
{
	const unsigned char *p = (const unsigned char *)bytes, *end;

	MCPVISOR_ASSERT(s->max_depth <= CAP_JSON_DEPTH);
	if (n == 0)
		return s->err;
	if (n > UINT32_MAX - s->pos) {
		scan_soft_error(s, MV_TOO_LONG);
		s->st.state = JSON_ST_FAILED;
		return s->err;
	}
	end = p + n;
	s->st.chunk = p;
	while (p < end && s->st.state != JSON_ST_FAILED)
		p = scan_some(s, p, end);
	s->pos += n;
	return s->err;
}

enum mv_err
json_scan_end(struct json_scan *s)
{
	if (s->err != MV_OK)
		return s->err;
	/* Only the end of the text tells that a number at top level is over. */
	if (s->depth == 0 && scan_number_is_complete(s))
		scan_value_end(s, (uint32_t)s->pos, false);
	if (s->st.state != JSON_ST_DONE)
		scan_fail(s, NULL);
	return s->err;
}

enum mv_err
json_scan(struct json_msg *msg, const char *p, size_t n, bool want_uris)
{
	struct json_scan s;

	json_scan_init(&s, msg, want_uris);
	if (json_scan_feed(&s, p, n) != MV_OK)
		return s.err;
	return json_scan_end(&s);
}
