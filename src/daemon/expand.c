/* SPDX-License-Identifier: MIT */
/*
 * Variables in imported texts, and the environment that a child gets.
 *
 * Owns: nothing; results are the caller's.
 * Driven by: the import.
 * Invariants: what was put in is never looked at again; no message shows a value, neither
 * of a variable nor of the text that was expanded, as both may be secrets.
 */
#include "import_priv.h"

#include <string.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

static bool
expand_is_name(const char *s, size_t n)
{
	if (n == 0 || (*s >= '0' && *s <= '9'))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!((s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= 'a' && s[i] <= 'z') ||
			(s[i] >= '0' && s[i] <= '9') || s[i] == '_'))
			return false;
	}
	return true;
}

static bool
expand_is(const char *s, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(s, text, n) == 0;
}

static bool
expand_fail_form(const char *s, size_t n, struct mv_errtext *et)
{
	const char *colon = memchr(s, ':', n);
	size_t head = colon ? (size_t)(colon - s) : 0;

	if (memmem(s, n, "${", 2))
		mv_errtext_set(et, "a ${...} inside another is not supported");
	else if (colon && expand_is(s, head, "input"))
		mv_errtext_set(et, "${input:...} is a question of the editor to its "
				   "user, which mcpvisor "
				   "cannot ask; use ${env:NAME}");
	else if (colon && expand_is_name(s, head))
		mv_errtext_set(et, "${%.*s:...} is not a known form",
		    (int)(head < 64 ? head : 64), s);
	else
		mv_errtext_set(et, "a ${...} names no variable");
	return false;
}

static bool
expand_fail_unset(const char *name, struct mv_errtext *et)
{
	if (strcmp(name, "workspaceFolder") == 0 ||
	    strcmp(name, "workspaceFolderBasename") == 0 ||
	    strcmp(name, "pathSeparator") == 0)
		mv_errtext_set(
		    et, "${%s} is a variable of the editor, mcpvisor has none", name);
	else
		mv_errtext_set(et, "variable %s is not set", name);
	return false;
}

/* s, n: what is between the braces. */
static bool
expand_one(const char *s, size_t n, const struct import_env *env, struct buf *out,
    struct mv_errtext *et)
{
	const char *dflt = NULL, *value;
	size_t dflt_n = 0, name_n = n;
	char name[256];

	if (n > 4 && memcmp(s, "env:", 4) == 0) {
		s += 4;
		n -= 4;
		name_n = n;
	}
	dflt = memmem(s, n, ":-", 2);
	if (dflt) {
		name_n = (size_t)(dflt - s);
		dflt += 2;
		dflt_n = n - name_n - 2;
	}
	if (!expand_is_name(s, name_n) || name_n >= sizeof name ||
	    (dflt && memmem(dflt, dflt_n, "${", 2)))
		return expand_fail_form(s, n, et);
	memcpy(name, s, name_n);
	name[name_n] = '\0';
	if (strcmp(name, "userHome") == 0)
		memcpy(name, "HOME", 5);
	value = env->get(name, env->arg);
	/* As in a shell, :- also stands in for an empty value. */
	if (dflt && (!value || !*value))
		buf_add(out, dflt, dflt_n);
	else if (value)
		buf_add_str(out, value);
	else
		return expand_fail_unset(name, et);
	return true;
}

char *
import_expand(const char *s, const struct import_env *env, struct mv_errtext *et)
{
	struct buf out;
	char *text = NULL;
	size_t len;

	buf_init(&out, CAP_IMPORT_BYTES);
	for (const char *open; (open = strstr(s, "${"));) {
		const char *close = strchr(open, '}');

		buf_add(&out, s, (size_t)(open - s));
		if (!close) {
			mv_errtext_set(et, "a ${ has no closing brace");
			goto out;
		}
		open += 2;
		if (!expand_one(open, (size_t)(close - open), env, &out, et))
			goto out;
		s = close + 1;
	}
	buf_add(&out, s, strlen(s) + 1);
	if (out.err == MV_OK)
		text = buf_take(&out, &len);
	else
		mv_errtext_set(et, "the expanded text is too long");
out:
	buf_fini(&out);
	return text;
}

/* "K=V": the length of K; without '=' all of it. */
static size_t
env_key_len(const char *pair)
{
	return strcspn(pair, "=");
}

static bool
env_is_passed_on(const char *pair)
{
	static const char *const names[] = {
	    "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR"};
	size_t n = env_key_len(pair);

	if (pair[n] != '=')
		return false;
	if (n > 3 && memcmp(pair, "LC_", 3) == 0)
		return true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (expand_is(pair, n, names[i]))
			return true;
	}
	return false;
}

static char **
env_find(char **v, size_t n, const char *pair)
{
	size_t key = env_key_len(pair);

	for (size_t i = 0; i < n; i++) {
		if (env_key_len(v[i]) == key && memcmp(v[i], pair, key) == 0)
			return &v[i];
	}
	return NULL;
}

char **
import_child_env(char *const *ours, char *const *extra, size_t n)
{
	size_t max = n + 1, used = 0;
	char **v;

	for (char *const *p = ours; p && *p; p++)
		max += env_is_passed_on(*p);
	v = mem_xcalloc(max, sizeof *v);
	for (char *const *p = ours; p && *p; p++) {
		/* The first of twins counts, as in getenv(3). */
		if (env_is_passed_on(*p) && !env_find(v, used, *p))
			v[used++] = mem_xstrdup(*p);
	}
	for (size_t i = 0; i < n; i++) {
		char **old = env_find(v, used, extra[i]);

		if (old)
			mem_free(*old);
		else
			old = &v[used++];
		*old = mem_xstrdup(extra[i]);
	}
	return v;
}
