/* SPDX-License-Identifier: MIT */
/*
 * The wire and the clock of the demo servers: lines in, lines out, slow calls.
 *
 * Owns: struct demo, its slow calls and open batches.
 * Driven by: poll(2) on stdin with the next slow step as its limit; it stands outside
 * the event loop, as a server of its own process.
 * Invariants: one message a line on stdout and nothing else; every request gets one
 * reply, unless it was cancelled or the input ended; progress of a call comes before its
 * reply and never after.
 */
#include "mcpvisor/demo.h"

#include "demo_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/import.h"
#include "mcpvisor/mem.h"

#define DEMO_SLOW_MAX 1000

/* Replies of a batch, until all are there. */
struct demo_batch {
	json_t *replies;
	unsigned open; /* requests without a reply, and one for the reader */
};

struct demo_slow {
	struct demo_slow *next;
	json_t *id, *token;
	struct demo_batch *batch;
	uint64_t start, ms;
	int64_t step, steps;
};

static void
demo_write(struct demo *d, const char *p, size_t n)
{
	while (n && !d->ended) {
		ssize_t put = write(STDOUT_FILENO, p, n);

		if (put >= 0) {
			p += put;
			n -= (size_t)put;
		} else if (errno == EAGAIN) {
			struct pollfd pfd = {STDOUT_FILENO, POLLOUT, 0};

			(void)poll(&pfd, 1, -1);
		} else if (errno != EINTR) {
			d->ended = true;
		}
	}
}

static int
on_dump(const char *p, size_t n, void *arg)
{
	buf_add(arg, p, n);
	return 0;
}

static void
demo_send_take(struct demo *d, json_t *msg)
{
	struct buf out;

	buf_init(&out, CAP_MESSAGE_BYTES);
	if (json_dump_callback(msg, on_dump, &out, JSON_COMPACT) == 0)
		buf_add_char(&out, '\n');
	if (out.err == MV_OK)
		demo_write(d, out.data, out.len);
	buf_fini(&out);
	json_decref(msg);
}

static void
batch_close_one(struct demo *d, struct demo_batch *b)
{
	if (--b->open > 0)
		return;
	/* A batch of notifications alone has no answer. */
	if (json_array_size(b->replies) > 0)
		demo_send_take(d, json_incref(b->replies));
	json_decref(b->replies);
	mem_free(b);
}

static void
demo_answer_take(struct demo *d, const struct demo_req *r, json_t *msg)
{
	if (!r->batch) {
		demo_send_take(d, msg);
		return;
	}
	json_array_append_new(r->batch->replies, msg);
	batch_close_one(d, r->batch);
}

void
demo_reply_take(
    struct demo *d, const struct demo_req *r, enum demo_cache cache, json_t *result)
{
	if (d->kind->dress)
		result = d->kind->dress(result, cache);
	demo_answer_take(d, r,
	    json_pack("{s:s,s:O,s:o}", "jsonrpc", "2.0", "id", r->id, "result", result));
}

/* r without an id: what could not be read has no id to answer to. */
void
demo_error_take(struct demo *d, const struct demo_req *r, int code, json_t *data,
    const char *fmt, ...)
{
	json_t *msg = json_pack("{s:s}", "jsonrpc", "2.0");
	json_t *error;
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	error = json_pack("{s:i,s:o}", "code", code, "message", json_string(text));
	if (!error) /* cut inside a character */
		error =
		    json_pack("{s:i,s:s}", "code", code, "message", "Invalid request");
	if (data)
		json_object_set_new(error, "data", data);
	if (r->id)
		json_object_set(msg, "id", r->id);
	json_object_set_new(msg, "error", error);
	demo_answer_take(d, r, msg);
}

void
demo_notify_take(struct demo *d, const char *method, json_t *params)
{
	json_t *msg = json_pack("{s:s,s:s}", "jsonrpc", "2.0", "method", method);

	if (params)
		json_object_set_new(msg, "params", params);
	demo_send_take(d, msg);
}

void
demo_slow_start(struct demo *d, const struct demo_req *r, int64_t ms, int64_t steps)
{
	struct demo_slow *s, **at = &d->slow;
	unsigned n = 0;

	for (; *at; at = &(*at)->next)
		n++;
	if (n >= DEMO_SLOW_MAX) {
		demo_reply_text(d, r, "too many slow calls run; try again later", true);
		return;
	}
	s = mem_xcalloc(1, sizeof *s);
	s->id = json_incref(r->id);
	s->token = json_incref(
	    json_object_get(json_object_get(r->params, "_meta"), "progressToken"));
	s->batch = r->batch;
	s->start = clock_now_ms();
	s->ms = (uint64_t)ms;
	s->steps = steps;
	*at = s;
}

