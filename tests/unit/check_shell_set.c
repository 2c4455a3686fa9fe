/* layer: upstream, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* The two files of a shell upstream: what is listed, what is there, what is shown. */
#include "upstream_exec_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_tree.h"

#include "temp_rig.h"

static struct temp temp;
static struct exec_conf conf;
static struct upstream_conf *uconf;
static struct upstream u;
static struct shell_set *set;
static struct mv_errtext why;
static struct buf out;

static void
on_line(enum log_level level, const char *line, size_t len, void *arg)
{
	(void)level;
	(void)line;
	(void)len;
	(void)arg;
}

static void
setup(void)
{
	temp_make(&temp);
	conf = (struct exec_conf){.file = mem_xstrdup(temp_path(&temp, "f.sh")),
	    .tools_file = mem_xstrdup(temp_path(&temp, "t.json"))};
	uconf = upstream_conf_new("sh");
	u = (struct upstream){.conf = uconf};
	temp_write(&temp, "f.sh", "tool_a() { :; }\n");
	buf_init(&out, CAP_LIST_BYTES);
	log_set_sink(on_line, NULL);
}

static void
teardown(void)
{
	log_set_sink(NULL, NULL);
	shell_set_free(set);
	set = NULL;
	buf_fini(&out);
	exec_conf_fini(&conf);
	upstream_conf_free(uconf);
	temp_remove(&temp);
}

static bool
read_tools(const char *text)
{
	shell_set_free(set);
	temp_write(&temp, "t.json", text);
	set = shell_set_read(&conf, &why);
	return set != NULL;
}

static bool
take(const char *lines)
{
	return shell_set_take_functions(set, lines, strlen(lines));
}

static const char *
shown(void)
{
	buf_reset(&out);
	shell_set_put(set, &u, &out);
	return out.len > 0 ? buf_cstr(&out) : "";
}

/* What each definition needs besides its name. */
#define OBJECT ",\"inputSchema\":{\"type\":\"object\"}"

static const struct {
	const char *tools, *functions, *want;
} lists[] = {
    {"{\"tools\":[]}", "", ""},
    {"{\"tools\":[{\"name\":\"a\"" OBJECT "}]}", "declare -f tool_a\n",
	"{\"name\":\"a\"" OBJECT "}"},
    {" {\"tools\" :[ {\"name\": \"a\" ,\"x\":1.0" OBJECT "}\n]}\n",
	"declare -fx tool_a\n", "{\"name\": \"a\" ,\"x\":1.0" OBJECT "}"},
    {"{\"tools\":[{\n\t\"name\":\r\n\"a\"" OBJECT "}]}", "declare -f tool_a\n",
	"{ \t\"name\":  \"a\"" OBJECT "}"},
    {"{\"tools\":[{\"name\":\"a\"" OBJECT "},{\"name\":\"b\"" OBJECT "}]}",
	"declare -f tool_b\n", "{\"name\":\"b\"" OBJECT "}"},
    {"{\"tools\":[{\"name\":\"a\"" OBJECT "},{\"name\":\"b\"" OBJECT "}]}",
	"declare -f tool_b\ndeclare -f x\ndeclare -f tool_a\n",
	"{\"name\":\"a\"" OBJECT "},{\"name\":\"b\"" OBJECT "}"},
    /* Names. */
    {"{\"tools\":[{\"name\":\"a\",\"n\":1" OBJECT "},{\"name\":\"a\",\"n\":2" OBJECT
     "}]}",
	"declare -f tool_a\n", "{\"name\":\"a\",\"n\":1" OBJECT "}"},
    {"{\"tools\":[{\"name\":\"a;id\"" OBJECT "},{\"name\":\"\"" OBJECT
     "},{\"name\":1" OBJECT "},{},7,null,[]]}",
	"declare -f tool_a;id\ndeclare -f tool_\n", ""},
    {"{\"tools\":[{\"name\":\"\\u0061\"" OBJECT "}]}", "declare -f tool_a\n", ""},
    {"{\"tools\":[{\"name\":\"a\"" OBJECT "}]}",
	"declare -f tool_aa\ndeclare -f atool_a\n", ""},
    /* What would make clients refuse the whole list. */
    {"{\"tools\":[{\"name\":\"a\"}]}", "declare -f tool_a\n", ""},
    {"{\"tools\":[{\"name\":\"a\",\"inputSchema\":7}]}", "declare -f tool_a\n", ""},
    {"{\"tools\":[{\"name\":\"a\",\"inputSchema\":{}}]}", "declare -f tool_a\n", ""},
    {"{\"tools\":[{\"name\":\"a\",\"annotations\":5" OBJECT "}]}", "declare -f tool_a\n",
	""},
    {"{\"tools\":[{\"name\":\"a\",\"description\":null" OBJECT "}]}",
	"declare -f tool_a\n", ""},
    {"{\"tools\":[{\"name\":\"a\",\"title\":{}" OBJECT "}]}", "declare -f tool_a\n", ""},
    {"{\"tools\":[{\"name\":\"a\",\"outputSchema\":[]" OBJECT "}]}",
	"declare -f tool_a\n", ""},
};

START_TEST(what_is_listed_and_there_is_shown)
{
	char functions[256];

	ck_assert(read_tools(lists[_i].tools));
	snprintf(
	    functions, sizeof(functions), "%s" SHELL_LOADED "\n", lists[_i].functions);
	ck_assert(take(functions));
	ck_assert_str_eq(shown(), lists[_i].want);
	ck_assert_ptr_null(out.len > 0 ? memchr(out.data, '\n', out.len) : NULL);
}
END_TEST

