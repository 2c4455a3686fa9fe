/* SPDX-License-Identifier: MIT */
/*
 * Newline framing over a buffer.
 *
 * Owns: nothing. Driven by: whoever reads.
 * Invariants: a byte is searched for a newline once; what counts as over the
 * limit does not depend on how the bytes arrived.
 */
#include "mcpvisor/framer.h"

#include <string.h>

/* Carriage returns before a newline beyond the limit, so that an endless run of
 * them is a line over the limit and not an ever growing one. */
#define CR_SLACK 16

static const char bom[3] = {'\xef', '\xbb', '\xbf'};

void
framer_init(struct framer *f, size_t max)
{
	memset(f, 0, sizeof(*f));
	f->max = max;
}

static size_t
framer_bom(const struct framer *f, const char *p, size_t n)
{
	return !f->started && n >= sizeof(bom) && memcmp(p, bom, sizeof(bom)) == 0
		   ? sizeof(bom)
		   : 0;
}

/* Length without carriage returns at the end; counts no more than it may. */
static size_t
framer_stripped(const char *p, size_t n)
{
	size_t cut = 0;

	while (cut < n && p[n - cut - 1] == '\r')
		cut++;
	return n - cut;
}

static bool
framer_is_over(const struct framer *f, const char *p, size_t n)
{
	if (n <= f->max)
		return false;
	return n > f->max + CR_SLACK || framer_stripped(p, n) > f->max;
}

static enum framer_event
framer_done(struct framer *f, enum framer_event ev)
{
	f->scanned = 0;
	f->started = true;
	f->discarding = ev == FRAMER_LONG;
	return ev;
}

enum framer_event
framer_next(struct framer *f, const char *p, size_t n, const char **line, size_t *len,
    size_t *consume)
{
	size_t skip = framer_bom(f, p, n);
	const char *nl = NULL;
	size_t end;

	*line = p;
	*len = 0;
	*consume = 0;
	if (n > f->scanned)
		nl = memchr(p + f->scanned, '\n', n - f->scanned);
	end = nl ? (size_t)(nl - p) : n;
	if (!nl) {
		f->scanned = n;
		if (n == 0)
			return FRAMER_NEED;
		if (!f->discarding && !framer_is_over(f, p + skip, n - skip))
			return FRAMER_NEED;
	}
	*line = p + skip;
	*len = end - skip;
	*consume = nl ? end + 1 : n;
	if (!nl)
		return framer_done(f, FRAMER_LONG);
	if (f->discarding || framer_is_over(f, *line, *len))
		return framer_done(f, FRAMER_LONG_END);
	*len = framer_stripped(*line, *len);
	return framer_done(f, FRAMER_LINE);
}

enum framer_event
framer_finish(struct framer *f, const char *p, size_t n, const char **line, size_t *len,
    size_t *consume)
{
	enum framer_event ev = framer_next(f, p, n, line, len, consume);
	size_t skip;

	if (ev == FRAMER_LONG)
		return framer_done(f, FRAMER_LONG_END);
	if (ev != FRAMER_NEED)
		return ev;
	if (n == 0)
		return f->discarding ? framer_done(f, FRAMER_LONG_END) : FRAMER_NEED;
	skip = framer_bom(f, p, n);
	*line = p + skip;
	*len = framer_stripped(*line, n - skip);
	*consume = n;
	return framer_done(f, FRAMER_LINE);
}
