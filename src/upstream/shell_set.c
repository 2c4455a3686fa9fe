/* SPDX-License-Identifier: MIT */
/*
 * What the two files of a shell upstream say: which tools are listed, which functions are
 * there.
 *
 * Owns: the bytes of both. Driven by: upstream_shell.c.
 * Invariants: a definition is shown as it is written; one without a function is not
 * shown; a name is letters, digits and _ alone, as it becomes that of a function.
 */
#include "upstream_exec_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHELL_NAME_MAX	128
#define SHELL_TOOLS_MAX 2048 /* each is searched for among all the others */
#define FUNCTION_START	"tool_"
#define READ_BLOCK	65536

static void
shell_id_set(struct shell_id *id, const struct stat *st)
{
	*id = (struct shell_id){.dev = st->st_dev,
	    .ino = st->st_ino,
	    .size = (uint64_t)st->st_size,
	    .s = st->st_mtim.tv_sec,
	    .ns = st->st_mtim.tv_nsec};
}

void
shell_id_of(const char *path, struct shell_id *id)
{
	struct stat st;

	*id = (struct shell_id){.dev = 0};
	if (stat(path, &st) == 0)
		shell_id_set(id, &st);
}

static enum mv_err
shell_read_all(int fd, struct buf *out)
{
	for (;;) {
		ssize_t n;

		if (buf_reserve(out, READ_BLOCK) != MV_OK)
			return out->err;
		n = read(fd, out->data + out->len, READ_BLOCK);
		if (n == 0)
			return MV_OK;
		if (n > 0)
			out->len += (size_t)n;
		else if (errno != EINTR)
			return MV_SYSTEM;
	}
}

static bool
shell_read(const char *path, struct shell_id *id, struct buf *out, struct mv_errtext *t)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	enum mv_err err = MV_SYSTEM;

	if (fd >= 0 && fstat(fd, &st) == 0) {
		shell_id_set(id, &st);
		errno = EINVAL;
		if (S_ISREG(st.st_mode))
			err = shell_read_all(fd, out);
	}
	if (err == MV_SYSTEM)
		mv_errtext_set(t, "cannot be read: %s", strerrordesc_np(errno));
	else if (err != MV_OK)
		mv_errtext_set(t, "is too large: %u bytes at most", CAP_CONF_BYTES);
	else if (out->len > 0 && memchr(out->data, '\0', out->len) != NULL)
		mv_errtext_set(t, "has a NUL byte");
	else
		t->message[0] = '\0';
	if (fd >= 0)
		close(fd);
	return t->message[0] == '\0';
}

static bool
shell_name_is_good(struct jtext name)
{
	static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				   "0123456789_";

	if (jtext_type(name) != '"' || name.n < 3 || name.n > SHELL_NAME_MAX + 2)
		return false;
	for (size_t i = 1; i < name.n - 1; i++)
		if (strchr(good, name.p[i]) == NULL)
			return false;
	return true;
}

static enum tool_hint
shell_hint(struct jtext annotations, const char *key, enum tool_hint dflt)
{
	struct jtext v = json_member(annotations, key);

	if (jtext_type(v) != 't' && jtext_type(v) != 'f')
		return dflt;
	return json_is_true(v) ? HINT_YES : HINT_NO;
}

/* What the schema of a list says of its elements: one that is otherwise would make
 * clients refuse all the others with it. */
static const struct {
	const char *key;
	char type; /* of its JSON text */
	bool is_needed;
	const char *fault;
} shell_members[] = {
    {"inputSchema", '{', true, "its inputSchema is no object"},
    {"outputSchema", '{', false, "its outputSchema is no object"},
    {"annotations", '{', false, "its annotations are no object"},
    {"title", '"', false, "its title is no string"},
    {"description", '"', false, "its description is no string"},
};

/* NULL: it can be listed. */
static const char *
shell_tool_fault(const struct shell_set *s, struct jtext text, struct jtext name)
{
	if (!shell_name_is_good(name))
		return "its name is not [A-Za-z0-9_]{1,128}";
	if (shell_set_find(s, name) != NULL)
		return "its name is taken";
	for (size_t i = 0; i < sizeof(shell_members) / sizeof(*shell_members); i++) {
		struct jtext v = json_member(text, shell_members[i].key);

		if (v.n > 0 ? jtext_type(v) != shell_members[i].type
			    : shell_members[i].is_needed)
			return shell_members[i].fault;
	}
	return json_string_is(
		   json_member(json_member(text, "inputSchema"), "type"), "object")
		   ? NULL
		   : "its inputSchema is not of type object";
}

static void
shell_set_add(struct shell_set *s, struct jtext text)
{
	struct jtext name = json_member(text, "name");
	struct jtext a = json_member(text, "annotations");
	const char *wrong = shell_tool_fault(s, text, name);

	if (wrong != NULL) {
		LOG_LIMITED(LOG_LV_NOTICE, "shell", "not listed", "tool=%s reason=\"%s\"",
		    LOG_ESC(name.n > 0 ? name.p : "", name.n), wrong);
		return;
	}
	s->v = mem_xrealloc(s->v, (s->n + 1) * sizeof(*s->v));
	s->v[s->n++] = (struct shell_tool){.name = name,
	    .text = text,
	    .hints = {.read_only = shell_hint(a, "readOnlyHint", HINT_NO),
		.destructive = shell_hint(a, "destructiveHint", HINT_INHERIT),
		.idempotent = shell_hint(a, "idempotentHint", HINT_NO),
		.open_world = shell_hint(a, "openWorldHint", HINT_YES)}};
}

