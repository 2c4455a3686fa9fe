/* SPDX-License-Identifier: MIT */
/*
 * One line for each forwarded request, and the counters of how they end.
 *
 * Owns: the switch that turns the lines off.
 * Driven by: handlers, at the start and at the end of a request.
 * Invariants: an end is noted once, however it comes; nothing is formatted or kept
 * while the lines are off; what a peer chose is escaped and cut.
 */
#include "client_log_priv.h"
#include "client_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/trace_context.h"
#include "mcpvisor/utf8.h"

#include <string.h>

#define MODULE	       "call"
#define NAME_MAX_BYTES 200
#define LINE_BYTES     2560

static bool g_call_log = true;

void
client_log_calls(bool on)
{
	g_call_log = on;
}

static const char *const endings[] = {
#define X(id, name) [CALL_END_##id] = (name),
    CALL_ENDINGS(X)
#undef X
};

/* What an end without an answer is; the rest is the upstream's error. */
static const struct {
	enum call_ending ending;
	bool is_ours;
} failures[MV_ERR_MAX] = {
    [MV_NOMEM] = {CALL_END_BUSY, true},
    [MV_BUSY] = {CALL_END_BUSY, true},
    [MV_SYSTEM] = {CALL_END_ERROR, true},
    [MV_TOO_LONG] = {CALL_END_ERROR, true},
    [MV_NOT_FOUND] = {CALL_END_ERROR, true},
    [MV_PARAMS] = {CALL_END_ERROR, true},
    [MV_STOPPING] = {CALL_END_ERROR, true},
    [MV_CANCELLED] = {CALL_END_CANCELLED, false},
    [MV_TIMEOUT] = {CALL_END_TIMEOUT, false},
    [MV_STARTING] = {CALL_END_TIMEOUT, false},
    [MV_DIED] = {CALL_END_DIED, false},
    [MV_SPAWN] = {CALL_END_DIED, false},
    [MV_CLOSED] = {CALL_END_DIED, false},
    [MV_BACKOFF] = {CALL_END_DIED, false},
    [MV_PARKED] = {CALL_END_DIED, false},
    [MV_UNREACHABLE] = {CALL_END_DIED, false},
    [MV_AUTH] = {CALL_END_ERROR, false},
    [MV_HTTP] = {CALL_END_ERROR, false},
};

/* The line as far as it is; what has no room is left out. */
struct line {
	size_t n;
	char text[LINE_BYTES];
};

/* A line's matter. */
struct entry {
	const struct request *r;
	const struct call_end *e;
	struct jtext name;
};

static void
line_put(struct line *l, const char *p, size_t n)
{
	if (n > sizeof(l->text) - l->n)
		return;
	memcpy(l->text + l->n, p, n);
	l->n += n;
}

static void
line_put_str(struct line *l, const char *s)
{
	line_put(l, s, strlen(s));
}

static void
line_put_u64(struct line *l, uint64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + v % 10);
	while ((v /= 10) != 0);
	line_put(l, digits + at, sizeof(digits) - at);
}

static bool
text_is_plain(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] < 0x20 || p[i] > 0x7e || p[i] == '"' || p[i] == '\\')
			return false;
	return true;
}

/* In quotes. */
static void
line_put_text(struct line *l, const char *p, size_t n, size_t max)
{
	size_t m = utf8_cut(p, n, max);

	if (text_is_plain(p, m)) {
		line_put(l, "\"", 1);
		line_put(l, p, m);
		line_put(l, "\"", 1);
	} else {
		line_put_str(l, LOG_ESC(p, m));
	}
	if (m < n)
		line_put_str(l, "...");
}

/* A JSON string, decoded. */
static void
line_put_json(struct line *l, struct jtext t)
{
	struct buf b;

	if (memchr(t.p, '\\', t.n) == NULL) {
		line_put_text(l, t.p + 1, t.n - 2, NAME_MAX_BYTES);
		return;
	}
	buf_init(&b, CAP_MESSAGE_BYTES);
	if (json_string_decode(t, &b) && b.err == MV_OK)
		line_put_text(l, b.data, b.len, NAME_MAX_BYTES);
	else
		line_put(l, "-", 1);
	buf_fini(&b);
}

static void
put_client(struct line *l, const struct entry *x)
{
	const struct log_client *lc = &x->r->log_client;

	if (lc->n > 0)
		line_put_text(l, lc->text, lc->n, LOG_CLIENT_BYTES);
	else
		line_put(l, "-", 1);
}

