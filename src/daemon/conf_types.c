/* SPDX-License-Identifier: MIT */
/*
 * The types of options: how each is read, written and checked.
 *
 * Owns: nothing.
 * Driven by: conf_group.c and conf_walk.c.
 * Invariants: the size of a type is that of the members of its rows, which a test sees.
 */
#include "conf_value_priv.h"

#include <string.h>

#include "remote_conf.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/filter.h"
#include "mcpvisor/listener.h"

/* As enum arg_type; an array is one of strings, and nothing in a conf is an object. */
static const char *const param_type_names[] = {
    "json", "string", "integer", "number", "boolean", "array", NULL};
static const char *const identity_names[] = {"auto", "none", NULL};
static const char *const level_names[] = {
    "error", "warning", "notice", "info", "debug", NULL};
static const char *const format_names[] = {
#define X(id, name) name,
    LOG_FORMATS(X)
#undef X
	NULL};
#define NUMBER_TYPE(text, want, type, u, per)                                            \
	{                                                                                \
		text, want, sizeof(type), conf_parse_##u, conf_put_##u, NULL, NULL,      \
		    NULL, per                                                            \
	}
#define ENUM_TYPE(names)                                                                 \
	{                                                                                \
		"word", "a string", sizeof(int), conf_parse_enum, conf_put_enum, NULL,   \
		    NULL, names, 0                                                       \
	}
#define STRING_TYPE(text, check)                                                         \
	{                                                                                \
		text, "a string", sizeof(char *), conf_parse_string,                     \
		    conf_put_string_value, NULL, check, NULL, 0                          \
	}
#define LIST_TYPE(text, check)                                                           \
	{                                                                                \
		text, "an array of strings", sizeof(char **), conf_parse_strings,        \
		    conf_put_strings, NULL, check, NULL, 0                               \
	}
#define URL_TYPE(text, check)                                                            \
	{                                                                                \
		text, "a string", sizeof(char *), conf_parse_string, conf_put_url, NULL, \
		    check, NULL, 0                                                       \
	}
#define EACH_TYPE(text, want, parse, each)                                               \
	{                                                                                \
		text, want, sizeof(void *), parse, NULL, each, NULL, NULL, 0             \
	}