static void
slow_unlink(struct demo *d, struct demo_slow *s)
{
	struct demo_slow **at = &d->slow;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	json_decref(s->id);
	json_decref(s->token);
	mem_free(s);
}

static uint64_t
slow_next_ms(const struct demo_slow *s)
{
	return s->start + s->ms * (uint64_t)(s->step + 1) / (uint64_t)s->steps;
}

static void
slow_advance(struct demo *d, struct demo_slow *s)
{
	char text[96];

	s->step++;
	snprintf(text, sizeof text, "step %lld of %lld", (long long)s->step,
	    (long long)s->steps);
	if (json_is_string(s->token) || json_is_integer(s->token))
		demo_notify_take(d, "notifications/progress",
		    json_pack("{s:O,s:I,s:I,s:s}", "progressToken", s->token, "progress",
			(json_int_t)s->step, "total", (json_int_t)s->steps, "message",
			text));
	if (s->step == s->steps) {
		struct demo_req r = {
		    .method = "tools/call", .id = s->id, .batch = s->batch};

		snprintf(text, sizeof text, "done after %llu ms in %lld steps",
		    (unsigned long long)s->ms, (long long)s->steps);
		demo_reply_text(d, &r, text, false);
		slow_unlink(d, s);
	}
}

/* Runs what is due; returns the time until the next step, -1: none. */
static int
demo_run_slow(struct demo *d)
{
	uint64_t now = clock_now_ms(), next = UINT64_MAX;
	struct demo_slow *s, *after;

	for (s = d->slow; s; s = after) {
		after = s->next;
		if (slow_next_ms(s) <= now)
			slow_advance(d, s);
	}
	now = clock_now_ms();
	for (s = d->slow; s; s = s->next) {
		if (slow_next_ms(s) < next)
			next = slow_next_ms(s);
	}
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)(next - now);
}

static void
demo_cancel(struct demo *d, json_t *id)
{
	for (struct demo_slow *s = d->slow; s; s = s->next) {
		struct demo_batch *b = s->batch;

		if (!json_equal(s->id, id))
			continue;
		slow_unlink(d, s);
		if (b)
			batch_close_one(d, b);
		return;
	}
	if (d->kind->on_cancelled)
		d->kind->on_cancelled(d, id);
}

static const struct demo_method *
method_find(const struct demo_method *m, const char *name)
{
	while (m->name && strcmp(m->name, name) != 0)
		m++;
	return m->name ? m : NULL;
}

static void
demo_on_request(struct demo *d, const struct demo_req *r)
{
	const struct demo_method *m = method_find(d->kind->methods, r->method);

	if (!m)
		m = method_find(demo_features, r->method);
	if (d->kind->admit(d, r, m != NULL) && m)
		m->fn(d, r);
}

static void
demo_on_notification(struct demo *d, const char *method, json_t *params)
{
	json_t *id = json_object_get(params, "requestId");

	if (strcmp(method, "notifications/cancelled") == 0 && id)
		demo_cancel(d, id);
}

static void
demo_on_message(struct demo *d, json_t *msg)
{
	struct demo_req r = {.batch = d->batch};
	json_t *id = json_object_get(msg, "id");
	json_t *method = json_object_get(msg, "method");
	json_t *params = json_object_get(msg, "params");
	const char *version = json_string_value(json_object_get(msg, "jsonrpc"));
	json_t *none = NULL;

	if (json_is_string(id) || json_is_integer(id))
		r.id = id;
	if (!method && (json_object_get(msg, "result") || json_object_get(msg, "error")))
		return; /* we ask nothing, so an answer is nobody's */
	if (r.batch && (id || !json_is_string(method)))
		r.batch->open++;
	if (!json_is_string(method) || !version || strcmp(version, "2.0") != 0 ||
	    (id && !r.id) || (params && !json_is_object(params))) {
		if (id || !json_is_string(method))
			demo_error_take(
			    d, &r, DEMO_RPC_INVALID, NULL, "not a JSON-RPC 2.0 request");
		return;
	}
	if (!params)
		params = none = json_object();
	r.method = json_string_value(method);
	r.params = params;
	if (id)
		demo_on_request(d, &r);
	else
		demo_on_notification(d, r.method, params);
	json_decref(none);
}

