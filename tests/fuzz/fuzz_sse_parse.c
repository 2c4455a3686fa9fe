/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: the reader of event streams.
 *
 * The first byte gives the limit. However the bytes arrive, the same events come out as
 * from a reading of the whole text line by line, as the HTML standard (9.2.6) has it; an
 * event over the limit comes in parts that make it up; nothing is kept beyond the limits.
 */
#include "mcpvisor/sse.h"

#include "fuzz_rig.h"

#include <stdlib.h>

#define LONG "\x01long"

static void
put_record(struct buf *out, const char *kind, const char *p, size_t n, const char *id)
{
	buf_addf(out, "%s:%zu:", kind, n);
	buf_add(out, p, n);
	buf_addf(out, ":%s\n", id);
}

/* ---- the whole text, line by line ---- */

struct model {
	struct buf *out;
	size_t max;
	struct buf data, id, id_next;
	char type[SSE_TYPE_BYTES + 1];
	size_t type_len;
	unsigned lines;
};

static void
model_end_event(struct model *m)
{
	bool moves = !same_bytes((struct jtext){m->id.data, m->id.len},
	    (struct jtext){m->id_next.data, m->id_next.len});

	buf_reset(&m->id);
	buf_add(&m->id, m->id_next.data, m->id_next.len);
	if (m->lines > 0 && m->data.len > m->max)
		put_record(m->out, LONG, m->data.data, m->data.len, "");
	else if (m->lines > 0)
		put_record(m->out, m->type_len ? m->type : "message", m->data.data,
		    m->data.len, buf_cstr(&m->id));
	else if (moves)
		put_record(m->out, "\x01id", "", 0, buf_cstr(&m->id));
	buf_reset(&m->data);
	m->lines = 0;
	m->type_len = 0;
}

static void
model_data(struct model *m, struct jtext value)
{
	if (m->lines++ > 0)
		buf_add_char(&m->data, '\n');
	buf_add(&m->data, value.p, value.n);
}

static void
model_type(struct model *m, struct jtext value)
{
	size_t n = value.n < SSE_TYPE_BYTES ? value.n : SSE_TYPE_BYTES;

	memset(m->type, 0, sizeof(m->type));
	m->type_len = n;
	if (n > 0)
		memcpy(m->type, value.p, n);
}

static void
model_id(struct model *m, struct jtext value)
{
	if (value.n > 0 && memchr(value.p, '\0', value.n))
		return;
	buf_reset(&m->id_next);
	if (value.n <= SSE_ID_BYTES)
		buf_add(&m->id_next, value.p, value.n);
}

static void
model_retry(struct model *m, struct jtext value)
{
	uint64_t ms = 0;

	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] < '0' || value.p[i] > '9')
			return;
		ms = ms * 10 + (uint64_t)(value.p[i] - '0');
		if (ms > UINT32_MAX)
			ms = UINT32_MAX;
	}
	if (value.n > 0)
		buf_addf(m->out, "\x01retry:%llu\n", (unsigned long long)ms);
}

static const struct {
	const char *name;
	void (*take)(struct model *m, struct jtext value);
} fields[] = {{"data", model_data}, {"event", model_type}, {"id", model_id},
    {"retry", model_retry}};

static void
model_line(struct model *m, struct jtext line)
{
	const char *colon = line.n > 0 ? memchr(line.p, ':', line.n) : NULL;
	struct jtext name = {line.p, colon ? (size_t)(colon - line.p) : line.n};
	struct jtext value = {NULL, 0};

	if (line.n == 0) {
		model_end_event(m);
		return;
	}
	if (colon)
		value = (struct jtext){colon + 1, line.n - name.n - 1};
	if (value.n > 0 && value.p[0] == ' ')
		value = (struct jtext){value.p + 1, value.n - 1};
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (same_bytes(
			name, (struct jtext){fields[i].name, strlen(fields[i].name)}))
			fields[i].take(m, value);
}

