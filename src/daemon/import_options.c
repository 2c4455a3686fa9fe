/* SPDX-License-Identifier: MIT */
/*
 * The member "mcpvisor" of an imported entry: options of our own, by table.
 *
 * Owns: nothing.
 * Driven by: import_entry.c.
 * Invariants: an option that is wrong or unknown breaks the entry by its name, so that a
 * misspelt limit is never silently the default. Names and ranges are those of the conf.
 */
#include "import_priv.h"

#include <stdio.h>
#include <string.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#define DAY_MS		       (24u * 60 * 60 * 1000)
#define IMPORT_URI_PREFIX_MAX  128
#define IMPORT_QUEUE_BYTES_MAX (1024LL * 1024 * 1024)

static const char *const era_words[] = {
    [ERA_AUTO] = "auto", [ERA_LEGACY] = "legacy", [ERA_MODERN] = "modern", NULL};
static const char *const isolation_words[] = {[ISOLATION_AUTO] = "auto",
    [ISOLATION_SHARED] = "shared",
    [ISOLATION_SESSION] = "session",
    [ISOLATION_CALL] = "call",
    NULL};
static const char *const start_words[] = {
    [START_EAGER] = "eager", [START_ON_USE] = "on_use", NULL};
static const char *const failure_words[] = {
    [FAILURE_ERROR] = "error", [FAILURE_TOOL_ERROR] = "tool_error", NULL};

/* X(option, member, least, most): whole numbers of 32 bits */
#define IMPORT_NUMBERS(X)                                                                \
	X("max_instances", max_instances, 1, CAP_INSTANCES)                              \
	X("idle_stop_ms", idle_stop_ms, 0, 7 * DAY_MS)                                   \
	X("probe_ms", probe_ms, 1, 600000)                                               \
	X("start_ms", start_ms, 1, 3600000)                                              \
	X("call_ms", call_ms, 1, DAY_MS)                                                 \
	X("call_max_ms", call_max_ms, 1, 7 * DAY_MS)                                     \
	X("queue_calls", queue_calls, 1, 65536)                                          \
	X("restart_base_ms", restart_base_ms, 1, 60000)                                  \
	X("restart_max_ms", restart_max_ms, 1, 3600000)                                  \
	X("restart_limit", restart_limit, 0, 1000000)                                    \
	X("stable_ms", stable_ms, 1, DAY_MS)                                             \
	X("term_ms", term_ms, 0, 600000)                                                 \
	X("kill_ms", kill_ms, 0, 600000)

/* X(option, member, words): one of some words */
#define IMPORT_CHOICES(X)                                                                \
	X("era", era, era_words)                                                         \
	X("isolation", isolation, isolation_words)                                       \
	X("start", start, start_words)                                                   \
	X("upstream_failure", failure, failure_words)

static const struct number_option {
	const char *name;
	size_t offset;
	uint32_t least, most;
} number_options[] = {
#define X(name, member, least, most)                                                     \
	{name, offsetof(struct upstream_conf, member), least, most},
    IMPORT_NUMBERS(X)
#undef X
};

static const struct choice_option {
	const char *name;
	size_t offset;
	const char *const *words;
} choice_options[] = {
#define X(name, member, words) {name, offsetof(struct upstream_conf, member), words},
    IMPORT_CHOICES(X)
#undef X
};

/* A choice is stored as an unsigned, which is what all of these are. */
#define X(name, member, words)                                                           \
	_Static_assert(                                                                  \
	    sizeof(((struct upstream_conf *)NULL)->member) == sizeof(unsigned), name);
IMPORT_CHOICES(X)
#undef X

static bool
options_read_number(
    struct upstream_conf *c, const struct number_option *o, const json_t *v)
{
	json_int_t got = json_integer_value(v);
	uint32_t value;

	if (!json_is_integer(v) || got < (json_int_t)o->least ||
	    got > (json_int_t)o->most)
		return import_break(c, MV_CONF,
		    "mcpvisor.%s is not a whole number from %u to %u", o->name, o->least,
		    o->most);
	value = (uint32_t)got;
	memcpy((char *)c + o->offset, &value, sizeof value);
	return true;
}

