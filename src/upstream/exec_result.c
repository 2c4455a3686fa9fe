/* SPDX-License-Identifier: MIT */
/*
 * The result that the end of a program is: what it wrote and how it ended, in the words
 * of a tool's answer.
 *
 * Owns: nothing. Driven by: upstream_exec.c, upstream_shell.c.
 * Invariants: nothing is left out without a note; what is no failure of the program is
 * none of the result; structuredContent is what was printed, digit by digit.
 */
#include "upstream_exec_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mac.h"
#include "mcpvisor/utf8.h"

#include <string.h>

#define SHOWN_BYTES 200 /* of what should have been JSON */

struct result {
	struct buf *out;
	const struct exec_rules *rules;
	const struct run_end *end;
	struct run_text text; /* stdout, to be shown */
	bool is_cut, is_error;
	unsigned n_blocks;
	size_t n_bad; /* bytes that are no UTF-8 */
};

static void
result_put_block(struct result *r, const char *p, size_t n)
{
	buf_add_str(r->out, r->n_blocks++ > 0 ? ",{" : "{");
	buf_add_str(r->out, "\"type\":\"text\",\"text\":");
	json_put_string(r->out, p, n);
	buf_add_char(r->out, '}');
}

/* A block of our own words. */
static void
result_put_note(struct result *r, const struct buf *text)
{
	if (text->err == MV_OK)
		result_put_block(r, text->data, text->len);
}

static struct run_text
text_trim(struct run_text t)
{
	while (t.n > 0 && t.p[t.n - 1] == '\n')
		t.n--;
	return t;
}

/* Without the first bytes of a character whose others were cut off. */
static struct run_text
text_cut(struct run_text t)
{
	for (size_t back = 1; back <= 3 && back <= t.n; back++) {
		const unsigned char *p = (const unsigned char *)t.p + t.n - back;
		unsigned char lo, hi;
		unsigned len = utf8_lead(*p, &lo, &hi);

		if (len > back)
			t.n -= back;
		if (len > 0)
			break;
	}
	return t;
}

/* The same at its beginning. */
static struct run_text
text_cut_front(struct run_text t)
{
	while (t.n > 0 && ((unsigned char)*t.p & 0xc0) == 0x80) {
		t.p++;
		t.n--;
	}
	return t;
}

static size_t
text_count_bad(struct run_text t)
{
	size_t bad = 0;

	for (size_t i = 0; i < t.n;) {
		size_t len = utf8_length((const unsigned char *)t.p + i, t.n - i);

		bad += len == 0;
		i += len > 0 ? len : 1;
	}
	return bad;
}

static void
result_put_text(struct result *r, struct run_text t)
{
	r->n_bad += text_count_bad(t);
	result_put_block(r, t.p, t.n);
}

static struct run_text
result_stderr(const struct result *r)
{
	struct run_text none = {NULL, 0};

	if (r->rules->limits.err != EXEC_STDERR_ON_ERROR)
		return none;
	return text_trim(text_cut_front(r->end->err));
}

static void
put_name(struct buf *text, const struct exec_rules *rules)
{
	buf_addf(text, "Tool '%s' ", rules->tool);
}

static void
put_seconds(struct buf *text, uint32_t ms)
{
	if (ms % 1000 == 0)
		buf_addf(text, "%u s", ms / 1000);
	else if (ms > 1000)
		buf_addf(text, "%u.%03u s", ms / 1000, ms % 1000);
	else
		buf_addf(text, "%u ms", ms);
}

/* ---- what the ends are called ---- */

static void
words_exited(const struct result *r, struct buf *text)
{
	put_name(text, r->rules);
	buf_addf(text, "failed with exit status %d", r->end->status);
}

static void
words_signaled(const struct result *r, struct buf *text)
{
	const char *name = sigabbrev_np(r->end->status);

	put_name(text, r->rules);
	buf_addf(text, "was ended by signal %d", r->end->status);
	if (name != NULL)
		buf_addf(text, " (%s)", name);
}

/* What all have in common that we ended. */
static void
put_stopped(const struct result *r, struct buf *text, const char *advice)
{
	buf_add_str(text, " and was stopped.");
	if (r->text.n > 0)
		buf_add_str(text, " Output so far follows.");
	buf_add_str(text, advice);
	if (r->rules->has_effects)
		buf_add_str(text, " It may have had effects.");
}

static void
words_timed_out(const struct result *r, struct buf *text)
{
	put_name(text, r->rules);
	buf_add_str(text, "did not finish within ");
	put_seconds(text, r->rules->limits.timeout_ms);
	put_stopped(
	    r, text, " Retrying unchanged will probably time out again; ask for less.");
}

static void
words_overflowed(const struct result *r, struct buf *text)
{
	put_name(text, r->rules);
	buf_addf(text, "wrote more than %llu bytes",
	    (unsigned long long)r->rules->limits.output_max);
	put_stopped(r, text, " Retrying unchanged will fail again; ask for less.");
}

/* ---- kinds of output ---- */

static void
result_put_cut(struct result *r)
{
	struct buf note;

	if (!r->is_cut)
		return;
	buf_init(&note, 256);
	buf_addf(&note, "Output cut: kept %zu of at least %llu bytes", r->text.n,
	    (unsigned long long)r->end->out_total);
	result_put_note(r, &note);
	buf_fini(&note);
}

