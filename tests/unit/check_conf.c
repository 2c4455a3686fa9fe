/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* The conf: a corpus with verdicts, and each option by the rows of the table. */
#include "conf_rig.h"

#include <dirent.h>
#include <inttypes.h>

#include "../../src/daemon/conf_priv.h"

#include "mcpvisor/caps.h"

/* The text of a file; the caller's. */
static char *
file_text(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = mem_xcalloc(1, 65536);

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_lt(fread(text, 1, 65535, f), 65535);
	fclose(f);
	return text;
}

/* Calls fn for each line that begins with head, with what follows. Their number. */
static size_t
each_line(char *text, const char *head, void (*fn)(char *line, void *arg), void *arg)
{
	size_t n = 0, skip = strlen(head);
	char *save = NULL;

	for (char *l = strtok_r(text, "\r\n", &save); l;
	     l = strtok_r(NULL, "\r\n", &save)) {
		if (strncmp(l, head, skip) == 0) {
			fn(l + skip, arg);
			n++;
		}
	}
	return n;
}

static void
on_has(char *line, void *arg)
{
	ck_assert_msg(rig_has_line(arg, line), "want \"%s\" in\n%s", line, (char *)arg);
}

static void
corpus_valid(const char *path)
{
	struct conf_errors e;
	struct conf *c = conf_load(path, &rig_env, &e);
	char *text = file_text(path), *dump;

	ck_assert_msg(c != NULL, "%s", e.n ? e.v[0] : path);
	dump = rig_dump(c, true);
	each_line(text, "# has ", on_has, dump);
	ck_assert_ptr_null(strstr(dump, RIG_MARK));
	mem_free(dump);
	mem_free(text);
	conf_free(c);
	conf_errors_free(&e);
}

struct verdict {
	const char *path;
	const struct conf_errors *e;
	size_t at;
};

/* LINE: TEXT, with FILE in place of the path. */
static void
on_error(char *line, void *arg)
{
	struct verdict *v = arg;
	char *file = strstr(line, "FILE"), want[1024];

	if (file)
		*file = '\0';
	snprintf(want, sizeof(want), "%s:%s%s%s", v->path, line, file ? v->path : "",
	    file ? file + 4 : "");
	ck_assert_msg(v->at < v->e->n, "%s: not reported: %s", v->path, want);
	ck_assert_str_eq(v->e->v[v->at++], want);
}

static void
corpus_invalid(const char *path)
{
	struct conf_errors e;
	struct verdict v = {path, &e, 0};
	struct conf *c = conf_load(path, &rig_env, &e);
	char *text = file_text(path);

	ck_assert_msg(c == NULL, "%s: no error", path);
	ck_assert_msg(each_line(text, "# error ", on_error, &v) == e.n, "%s: more: %s",
	    path, v.at < e.n ? e.v[v.at] : "");
	mem_free(text);
	conf_errors_free(&e);
}

