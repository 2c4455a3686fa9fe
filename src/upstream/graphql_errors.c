/* SPDX-License-Identifier: MIT */
/*
 * The errors of a GraphQL answer as a model reads them: lines, what can be done about
 * them, and their JSON without what servers tell of their insides.
 *
 * Owns: nothing. Driven by: graphql_answer.c.
 * Invariants: errors is an array of text that the scanner has accepted, or absent; what a
 * peer wrote stands on one line and is cut.
 */
#include "upstream_graphql_priv.h"

#include "mcpvisor/utf8.h"

#include <string.h>
#include <strings.h>

#define ERRORS_SHOWN  5
#define MESSAGE_BYTES 400
#define PATH_BYTES    200
#define CODE_BYTES    64
#define WORD_BYTES    (16u * 1024) /* of a value that is decoded */
#define JSON_DEPTH    24	   /* what is deeper is left out */

/* ---- text of peers ---- */

/* What may not stand on a line: C0, DEL, C1 and what breaks lines. */
static bool
char_is_control(const unsigned char *p, size_t len)
{
	if (len == 1)
		return p[0] < 0x20 || p[0] == 0x7f;
	if (len == 2)
		return p[0] == 0xc2 && p[1] < 0xa0;
	return len == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9);
}

void
gql_put_line(struct buf *out, const char *p, size_t n, size_t max)
{
	const unsigned char *s = (const unsigned char *)p;
	size_t start = out->len;

	for (size_t i = 0, len; i < n; i += len) {
		size_t known = utf8_length(s + i, n - i);

		len = known == 0 ? 1 : known;
		if (out->len - start + len + 2 > max) {
			buf_add_str(out, "...");
			return;
		}
		if (known == 0)
			buf_add_char(out, '?');
		else if (char_is_control(s + i, len))
			buf_add_char(out, ' ');
		else
			buf_add(out, p + i, len);
	}
}

/* Decodes a string or takes a number as it is; nothing for the rest. */
static void
word_put(struct buf *out, struct jtext t, size_t max)
{
	struct buf text;

	if (jtext_type(t) == '-' || (jtext_type(t) >= '0' && jtext_type(t) <= '9')) {
		gql_put_line(out, t.p, t.n, max);
		return;
	}
	buf_init(&text, CAP_MESSAGE_BYTES);
	if (json_string_decode(t, &text) && text.err == MV_OK)
		gql_put_line(out, text.data, text.len, max);
	buf_fini(&text);
}

/* Bytes of the first line of a message: what follows may be a trace of calls. */
static size_t
first_line_length(const struct buf *text)
{
	const char *end = text->len > 0 ? memchr(text->data, '\n', text->len) : NULL;

	return end != NULL ? (size_t)(end - text->data) : text->len;
}

/* The first line of a message, without its full stop. */
static void
message_put(struct buf *out, struct jtext t)
{
	struct buf text;
	size_t n;

	buf_init(&text, CAP_MESSAGE_BYTES);
	if (json_string_decode(t, &text) && text.err == MV_OK && text.len > 0) {
		n = first_line_length(&text);
		while (n > 0 && strchr(". \r\t", text.data[n - 1]) != NULL)
			n--;
		gql_put_line(out, text.data, n, MESSAGE_BYTES);
	} else {
		buf_add_str(out, "an error without a message");
	}
	buf_fini(&text);
}

static void
path_put(struct buf *out, struct jtext path)
{
	struct json_iter it;
	struct jtext step;
	size_t start = out->len;

	if (jtext_type(path) != '[')
		return;
	json_iter_init(&it, path);
	while (json_next_element(&it, &step) && out->len - start < PATH_BYTES) {
		buf_add_str(out, out->len == start ? "field " : ".");
		word_put(out, step, PATH_BYTES);
	}
	if (out->len > start)
		buf_add_str(out, ": ");
}

/* ---- codes ---- */

enum retry {
	RETRY_OURS,	 /* the operation is wrong */
	RETRY_OTHERWISE, /* the arguments are */
	RETRY_NEVER,
	RETRY_LATER,
	RETRY_OTHER_ID,
	RETRY_ONCE
};

