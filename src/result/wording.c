/* SPDX-License-Identifier: MIT */
/*
 * The words of our own errors.
 *
 * Driven by: front. Pure: writes into a buf and knows no state.
 * Invariants: every object is valid JSON whatever a peer named; what a peer named is cut
 * at 64 bytes in a sentence, its control characters escaped, and what data repeats as it
 * was spelled is bounded too; no path of this host gets into a sentence.
 */
#include "mcpvisor/wording.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/shown.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* As many bytes hold more than is shown of any name: an escape of six bytes is one at
 * least. */
#define NAME_RAW_BYTES ((size_t)(SHOWN_BYTES + 4) * 6)
#define DETAIL_BYTES   256

#define TASKS_EXTENSION_NAME "io.modelcontextprotocol/tasks"
/* A URI that we route by, each byte of it an escape, with its quotes. */
#define SPELLED_MAX_BYTES ((size_t)CAP_URI_BYTES * 6 + 2)

static void
wording_put_head(struct buf *out, int code)
{
	buf_addf(out, "{\"code\":%d,\"message\":", code);
}

static void
wording_put_name(struct buf *out, struct jtext name)
{
	struct buf text;

	/* A peer may name anything; only its beginning is of use. */
	if (name.n > NAME_RAW_BYTES)
		name.n = NAME_RAW_BYTES;
	buf_init(&text, NAME_RAW_BYTES);
	if (json_string_decode(name, &text) && text.err == MV_OK)
		shown_put(out, text.data, text.len, SHOWN_BYTES);
	buf_fini(&text);
}

/* What a peer has named, in its own spelling; what is too long to be any good is cut. */
static void
wording_put_spelled(struct buf *out, struct jtext t)
{
	struct buf text;

	if (t.n <= SPELLED_MAX_BYTES) {
		json_put(out, t);
		return;
	}
	buf_init(&text, NAME_RAW_BYTES);
	wording_put_name(&text, t);
	json_put_string(out, text.data, text.len);
	buf_fini(&text);
}

void
wording_put_error(struct buf *out, int code, const char *message)
{
	wording_put_head(out, code);
	json_put_string(out, message, strlen(message));
	buf_add_char(out, '}');
}

/* ---- failures of upstreams ---- */

/* Bytes of the path of this host that stands at p; 0: none does. */
static size_t
detail_path(const char *text, const char *p)
{
	static const char *const starts[] = {"file:/", "../", "./", "~/", "/"};
	size_t n = 0, len;

	if (p > text && strchr(" \t\n\"'`([{<=:,;|", p[-1]) == NULL)
		return 0;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]) && n == 0; i++)
		if (strncmp(p, starts[i], strlen(starts[i])) == 0)
			n = strlen(starts[i]);
	if (n == 0 || (!isalnum((unsigned char)p[n]) &&
			  (p[n] == '\0' || strchr("/._~-$@+%", p[n]) == NULL)))
		return 0;
	/* The rest of a URL without its scheme. */
	if (n == 1 && p[1] == '/')
		return 0;
	len = strcspn(p, " \t\n\"'`)]}>,;|");
	while (len > n && strchr(":.", p[len - 1]) != NULL)
		len--;
	return len;
}

/* Reasons come from operating systems, libraries and confs, which name files. */
static void
wording_put_detail(struct buf *out, const char *detail)
{
	const char *p = detail;
	struct buf clean;
	size_t n;

	buf_init(&clean, DETAIL_BYTES * 2);
	while (*p != '\0' && clean.err == MV_OK) {
		n = detail_path(detail, p);
		if (n > 0)
			buf_add_str(&clean, "(path)");
		else
			buf_add_char(&clean, *p);
		p += n > 0 ? n : 1;
	}
	shown_put(out, clean.data != NULL ? clean.data : "", clean.len, DETAIL_BYTES);
	buf_fini(&clean);
}

static const char *
failure_end(const struct wording_failure *f)
{
	bool may = mv_err_retryable(f->err);

	if (!f->has_acted)
		return may ? "; a retry may help" : "; a retry will not help";
	return may ? "; the call may have had effects, so check before a retry"
		   : "; the call may have had effects, and a retry will not help";
}

static void
wording_put_message(struct buf *out, const struct wording_failure *f)
{
	struct buf m;

	buf_init(&m, 4096);
	if (f->upstream != NULL) {
		buf_add_str(&m, "Upstream ");
		shown_put(&m, f->upstream, strlen(f->upstream), SHOWN_BYTES);
		buf_add_str(&m, ": ");
	}
	buf_add_str(&m, mv_err_text(f->err));
	if (f->err == MV_TIMEOUT && f->limit_ms != 0)
		buf_addf(&m, " of %u ms", f->limit_ms);
	if (f->method != METHOD_UNKNOWN)
		buf_addf(&m, " (%s)", method_name(f->method));
	if (f->detail != NULL && f->detail[0] != '\0') {
		buf_add_str(&m, ": ");
		wording_put_detail(&m, f->detail);
	}
	buf_add_str(&m, failure_end(f));
	json_put_string(out, m.data, m.len);
	buf_fini(&m);
}

void
wording_put_failure(struct buf *out, const struct wording_failure *f)
{
	wording_put_head(out, mv_err_rpc_code(f->err));
	wording_put_message(out, f);
	buf_add_str(out, ",\"data\":{");
	if (f->upstream != NULL) {
		buf_add_str(out, "\"upstream\":");
		json_put_string(out, f->upstream, strlen(f->upstream));
		buf_add_char(out, ',');
	}
	buf_addf(out, "\"reason\":\"%s\",\"retryable\":%s}}", mv_err_reason(f->err),
	    mv_err_retryable(f->err) ? "true" : "false");
}

