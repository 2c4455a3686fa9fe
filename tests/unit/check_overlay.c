/* layer: daemon, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* What probe decides and writes down, the file of it, and what that adds to tools. */
#include "mcpvisor/shape.h"

#include "overlay.h"
#include "probe_record.h"

#include "mcpvisor/idmap.h"
#include "mcpvisor/mem.h"

#include "temp_rig.h"

#include <inttypes.h>

/* ---- decisions ---- */

#define READS "\"annotations\":{\"readOnlyHint\":true}"
#define NEEDS "\"inputSchema\":{\"required\":[\"a\",\"b\"]}"

static const struct {
	const char *name, *definition, *probe_args, *fixed, *defaults;
	const char *refusal; /* NULL: it is called */
} candidates[] = {
    {"t", "{}", NULL, NULL, NULL, ""},
    {"t", "{\"annotations\":{\"readOnlyHint\":\"true\"}}", NULL, NULL, NULL, ""},
    {"t", "{\"annotations\":[{\"readOnlyHint\":true}]}", NULL, NULL, NULL, ""},
    {"t", "{" READS "}", NULL, NULL, NULL, NULL},
    {"t", "{\"annotations\":{\"readOnlyHint\":true,\"destructiveHint\":true}}", NULL,
	NULL, NULL, "it says that it is destructive"},
    {"get_me", "{" READS "}", NULL, NULL, NULL, "it is asked who somebody is"},
    {"t", "{" READS "," NEEDS "}", NULL, NULL, NULL,
	"it needs arguments that probe_args does not give"},
    {"t", "{" READS "," NEEDS "}", "{\"a\":1}", NULL, NULL,
	"it needs arguments that probe_args does not give"},
    {"t", "{" READS "," NEEDS "}", "{\"a\":1}", "{\"b\":1}", NULL, NULL},
    {"t", "{" READS "," NEEDS "}", NULL, "{\"b\":1}", "{\"\\u0061\":1}", NULL},
    {"t", "{" READS ",\"inputSchema\":{\"required\":[1]}}", "{\"1\":1}", NULL, NULL,
	"it needs arguments that probe_args does not give"},
    {"t", "{" READS ",\"inputSchema\":{\"required\":[]}}", NULL, NULL, NULL, NULL},
};

static char *
dup_or_null(const char *s)
{
	return s != NULL ? mem_xstrdup(s) : NULL;
}

START_TEST(every_candidate)
{
	struct upstream_conf *conf = upstream_conf_new("alpha");
	struct tool_shape shape = {.probe_args = dup_or_null(candidates[_i].probe_args),
	    .fixed = dup_or_null(candidates[_i].fixed),
	    .defaults = dup_or_null(candidates[_i].defaults)};
	const char *name = candidates[_i].name, *def = candidates[_i].definition, *got;
	struct candidate c = {.conf = conf,
	    .shape = &shape,
	    .name = {name, strlen(name)},
	    .definition = {def, strlen(def)}};
	json_t *a = record_new(&c), *b;

	got = candidate_refusal(&c);
	ck_assert_int_eq(got == NULL, candidates[_i].refusal == NULL);
	if (got != NULL)
		ck_assert_str_eq(got, candidates[_i].refusal);
	/* Other arguments, another question. */
	mem_free(shape.probe_args);
	shape.probe_args = mem_xstrdup("{\"z\":1}");
	b = record_new(&c);
	ck_assert(record_is_of_same(a, a));
	ck_assert(!record_is_of_same(a, b));
	json_decref(a);
	json_decref(b);
	tool_shape_fini(&shape);
	upstream_conf_free(conf);
}
END_TEST

/* ---- the file ---- */

static json_t *
records_of(const char *text)
{
	json_t *r = json_loads(text, 0, NULL);

	ck_assert_ptr_nonnull(r);
	return r;
}

