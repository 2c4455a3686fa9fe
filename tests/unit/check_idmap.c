/* layer: base */
/* SPDX-License-Identifier: MIT */
/* Both hash tables against a plain array, deletion while visiting, short memory. */
#include "mcpvisor/clock.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 600

static int g_things[KEYS];

static uint64_t
key_of(unsigned i, int kind)
{
	switch (kind) {
	case 0:
		return i;
	case 1:
		return (uint64_t)i << 32;
	case 2:
		return UINT64_MAX - (uint64_t)i * 16;
	default:
		/* All of one home slot in every size up to 2^20. */
		return (uint64_t)i * 0xf1de83e19937733dULL;
	}
}

START_TEST(few_entries_take_no_memory)
{
	struct idmap *m = idmap_new();

	mem_fail_at(1, 1);
	for (unsigned round = 0; round < 1000; round++) {
		for (unsigned i = 0; i < 12; i++)
			ck_assert(idmap_put(m, round * 7 + i, &g_things[i]));
		ck_assert(idmap_put(m, round * 7, &g_things[99]));
		ck_assert_uint_eq(idmap_count(m), 12);
		ck_assert_ptr_eq(idmap_get(m, round * 7), &g_things[99]);
		for (unsigned i = 0; i < 12; i++)
			ck_assert_ptr_nonnull(idmap_del(m, round * 7 + i));
	}
	ck_assert_uint_eq(mem_try_count(), 0);
	mem_fail_at(0, 0);
	idmap_free(m);
	idmap_free(NULL);
}
END_TEST

/* Random puts and deletions; _i is the kind of keys. */
START_TEST(agrees_with_an_array)
{
	struct idmap *m = idmap_new();
	void *want[KEYS] = {NULL};
	size_t count = 0;

	for (unsigned step = 0; step < 60000; step++) {
		unsigned span = step < 20000 ? 15 : KEYS;
		unsigned i = clock_random(span);

		if (clock_random(100) < (step / 10000 % 2 ? 40 : 60)) {
			count += want[i] == NULL;
			want[i] = &g_things[clock_random(KEYS)];
			ck_assert(idmap_put(m, key_of(i, _i), want[i]));
		} else {
			count -= want[i] != NULL;
			ck_assert_ptr_eq(idmap_del(m, key_of(i, _i)), want[i]);
			want[i] = NULL;
		}
		ck_assert_uint_eq(idmap_count(m), count);
		i = clock_random(KEYS);
		ck_assert_ptr_eq(idmap_get(m, key_of(i, _i)), want[i]);
	}
	for (unsigned i = 0; i < KEYS; i++)
		ck_assert_ptr_eq(idmap_get(m, key_of(i, _i)), want[i]);
	idmap_free(m);
}
END_TEST

struct visit {
	struct idmap *m;
	unsigned seen[KEYS];
	unsigned total;
	unsigned stop_after;
	int kind;
};

static bool
on_visit(uint64_t key, void *value, void *arg)
{
	struct visit *v = arg;
	unsigned i = (unsigned)((int *)value - g_things);

	ck_assert(key == key_of(i, v->kind));
	v->seen[i]++;
	v->total++;
	if (i % 3 != 0)
		ck_assert_ptr_eq(idmap_del(v->m, key), value);
	return v->total != v->stop_after;
}

START_TEST(visits_each_once_while_deleting)
{
	for (unsigned n = 0; n < KEYS; n += n < 40 ? 1 : 31) {
		struct visit v = {.m = idmap_new(), .kind = _i};

		for (unsigned i = 0; i < n; i++)
			ck_assert(idmap_put(v.m, key_of(i, _i), &g_things[i]));
		idmap_each(v.m, on_visit, &v);
		ck_assert_uint_eq(v.total, n);
		ck_assert_uint_eq(idmap_count(v.m), (n + 2) / 3);
		for (unsigned i = 0; i < n; i++) {
			ck_assert_uint_eq(v.seen[i], 1);
			ck_assert_ptr_eq(idmap_get(v.m, key_of(i, _i)),
			    i % 3 != 0 ? NULL : &g_things[i]);
		}
		if (n > 20) {
			v.stop_after = v.total + 5;
			idmap_each(v.m, on_visit, &v);
			ck_assert_uint_eq(v.total, n + 5);
		}
		ck_assert(idmap_put(v.m, 1, &g_things[0]));
		idmap_free(v.m);
	}
}
END_TEST

