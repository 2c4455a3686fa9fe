/* SPDX-License-Identifier: MIT */
/* Between what decides about a line (log.c) and what writes its text (log_format.c). */
#ifndef MCPVISOR_LOG_PRIV_H
#define MCPVISOR_LOG_PRIV_H

#include "mcpvisor/log.h"

#include <stdarg.h>

#define LOG_LINE_BYTES 4096 /* with the newline */

struct log_line {
	size_t len;
	bool cut;
	char text[LOG_LINE_BYTES + 1];
};

struct log_head {
	enum log_level level;
	unsigned suppressed;
	const char *module;
	const char *event;
	const char *level_name;
	char priority;	  /* of the journal: syslog's number; '\0': none */
	const char *time; /* as ISO 8601; NULL: none */
	enum log_format format;
};

/* Replaces l by the line that h, fmt and ap make. It has no newline and no control byte,
 * and fits with a newline. */
void log_format_line(struct log_line *l, const struct log_head *h, const char *fmt,
    va_list ap) __attribute__((format(printf, 3, 0)));

/* Bytes of the well-formed UTF-8 character at p that may be shown, else 0. */
size_t log_char_len(const unsigned char *p, size_t n);

#endif
