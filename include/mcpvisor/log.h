/* SPDX-License-Identifier: MIT */
/*
 * The log: one event a line, "level module: event key=value ...", to stderr.
 *
 * Preserves errno. Never blocks: a line that a full stderr does not take is
 * counted and lost. Timestamps are left out and "<N>" priorities put first
 * when stderr is the journal (JOURNAL_STREAM names its device and inode).
 */
#ifndef MCPVISOR_LOG_H
#define MCPVISOR_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
	LOG_LV_ERROR,	/* an operator must act */
	LOG_LV_WARNING, /* degraded */
	LOG_LV_NOTICE,	/* life cycle */
	LOG_LV_INFO,	/* per connection */
	LOG_LV_DEBUG	/* per message */
};

/* State of one call site's rate limit; static, zero-initialised. */
struct log_site {
	unsigned burst;	    /* lines in a period; 0: 10 */
	unsigned period_ms; /* 0: 10000 */
	uint64_t window_start_ms;
	unsigned in_window;
	unsigned suppressed;
};

/* Takes over fd 2 (a non-blocking description of its own where /proc allows). Of 0, 1
 * and 2 what is closed becomes /dev/null, so that no other file gets their numbers: to be
 * called before anything is opened. */
void log_open(enum log_level max);
void log_set_level(enum log_level max);
bool log_is_on(enum log_level level); /* of any module */
/* The level of one module (the word that its lines carry) in place of the general one;
 * copied, at most 32 of them. False: too many, or too long a word. */
bool log_set_module_level(const char *module, enum log_level max);
void log_clear_module_levels(void);

/* X(FORMAT, name): "level module: event key=value", all as key=value, or one JSON object
 * a line. The journal's priority or a timestamp comes with each. */
#define LOG_FORMATS(X)                                                                   \
	X(TEXT, "text")                                                                  \
	X(LOGFMT, "logfmt")                                                              \
	X(JSON, "json")
enum log_format {
#define X(id, name) LOG_FMT_##id,
	LOG_FORMATS(X)
#undef X
	    LOG_FMT_MAX
};
void log_set_format(enum log_format f);
/* Lines in a period for a site that says nothing of its own; 0: as built. */
void log_set_limit(unsigned burst, unsigned period_ms);
/* "error", "warning", ...; false when the name is none of them. */
bool log_level_parse(const char *name, enum log_level *level);
/* Tests and tools: lines go to fn instead, without newline, timestamp and priority,
 * NUL-terminated; NULL restores. */
void log_set_sink(
    void (*fn)(enum log_level, const char *line, size_t len, void *arg), void *arg);

/* fmt gives the key=value part and may be "". Values that a peer chose go
 * through LOG_ESC. Lines end at 4096 bytes. */
void log_event(enum log_level level, const char *module, const char *event,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The same, at most as many lines as the site allows; the next line after a
 * silence carries suppressed=N. */
void log_limited(struct log_site *site, enum log_level level, const char *module,
    const char *event, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Quotes and escapes n bytes for a value: printable ASCII and valid UTF-8 stay,
 * control bytes, DEL, C1 and invalid bytes become \xHH, and it is cut to
 * CAP_LOG_VALUE_BYTES with "..." . Returns one of 4 rotating static buffers. */
const char *log_escape(const char *p, size_t n);
#define LOG_ESC(p, n) log_escape((p), (n))

#define LOG_ERROR(module, event, ...) log_event(LOG_LV_ERROR, module, event, __VA_ARGS__)
#define LOG_WARNING(module, event, ...)                                                  \
	log_event(LOG_LV_WARNING, module, event, __VA_ARGS__)
#define LOG_NOTICE(module, event, ...)                                                   \
	log_event(LOG_LV_NOTICE, module, event, __VA_ARGS__)
#define LOG_INFO(module, event, ...) log_event(LOG_LV_INFO, module, event, __VA_ARGS__)
#define LOG_DEBUG(module, event, ...)                                                    \
	do {                                                                             \
		if (log_is_on(LOG_LV_DEBUG))                                             \
			log_event(LOG_LV_DEBUG, module, event, __VA_ARGS__);             \
	} while (0)
/* As many lines from this place as log_set_limit says, ten in ten seconds else. */
#define LOG_LIMITED(level, module, event, ...)                                           \
	do {                                                                             \
		static struct log_site log_site_;                                        \
		log_limited(&log_site_, level, module, event, __VA_ARGS__);              \
	} while (0)

#endif
