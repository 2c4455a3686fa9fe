/* SPDX-License-Identifier: MIT */
/*
 * Types of options about results: rules of failure, tools that say who somebody is,
 * regular expressions.
 *
 * Owns: nothing; values are the snapshot's.
 * Driven by: conf_group.c and conf_walk.c, through the types.
 * Invariants: a list is there whole or not at all.
 */
#include "conf_value_priv.h"

#include <string.h>

#include "mcpvisor/mem.h"

/* The struct that a member is in. */
#define OF_MEMBER(type, member, p)                                                       \
	((struct type *)(void *)((char *)(p)-offsetof(struct type, member)))
#define OF_CONST_MEMBER(type, member, p)                                                 \
	((const struct type *)(const void *)((const char *)(p)-offsetof(                 \
	    struct type, member)))

static int
label_line(const config_setting_t *list, size_t i)
{
	return (int)config_setting_source_line(
	    config_setting_get_elem(list, (unsigned)i));
}

static void
rules_free(struct fail_rule *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fail_rule_fini(&v[i]);
	mem_free(v);
}

void
conf_parse_rules(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	struct label_conf *l = OF_MEMBER(label_conf, rules, member);
	char **texts = NULL;
	struct fail_rule *v;
	size_t n = 0;
	bool bad = false;

	conf_parse_strings(x, r, &texts, s);
	if (!texts)
		return;
	v = mem_xcalloc(conf_strings_count(texts) + 1, sizeof(*v));
	for (size_t i = 0; texts[i]; i++) {
		struct mv_errtext et = {.line = 0};
		size_t old = conf_push_index(x, (int)i);

		if (fail_rule_read(&v[n], texts[i], &et)) {
			n++;
		} else {
			conf_error(x, label_line(s, i), "%s", et.message);
			bad = true;
		}
		conf_pop(x, old);
	}
	conf_strings_free(texts);
	if (bad) {
		rules_free(v, n);
		return;
	}
	rules_free(l->rules, l->n_rules);
	l->rules = v;
	l->n_rules = n;
}

bool
conf_put_rules(struct conf_put *p, const struct conf_row *r, const void *member)
{
	const struct label_conf *l = OF_CONST_MEMBER(label_conf, rules, member);

	if (!l->rules)
		return false;
	conf_put_text(p, "[");
	for (size_t i = 0; i < l->n_rules; i++) {
		conf_put_text(p, i > 0 ? ", " : "");
		conf_put_string(p, r, l->rules[i].text);
	}
	conf_put_text(p, "]");
	return true;
}

void
conf_parse_identity(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	char ***slot = member, **v = NULL;
	int i;

	if (config_setting_is_array(s) || config_setting_is_list(s)) {
		conf_parse_strings(x, r, &v, s);
	} else if (config_setting_type(s) != CONFIG_TYPE_STRING) {
		conf_want(x, r, s);
	} else {
		i = conf_enum(x, r, s, (int)config_setting_source_line(s));
		if (i < 0)
			return;
		v = mem_xcalloc(2, sizeof(*v));
		v[0] = mem_xstrdup(conf_type_of(r)->names[i]);
	}
	if (!v)
		return;
	conf_strings_free(*slot);
	*slot = v;
}

bool
conf_put_identity(struct conf_put *p, const struct conf_row *r, const void *member)
{
	char *const *v = *(char *const *const *)member;

	if (!v) {
		conf_put_text(p, r->dflt);
		return true;
	}
	for (const char *const *w = conf_type_of(r)->names; v[0] && !v[1] && *w; w++) {
		if (strcmp(*w, v[0]) == 0) {
			conf_put_string(p, r, v[0]);
			return true;
		}
	}
	return conf_put_strings(p, r, member);
}

static void
patterns_free(struct pattern **v)
{
	for (struct pattern **p = v; p && *p; p++)
		pattern_free(*p);
	mem_free(v);
}

void
conf_parse_regexes(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	struct identity_conf *c = OF_MEMBER(identity_conf, null_texts, member);
	struct pattern **v;
	char **texts = NULL;
	size_t n = 0;

	conf_parse_strings(x, r, &texts, s);
	if (!texts)
		return;
	v = mem_xcalloc(conf_strings_count(texts) + 1, sizeof(*v));
	for (size_t i = 0; texts[i]; i++) {
		struct mv_errtext et = {.line = 0};
		size_t old = conf_push_index(x, (int)i);

		v[n] = pattern_new(texts[i], false, &et);
		if (v[n])
			n++;
		else
			conf_error(x, label_line(s, i), "%s", et.message);
		conf_pop(x, old);
	}
	if (n < conf_strings_count(texts)) {
		conf_strings_free(texts);
		patterns_free(v);
		return;
	}
	conf_strings_free(c->null_texts);
	patterns_free(c->patterns);
	c->null_texts = texts;
	c->patterns = v;
}

void
conf_parse_regex(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	struct mv_errtext et = {.line = 0};
	char *text = conf_string(x, r, s);
	struct pattern **slot = member, *p;

	if (!text)
		return;
	p = pattern_new(text, true, &et);
	if (p) {
		pattern_free(*slot);
		*slot = p;
	} else {
		conf_error(x, (int)config_setting_source_line(s), "%s", et.message);
	}
	mem_free(text);
}

bool
conf_put_regex(struct conf_put *p, const struct conf_row *r, const void *member)
{
	const struct pattern *pattern = *(struct pattern *const *)member;

	if (!pattern)
		return false;
	conf_put_string(p, r, pattern_text(pattern));
	return true;
}