static const struct {
	const char *code;
	enum retry retry;
} codes[] = {
    {"GRAPHQL_PARSE_FAILED", RETRY_OURS},
    {"GRAPHQL_VALIDATION_FAILED", RETRY_OURS},
    {"OPERATION_RESOLUTION_FAILURE", RETRY_OURS},
    {"BAD_USER_INPUT", RETRY_OTHERWISE},
    {"BAD_REQUEST", RETRY_OTHERWISE},
    {"ARGUMENT_VALIDATION", RETRY_OTHERWISE},
    {"validation-failed", RETRY_OTHERWISE},
    {"UNAUTHENTICATED", RETRY_NEVER},
    {"Unauthorized", RETRY_NEVER},
    {"invalid-jwt", RETRY_NEVER},
    {"FORBIDDEN", RETRY_NEVER},
    {"ACCESS_DENIED", RETRY_NEVER},
    {"access-denied", RETRY_NEVER},
    {"THROTTLED", RETRY_LATER},
    {"RATE_LIMITED", RETRY_LATER},
    {"TOO_MANY_REQUESTS", RETRY_LATER},
    {"NOT_FOUND", RETRY_OTHER_ID},
    {"INTERNAL_SERVER_ERROR", RETRY_ONCE},
    {"DOWNSTREAM_SERVICE_ERROR", RETRY_ONCE},
    {"TIMEOUT", RETRY_ONCE},
};

/* Places of a code, best first; those of extensions where that is set. */
static const struct {
	bool is_extension;
	const char *key;
} code_places[] = {
    {true, "code"},
    {false, "errorType"},
    {true, "errorType"},
    {false, "type"},
    {true, "type"},
};

static struct jtext
code_at(struct jtext error, size_t place)
{
	struct jtext of = error;

	if (code_places[place].is_extension)
		of = json_member(error, "extensions");
	return json_member(of, code_places[place].key);
}

static bool
code_read(struct jtext t, enum retry *retry)
{
	struct buf text;
	const char *s;
	bool found = false;

	buf_init(&text, WORD_BYTES);
	s = json_string_decode(t, &text) ? buf_cstr(&text) : NULL;
	for (size_t i = 0; s != NULL && !found && i < sizeof(codes) / sizeof(codes[0]);
	     i++) {
		found = strcasecmp(s, codes[i].code) == 0;
		if (found)
			*retry = codes[i].retry;
	}
	buf_fini(&text);
	return found;
}

static bool
error_read_retry(struct jtext error, enum retry *retry)
{
	for (size_t i = 0; i < sizeof(code_places) / sizeof(code_places[0]); i++)
		if (code_read(code_at(error, i), retry))
			return true;
	return false;
}

static void
code_put(struct buf *out, struct jtext error)
{
	for (size_t i = 0; i < sizeof(code_places) / sizeof(code_places[0]); i++) {
		struct jtext code = code_at(error, i);

		if (jtext_type(code) != '"' || code.n <= 2)
			continue;
		buf_add_str(out, " (");
		word_put(out, code, CODE_BYTES);
		buf_add_char(out, ')');
		return;
	}
}

/* ---- lines ---- */

unsigned
gql_count(struct jtext array)
{
	struct json_iter it;
	struct jtext e;
	unsigned n = 0;

	if (jtext_type(array) != '[')
		return 0;
	json_iter_init(&it, array);
	while (json_next_element(&it, &e))
		n++;
	return n;
}

void
gql_put_error_lines(struct buf *out, struct jtext errors)
{
	unsigned n = gql_count(errors), i = 0;
	struct json_iter it;
	struct jtext e;

	if (n == 0)
		return;
	json_iter_init(&it, errors);
	for (; i < ERRORS_SHOWN && json_next_element(&it, &e); i++) {
		if (i > 0)
			buf_add_char(out, '\n');
		path_put(out, json_member(e, "path"));
		message_put(out, jtext_type(e) == '"' ? e : json_member(e, "message"));
		code_put(out, e);
		buf_add_char(out, '.');
	}
	if (n > i)
		buf_addf(out, "\nand %u more.", n - i);
}

static void
retry_put_once(struct buf *out, const struct gql_asked *q, const struct gql_exchange *x)
{
	/* By its status the request is at fault, whatever it does not say. */
	bool is_request = x->status >= 400 && x->status < 500 && x->status != 408;

	if (q->op == GRAPHQL_MUTATION)
		buf_add_str(out,
		    "The change may or may not have been applied; verify before "
		    "retrying.");
	else if (is_request)
		buf_add_str(out, "Retrying unchanged will fail; change the arguments.");
	else
		buf_add_str(out, "The server failed; retrying once may succeed.");
}