static void
read_whole(struct jtext all, size_t max, struct buf *out)
{
	struct model m = {.out = out, .max = max};

	buf_init(&m.data, SIZE_MAX / 2);
	buf_init(&m.id, SIZE_MAX / 2);
	buf_init(&m.id_next, SIZE_MAX / 2);
	if (all.n >= 3 && memcmp(all.p, "\xef\xbb\xbf", 3) == 0)
		all = (struct jtext){all.p + 3, all.n - 3};
	while (all.n > 0) {
		size_t n = 0, skip = 1;

		while (n < all.n && all.p[n] != '\r' && all.p[n] != '\n')
			n++;
		if (n == all.n)
			break;
		if (n + 1 < all.n && memcmp(all.p + n, "\r\n", 2) == 0)
			skip = 2;
		model_line(&m, (struct jtext){all.p, n});
		all = (struct jtext){all.p + n + skip, all.n - n - skip};
	}
	buf_fini(&m.data);
	buf_fini(&m.id);
	buf_fini(&m.id_next);
}

/* ---- the parser ---- */

struct feed {
	struct buf *out;
	struct buf part; /* of an event over the limit */
	size_t max;
};

static bool
on_event(void *arg, const struct sse_event *e)
{
	struct feed *k = arg;

	MCPVISOR_ASSERT(e->len <= k->max && k->part.len == 0);
	put_record(k->out, e->type, e->data, e->len, e->id);
	if (e->len > 0)
		memset(e->data, 'x', e->len);
	return true;
}

static void
on_id(void *arg, const char *id)
{
	struct feed *k = arg;

	put_record(k->out, "\x01id", "", 0, id);
}

static void
on_retry(void *arg, uint64_t ms)
{
	struct feed *k = arg;

	buf_addf(k->out, "\x01retry:%llu\n", (unsigned long long)ms);
}

static bool
on_long(void *arg, const char *part, size_t len, bool end)
{
	struct feed *k = arg;

	MCPVISOR_ASSERT(end ? len == 0 : len > 0);
	buf_add(&k->part, part, len);
	if (!end)
		return true;
	MCPVISOR_ASSERT(k->part.len > k->max);
	put_record(k->out, LONG, k->part.data, k->part.len, "");
	buf_reset(&k->part);
	return true;
}

static void
feed_all(struct jtext all, size_t max, struct dice *d, struct buf *out)
{
	static const struct sse_cb cb = {on_event, on_id, on_retry, on_long};
	struct feed k = {.out = out, .max = max};
	struct sse_parser p;

	buf_init(&k.part, SIZE_MAX / 2);
	sse_init(&p, max, &cb, &k);
	while (all.n > 0) {
		size_t n = d ? dice_piece(d, all.n) : all.n;
		char *copy = exact_copy(all.p, n);

		MCPVISOR_ASSERT(sse_feed(&p, copy, n) == MV_OK);
		MCPVISOR_ASSERT(p.data.len <= max && p.id.len <= SSE_ID_BYTES);
		mem_free(copy);
		all = (struct jtext){all.p + n, all.n - n};
	}
	sse_fini(&p);
	buf_fini(&k.part);
}

static void
check_same(const struct buf *a, const struct buf *b)
{
	MCPVISOR_ASSERT(a->err == MV_OK && b->err == MV_OK);
	MCPVISOR_ASSERT(
	    same_bytes((struct jtext){a->data, a->len}, (struct jtext){b->data, b->len}));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dice d = dice_of(data, size);
	struct buf want, whole, parts;
	struct jtext all;

	if (size == 0)
		return 0;
	all = (struct jtext){(const char *)data + 1, size - 1};
	buf_init(&want, SIZE_MAX / 2);
	buf_init(&whole, SIZE_MAX / 2);
	buf_init(&parts, SIZE_MAX / 2);
	read_whole(all, data[0], &want);
	feed_all(all, data[0], NULL, &whole);
	feed_all(all, data[0], &d, &parts);
	check_same(&want, &whole);
	check_same(&want, &parts);
	buf_fini(&want);
	buf_fini(&whole);
	buf_fini(&parts);
	return 0;
}
