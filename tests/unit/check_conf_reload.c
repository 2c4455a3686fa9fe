/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* Of upstreams without a server a reload restarts what it says, and nothing else. */
#include "conf_rig.h"

#include "conf_rows_priv.h"

#define GRAPHQL "upstream : { a : { kind = \"graphql\"; url = \"http://h/\"\n"
#define SHELL	"upstream : { a : { kind = \"shell\"\n"
#define EXEC                                                                             \
	"upstream : { a : { kind = \"exec\"\n"                                           \
	"tool = ( { tool = \"t\"; command = \"/bin/ls\" } )\n"
#define TOOL	"upstream : { a : { kind = \"exec\"; tool = ( { tool = \"t\"\n"
#define PROGRAM TOOL "command = \"/bin/ls\"\n"
#define PARAM	PROGRAM "args = ({ optional = \"{p}\" }); params : { p : {\n"
#define INTEGER PARAM "type = \"integer\"\n"
#define ARRAY	PROGRAM "args = ({ each = \"{p}\" }); params : { p : { type = \"array\"\n"

enum { MEMBER, ROW, OF_PARAM };

struct change {
	const char *key, *before;
	int at;
	const char *one, *other;
};

static const struct change changes[] = {
    {"operations", GRAPHQL, MEMBER, "[\"a\"]", "[\"b\"]"},
    {"schema", GRAPHQL, MEMBER, "\"introspect\"", "\"none\""},
    {"schema_cache", GRAPHQL, MEMBER, "\"/a\"", "\"/b\""},
    {"schema_refresh_ms", GRAPHQL, MEMBER, "1", "2"},
    {"fields", GRAPHQL, MEMBER, "[\"Query.a\"]", "[\"Query.b\"]"},
    {"mutations", GRAPHQL, MEMBER, "\"none\"", "\"all\""},
    {"execute_tool", GRAPHQL, MEMBER, "\"off\"", "\"queries\""},
    {"name_style", GRAPHQL, MEMBER, "\"keep\"", "\"snake\""},
    {"max_tools", GRAPHQL, MEMBER, "1", "2"},
    {"depth", GRAPHQL, MEMBER, "1", "2"},
    {"max_fields", GRAPHQL, MEMBER, "1", "2"},
    {"request_ms", GRAPHQL, MEMBER, "1", "2"},
    {"response_max", GRAPHQL, MEMBER, "1", "2"},
    {"max_inflight", GRAPHQL, MEMBER, "1", "2"},
    {"structured", GRAPHQL, MEMBER, "true", "false"},
    {"output_schema", GRAPHQL, MEMBER, "true", "false"},
    {"scalars", GRAPHQL, MEMBER, "{ D : { } }", "{ E : { } }"},
    {"file", SHELL "tools_file = \"t\"\n", MEMBER, "\"/a\"", "\"/b\""},
    {"tools_file", SHELL "file = \"f\"\n", MEMBER, "\"/a\"", "\"/b\""},
    {"interpreter", SHELL "file = \"f\"; tools_file = \"t\"\n", MEMBER, "\"/bin/bash\"",
	"\"/bin/sh\""},
    {"user", EXEC, MEMBER, "\"root\"", "\"nobody\""},
    {"max_concurrency", EXEC, MEMBER, "1", "2"},
    {"max_queue", EXEC, MEMBER, "1", "2"},
    {"timeout_ms", EXEC, MEMBER, "1", "2"},
    {"stop_ms", EXEC, MEMBER, "1", "2"},
    {"output_max", EXEC, MEMBER, "1", "2"},
    {"stderr", EXEC, MEMBER, "\"log\"", "\"drop\""},
    {"overflow", EXEC, MEMBER, "\"cut\"", "\"kill\""},
    {"rlimits.cpu_s", EXEC, MEMBER, "1", "2"},
    {"rlimits.as", EXEC, MEMBER, "1", "2"},
    {"rlimits.nofile", EXEC, MEMBER, "1", "2"},
    {"rlimits.nproc", EXEC, MEMBER, "1", "2"},
    {"rlimits.fsize", EXEC, MEMBER, "1", "2"},
    {"read_only", PROGRAM, ROW, "true", "false"},
    {"destructive", PROGRAM, ROW, "true", "false"},
    {"idempotent", PROGRAM, ROW, "true", "false"},
    {"open_world", PROGRAM, ROW, "true", "false"},
    {"command", TOOL, ROW, "\"/bin/ls\"", "\"/bin/cat\""},
    {"args", PROGRAM, ROW, "[\"a\"]", "[\"b\"]"},
    {"params", PROGRAM, ROW, "{ p : { } }", "{ q : { } }"},
    {"input_schema", PROGRAM, ROW, "\"1.json\"", "\"2.json\""},
    {"stdin", PROGRAM, ROW, "\"none\"", "\"json\""},
    {"output", PROGRAM, ROW, "\"text\"", "\"json\""},
    {"mime", PROGRAM "output = \"base64\"\n", ROW, "\"image/png\"", "\"image/gif\""},
    {"success_exit", PROGRAM, ROW, "[1]", "[2]"},
    {"timeout_ms", PROGRAM, ROW, "1", "2"},
    {"stop_ms", PROGRAM, ROW, "1", "2"},
    {"output_max", PROGRAM, ROW, "1", "2"},
    {"stderr", PROGRAM, ROW, "\"log\"", "\"drop\""},
    {"overflow", PROGRAM, ROW, "\"cut\"", "\"kill\""},
    {"type", PARAM, OF_PARAM, "\"string\"", "\"integer\""},
    {"description", PARAM, OF_PARAM, "\"a\"", "\"b\""},
    {"required", PARAM, OF_PARAM, "true", "false"},
    {"default", PARAM, OF_PARAM, "\"a\"", "\"b\""},
    {"min", INTEGER, OF_PARAM, "1", "2"},
    {"max", INTEGER, OF_PARAM, "1", "2"},
    {"min_length", PARAM, OF_PARAM, "1", "2"},
    {"max_length", PARAM, OF_PARAM, "1", "2"},
    {"pattern", PARAM, OF_PARAM, "\"a\"", "\"b\""},
    {"enum", PARAM, OF_PARAM, "[\"a\"]", "[\"b\"]"},
    {"max_items", ARRAY, OF_PARAM, "1", "2"},
    {"path", PARAM, OF_PARAM, "\"/a\"", "\"/b\""},
    {"dash", PARAM, OF_PARAM, "true", "false"},
    {"secret", PARAM, OF_PARAM, "true", "false"},
};
#define N_CHANGES (sizeof(changes) / sizeof(changes[0]))

