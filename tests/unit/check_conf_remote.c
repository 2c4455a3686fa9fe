/* layer: daemon */
/* SPDX-License-Identifier: MIT */
/* Remote upstreams in a conf: kinds and their options, headers that are looked at again.
 */
#include "conf_rig.h"

#include <fcntl.h>
#include <time.h>

#include "temp_rig.h"

#define REMOTE "upstream : { a : { url = \"https://h/mcp\"\n"

static const struct {
	const char *text, *words;
} bad[] = {
    {"upstream : { a : { } }", "m.conf:1: upstream.a: command is missing (or url"},
    {"upstream : { a : { command = \"x\"\n url = \"http://h/\" } }",
	"m.conf:2: upstream.a: there are both a command and a url"},
    {REMOTE "args = [\"1\"] } }",
	"m.conf:2: upstream.a.args: is an option of kind stdio, and this upstream is"},
    {REMOTE "env : { A = \"1\" } } }",
	":2: upstream.a.env: is an option of kind stdio, exec or shell, and"},
    {REMOTE "env_pass = [\"A\"] } }",
	"upstream.a.env_pass: is an option of kind stdio, exec or shell"},
    {REMOTE "env_file = \"x\" } }",
	"upstream.a.env_file: is an option of kind stdio, exec or shell"},
    {REMOTE "cwd = \"x\" } }",
	"upstream.a.cwd: is an option of kind stdio, exec or shell"},
    {"upstream : { a : { command = \"x\"\n headers : { } } }",
	":2: upstream.a.headers: is an option of kind http or graphql, and this upstream "
	"is of"},
    {"upstream : { a : { command = \"x\"; tls_verify = false } }",
	"tls_verify: is an option of kind http"},
    {"upstream : { a : { command = \"x\"; ca_file = \"c\" } }",
	"ca_file: is an option of kind http"},
    {"upstream : { a : { command = \"x\"; proxy = \"\" } }",
	"proxy: is an option of kind http"},
    {"defaults : { url = \"http://h/\" }", "defaults.url: is an option of one upstream"},
    {"upstream : { a : { url = \"\" } }", "upstream.a.url: is empty"},
    {"upstream : { a : { url = 7 } }", "upstream.a.url: want a string"},
    {"upstream : { a : { url = \"h/mcp\" } }", "url: does not begin with http://"},
    {"upstream : { a : { url = \"ftp://h/\" } }", "url: does not begin with http://"},
    {"upstream : { a : { url = \"wss://h/\" } }", "url: is of a WebSocket"},
    {"upstream : { a : { url = \"http://hush:4711@h/\" } }", "url: has a user or a"},
    {"upstream : { a : { url = \"http:///x\" } }", "url: is not the URL of a server"},
    {"upstream : { a : { url = \"http://127.1/\" } }", "url: is not the URL"},
    {"upstream : { a : { url = \"http://h:99999/\" } }", "url: is not the URL"},
    {"upstream : { a : { url = \"http://h/a b\" } }", "url: is not the URL"},
    {REMOTE "transport = \"stdio\" } }", "is none of \"auto\", \"streamable\", \"sse\""},
    {REMOTE "key_file = \"k\" } }", ":2: upstream.a: key_file: there is no cert_file"},
    {REMOTE "proxy = \"a b\" } }", "proxy: has a character"},
    {REMOTE "proxy = \"ftp://p:1\" } }", "proxy: is not the URL of a proxy"},
    {REMOTE "proxy = \"http://\" } }", "proxy: is not the URL of a proxy"},
    {REMOTE "proxy = \"http://p:99999\" } }", "proxy: is not the URL of a proxy"},
    {REMOTE "headers = \"x\" } }", "headers: want a group such as"},
    {REMOTE "headers : { A = 1 } } }", "headers.A: want a string, not a number"},
    {REMOTE "headers : { A = \"\" } } }", "headers.A: is empty"},
    {REMOTE "headers : { A = \"${NONE}\" } } }", "headers.A: variable NONE is not set"},
    {REMOTE "headers : { A = \"${file:/no/such}\" } } }",
	"headers.A: file \"/no/such\": No such file"},
    {REMOTE "headers : { A = \"a\\r\\nB: c\" } } }", "headers.A: has a line break or"},
    {REMOTE "headers : { Token = \"a\"\n token = \"b\" } } }",
	":3: upstream.a.headers.token: is there twice"},
    {REMOTE "headers : { Host = \"a\" } } }", "headers.Host: is a header that mcpvisor"},
    {REMOTE "headers : { accept = \"a\" } } }", "headers.accept: is a header that"},
    {REMOTE "headers : { content-LENGTH = \"1\" } } }", "is a header that mcpvisor"},
    {REMOTE "headers : { Content-Type = \"a\" } } }", "is a header that mcpvisor"},
    {REMOTE "headers : { Mcp-Session-Id = \"a\" } } }", "is a header that mcpvisor"},
    {REMOTE "headers : { MCP-Protocol-Version = \"a\" } } }",
	"is a header that mcpvisor"},
    {REMOTE "headers : { Mcp-Method = \"a\" } } }", "is a header that mcpvisor"},
    {REMOTE "headers : { Mcp-Name = \"a\" } } }", "is a header that mcpvisor"},
    {REMOTE "headers : { Mcp-Param-X = \"a\" } } }", "is a header that mcpvisor"},
    {REMOTE "headers : { Last-Event-ID = \"a\" } } }", "is a header that mcpvisor"},
    {REMOTE "headers : { Connection = \"a\" } } }", "is a header that mcpvisor"},
    {REMOTE "headers : { Transfer-Encoding = \"a\" } } }", "is a header that mcpvisor"},
    {REMOTE "roots = \"all\" } }", "roots: is none of \"auto\", \"client\", \"none\""},
    {REMOTE "roots = [\"/home\"] } }", "roots.0: does not begin with file:///"},
    {REMOTE "roots = [\"file:///a b\"] } }", "roots.0: has a character"},
    {REMOTE "roots = 1 } }", "roots: want a word or an array"},
};