static void
wording_begin_result(struct buf *out, const char *members)
{
	buf_addf(out, "{%s\"content\":[{\"type\":\"text\",\"text\":", members);
}

static void
wording_end_result(struct buf *out)
{
	buf_add_str(out, "}],\"isError\":true}");
}

void
wording_put_failure_result(
    struct buf *out, const char *members, const struct wording_failure *f)
{
	wording_begin_result(out, members);
	wording_put_message(out, f);
	wording_end_result(out);
}

void
wording_put_error_result(
    struct buf *out, const char *members, int64_t code, struct jtext message)
{
	wording_begin_result(out, members);
	buf_add_char(out, '"');
	if (jtext_type(message) != '"')
		message.n = 0;
	if (message.n > 2)
		buf_add(out, message.p + 1, message.n - 2);
	buf_addf(
	    out, "%s(JSON-RPC error %lld)\"", message.n > 2 ? " " : "", (long long)code);
	wording_end_result(out);
}

void
wording_put_unknown(struct buf *out, enum method m, struct jtext name)
{
	/* What each method names, and the member that names it. */
	static const struct {
		enum method method;
		const char *noun, *member;
	} nouns[] = {
	    {METHOD_TOOLS_CALL, "tool", "params.name"},
	    {METHOD_PROMPTS_GET, "prompt", "params.name"},
	    {METHOD_COMPLETE, "reference", "params.ref"},
	    {METHOD_RESOURCES_READ, "resource", "params.uri"},
	    {METHOD_SUBSCRIBE, "resource", "params.uri"},
	    {METHOD_UNSUBSCRIBE, "resource", "params.uri"},
	};
	const char *noun = "name", *member = "params";
	struct buf text;

	for (size_t i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++)
		if (nouns[i].method == m) {
			noun = nouns[i].noun;
			member = nouns[i].member;
		}
	buf_init(&text, 4096);
	if (jtext_type(name) == '"') {
		buf_addf(&text, "Unknown %s: ", noun);
		wording_put_name(&text, name);
	} else {
		buf_addf(&text, "Unknown %s: %s must be %s", noun, member,
		    m == METHOD_COMPLETE ? "an object with type ref/prompt and name, or "
					   "ref/resource and uri"
					 : "a string");
		buf_add_str(&text, ". Retrying unchanged will fail.");
	}
	wording_put_head(out, -32602);
	json_put_string(out, text.data, text.len);
	buf_add_char(out, '}');
	buf_fini(&text);
}

void
wording_put_no_resource(struct buf *out, int code, struct jtext uri)
{
	struct buf text;

	buf_init(&text, 4096);
	buf_add_str(&text, "Resource not found: ");
	wording_put_name(&text, uri);
	wording_put_head(out, code);
	json_put_string(out, text.data, text.len);
	buf_add_str(out, ",\"data\":{\"uri\":");
	wording_put_spelled(out, uri);
	buf_add_str(out, "}}");
	buf_fini(&text);
}

void
wording_put_revision(struct buf *out, const char *supported, struct jtext requested)
{
	struct buf text;

	buf_init(&text, 4096);
	buf_add_str(&text, "Unsupported protocol version: ");
	wording_put_name(&text, requested);
	buf_add_str(&text, "; send one of data.supported");
	wording_put_head(out, -32022);
	json_put_string(out, text.data, text.len);
	buf_fini(&text);
	buf_add_str(out, ",\"data\":{\"supported\":");
	buf_add_str(out, supported);
	buf_add_str(out, ",\"requested\":");
	wording_put_spelled(out, requested);
	buf_add_str(out, "}}");
}

void
wording_put_needed(struct buf *out, unsigned caps)
{
	wording_put_head(out, -32021);
	buf_add_str(out,
	    "\"The upstream has to ask the client for this: declare the client "
	    "capabilities of data.requiredCapabilities to be asked\",\"data\":"
	    "{\"requiredCapabilities\":");
	client_caps_put(out, caps, true);
	buf_add_str(out, "}}");
}

void
wording_put_needs_tasks(struct buf *out)
{
	buf_add_str(out,
	    "{\"code\":-32021,\"message\":\"Tasks are for clients that declare the "
	    "extension " TASKS_EXTENSION_NAME "; declare it and send the request again\","
	    "\"data\":{\"requiredCapabilities\":{\"extensions\":{"
	    "\"" TASKS_EXTENSION_NAME "\":{}}}}}");
}

void
wording_put_recoded(struct buf *out, struct jtext error, int code)
{
	struct json_iter it;
	struct jtext key, value, was = {NULL, 0};
	const char *sep = "{";
	bool has_data = false;

	json_iter_init(&it, error);
	while (json_next_member(&it, &key, &value)) {
		buf_add_str(out, sep);
		sep = ",";
		json_put(out, key);
		buf_add_char(out, ':');
		if (json_string_is(key, "code")) {
			was = value;
			buf_addf(out, "%d", code);
		} else {
			json_put(out, value);
		}
		has_data |= json_string_is(key, "data");
	}
	if (!has_data && was.n > 0) {
		buf_add_str(out, ",\"data\":{\"upstreamCode\":");
		json_put(out, was);
		buf_add_char(out, '}');
	}
	buf_add_char(out, '}');
}

void
wording_put_call_again(struct buf *out, const char *members)
{
	buf_addf(out,
	    "{%s\"content\":[{\"type\":\"text\",\"text\":\"The requestState of this "
	    "call has expired or was used before. Call the tool again without it.\"}],"
	    "\"isError\":true}",
	    members);
}