static void
put_method(struct line *l, const struct entry *x)
{
	line_put_str(l, method_name(x->r->method));
}

static void
put_upstream(struct line *l, const struct entry *x)
{
	const char *name = x->r->call.u != NULL ? upstream_name(x->r->call.u) : NULL;

	if (name != NULL)
		line_put_text(l, name, strlen(name), NAME_MAX_BYTES);
	else
		line_put(l, "-", 1);
}

static void
put_tool(struct line *l, const struct entry *x)
{
	const struct route *route = x->r->call.route;

	if (route != NULL)
		line_put_text(l, route->published.p, route->published.n, NAME_MAX_BYTES);
	else if (jtext_type(x->name) == '"')
		line_put_json(l, x->name);
	else if (x->r->uri.len > 2 && x->r->uri.data[0] == '"')
		line_put_json(l, (struct jtext){x->r->uri.data, x->r->uri.len});
	else
		line_put(l, "-", 1);
}

static void
put_end(struct line *l, const struct entry *x)
{
	line_put_str(l, endings[x->e->ending]);
}

/* The proxy's word for it, or the number of the upstream's error. */
static void
put_reason(struct line *l, const struct entry *x)
{
	int64_t code = x->e->code;

	if (x->e->err != MV_OK) {
		line_put_str(l, mv_err_reason(x->e->err));
	} else if (code != 0) {
		if (code < 0)
			line_put(l, "-", 1);
		line_put_u64(l, code < 0 ? -(uint64_t)code : (uint64_t)code);
	} else {
		line_put(l, "-", 1);
	}
}

static void
put_ok(struct line *l, const struct entry *x)
{
	line_put(l, x->e->ending == CALL_END_RETURNED ? "1" : "0", 1);
}

static void
put_is_err(struct line *l, const struct entry *x)
{
	if (x->e->ending == CALL_END_RETURNED)
		line_put(l, x->e->is_err ? "1" : "0", 1);
	else
		line_put(l, "-", 1);
}

static void
put_err_src(struct line *l, const struct entry *x)
{
	const struct call_end *e = x->e;
	bool fine = e->ending == CALL_END_RETURNED && !e->is_err;

	if (fine || e->ending == CALL_END_CANCELLED)
		line_put(l, "-", 1);
	else if (e->label != NULL && e->label->reason == LABEL_ERROR)
		line_put_str(l, "graphql");
	else if (e->label != NULL && e->label->rule != 0)
		line_put_str(l, "rule");
	else
		line_put_str(l, failures[e->err].is_ours ? "proxy" : "upstream");
}

static void
put_ans(struct line *l, const struct entry *x)
{
	if (x->e->ending == CALL_END_RETURNED)
		line_put_str(
		    l, x->e->is_err ? "none" : outcome_answer_text(x->e->answer));
	else
		line_put(l, "-", 1);
}

/* Whether anything was found in a result. */
static bool
label_is_telling(const struct label *label)
{
	static const bool says_nothing[LABEL_REASON_MAX] = {[LABEL_NONE] = true,
	    [LABEL_OFF] = true,
	    [LABEL_NOT_COMPLETE] = true,
	    [LABEL_UPSTREAM_ERROR] = true};

	return label != NULL && !says_nothing[label->reason];
}

static void
put_label(struct line *l, const struct label *label)
{
	line_put_str(l, " gql=");
	line_put_str(l, label_reason_text(label->reason));
	if (label->n_errors > 0) {
		line_put_str(l, " gql_n=");
		line_put_u64(l, label->n_errors);
	}
	if (label->code[0] != '\0') {
		line_put_str(l, " gql_code=");
		line_put_text(l, label->code, strlen(label->code), LABEL_TEXT_BYTES);
	}
	if (label->path[0] != '\0') {
		line_put_str(l, " gql_path=");
		line_put_text(l, label->path, strlen(label->path), LABEL_TEXT_BYTES);
	}
}

static void
put_ms(struct line *l, const struct entry *x)
{
	line_put_u64(l, clock_now_ms() - x->r->note.started_ms);
}

static void
put_in(struct line *l, const struct entry *x)
{
	line_put_u64(l, x->r->note.in);
}

static void
put_out(struct line *l, const struct entry *x)
{
	line_put_u64(l, x->e->out);
}

