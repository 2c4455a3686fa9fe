/* SPDX-License-Identifier: MIT */
/*
 * What is repeated of the errors of a GraphQL answer.
 *
 * Owns: nothing. Driven by: label_find.
 * Invariants: every text is cut on a character's boundary and is without control
 * characters; how much of an error is read does not depend on its length.
 */
#include "mcpvisor/label.h"

#include "label_priv.h"

#include "mcpvisor/utf8.h"

#include <string.h>

#define MESSAGE_MAX_BYTES 200
#define PATH_MAX_STEPS	  8

/* A byte of one, or a space for all of a control character. How many were taken. */
static size_t
put_character(struct buf *out, const char *p, size_t n)
{
	unsigned char c = (unsigned char)p[0];

	if (c == 0xc2 && n > 1 && (unsigned char)p[1] < 0xa0) {
		buf_add_char(out, ' ');
		return 2;
	}
	buf_add_char(out, c < 0x20 || c == 0x7f ? ' ' : *p);
	return 1;
}

/* The beginning of a string, or a number as it is written. */
static void
put_cut(struct buf *out, struct jtext t, size_t max)
{
	struct buf text;
	size_t n, len;

	if (jtext_type(t) != '"') {
		buf_add(out, t.p, utf8_cut(t.p, t.n, max));
		return;
	}
	/* An escape of six bytes is one byte at least, and of what is cut here in the
	 * middle nothing is left then. */
	if (t.n > (max + 4) * 6)
		t.n = (max + 4) * 6;
	buf_init(&text, t.n);
	if (json_string_decode(t, &text) && text.err == MV_OK) {
		n = utf8_cut(text.data, text.len, max);
		for (size_t i = 0; i < n; i += len)
			len = put_character(out, text.data + i, n - i);
	} else {
		out->err = text.err;
	}
	buf_fini(&text);
}

static bool
is_number(struct jtext t)
{
	char c = jtext_type(t);

	return c == '-' || (c >= '0' && c <= '9');
}

static void
put_code(struct buf *out, struct jtext error)
{
	struct jtext from[] = {
	    json_member(json_member(error, "extensions"), "code"),
	    json_member(error, "errorType"),
	    json_member(error, "type"),
	};

	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		if ((from[i].n > 2 && from[i].p[0] == '"') || is_number(from[i])) {
			put_cut(out, from[i], LABEL_TEXT_BYTES - 1);
			return;
		}
	}
}

static void
put_path(struct buf *out, struct jtext error)
{
	struct jtext path = json_member(error, "path"), step;
	struct json_iter it;

	if (jtext_type(path) != '[')
		return;
	json_iter_init(&it, path);
	for (int i = 0; i < PATH_MAX_STEPS && json_next_element(&it, &step); i++) {
		if (i > 0)
			buf_add_char(out, '.');
		if (jtext_type(step) == '"' || is_number(step))
			put_cut(out, step, LABEL_TEXT_BYTES - 1);
	}
}

static void
take_text(struct buf *b, char text[LABEL_TEXT_BYTES])
{
	size_t n = b->err == MV_OK ? utf8_cut(b->data, b->len, LABEL_TEXT_BYTES - 1) : 0;

	if (n > 0)
		memcpy(text, b->data, n);
	text[n] = '\0';
	buf_reset(b);
}

void
label_error_read(
    struct jtext error, char code[LABEL_TEXT_BYTES], char path[LABEL_TEXT_BYTES])
{
	struct buf b;

	buf_init(&b, (size_t)(PATH_MAX_STEPS + 1) * LABEL_TEXT_BYTES);
	put_code(&b, error);
	take_text(&b, code);
	put_path(&b, error);
	take_text(&b, path);
	buf_fini(&b);
}

void
label_put_failure(struct buf *out, const struct label_verdict *v)
{
	char code[LABEL_TEXT_BYTES], path[LABEL_TEXT_BYTES];

	buf_addf(out, "GraphQL request failed: %u error(s), no data.", v->n);
	for (unsigned i = 0; i < LABEL_ERRORS_SHOWN && i < v->n; i++) {
		struct jtext error = v->first[i], message = json_member(error, "message");

		buf_addf(out, " [%u]", i + 1);
		if (jtext_type(error) == '"')
			message = error;
		if (jtext_type(message) == '"') {
			buf_add_char(out, ' ');
			put_cut(out, message, MESSAGE_MAX_BYTES);
		}
		label_error_read(error, code, path);
		if (path[0] != '\0')
			buf_addf(out, " at %s", path);
		if (code[0] != '\0')
			buf_addf(out, " (%s)", code);
	}
}
