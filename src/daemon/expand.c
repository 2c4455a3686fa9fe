/* SPDX-License-Identifier: MIT */
/*
 * Values that stand elsewhere: in variables, files and credentials.
 *
 * Owns: nothing; results are the caller's.
 * Driven by: the import and the conf.
 * Invariants: what was put in is never looked at again; no message shows a value, neither
 * of what was put in nor of the text that was expanded, as both may be secrets.
 */
#include "mcpvisor/expand.h"

#include "expand_priv.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_FIRST_BYTES 4096

static const char *
expand_getenv(const char *name, void *arg)
{
	(void)arg;
	return getenv(name);
}

const struct expand_env expand_env_process = {.get = expand_getenv};

/* One expansion under way. */
struct expansion {
	const struct expand_env *env;
	struct buf out;
	bool secret;
	struct mv_errtext *et;
};

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
expand_begins(const char *s, size_t n, const char *head)
{
	return n >= strlen(head) && memcmp(s, head, strlen(head)) == 0;
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

/* ---- files ---- */

static int
expand_open(const char *path, mode_t also, const char **fault)
{
	/* Of a pipe that nobody writes to, an open would not return. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	*fault = NULL;
	if (fd < 0 || fstat(fd, &st) != 0)
		*fault = strerror(errno);
	else if (!S_ISREG(st.st_mode) && (st.st_mode & S_IFMT) != also)
		*fault = "not a regular file";
	return fd;
}

/* Moves n bytes to twice the room, and leaves none of them behind. NULL: there is none.
 */
static char *
expand_grow(char *old, size_t n, size_t *room)
{
	char *p = mem_try(2 * *room);

	if (p != NULL) {
		memcpy(p, old, n);
		*room *= 2;
	}
	mem_free_secret(old, n);
	return p;
}

/* Reads on until the end, or beyond max. */
static const char *
expand_read_fd(int fd, size_t max, char **text, size_t *n)
{
	size_t room = READ_FIRST_BYTES;

	*text = mem_try(room);
	while (*text != NULL && *n <= max) {
		ssize_t got;

		if (*n + 1 == room) {
			*text = expand_grow(*text, *n, &room);
			continue;
		}
		got = read(fd, *text + *n, room - 1 - *n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return strerror(errno);
		if (got == 0) {
			(*text)[*n] = '\0';
			return NULL;
		}
		*n += (size_t)got;
	}
	return *text == NULL ? mv_err_text(MV_NOMEM) : "the file is too long";
}

const char *
expand_read_file(const char *path, mode_t also, size_t max, char **text, size_t *n)
{
	const char *fault;
	int fd = expand_open(path, also, &fault);

	*text = NULL;
	*n = 0;
	if (!fault)
		fault = expand_read_fd(fd, max, text, n);
	if (fd >= 0)
		(void)close(fd);
	if (fault) {
		mem_free_secret(*text, *text ? *n : 0);
		*text = NULL;
		*n = 0;
	}
	return fault;
}

const char *
expand_read_text(const char *path, char **text, size_t *n)
{
	const char *fault = expand_read_file(path, 0, EXPAND_FILE_BYTES, text, n);

	if (fault || !memchr(*text, '\0', *n))
		return fault;
	mem_free_secret(*text, *n);
	*text = NULL;
	*n = 0;
	return "the file has a NUL byte";
}

/* Appends what is in dir/name (dir may be NULL). kind is for the message. */
static bool
expand_put_file(struct expansion *x, const char *kind, const char *dir, struct buf *name)
{
	const char *file = buf_cstr(name), *fault = "the name is too long", *path = NULL;
	struct buf whole;
	char *text = NULL;
	size_t n = 0, used;

	buf_init(&whole, 8192);
	if (file && dir && *file != '/')
		buf_addf(&whole, "%s/", dir);
	if (file) {
		buf_add_str(&whole, file);
		path = buf_cstr(&whole);
	}
	if (path && x->env->on_file)
		x->env->on_file(path, x->env->file_arg);
	if (path)
		fault = expand_read_text(path, &text, &n);
	if (fault) {
		mv_errtext_set(
		    x->et, "%s %s: %s", kind, LOG_ESC(name->data, name->len), fault);
	} else {
		x->secret = true;
		used = n;
		if (n > 0 && text[n - 1] == '\n')
			used -= n > 1 && text[n - 2] == '\r' ? 2 : 1;
		buf_add(&x->out, text, used);
	}
	mem_free_secret(text, n);
	buf_fini(&whole);
	return !fault;
}

static bool
expand_file(struct expansion *x, const char *s, size_t n)
{
	struct buf name;
	bool good;

	if (n == 0) {
		mv_errtext_set(x->et, "${file:} names no file");
		return false;
	}
	buf_init(&name, 4096);
	buf_add(&name, s, n);
	good = expand_put_file(x, "file", x->env->dir, &name);
	buf_fini(&name);
	return good;
}

static bool
expand_credential(struct expansion *x, const char *s, size_t n)
{
	const char *dir = x->env->credentials;
	struct buf name;
	bool good;

	if (!dir)
		dir = x->env->get("CREDENTIALS_DIRECTORY", x->env->arg);
	if (n == 0 || memchr(s, '/', n) || expand_is(s, n, ".") ||
	    expand_is(s, n, "..")) {
		mv_errtext_set(x->et, "${credential:...} names no credential");
		return false;
	}
	if (!dir || !*dir) {
		mv_errtext_set(x->et,
		    "credential %s: there is no folder of credentials "
		    "(CREDENTIALS_DIRECTORY is not set)",
		    LOG_ESC(s, n));
		return false;
	}
	buf_init(&name, 255);
	buf_add(&name, s, n);
	good = expand_put_file(x, "credential", dir, &name);
	buf_fini(&name);
	return good;
}

/* ---- text ---- */

static bool
expand_variable(struct expansion *x, const char *s, size_t n)
{
	const char *dflt, *value;
	size_t dflt_n = 0, name_n = n;
	char name[256];
	bool home;

	if (n > 4 && expand_begins(s, n, "env:")) {
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
	if (!expand_is_name(s, name_n) || name_n >= sizeof name)
		return expand_fail_form(s, n, x->et);
	memcpy(name, s, name_n);
	name[name_n] = '\0';
	home = strcmp(name, "userHome") == 0;
	if (home)
		memcpy(name, "HOME", 5);
	value = x->env->get(name, x->env->arg);
	/* As in a shell, :- also stands in for an empty value. */
	if (dflt && (!value || !*value))
		buf_add(&x->out, dflt, dflt_n);
	else if (value)
		buf_add_str(&x->out, value);
	else
		return expand_fail_unset(name, x->et);
	x->secret = x->secret || (!home && value && *value);
	return true;
}

/* s, n: what is between the braces. */
static bool
expand_one(struct expansion *x, const char *s, size_t n)
{
	if (memmem(s, n, "${", 2))
		return expand_fail_form(s, n, x->et);
	if (expand_begins(s, n, "file:"))
		return expand_file(x, s + 5, n - 5);
	if (expand_begins(s, n, "credential:"))
		return expand_credential(x, s + 11, n - 11);
	return expand_variable(x, s, n);
}

char *
expand_text(
    const char *s, const struct expand_env *env, bool *secret, struct mv_errtext *et)
{
	struct expansion x = {.env = env, .et = et};
	char *text = NULL;

	buf_init(&x.out, CAP_IMPORT_BYTES);
	for (const char *open; (open = strstr(s, "${"));) {
		const char *close = strchr(open, '}');

		buf_add(&x.out, s, (size_t)(open - s));
		if (!close) {
			mv_errtext_set(et, "a ${ has no closing brace");
			goto out;
		}
		open += 2;
		if (!expand_one(&x, open, (size_t)(close - open)))
			goto out;
		s = close + 1;
	}
	buf_add_str(&x.out, s);
	text = buf_take(&x.out, NULL);
	if (!text)
		mv_errtext_set(et, "the expanded text is too long");
	else if (secret)
		*secret = *secret || x.secret;
out:
	if (!text && x.out.data)
		explicit_bzero(x.out.data, x.out.len);
	buf_fini(&x.out);
	return text;
}
