/* SPDX-License-Identifier: MIT */
/* The functions that conf_types.c puts into its table. */
#ifndef MCPVISOR_CONF_VALUE_PRIV_H
#define MCPVISOR_CONF_VALUE_PRIV_H

#include "conf_priv.h"

#define CONF_PARSE(name)                                                                 \
	void conf_parse_##name(struct conf_ctx *x, const struct conf_row *r,             \
	    void *member, const config_setting_t *s)
#define CONF_PUT(name)                                                                   \
	bool conf_put_##name(                                                            \
	    struct conf_put *p, const struct conf_row *r, const void *member)

CONF_PARSE(bool);
CONF_PARSE(u32);
CONF_PARSE(u64);
CONF_PARSE(mode);
CONF_PARSE(enum);
CONF_PARSE(string);
CONF_PARSE(strings);
CONF_PARSE(command);
CONF_PARSE(args);
CONF_PARSE(levels);
CONF_PARSE(env);
CONF_PARSE(headers);
CONF_PARSE(verify);
CONF_PARSE(roots);
CONF_PARSE(rename);
CONF_PARSE(json);
CONF_PARSE(listens);
CONF_PARSE(tools);
CONF_PARSE(rules);
CONF_PARSE(identity);
CONF_PARSE(regexes);
CONF_PARSE(hint);
CONF_PARSE(program);
CONF_PARSE(template);
CONF_PARSE(statuses);
CONF_PARSE(schema_file);
CONF_PARSE(params);
CONF_PARSE(value);
CONF_PARSE(number);
CONF_PARSE(regex);
CONF_PARSE(words);
CONF_PARSE(defaults);
CONF_PARSE(upstreams);
CONF_PARSE(profiles);
CONF_PUT(bool);
CONF_PUT(u32);
CONF_PUT(u64);
CONF_PUT(mode);
CONF_PUT(enum);
CONF_PUT(string_value);
CONF_PUT(url);
CONF_PUT(verify);
CONF_PUT(roots);
CONF_PUT(strings);
CONF_PUT(command);
CONF_PUT(args);
CONF_PUT(json);
CONF_PUT(kind);
CONF_PUT(rules);
CONF_PUT(identity);
CONF_PUT(hint);
CONF_PUT(template);
CONF_PUT(statuses);
CONF_PUT(regex);
CONF_PUT(words);

struct conf_unit {
	const char *name; /* NULL: the end */
	uint64_t factor;
};
/* Of what may be a string with a unit; else NULL. */
const struct conf_unit *conf_units(enum conf_type_id type);
/* Whether strings of a type must not be empty, unless their row allows it. */
bool conf_wants_text(enum conf_type_id type);
int conf_enum(
    struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s, int line);

/* Checks of strings; see conf_type. */
const char *conf_check_name(const char *s);
const char *conf_check_address(const char *s);
const char *conf_check_http_path(const char *s);
const char *conf_check_pattern(const char *s);
const char *conf_check_user(const char *s);
const char *conf_check_program(const char *s);
const char *conf_check_mime(const char *s);

#endif