START_TEST(written_and_read)
{
	json_t *in = records_of("[{\"upstream\":\"b\",\"tool\":\"x\"},"
				"{\"upstream\":\"a\",\"tool\":\"z\",\"n\":1},"
				"{\"upstream\":\"a\",\"tool\":\"y\"}]"),
	       *out;
	struct mv_errtext et = {.line = 0};
	struct temp t;
	struct stat st, again;
	const char *path;
	bool changed;

	temp_make(&t);
	path = temp_path(&t, "probe.json");
	out = overlay_read(path, &et); /* not there: nothing is known */
	ck_assert_uint_eq(json_array_size(out), 0);
	json_decref(out);
	ck_assert(overlay_write(path, in, &changed) && changed);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	/* In whatever order they come, the same is not written. */
	(void)json_array_append(in, json_array_get(in, 0));
	(void)json_array_remove(in, 0);
	ck_assert(overlay_write(path, in, &changed) && !changed);
	ck_assert_int_eq(stat(path, &again), 0);
	ck_assert_uint_eq(st.st_ino, again.st_ino);
	out = overlay_read(path, &et);
	ck_assert_str_eq(record_text(json_array_get(out, 0), "tool"), "y");
	ck_assert_str_eq(record_text(json_array_get(out, 2), "tool"), "x");
	ck_assert_ptr_eq(overlay_find(out, "a", "z"), json_array_get(out, 1));
	ck_assert_ptr_null(overlay_find(out, "b", "z"));
	json_decref(in);
	json_decref(out);
	temp_remove(&t);
}
END_TEST

START_TEST(not_to_be_written)
{
	json_t *in = json_array();
	bool changed = true;

	ck_assert(!overlay_write("/nonexistent/probe.json", in, &changed) && !changed);
	json_decref(in);
}
END_TEST

/* ---- what it adds ---- */

#define DEFINITION "{\"name\":\"t\",\"description\":\"It \\\"is\\\".\"}"

static uint64_t
digest_of(const char *text)
{
	return hash_stable(HASH_STABLE_SEED, text, strlen(text));
}

static const struct {
	const char *definition; /* that it was found of */
	const char *answer, *description, *want;
} additions[] = {
    {DEFINITION, "unknown", NULL,
	"\"It \\\"is\\\".\\n\\nReturns: {n: number} (as "
	"mcpvisor probe has seen it)\""},
    {DEFINITION, "full", "Of \"us\"",
	"\"Of \\\"us\\\"\\n\\nReturns: {n: number} (as "
	"mcpvisor probe has seen it)\""},
    {DEFINITION, "partial", NULL, "\"It \\\"is\\\".\""},
    {"{\"name\":\"t\"}", "unknown", NULL, "\"It \\\"is\\\".\""},
    {"{\"name\":\"t\"}", "unknown", "Of us", "\"Of us\""},
};

START_TEST(every_addition)
{
	struct conf *c = conf_new_default();
	struct upstream_conf *u = upstream_conf_new("alpha");
	struct jtext def = {DEFINITION, strlen(DEFINITION)}, got;
	const struct tool_shape *s;
	struct temp t;
	char text[512];
	struct buf b;

	temp_make(&t);
	(void)snprintf(text, sizeof(text),
	    "{\"mcpvisor_probe\":1,\"tools\":[{\"upstream\":\"alpha\",\"tool\":\"t\","
	    "\"digest\":\"%016" PRIx64
	    "\",\"answer\":\"%s\",\"shape\":\"{n: number}\"}]}",
	    digest_of(additions[_i].definition), additions[_i].answer);
	temp_write(&t, "probe.json", text);
	c->probe.file = mem_xstrdup(temp_path(&t, "probe.json"));
	c->upstreams = mem_xcalloc(1, sizeof(*c->upstreams));
	c->upstreams[0] = u;
	c->n_upstreams = 1;
	if (additions[_i].description != NULL) {
		u->shapes = mem_xcalloc(1, sizeof(*u->shapes));
		u->shapes[0].tool = mem_xstrdup("t");
		u->shapes[0].description = mem_xstrdup(additions[_i].description);
		u->n_shapes = 1;
	}
	overlay_apply(c);
	ck_assert_uint_eq(c->n_warnings, 0);
	s = upstream_conf_shape(u, "t", 1);
	ck_assert(s == NULL || s->is_found == (additions[_i].description == NULL));
	buf_init(&b, 4096);
	shape_put_definition(
	    &b, def, json_member(def, "name"), (struct jtext){"\"a__t\"", 6}, s);
	got = json_member((struct jtext){b.data, b.len}, "description");
	ck_assert_uint_eq(got.n, strlen(additions[_i].want));
	ck_assert_int_eq(memcmp(got.p, additions[_i].want, got.n), 0);
	buf_fini(&b);
	c->n_upstreams = 0;
	mem_free(c->upstreams);
	c->upstreams = NULL;
	upstream_conf_free(u);
	conf_free(c);
	temp_remove(&t);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("overlay");
	TCase *tc = tcase_create("overlay");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(
	    tc, every_candidate, 0, (int)(sizeof(candidates) / sizeof(candidates[0])));
	tcase_add_test(tc, written_and_read);
	tcase_add_test(tc, not_to_be_written);
	tcase_add_loop_test(
	    tc, every_addition, 0, (int)(sizeof(additions) / sizeof(additions[0])));
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
