/* SPDX-License-Identifier: MIT */
/* The edits of a label by name, so that a table can say what is put where. */
#ifndef LABEL_NAMES_H
#define LABEL_NAMES_H

#include "label_rig.h"

#include <stdio.h>

static inline bool
rig_has(const struct json_edit *e, const char *words)
{
	return memmem(e->put, e->put_len, words, strlen(words)) != NULL;
}

static inline bool
rig_is_in(const struct rig *r, const struct json_edit *e, struct jtext t)
{
	const char *at = r->message.data + e->off;

	return t.n > 0 && at > t.p && at < t.p + t.n;
}

/* In which element of content; -1: none. */
static inline int
rig_block_of(const struct rig *r, const struct json_edit *e)
{
	struct jtext result = jtext_of(r->message.data, r->json.slot[JSON_RESULT]), value;
	struct json_iter it;

	json_iter_init(&it, json_member(result, "content"));
	for (int i = 0; json_next_element(&it, &value); i++) {
		if (rig_is_in(r, e, value))
			return i;
	}
	return -1;
}

static inline void
rig_name(const struct rig *r, const struct json_edit *e, char name[16])
{
	struct jtext result = jtext_of(r->message.data, r->json.slot[JSON_RESULT]);
	int block = rig_block_of(r, e);

	const char *is = NULL;

	if (e->len > 0 || rig_has(e, ",\"isError\":"))
		is = "flip";
	else if (block >= 0)
		snprintf(name, 16, "text%d", block);
	else if (rig_is_in(r, e, json_member(result, "structuredContent")))
		is = e->put[0] == '\\' ? "scstr" : "sc";
	else if (rig_has(e, "\"io.github.mcpvisor/"))
		is = "meta";
	else if (rig_has(e, "\"text\":\"{") || rig_has(e, "\"text\":\"["))
		is = "mirror";
	else
		is = rig_has(e, "GraphQL request failed") ? "errtext" : "block";
	if (is != NULL)
		snprintf(name, 16, "%s", is);
}

/* In one order, whatever theirs in the message. */
static inline void
rig_put_edits(const struct rig *r, struct buf *out)
{
	static const char *const order[] = {
	    "flip", "scstr", "sc", "text", "block", "mirror", "errtext", "meta"};
	char name[16];

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		for (unsigned k = 0; k < r->l.edits.n; k++) {
			rig_name(r, &r->l.edits.e[k], name);
			if (strncmp(name, order[i], strlen(order[i])) != 0 ||
			    (strcmp(order[i], "sc") == 0 && strcmp(name, "sc") != 0))
				continue;
			if (out->len > 0)
				buf_add_char(out, ' ');
			buf_add_str(out, name);
		}
	}
}

static inline void
rig_assert(const struct rig *r, const char *what, const char *reason, const char *edits)
{
	struct buf names;

	buf_init(&names, 1024);
	rig_put_edits(r, &names);
	ck_assert_msg(strcmp(label_reason_text(r->l.reason), reason) == 0 &&
			  strcmp(buf_cstr(&names), edits) == 0,
	    "%s: %s [%s], want %s [%s]", what, label_reason_text(r->l.reason),
	    buf_cstr(&names), reason, edits);
	buf_fini(&names);
}

#endif
