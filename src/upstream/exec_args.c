/* SPDX-License-Identifier: MIT */
/*
 * What a program is given: the command line and the input that a call's arguments make
 * of a tool's template.
 *
 * Owns: nothing. Driven by: upstream_exec.c.
 * Invariants: a value is never split, expanded or read again as a template; no value
 * makes a word be taken for an option unless the conf allows it; what is refused is
 * refused before anything runs.
 */
#include "upstream_exec_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/utf8.h"

#include <string.h>
#include <unistd.h>

#define VALUE_SHOWN 64

struct args {
	struct exec_line *line;
	const struct exec_tool *tool;
	struct jtext arguments;
	struct buf *why;
	struct buf value;	    /* of one parameter */
	size_t word;		    /* where the one begins that is being made */
	const struct argspec *lead; /* whose value it begins with; NULL: none's */
	char led[VALUE_SHOWN + 1];  /* the beginning of that */
	size_t n_led;
	bool after_dashes; /* a word "--" of the template has stood */
};

/* ---- refusals ---- */

static enum mv_err
args_refuse(
    struct args *a, const struct argspec *s, const char *must, const char *p, size_t len)
{
	buf_addf(a->why, "Argument '%s' %s", s->name, must);
	if (!s->is_secret) {
		size_t n = utf8_cut(p, len, VALUE_SHOWN);

		buf_addf(a->why, "; got %s%s", LOG_ESC(p, n), n < len ? "..." : "");
	}
	buf_add_str(a->why, ". Retrying unchanged will fail.");
	return MV_PARAMS;
}

/* s: whose value; NULL: all of them together. */
static enum mv_err
args_refuse_long(struct args *a, const struct argspec *s, size_t most, size_t n)
{
	if (s != NULL)
		buf_addf(a->why, "Argument '%s' is", s->name);
	else
		buf_add_str(a->why, "The arguments are");
	buf_addf(a->why,
	    " too long for a command line: %zu bytes at most; got %zu. Pass this through "
	    "stdin, or pass less. Retrying unchanged will fail.",
	    most, n);
	return MV_PARAMS;
}

/* ---- values ---- */

static void
value_put_raw(struct jtext t, struct buf *out)
{
	json_put_compact(out, t);
}

static void
value_put_string(struct jtext t, struct buf *out)
{
	if (!json_string_decode(t, out))
		value_put_raw(t, out);
}

static void
value_put_integer(struct jtext t, struct buf *out)
{
	if (!argspec_put_integer(t, out))
		value_put_raw(t, out);
}

static bool
value_is_plain(const struct buf *v)
{
	for (size_t i = 0; i < v->len; i++) {
		unsigned char c = (unsigned char)v->data[i];

		if (c < 0x20 && c != '\t' && c != '\n')
			return false;
	}
	return true;
}

static const struct argspec *
args_spec(const struct args *a, const char *name, size_t n)
{
	const struct argspec *params = a->tool->params;

	for (size_t i = 0; params != NULL && i < params->n_members; i++) {
		const struct argspec *s = params->members[i];

		if (strlen(s->name) == n && memcmp(s->name, name, n) == 0)
			return s;
	}
	return NULL;
}

/* What was given, or the default; absent: neither. */
static struct jtext
args_given(const struct args *a, const struct argspec *s)
{
	struct jtext t = argspec_get(a->arguments, s->name);

	if (t.n == 0 && s->dflt != NULL)
		t = (struct jtext){s->dflt, strlen(s->dflt)};
	return t;
}

static enum mv_err
args_resolve(struct args *a, const struct argspec *s, const char *root)
{
	const char *path = buf_cstr(&a->value), *fault;
	struct buf found;

	if (path == NULL)
		return MV_NOMEM;
	buf_init(&found, EXEC_WORD_MAX);
	fault = exec_path_resolve(root, path, &found);
	if (fault != NULL) {
		buf_fini(&found);
		return args_refuse(a, s, fault, a->value.data, a->value.len);
	}
	buf_fini(&a->value);
	a->value = found;
	return found.err;
}

