/* SPDX-License-Identifier: MIT */
/*
 * The log: one event a line to stderr, in one write, never waiting for it.
 *
 * Owns: a non-blocking description of what stderr points at.
 * Driven by: every layer, the allocator's last words included.
 * Invariants: nothing here allocates, blocks or changes errno; a line fits
 * PIPE_BUF, so a pipe takes it whole or not at all; no control byte gets out.
 */
#include "mcpvisor/log.h"

#include "log_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOG_BURST	10
#define LOG_PERIOD_MS	10000
#define LOG_MODULES	32
#define LOG_MODULE_NAME 32 /* with NUL */
#define LOG_ESC_BUFFERS 4
#define LOG_TIME_BYTES	40

enum log_out {
	LOG_OUT_POLL,	/* look for room first: O_NONBLOCK would be shared with others */
	LOG_OUT_WRITE,	/* a regular file, or non-blocking by itself */
	LOG_OUT_SOCKET, /* cannot be opened again, but send has a flag */
};

static const struct {
	const char *name;
	char priority; /* of the journal: syslog's number */
} log_levels[] = {
    [LOG_LV_ERROR] = {"error", '3'},
    [LOG_LV_WARNING] = {"warning", '4'},
    [LOG_LV_NOTICE] = {"notice", '5'},
    [LOG_LV_INFO] = {"info", '6'},
    [LOG_LV_DEBUG] = {"debug", '7'},
};

#define LOG_LEVELS (sizeof(log_levels) / sizeof(log_levels[0]))

static struct {
	enum log_level max;
	enum log_level any_max; /* the highest of max and of modules */
	enum log_format format;
	enum log_out out;
	int fd;
	bool journal;
	unsigned burst, period_ms;
	size_t n_modules;
	struct {
		char name[LOG_MODULE_NAME];
		enum log_level max;
	} modules[LOG_MODULES];
	void (*sink)(enum log_level, const char *, size_t, void *);
	void *sink_arg;
} g_log = {.max = LOG_LV_NOTICE,
    .any_max = LOG_LV_NOTICE,
    .burst = LOG_BURST,
    .period_ms = LOG_PERIOD_MS,
    .out = LOG_OUT_POLL,
    .fd = STDERR_FILENO};

static bool
log_is_journal(const struct stat *st)
{
	const char *want = getenv("JOURNAL_STREAM");
	char have[64];

	if (want == NULL)
		return false;
	(void)snprintf(have, sizeof(have), "%llu:%llu", (unsigned long long)st->st_dev,
	    (unsigned long long)st->st_ino);
	return strcmp(want, have) == 0;
}

/* Some launchers close them, and then the next socket or file that is opened would get
 * what is written here. */
static void
log_fill_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
}

void
log_open(enum log_level max)
{
	int saved = errno;
	struct stat st;
	int fd = -1;

	log_fill_standard();
	if (g_log.fd != STDERR_FILENO)
		(void)close(g_log.fd);
	log_set_level(max);
	g_log.fd = STDERR_FILENO;
	g_log.out = LOG_OUT_POLL;
	g_log.journal = false;
	if (fstat(STDERR_FILENO, &st) != 0)
		goto out;
	g_log.journal = log_is_journal(&st);
	if (S_ISSOCK(st.st_mode)) {
		g_log.out = LOG_OUT_SOCKET;
	} else if (S_ISREG(st.st_mode)) {
		g_log.out = LOG_OUT_WRITE;
	} else {
		fd = open("/proc/self/fd/2",
		    O_WRONLY | O_NONBLOCK | O_APPEND | O_NOCTTY | O_CLOEXEC);
		if (fd >= 0) {
			g_log.fd = fd;
			g_log.out = LOG_OUT_WRITE;
		}
	}
out:
	errno = saved;
}

static void
log_find_any_max(void)
{
	g_log.any_max = g_log.max;
	for (size_t i = 0; i < g_log.n_modules; i++) {
		if (g_log.modules[i].max > g_log.any_max)
			g_log.any_max = g_log.modules[i].max;
	}
}