static void
result_put_repaired(struct result *r)
{
	struct buf note;

	if (r->n_bad == 0)
		return;
	buf_init(&note, 256);
	buf_addf(&note,
	    "Output repaired: %zu bytes that are not UTF-8 are shown as U+FFFD",
	    r->n_bad);
	result_put_note(r, &note);
	buf_fini(&note);
}

/* It failed by itself, or we ended it: what it wrote may say why. */
static void
result_put_failed(struct result *r)
{
	static void (*const words[])(const struct result *r, struct buf *text) = {
	    [RUN_EXITED] = words_exited,
	    [RUN_SIGNALED] = words_signaled,
	    [RUN_TIMED_OUT] = words_timed_out,
	    [RUN_OVERFLOWED] = words_overflowed,
	};
	struct run_text err = result_stderr(r);
	struct buf text;

	r->is_error = true;
	/* An exit with words needs none of ours. */
	if (r->end->how != RUN_EXITED || (r->text.n == 0 && err.n == 0)) {
		buf_init(&text, CAP_URI_BYTES + 512);
		words[r->end->how](r, &text);
		result_put_note(r, &text);
		buf_fini(&text);
	}
	if (r->text.n > 0)
		result_put_text(r, r->text);
	if (err.n > 0)
		result_put_text(r, err);
	result_put_cut(r);
	result_put_repaired(r);
}

static void
result_put_plain(struct result *r)
{
	result_put_text(r, r->text);
	result_put_cut(r);
	result_put_repaired(r);
}

/* It is over well, but what it wrote is of no use. */
static void
result_put_broken(struct result *r, const char *promise)
{
	struct run_text shown = r->text;
	struct buf text;

	r->is_error = true;
	buf_init(&text, CAP_URI_BYTES + 1024);
	put_name(&text, r->rules);
	buf_addf(&text, "%s. %s", promise,
	    shown.n > 0 ? "Output begins: " : "It wrote nothing.");
	if (shown.n > SHOWN_BYTES) {
		shown.n = SHOWN_BYTES;
		shown = text_cut(shown);
	}
	buf_add(&text, shown.p, shown.n);
	result_put_note(r, &text);
	buf_fini(&text);
	result_put_cut(r);
}

static void
result_put_json(struct result *r)
{
	struct json_msg m;

	if (r->is_cut || json_scan(&m, r->text.p, r->text.n, false) != MV_OK)
		result_put_broken(
		    r, "promised JSON and wrote something that is not one JSON value");
	else
		result_put_block(r, r->text.p, r->text.n);
}

/* Cut, it would be another image, or none. */
static void
result_put_base64(struct result *r)
{
	const char *mime = r->rules->mime;
	struct buf text;

	if (r->is_cut) {
		r->is_error = true;
		buf_init(&text, CAP_URI_BYTES + 256);
		put_name(&text, r->rules);
		buf_addf(&text,
		    "wrote more than %llu bytes, which are of no use when cut",
		    (unsigned long long)r->rules->limits.output_max);
		result_put_note(r, &text);
		buf_fini(&text);
		return;
	}
	buf_addf(r->out, "{\"type\":\"%s\",\"data\":\"",
	    strncmp(mime, "audio/", 6) == 0 ? "audio" : "image");
	base64_put(r->out, r->end->out.p, r->end->out.n);
	buf_add_str(r->out, "\",\"mimeType\":");
	json_put_string(r->out, mime, strlen(mime));
	buf_add_char(r->out, '}');
}

static bool
result_is_success(const struct exec_rules *rules, const struct run_end *e)
{
	if (e->how != RUN_EXITED)
		return false;
	if (rules->success == NULL)
		return e->status == 0;
	for (size_t i = 0; i < rules->n_success; i++)
		if (rules->success[i] == e->status)
			return true;
	return false;
}

void
exec_flatten(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] == '\n' || p[i] == '\r')
			p[i] = ' ';
}

static void
result_put_structured(struct result *r, struct jtext json)
{
	size_t start;

	buf_add_str(r->out, ",\"structuredContent\":");
	start = r->out->len;
	json_put(r->out, json);
	if (r->out->err == MV_OK)
		exec_flatten(r->out->data + start, json.n);
}

static struct jtext
text_as_json(struct run_text t)
{
	struct jtext j = {t.p, t.n};

	while (j.n > 0 && json_is_space(j.p[0])) {
		j.p++;
		j.n--;
	}
	while (j.n > 0 && json_is_space(j.p[j.n - 1]))
		j.n--;
	return j;
}

void
exec_result_put(struct buf *out, const struct exec_rules *rules, const struct run_end *e)
{
	static void (*const put[])(struct result * r) = {
	    [EXEC_OUTPUT_TEXT] = result_put_plain,
	    [EXEC_OUTPUT_JSON] = result_put_json,
	    [EXEC_OUTPUT_BASE64] = result_put_base64,
	};
	struct result r = {.out = out, .rules = rules, .end = e};
	struct jtext json;

	r.is_cut = e->out_total > e->out.n;
	r.text = r.is_cut ? text_cut(e->out) : text_trim(e->out);
	buf_add_str(out, "{\"content\":[");
	if (result_is_success(rules, e))
		put[rules->output](&r);
	else
		result_put_failed(&r);
	buf_add_char(out, ']');
	/* Revisions before 2026-07-28 know objects alone. */
	json = text_as_json(r.text);
	if (!r.is_error && rules->output == EXEC_OUTPUT_JSON && jtext_type(json) == '{')
		result_put_structured(&r, json);
	buf_add_str(out, r.is_error ? ",\"isError\":true}" : "}");
}
