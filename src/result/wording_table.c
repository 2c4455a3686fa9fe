/* SPDX-License-Identifier: MIT */
/*
 * The sentences of our own errors that need no more than a value.
 *
 * Driven by: whoever refuses something. Pure.
 * Invariants: of a value 64 bytes are shown at most, and no control character of it.
 */
#include "mcpvisor/wording_table.h"

#include "mcpvisor/shown.h"

#include <stdio.h>
#include <string.h>

enum wording_retry {
#define X(id, end) RETRY_##id,
	WORDING_RETRIES(X)
#undef X
};

struct wording_row {
	const char *text;
	int code;
	enum wording_retry retry;
};

static const struct wording_row *
wording_row_of(enum wording w)
{
	static const struct wording_row rows[WORDING_MAX] = {
	    [WORDING_NONE] = {"", -32603, RETRY_SAID},
#define X(id, number, end, words)                                                        \
	[WORDING_##id] = {.text = (words), .code = (number), .retry = RETRY_##end},
	    WORDINGS(X)
#undef X
	};

	return &rows[(unsigned)w < WORDING_MAX ? (unsigned)w : (unsigned)WORDING_NONE];
}

static void
wording_put_sentence(struct buf *out, enum wording w, struct jtext value)
{
	static const char *const ends[] = {
#define X(id, end) [RETRY_##id] = (end),
	    WORDING_RETRIES(X)
#undef X
	};
	const struct wording_row *row = wording_row_of(w);
	const char *gap = strchr(row->text, '%');

	if (gap != NULL) {
		buf_add(out, row->text, (size_t)(gap - row->text));
		shown_put_spelled(out, value, SHOWN_BYTES);
		buf_add_str(out, gap + 1);
	} else {
		buf_add_str(out, row->text);
		if (value.n > 0 && row->retry != RETRY_SAID) {
			buf_add_str(out, "; got ");
			shown_put_spelled(out, value, SHOWN_BYTES);
		}
	}
	buf_add_str(out, ends[row->retry]);
}

void
wording_put(struct buf *out, enum wording w, struct jtext value)
{
	struct buf text;

	buf_init(&text, WORDING_BYTES);
	wording_put_sentence(&text, w, value);
	buf_addf(out, "{\"code\":%d,\"message\":", wording_code(w));
	json_put_string(out, text.data, text.len);
	buf_add_char(out, '}');
	/* Half a sentence is none. */
	if (text.err != MV_OK && out->err == MV_OK)
		out->err = text.err;
	buf_fini(&text);
}

void
wording_print(char *to, size_t size, enum wording w, struct jtext value)
{
	struct buf text;

	buf_init(&text, WORDING_BYTES);
	wording_put_sentence(&text, w, value);
	(void)snprintf(to, size, "%s", buf_cstr(&text) != NULL ? text.data : "");
	buf_fini(&text);
}

const char *
wording_text(enum wording w)
{
	return wording_row_of(w)->text;
}

int
wording_code(enum wording w)
{
	return wording_row_of(w)->code;
}