static void
retry_put_later(struct buf *out, const struct gql_exchange *x)
{
	if (x->retry_after_s != 0)
		buf_addf(out, "Rate limited; retry after %u s.", x->retry_after_s);
	else
		buf_add_str(out, "Rate limited; retry later.");
}

void
gql_put_retry(struct buf *out, const struct gql_asked *q, const struct gql_exchange *x,
    struct jtext errors)
{
	static const char *const sentences[] = {
	    [RETRY_OURS] = "This is a fault in the gateway's operation, not in the "
			   "arguments; retrying will not help.",
	    [RETRY_OTHERWISE] = "Retrying unchanged will fail; change the arguments.",
	    [RETRY_NEVER] = "Not permitted with the current credentials; retrying will "
			    "not help.",
	    [RETRY_LATER] = NULL,
	    [RETRY_OTHER_ID] =
		"The object does not exist or is not visible; check the id.",
	    [RETRY_ONCE] = NULL,
	};
	enum retry retry = RETRY_ONCE;
	struct json_iter it;
	struct jtext first;

	if (jtext_type(errors) == '[') {
		json_iter_init(&it, errors);
		if (json_next_element(&it, &first))
			(void)error_read_retry(first, &retry);
	}
	if (retry == RETRY_OURS && q->is_execute)
		buf_add_str(out, "Change the query.");
	else if (retry == RETRY_LATER)
		retry_put_later(out, x);
	else if (retry == RETRY_ONCE)
		retry_put_once(out, q, x);
	else
		buf_add_str(out, sentences[retry]);
}

/* ---- JSON ---- */

/* What servers tell of their insides. */
static bool
key_is_inside(struct jtext key)
{
	static const char *const keys[] = {"stacktrace", "stackTrace", "stack",
	    "exception", "debugMessage", "trace", "traceback"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (json_string_is(key, keys[i]))
			return true;
	return false;
}

static void compact_put(struct buf *out, struct jtext v, unsigned depth);

static void
compact_put_message(struct buf *out, struct jtext t)
{
	struct buf text;

	buf_init(&text, CAP_MESSAGE_BYTES);
	if (json_string_decode(t, &text) && text.err == MV_OK &&
	    first_line_length(&text) < text.len)
		json_put_string(out, text.data, first_line_length(&text));
	else
		json_put(out, t);
	buf_fini(&text);
}

static void
compact_put_object(struct buf *out, struct jtext v, unsigned depth)
{
	struct json_iter it;
	struct jtext key, value;
	bool any = false;

	buf_add_char(out, '{');
	json_iter_init(&it, v);
	while (json_next_member(&it, &key, &value) && out->err == MV_OK) {
		if (key_is_inside(key))
			continue;
		if (any)
			buf_add_char(out, ',');
		any = true;
		json_put(out, key);
		buf_add_char(out, ':');
		if (jtext_type(value) == '"' && json_string_is(key, "message"))
			compact_put_message(out, value);
		else
			compact_put(out, value, depth + 1);
	}
	buf_add_char(out, '}');
}

/* Ends early when out is full. */
static void
compact_put(struct buf *out, struct jtext v, unsigned depth)
{
	struct json_iter it;
	struct jtext e;
	bool any = false;

	if (jtext_type(v) != '{' && jtext_type(v) != '[') {
		json_put(out, v);
		return;
	}
	if (depth >= JSON_DEPTH) {
		buf_add_str(out, "null");
		return;
	}
	if (jtext_type(v) == '{') {
		compact_put_object(out, v, depth);
		return;
	}
	buf_add_char(out, '[');
	json_iter_init(&it, v);
	while (json_next_element(&it, &e) && out->err == MV_OK) {
		if (any)
			buf_add_char(out, ',');
		any = true;
		compact_put(out, e, depth + 1);
	}
	buf_add_char(out, ']');
}

/* Whole errors alone, and none is passed over. */
void
gql_put_error_json(struct buf *out, struct jtext errors, size_t max)
{
	struct buf one;
	struct json_iter it;
	struct jtext e;
	bool any = false;

	if (gql_count(errors) == 0)
		return;
	buf_init(&one, max);
	json_iter_init(&it, errors);
	while (json_next_element(&it, &e)) {
		buf_reset(&one);
		compact_put(&one, e, 0);
		if (one.err != MV_OK || out->len + one.len + 3 > max)
			break;
		buf_add_str(out, any ? "," : "\n[");
		any = true;
		buf_add(out, one.data, one.len);
	}
	if (any)
		buf_add_char(out, ']');
	buf_fini(&one);
}
