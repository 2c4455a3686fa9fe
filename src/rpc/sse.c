/* SPDX-License-Identifier: MIT */
/*
 * Event streams, read as their bytes come.
 *
 *	BOM --no mark, or all of it--> NAME --colon--> SPACE --> VALUE --end of line-->
 *NAME NAME --end of line--> NAME (a field without value, or the end of an event)
 *
 * Owns: the data, type and id of the event at hand, the last event id.
 * Driven by: whoever reads.
 * Invariants: a verdict does not depend on how the bytes arrived; a value goes straight
 * to where it belongs and is copied once; no buffer grows over its bound, and a large one
 * does not outlive its event; the last event id is moved by the end of an event alone.
 */
#include "mcpvisor/sse.h"

#include <string.h>

#define SSE_DATA_KEPT ((size_t)64 * 1024) /* between events */

enum sse_state { SSE_ST_BOM, SSE_ST_NAME, SSE_ST_SPACE, SSE_ST_VALUE };

enum sse_field { SSE_F_DATA, SSE_F_EVENT, SSE_F_ID, SSE_F_RETRY, SSE_F_NONE };

static const char sse_bom[3] = {'\xef', '\xbb', '\xbf'};

void
sse_init(struct sse_parser *p, size_t data_max, const struct sse_cb *cb, void *arg)
{
	memset(p, 0, sizeof(*p));
	p->cb = cb;
	p->arg = arg;
	p->data_max = data_max;
	buf_init(&p->data, data_max);
	buf_init(&p->type, SSE_TYPE_BYTES);
	buf_init(&p->id, SSE_ID_BYTES);
	buf_init(&p->id_next, SSE_ID_BYTES);
	buf_init(&p->value, SSE_ID_BYTES);
}

void
sse_fini(struct sse_parser *p)
{
	buf_fini(&p->data);
	buf_fini(&p->type);
	buf_fini(&p->id);
	buf_fini(&p->id_next);
	buf_fini(&p->value);
}

static void
sse_forget_event(struct sse_parser *p)
{
	if (p->data.cap > SSE_DATA_KEPT)
		buf_fini(&p->data);
	buf_reset(&p->data);
	buf_reset(&p->type);
	p->has_data = p->is_long = false;
}

static void
sse_begin_line(struct sse_parser *p)
{
	p->state = SSE_ST_NAME;
	p->field = SSE_F_NONE;
	p->name_len = 0;
}

/* Its id becomes that of to. */
static void
sse_copy_id(struct sse_parser *p, struct buf *to, const struct buf *from)
{
	buf_reset(to);
	buf_add(to, from->data, from->len);
	p->failed = p->failed || to->err == MV_NOMEM;
}

void
sse_reset(struct sse_parser *p)
{
	sse_forget_event(p);
	sse_begin_line(p);
	p->state = SSE_ST_BOM;
	p->bom = 0;
	p->after_cr = p->stopped = p->failed = false;
	sse_copy_id(p, &p->id_next, &p->id);
}

const char *
sse_last_id(struct sse_parser *p)
{
	const char *id = p->id.len > 0 ? buf_cstr(&p->id) : NULL;

	return id ? id : "";
}

static void
sse_put_long(struct sse_parser *p, const char *s, size_t n, bool end)
{
	if ((n > 0 || end) && !p->cb->on_long(p->arg, s, n, end))
		p->stopped = true;
}

static void
sse_put_data(struct sse_parser *p, const char *s, size_t n)
{
	if (p->is_long) {
		sse_put_long(p, s, n, false);
		return;
	}
	buf_add(&p->data, s, n);
	p->failed = p->failed || p->data.err == MV_NOMEM;
	if (p->data.err != MV_TOO_LONG)
		return;
	p->is_long = true;
	sse_put_long(p, p->data.data, p->data.len, false);
	if (!p->stopped)
		sse_put_long(p, s, n, false);
	buf_fini(&p->data);
}

/* What does not fit is left out. */
static void
sse_put_type(struct sse_parser *p, const char *s, size_t n)
{
	size_t room = p->type.max - p->type.len;

	buf_add(&p->type, s, n < room ? n : room);
	p->failed = p->failed || p->type.err == MV_NOMEM;
}

static void
sse_put_id(struct sse_parser *p, const char *s, size_t n)
{
	p->is_bad_value = p->is_bad_value || memchr(s, '\0', n);
	buf_add(&p->value, s, n);
	p->failed = p->failed || p->value.err == MV_NOMEM;
}

static void
sse_put_retry(struct sse_parser *p, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			p->is_bad_value = true;
		else if (p->retry_ms < UINT32_MAX)
			p->retry_ms = p->retry_ms * 10 + (uint64_t)(s[i] - '0');
	}
	/* Digits have come, if nothing but digits did. */
	p->has_digits = p->has_digits || n > 0;
}

static void
sse_begin_data(struct sse_parser *p)
{
	if (p->has_data)
		sse_put_data(p, "\n", 1);
	p->has_data = true;
}

static void
sse_begin_type(struct sse_parser *p)
{
	buf_reset(&p->type);
}

static void
sse_begin_value(struct sse_parser *p)
{
	buf_reset(&p->value);
	p->is_bad_value = p->has_digits = false;
	p->retry_ms = 0;
}