void
log_set_level(enum log_level max)
{
	g_log.max = max;
	log_find_any_max();
}

bool
log_is_on(enum log_level level)
{
	return level <= g_log.any_max;
}

bool
log_set_module_level(const char *module, enum log_level max)
{
	size_t n = strlen(module), i = 0;

	if (n == 0 || n >= LOG_MODULE_NAME)
		return false;
	while (i < g_log.n_modules && strcmp(g_log.modules[i].name, module) != 0)
		i++;
	if (i == LOG_MODULES)
		return false;
	memcpy(g_log.modules[i].name, module, n + 1);
	g_log.modules[i].max = max;
	if (i == g_log.n_modules)
		g_log.n_modules++;
	log_find_any_max();
	return true;
}

void
log_clear_module_levels(void)
{
	g_log.n_modules = 0;
	log_find_any_max();
}

void
log_set_format(enum log_format f)
{
	g_log.format = f;
}

void
log_set_limit(unsigned burst, unsigned period_ms)
{
	g_log.burst = burst ? burst : LOG_BURST;
	g_log.period_ms = period_ms ? period_ms : LOG_PERIOD_MS;
}

bool
log_level_parse(const char *name, enum log_level *level)
{
	for (size_t i = 0; i < LOG_LEVELS; i++) {
		if (strcmp(name, log_levels[i].name) == 0) {
			*level = (enum log_level)i;
			return true;
		}
	}
	return false;
}

void
log_set_sink(
    void (*fn)(enum log_level, const char *line, size_t len, void *arg), void *arg)
{
	g_log.sink = fn;
	g_log.sink_arg = arg;
}

static void
log_line_write(struct log_line *l)
{
	struct pollfd p = {.fd = g_log.fd, .events = POLLOUT};
	ssize_t n = -1;

	l->text[l->len++] = '\n';
	/* A pipe with room at all has room for a line. */
	if (g_log.out != LOG_OUT_POLL || (poll(&p, 1, 0) == 1 && p.revents == POLLOUT)) {
		do {
			if (g_log.out == LOG_OUT_SOCKET)
				n = send(g_log.fd, l->text, l->len,
				    MSG_DONTWAIT | MSG_NOSIGNAL);
			else
				n = write(g_log.fd, l->text, l->len);
		} while (n < 0 && errno == EINTR);
	}
	if (n != (ssize_t)l->len)
		metrics_add(METRIC_LOG_LOST, 1);
}

/* Of a second that many lines share the text is kept. */
static void
log_time(char out[LOG_TIME_BYTES])
{
	static char text[LOG_TIME_BYTES];
	static time_t second;
	static size_t len;
	struct timespec ts;
	struct tm tm;
	unsigned ms;

	out[0] = '\0';
	if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
		return;
	if (len == 0 || ts.tv_sec != second) {
		if (!gmtime_r(&ts.tv_sec, &tm))
			return;
		len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
		second = ts.tv_sec;
	}
	if (len == 0 || len + sizeof(".000Z") > LOG_TIME_BYTES)
		return;
	ms = (unsigned)(ts.tv_nsec / 1000000);
	memcpy(out, text, len);
	out[len] = '.';
	out[len + 1] = (char)('0' + ms / 100);
	out[len + 2] = (char)('0' + ms / 10 % 10);
	out[len + 3] = (char)('0' + ms % 10);
	out[len + 4] = 'Z';
	out[len + 5] = '\0';
}

static void __attribute__((format(printf, 2, 0)))
log_emit(struct log_head *h, const char *fmt, va_list ap)
{
	char time[LOG_TIME_BYTES];
	struct log_line l;
	int saved = errno;

	h->format = g_log.format;
	h->level_name = log_levels[h->level].name;
	if (g_log.sink == NULL && g_log.journal) {
		h->priority = log_levels[h->level].priority;
	} else if (g_log.sink == NULL) {
		log_time(time);
		h->time = time[0] ? time : NULL;
	}
	log_format_line(&l, h, fmt, ap);
	h->time = NULL;
	if (g_log.sink != NULL) {
		l.text[l.len] = '\0';
		g_log.sink(h->level, l.text, l.len, g_log.sink_arg);
	} else {
		log_line_write(&l);
	}
	errno = saved;
}

