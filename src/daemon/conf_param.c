/* SPDX-License-Identifier: MIT */
/*
 * Parameters of tools that are programs: each a group, which becomes a part of the schema
 * that clients see and a rule of how its value may be used.
 *
 * Owns: nothing; values are the shape's.
 * Driven by: conf_group.c and conf_walk.c, through the types.
 * Invariants: an option about texts is, of an array, about each of its elements, and lies
 * there; a default fits its parameter.
 */
#include "conf_value_priv.h"

#include <stdlib.h>
#include <string.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/json.h"
#include "mcpvisor/mem.h"

#define PARAM_NAME_MAX 64
#define PARAMS_MAX     256

static int
param_line(const config_setting_t *s)
{
	return (int)config_setting_source_line(s);
}

/* A setting as JSON text, the caller's; NULL: reported. */
static char *
param_json(struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s)
{
	bool secret = false;
	char *text = NULL;
	struct buf out;

	buf_init(&out, CAP_CONF_BYTES);
	if (conf_json_write(x, r, s, &out, &secret)) {
		text = buf_take(&out, NULL);
		if (!text)
			conf_error(x, param_line(s), "%s", mv_err_text(out.err));
	}
	buf_fini(&out);
	return text;
}

void
conf_parse_value(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	char *text = param_json(x, r, s);

	if (text)
		conf_set_string(member, text);
}

/* As it is written, and as a number. */
void
conf_parse_number(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	struct argspec *spec = x->at[CONF_PARAM];
	double *value = member == (void *)&spec->min_text ? &spec->min : &spec->max;
	char *text;

	if (!config_setting_is_number(s)) {
		conf_want(x, r, s);
		return;
	}
	text = param_json(x, r, s);
	if (!text)
		return;
	*value = strtod(text, NULL);
	conf_set_string(member, text);
}

void
conf_parse_words(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	struct argspec *spec = x->at[CONF_PARAM];
	char **v = NULL;

	(void)member;
	conf_parse_strings(x, r, &v, s);
	if (!v)
		return;
	for (char **p = v; *p; p++)
		argspec_add_value(spec, *p);
	spec->n_shown = spec->n_values;
	if (spec->n_values == 0)
		conf_error(x, param_line(s), "is empty");
	conf_strings_free(v);
}

bool
conf_put_words(struct conf_put *p, const struct conf_row *r, const void *member)
{
	const struct argspec *spec =
	    (const void *)((const char *)member - offsetof(struct argspec, values));

	if (spec->n_values == 0)
		return false;
	for (size_t i = 0; i < spec->n_values; i++) {
		conf_put_text(p, i > 0 ? ", " : "[");
		conf_put_string(p, r, spec->values[i]);
	}
	conf_put_text(p, "]");
	return true;
}

/* Options that are for some types alone. */
#define TYPE(t)	     (1u << (t))
#define TYPE_NUMBERS (TYPE(ARG_INTEGER) | TYPE(ARG_NUMBER))
#define TYPE_TEXTS   (TYPE(ARG_STRING) | TYPE(ARG_ARRAY))

static const struct {
	const char *key;
	unsigned types;
	const char *words;
} param_fits[] = {
    {"min", TYPE_NUMBERS, "integer or number"},
    {"max", TYPE_NUMBERS, "integer or number"},
    {"min_length", TYPE_TEXTS, "string or array"},
    {"max_length", TYPE_TEXTS, "string or array"},
    {"pattern", TYPE_TEXTS, "string or array"},
    {"enum", TYPE_TEXTS, "string or array"},
    {"path", TYPE_TEXTS, "string or array"},
    {"max_items", TYPE(ARG_ARRAY), "array"},
};

static void
param_check_options(
    struct conf_ctx *x, const struct argspec *spec, const config_setting_t *group)
{
	for (size_t i = 0; i < sizeof(param_fits) / sizeof(*param_fits); i++) {
		const config_setting_t *s =
		    config_setting_get_member(group, param_fits[i].key);

		if (s && !(param_fits[i].types & TYPE(spec->type)))
			conf_error(x, param_line(s), "%s: is an option of type %s",
			    param_fits[i].key, param_fits[i].words);
	}
	if (spec->min_text && spec->max_text && spec->min > spec->max)
		conf_error(x, param_line(config_setting_get_member(group, "min")),
		    "min: is above max");
	if (spec->max_length > 0 && spec->min_length > spec->max_length)
		conf_error(x, param_line(config_setting_get_member(group, "min_length")),
		    "min_length: is above max_length");
}

