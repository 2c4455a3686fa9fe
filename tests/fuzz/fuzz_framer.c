/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: newline framing.
 *
 * The first byte gives the limit. However the bytes arrive, the same lines come out as
 * from a plain split at newlines; a line over the limit comes in parts that make it up;
 * nothing is named that is not in the input, and nothing waits beyond the limit.
 */
#include "mcpvisor/framer.h"

#include "fuzz_rig.h"

#define LINE 'L'
#define LONG 'X'

/* Beyond the limit, so many carriage returns may still be the end of a line. */
#define SLACK 16

/* One line a record: kind, length, bytes. */
static void
put_record(struct buf *out, char kind, const char *p, size_t n)
{
	buf_add_char(out, kind);
	buf_add_u64(out, n);
	buf_add_char(out, ':');
	buf_add(out, p, n);
}

static size_t
without_returns(const char *p, size_t n)
{
	while (n > 0 && p[n - 1] == '\r')
		n--;
	return n;
}

static void
put_line(struct buf *out, const char *p, size_t n, size_t max)
{
	size_t len = without_returns(p, n);

	if (len > max || n > max + SLACK)
		put_record(out, LONG, p, n);
	else
		put_record(out, LINE, p, len);
}

/* What has to come out. */
static void
split(struct jtext all, size_t max, struct buf *out)
{
	if (all.n >= 3 && memcmp(all.p, "\xef\xbb\xbf", 3) == 0) {
		all.p += 3;
		all.n -= 3;
		if (all.n == 0)
			put_record(out, LINE, all.p, 0);
	}
	while (all.n > 0) {
		const char *nl = memchr(all.p, '\n', all.n);
		size_t n = nl != NULL ? (size_t)(nl - all.p) : all.n;

		put_line(out, all.p, n, max);
		n += nl != NULL ? 1 : 0;
		all.p += n;
		all.n -= n;
	}
}

struct feed {
	struct framer f;
	struct buf have; /* what is not consumed */
	struct buf part; /* of a line over the limit */
	struct buf *out;
};

/* One event. False: more input is needed. */
static bool
feed_step(struct feed *k, bool finish)
{
	char *copy = exact_copy(k->have.data, k->have.len);
	size_t n = k->have.len, len, consume;
	const char *line;
	enum framer_event ev = finish
				   ? framer_finish(&k->f, copy, n, &line, &len, &consume)
				   : framer_next(&k->f, copy, n, &line, &len, &consume);

	MCPVISOR_ASSERT(consume <= n && (ev != FRAMER_NEED || consume == 0));
	MCPVISOR_ASSERT(line >= copy && line + len <= copy + n);
	if (ev == FRAMER_LONG || ev == FRAMER_LONG_END)
		buf_add(&k->part, line, len);
	if (ev == FRAMER_LINE)
		put_record(k->out, LINE, line, len);
	if (ev == FRAMER_LONG_END) {
		put_record(k->out, LONG, k->part.data, k->part.len);
		buf_reset(&k->part);
	}
	buf_drop(&k->have, consume);
	mem_free(copy);
	return ev != FRAMER_NEED;
}

static void
feed_all(struct jtext all, size_t max, struct dice *d, struct buf *out)
{
	struct feed k = {.out = out};

	framer_init(&k.f, max);
	buf_init(&k.have, SIZE_MAX / 2);
	buf_init(&k.part, SIZE_MAX / 2);
	while (all.n > 0) {
		size_t n = d != NULL ? dice_piece(d, all.n) : all.n;

		buf_add(&k.have, all.p, n);
		all.p += n;
		all.n -= n;
		while (feed_step(&k, false))
			;
		/* A mark at the very start does not count. */
		MCPVISOR_ASSERT(k.have.len <= max + SLACK + 3);
	}
	while (feed_step(&k, true))
		;
	MCPVISOR_ASSERT(k.have.len == 0 && k.part.len == 0);
	buf_fini(&k.have);
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
	size_t max;

	if (size == 0)
		return 0;
	/* At least a byte order mark: real limits are a thousand times that. */
	max = 3 + data[0] % 64;
	all = (struct jtext){(const char *)data + 1, size - 1};
	buf_init(&want, SIZE_MAX / 2);
	buf_init(&whole, SIZE_MAX / 2);
	buf_init(&parts, SIZE_MAX / 2);
	split(all, max, &want);
	feed_all(all, max, NULL, &whole);
	feed_all(all, max, &d, &parts);
	check_same(&want, &whole);
	check_same(&want, &parts);
	buf_fini(&want);
	buf_fini(&whole);
	buf_fini(&parts);
	return 0;
}
