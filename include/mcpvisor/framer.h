/* SPDX-License-Identifier: MIT */
/*
 * Newline framing as a pure function over a buffer: finds the next line,
 * remembers how far it has looked, and turns a line over the limit into parts
 * to be discarded, so that a reader can still look for the id in them.
 */
#ifndef MCPVISOR_FRAMER_H
#define MCPVISOR_FRAMER_H

#include <stdbool.h>
#include <stddef.h>

struct framer {
	size_t max;	/* longest line, without its newline */
	size_t scanned; /* bytes of the current line known to hold no newline */
	bool discarding;
	bool started; /* past a byte order mark at the very start */
};

enum framer_event {
	FRAMER_NEED,	 /* no complete line; consume nothing */
	FRAMER_LINE,	 /* line[0..len) is complete, without CRs and LF at its end */
	FRAMER_LONG,	 /* line[0..len) is a part of a line over the limit */
	FRAMER_LONG_END, /* the same, and its last part (len may be 0) */
};

void framer_init(struct framer *f, size_t max);
/* Looks at the n unconsumed bytes at p (the same bytes again, plus new ones,
 * after FRAMER_NEED). Sets *line, *len and *consume; the caller consumes
 * *consume bytes. A byte order mark before the first line is skipped; empty
 * lines come as FRAMER_LINE with len 0. */
enum framer_event framer_next(struct framer *f, const char *p, size_t n,
    const char **line, size_t *len, size_t *consume);
/* End of input: the rest, if any, counts as a line. Same results, never NEED
 * unless nothing is left. */
enum framer_event framer_finish(struct framer *f, const char *p, size_t n,
    const char **line, size_t *len, size_t *consume);

#endif
