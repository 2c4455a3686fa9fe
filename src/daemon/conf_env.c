/* SPDX-License-Identifier: MIT */
/*
 * The environment of an upstream's processes.
 *
 * Owns: nothing; the result is the upstream's.
 * Driven by: conf_upstream.c, conf_import.c.
 * Invariants: it is own_env over a base, a later source winning: env_file, env, env_pass.
 * What is run for calls has no variable of ours by which a program could be made to run
 * another one.
 */
#include "conf_value_priv.h"

#include <string.h>
#include <unistd.h>

#include "mcpvisor/glob.h"
#include "mcpvisor/mem.h"

/* Variables that change what a program is before it has begun. */
static bool
env_is_refused(const char *name, size_t n)
{
	static const char *const patterns[] = {"LD_*", "BASH_ENV", "ENV", "IFS",
	    "SHELLOPTS", "BASH_FUNC_*", "GCONV_PATH", "PYTHON*", "PERL5*",
	    "NODE_OPTIONS"};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		if (glob_match(patterns[i], name, n))
			return true;
	}
	return false;
}

/* A pattern that means such variables alone is a mistake; one that means others as well
 * passes those. */
static void
env_check_pass(struct conf_ctx *x, const config_setting_t *group)
{
	const config_setting_t *s = config_setting_get_member(group, "env_pass");
	const struct conf_extra *extra = x->at[CONF_EXTRA];
	size_t old = conf_push(x, "env_pass");

	for (int i = 0; s && extra->env_pass && extra->env_pass[i]; i++) {
		const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
		const char *name = extra->env_pass[i];
		size_t index;

		if (!e || !env_is_refused(name, strlen(name)))
			continue;
		index = conf_push_index(x, i);
		conf_error(x, (int)config_setting_source_line(e),
		    "programs of this kind must not get that from us: it can make them "
		    "run something else");
		conf_pop(x, index);
	}
	conf_pop(x, old);
}

static void
env_take(char ***to, char **v, size_t n, bool is_runner)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_runner || !env_is_refused(v[i], strcspn(v[i], "=")))
			conf_env_set(to, v[i], false);
		conf_set_string(&v[i], NULL);
	}
	mem_free(v);
}

static void
env_read_file(struct conf_ctx *x, const config_setting_t *group, char ***all)
{
	const config_setting_t *s =
	    group ? config_setting_get_member(group, "env_file") : NULL;
	const struct conf_extra *extra = x->at[CONF_EXTRA];
	int line = s ? (int)config_setting_source_line(s) : extra->line;
	struct mv_errtext et = {.line = 0};
	char **v = NULL;
	size_t n = 0;

	if (extra->env_file && expand_env_file(extra->env_file, &v, &n, &et) != MV_OK &&
	    !x->lenient) {
		if (et.line > 0)
			conf_error(
			    x, line, "env_file: its line %d: %s", et.line, et.message);
		else
			conf_error(x, line, "env_file: %s", et.message);
	}
	env_take(all, v, n, false);
}

void
conf_finish_env(struct conf_ctx *x, const config_setting_t *group)
{
	struct upstream_conf *u = x->at[CONF_UPSTREAM];
	const struct conf_extra *extra = x->at[CONF_EXTRA];
	char **all = NULL, **v = NULL, **own = u->own_env;
	size_t n = 0;

	env_read_file(x, group, &all);
	for (char **p = own; p && *p; p++)
		conf_env_set(&all, *p, false);
	conf_strings_free(own);
	if (conf_is_runner(u) && group)
		env_check_pass(x, group);
	if (extra->env_pass)
		expand_env_pass(environ, extra->env_pass, &v, &n);
	env_take(&all, v, n, conf_is_runner(u));
	u->own_env = all;
}

void
conf_make_env(struct upstream_conf *u)
{
	char path[] = "PATH=/usr/bin:/bin", *const plain[] = {path, NULL};

	conf_strings_free(u->env);
	u->env = expand_child_env(conf_is_runner(u) ? plain : environ, u->own_env,
	    conf_strings_count(u->own_env));
	conf_set_string(&u->path, NULL);
	for (char **p = u->env; *p; p++) {
		if (strncmp(*p, "PATH=", 5) == 0)
			conf_set_string(&u->path, mem_xstrdup(*p + 5));
	}
}
