/* SPDX-License-Identifier: MIT */
/*
 * Arguments of programs as a conf has them: texts in which {name} is the value of a
 * parameter, each one argument.
 *
 * Owns: nothing; values are the shape's.
 * Driven by: conf_group.c and conf_walk.c, through the types; conf_tool.c.
 * Invariants: every placeholder of a whole conf names a parameter, and has a value in
 * each call, or else its argument can be left out.
 */
#include "conf_value_priv.h"

#include <string.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/json.h"
#include "mcpvisor/mem.h"

static const char *const template_words[] = {
    [EXEC_ARG_PLAIN] = "", [EXEC_ARG_OPTIONAL] = "optional", [EXEC_ARG_EACH] = "each"};
#define TEMPLATE_KINDS (sizeof(template_words) / sizeof(*template_words))

/* The string of an element, and its kind; NULL: it is no element. */
static const config_setting_t *
template_text(const config_setting_t *e, enum exec_arg_kind *kind)
{
	const config_setting_t *s;

	*kind = EXEC_ARG_PLAIN;
	if (config_setting_type(e) == CONFIG_TYPE_STRING)
		return e;
	if (!config_setting_is_group(e) || config_setting_length(e) != 1)
		return NULL;
	s = config_setting_get_elem(e, 0);
	for (unsigned k = EXEC_ARG_OPTIONAL; k < TEMPLATE_KINDS; k++) {
		if (strcmp(config_setting_name(s), template_words[k]) != 0)
			continue;
		*kind = (enum exec_arg_kind)k;
		return config_setting_type(s) == CONFIG_TYPE_STRING ? s : NULL;
	}
	return NULL;
}

void
conf_parse_template(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	struct tool_shape *shape = x->at[CONF_SHAPE];
	struct exec_tool *t = &shape->exec;
	int n = config_setting_length(s);

	(void)member;
	if (!config_setting_is_array(s) && !config_setting_is_list(s)) {
		conf_want(x, r, s);
		return;
	}
	t->args = mem_xcalloc((size_t)n + 1, sizeof(*t->args));
	for (int i = 0; i < n; i++) {
		const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
		struct exec_arg *a = &t->args[t->n_args++];
		const config_setting_t *text = template_text(e, &a->kind);
		size_t old = conf_push_index(x, i);

		if (text)
			a->text = conf_string(x, r, text);
		else
			conf_error(x, (int)config_setting_source_line(e),
			    "want a string, { optional = \"...\" } or { each = "
			    "\"{name}\" }");
		conf_pop(x, old);
	}
}

bool
conf_put_template(struct conf_put *p, const struct conf_row *r, const void *member)
{
	const struct exec_tool *t =
	    (const void *)((const char *)member - offsetof(struct exec_tool, args));

	if (!t->args)
		return false;
	conf_put_text(p, "(");
	for (size_t i = 0; i < t->n_args; i++) {
		const struct exec_arg *a = &t->args[i];
		bool is_plain = a->kind == EXEC_ARG_PLAIN;

		conf_put_text(p, i > 0 ? ", " : "");
		if (!is_plain) {
			conf_put_text(p, "{ ");
			conf_put_text(p, template_words[a->kind]);
			conf_put_text(p, " = ");
		}
		conf_put_string(p, r, a->text);
		conf_put_text(p, is_plain ? "" : " }");
	}
	conf_put_text(p, ")");
	return true;
}

/* NULL: reported. */
static const struct argspec *
template_param(
    struct conf_ctx *x, int line, const struct exec_tool *t, const char *name, size_t n)
{
	char *copy = mem_xstrndup(name, n);
	const struct argspec *spec = t->params ? argspec_member(t->params, copy) : NULL;

	if (!spec)
		conf_error(x, line, "{%s}: there is no such parameter", conf_label(copy));
	mem_free(copy);
	return spec;
}

static void
template_check_param(
    struct conf_ctx *x, int line, const struct argspec *spec, enum exec_arg_kind kind)
{
	const char *name = conf_label(spec->name);

	if (kind == EXEC_ARG_EACH && spec->type != ARG_ARRAY) {
		conf_error(x, line, "{%s}: each is for an array", name);
	} else if (kind != EXEC_ARG_EACH && spec->type == ARG_ARRAY) {
		conf_error(x, line,
		    "{%s}: of an array each element is an argument: want { each = "
		    "\"{%s}\" }",
		    name, name);
	} else if (kind == EXEC_ARG_PLAIN && !spec->is_required && !spec->dflt) {
		conf_error(x, line,
		    "{%s}: a call may have no value for it: want required, default, or "
		    "{ optional = \"...\" }",
		    name);
	}
}

