/* SPDX-License-Identifier: MIT */
/*
 * Keys of the members that the scanner records, and the rule on keys that
 * another parser could take for one of them.
 *
 * Owns: the table of keys. Driven by: json_scan.c, once a key at a known level.
 * Invariants: the rows of a level are next to each other in JSON_SLOT_TABLE.
 */
#include "json_scan_priv.h"

#include <string.h>

struct slot_row {
	const char *key;
	uint8_t len;
	uint8_t inner;
	bool routes;
};

static const struct slot_row rows[JSON_SLOT_MAX] = {
#define X(slot, level, key, inner, routes)                                               \
	[JSON_##slot] = {key, sizeof(key) - 1, JSON_LV_##inner, routes},
    JSON_SLOT_TABLE(X)
#undef X
};

struct slot_range {
	uint8_t first, last;
};

#define RANGE_TOP	  JSON_JSONRPC, JSON_ERROR
#define RANGE_PARAMS	  JSON_P_NAME, JSON_P_TASK_ID
#define RANGE_META	  JSON_M_PROGRESS_TOKEN, JSON_M_RELATED_TASK
#define RANGE_REF	  JSON_R_TYPE, JSON_R_URI
#define RANGE_RESULT	  JSON_RESULT_TYPE, JSON_RESULT_META
#define RANGE_RESULT_META JSON_RM_SUBSCRIPTION, JSON_RM_RELATED_TASK
#define RANGE_ERROR	  JSON_E_CODE, JSON_E_DATA

#define WITHIN_(slot, first, last) ((slot) >= (first) && (slot) <= (last))
#define WITHIN(slot, ...)	   WITHIN_(slot, __VA_ARGS__)
#define X(slot, level, key, inner, routes)                                               \
	_Static_assert(WITHIN((int)JSON_##slot, (int)RANGE_##level),                     \
	    #slot " is outside the range of its level");
JSON_SLOT_TABLE(X)
#undef X
_Static_assert(JSON_SLOT_MAX <= 64, "json_scan.st.seen has a bit for each slot");

/* JSON_LV_OTHER has an empty range. */
static const struct slot_range ranges[JSON_LV_MAX] = {
    [JSON_LV_OTHER] = {1, 0},
    [JSON_LV_TOP] = {RANGE_TOP},
    [JSON_LV_PARAMS] = {RANGE_PARAMS},
    [JSON_LV_META] = {RANGE_META},
    [JSON_LV_REF] = {RANGE_REF},
    [JSON_LV_RESULT] = {RANGE_RESULT},
    [JSON_LV_RESULT_META] = {RANGE_RESULT_META},
    [JSON_LV_ERROR] = {RANGE_ERROR},
};

static unsigned char
fold_ascii(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c | 0x20) : c;
}

/* Equal under simple case folding. Beside ASCII only U+017F and U+212A fold to an
 * ASCII letter. */
static bool
equals_folded(const unsigned char *key, size_t len, const struct slot_row *row)
{
	size_t i = 0, k;
	unsigned char c;

	if (len < row->len)
		return false;
	for (k = 0; k < row->len; k++) {
		if (i >= len)
			return false;
		c = fold_ascii(key[i]);
		if (len - i >= 2 && memcmp(key + i, "\xc5\xbf", 2) == 0) {
			c = 's';
			i++;
		} else if (len - i >= 3 && memcmp(key + i, "\xe2\x84\xaa", 3) == 0) {
			c = 'k';
			i += 2;
		}
		if (c != fold_ascii((unsigned char)row->key[k]))
			return false;
		i++;
	}
	return i == len;
}

/* Most keys are told apart from a row's by the first byte. What is not ASCII may be
 * longer than what it folds to, never shorter. */
static bool
may_fold(const unsigned char *key, size_t len, const struct slot_row *row)
{
	if (len < row->len)
		return false;
	return key[0] >= 0x80 ||
	       fold_ascii(key[0]) == fold_ascii((unsigned char)row->key[0]);
}

enum json_level
slot_inner(enum json_slot slot)
{
	return (enum json_level)rows[slot].inner;
}

static void
note_seen(struct json_scan *s, unsigned slot)
{
	uint64_t bit = UINT64_C(1) << slot;

	if ((s->st.seen & bit) && rows[slot].routes)
		s->msg->duplicate = true;
	s->st.seen |= bit;
}

/* A key that is none of ours may yet be taken for one. */
static __attribute__((noinline)) void
note_variant(
    struct json_scan *s, struct slot_range r, const unsigned char *key, size_t len)
{
	for (unsigned i = r.first; i <= r.last; i++) {
		if (may_fold(key, len, &rows[i]) && equals_folded(key, len, &rows[i])) {
			note_seen(s, i);
			break;
		}
	}
}

enum json_slot
slot_of_key(struct json_scan *s, const unsigned char *key, size_t len)
{
	struct slot_range r = ranges[s->st.level];
	unsigned i;

	for (i = r.first; i <= r.last; i++) {
		if (rows[i].len != len || (unsigned char)rows[i].key[0] != key[0] ||
		    memcmp(rows[i].key, key, len) != 0)
			continue;
		note_seen(s, i);
		if (s->msg->slot[i].len > 0)
			return JSON_SLOT_NONE;
		s->msg->key_off[i] = s->st.key_off;
		return (enum json_slot)i;
	}
	note_variant(s, r, key, len);
	return JSON_SLOT_NONE;
}