static void
corpus_walk(const char *name, void (*fn)(const char *path), unsigned least)
{
	const char *corpus = getenv("CORPUS");
	char folder[512], path[1024];
	struct dirent *d;
	unsigned n = 0;
	DIR *dir;

	ck_assert_ptr_nonnull(corpus);
	snprintf(folder, sizeof(folder), "%s/conf/%s", corpus, name);
	dir = opendir(folder);
	ck_assert_ptr_nonnull(dir);
	while ((d = readdir(dir))) {
		if (!strstr(d->d_name, ".conf"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		fn(path);
		n++;
	}
	closedir(dir);
	ck_assert_uint_ge(n, least);
}

START_TEST(test_corpus)
{
	corpus_walk("valid", corpus_valid, 14);
	corpus_walk("invalid", corpus_invalid, 16);
}
END_TEST

#define EXEC_TOOL "kind = \"exec\"; tool = ( { tool = \"t\"; command = \"/bin/ls\" "

/* The least that an upstream has that may have an option. */
static const char *
conf_base(const struct conf_row *r)
{
	static const struct {
		unsigned kind;
		const char *text;
	} bases[] = {
	    {CONF_K_STDIO, "command = \"x\""},
	    {CONF_K_HTTP, "url = \"http://h/\""},
	    {CONF_K_GRAPHQL, "kind = \"graphql\"; url = \"http://h/\""},
	    {CONF_K_EXEC, EXEC_TOOL "} )"},
	    {CONF_K_SHELL, "kind = \"shell\"; file = \"f\"; tools_file = \"t\""},
	};
	size_t i = 0;

	while (!CONF_IS_OF(r->flags, bases[i].kind))
		i++;
	return bases[i].text;
}

/* Whether the least has it already. */
static bool
is_in_base(const struct conf_row *r)
{
	static const char *const keys[] = {"file", "tools_file"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (r->where == CONF_OWN && strcmp(keys[i], r->key) == 0)
			return true;
	}
	return (r->flags & CONF_F_Q) ||
	       (r->where == CONF_SHAPE && strcmp(r->key, "command") == 0);
}

/* What makes a parameter one that may have an option. */
static const char *
param_base(const struct conf_row *r)
{
	if (r->type == CONF_TY_NUMBER)
		return "type = \"number\";";
	return strcmp(r->key, "max_items") == 0 ? "type = \"array\";" : "";
}

/* A conf that gives one option one value. */
static const char *
conf_with(const struct conf_row *r, const char *value)
{
	static char text[1024];
	const char *dot = strchr(r->key, '.');
	char setting[512];

	if (dot)
		snprintf(setting, sizeof(setting), "%.*s : { %s = %s }",
		    (int)(dot - r->key), r->key, dot + 1, value);
	else
		snprintf(setting, sizeof(setting), "%s = %s", r->key, value);
	switch (r->where) {
	case CONF_LISTEN:
		snprintf(
		    text, sizeof(text), "listen = ( { address = \":1\"; %s } )", setting);
		break;
	case CONF_UPSTREAM:
	case CONF_EXTRA:
	case CONF_OWN:
		snprintf(text, sizeof(text), "upstream : { a : { %s; %s } }",
		    conf_base(r), setting);
		break;
	case CONF_SHAPE:
		snprintf(text, sizeof(text), "upstream : { a : { %s; %s } ) } }",
		    CONF_IS_OF(r->flags, CONF_K_STDIO)
			? "command = \"x\"; tool = ( { tool = \"t\""
			: EXEC_TOOL,
		    setting);
		break;
	case CONF_PARAM:
	case CONF_RULE:
		snprintf(text, sizeof(text),
		    "upstream : { a : { " EXEC_TOOL
		    "; params : { p : { %s %s } } } ) } }",
		    param_base(r), setting);
		break;
	case CONF_PROFILE:
		snprintf(text, sizeof(text), "profile : { a : { %s } }", setting);
		break;
	case CONF_CONF:
	case CONF_WHERE_MAX:
		snprintf(text, sizeof(text), "%s", setting);
		break;
	}
	return text;
}

/* What a dump calls an option of conf_with. */
static const char *
dump_line(const struct conf_row *r, const char *value)
{
	static const char *const heads[] = {
	    [CONF_CONF] = "",
	    [CONF_LISTEN] = "listen.:1/mcp.",
	    [CONF_UPSTREAM] = "upstream.a.",
	    [CONF_EXTRA] = "upstream.a.",
	    [CONF_OWN] = "upstream.a.",
	    [CONF_SHAPE] = "upstream.a.tool.t.",
	    [CONF_PARAM] = "upstream.a.tool.t.params.p.",
	    [CONF_RULE] = "upstream.a.tool.t.params.p.",
	    [CONF_PROFILE] = "profile.a.",
	};
	static char line[1024];

	snprintf(line, sizeof(line), "%s%s = %s", heads[r->where], r->key, value);
	return line;
}

static void
expect_value(const struct conf_row *r, const char *value)
{
	struct conf *c = rig_good(conf_with(r, value));
	char *dump = rig_dump(c, false), *changed = rig_dump(c, true);
	bool is_default = r->dflt && strcmp(r->dflt, value) == 0;

	ck_assert_msg(
	    rig_has_line(dump, dump_line(r, value)), "%s: %s\n%s", r->key, value, dump);
	ck_assert_msg(rig_has_line(changed, dump_line(r, value)) == !is_default,
	    "%s: %s\n%s", r->key, value, changed);
	mem_free(dump);
	mem_free(changed);
	conf_free(c);
}

static void
expect_range(const struct conf_row *r)
{
	char value[32], words[64];

	snprintf(
	    words, sizeof(words), "is not from %" PRIu64 " to %" PRIu64, r->lo, r->hi);
	snprintf(value, sizeof(value), "%" PRIu64, r->lo);
	expect_value(r, value);
	snprintf(value, sizeof(value), "%" PRIu64, r->hi);
	expect_value(r, value);
	snprintf(value, sizeof(value), "%" PRIu64, r->hi + 1);
	rig_bad(conf_with(r, value), words);
	snprintf(value, sizeof(value), "%" PRId64, (int64_t)r->lo - 1);
	rig_bad(conf_with(r, value), words);
}

static void
expect_words(const struct conf_row *r)
{
	char value[64];

	for (const char *const *p = conf_type_of(r)->names; *p; p++) {
		/* None, and one that wants another option. */
		if (**p == '\0' || strcmp(*p, "base64") == 0)
			continue;
		snprintf(value, sizeof(value), "\"%s\"", *p);
		expect_value(r, value);
	}
	rig_bad(conf_with(r, "\"\""), "is none of");
	rig_bad(conf_with(r, "1"), "want a string");
}

START_TEST(test_row)
{
	const struct conf_row *r = &conf_rows[_i];
	const struct conf_type *t = conf_type_of(r);

	if (t->each == NULL && t->put)
		ck_assert_msg(r->size == t->size, "%s", r->key);
	ck_assert_msg(*r->doc && r->doc[strlen(r->doc) - 1] != '.', "%s", r->key);
	switch (r->type) {
	case CONF_TY_INT:
	case CONF_TY_MS:
	case CONF_TY_SECONDS:
	case CONF_TY_SIZE:
		expect_range(r);
		rig_bad(conf_with(r, "1.5"), "want ");
		break;
	case CONF_TY_BOOL:
	case CONF_TY_VERIFY:
	case CONF_TY_HINT:
		expect_value(r, "true");
		expect_value(r, "false");
		break;
	case CONF_TY_MODE:
		expect_value(r, "\"0600\"");
		expect_value(r, "\"0777\"");
		rig_bad(conf_with(r, "\"01777\""), "want an octal");
		break;
	case CONF_TY_LOG_LEVEL:
	case CONF_TY_LOG_FORMAT:
	case CONF_TY_ERA:
	case CONF_TY_ISOLATION:
	case CONF_TY_START:
	case CONF_TY_FAILURE:
	case CONF_TY_TRANSPORT:
	case CONF_TY_GRAPHQL:
	case CONF_TY_SURVIVAL:
	case CONF_TY_ANNOTATE:
	case CONF_TY_MUTATIONS:
	case CONF_TY_EXECUTE:
	case CONF_TY_NAMES:
	case CONF_TY_EXEC_ERR:
	case CONF_TY_EXEC_OVER:
	case CONF_TY_EXEC_OUT:
	case CONF_TY_PARAM_TYPE:
		expect_words(r);
		break;
	case CONF_TY_VALUE:
		expect_value(r, "\"x\"");
		rig_bad(conf_with(r, "true"), "is not what the parameter may be");
		break;
	case CONF_TY_NUMBER:
		expect_value(r, "-3");
		expect_value(r, "0.25");
		rig_bad(conf_with(r, "\"1\""), "want a number, not a string");
		break;
	case CONF_TY_POINTER:
		expect_value(r, "\"/a/b\"");
		rig_bad(conf_with(r, "1"), "want a string");
		break;
	case CONF_TY_COMMAND:
	case CONF_TY_URL:
		rig_bad(conf_with(r, "true"), "duplicate setting name");
		break;
	case CONF_TY_STRINGS:
	case CONF_TY_GLOBS:
	case CONF_TY_PATTERNS:
		if (r->where != CONF_EXTRA)
			expect_value(r, "[\"a*\", \"b\"]");
		rig_bad(conf_with(r, "[1]"), "want a string");
		break;
	default:
		rig_bad(conf_with(r, "true"),
		    is_in_base(r) ? "duplicate setting name" : "want ");
		break;
	}
}
END_TEST

/* What nobody sets is as the table has it, in upstreams as well, whose defaults another
 * module sets. What is not for the kind of an upstream is not shown. */
static void
expect_defaults(const char *group, unsigned kind, const char *shown)
{
	char text[256], want[256], *dump, *changed;
	struct conf *c;

	snprintf(text, sizeof(text),
	    "upstream : { a : { %s } }; listen = ( { address = \":1\" } )", group);
	snprintf(
	    want, sizeof(want), "listen.:1/mcp.address = \":1\"\nupstream.a.%s\n", shown);
	c = rig_good(text);
	dump = rig_dump(c, false);
	changed = rig_dump(c, true);
	for (size_t i = 0; i < conf_n_rows; i++) {
		const struct conf_row *r = &conf_rows[i];

		if (r->dflt && r->where != CONF_SHAPE && r->where != CONF_PARAM &&
		    r->where != CONF_RULE)
			ck_assert_msg(rig_has_line(dump, dump_line(r, r->dflt)) ==
					  CONF_IS_OF(r->flags, kind),
			    "%s\n%s", dump_line(r, r->dflt), dump);
	}
	ck_assert_str_eq(changed, want);
	mem_free(dump);
	mem_free(changed);
	conf_free(c);
}

START_TEST(test_defaults)
{
	struct conf *c;
	char *changed;

	expect_defaults("command = \"x\"", CONF_K_STDIO, "command = \"x\"");
	expect_defaults("url = \"http://h/\"", CONF_K_HTTP, "url = \"http://h/\"");
	expect_defaults("url = \"http://h/\"; kind = \"graphql\"", CONF_K_GRAPHQL,
	    "kind = \"graphql\"\nupstream.a.url = \"http://h/\"");
	expect_defaults(EXEC_TOOL "} )", CONF_K_EXEC,
	    "kind = \"exec\"\nupstream.a.tool.t.tool = \"t\"\n"
	    "upstream.a.tool.t.command = \"/bin/ls\"");
	expect_defaults("kind = \"shell\"; file = \"/f\"; tools_file = \"/t\"",
	    CONF_K_SHELL,
	    "kind = \"shell\"\nupstream.a.file = \"/f\"\n"
	    "upstream.a.tools_file = \"/t\"");
	c = conf_new_default();
	changed = rig_dump(c, true);
	ck_assert_str_eq(changed, "");
	ck_assert_uint_eq(c->limits.name_bytes, 48);
	ck_assert_int_eq(c->log.level, LOG_LV_INFO);
	ck_assert_uint_eq(c->control.mode, 0600);
	mem_free(changed);
	conf_free(c);
}
END_TEST

START_TEST(test_members)
{
	struct conf *c = rig_good(
	    "log : { modules : { a = \"debug\"; b = \"error\" } }\n"
	    "state : { dir = \"s\" }; control : { socket = \"\"; mode = \"0660\" }\n"
	    "listen = ( { address = \":1\"; profile = \"p\" } )\n"
	    "upstream : { a : { command = \"x\"; args = [\"1\", \"${MARK}\"]\n"
	    "	cwd = \"w\"; env : { K = \"${MARK}\"; PATH = \"/p\" } } }\n"
	    "profile : { p : { }; default : { } }\n");
	const struct upstream_conf *u = c->upstreams[0];

	ck_assert_uint_eq(c->log.n_modules, 2);
	ck_assert_str_eq(c->log.modules[1].module, "b");
	ck_assert_int_eq(c->log.modules[1].level, LOG_LV_ERROR);
	ck_assert_str_eq(c->state.dir, "/nonexistent/s");
	ck_assert_str_eq(c->control.socket, "");
	ck_assert_uint_eq(c->control.mode, 0660);
	ck_assert_str_eq(c->listen[0].profile, "p");
	ck_assert_str_eq(c->listen[0].path, "/mcp");
	ck_assert_uint_eq(c->n_profiles, 2);
	ck_assert_str_eq(c->profiles[0]->name, "default");
	ck_assert_str_eq(u->argv[2], RIG_MARK);
	ck_assert_ptr_null(u->argv[3]);
	ck_assert_str_eq(u->cwd, "/nonexistent/w");
	ck_assert_str_eq(u->path, "/p");
	ck_assert_str_eq(rig_env_get(u->env, "K"), RIG_MARK);
	ck_assert_str_eq(rig_env_get(u->own_env, "K"), RIG_MARK);
	conf_free(c);
}
END_TEST

START_TEST(test_error_cap)
{
	struct conf_errors e;
	struct buf b;

	buf_init(&b, 65536);
	for (int i = 0; i < 150; i++)
		buf_addf(&b, "x%d = 1\n", i);
	ck_assert_ptr_null(rig_parse(buf_cstr(&b), &e));
	ck_assert_uint_eq(e.n, 100);
	ck_assert_uint_eq(e.n_more, 50);
	ck_assert_str_eq(e.v[99], "/nonexistent/m.conf:100: x99: unknown setting");
	conf_errors_free(&e);
	conf_errors_free(&e);
	buf_fini(&b);
}
END_TEST

/* n groups of the same kind. */
static const char *
many(struct buf *b, const char *head, const char *fmt, int n)
{
	buf_reset(b);
	buf_add_str(b, head);
	for (int i = 0; i < n; i++) {
		buf_add_str(b, " n");
		buf_add_u64(b, (uint64_t)i);
		buf_add_str(b, fmt);
	}
	buf_add_str(b, "}");
	return buf_cstr(b);
}

START_TEST(test_caps)
{
	static const char group[] = " : { command = \"x\" }\n";
	struct conf *c;
	struct buf b;

	buf_init(&b, CAP_CONF_BYTES + 64);
	c = rig_good(many(&b, "upstream : {", group, CAP_UPSTREAMS));
	ck_assert_uint_eq(c->n_upstreams, CAP_UPSTREAMS);
	conf_free(c);
	rig_bad(many(&b, "upstream : {", group, CAP_UPSTREAMS + 1),
	    "upstream.n1000: there are more than 1000 upstreams");
	c = rig_good(many(&b, "profile : {", " : { };", CAP_PROFILES));
	ck_assert_uint_eq(c->n_profiles, CAP_PROFILES);
	conf_free(c);
	rig_bad(many(&b, "profile : {", " : { };", CAP_PROFILES + 1),
	    "profile: has more than");
	many(&b, "log : { modules : {", " = \"info\";", 32);
	buf_add_char(&b, '}');
	c = rig_good(buf_cstr(&b));
	ck_assert_uint_eq(c->log.n_modules, 32);
	conf_free(c);
	many(&b, "log : { modules : {", " = \"info\";", 33);
	buf_add_char(&b, '}');
	rig_bad(buf_cstr(&b), "log.modules: has more than 32 modules");
	buf_reset(&b);
	while (b.len < CAP_CONF_BYTES)
		buf_add_char(&b, ' ');
	conf_free(rig_good(buf_cstr(&b)));
	buf_add_char(&b, ' ');
	rig_bad(buf_cstr(&b), "the file is too long");
	buf_fini(&b);
}
END_TEST

START_TEST(test_no_memory)
{
	static const char text[] =
	    "limits : { memory_max = 99999999999 }\n"
	    "upstream : { a : { command = \"${MARK}\"; args = [\"${HOME}\"]\n"
	    "	env : { A = \"${MARK}\" }; tool = ( { tool = \"t\"; fixed : { a = 1 } "
	    "},\n"
	    "	{ tool = \"v\"; fixed = \"{}\" } ) }\n"
	    "b : { url = \"http://h/${MARK}\"; headers : { A = \"${MARK}\" }\n"
	    "	roots = [\"file:///${MARK}\"]; proxy = \"${MARK}\" } }\n";

	rig_no_memory(text, 90);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("conf");
	TCase *tc = tcase_create("conf");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_corpus);
	tcase_add_loop_test(tc, test_row, 0, (int)conf_n_rows);
	tcase_add_test(tc, test_defaults);
	tcase_add_test(tc, test_members);
	tcase_add_test(tc, test_error_cap);
	tcase_add_test(tc, test_caps);
	tcase_add_test(tc, test_no_memory);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