/* Those that are said to be live. */
static const struct change live[] = {
    {"name", PROGRAM, ROW, "\"a\"", "\"b\""},
    {"fixed", PROGRAM, ROW, "{ a = 1 }", "{ a = 2 }"},
    {"defaults", PROGRAM, ROW, "{ a = 1 }", "{ a = 2 }"},
    {"graphql", PROGRAM, ROW, "\"on\"", "\"off\""},
    {"graphql_survival", PROGRAM, ROW, "\"deep\"", "\"shallow\""},
    {"graphql_root", PROGRAM, ROW, "\"/a\"", "\"/b\""},
    {"graphql_annotate", PROGRAM, ROW, "\"full\"", "\"meta\""},
    {"graphql_max_bytes", PROGRAM, ROW, "1", "2"},
    {"fail_if", PROGRAM, ROW, "[\"text:a\"]", "[\"text:b\"]"},
    {"probe_args", PROGRAM, ROW, "{ a = 1 }", "{ a = 2 }"},
    {"description", SHELL "file = \"f\"; tools_file = \"t\"; tool = ( { tool = \"t\"\n",
	ROW, "\"a\"", "\"b\""},
    {"restart_limit", EXEC, MEMBER, "1", "2"},
    {"connect_ms", GRAPHQL, MEMBER, "1", "2"},
    {"fail_if", GRAPHQL, MEMBER, "[\"text:a\"]", "[\"text:b\"]"},
    {"identity_tools", GRAPHQL, MEMBER, "\"auto\"", "\"none\""},
    {"identity_path", GRAPHQL, MEMBER, "\"/a\"", "\"/b\""},
    {"identity_null_text", GRAPHQL, MEMBER, "[\"a\"]", "[\"b\"]"},
    {"identity_cache_ms", GRAPHQL, MEMBER, "1", "2"},
    {"identity_cache_max", GRAPHQL, MEMBER, "1", "2"},
    {"identity_hint", GRAPHQL, MEMBER, "true", "false"},
    {"probe.allow", GRAPHQL, MEMBER, "[\"a\"]", "[\"b\"]"},
    {"tools.deny", GRAPHQL, MEMBER, "[\"a\"]", "[\"b\"]"},
};