const struct conf_type conf_types[CONF_TY_MAX] = {
    [CONF_TY_BOOL] = {"true or false", "true or false", sizeof(bool), conf_parse_bool,
	conf_put_bool, NULL, NULL, NULL, 0},
    [CONF_TY_INT] = NUMBER_TYPE("number", "a whole number", uint32_t, u32, 0),
    [CONF_TY_MS] = NUMBER_TYPE("duration",
	"milliseconds as a whole number, or a string such as \"300ms\", \"5s\", \"10m\", "
	"\"1h\"",
	uint32_t, u32, 1),
    [CONF_TY_SECONDS] = NUMBER_TYPE("duration in seconds",
	"seconds as a whole number, or a string such as \"30s\", \"10m\", \"24h\"",
	uint32_t, u32, 1000),
    [CONF_TY_SIZE] = NUMBER_TYPE("size",
	"bytes as a whole number, or a string such as \"64k\", \"512M\", \"2G\"",
	uint64_t, u64, 0),
    [CONF_TY_MODE] = {"octal mode", "an octal mode as a string, such as \"0660\"",
	sizeof(uint32_t), conf_parse_mode, conf_put_mode, NULL, NULL, NULL, 0},
    [CONF_TY_LOG_LEVEL] = ENUM_TYPE(level_names),
    [CONF_TY_LOG_FORMAT] = ENUM_TYPE(format_names),
    [CONF_TY_ERA] = ENUM_TYPE(era_words),
    [CONF_TY_ISOLATION] = ENUM_TYPE(isolation_words),
    [CONF_TY_START] = ENUM_TYPE(start_words),
    [CONF_TY_FAILURE] = ENUM_TYPE(failure_words),
    [CONF_TY_TRANSPORT] = ENUM_TYPE(transport_words),
    [CONF_TY_ROOTS] = {"word or array of file: URIs", "a word or an array of file: URIs",
	sizeof(int), conf_parse_roots, conf_put_roots, NULL, remote_check_root,
	roots_words, 0},
    [CONF_TY_VERIFY] = {"true or false", "true or false", sizeof(bool), conf_parse_verify,
	conf_put_verify, NULL, NULL, NULL, 0},
    [CONF_TY_STRING] = STRING_TYPE("string", NULL),
    [CONF_TY_PATH] = STRING_TYPE("path", NULL),
    [CONF_TY_FILE] = STRING_TYPE("path", NULL),
    [CONF_TY_URL] = URL_TYPE("URL", remote_check_url),
    [CONF_TY_PROXY] = URL_TYPE("URL", remote_check_proxy),
    [CONF_TY_NAME] = STRING_TYPE("name", conf_check_name),
    [CONF_TY_ADDRESS] = STRING_TYPE("address", conf_check_address),
    [CONF_TY_HTTP_PATH] = STRING_TYPE("URL path", conf_check_http_path),
    [CONF_TY_PREFIX] = STRING_TYPE("prefix", upstream_conf_check_prefix),
    [CONF_TY_URI_PREFIX] = STRING_TYPE("URI prefix", upstream_conf_check_uri_prefix),
    [CONF_TY_COMMAND] = {"string", "a string", sizeof(char **), conf_parse_command,
	conf_put_command, NULL, NULL, NULL, 0},
    [CONF_TY_STRINGS] = LIST_TYPE("array of strings", NULL),
    [CONF_TY_PATHS] = LIST_TYPE("array of paths", NULL),
    [CONF_TY_GLOBS] = LIST_TYPE("array of patterns", NULL),
    [CONF_TY_PATTERNS] = LIST_TYPE("array of patterns", conf_check_pattern),
    [CONF_TY_ARGS] = {"array of strings", "an array of strings", sizeof(char **),
	conf_parse_args, conf_put_args, NULL, NULL, NULL, 0},
    [CONF_TY_LEVELS] = {"group of words", "a group such as { upstream = \"debug\" }",
	sizeof(void *), conf_parse_levels, NULL, conf_each_level, NULL, level_names, 0},
    [CONF_TY_ENV] = EACH_TYPE("group of strings",
	"a group such as { NAME = \"value\" } or an array of \"NAME=value\"",
	conf_parse_env, conf_each_env),
    [CONF_TY_HEADERS] = EACH_TYPE("group of strings",
	"a group such as { Authorization = \"Bearer ...\" }", conf_parse_headers,
	conf_each_header),
    [CONF_TY_RENAME] = EACH_TYPE("group of strings",
	"a group such as { old_name = \"new_name\" }", conf_parse_rename, NULL),
    [CONF_TY_JSON] = {"arguments", "a group, or a string with a JSON object",
	sizeof(char *), conf_parse_json, conf_put_json, NULL, NULL, NULL, 0},
    [CONF_TY_KIND] = {"word", "a string", sizeof(int), conf_parse_enum, conf_put_kind,
	NULL, NULL, kind_words, 0},
    [CONF_TY_GRAPHQL] = ENUM_TYPE(graphql_mode_words),
    [CONF_TY_SURVIVAL] = ENUM_TYPE(graphql_survival_words),
    [CONF_TY_ANNOTATE] = ENUM_TYPE(graphql_annotate_words),
    [CONF_TY_POINTER] = STRING_TYPE("JSON Pointer", pointer_check),
    [CONF_TY_RULES] = {"array of rules", "an array of strings", sizeof(void *),
	conf_parse_rules, conf_put_rules, NULL, NULL, NULL, 0},
    [CONF_TY_IDENTITY] = {"word or array of patterns", "a word or an array of strings",
	sizeof(char **), conf_parse_identity, conf_put_identity, NULL, NULL,
	identity_names, 0},
    [CONF_TY_REGEXES] = {"array of regular expressions", "an array of strings",
	sizeof(char **), conf_parse_regexes, conf_put_strings, NULL, NULL, NULL, 0},
    [CONF_TY_SCHEMA] = STRING_TYPE("word or path", NULL),
    [CONF_TY_MUTATIONS] = ENUM_TYPE(graphql_mutations_words),
    [CONF_TY_EXECUTE] = ENUM_TYPE(graphql_execute_words),
    [CONF_TY_NAMES] = ENUM_TYPE(graphql_names_words),
    [CONF_TY_PROGRAM] = {"path", "a string", sizeof(char *), conf_parse_program,
	conf_put_string_value, NULL, NULL, NULL, 0},
    [CONF_TY_USER] = STRING_TYPE("user", conf_check_user),
    [CONF_TY_EXEC_ERR] = ENUM_TYPE(exec_stderr_words),
    [CONF_TY_EXEC_OVER] = ENUM_TYPE(exec_overflow_words),
    [CONF_TY_EXEC_OUT] = ENUM_TYPE(exec_output_words),
    [CONF_TY_HINT] = {"true or false", "true or false", sizeof(int), conf_parse_hint,
	conf_put_hint, NULL, NULL, NULL, 0},
    [CONF_TY_TEMPLATE] = {"list of strings and groups",
	"a list of strings, { optional = \"...\" } and { each = \"{name}\" }",
	sizeof(void *), conf_parse_template, conf_put_template, NULL, NULL, NULL, 0},
    [CONF_TY_STATUSES] = {"array of numbers", "an array of whole numbers", sizeof(int *),
	conf_parse_statuses, conf_put_statuses, NULL, NULL, NULL, 0},
    [CONF_TY_INPUT] = STRING_TYPE("word or {name}", NULL),
    [CONF_TY_MIME] = STRING_TYPE("media type", conf_check_mime),
    [CONF_TY_SCHEMA_FILE] = {"path", "a string", sizeof(char *), conf_parse_schema_file,
	conf_put_string_value, NULL, NULL, NULL, 0},
    [CONF_TY_PARAMS] = EACH_TYPE(
	"group of groups", "a group of groups", conf_parse_params, conf_each_param),
    [CONF_TY_PARAM_TYPE] = ENUM_TYPE(param_type_names),
    [CONF_TY_VALUE] = {"any value", "a value", sizeof(char *), conf_parse_value,
	conf_put_json, NULL, NULL, NULL, 0},
    [CONF_TY_NUMBER] = {"any number", "a number", sizeof(char *), conf_parse_number,
	conf_put_json, NULL, NULL, NULL, 0},
    [CONF_TY_REGEX] = {"regular expression", "a string", sizeof(void *), conf_parse_regex,
	conf_put_regex, NULL, NULL, NULL, 0},
    [CONF_TY_WORDS] = {"array of strings", "an array of strings", sizeof(char **),
	conf_parse_words, conf_put_words, NULL, NULL, NULL, 0},
    [CONF_TY_LISTENS] = EACH_TYPE(
	"list of groups", "a list of groups", conf_parse_listens, conf_each_listen),
    [CONF_TY_TOOLS] =
	EACH_TYPE("list of groups", "a list of groups", conf_parse_tools, conf_each_tool),
    [CONF_TY_DEFAULTS] = EACH_TYPE("group", "a group", conf_parse_defaults, NULL),
    [CONF_TY_UPSTREAMS] = EACH_TYPE(
	"group of groups", "a group of groups", conf_parse_upstreams, conf_each_upstream),
    [CONF_TY_PROFILES] = EACH_TYPE(
	"group of groups", "a group of groups", conf_parse_profiles, conf_each_profile),
};

