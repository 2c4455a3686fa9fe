/* SPDX-License-Identifier: MIT */
/*
 * The member "mcpvisor" of an imported entry: the options of an upstream that are
 * numbers, words or text, by the rows of the conf's own table.
 *
 * Owns: nothing.
 * Driven by: import_entry.c.
 * Invariants: an option that is wrong or unknown breaks the entry by its name, so that a
 * misspelt limit is never silently the default.
 */
#include "import_priv.h"

#include "option_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

struct option {
	const char *name;
	bool (*read)(struct upstream_conf *c, const struct option *o, const json_t *v);
	size_t offset;
	int64_t least, most;
	const char *const *words;	    /* of a choice */
	const char *(*check)(const char *); /* of a text */
};

/* False, with the entry broken: value is no such thing. */
static bool option_refuse(struct upstream_conf *c, const struct option *o,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static bool
option_refuse(struct upstream_conf *c, const struct option *o, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return import_break(c, MV_CONF, "mcpvisor.%s %s", o->name, what);
}

static bool
option_get_number(
    struct upstream_conf *c, const struct option *o, const json_t *v, int64_t *n)
{
	*n = json_integer_value(v);
	return (json_is_integer(v) && *n >= o->least && *n <= o->most) ||
	       option_refuse(c, o, "is not a whole number from %" PRId64 " to %" PRId64,
		   o->least, o->most);
}

static bool
option_read_u32(struct upstream_conf *c, const struct option *o, const json_t *v)
{
	int64_t n;
	uint32_t value;

	if (!option_get_number(c, o, v, &n))
		return false;
	value = (uint32_t)n;
	memcpy((char *)c + o->offset, &value, sizeof value);
	return true;
}

static bool
option_read_u64(struct upstream_conf *c, const struct option *o, const json_t *v)
{
	int64_t n;
	uint64_t value;

	if (!option_get_number(c, o, v, &n))
		return false;
	value = (uint64_t)n;
	memcpy((char *)c + o->offset, &value, sizeof value);
	return true;
}

static bool
option_read_bool(struct upstream_conf *c, const struct option *o, const json_t *v)
{
	bool value = json_is_true(v);

	if (!json_is_boolean(v))
		return option_refuse(c, o, "is neither true nor false");
	memcpy((char *)c + o->offset, &value, sizeof value);
	return true;
}

static bool
option_read_choice(struct upstream_conf *c, const struct option *o, const json_t *v)
{
	const char *s = json_string_value(v);
	char all[96] = "";
	size_t used = 0;

	for (unsigned i = 0; o->words[i]; i++) {
		if (s && strcmp(s, o->words[i]) == 0) {
			memcpy((char *)c + o->offset, &i, sizeof i);
			return true;
		}
		if (used < sizeof all)
			used += (size_t)snprintf(all + used, sizeof all - used, "%s%s",
			    i ? ", " : "", o->words[i]);
	}
	return option_refuse(c, o, "is none of %s", all);
}

static bool
option_read_text(struct upstream_conf *c, const struct option *o, const json_t *v)
{
	const char *s = json_string_value(v);
	const char *wrong = s ? o->check(s) : "is not a string";
	void *member = (char *)c + o->offset;

	if (wrong)
		return option_refuse(c, o, "%s", wrong);
	*(char **)member = mem_xstrdup(s);
	return true;
}

#define MEMBER_SIZE(member) sizeof(((struct upstream_conf *)NULL)->member)
#define ROW(key, member, lo, hi, read, words, check)                                     \
	{key, option_read_##read, offsetof(struct upstream_conf, member), lo, hi, words, \
	    check},
/* By type of the row; other types of an upstream's options an entry has members for. */
#define ROW_INT(key, m, lo, hi)	      ROW(key, m, lo, hi, u32, NULL, NULL)
#define ROW_MS(key, m, lo, hi)	      ROW(key, m, lo, hi, u32, NULL, NULL)
#define ROW_SIZE(key, m, lo, hi)      ROW(key, m, lo, hi, u64, NULL, NULL)
#define ROW_BOOL(key, m, lo, hi)      ROW(key, m, 0, 0, bool, NULL, NULL)
#define ROW_ERA(key, m, lo, hi)	      ROW(key, m, 0, 0, choice, era_words, NULL)
#define ROW_ISOLATION(key, m, lo, hi) ROW(key, m, 0, 0, choice, isolation_words, NULL)
#define ROW_START(key, m, lo, hi)     ROW(key, m, 0, 0, choice, start_words, NULL)
#define ROW_FAILURE(key, m, lo, hi)   ROW(key, m, 0, 0, choice, failure_words, NULL)
#define ROW_PREFIX(key, m, lo, hi)                                                       \
	ROW(key, m, 0, 0, text, NULL, upstream_conf_check_prefix)
#define ROW_URI_PREFIX(key, m, lo, hi)                                                   \
	ROW(key, m, 0, 0, text, NULL, upstream_conf_check_uri_prefix)
#define ROW_COMMAND(key, m, lo, hi)
#define ROW_ARGS(key, m, lo, hi)
#define ROW_ENV(key, m, lo, hi)
#define ROW_PATH(key, m, lo, hi)
#define ROW_PATTERNS(key, m, lo, hi)
#define ROW_RENAME(key, m, lo, hi)
#define ROW_TOOLS(key, m, lo, hi)
/* By the struct of the row. */
#define OF_UPSTREAM(type, key, m, lo, hi) ROW_##type(key, m, lo, hi)
#define OF_CONF(type, key, m, lo, hi)
#define OF_LISTEN(type, key, m, lo, hi)
#define OF_EXTRA(type, key, m, lo, hi)
#define OF_SHAPE(type, key, m, lo, hi)
#define OF_PROFILE(type, key, m, lo, hi)

static const struct option options[] = {
#define X(where, key, type, member, lo, hi, dflt, reload, flags, doc)                    \
	OF_##where(type, key, member, lo, hi)
    CONF_ROWS(X)
#undef X
};

/* A choice is stored as an unsigned, which is what all of these are. */
_Static_assert(MEMBER_SIZE(era) == sizeof(unsigned), "era");
_Static_assert(MEMBER_SIZE(isolation) == sizeof(unsigned), "isolation");
_Static_assert(MEMBER_SIZE(start) == sizeof(unsigned), "start");
_Static_assert(MEMBER_SIZE(failure) == sizeof(unsigned), "failure");

static bool
options_read_one(struct upstream_conf *c, const char *name, const json_t *v)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		if (strcmp(options[i].name, name) == 0)
			return options[i].read(c, &options[i], v);
	}
	return import_break(c, MV_CONF, "mcpvisor.%.100s is not a known option",
	    LOG_ESC(name, strlen(name)));
}

bool
import_options_read(struct upstream_conf *c, json_t *given)
{
	const char *name;
	json_t *v;

	if (given && !json_is_object(given))
		return import_break(c, MV_CONF, "mcpvisor is not an object");
	json_object_foreach(given, name, v)
	{
		if (!options_read_one(c, name, v))
			return false;
	}
	return true;
}