static bool
shell_set_parse(struct shell_set *s, struct mv_errtext *t)
{
	struct jtext root = {s->tools.data, s->tools.len}, tools, one;
	struct json_iter it;
	struct json_msg m;

	if (json_scan(&m, root.p, root.n, false) != MV_OK) {
		mv_errtext_set(t, "is not valid JSON");
		return false;
	}
	while (json_is_space(*root.p)) {
		root.p++;
		root.n--;
	}
	tools = json_member(root, "tools");
	if (jtext_type(tools) != '[') {
		mv_errtext_set(t, "has no array \"tools\"");
		return false;
	}
	json_iter_init(&it, tools);
	while (json_next_element(&it, &one) && s->n < SHELL_TOOLS_MAX)
		shell_set_add(s, one);
	if (s->n == SHELL_TOOLS_MAX)
		mv_errtext_set(t, "has too many tools: fewer than %d", SHELL_TOOLS_MAX);
	return s->n < SHELL_TOOLS_MAX;
}

struct shell_set *
shell_set_read(const struct exec_conf *c, struct mv_errtext *t)
{
	struct shell_set *s = mem_xcalloc(1, sizeof(*s));
	bool ok;

	buf_init(&s->file, CAP_CONF_BYTES + READ_BLOCK);
	buf_init(&s->tools, CAP_CONF_BYTES + READ_BLOCK);
	mv_errtext_set(t, "%s", "");
	(void)snprintf(t->file, sizeof(t->file), "%s", c->file);
	ok = shell_read(c->file, &s->file_id, &s->file, t);
	if (ok) {
		(void)snprintf(t->file, sizeof(t->file), "%s", c->tools_file);
		ok = shell_read(c->tools_file, &s->tools_id, &s->tools, t);
	}
	if (ok)
		ok = shell_set_parse(s, t);
	if (ok) {
		exec_flatten(s->tools.data, s->tools.len);
		return s;
	}
	shell_set_free(s);
	return NULL;
}

void
shell_set_free(struct shell_set *s)
{
	if (s == NULL)
		return;
	buf_fini(&s->file);
	buf_fini(&s->tools);
	mem_free(s->v);
	mem_free(s);
}

/* Its text without quotes; every name is plain. */
static bool
shell_tool_is(const struct shell_tool *t, const char *p, size_t n)
{
	return t->name.n == n + 2 && memcmp(t->name.p + 1, p, n) == 0;
}

static void
shell_set_take_line(struct shell_set *s, const char *line, size_t n)
{
	const char *name = memrchr(line, ' ', n);
	size_t skip = sizeof(FUNCTION_START) - 1;

	if (name == NULL)
		return;
	name++;
	n -= (size_t)(name - line);
	if (n <= skip || memcmp(name, FUNCTION_START, skip) != 0)
		return;
	for (size_t i = 0; i < s->n; i++)
		if (shell_tool_is(&s->v[i], name + skip, n - skip))
			s->v[i].has_function = true;
}

bool
shell_set_take_functions(struct shell_set *s, const char *p, size_t n)
{
	static const char last[] = SHELL_LOADED "\n";
	size_t n_last = sizeof(last) - 1;
	const char *end, *nl;

	if (n < n_last || memcmp(p + n - n_last, last, n_last) != 0)
		return false;
	end = p + n - n_last;
	for (; p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (nl == NULL)
			return false;
		shell_set_take_line(s, p, (size_t)(nl - p));
	}
	return true;
}

const struct shell_tool *
shell_set_find(const struct shell_set *s, struct jtext name)
{
	for (size_t i = 0; i < s->n; i++)
		if (json_id_is_same(s->v[i].name, name))
			return &s->v[i];
	return NULL;
}

static bool
shape_has_hints(const struct tool_shape *shape)
{
	const struct tool_hints *h = &shape->hints;

	return h->read_only != HINT_INHERIT || h->destructive != HINT_INHERIT ||
	       h->idempotent != HINT_INHERIT || h->open_world != HINT_INHERIT;
}

/* With other annotations. */
static void
shell_tool_put_as(
    const struct shell_tool *t, const struct tool_shape *shape, struct buf *out)
{
	struct json_iter it;
	struct jtext key, value;
	const char *sep = "{";

	json_iter_init(&it, t->text);
	while (json_next_member(&it, &key, &value)) {
		if (json_string_is(key, "annotations"))
			continue;
		buf_add_str(out, sep);
		json_put(out, key);
		buf_add_char(out, ':');
		json_put(out, value);
		sep = ",";
	}
	local_put_annotations(out, shape, &t->hints);
	buf_add_char(out, '}');
}

void
shell_set_put(const struct shell_set *s, const struct upstream *u, struct buf *out)
{
	const char *sep = "";

	for (size_t i = 0; i < s->n; i++) {
		const struct shell_tool *t = &s->v[i];
		const struct tool_shape *shape = local_shape(u, t->name);

		if (!t->has_function)
			continue;
		buf_add_str(out, sep);
		if (shape != NULL && shape_has_hints(shape))
			shell_tool_put_as(t, shape, out);
		else
			json_put(out, t->text);
		sep = ",";
	}
}