static struct conf *
conf_with(const char *folder, const struct change *change, const char *value)
{
	static const char *const ends[] = {
	    [MEMBER] = "} }", [ROW] = "} ) } }", [OF_PARAM] = "} } } ) } }"};
	const char *dot = strchr(change->key, '.');
	char text[1024], file[256];
	struct conf_errors e;
	struct conf *c;

	(void)snprintf(text, sizeof(text), "%s%.*s%s%s %c %s%s %s", change->before,
	    dot ? (int)(dot - change->key) : 0, change->key, dot ? " : { " : "",
	    dot ? dot + 1 : change->key, *value == '{' ? ':' : '=', value,
	    dot ? " }" : "", ends[change->at]);
	(void)snprintf(file, sizeof(file), "%s/m.conf", folder);
	c = conf_parse(file, text, &rig_env, &e);
	ck_assert_msg(c != NULL, "%s: %s", text, e.n ? e.v[0] : "no error");
	conf_errors_free(&e);
	return c;
}

static void
put_schema(const char *folder, int n)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%d.json", folder, n);
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_gt(fprintf(f,
			     "{\"type\":\"object\",\"properties\":{\"p%d\":{\"type\":"
			     "\"string\"}}}",
			     n),
	    0);
	ck_assert_int_eq(fclose(f), 0);
}

static void
try_change(const char *folder, const struct change *change, bool same)
{
	struct conf *one = conf_with(folder, change, change->one);
	struct conf *other = conf_with(folder, change, change->other);

	ck_assert_msg(
	    upstream_conf_is_same_process(one->upstreams[0], other->upstreams[0]) == same,
	    "%s: %s", change->key, same ? "restarts it" : "does not restart it");
	conf_free(one);
	conf_free(other);
}

START_TEST(test_said_and_done)
{
	char folder[] = "/tmp/check_conf_reload.XXXXXX", path[256];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	put_schema(folder, 1);
	put_schema(folder, 2);
	for (size_t i = 0; i < N_CHANGES; i++)
		try_change(folder, &changes[i], false);
	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		try_change(folder, &live[i], true);
	for (int n = 1; n <= 2; n++) {
		(void)snprintf(path, sizeof(path), "%s/%d.json", folder, n);
		ck_assert_int_eq(unlink(path), 0);
	}
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(test_every_option)
{
	static const int places[CONF_WHERE_MAX] = {
	    [CONF_SHAPE] = ROW, [CONF_PARAM] = OF_PARAM, [CONF_RULE] = OF_PARAM};

	for (size_t r = 0; r < conf_n_rows; r++) {
		const struct conf_row *row = &conf_rows[r];
		size_t i = 0;

		if (row->reload != CONF_RESTARTS_UPSTREAM ||
		    (row->where != CONF_OWN && places[row->where] == MEMBER))
			continue;
		while (i < N_CHANGES && (strcmp(changes[i].key, row->key) != 0 ||
					    changes[i].at != places[row->where]))
			i++;
		ck_assert_msg(i < N_CHANGES, "%s is not tried", row->key);
	}
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("conf_reload");

	tcase_add_test(tc, test_said_and_done);
	tcase_add_test(tc, test_every_option);
	return rig_run("conf_reload", tc);
}
