/* SPDX-License-Identifier: MIT */
/*
 * Which names an upstream or a profile lets through.
 *
 * Owns: nothing.
 * Driven by: the catalog, and whoever checks a conf.
 * Invariants: deny wins over allow; what annotations do not say is taken as the
 * schema's default, which is the cautious one.
 */
#include "mcpvisor/filter.h"

#include "mcpvisor/glob.h"
#include "mcpvisor/mem.h"

#include <string.h>

static bool
hint_is(struct jtext annotations, const char *hint, bool or_else)
{
	struct jtext v = json_member(annotations, hint);

	if (json_is_true(v))
		return true;
	return v.n == 5 && memcmp(v.p, "false", 5) == 0 ? false : or_else;
}

static bool
hint_read_only(struct jtext a)
{
	return hint_is(a, "readOnlyHint", false);
}

/* The next two mean something only of a tool that changes things. */
static bool
hint_destructive(struct jtext a)
{
	return !hint_read_only(a) && hint_is(a, "destructiveHint", true);
}

static bool
hint_idempotent(struct jtext a)
{
	return !hint_read_only(a) && hint_is(a, "idempotentHint", false);
}

static bool
hint_open_world(struct jtext a)
{
	return hint_is(a, "openWorldHint", true);
}

static const struct {
	const char *pattern;
	bool (*holds)(struct jtext annotations);
} hints[] = {
    {"@read_only", hint_read_only},
    {"@destructive", hint_destructive},
    {"@idempotent", hint_idempotent},
    {"@open_world", hint_open_world},
};
#define N_HINTS (sizeof(hints) / sizeof(hints[0]))

bool
filter_pattern_is_valid(const char *pattern)
{
	if (pattern[0] != '@')
		return pattern[0] != '\0';
	for (size_t i = 0; i < N_HINTS; i++)
		if (strcmp(hints[i].pattern, pattern) == 0)
			return true;
	return false;
}

static bool
pattern_fits(const char *pattern, struct jtext name, struct jtext annotations)
{
	if (pattern[0] != '@')
		return glob_match(pattern, name.p, name.n);
	for (size_t i = 0; i < N_HINTS; i++)
		if (strcmp(hints[i].pattern, pattern) == 0)
			return hints[i].holds(annotations);
	return false;
}

static bool
any_fits(char *const *patterns, struct jtext name, struct jtext annotations)
{
	for (; *patterns != NULL; patterns++)
		if (pattern_fits(*patterns, name, annotations))
			return true;
	return false;
}

bool
filter_allows(const struct filter *f, struct jtext name, struct jtext annotations)
{
	if (f->deny != NULL && any_fits(f->deny, name, annotations))
		return false;
	return f->allow == NULL || any_fits(f->allow, name, annotations);
}

static bool
any_name_fits(char *const *patterns, struct jtext name, bool hints_fit)
{
	for (; *patterns != NULL; patterns++)
		if (**patterns == '@' ? hints_fit : glob_match(*patterns, name.p, name.n))
			return true;
	return false;
}

bool
filter_may_allow(const struct filter *f, struct jtext name)
{
	if (f->deny != NULL && any_name_fits(f->deny, name, false))
		return false;
	return f->allow == NULL || any_name_fits(f->allow, name, true);
}

bool
profile_has_upstream(const struct profile_conf *p, const char *name)
{
	size_t n = strlen(name);

	if (p->upstreams == NULL)
		return true;
	for (char *const *pattern = p->upstreams; *pattern != NULL; pattern++)
		if (glob_match(*pattern, name, n))
			return true;
	return false;
}

void
profile_conf_free(struct profile_conf *p)
{
	if (p == NULL)
		return;
	for (char **s = p->upstreams; s != NULL && *s != NULL; s++)
		mem_free(*s);
	mem_free(p->upstreams);
	filter_free(&p->tools);
	filter_free(&p->prompts);
	filter_free(&p->resources);
	mem_free(p->name);
	mem_free(p);
}