static void
put_added(struct line *l, const struct entry *x)
{
	line_put_u64(l, x->e->added);
}

static void
put_trace(struct line *l, const struct entry *x)
{
	if (x->r->note.has_trace)
		line_put(l, x->r->trace_id, TRACE_ID_BYTES);
	else
		line_put(l, "-", 1);
}

/* A copy of a fixed length is a matter of two instructions. */
#define KEY_BYTES 16

static const struct {
	char key[KEY_BYTES]; /* with what comes before and after it */
	uint8_t len;
	void (*put)(struct line *l, const struct entry *x);
} fields[] = {
#define FIELD(key, fn)                                                                   \
	{                                                                                \
		key, sizeof(key) - 1, fn                                                 \
	}
    FIELD("client=", put_client),
    FIELD(" method=", put_method),
    FIELD(" upstream=", put_upstream),
    FIELD(" tool=", put_tool),
    FIELD(" end=", put_end),
    FIELD(" reason=", put_reason),
    FIELD(" ok=", put_ok),
    FIELD(" is_err=", put_is_err),
    FIELD(" err_src=", put_err_src),
    FIELD(" ans=", put_ans),
    FIELD(" ms=", put_ms),
    FIELD(" in=", put_in),
    FIELD(" out=", put_out),
    FIELD(" added=", put_added),
    FIELD(" trace=", put_trace),
#undef FIELD
};

static void
call_log_write(const struct entry *x)
{
	struct line l;

	l.n = 0;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (sizeof(l.text) - l.n >= KEY_BYTES) {
			memcpy(l.text + l.n, fields[i].key, KEY_BYTES);
			l.n += fields[i].len;
		}
		fields[i].put(&l, x);
	}
	if (label_is_telling(x->e->label))
		put_label(&l, x->e->label);
	LOG_INFO(MODULE, "done", "%.*s", (int)l.n, l.text);
}

void
log_client_set(struct log_client *lc, struct jtext info)
{
	struct buf b;

	lc->n = 0;
	buf_init(&b, CAP_CLIENT_INFO_BYTES);
	if (json_string_decode(json_member(info, "name"), &b) && b.err == MV_OK &&
	    b.len > 0) {
		lc->n = (uint8_t)utf8_cut(b.data, b.len, LOG_CLIENT_BYTES);
		memcpy(lc->text, b.data, lc->n);
	}
	buf_fini(&b);
}

void
call_log_begin(struct request *r, const struct link_msg *m)
{
	struct call_note *note = &r->note;
	struct jtext info = jtext_of(m->base, m->json->slot[JSON_M_CLIENT_INFO]);

	note->is_open = true;
	note->is_logged = g_call_log && log_is_on(LOG_LV_INFO);
	if (!note->is_logged)
		return;
	note->started_ms = clock_now_ms();
	note->in = m->len;
	if (info.n != 0)
		log_client_set(&r->log_client, info);
	else
		r->log_client = r->c->session.log_client;
	note->has_trace = trace_context_id(
	    jtext_of(m->base, m->json->slot[JSON_M_TRACEPARENT]), r->trace_id);
}

static void
call_log_count(const struct call_end *e)
{
	switch (e->ending) {
	case CALL_END_TIMEOUT:
		metrics_add(METRIC_CALLS_TIMEOUT, 1);
		break;
	case CALL_END_DIED:
		metrics_add(METRIC_CALLS_DIED, 1);
		break;
	case CALL_END_BUSY:
		metrics_add(METRIC_CALLS_BUSY, 1);
		break;
	case CALL_END_ERROR:
		if (e->err == MV_NOT_FOUND || e->err == MV_PARAMS)
			metrics_add(METRIC_CALLS_REFUSED, 1);
		break;
	case CALL_END_RETURNED:
	case CALL_END_CANCELLED:
		break; /* the call itself counts them */
	}
}

void
call_log_end(struct request *r, const struct call_end *e, struct jtext name)
{
	if (!r->note.is_open)
		return;
	r->note.is_open = false;
	call_log_count(e);
	if (r->note.is_logged)
		call_log_write(&(struct entry){.r = r, .e = e, .name = name});
}

void
call_log_failed(struct request *r, enum mv_err err, struct jtext name, size_t out)
{
	struct call_end e = {.ending = failures[err].ending, .err = err, .out = out};

	call_log_end(r, &e, name);
}