START_TEST(test_bad)
{
	rig_bad(bad[_i].text, bad[_i].words);
}
END_TEST

/* No error shows a string of the file. */
START_TEST(test_errors_show_nothing)
{
	static const char *const texts[] = {
	    "upstream : { a : { url = \"http://u:" RIG_MARK "@h/\" } }",
	    "upstream : { a : { url = \"" RIG_MARK "\" } }",
	    REMOTE "headers : { A = \"" RIG_MARK "\\n\" } } }",
	    REMOTE "proxy = \"http://u: " RIG_MARK "@h/\" } }",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		rig_bad_unshown(texts[i]);
}
END_TEST

START_TEST(test_dump)
{
	rig_dumps("upstream : { a : { url = \"https://h:8443/mcp?key=" RIG_MARK
		  "#x\" } }",
	    "upstream.a.url = \"https://h:8443/mcp\" (secret)\n");
	rig_dumps("upstream : { a : { url = \"https://h/@x/${MARK}\" } }",
	    "upstream.a.url = (secret)\n");
	rig_dumps("upstream : { a : { url = \"https://h/@x/${userHome}?a\" } }",
	    "upstream.a.url = \"https://h/@x//home/u\" (secret)\n");
	rig_dumps(REMOTE "transport = \"sse\"; tls_verify = false; connect_ms = \"3s\"\n"
			 "headers : { Authorization = \"Bearer ${MARK}\" }\n"
			 "ca_file = \"ca.pem\"; cert_file = \"/c\"; key_file = \"k\"\n"
			 "proxy = \"http://u:" RIG_MARK "@p:1\"\n"
			 "roots = [\"file://${userHome}/w\"]; question_ms = 5 } }",
	    "upstream.a.url = \"https://h/mcp\"\n"
	    "upstream.a.transport = \"sse\"\n"
	    "upstream.a.headers.Authorization = (secret)\n"
	    "upstream.a.ca_file = \"/nonexistent/ca.pem\"\n"
	    "upstream.a.cert_file = \"/c\"\n"
	    "upstream.a.key_file = \"/nonexistent/k\"\n"
	    "upstream.a.tls_verify = false\n"
	    "upstream.a.proxy = (secret)\n"
	    "upstream.a.connect_ms = 3000\n"
	    "upstream.a.roots = [\"file:///home/u/w\"]\n"
	    "upstream.a.question_ms = 5\n");
	rig_dumps(REMOTE "proxy = \"\"; roots = \"client\" } }",
	    "upstream.a.url = \"https://h/mcp\"\nupstream.a.proxy = \"\"\n"
	    "upstream.a.roots = \"client\"\n");
	rig_dumps("upstream : { a : { command = \"x\"; roots = [] } }",
	    "upstream.a.command = \"x\"\nupstream.a.roots = []\n");
}
END_TEST

START_TEST(test_members)
{
	struct conf *c = rig_good(
	    REMOTE "headers : { X-A = \"${MARK}\"; B = \"b\" }; tls_verify = false\n"
		   "proxy = \"\"; roots = [\"file:///w\"] }\n"
		   "b : { command = \"x\"; roots = \"none\" } }\n");
	const struct upstream_conf *u = c->upstreams[0];

	ck_assert_ptr_null(u->argv);
	ck_assert_ptr_null(u->env);
	ck_assert(u->put_headers == NULL);
	ck_assert_uint_eq(u->n_headers, 2);
	ck_assert_str_eq(u->headers[0].name, "X-A");
	ck_assert_str_eq(u->headers[0].value, RIG_MARK);
	ck_assert_ptr_null(u->headers[0].source);
	ck_assert(u->skip_verify);
	ck_assert_str_eq(u->proxy, "");
	ck_assert_int_eq(u->roots, ROOTS_LIST);
	ck_assert_str_eq(u->root_uris[0], "file:///w");
	ck_assert_ptr_null(u->root_uris[1]);
	ck_assert_int_eq(c->upstreams[1]->roots, ROOTS_NONE);
	conf_free(c);
}
END_TEST

/* "defaults" may have options of both kinds; each upstream takes what is for its own. */
START_TEST(test_defaults_by_kind)
{
	struct conf *c = rig_good(
	    "defaults : { env : { A = \"1\" }; cwd = \"/c\"; tls_verify = false\n"
	    "	headers : { X-One = \"d\"; X-Two = \"${MARK}\" }; proxy = \"\"\n"
	    "	roots = [\"file:///r\"]; ca_file = \"/${MARK}\" }\n"
	    "upstream : { a : { url = \"http://h/\"; headers : { x-one = \"own\" }\n"
	    "	roots = \"none\" }; b : { command = \"x\" } }\n");
	const struct upstream_conf *a = c->upstreams[0], *b = c->upstreams[1];

	ck_assert_uint_eq(a->n_headers, 2);
	ck_assert_str_eq(a->headers[0].value, "own");
	ck_assert_str_eq(a->headers[1].value, RIG_MARK);
	ck_assert(a->skip_verify);
	ck_assert_str_eq(a->proxy, "");
	ck_assert_str_eq(a->ca_file, "/" RIG_MARK);
	ck_assert_ptr_null(a->cwd);
	ck_assert_ptr_null(a->own_env);
	ck_assert_int_eq(a->roots, ROOTS_NONE);
	ck_assert_ptr_null(a->root_uris);
	ck_assert_uint_eq(b->n_headers, 0);
	ck_assert(!b->skip_verify);
	ck_assert_ptr_null(b->proxy);
	ck_assert_str_eq(b->cwd, "/c");
	ck_assert_str_eq(rig_env_get(b->env, "A"), "1");
	ck_assert_str_eq(b->root_uris[0], "file:///r");
	conf_free(c);
}
END_TEST

START_TEST(test_a_disabled_one_may_lack_its_values)
{
	struct conf *c = rig_good(REMOTE "enabled = false; headers : { A = \"${NONE}\"; "
					 "B = \"${file:/no/such}\" } } }");

	ck_assert_str_eq(c->upstreams[0]->headers[0].value, "${NONE}");
	ck_assert(c->upstreams[0]->put_headers == NULL);
	conf_free(c);
}
END_TEST

static char *
many_headers(unsigned n)
{
	struct buf b;

	buf_init(&b, 65536);
	buf_add_str(&b, REMOTE "headers : {");
	for (unsigned i = 0; i < n; i++)
		buf_addf(&b, " H%u = \"v\";", i);
	buf_add_str(&b, "} } }");
	return buf_take(&b, NULL);
}

START_TEST(test_caps)
{
	char *text = many_headers(64), long_one[8400];
	int n;

	conf_free(rig_good(text));
	mem_free(text);
	text = many_headers(65);
	rig_bad(text, "upstream.a.headers.H64: there are more than 64 headers");
	mem_free(text);
	n = snprintf(
	    long_one, sizeof(long_one), REMOTE "headers : { A = \"%0*d\" } } }", 8192, 1);
	ck_assert_int_lt(n, (int)sizeof(long_one));
	conf_free(rig_good(long_one));
	(void)snprintf(
	    long_one, sizeof(long_one), REMOTE "headers : { A = \"%0*d\" } } }", 8193, 1);
	rig_bad(long_one, "headers.A: is longer than 8192 bytes");
	(void)snprintf(long_one, sizeof(long_one),
	    "upstream : { a : { url = \"http://h/%0*d\" } }", 4096, 1);
	rig_bad(long_one, "url: is longer than 4096 bytes");
}
END_TEST

/* ---- headers that are looked at again ---- */

static unsigned g_looked;

static const char *
counting_get(const char *name, void *arg)
{
	(void)arg;
	g_looked++;
	return strcmp(name, "SCHEME") == 0 ? "Bearer" : NULL;
}

static void
write_old(struct temp *t, const char *name, const char *text, time_t age_s)
{
	struct timespec times[2] = {{.tv_sec = time(NULL) - age_s}};

	times[1] = times[0];
	rig_write(t->dir, name, text);
	ck_assert_int_eq(utimensat(AT_FDCWD, temp_path(t, name), times, 0), 0);
}

/* What put_headers gives, lines with newlines; "!" and why if it fails. */
static const char *
put(const struct upstream_conf *u)
{
	static char text[1024];
	struct mv_errtext why = {.line = 0};
	struct buf b;

	buf_init(&b, sizeof(text));
	ck_assert(u->put_headers != NULL);
	if (u->put_headers(u, &b, &why)) {
		for (size_t i = 0; i < b.len; i++)
			text[i] = b.data[i] ? b.data[i] : '\n';
		text[b.len] = '\0';
	} else {
		snprintf(text, sizeof(text), "!%s", why.message);
	}
	buf_fini(&b);
	return text;
}

START_TEST(test_headers_are_looked_at_again)
{
	struct temp t;
	struct expand_env env = {.get = counting_get};
	struct conf_errors e;
	const struct upstream_conf *u;
	struct conf *c;
	char from[600];

	temp_make(&t);
	write_old(&t, "token", "one\n", 100);
	write_old(&t, "cred", "c1", 100);
	env.credentials = t.dir;
	c = conf_parse(temp_path(&t, "m.conf"),
	    REMOTE "headers : { Authorization = \"${SCHEME} ${file:token}\"\n"
		   "	X-Fixed = \"f\"; X-Cred = \"${credential:cred}\" } } }",
	    &env, &e);
	ck_assert_msg(c != NULL, "%s", e.n ? e.v[0] : "");
	u = c->upstreams[0];
	ck_assert_str_eq(u->headers[0].value, "Bearer one");
	ck_assert_str_eq(u->headers[0].source, "${SCHEME} ${file:token}");
	ck_assert_ptr_null(u->headers[1].source);
	g_looked = 0;
	for (int i = 0; i < 5; i++)
		ck_assert_str_eq(
		    put(u), "Authorization: Bearer one\nX-Fixed: f\nX-Cred: c1\n");
	ck_assert_uint_eq(g_looked, 0);
	/* The same size, another time. */
	write_old(&t, "token", "two\n", 90);
	ck_assert_str_eq(put(u), "Authorization: Bearer two\nX-Fixed: f\nX-Cred: c1\n");
	ck_assert_uint_eq(g_looked, 1);
	ck_assert_str_eq(put(u), "Authorization: Bearer two\nX-Fixed: f\nX-Cred: c1\n");
	ck_assert_uint_eq(g_looked, 1);
	/* Another file of the same name. */
	write_old(&t, "new", "c2", 100);
	snprintf(from, sizeof(from), "%s", temp_path(&t, "new"));
	ck_assert_int_eq(rename(from, temp_path(&t, "cred")), 0);
	ck_assert_str_eq(put(u), "Authorization: Bearer two\nX-Fixed: f\nX-Cred: c2\n");
	/* Gone, unfit, and there again. */
	ck_assert_int_eq(unlink(temp_path(&t, "token")), 0);
	ck_assert_str_eq(
	    put(u), "!header Authorization: file \"token\": No such file or directory");
	write_old(&t, "token", "x\ny", 100);
	ck_assert_str_eq(put(u), "!header Authorization: has a line break or another "
				 "control character");
	write_old(&t, "token", "three", 100);
	ck_assert_str_eq(put(u), "Authorization: Bearer three\nX-Fixed: f\nX-Cred: c2\n");
	conf_free(c);
	temp_remove(&t);
}
END_TEST

/* What was written a moment ago may be written again within the same tick. */
START_TEST(test_a_fresh_file_is_not_trusted)
{
	struct temp t;
	struct expand_env env = {.get = counting_get};
	struct conf_errors e;
	struct conf *c;

	temp_make(&t);
	write_old(&t, "token", "one", 0);
	c = conf_parse(temp_path(&t, "m.conf"),
	    REMOTE "headers : { A = \"${SCHEME} ${file:token}\" } } }", &env, &e);
	ck_assert_msg(c != NULL, "%s", e.n ? e.v[0] : "");
	g_looked = 0;
	ck_assert_str_eq(put(c->upstreams[0]), "A: Bearer one\n");
	ck_assert_uint_eq(g_looked, 1);
	conf_free(c);
	temp_remove(&t);
}
END_TEST

/* A reload with another token in the file changes nothing; with another text it does. */
START_TEST(test_a_new_token_is_no_new_conf)
{
	static const char one[] = REMOTE "headers : { A = \"x${file:token}\" } } }";
	static const char other[] = REMOTE "headers : { A = \"y${file:token}\" } } }";
	struct temp t;
	struct conf_errors e;
	struct conf *c[3];
	struct buf b;

	temp_make(&t);
	for (size_t i = 0; i < 3; i++) {
		rig_write(t.dir, "token", i == 0 ? "1" : "2");
		c[i] = conf_parse(
		    temp_path(&t, "m.conf"), i < 2 ? one : other, &rig_env, &e);
		ck_assert_ptr_nonnull(c[i]);
	}
	buf_init(&b, 4096);
	ck_assert_uint_eq(conf_diff(c[0], c[1], &b), 0);
	ck_assert(upstream_conf_is_same_process(c[0]->upstreams[0], c[1]->upstreams[0]));
	ck_assert_uint_eq(conf_diff(c[1], c[2], &b), 1);
	ck_assert_str_eq(buf_cstr(&b), "~ upstream.a.headers.A: changed (restarts it)\n");
	ck_assert(!upstream_conf_is_same_process(c[1]->upstreams[0], c[2]->upstreams[0]));
	buf_fini(&b);
	for (size_t i = 0; i < 3; i++)
		conf_free(c[i]);
	temp_remove(&t);
}
END_TEST

static const struct {
	const char *from, *to, *diff;
	bool same;
} diffs[] = {
    {"", "connect_ms = 1", "~ upstream.a.connect_ms: 15000 -> 1\n", true},
    {"", "question_ms = 1", "~ upstream.a.question_ms: 600000 -> 1\n", true},
    {"", "tls_verify = false", "~ upstream.a.tls_verify: true -> false (restarts it)\n",
	false},
    {"", "proxy = \"http://p\"",
	"~ upstream.a.proxy: (none) -> \"http://p\" (restarts it)\n", false},
    {"transport = \"sse\"", "transport = \"streamable\"",
	"~ upstream.a.transport: \"sse\" -> \"streamable\" (restarts it)\n", false},
    {"headers : { A = \"1\" }", "headers : { A = \"2\" }",
	"~ upstream.a.headers.A: changed (restarts it)\n", false},
    {"", "roots = \"none\"", "~ upstream.a.roots: \"auto\" -> \"none\" (restarts it)\n",
	false},
    {"roots = [\"file:///a\"]", "roots = [\"file:///b\"]",
	"~ upstream.a.roots: [\"file:///a\"] -> [\"file:///b\"] (restarts it)\n", false},
};

START_TEST(test_diff)
{
	struct conf *c[2];
	struct buf b;

	for (size_t i = 0; i < 2; i++) {
		char text[512];

		snprintf(text, sizeof(text), REMOTE "%s } }",
		    i == 0 ? diffs[_i].from : diffs[_i].to);
		c[i] = rig_good(text);
	}
	buf_init(&b, 4096);
	ck_assert_uint_eq(conf_diff(c[0], c[1], &b), 1);
	ck_assert_str_eq(buf_cstr(&b), diffs[_i].diff);
	ck_assert(upstream_conf_is_same_process(c[0]->upstreams[0], c[1]->upstreams[0]) ==
		  diffs[_i].same);
	buf_fini(&b);
	conf_free(c[0]);
	conf_free(c[1]);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("conf_remote");
	TCase *tc = tcase_create("conf_remote");
	SRunner *sr;
	int failed;

	tcase_add_loop_test(tc, test_bad, 0, sizeof(bad) / sizeof(*bad));
	tcase_add_test(tc, test_errors_show_nothing);
	tcase_add_test(tc, test_dump);
	tcase_add_test(tc, test_members);
	tcase_add_test(tc, test_defaults_by_kind);
	tcase_add_test(tc, test_a_disabled_one_may_lack_its_values);
	tcase_add_test(tc, test_caps);
	tcase_add_test(tc, test_headers_are_looked_at_again);
	tcase_add_test(tc, test_a_fresh_file_is_not_trusted);
	tcase_add_test(tc, test_a_new_token_is_no_new_conf);
	tcase_add_loop_test(tc, test_diff, 0, sizeof(diffs) / sizeof(*diffs));
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