/* Makes a->value of t, a value of s, or of what the array s holds. */
static enum mv_err
args_set_value(
    struct args *a, const struct argspec *s, enum arg_type type, struct jtext t)
{
	static void (*const put[])(struct jtext t, struct buf * out) = {
	    [ARG_ANY] = value_put_raw,
	    [ARG_STRING] = value_put_string,
	    [ARG_INTEGER] = value_put_integer,
	    [ARG_NUMBER] = value_put_raw,
	    [ARG_BOOLEAN] = value_put_raw,
	    [ARG_ARRAY] = value_put_raw,
	    [ARG_OBJECT] = value_put_raw,
	};
	const struct exec_param *rule = exec_tool_rule(a->tool, s->name);

	buf_fini(&a->value);
	buf_init(&a->value, CAP_MESSAGE_BYTES);
	put[type](t, &a->value);
	if (a->value.err != MV_OK)
		return MV_NOMEM;
	if (type == ARG_STRING && !value_is_plain(&a->value))
		return args_refuse(a, s,
		    "must not have control characters other than tab and newline",
		    a->value.data, a->value.len);
	if (rule != NULL && rule->root != NULL)
		return args_resolve(a, s, rule->root);
	return MV_OK;
}

/* ---- words ---- */

static enum mv_err
args_add(struct args *a, const char *p, size_t n, const struct argspec *s)
{
	struct buf *words = &a->line->words;

	if (n > 0 && words->len == a->word) {
		a->lead = s;
		a->n_led = n < sizeof(a->led) ? n : sizeof(a->led);
		memcpy(a->led, p, a->n_led);
	}
	if (n > EXEC_WORD_MAX - (words->len - a->word))
		return args_refuse_long(a, s, EXEC_WORD_MAX, words->len - a->word + n);
	buf_add(words, p, n);
	return words->err;
}

static enum mv_err
args_end_word(struct args *a)
{
	struct exec_line *l = a->line;
	const struct exec_param *rule = NULL;
	long most = sysconf(_SC_ARG_MAX) / 2;
	size_t all;

	if (a->lead != NULL && !a->after_dashes && l->words.data[a->word] == '-') {
		rule = exec_tool_rule(a->tool, a->lead->name);
		if (rule == NULL || !rule->may_dash)
			return args_refuse(
			    a, a->lead, "must not begin with a dash", a->led, a->n_led);
	}
	buf_add_char(&l->words, '\0');
	l->n_words++;
	all = l->words.len + l->n_words * sizeof(char *);
	if (most > 0 && all > (size_t)most)
		return args_refuse_long(a, NULL, (size_t)most, all);
	return l->words.err;
}

static void
args_begin_word(struct args *a)
{
	a->word = a->line->words.len;
	a->lead = NULL;
}

static bool
args_has_all(const struct args *a, const char *text)
{
	struct exec_piece piece;

	while (exec_piece_next(&text, &piece)) {
		const struct argspec *s =
		    piece.is_name ? args_spec(a, piece.p, piece.n) : NULL;

		if (piece.is_name && (s == NULL || args_given(a, s).n == 0))
			return false;
	}
	return true;
}

static enum mv_err
args_put_named(struct args *a, const struct argspec *s)
{
	struct jtext t = s != NULL ? args_given(a, s) : (struct jtext){NULL, 0};
	enum mv_err err;

	if (t.n == 0)
		return MV_OK;
	err = args_set_value(a, s, s->type, t);
	return err == MV_OK ? args_add(a, a->value.data, a->value.len, s) : err;
}

static enum mv_err
args_put_word(struct args *a, const char *text)
{
	enum mv_err err = MV_OK;
	const char *at = text;
	struct exec_piece piece;

	args_begin_word(a);
	while (err == MV_OK && exec_piece_next(&at, &piece))
		err = piece.is_name ? args_put_named(a, args_spec(a, piece.p, piece.n))
				    : args_add(a, piece.p, piece.n, NULL);
	if (err == MV_OK)
		err = args_end_word(a);
	if (strcmp(text, "--") == 0)
		a->after_dashes = true;
	return err;
}

