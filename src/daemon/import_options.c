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
#include "remote_conf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

/* Where options go. */
struct target {
	struct import_ctx *x;
	struct upstream_conf *c;
};

struct option {
	const char *name;
	bool (*read)(const struct target *to, const struct option *o, const json_t *v);
	unsigned flags;
	size_t offset;
	int64_t least, most;
	const char *const *words;	    /* of a choice */
	const char *(*check)(const char *); /* of a text */
};

/* False, with the entry broken: value is no such thing. */
static bool option_refuse(const struct target *to, const struct option *o,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static bool
option_refuse(const struct target *to, const struct option *o, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return import_break(to->c, MV_CONF, "mcpvisor.%s %s", o->name, what);
}

static bool
option_get_number(
    const struct target *to, const struct option *o, const json_t *v, int64_t *n)
{
	*n = json_integer_value(v);
	return (json_is_integer(v) && *n >= o->least && *n <= o->most) ||
	       option_refuse(to, o, "is not a whole number from %" PRId64 " to %" PRId64,
		   o->least, o->most);
}

static bool
option_read_u32(const struct target *to, const struct option *o, const json_t *v)
{
	int64_t n;
	uint32_t value;

	if (!option_get_number(to, o, v, &n))
		return false;
	value = (uint32_t)n;
	memcpy((char *)to->c + o->offset, &value, sizeof value);
	return true;
}

static bool
option_read_u64(const struct target *to, const struct option *o, const json_t *v)
{
	int64_t n;
	uint64_t value;

	if (!option_get_number(to, o, v, &n))
		return false;
	value = (uint64_t)n;
	memcpy((char *)to->c + o->offset, &value, sizeof value);
	return true;
}

static bool
option_read_bool(const struct target *to, const struct option *o, const json_t *v)
{
	bool value = json_is_true(v);

	if (!json_is_boolean(v))
		return option_refuse(to, o, "is neither true nor false");
	memcpy((char *)to->c + o->offset, &value, sizeof value);
	return true;
}

static bool
option_read_choice(const struct target *to, const struct option *o, const json_t *v)
{
	const char *s = json_string_value(v);
	char all[96] = "";
	size_t used = 0;

	for (unsigned i = 0; o->words[i]; i++) {
		/* No word is what stands for none. */
		if (*o->words[i] == '\0')
			continue;
		if (s && strcmp(s, o->words[i]) == 0) {
			memcpy((char *)to->c + o->offset, &i, sizeof i);
			return true;
		}
		if (used < sizeof all)
			used += (size_t)snprintf(all + used, sizeof all - used, "%s%s",
			    used > 0 ? ", " : "", o->words[i]);
	}
	return option_refuse(to, o, "is none of %s", all);
}

static bool
option_read_text(const struct target *to, const struct option *o, const json_t *v)
{
	const char *s = json_string_value(v);
	const char *wrong = s ? o->check(s) : "is not a string";
	void *member = (char *)to->c + o->offset;

	if (wrong)
		return option_refuse(to, o, "%s", wrong);
	*(char **)member = mem_xstrdup(s);
	return true;
}

/* NULL: the entry is broken. */
static char *
option_expand(
    const struct target *to, const struct option *o, const json_t *v, bool *secret)
{
	const char *s = json_string_value(v), *wrong;
	char field[64], *value;

	if (!s) {
		(void)option_refuse(to, o, "is not a string");
		return NULL;
	}
	(void)snprintf(field, sizeof field, "mcpvisor.%s", o->name);
	value = import_entry_expand(to->x, to->c, field, s, secret);
	if (!value)
		return NULL;
	wrong = *value ? NULL : "is empty";
	if (o->check)
		wrong = o->check(value);
	if (!wrong)
		return value;
	(void)option_refuse(to, o, "%s", wrong);
	mem_free_secret(value, strlen(value));
	return NULL;
}

static bool
option_keep(const struct target *to, const struct option *o, char *value, bool secret)
{
	void *member = (char *)to->c + o->offset;

	*(char **)member = value;
	if (secret)
		import_add_secret(to->x, value);
	return true;
}

static bool
option_read_expanded(const struct target *to, const struct option *o, const json_t *v)
{
	bool secret = false;
	char *value = option_expand(to, o, v, &secret);

	return value && option_keep(to, o, value, secret);
}

static bool
option_read_file(const struct target *to, const struct option *o, const json_t *v)
{
	bool secret = false;
	char *name = option_expand(to, o, v, &secret), *path;

	if (!name)
		return false;
	path = import_entry_path(to->x, name);
	mem_free_secret(name, strlen(name));
	return option_keep(to, o, path, secret);
}

/* The name says yes, the member no. */
static bool
option_read_verify(const struct target *to, const struct option *o, const json_t *v)
{
	if (!option_read_bool(to, o, v))
		return false;
	to->c->skip_verify = !to->c->skip_verify;
	return true;
}

static bool
option_read_roots(const struct target *to, const struct option *o, const json_t *v)
{
	char **uris;
	json_t *uri;
	size_t i;

	if (!json_is_array(v))
		return json_is_string(v)
			   ? option_read_choice(to, o, v)
			   : option_refuse(to, o, "is no word and no array");
	to->c->root_uris = uris = mem_xcalloc(json_array_size(v) + 1, sizeof *uris);
	json_array_foreach(v, i, uri)
	{
		const char *s = json_string_value(uri);
		const char *wrong = s ? remote_check_root(s) : "is not a string";

		if (wrong)
			return option_refuse(to, o, "has an element that %s", wrong);
		uris[i] = mem_xstrdup(s);
	}
	to->c->roots = ROOTS_LIST;
	return true;
}

#define MEMBER_SIZE(member) sizeof(((struct upstream_conf *)NULL)->member)
#define ROW(key, member, lo, hi, flags, read, words, check)                              \
	{key, option_read_##read, flags, offsetof(struct upstream_conf, member), lo, hi, \
	    words, check},
/* By type of the row; other types of an upstream's options an entry has members for. */
#define ROW_INT(key, m, lo, hi, f)    ROW(key, m, lo, hi, f, u32, NULL, NULL)
#define ROW_MS(key, m, lo, hi, f)     ROW(key, m, lo, hi, f, u32, NULL, NULL)
#define ROW_SIZE(key, m, lo, hi, f)   ROW(key, m, lo, hi, f, u64, NULL, NULL)
#define ROW_BOOL(key, m, lo, hi, f)   ROW(key, m, 0, 0, f, bool, NULL, NULL)
#define ROW_VERIFY(key, m, lo, hi, f) ROW(key, m, 0, 0, f, verify, NULL, NULL)
#define ROW_ERA(key, m, lo, hi, f)    ROW(key, m, 0, 0, f, choice, era_words, NULL)
#define ROW_ISOLATION(key, m, lo, hi, f)                                                 \
	ROW(key, m, 0, 0, f, choice, isolation_words, NULL)
#define ROW_START(key, m, lo, hi, f)   ROW(key, m, 0, 0, f, choice, start_words, NULL)
#define ROW_FAILURE(key, m, lo, hi, f) ROW(key, m, 0, 0, f, choice, failure_words, NULL)
#define ROW_TRANSPORT(key, m, lo, hi, f)                                                 \
	ROW(key, m, 0, 0, f, choice, transport_words, NULL)
#define ROW_ROOTS(key, m, lo, hi, f) ROW(key, m, 0, 0, f, roots, roots_words, NULL)
#define ROW_FILE(key, m, lo, hi, f)  ROW(key, m, 0, 0, f, file, NULL, NULL)
#define ROW_PROXY(key, m, lo, hi, f)                                                     \
	ROW(key, m, 0, 0, f, expanded, NULL, remote_check_proxy)
#define ROW_PREFIX(key, m, lo, hi, f)                                                    \
	ROW(key, m, 0, 0, f, text, NULL, upstream_conf_check_prefix)
#define ROW_URI_PREFIX(key, m, lo, hi, f)                                                \
	ROW(key, m, 0, 0, f, text, NULL, upstream_conf_check_uri_prefix)
#define ROW_GRAPHQL(key, m, lo, hi, f)                                                   \
	ROW(key, m, 0, 0, f, choice, graphql_mode_words, NULL)
#define ROW_SURVIVAL(key, m, lo, hi, f)                                                  \
	ROW(key, m, 0, 0, f, choice, graphql_survival_words, NULL)
#define ROW_ANNOTATE(key, m, lo, hi, f)                                                  \
	ROW(key, m, 0, 0, f, choice, graphql_annotate_words, NULL)
#define ROW_POINTER(key, m, lo, hi, f) ROW(key, m, 0, 0, f, text, NULL, pointer_check)
#define ROW_KIND(key, m, lo, hi, f)
#define ROW_RULES(key, m, lo, hi, f)
#define ROW_IDENTITY(key, m, lo, hi, f)
#define ROW_REGEXES(key, m, lo, hi, f)
#define ROW_COMMAND(key, m, lo, hi, f)
#define ROW_ARGS(key, m, lo, hi, f)
#define ROW_ENV(key, m, lo, hi, f)
#define ROW_PATH(key, m, lo, hi, f)
#define ROW_URL(key, m, lo, hi, f)
#define ROW_HEADERS(key, m, lo, hi, f)
#define ROW_PATTERNS(key, m, lo, hi, f)
#define ROW_RENAME(key, m, lo, hi, f)
#define ROW_TOOLS(key, m, lo, hi, f)
/* By the struct of the row. */
#define OF_UPSTREAM(type, key, m, lo, hi, f) ROW_##type(key, m, lo, hi, f)
#define OF_CONF(type, key, m, lo, hi, f)
#define OF_LISTEN(type, key, m, lo, hi, f)
#define OF_EXTRA(type, key, m, lo, hi, f)
#define OF_OWN(type, key, m, lo, hi, f)
#define OF_PARAM(type, key, m, lo, hi, f)
#define OF_RULE(type, key, m, lo, hi, f)
#define OF_SHAPE(type, key, m, lo, hi, f)
#define OF_PROFILE(type, key, m, lo, hi, f)

static const struct option options[] = {
#define X(where, key, type, member, lo, hi, dflt, reload, flags, doc)                    \
	OF_##where(type, key, member, lo, hi, flags)
    CONF_ROWS(X)
#undef X
};

/* A choice is stored as an unsigned, which is what all of these are. */
_Static_assert(MEMBER_SIZE(era) == sizeof(unsigned), "era");
_Static_assert(MEMBER_SIZE(isolation) == sizeof(unsigned), "isolation");
_Static_assert(MEMBER_SIZE(start) == sizeof(unsigned), "start");
_Static_assert(MEMBER_SIZE(failure) == sizeof(unsigned), "failure");
_Static_assert(MEMBER_SIZE(transport) == sizeof(unsigned), "transport");
_Static_assert(MEMBER_SIZE(label.mode) == sizeof(unsigned), "graphql");
_Static_assert(MEMBER_SIZE(label.survival) == sizeof(unsigned), "graphql_survival");
_Static_assert(MEMBER_SIZE(label.annotate) == sizeof(unsigned), "graphql_annotate");
_Static_assert(MEMBER_SIZE(roots) == sizeof(unsigned), "roots");

static bool
options_read_one(const struct target *to, const char *name, const json_t *v)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		const struct option *o = &options[i];

		if (strcmp(o->name, name) != 0)
			continue;
		return CONF_IS_OF(o->flags, CONF_K(to->c->kind))
			   ? o->read(to, o, v)
			   : option_refuse(to, o, "is an option of %s",
				 to->c->kind == KIND_HTTP ? "commands"
							  : "remote servers");
	}
	return import_break(to->c, MV_CONF, "mcpvisor.%.100s is not a known option",
	    LOG_ESC(name, strlen(name)));
}

/* What takes two options to see. */
static bool
options_check(struct upstream_conf *c)
{
	return !c->key_file || c->cert_file ||
	       import_break(c, MV_CONF, "mcpvisor.key_file: there is no cert_file");
}

bool
import_options_read(struct import_ctx *x, struct upstream_conf *c, json_t *given)
{
	const struct target to = {x, c};
	const char *name;
	json_t *v;

	if (given && !json_is_object(given))
		return import_break(c, MV_CONF, "mcpvisor is not an object");
	json_object_foreach(given, name, v)
	{
		if (!options_read_one(&to, name, v))
			return false;
	}
	return options_check(c);
}