/* What is about texts belongs to the elements. */
static void
param_make_items(struct argspec *spec)
{
	struct argspec *items = argspec_new(ARG_STRING, NULL);

	items->must_be_plain = true;
	items->is_secret = spec->is_secret;
	items->min_length = spec->min_length;
	items->max_length = spec->max_length;
	items->pattern = spec->pattern;
	items->values = spec->values;
	items->n_values = spec->n_values;
	items->n_shown = spec->n_shown;
	spec->min_length = 0;
	spec->max_length = 0;
	spec->pattern = NULL;
	spec->values = NULL;
	spec->n_values = 0;
	spec->n_shown = 0;
	spec->items = items;
}

/* As though a call had it: the words of that would show the value. */
static void
param_check_default(
    struct conf_ctx *x, struct argspec *spec, const config_setting_t *group)
{
	const config_setting_t *s = config_setting_get_member(group, "default");
	struct argspec *one[] = {spec, NULL};
	const struct argspec object = {
	    .type = ARG_OBJECT, .members = one, .n_members = 1};
	struct buf text, why;

	if (!spec->dflt || x->quiet)
		return;
	buf_init(&text, CAP_CONF_BYTES);
	buf_init(&why, CAP_CONF_BYTES);
	buf_add_char(&text, '{');
	json_put_string(&text, spec->name, strlen(spec->name));
	buf_add_char(&text, ':');
	buf_add_str(&text, spec->dflt);
	buf_add_char(&text, '}');
	if (text.err == MV_OK &&
	    !argspec_check(&object, (struct jtext){text.data, text.len}, &why))
		conf_error(x, param_line(s), "default: is not what the parameter may be");
	buf_fini(&text);
	buf_fini(&why);
}

/* A rule is there only for what differs from having none. */
static void
param_keep_rule(struct exec_tool *t, const char *name, struct exec_param rule)
{
	if (!rule.root && !rule.may_dash)
		return;
	t->rules = mem_xrealloc(t->rules, (t->n_rules + 1) * sizeof(*t->rules));
	rule.name = mem_xstrdup(name);
	t->rules[t->n_rules++] = rule;
}

static void
param_read(struct conf_ctx *x, struct exec_tool *t, const config_setting_t *group)
{
	const char *name = config_setting_name(group);
	struct argspec *spec = argspec_new(ARG_STRING, name);
	struct exec_param rule = {.root = NULL};

	x->at[CONF_PARAM] = spec;
	x->at[CONF_RULE] = &rule;
	conf_read_group(x, CONF_PARAM, group);
	if (strlen(name) > PARAM_NAME_MAX || strchr(name, '*'))
		conf_error(x, param_line(group),
		    "the name is longer than %d bytes, or has a *", PARAM_NAME_MAX);
	param_check_options(x, spec, group);
	spec->must_be_plain = spec->type == ARG_STRING;
	if (spec->type == ARG_ARRAY)
		param_make_items(spec);
	param_check_default(x, spec, group);
	spec->is_nullable = !spec->is_required; /* null is absent */
	argspec_add_member(t->params, spec);
	param_keep_rule(t, name, rule);
}

void
conf_parse_params(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	struct tool_shape *shape = x->at[CONF_SHAPE];
	struct exec_tool *t = &shape->exec;
	int n = config_setting_length(s);

	(void)member;
	if (!config_setting_is_group(s)) {
		conf_want(x, r, s);
		return;
	}
	if (n > PARAMS_MAX) {
		conf_error(x, param_line(s), "has more than %d", PARAMS_MAX);
		return;
	}
	/* Of input_schema, which is reported. */
	argspec_free(t->params);
	t->params = argspec_new(ARG_OBJECT, NULL);
	for (int i = 0; i < n; i++) {
		const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
		size_t old = conf_push(x, config_setting_name(e));

		if (config_setting_is_group(e))
			param_read(x, t, e);
		else
			conf_error(x, param_line(e), "want a group, not %s",
			    conf_setting_type(e));
		conf_pop(x, old);
	}
}

void
conf_each_param(struct conf_walk *w, const struct conf_row *r, const void *member)
{
	static const struct exec_param none = {.name = NULL};
	const struct tool_shape *shape = w->at[CONF_SHAPE];
	const struct exec_tool *t = &shape->exec;

	(void)member;
	for (size_t i = 0; t->params && !t->schema_file && i < t->params->n_members;
	     i++) {
		struct argspec shown = *t->params->members[i];
		const struct argspec *items = shown.items;
		const struct exec_param *rule = exec_tool_rule(t, shown.name);
		size_t old = conf_walk_push(w, conf_label(shown.name));

		if (items) {
			shown.min_length = items->min_length;
			shown.max_length = items->max_length;
			shown.pattern = items->pattern;
			shown.values = items->values;
			shown.n_values = items->n_values;
		}
		w->at[CONF_PARAM] = &shown;
		w->at[CONF_RULE] = rule ? rule : &none;
		conf_walk_object(w, r, false);
		conf_walk_rows(w, CONF_PARAM);
		conf_walk_object(w, r, true);
		conf_walk_pop(w, old);
	}
}