const struct conf_unit *
conf_units(enum conf_type_id type)
{
	static const struct conf_unit times[] = {{"ms", 1}, {"s", 1000}, {"m", 60000},
	    {"h", 3600000}, {"d", 86400000}, {NULL, 0}};
	static const struct conf_unit sizes[] = {{"k", 1u << 10}, {"K", 1u << 10},
	    {"M", 1u << 20}, {"G", 1u << 30}, {NULL, 0}};

	if (type == CONF_TY_MS || type == CONF_TY_SECONDS)
		return times;
	return type == CONF_TY_SIZE ? sizes : NULL;
}

bool
conf_wants_text(enum conf_type_id type)
{
	return type != CONF_TY_ARGS && type != CONF_TY_ENV && type != CONF_TY_JSON &&
	       type != CONF_TY_TEMPLATE;
}

bool
conf_is_path(enum conf_type_id type)
{
	static const enum conf_type_id types[] = {CONF_TY_PATH, CONF_TY_PATHS,
	    CONF_TY_FILE, CONF_TY_SCHEMA, CONF_TY_SCHEMA_FILE};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (types[i] == type)
			return true;
	}
	return false;
}

const char *
conf_check_name(const char *s)
{
	if (strlen(s) > CONF_NAME_MAX)
		return "is longer than 128 bytes";
	for (; *s; s++) {
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return "has a control character";
	}
	return NULL;
}

const char *
conf_check_address(const char *s)
{
	bool loopback;

	return listener_check(s, &loopback, NULL) == MV_OK
		   ? NULL
		   : "is not an address: want ADDRESS:PORT, [ADDRESS]:PORT, "
		     "localhost:PORT, :PORT, unix:/PATH or systemd:NAME";
}

#define LETTERS_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

const char *
conf_check_http_path(const char *s)
{
	if (*s != '/' || strlen(s) > 256)
		return "is not a path: it begins with / and has 256 bytes at most";
	if (s[strspn(s, LETTERS_DIGITS "/-._~!$&'()*+,;=:@")])
		return "has a character that a path cannot have as it is";
	return NULL;
}

const char *
conf_check_pattern(const char *s)
{
	return filter_pattern_is_valid(s) ? NULL
					  : "is no pattern: a name with * and ?, or "
					    "@read_only, @destructive, @idempotent, "
					    "@open_world";
}