static enum mv_err
args_put_each(struct args *a, const char *text)
{
	enum mv_err err = MV_OK;
	const struct argspec *s;
	struct json_iter it;
	struct jtext all, t;
	struct exec_piece piece;

	s = exec_piece_next(&text, &piece) ? args_spec(a, piece.p, piece.n) : NULL;
	all = s != NULL ? args_given(a, s) : (struct jtext){NULL, 0};
	if (jtext_type(all) != '[')
		return MV_OK;
	json_iter_init(&it, all);
	while (err == MV_OK && json_next_element(&it, &t)) {
		args_begin_word(a);
		err =
		    args_set_value(a, s, s->items != NULL ? s->items->type : ARG_ANY, t);
		if (err == MV_OK)
			err = args_add(a, a->value.data, a->value.len, s);
		if (err == MV_OK)
			err = args_end_word(a);
	}
	return err;
}

static enum mv_err
args_put(struct args *a, const struct exec_arg *arg)
{
	switch (arg->kind) {
	case EXEC_ARG_PLAIN:
		return args_put_word(a, arg->text);
	case EXEC_ARG_OPTIONAL:
		return args_has_all(a, arg->text) ? args_put_word(a, arg->text) : MV_OK;
	case EXEC_ARG_EACH:
		return args_put_each(a, arg->text);
	}
	return MV_OK;
}

static enum mv_err
args_put_input(struct args *a)
{
	const char *text = a->tool->input;
	struct exec_line *l = a->line;
	const struct argspec *s = NULL;
	struct exec_piece piece;
	struct jtext t;
	enum mv_err err;

	if (text == NULL || strcmp(text, "none") == 0)
		return MV_OK;
	l->input_to = RUN_INPUT_STDIN;
	if (strcmp(text, "json") == 0) {
		l->input = a->arguments;
		if (l->input.n == 0)
			l->input = (struct jtext){"{}", 2};
		return MV_OK;
	}
	if (exec_piece_next(&text, &piece) && piece.is_name)
		s = args_spec(a, piece.p, piece.n);
	t = s != NULL ? args_given(a, s) : (struct jtext){NULL, 0};
	if (t.n == 0)
		return MV_OK;
	err = args_set_value(a, s, s->type, t);
	if (err != MV_OK)
		return err;
	l->own = a->value;
	buf_init(&a->value, CAP_MESSAGE_BYTES);
	l->input = (struct jtext){l->own.data, l->own.len};
	return MV_OK;
}

/* ---- the line ---- */

void
exec_line_init(struct exec_line *l)
{
	*l = (struct exec_line){.input_to = RUN_INPUT_NONE};
	/* What is more is refused before. */
	buf_init(&l->words, CAP_MESSAGE_BYTES);
	buf_init(&l->own, CAP_MESSAGE_BYTES);
}

void
exec_line_fini(struct exec_line *l)
{
	buf_fini(&l->words);
	buf_fini(&l->own);
	exec_line_init(l);
}

enum mv_err
exec_line_make(struct exec_line *l, const struct exec_tool *t, struct jtext arguments,
    struct buf *why)
{
	static const struct argspec nothing = {.type = ARG_OBJECT};
	struct args a = {.line = l, .tool = t, .arguments = arguments, .why = why};
	enum mv_err err = MV_OK;

	if (!argspec_check(t->params != NULL ? t->params : &nothing, arguments, why))
		return MV_PARAMS;
	buf_init(&a.value, CAP_MESSAGE_BYTES);
	for (size_t i = 0; err == MV_OK && i < t->n_args; i++)
		err = args_put(&a, &t->args[i]);
	if (err == MV_OK)
		err = args_put_input(&a);
	buf_fini(&a.value);
	return err == MV_OK || err == MV_PARAMS ? err : MV_NOMEM;
}

const char **
exec_line_argv(const struct exec_line *l, const char *command)
{
	const char **argv = mem_xalloc((l->n_words + 2) * sizeof(*argv));
	const char *p = l->words.data;

	argv[0] = command;
	for (size_t i = 0; i < l->n_words; i++) {
		argv[i + 1] = p;
		p += strlen(p) + 1;
	}
	argv[l->n_words + 1] = NULL;
	return argv;
}
