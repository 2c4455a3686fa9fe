/* layer: upstream */
/* SPDX-License-Identifier: MIT */
/* Defaults of an upstream's conf, and what of it makes another process. */
#include "mcpvisor/upstream_conf.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words with blanks between them, as a list. NULL: none. */
static char **
list_of(const char *words)
{
	char **v = mem_xcalloc(strlen(words) + 2, sizeof(*v));
	size_t n = 0;

	while (*words != '\0') {
		size_t len = strcspn(words, " ");

		v[n++] = mem_xstrndup(words, len);
		words += len + (words[len] == ' ');
	}
	return v;
}

static struct upstream_conf *
conf_of(const char *argv, const char *env, const char *cwd, enum era_pin era)
{
	struct upstream_conf *c = upstream_conf_new("alpha");

	c->argv = list_of(argv);
	c->own_env = env != NULL ? list_of(env) : NULL;
	c->cwd = cwd != NULL ? mem_xstrdup(cwd) : NULL;
	c->era = era;
	return c;
}

START_TEST(defaults)
{
	struct upstream_conf *c = upstream_conf_new("alpha");

	ck_assert_str_eq(c->name, "alpha");
	ck_assert(c->enabled && !c->rescue_errors);
	ck_assert_int_eq(c->isolation, ISOLATION_AUTO);
	ck_assert_int_eq(c->start, START_EAGER);
	ck_assert_int_eq(c->failure, FAILURE_ERROR);
	ck_assert_uint_eq(c->max_instances, 32);
	ck_assert_uint_eq(c->idle_stop_ms, 0);
	ck_assert_uint_eq(c->queue_calls, CAP_UPSTREAM_CALLS);
	ck_assert_uint_eq(c->queue_bytes, CAP_UPSTREAM_HELD_BYTES);
	ck_assert_uint_eq(c->restart_max_ms, 60000);
	ck_assert_uint_eq(c->restart_limit, 10);
	ck_assert_uint_eq(c->stable_ms, 30000);
	ck_assert_uint_eq(c->term_ms, 2000);
	ck_assert_uint_eq(c->kill_ms, 3000);
	ck_assert_uint_eq(c->connect_ms, 15000);
	ck_assert_uint_eq(c->question_ms, 600000);
	ck_assert_int_eq(c->transport, TRANSPORT_AUTO);
	upstream_conf_free(c);
	upstream_conf_free(NULL);
}
END_TEST

static const struct {
	const char *argv, *env, *cwd;
	enum era_pin era;
	bool same; /* as the first one */
} processes[] = {
    {"npx -y srv", "A=1 B=2", "/srv", ERA_AUTO, true},
    {"npx -y srv", "B=2 A=1", "/srv", ERA_AUTO, true},
    {"npx -y srv", "A=1 B=2", "/srv", ERA_LEGACY, false},
    {"npx -y srv", "A=1 B=2", "/srv", ERA_MODERN, false},
    {"npx -y srv", "A=1 B=2", NULL, ERA_AUTO, false},
    {"npx -y srv", "A=1 B=2", "", ERA_AUTO, false},
    {"npx -y srv", "A=1 B=3", "/srv", ERA_AUTO, false},
    {"npx -y srv", "A=1", "/srv", ERA_AUTO, false},
    {"npx -y srv", NULL, "/srv", ERA_AUTO, false},
    {"npx -y", "A=1 B=2", "/srv", ERA_AUTO, false},
    {"npx -ysrv", "A=1 B=2", "/srv", ERA_AUTO, false},
    {"npx -y srv A=1", "B=2", "/srv", ERA_AUTO, false},
    {"npx -y srv;3:A=1", "B=2", "/srv", ERA_AUTO, false},
    {"npx -y srv A=1 B=2", NULL, "/srv", ERA_AUTO, false},
};
#define N_PROCESSES ((int)(sizeof(processes) / sizeof(processes[0])))

START_TEST(identity_is_of_the_process)
{
	struct upstream_conf *a = conf_of("npx -y srv", "A=1 B=2", "/srv", ERA_AUTO);
	struct upstream_conf *b = conf_of(
	    processes[_i].argv, processes[_i].env, processes[_i].cwd, processes[_i].era);

	ck_assert_int_eq(upstream_conf_is_same_process(a, b), processes[_i].same);
	ck_assert_int_eq(upstream_conf_is_same_process(b, a), processes[_i].same);
	ck_assert(upstream_conf_is_same_process(b, b));
	upstream_conf_free(a);
	upstream_conf_free(b);
}
END_TEST

/* One header; files: CA, certificate, key. */
static const struct {
	const char *url, *header, *value, *source, *files[3], *proxy;
	enum transport_pin transport;
	bool skip_verify;
	bool same; /* as the first one */
} servers[] = {
#define S(u, h, v, ...)                                                                  \
	{                                                                                \
		.url = "http://a/" u, .header = h, .value = v, __VA_ARGS__               \
	}
    S("mcp", "A", "1", .same = true),
    S("mcp2", "A", "1", .same = false),
    S("mcp", "B", "1", .same = false),
    S("mcp", "A", "2", .same = false),
    S("mcp", NULL, NULL, .same = false),
    S("mcp", "A", "1", .source = "${A}"),
    S("mcp", "A", "1", .files = {"f"}),
    S("mcp", "A", "1", .files = {NULL, "f"}),
    S("mcp", "A", "1", .files = {NULL, NULL, "f"}),
    S("mcp", "A", "1", .proxy = ""),
    S("mcp", "A", "1", .proxy = "http://p"),
    S("mcp", "A", "1", .transport = TRANSPORT_SSE),
    S("mcp", "A", "1", .transport = TRANSPORT_STREAMABLE),
    S("mcp", "A", "1", .skip_verify = true),
#undef S
};
#define N_SERVERS ((int)(sizeof(servers) / sizeof(servers[0])))