static const char *const none[] = {"", "{", "[]", "7", "{}", "{\"tools\":{}}",
    "{\"tools\":[]} x", "{\"tools\":[{\"name\":\"a\n\"}]}"};

START_TEST(what_is_no_list_is_refused)
{
	ck_assert(!read_tools(none[_i]));
	ck_assert_str_ne(why.message, "");
	ck_assert_ptr_nonnull(strstr(why.file, "t.json"));
	ck_assert_ptr_null(strstr(why.message, temp.dir));
}
END_TEST

/* They are looked for among each other: far more of them would hold up all others. */
START_TEST(too_many_tools_are_refused)
{
	struct buf text;

	buf_init(&text, CAP_CONF_BYTES);
	for (int i = 0; i < 60000; i++)
		buf_addf(&text, "%s{\"name\":\"a%d\"" OBJECT "}",
		    i > 0 ? "," : "{\"tools\":[", i);
	buf_add_str(&text, "]}");
	ck_assert(!read_tools(buf_cstr(&text)));
	ck_assert_ptr_nonnull(strstr(why.message, "too many"));
	buf_fini(&text);
}
END_TEST

static const char *const halves[] = {"", SHELL_LOADED, "declare -f tool_a\n",
    "declare -f tool_a" SHELL_LOADED "\n", SHELL_LOADED "\nmore\n"};

START_TEST(half_of_the_functions_are_none)
{
	ck_assert(read_tools("{\"tools\":[{\"name\":\"a\"}]}"));
	ck_assert(!take(halves[_i]));
}
END_TEST

START_TEST(files_are_missing_or_too_large)
{
	char *big = mem_xalloc(CAP_CONF_BYTES + 1);

	memset(big, '#', CAP_CONF_BYTES + 1);
	temp_write_bytes(&temp, "f.sh", big, CAP_CONF_BYTES);
	ck_assert(read_tools("{\"tools\":[]}"));
	ck_assert_uint_eq(set->file.len, CAP_CONF_BYTES);
	temp_write_bytes(&temp, "f.sh", big, CAP_CONF_BYTES + 1);
	ck_assert(!read_tools("{\"tools\":[]}"));
	ck_assert_ptr_nonnull(strstr(why.message, "too large"));
	mem_free(big);
	temp_write_bytes(&temp, "f.sh", "a\0b", 3);
	ck_assert(!read_tools("{\"tools\":[]}"));
	ck_assert_ptr_nonnull(strstr(why.message, "NUL"));
	ck_assert_int_eq(unlink(conf.file), 0);
	ck_assert(!read_tools("{\"tools\":[]}"));
	ck_assert_ptr_nonnull(strstr(why.file, "f.sh"));
	ck_assert_int_eq(mkdir(conf.file, 0700), 0);
	ck_assert(!read_tools("{\"tools\":[]}"));
}
END_TEST

START_TEST(a_file_is_known_again)
{
	struct shell_id id, again;

	ck_assert(read_tools("{\"tools\":[]}"));
	shell_id_of(conf.file, &id);
	ck_assert(shell_id_is_same(&id, &set->file_id));
	temp_write(&temp, "new", "tool_a() { :; }\n");
	ck_assert_int_eq(rename(temp_path(&temp, "new"), conf.file), 0);
	shell_id_of(conf.file, &again);
	ck_assert(!shell_id_is_same(&id, &again));
	ck_assert_int_eq(unlink(conf.file), 0);
	shell_id_of(conf.file, &again);
	ck_assert_uint_eq(again.ino, 0);
}
END_TEST

/* What the conf says of a tool goes before what its definition says. */
START_TEST(annotations_are_put_together)
{
	uconf->shapes = mem_xcalloc(1, sizeof(*uconf->shapes));
	uconf->n_shapes = 1;
	uconf->shapes[0].tool = mem_xstrdup("a");
	ck_assert(read_tools("{\"tools\":[{\"annotations\":{\"openWorldHint\":false,"
			     "\"title\":\"T\"},\"name\":\"a\",\"x\":1" OBJECT "}]}"));
	ck_assert(take("declare -f tool_a\n" SHELL_LOADED "\n"));
	ck_assert_ptr_nonnull(strstr(shown(), "\"title\":\"T\""));
	ck_assert_int_eq(set->v[0].hints.open_world, HINT_NO);
	uconf->shapes[0].hints.read_only = HINT_YES;
	ck_assert_str_eq(shown(),
	    "{\"name\":\"a\",\"x\":1" OBJECT ",\"annotations\":{\"readOnlyHint\":true,"
	    "\"destructiveHint\":false,\"idempotentHint\":false,\"openWorldHint\":false}"
	    "}");
	tree_assert_object(out.data, out.len);
}
END_TEST

#define ROWS(t) (int)(sizeof(t) / sizeof((t)[0]))

#include "suite_rig.h"

int
main(void)
{
	TCase *tc = tcase_create("shell_set");

	tcase_add_loop_test(tc, what_is_listed_and_there_is_shown, 0, ROWS(lists));
	tcase_add_loop_test(tc, what_is_no_list_is_refused, 0, ROWS(none));
	tcase_add_loop_test(tc, half_of_the_functions_are_none, 0, ROWS(halves));
	tcase_add_test(tc, too_many_tools_are_refused);
	tcase_add_test(tc, files_are_missing_or_too_large);
	tcase_add_test(tc, a_file_is_known_again);
	tcase_add_test(tc, annotations_are_put_together);
	return run_suite(suite_create("shell_set"), tc);
}