static void
demo_on_batch(struct demo *d, json_t *batch)
{
	struct demo_req nobody = {.id = NULL};
	struct demo_batch *b;
	json_t *msg;
	size_t i;

	if (json_array_size(batch) == 0 || json_array_size(batch) > CAP_BATCH_ITEMS ||
	    !d->kind->takes_batches || !d->kind->takes_batches(d)) {
		demo_error_take(
		    d, &nobody, DEMO_RPC_INVALID, NULL, "this revision has no batches");
		return;
	}
	b = mem_xcalloc(1, sizeof *b);
	b->replies = json_array();
	b->open = 1;
	d->batch = b;
	json_array_foreach(batch, i, msg)
	{
		demo_on_message(d, msg);
	}
	d->batch = NULL;
	batch_close_one(d, b);
}

static void
demo_on_line(struct demo *d, const char *p, size_t n)
{
	struct demo_req nobody = {.id = NULL};
	json_error_t je;
	json_t *msg;

	if (strspn(p, " \t\r") == n)
		return;
	msg = json_loadb(p, n, JSON_ALLOW_NUL, &je);
	if (!msg)
		demo_error_take(d, &nobody, -32700, NULL, "not valid JSON");
	else if (json_is_array(msg))
		demo_on_batch(d, msg);
	else
		demo_on_message(d, msg);
	json_decref(msg);
}

/* Handles the complete lines of the input; at the end also one without its newline. */
static void
demo_take_lines(struct demo *d, bool at_end)
{
	size_t done = 0;
	char *nl;

	if (at_end && d->in.len > 0)
		buf_add_char(&d->in, '\n');
	while (!d->ended && d->searched < d->in.len &&
	       (nl = memchr(d->in.data + d->searched, '\n', d->in.len - d->searched))) {
		*nl = '\0'; /* for strspn */
		if (!d->discarding)
			demo_on_line(
			    d, d->in.data + done, (size_t)(nl - (d->in.data + done)));
		d->discarding = false;
		done = d->searched = (size_t)(nl - d->in.data) + 1;
	}
	buf_drop(&d->in, done);
	d->searched = d->in.len;
	if (d->in.len > CAP_MESSAGE_BYTES) {
		struct demo_req nobody = {.id = NULL};

		if (!d->discarding)
			demo_error_take(d, &nobody, DEMO_RPC_INVALID, NULL,
			    "message over the size limit");
		d->discarding = true;
		buf_reset(&d->in);
		d->searched = 0;
	}
}

/* False when the input has ended or failed. */
static bool
demo_read(struct demo *d)
{
	char chunk[65536];
	ssize_t got = read(STDIN_FILENO, chunk, sizeof chunk);

	if (got < 0)
		return errno == EINTR || errno == EAGAIN;
	buf_add(&d->in, chunk, (size_t)got);
	demo_take_lines(d, got == 0);
	return got > 0 && d->in.err == MV_OK;
}

static void
demo_serve(struct demo *d)
{
	struct pollfd pfd = {STDIN_FILENO, POLLIN, 0};
	bool more = true;

	while (more && !d->ended) {
		if (poll(&pfd, 1, demo_run_slow(d)) > 0)
			more = demo_read(d);
	}
	if (d->kind->on_end)
		d->kind->on_end(d);
}

int
demo_run(const char *which)
{
	struct demo d = {.magic = DEMO_MAGIC};

	if (strcmp(which, demo_kind_legacy.name) == 0)
		d.kind = &demo_kind_legacy;
	else if (strcmp(which, demo_kind_modern.name) == 0)
		d.kind = &demo_kind_modern;
	else
		return 2;
	buf_init(&d.in, (size_t)CAP_MESSAGE_BYTES + 131072);
	d.subscribed = json_object();
	demo_serve(&d);
	while (d.slow) {
		struct demo_batch *b = d.slow->batch;

		slow_unlink(&d, d.slow);
		if (b && --b->open == 0) {
			json_decref(b->replies);
			mem_free(b);
		}
	}
	json_decref(d.subscribed);
	buf_fini(&d.in);
	return d.ended ? 1 : 0;
}

void
demo_import(const char *self, struct import_result *r)
{
	const char *const names[] = {demo_kind_legacy.name, demo_kind_modern.name};

	memset(r, 0, sizeof *r);
	r->n = sizeof names / sizeof *names;
	r->v = mem_xcalloc(r->n, sizeof *r->v);
	for (size_t i = 0; i < r->n; i++) {
		struct upstream_conf *c = upstream_conf_new(names[i]);

		c->argv = mem_xcalloc(4, sizeof *c->argv);
		c->argv[0] = mem_xstrdup(self);
		c->argv[1] = mem_xstrdup("demo");
		c->argv[2] = mem_xstrdup(names[i]);
		c->env = expand_child_env(environ, NULL, 0);
		r->v[i] = c;
	}
}