/* By the word of the line, where that has a level of its own. */
static bool
log_is_wanted(enum log_level level, const char *module)
{
	if (level > g_log.any_max)
		return false;
	for (size_t i = 0; i < g_log.n_modules; i++) {
		if (strcmp(g_log.modules[i].name, module) == 0)
			return level <= g_log.modules[i].max;
	}
	return level <= g_log.max;
}

void
log_event(
    enum log_level level, const char *module, const char *event, const char *fmt, ...)
{
	struct log_head h = {.level = level, .module = module, .event = event};
	va_list ap;

	if (!log_is_wanted(level, module))
		return;
	va_start(ap, fmt);
	log_emit(&h, fmt, ap);
	va_end(ap);
}

void
log_limited(struct log_site *site, enum log_level level, const char *module,
    const char *event, const char *fmt, ...)
{
	struct log_head h = {.level = level, .module = module, .event = event};
	unsigned burst = site->burst ? site->burst : g_log.burst;
	unsigned period_ms = site->period_ms ? site->period_ms : g_log.period_ms;
	uint64_t now;
	va_list ap;

	if (!log_is_wanted(level, module))
		return;
	now = clock_now_ms();
	if (now - site->window_start_ms >= period_ms) {
		site->window_start_ms = now;
		site->in_window = 0;
	}
	if (site->in_window >= burst) {
		site->suppressed++;
		metrics_add(METRIC_LOG_SUPPRESSED, 1);
		return;
	}
	site->in_window++;
	h.suppressed = site->suppressed;
	site->suppressed = 0;
	va_start(ap, fmt);
	log_emit(&h, fmt, ap);
	va_end(ap);
}

size_t
log_char_len(const unsigned char *p, size_t n)
{
	size_t len = utf8_length(p, n);

	if (len == 1)
		return p[0] >= 0x20 && p[0] != 0x7f ? 1 : 0;
	/* C1 */
	return len == 2 && p[0] == 0xc2 && p[1] < 0xa0 ? 0 : len;
}

/* Writes the escaped form of what begins at p to out (4 bytes); counts what it took. */
static size_t
log_escape_one(const unsigned char *p, size_t n, char *out, size_t *took)
{
	static const char hex[] = "0123456789abcdef";
	size_t len = log_char_len(p, n);

	*took = len > 0 ? len : 1;
	if (len == 0) {
		out[0] = '\\';
		out[1] = 'x';
		out[2] = hex[p[0] >> 4];
		out[3] = hex[p[0] & 15];
		return 4;
	}
	if (p[0] == '"' || p[0] == '\\') {
		out[0] = '\\';
		out[1] = (char)p[0];
		return 2;
	}
	memcpy(out, p, len);
	return len;
}

const char *
log_escape(const char *p, size_t n)
{
	static char bufs[LOG_ESC_BUFFERS][CAP_LOG_VALUE_BYTES + 1];
	static unsigned next;
	const unsigned char *in = (const unsigned char *)p;
	char *out = bufs[next++ % LOG_ESC_BUFFERS];
	size_t len = 0;
	size_t took;

	out[len++] = '"';
	for (size_t i = 0; i < n; i += took) {
		char one[4];
		size_t m = log_escape_one(in + i, n - i, one, &took);

		/* Outside the quotes, where no peer can write them. */
		if (len + m + sizeof("\"...") - 1 > CAP_LOG_VALUE_BYTES) {
			memcpy(out + len, "\"...", sizeof("\"..."));
			return out;
		}
		memcpy(out + len, one, m);
		len += m;
	}
	out[len++] = '"';
	out[len] = '\0';
	return out;
}