static void
sse_end_id(struct sse_parser *p)
{
	if (p->is_bad_value)
		return;
	if (p->value.err == MV_TOO_LONG)
		buf_reset(&p->value);
	sse_copy_id(p, &p->id_next, &p->value);
}

static void
sse_end_retry(struct sse_parser *p)
{
	if (p->is_bad_value || !p->has_digits || !p->cb->on_retry)
		return;
	p->cb->on_retry(p->arg, p->retry_ms < UINT32_MAX ? p->retry_ms : UINT32_MAX);
}

static const struct sse_field_row {
	const char *name;
	void (*begin)(struct sse_parser *p);
	void (*put)(struct sse_parser *p, const char *s, size_t n);
	void (*end)(struct sse_parser *p);
} sse_fields[] = {
    [SSE_F_DATA] = {"data", sse_begin_data, sse_put_data, NULL},
    [SSE_F_EVENT] = {"event", sse_begin_type, sse_put_type, NULL},
    [SSE_F_ID] = {"id", sse_begin_value, sse_put_id, sse_end_id},
    [SSE_F_RETRY] = {"retry", sse_begin_value, sse_put_retry, sse_end_retry},
    [SSE_F_NONE] = {"", NULL, NULL, NULL},
};

static void
sse_dispatch(struct sse_parser *p)
{
	struct sse_event e = {.type = "message", .data = p->data.data};
	bool moves =
	    p->id.len != p->id_next.len ||
	    (p->id.len > 0 && memcmp(p->id.data, p->id_next.data, p->id.len) != 0);

	if (moves)
		sse_copy_id(p, &p->id, &p->id_next);
	e.id = sse_last_id(p);
	if (p->type.len > 0)
		e.type = buf_cstr(&p->type);
	e.len = p->data.len;
	p->failed = p->failed || !e.type;
	if (p->failed)
		return;
	if (p->is_long)
		sse_put_long(p, "", 0, true);
	else if (p->has_data)
		p->stopped = !p->cb->on_event(p->arg, &e);
	else if (moves && p->cb->on_id)
		p->cb->on_id(p->arg, e.id);
	sse_forget_event(p);
}

/* The name of the line's field is complete. */
static void
sse_begin_field(struct sse_parser *p)
{
	p->field = SSE_F_NONE;
	for (unsigned i = 0; i < SSE_F_NONE; i++)
		if (strlen(sse_fields[i].name) == p->name_len &&
		    memcmp(sse_fields[i].name, p->name, p->name_len) == 0)
			p->field = (uint8_t)i;
	if (sse_fields[p->field].begin)
		sse_fields[p->field].begin(p);
}

static void
sse_end_line(struct sse_parser *p)
{
	if (p->state == SSE_ST_NAME && p->name_len == 0) {
		sse_dispatch(p);
	} else {
		if (p->state == SSE_ST_NAME)
			sse_begin_field(p);
		if (sse_fields[p->field].end)
			sse_fields[p->field].end(p);
	}
	sse_begin_line(p);
}

static void
sse_name(struct sse_parser *p, char c)
{
	if (c == ':') {
		sse_begin_field(p);
		p->state = SSE_ST_SPACE;
	} else if (p->name_len < sizeof(p->name)) {
		p->name[p->name_len++] = c; /* a full name is none of ours */
	}
}

/* Bytes of s that belong to the value: up to an end of line. */
static size_t
sse_value_len(const char *s, size_t n)
{
	const char *lf = memchr(s, '\n', n), *cr;

	n = lf ? (size_t)(lf - s) : n;
	cr = memchr(s, '\r', n);
	return cr ? (size_t)(cr - s) : n;
}

static size_t
sse_value(struct sse_parser *p, const char *s, size_t n)
{
	size_t len = sse_value_len(s, n);

	p->state = SSE_ST_VALUE;
	if (sse_fields[p->field].put)
		sse_fields[p->field].put(p, s, len);
	return len;
}

/* Before the first line. How many bytes were taken; what turned out to be no mark is the
 * beginning of a name. */
static size_t
sse_start(struct sse_parser *p, char c)
{
	if (c == sse_bom[p->bom]) {
		if (++p->bom == sizeof(sse_bom))
			p->state = SSE_ST_NAME;
		return 1;
	}
	p->state = SSE_ST_NAME;
	memcpy(p->name, sse_bom, sizeof(sse_bom));
	p->name_len = p->bom;
	return 0;
}

/* How many bytes were taken, at least one. */
static size_t
sse_step(struct sse_parser *p, const char *s, size_t n)
{
	bool was_cr = p->after_cr;

	p->after_cr = false;
	if (was_cr && *s == '\n')
		return 1;
	if (p->state == SSE_ST_BOM && sse_start(p, *s) == 1)
		return 1;
	if (*s == '\r' || *s == '\n') {
		p->after_cr = *s == '\r';
		sse_end_line(p);
		return 1;
	}
	if (p->state == SSE_ST_SPACE && *s == ' ') {
		p->state = SSE_ST_VALUE;
		return 1;
	}
	if (p->state != SSE_ST_NAME)
		return sse_value(p, s, n);
	sse_name(p, *s);
	return 1;
}

enum mv_err
sse_feed(struct sse_parser *p, const char *s, size_t n)
{
	size_t took;

	for (; n > 0 && !p->stopped && !p->failed; s += took, n -= took)
		took = sse_step(p, s, n);
	return p->failed ? MV_NOMEM : MV_OK;
}