static char *
copy_of(const char *s)
{
	return s != NULL ? mem_xstrdup(s) : NULL;
}

static struct upstream_conf *
remote_of(int i)
{
	struct upstream_conf *c = upstream_conf_new("alpha");

	c->url = copy_of(servers[i].url);
	c->ca_file = copy_of(servers[i].files[0]);
	c->cert_file = copy_of(servers[i].files[1]);
	c->key_file = copy_of(servers[i].files[2]);
	c->proxy = copy_of(servers[i].proxy);
	c->transport = servers[i].transport;
	c->skip_verify = servers[i].skip_verify;
	if (servers[i].header != NULL) {
		c->headers = mem_xcalloc(1, sizeof(*c->headers));
		c->headers[c->n_headers++] =
		    (struct header_row){copy_of(servers[i].header),
			copy_of(servers[i].value), copy_of(servers[i].source)};
	}
	return c;
}

START_TEST(identity_is_of_the_server)
{
	struct upstream_conf *a = remote_of(0), *b = remote_of(_i);

	ck_assert_int_eq(upstream_conf_is_same_process(a, b), servers[_i].same);
	ck_assert_int_eq(upstream_conf_is_same_process(b, a), servers[_i].same);
	ck_assert(upstream_conf_is_same_process(b, b));
	upstream_conf_free(a);
	upstream_conf_free(b);
}
END_TEST

/* A token that was renewed is no reason to forget all that is known of its server. */
START_TEST(secrets_may_change)
{
	struct upstream_conf *a = remote_of(5), *b = remote_of(5);

	mem_free(b->headers[0].value);
	b->headers[0].value = mem_xstrdup("another");
	ck_assert(upstream_conf_is_same_process(a, b));
	upstream_conf_free(a);
	upstream_conf_free(b);
}
END_TEST

/* What only we look at is no reason for another process. */
START_TEST(limits_are_not_the_process)
{
	struct upstream_conf *a = conf_of("srv", NULL, NULL, ERA_AUTO);
	struct upstream_conf *b = conf_of("srv", NULL, NULL, ERA_AUTO);

	b->env = list_of("PATH=/bin");
	b->path = mem_xstrdup("/bin");
	b->prefix = mem_xstrdup("x_");
	b->call_ms = 1;
	b->start = START_ON_USE;
	b->max_instances = 1;
	b->tools.deny = list_of("*");
	ck_assert(upstream_conf_is_same_process(a, b));
	b->isolation = ISOLATION_SESSION;
	ck_assert(!upstream_conf_is_same_process(a, b));
	upstream_conf_free(a);
	upstream_conf_free(b);
}
END_TEST

START_TEST(broken_ones_are_told_apart)
{
	struct upstream_conf *a = upstream_conf_new("alpha");
	struct upstream_conf *b = upstream_conf_new("alpha");

	a->broken = MV_CONF;
	(void)snprintf(a->broken_text, sizeof(a->broken_text), "no variable A");
	ck_assert(!upstream_conf_is_same_process(a, b));
	b->broken = MV_CONF;
	(void)snprintf(b->broken_text, sizeof(b->broken_text), "no variable B");
	ck_assert(!upstream_conf_is_same_process(a, b));
	ck_assert(upstream_conf_is_same_process(a, a));
	upstream_conf_free(a);
	upstream_conf_free(b);
}
END_TEST

START_TEST(shapes_are_found_by_name)
{
	struct upstream_conf *c = upstream_conf_new("alpha");

	c->n_shapes = 2;
	c->shapes = mem_xcalloc(2, sizeof(*c->shapes));
	c->shapes[0].tool = mem_xstrdup("search");
	c->shapes[1].tool = mem_xstrdup("sea");
	c->shapes[1].name = mem_xstrdup("ocean");
	c->shapes[1].description = mem_xstrdup("wide");
	c->shapes[1].fixed = mem_xstrdup("{\"token\":\"s3cret\"}");
	c->shapes[1].defaults = mem_xstrdup("{}");
	ck_assert_ptr_eq(upstream_conf_shape(c, "search", 6), &c->shapes[0]);
	ck_assert_ptr_eq(upstream_conf_shape(c, "search", 3), &c->shapes[1]);
	ck_assert_ptr_null(upstream_conf_shape(c, "searches", 8));
	ck_assert_ptr_null(upstream_conf_shape(c, "", 0));
	upstream_conf_free(c);
}
END_TEST

START_TEST(filter_is_empty_after_free)
{
	struct filter f = {.allow = list_of("a* b"), .deny = list_of("c")};

	filter_free(&f);
	ck_assert(f.allow == NULL && f.deny == NULL);
	filter_free(&f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_conf");
	TCase *tc = tcase_create("conf");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_test(tc, defaults);
	tcase_add_loop_test(tc, identity_is_of_the_process, 0, N_PROCESSES);
	tcase_add_loop_test(tc, identity_is_of_the_server, 0, N_SERVERS);
	tcase_add_test(tc, secrets_may_change);
	tcase_add_test(tc, limits_are_not_the_process);
	tcase_add_test(tc, broken_ones_are_told_apart);
	tcase_add_test(tc, shapes_are_found_by_name);
	tcase_add_test(tc, filter_is_empty_after_free);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
