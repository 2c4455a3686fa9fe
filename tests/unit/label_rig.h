/* SPDX-License-Identifier: MIT */
/*
 * Results in a short form, tools by what matters of them, and edits by name.
 *
 * A result is "T:x" (a text x), "S:x" (structuredContent x and no content), "B:x" (both)
 * or "R:x" (x itself); what follows a '|' are more members. In it ' stands for ", what is
 * between two @ is escaped as in a string, and $E is an error, $P an answer with data and
 * errors, $p the same on several lines, $F one whose data is all null, $N one without
 * data, $W our sentence, $X 3,000 bytes.
 */
#ifndef LABEL_RIG_H
#define LABEL_RIG_H

#include "label_check.h"

#include <check.h>
#include <stdlib.h>

#define PLAIN "{'inputSchema':{'type':'object'}}"
#define NOCAT NULL
#define OPEN  OUTPUT("{'type':'object','properties':{'data':{},'errors':{}}}")
#define CLOSED                                                                           \
	OUTPUT("{'type':'object','properties':{'data':{},'errors':{}},"                  \
	       "'additionalProperties':false}")
#define EXEC	    INPUT_OF("'query':{'type':'string'},'variables':{'type':'object'}")
#define INPUT_QUERY INPUT_OF("'url':{},'query':{'type':'string'},'variables':{}")
#define INPUT(name) INPUT_OF("'" name "':{'type':'string'}")
#define INPUT_OF(p) "{'inputSchema':{'type':'object','properties':{" p "}}}"
#define OUTPUT(s)   "{'inputSchema':{'type':'object'},'outputSchema':" s "}"
#define RIG_SENTENCE                                                                     \
	"Partial result: 1 field error(s) \xe2\x80\x94 some fields are missing or "      \
	"null; "                                                                         \
	"see `errors`."

struct rig {
	struct buf result, message, definition, after;
	struct json_msg json;
	struct label_opts o;
	struct label l;
};

static inline void
rig_init(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	buf_init(&r->result, CAP_MESSAGE_BYTES);
	buf_init(&r->message, CAP_MESSAGE_BYTES);
	buf_init(&r->definition, CAP_MESSAGE_BYTES);
	buf_init(&r->after, CAP_MESSAGE_BYTES);
	label_init(&r->l);
}

static inline void
rig_fini(struct rig *r)
{
	label_fini(&r->l);
	buf_fini(&r->after);
	buf_fini(&r->definition);
	buf_fini(&r->message);
	buf_fini(&r->result);
}

/* Without the quotes. */
static inline void
rig_escape(struct buf *out, const struct buf *text)
{
	struct buf quoted;

	buf_init(&quoted, CAP_MESSAGE_BYTES);
	json_put_string(&quoted, text->data, text->len);
	buf_add(out, quoted.data + 1, quoted.len - 2);
	buf_fini(&quoted);
}

static inline void
rig_put_named(struct buf *out, char name)
{
	static const char error[] = "{\"message\":\"boom\",\"path\":[\"a\"]}";

	switch (name) {
	case 'E':
		buf_add_str(out, error);
		break;
	case 'P':
		buf_addf(out, "{\"data\":{\"a\":null,\"b\":1},\"errors\":[%s]}", error);
		break;
	case 'p':
		buf_addf(out,
		    "{\n  \"data\": {\n    \"a\": null,\n    \"b\": 1\n  },\n"
		    "  \"errors\": [\n    %s\n  ]\n}",
		    error);
		break;
	case 'F':
		buf_addf(out, "{\"data\":{\"a\":null},\"errors\":[%s]}", error);
		break;
	case 'N':
		buf_addf(out, "{\"data\":null,\"errors\":[%s]}", error);
		break;
	case 'W':
		buf_add_str(out, RIG_SENTENCE);
		break;
	case 'X':
		for (int i = 0; i < 3000; i++)
			buf_add_char(out, 'x');
		break;
	default:
		buf_addf(out, "$%c", name);
	}
}

static inline void
rig_expand(struct buf *out, const char *s, const char *end)
{
	struct buf inner;

	buf_init(&inner, CAP_MESSAGE_BYTES);
	for (; s < end; s++) {
		const char *at = memchr(s + 1, '@', (size_t)(end - s - 1));

		if (*s == '@' && at != NULL) {
			rig_expand(&inner, s + 1, at);
			rig_escape(out, &inner);
			buf_reset(&inner);
			s = at;
		} else if (*s == '$' && s + 1 < end) {
			rig_put_named(out, *++s);
		} else {
			buf_add_char(out, *s == '\'' ? '"' : *s);
		}
	}
	buf_fini(&inner);
}

static inline void
rig_put_text(struct buf *out, const struct buf *text)
{
	buf_add_str(out, "{\"content\":[{\"type\":\"text\",\"text\":");
	json_put_string(out, text->data, text->len);
	buf_add_str(out, "}]");
}

static inline void
rig_put_result(struct buf *out, const char *form)
{
	const char *bar = strchr(form, '|'), *end = form + strlen(form);
	struct buf x;

	buf_init(&x, CAP_MESSAGE_BYTES);
	rig_expand(&x, form + 2, bar != NULL ? bar : end);
	if (form[0] == 'R')
		buf_add(out, x.data, x.len - 1);
	else if (form[0] == 'S')
		buf_add_str(out, "{\"content\":[]");
	else
		rig_put_text(out, &x);
	if (form[0] == 'S' || form[0] == 'B') {
		buf_add_str(out, ",\"structuredContent\":");
		buf_add(out, x.data, x.len);
	}
	if (bar != NULL)
		rig_expand(out, bar + 1, end);
	buf_add_char(out, '}');
	buf_fini(&x);
}

/* "auto", "on deep", "on root=/a", "auto max=9", "auto meta". */
static inline void
rig_set(struct rig *r, const char *mode, const char *tool)
{
	struct label_conf none = {.mode = GRAPHQL_INHERIT};
	const char *root = strstr(mode, "root="), *max = strstr(mode, "max=");

	buf_reset(&r->definition);
	if (tool != NULL)
		rig_expand(&r->definition, tool, tool + strlen(tool));
	label_opts_set(
	    &r->o, &none, NULL, (struct jtext){r->definition.data, r->definition.len});
	r->o.mode = strncmp(mode, "on", 2) == 0	   ? GRAPHQL_ON
		    : strncmp(mode, "off", 3) == 0 ? GRAPHQL_OFF
						   : GRAPHQL_AUTO;
	r->o.is_deep = strstr(mode, "deep") != NULL;
	r->o.is_meta_only = strstr(mode, "meta") != NULL;
	r->o.root = root != NULL ? root + 5 : NULL;
	if (max != NULL)
		r->o.max_bytes = strtoul(max + 4, NULL, 10);
}

/* Labels r->result. */
static inline void
rig_run(struct rig *r)
{
	label_check_wrap(&r->message, r->result.data, r->result.len);
	ck_assert_int_eq(
	    json_scan(&r->json, r->message.data, r->message.len, false), MV_OK);
	label_result(&r->l, &r->o, r->message.data, &r->json);
	label_check_edits(&r->l, r->message.data, &r->json);
	label_check_apply(&r->after, r->message.data, &r->json, &r->l);
}

static inline void
rig_label(struct rig *r, const char *form)
{
	buf_reset(&r->result);
	rig_put_result(&r->result, form);
	rig_run(r);
}

#endif