static bool
options_read_choice(
    struct upstream_conf *c, const struct choice_option *o, const json_t *v)
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
	return import_break(c, MV_CONF, "mcpvisor.%s is none of %s", o->name, all);
}

static bool
options_read_prefix(struct upstream_conf *c, const char *name, const json_t *v)
{
	const char *s = json_string_value(v);

	(void)name;
	if (!s)
		return import_break(c, MV_CONF, "mcpvisor.prefix is not a string");
	if (strlen(s) > CAP_NAME_BYTES / 2)
		return import_break(c, MV_CONF,
		    "mcpvisor.prefix is longer than %d characters", CAP_NAME_BYTES / 2);
	for (const char *p = s; *p; p++) {
		if (!((*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') ||
			(*p >= '0' && *p <= '9') || *p == '_' || *p == '-'))
			return import_break(c, MV_CONF,
			    "mcpvisor.prefix may have letters, digits, _ and - only");
	}
	c->prefix = mem_xstrdup(s);
	return true;
}

static bool
options_read_uri_prefix(struct upstream_conf *c, const char *name, const json_t *v)
{
	const char *s = json_string_value(v);

	(void)name;
	if (!s)
		return import_break(c, MV_CONF, "mcpvisor.uri_prefix is not a string");
	if (strlen(s) > IMPORT_URI_PREFIX_MAX)
		return import_break(c, MV_CONF,
		    "mcpvisor.uri_prefix is longer than %d characters",
		    IMPORT_URI_PREFIX_MAX);
	for (const char *p = s; *p; p++) {
		if (*p <= ' ' || *p > '~' || strchr("\"<>\\^`{|}", *p))
			return import_break(c, MV_CONF,
			    "mcpvisor.uri_prefix has a character that no URI has");
	}
	c->uri_prefix = *s ? mem_xstrdup(s) : NULL;
	return true;
}

static bool
options_read_rescue(struct upstream_conf *c, const char *name, const json_t *v)
{
	if (!json_is_boolean(v))
		return import_break(
		    c, MV_CONF, "mcpvisor.%s is neither true nor false", name);
	c->rescue_errors = json_is_true(v);
	return true;
}

/* The one number that 32 bits may be too few for. */
static bool
options_read_bytes(struct upstream_conf *c, const char *name, const json_t *v)
{
	json_int_t got = json_integer_value(v);

	if (!json_is_integer(v) || got < 1 || got > IMPORT_QUEUE_BYTES_MAX)
		return import_break(c, MV_CONF,
		    "mcpvisor.%s is not a whole number from 1 to %lld", name,
		    (long long)IMPORT_QUEUE_BYTES_MAX);
	c->queue_bytes = (uint64_t)got;
	return true;
}

static const struct other_option {
	const char *name;
	bool (*read)(struct upstream_conf *c, const char *name, const json_t *v);
} other_options[] = {
    {"prefix", options_read_prefix},
    {"uri_prefix", options_read_uri_prefix},
    {"rescue_errors", options_read_rescue},
    {"queue_bytes", options_read_bytes},
};

static bool
options_read_one(struct upstream_conf *c, const char *name, const json_t *v)
{
	for (size_t i = 0; i < sizeof number_options / sizeof *number_options; i++) {
		if (strcmp(number_options[i].name, name) == 0)
			return options_read_number(c, &number_options[i], v);
	}
	for (size_t i = 0; i < sizeof choice_options / sizeof *choice_options; i++) {
		if (strcmp(choice_options[i].name, name) == 0)
			return options_read_choice(c, &choice_options[i], v);
	}
	for (size_t i = 0; i < sizeof other_options / sizeof *other_options; i++) {
		if (strcmp(other_options[i].name, name) == 0)
			return other_options[i].read(c, name, v);
	}
	return import_break(c, MV_CONF, "mcpvisor.%.100s is not a known option",
	    LOG_ESC(name, strlen(name)));
}

bool
import_options_read(struct upstream_conf *c, json_t *options)
{
	const char *name;
	json_t *v;

	if (options && !json_is_object(options))
		return import_break(c, MV_CONF, "mcpvisor is not an object");
	json_object_foreach(options, name, v)
	{
		if (!options_read_one(c, name, v))
			return false;
	}
	return true;
}
