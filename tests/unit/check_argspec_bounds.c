/* layer: result */
/* SPDX-License-Identifier: MIT */
/* What a check of arguments may take, however many there are. */
#include "mcpvisor/argspec.h"

#include "mcpvisor/caps.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define BIG_BYTES (1u << 20)
#define TOO_MUCH                                                                         \
	"too long or too many for their constraints. Retrying unchanged will fail."

static void
setup(void)
{
}

static void
teardown(void)
{
}

/* What a check may take is the same for all arguments together. */
static const struct {
	const char *schema, *begin, *each, *end;
	size_t n;
	const char *why;
} long_checks[] = {
    {"\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^(a+)+$\"}}",
	"{\"a\":[\"a\"", ",\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"", "]}", 1,
	"Argument 'a[1]' could not be checked: " TOO_MUCH},
    {"\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^(?:(a+)+b)?"
     "\"}}",
	"{\"a\":[\"a\"", ",\"aaaaaaaaaaaaaa\"", "]}", 1000, TOO_MUCH},
    {"\"a\":{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"b\",\"c\"]}}",
	"{\"a\":[\"c\"", ",\"c\"", "]}", 100000, TOO_MUCH},
    {"\"a\":{\"type\":\"object\",\"properties\":{\"x\":{},\"y\":{},\"z\":{}}}",
	"{\"a\":{\"x\":1", ",\"b\":1", "}}", 100000, TOO_MUCH},
    {"\"a\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"x\":{},"
     "\"y\":{},\"z\":{}}}}",
	"{\"a\":[{}", ",{}", "]}", 100000, TOO_MUCH},
    {"\"a\":{}", "{\"a\":[0", ",0", "]}", CAP_ARGUMENTS_BYTES / 2,
	"The arguments must be at most 4194304 bytes of JSON; got 4194313. Retrying "
	"unchanged will fail."},
};

START_TEST(long_checks_end)
{
	struct buf text, schema, why;
	struct mv_errtext t;
	struct argspec *s;

	buf_init(&schema, BIG_BYTES);
	buf_addf(
	    &schema, "{\"type\":\"object\",\"properties\":{%s}}", long_checks[_i].schema);
	s = argspec_read((struct jtext){schema.data, schema.len}, &t);
	ck_assert_msg(s != NULL, "%s", t.message);
	buf_init(&text, 2 * CAP_ARGUMENTS_BYTES);
	buf_add_str(&text, long_checks[_i].begin);
	for (size_t i = 0; i < long_checks[_i].n; i++)
		buf_add_str(&text, long_checks[_i].each);
	buf_add_str(&text, long_checks[_i].end);
	buf_init(&why, BIG_BYTES);
	ck_assert(!argspec_check(s, (struct jtext){text.data, text.len}, &why));
	ck_assert_msg(
	    strstr(buf_cstr(&why), long_checks[_i].why) != NULL, "%s", why.data);
	ck_assert_uint_lt(why.len, 200);
	buf_fini(&why);
	buf_fini(&text);
	buf_fini(&schema);
	argspec_free(s);
}
END_TEST

#include "suite_rig.h"

int
main(void)
{
	TCase *tc = tcase_create("argspec_bounds");

	tcase_add_loop_test(
	    tc, long_checks_end, 0, (int)(sizeof(long_checks) / sizeof(long_checks[0])));
	return run_suite(suite_create("argspec_bounds"), tc);
}
