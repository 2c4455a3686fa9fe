/* SPDX-License-Identifier: MIT */
/*
 * The environment of a child: what of ours it inherits, what files and confs add.
 *
 * Owns: nothing; results are the caller's.
 * Driven by: the import and the conf.
 * Invariants: nothing of ours is passed on that is not named; no message shows a value.
 */
#include "expand_priv.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/glob.h"
#include "mcpvisor/mem.h"

#include <stdio.h>
#include <string.h>

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
		if (n == strlen(names[i]) && memcmp(pair, names[i], n) == 0)
			return true;
	}
	return false;
}

static bool
env_is_same_key(const char *a, const char *b)
{
	size_t key = env_key_len(a);

	return env_key_len(b) == key && memcmp(a, b, key) == 0;
}

static char **
env_find(char **v, size_t n, const char *pair)
{
	for (size_t i = 0; i < n; i++) {
		if (env_is_same_key(v[i], pair))
			return &v[i];
	}
	return NULL;
}

char **
expand_child_env(char *const *ours, char *const *extra, size_t n)
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

/* pair becomes the array's. */
static void
env_append(char ***v, size_t *n, char *pair)
{
	*v = mem_xrealloc(*v, (*n + 2) * sizeof **v);
	(*v)[(*n)++] = pair;
	(*v)[*n] = NULL;
}

/* ---- files of variables ---- */

static bool
env_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static const char *
env_skip_space(const char *p)
{
	while (env_is_space(*p))
		p++;
	return p;
}

/* The length of the name at p, 0 if it is none. */
static size_t
env_name_len(const char *p)
{
	size_t n = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			     "0123456789_.-");

	return *p >= '0' && *p <= '9' ? 0 : n;
}

/* What stands in double quotes, from behind the first; NULL without the second. */
static const char *
env_take_double(const char *p, struct buf *out)
{
	for (; *p != '"'; p++) {
		if (!*p)
			return NULL;
		if (*p == '\\' && p[1] && strchr("\"\\$`", p[1])) {
			buf_add_char(out, *++p);
		} else if (*p == '\\' && p[1] == 'n') {
			buf_add_char(out, '\n');
			p++;
		} else {
			buf_add_char(out, *p);
		}
	}
	return p + 1;
}

static const char *
env_take_quoted(const char *p, struct buf *out)
{
	const char *end;

	if (*p == '"')
		return env_take_double(p + 1, out);
	end = strchr(p + 1, '\'');
	if (!end)
		return NULL;
	buf_add(out, p + 1, (size_t)(end - p - 1));
	return end + 1;
}

/* Up to the comment, without the space in front of it. Something stands before p. */
static void
env_take_plain(const char *p, struct buf *out)
{
	const char *end = p;

	while (*end && !(*end == '#' && env_is_space(end[-1])))
		end++;
	while (end > p && env_is_space(end[-1]))
		end--;
	buf_add(out, p, (size_t)(end - p));
}

/* Appends the pair of a line; nothing for an empty one. Returns NULL, or what is wrong.
 */
static const char *
env_take_line(const char *p, struct buf *out)
{
	size_t name;

	p = env_skip_space(p);
	if (!*p || *p == '#')
		return NULL;
	if (strncmp(p, "export", 6) == 0 && env_is_space(p[6]))
		p = env_skip_space(p + 6);
	name = env_name_len(p);
	if (name == 0)
		return "the line has no name of a variable";
	buf_add(out, p, name);
	p = env_skip_space(p + name);
	if (*p != '=')
		return "the line is not NAME=VALUE";
	buf_add_char(out, '=');
	p = env_skip_space(p + 1);
	if (*p != '"' && *p != '\'') {
		env_take_plain(p, out);
		return NULL;
	}
	p = env_take_quoted(p, out);
	if (!p)
		return "a quote has no end in its line";
	if (!*env_skip_space(p) || (env_is_space(*p) && *env_skip_space(p) == '#'))
		return NULL;
	return "there is text behind the closing quote";
}

/* Appends the pairs of text, which it cuts into lines. Returns NULL, or what is wrong in
 * *line. */
static const char *
env_take_text(char *text, char ***v, size_t *n, int *line)
{
	const char *fault = NULL;
	char *next = text;
	struct buf pair;

	buf_init(&pair, EXPAND_FILE_BYTES);
	for (char *p = text; next && !fault; p = next) {
		char *end = strchr(p, '\n');

		++*line;
		if (end)
			*end = '\0';
		next = end ? end + 1 : NULL;
		fault = env_take_line(p, &pair);
		if (!fault && pair.len > 0)
			env_append(v, n, mem_xstrndup(pair.data, pair.len));
		if (pair.data)
			explicit_bzero(pair.data, pair.len);
		buf_reset(&pair);
	}
	buf_fini(&pair);
	return fault;
}

enum mv_err
expand_env_file(const char *path, char ***v, size_t *n, struct mv_errtext *et)
{
	size_t before = *n, len;
	const char *fault;
	char *text;
	int line = 0;

	fault = expand_read_text(path, &text, &len);
	if (!fault) {
		size_t bom = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

		fault = env_take_text(text + bom, v, n, &line);
		mem_free_secret(text, len);
	}
	if (!fault)
		return MV_OK;
	while (*n > before) {
		char *pair = (*v)[--*n];

		mem_free_secret(pair, strlen(pair));
		(*v)[*n] = NULL;
	}
	snprintf(et->file, sizeof et->file, "%s", path);
	et->line = line;
	mv_errtext_set(et, "%s", fault);
	return MV_CONF;
}

/* ---- variables of ours ---- */

static bool
env_is_wanted(const char *pair, char *const *patterns)
{
	size_t key = env_key_len(pair);

	if (pair[key] != '=')
		return false;
	for (char *const *p = patterns; p && *p; p++) {
		if (glob_match(*p, pair, key))
			return true;
	}
	return false;
}

void
expand_env_pass(char *const *ours, char *const *patterns, char ***v, size_t *n)
{
	size_t before = *n;

	for (char *const *p = ours; p && *p; p++) {
		/* The first of twins counts, as in getenv(3). */
		if (env_is_wanted(*p, patterns) &&
		    (*n == before || !env_find(*v + before, *n - before, *p)))
			env_append(v, n, mem_xstrdup(*p));
	}
}