static bool
template_is_dashed(struct jtext value)
{
	struct buf text;
	bool dashed = value.n > 0 && *value.p == '-';

	if (jtext_type(value) != '"')
		return dashed;
	buf_init(&text, CAP_CONF_BYTES);
	dashed = json_string_decode(value, &text) && text.len > 0 && *text.data == '-';
	buf_fini(&text);
	return dashed;
}

/* A word that would begin with the default: no call that leaves it out could be made. */
static void
template_check_dash(
    struct conf_ctx *x, int line, const struct exec_tool *t, const struct argspec *spec)
{
	const struct exec_param *rule = exec_tool_rule(t, spec->name);
	struct jtext dflt = {spec->dflt, spec->dflt ? strlen(spec->dflt) : 0}, one;
	bool dashed = template_is_dashed(dflt);
	struct json_iter it;

	if (rule && (rule->may_dash || rule->root))
		return;
	if (jtext_type(dflt) == '[') {
		json_iter_init(&it, dflt);
		while (!dashed && json_next_element(&it, &one))
			dashed = template_is_dashed(one);
	}
	if (dashed)
		conf_error(x, line,
		    "{%s}: its default begins with a dash, which is refused here: want "
		    "dash = true, or a word \"--\" before",
		    conf_label(spec->name));
}

/* Whether a text is one placeholder and nothing else. */
static bool
template_is_name(const char *text)
{
	struct exec_piece piece;

	return exec_piece_next(&text, &piece) && piece.is_name && *text == '\0';
}

static void
template_check(struct conf_ctx *x, int line, const struct exec_tool *t,
    const struct exec_arg *arg, bool after_dashes)
{
	const char *text = arg->text, *at = text;
	enum exec_arg_kind kind = arg->kind;
	struct exec_piece piece;
	bool bad = false;
	size_t found = 0;

	while (exec_piece_next(&at, &piece)) {
		const struct argspec *spec = NULL;

		bad = bad || piece.is_bad;
		if (!piece.is_name)
			continue;
		found++;
		spec = template_param(x, line, t, piece.p, piece.n);
		if (spec)
			template_check_param(x, line, spec, kind);
		if (spec && !after_dashes && piece.p == text + 1)
			template_check_dash(x, line, t, spec);
	}
	if (bad)
		conf_error(
		    x, line, "a brace has no partner; {{ and }} are braces in the text");
	else if (kind == EXEC_ARG_EACH && (found != 1 || !template_is_name(text)))
		conf_error(x, line, "each wants \"{name}\" and nothing else");
	else if (kind == EXEC_ARG_OPTIONAL && found == 0)
		conf_error(x, line, "there is no {name} on which it depends");
}

/* The program reads the value of one string, or the arguments as they are. */
static void
template_check_input(
    struct conf_ctx *x, const struct exec_tool *t, const config_setting_t *s)
{
	int line = (int)config_setting_source_line(s);
	const struct argspec *spec;

	if (strcmp(t->input, "none") == 0 || strcmp(t->input, "json") == 0)
		return;
	if (!template_is_name(t->input)) {
		conf_error(x, line, "is none of \"none\", \"json\", \"{name}\"");
		return;
	}
	spec = template_param(x, line, t, t->input + 1, strlen(t->input) - 2);
	if (spec && spec->type != ARG_STRING)
		conf_error(x, line, "{%s}: is no string", conf_label(spec->name));
}

void
conf_check_templates(
    struct conf_ctx *x, const struct exec_tool *t, const config_setting_t *group)
{
	const config_setting_t *args = config_setting_get_member(group, "args"),
			       *input = config_setting_get_member(group, "stdin");
	size_t old = conf_push(x, "args");
	bool after_dashes = false;

	for (size_t i = 0; i < t->n_args; i++) {
		const config_setting_t *e = config_setting_get_elem(args, (unsigned)i);
		size_t index = conf_push_index(x, (int)i);

		if (t->args[i].text) {
			template_check(x, (int)config_setting_source_line(e), t,
			    &t->args[i], after_dashes);
			after_dashes = after_dashes || strcmp(t->args[i].text, "--") == 0;
		}
		conf_pop(x, index);
	}
	conf_pop(x, old);
	old = conf_push(x, "stdin");
	if (t->input)
		template_check_input(x, t, input);
	conf_pop(x, old);
}