START_TEST(short_memory_is_told)
{
	struct idmap *m = idmap_new();
	struct strmap *sm = strmap_new();
	char key[16];

	for (unsigned i = 0; i < 12; i++) {
		(void)snprintf(key, sizeof(key), "k%u", i);
		ck_assert(idmap_put(m, i, &g_things[i]));
		ck_assert(strmap_put(sm, key, strlen(key), &g_things[i]));
	}
	for (unsigned at = 1; at <= 2; at++) {
		mem_fail_at(at, 0);
		ck_assert(!strmap_put(sm, "new", 3, &g_things[50]));
		ck_assert_ptr_null(strmap_get(sm, "new", 3));
	}
	mem_fail_at(1, 0);
	ck_assert(!idmap_put(m, 12, &g_things[12]));
	mem_fail_at(1, 1);
	ck_assert(idmap_put(m, 3, &g_things[33]));
	ck_assert(strmap_put(sm, "k3", 2, &g_things[33]));
	mem_fail_at(0, 0);
	ck_assert_uint_eq(idmap_count(m), 12);
	ck_assert_uint_eq(strmap_count(sm), 12);
	ck_assert_ptr_eq(idmap_get(m, 3), &g_things[33]);
	ck_assert_ptr_eq(strmap_get(sm, "k3", 2), &g_things[33]);
	idmap_free(m);
	strmap_free(sm);
}
END_TEST

static bool
on_name(const char *key, size_t len, void *value, void *arg)
{
	struct strmap *m = arg;
	char want[32];

	(void)snprintf(want, sizeof(want), "name-%td", (int *)value - g_things);
	ck_assert_uint_eq(len, strlen(want));
	ck_assert_int_eq(memcmp(key, want, len), 0);
	if ((((int *)value - g_things) & 1) != 0)
		ck_assert_ptr_eq(strmap_del(m, key, len), value);
	return true;
}

START_TEST(strings_come_and_go)
{
	struct strmap *m = strmap_new();
	char key[32];

	for (int i = 0; i < KEYS; i++) {
		int n = snprintf(key, sizeof(key), "name-%d", i);

		ck_assert(strmap_put(m, key, (size_t)n, &g_things[i]));
	}
	ck_assert_uint_eq(strmap_count(m), KEYS);
	strmap_each(m, on_name, m);
	ck_assert_uint_eq(strmap_count(m), KEYS / 2);
	for (int i = 0; i < KEYS; i++) {
		int n = snprintf(key, sizeof(key), "name-%d", i);

		ck_assert_ptr_eq(
		    strmap_get(m, key, (size_t)n), i & 1 ? NULL : &g_things[i]);
	}
	ck_assert_ptr_null(strmap_del(m, "name-1", 6));
	strmap_free(m);
	strmap_free(NULL);
}
END_TEST

START_TEST(string_keys_are_bytes)
{
	static const struct {
		const char *key;
		size_t len;
	} keys[] = {{NULL, 0}, {"\0", 1}, {"\0\0", 2}, {"a", 1}, {"a\0", 2},
	    {"abcdefgh", 8}, {"abcdefgh\0", 9}, {"abcdefg", 7}, {"\xff", 1}};
	struct strmap *m = strmap_new();
	size_t n = sizeof(keys) / sizeof(keys[0]);

	for (size_t i = 0; i < n; i++)
		ck_assert(strmap_put(m, keys[i].key, keys[i].len, &g_things[i]));
	ck_assert_uint_eq(strmap_count(m), n);
	for (size_t i = 0; i < n; i++)
		ck_assert_ptr_eq(strmap_get(m, keys[i].key, keys[i].len), &g_things[i]);
	ck_assert_ptr_eq(strmap_del(m, "", 0), &g_things[0]);
	ck_assert_ptr_null(strmap_get(m, NULL, 0));
	strmap_free(m);
}
END_TEST

START_TEST(stable_hash_is_fnv1a)
{
	static const struct {
		const char *s;
		uint64_t hash;
	} rows[] = {
	    {"", 0xcbf29ce484222325ULL},
	    {"a", 0xaf63dc4c8601ec8cULL},
	    {"foobar", 0x85944171f73967e8ULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert(hash_stable(HASH_STABLE_SEED, rows[i].s, strlen(rows[i].s)) ==
			  rows[i].hash);
	ck_assert(hash_stable(hash_stable(HASH_STABLE_SEED, "foo", 3), "bar", 3) ==
		  rows[2].hash);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("idmap");
	TCase *tc = tcase_create("idmap");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, few_entries_take_no_memory);
	tcase_add_loop_test(tc, agrees_with_an_array, 0, 4);
	tcase_add_loop_test(tc, visits_each_once_while_deleting, 0, 4);
	tcase_add_test(tc, short_memory_is_told);
	tcase_add_test(tc, strings_come_and_go);
	tcase_add_test(tc, string_keys_are_bytes);
	tcase_add_test(tc, stable_hash_is_fnv1a);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
