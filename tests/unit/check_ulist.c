/* layer: upstream */
/* SPDX-License-Identifier: MIT */
/* Lists as they came: pages added up, what is left out, hints, bounds. */
#include "mcpvisor/ulist.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum mv_err
add(struct ulist *l, const char *page, struct jtext *cursor, unsigned *skipped)
{
	struct jtext t = {page, strlen(page)};
	struct json_msg msg;

	ck_assert_int_eq(json_scan(&msg, page, t.n, false), MV_OK);
	return ulist_add_page(l, t, cursor, skipped);
}

static void
add_ok(struct ulist *l, const char *page)
{
	struct jtext cursor;
	unsigned skipped;

	ck_assert_int_eq(add(l, page, &cursor, &skipped), MV_OK);
	ck_assert_uint_eq(skipped, 0);
}

static void
check_text(struct jtext t, const char *want)
{
	ck_assert_uint_eq(t.n, strlen(want));
	ck_assert(t.n == 0 || memcmp(t.p, want, t.n) == 0);
}

START_TEST(kinds)
{
	static const struct {
		enum list_kind kind;
		enum method method, changed;
		const char *member, *key;
	} rows[] = {
	    {LIST_TOOLS, METHOD_TOOLS_LIST, METHOD_N_TOOLS_CHANGED, "tools", "name"},
	    {LIST_PROMPTS, METHOD_PROMPTS_LIST, METHOD_N_PROMPTS_CHANGED, "prompts",
		"name"},
	    {LIST_RESOURCES, METHOD_RESOURCES_LIST, METHOD_N_RESOURCES_CHANGED,
		"resources", "uri"},
	    {LIST_TEMPLATES, METHOD_TEMPLATES_LIST, METHOD_N_RESOURCES_CHANGED,
		"resourceTemplates", "uriTemplate"},
	};

	ck_assert_uint_eq(sizeof(rows) / sizeof(rows[0]), LIST_MAX);
	for (unsigned i = 0; i < LIST_MAX; i++) {
		ck_assert_int_eq(list_method(rows[i].kind), rows[i].method);
		ck_assert_int_eq(list_changed_method(rows[i].kind), rows[i].changed);
		ck_assert_str_eq(list_member(rows[i].kind), rows[i].member);
		ck_assert_str_eq(list_key(rows[i].kind), rows[i].key);
		ck_assert_int_eq(list_kind_of(rows[i].method), rows[i].kind);
	}
	ck_assert_int_eq(list_kind_of(METHOD_TOOLS_CALL), LIST_MAX);
	ck_assert_int_eq(list_kind_of(METHOD_UNKNOWN), LIST_MAX);
}
END_TEST

START_TEST(bytes_are_kept)
{
	struct ulist l;
	struct jtext cursor;
	unsigned skipped;

	ulist_init(&l, LIST_TOOLS);
	ck_assert_int_eq(add(&l,
			     "{\"nextCursor\":\"n\\u0031\",\"tools\":[ { \"a\" : 1.0 , "
			     "\"name\" : \"x\\u0079\" } ,{\"name\":\"z\"}]}",
			     &cursor, &skipped),
	    MV_OK);
	check_text(cursor, "\"n\\u0031\"");
	add_ok(&l, "{\"tools\":[{\"\\u006eame\":\"w\"}]}");
	ck_assert_uint_eq(l.n, 3);
	ck_assert_uint_eq(l.pages, 2);
	check_text(ulist_def(&l, 0), "{ \"a\" : 1.0 , \"name\" : \"x\\u0079\" }");
	check_text(ulist_name(&l, 0), "\"x\\u0079\"");
	check_text(ulist_def(&l, 1), "{\"name\":\"z\"}");
	check_text(ulist_name(&l, 1), "\"z\"");
	check_text(ulist_name(&l, 2), "\"w\"");
	ulist_fini(&l);
	ck_assert_uint_eq(l.n, 0);
	ck_assert_int_eq(l.kind, LIST_TOOLS);
	ck_assert_int_eq((int)l.ttl_ms, -1);
	ck_assert(!l.is_private && !l.is_known);
}
END_TEST

/* Equal lists are equal, however they were cut into pages. */
START_TEST(hash_is_of_the_definitions)
{
	static const char *const whole =
	    "{\"tools\":[{\"name\":\"a\"},{\"name\":\"b\"}]}";
	struct ulist a, b, c;

	ulist_init(&a, LIST_TOOLS);
	ulist_init(&b, LIST_TOOLS);
	ulist_init(&c, LIST_TOOLS);
	add_ok(&a, whole);
	add_ok(&b, "{\"tools\":[{\"name\":\"a\"}],\"ttlMs\":7,\"_meta\":{}}");
	ck_assert(a.hash != b.hash);
	add_ok(&b, "{\"tools\":[]}");
	add_ok(&b, "{\"tools\":[{\"name\":\"b\"}]}");
	ck_assert(a.hash == b.hash);
	add_ok(&c, "{\"tools\":[{\"name\":\"b\"},{\"name\":\"a\"}]}");
	ck_assert(a.hash != c.hash);
	ulist_fini(&a);
	ulist_fini(&b);
	ulist_fini(&c);
}
END_TEST

START_TEST(hash_is_of_every_byte)
{
	char text[33];

	for (size_t n = 0; n < sizeof(text); n++) {
		uint64_t h;

		memset(text, 'x', sizeof(text));
		h = ulist_hash(1, text, n);
		ck_assert(n == 0 || h != ulist_hash(1, text, n - 1));
		ck_assert(h != ulist_hash(2, text, n));
		for (size_t i = 0; i < n; i++) {
			text[i] = 'y';
			ck_assert(h != ulist_hash(1, text, n));
			text[i] = 'x';
		}
	}
}
END_TEST

START_TEST(entries_without_a_name_are_left_out)
{
	struct ulist l;
	struct jtext cursor;
	unsigned skipped;

	ulist_init(&l, LIST_RESOURCES);
	ck_assert_int_eq(
	    add(&l,
		"{\"resources\":[1,null,[],\"x\",{},{\"name\":\"n\"},{\"uri\":7},"
		"{\"uri\":\"\"},{\"uri\":null},{\"uri\":\"file:///a\"},"
		"{\"uri\":\"x:1\",\"uri\":\"x:2\"},"
		"{\"uri\":\"x:1\",\"\\u0055ri\":\"x:2\"}],"
		"\"nextCursor\":null}",
		&cursor, &skipped),
	    MV_OK);
	ck_assert_uint_eq(cursor.n, 0);
	ck_assert_uint_eq(skipped, 11);
	ck_assert_uint_eq(l.n, 1);
	check_text(ulist_name(&l, 0), "\"file:///a\"");
	ulist_fini(&l);
}
END_TEST

static char *
page_of_name(size_t name_len)
{
	static const char head[] = "{\"tools\":[{\"name\":\"";
	size_t n = sizeof(head) - 1 + name_len;
	char *text = mem_xalloc(n + 5);

	memset(text, 'x', n);
	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + n, "\"}]}", 5);
	return text;
}

START_TEST(names_are_bounded)
{
	struct ulist l;
	struct jtext cursor;
	unsigned skipped;
	char *fits = page_of_name(CAP_URI_BYTES - 2);
	char *over = page_of_name(CAP_URI_BYTES - 1);

	ulist_init(&l, LIST_TOOLS);
	add_ok(&l, fits);
	ck_assert_int_eq(add(&l, over, &cursor, &skipped), MV_OK);
	ck_assert_uint_eq(skipped, 1);
	ck_assert_uint_eq(l.n, 1);
	ulist_fini(&l);
	mem_free(fits);
	mem_free(over);
}
END_TEST

START_TEST(results_that_are_no_page)
{
	static const char *const pages[] = {"{}", "{\"tools\":{}}", "{\"tools\":null}",
	    "{\"Tools\":[]}", "{\"prompts\":[]}"};
	struct ulist l;
	struct jtext cursor;
	unsigned skipped;

	ulist_init(&l, LIST_TOOLS);
	ck_assert_int_eq(add(&l, pages[_i], &cursor, &skipped), MV_PROTOCOL);
	ck_assert_uint_eq(l.pages, 0);
	ulist_fini(&l);
}
END_TEST

START_TEST(cursors)
{
	static const struct {
		const char *member, *cursor;
	} rows[] = {
	    {"\"x\":1", ""},
	    {"\"nextCursor\":\"\"", "\"\""},
	    {"\"nextCursor\":7", ""},
	    {"\"nextCursor\":{}", ""},
	    {"\"nextCursor\":\"a b\"", "\"a b\""},
	};
	struct ulist l;
	struct jtext cursor;
	unsigned skipped;
	char page[128];

	ulist_init(&l, LIST_TOOLS);
	(void)snprintf(page, sizeof(page), "{\"tools\":[],%s}", rows[_i].member);
	ck_assert_int_eq(add(&l, page, &cursor, &skipped), MV_OK);
	check_text(cursor, rows[_i].cursor);
	ulist_fini(&l);
}
END_TEST

/* The smallest ttl and the narrowest scope of all pages hold for the whole. */
START_TEST(hints)
{
	static const struct {
		const char *pages[3];
		int ttl;
		bool is_private;
	} rows[] = {
	    {{"{\"tools\":[]}"}, -1, true},
	    {{"{\"tools\":[],\"ttlMs\":5000,\"cacheScope\":\"public\"}"}, 5000, false},
	    {{"{\"tools\":[],\"ttlMs\":5000,\"cacheScope\":\"private\"}"}, 5000, true},
	    {{"{\"tools\":[],\"ttlMs\":5000}"}, 5000, true},
	    {{"{\"tools\":[],\"ttlMs\":-5,\"cacheScope\":\"public\"}"}, 0, false},
	    {{"{\"tools\":[],\"ttlMs\":\"5\",\"cacheScope\":\"PUBLIC\"}"}, -1, true},
	    {{"{\"tools\":[],\"ttlMs\":9,\"cacheScope\":\"public\"}",
		 "{\"tools\":[],\"ttlMs\":7,\"cacheScope\":\"public\"}",
		 "{\"tools\":[],\"ttlMs\":8,\"cacheScope\":\"public\"}"},
		7, false},
	    {{"{\"tools\":[],\"ttlMs\":9,\"cacheScope\":\"public\"}",
		 "{\"tools\":[],\"cacheScope\":\"private\"}",
		 "{\"tools\":[],\"ttlMs\":8,\"cacheScope\":\"public\"}"},
		-1, true},
	};
	struct ulist l;

	ulist_init(&l, LIST_TOOLS);
	for (int i = 0; i < 3 && rows[_i].pages[i] != NULL; i++)
		add_ok(&l, rows[_i].pages[i]);
	ck_assert_int_eq((int)l.ttl_ms, rows[_i].ttl);
	ck_assert_int_eq(l.is_private, rows[_i].is_private);
	ulist_fini(&l);
}
END_TEST

START_TEST(pages_are_bounded)
{
	struct ulist l;
	struct jtext cursor;
	unsigned skipped;

	ulist_init(&l, LIST_TOOLS);
	for (unsigned i = 0; i < CAP_LIST_PAGES; i++)
		add_ok(&l, "{\"tools\":[{\"name\":\"a\"}]}");
	ck_assert_int_eq(add(&l, "{\"tools\":[{\"name\":\"a\"}],\"nextCursor\":\"x\"}",
			     &cursor, &skipped),
	    MV_TOO_LONG);
	ck_assert_uint_eq(cursor.n, 0);
	ck_assert_uint_eq(l.n, CAP_LIST_PAGES);
	ulist_fini(&l);
}
END_TEST

START_TEST(items_are_bounded)
{
	struct ulist l;
	struct jtext cursor;
	unsigned skipped;
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"nextCursor\":\"x\",\"tools\":[{\"name\":\"a\"}");
	for (unsigned i = 0; i < CAP_LIST_ITEMS; i++)
		buf_add_str(&b, ",{\"name\":\"a\"}");
	buf_add_str(&b, "]}");
	ulist_init(&l, LIST_TOOLS);
	ck_assert_int_eq(add(&l, buf_cstr(&b), &cursor, &skipped), MV_TOO_LONG);
	ck_assert_uint_eq(cursor.n, 0);
	ck_assert_uint_eq(l.n, CAP_LIST_ITEMS);
	check_text(ulist_def(&l, l.n - 1), "{\"name\":\"a\"}");
	ulist_fini(&l);
	buf_fini(&b);
}
END_TEST

START_TEST(bytes_are_bounded)
{
	struct ulist l;
	struct jtext cursor;
	unsigned skipped;
	struct buf b;

	/* Sixteen entries that come to a little more than is allowed. */
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"tools\":[{\"name\":\"a\",\"x\":\"");
	for (unsigned i = 0; i < CAP_LIST_BYTES / 16 / 64; i++)
		buf_add_str(&b, "0123456789abcdef0123456789abcdef0123456789abcdef01234567"
				"89abcdef");
	buf_add_str(&b, "\"}]}");
	ulist_init(&l, LIST_TOOLS);
	for (unsigned i = 0; i < 15; i++)
		add_ok(&l, buf_cstr(&b));
	ck_assert_int_eq(add(&l, buf_cstr(&b), &cursor, &skipped), MV_TOO_LONG);
	ck_assert_uint_eq(l.n, 15);
	ulist_fini(&l);
	buf_fini(&b);
}
END_TEST

/* Those of a text that was kept come without a page around them. */
START_TEST(single_definitions)
{
	static const char *const bad[] = {"{}", "[]", "{\"name\":1}", "{\"name\":\"\"}",
	    "{\"name\":\"a\",\"NAME\":\"b\"}"};
	struct jtext good = {"{\"name\":\"a\"}", 12};
	struct ulist l;

	ulist_init(&l, LIST_TOOLS);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct jtext def = {bad[i], strlen(bad[i])};

		ck_assert_int_eq(ulist_add_def(&l, def), MV_PROTOCOL);
	}
	ck_assert_uint_eq(l.n, 0);
	ck_assert_int_eq(ulist_add_def(&l, good), MV_OK);
	ck_assert_int_eq(ulist_add_def(&l, good), MV_OK);
	ck_assert_uint_eq(l.n, 2);
	ck_assert_uint_eq(ulist_name(&l, 1).n, 3);
	ck_assert_uint_eq(ulist_def(&l, 1).n, 12);
	ulist_fini(&l);
}
END_TEST

START_TEST(memory_is_short)
{
	struct jtext cursor;
	unsigned skipped;

	for (unsigned long nth = 1; nth <= 2; nth++) {
		struct ulist l;

		ulist_init(&l, LIST_TOOLS);
		mem_fail_at(nth, 0);
		ck_assert_int_eq(
		    add(&l, "{\"tools\":[{\"name\":\"a\"}]}", &cursor, &skipped),
		    MV_NOMEM);
		mem_fail_at(0, 0);
		ck_assert_uint_eq(l.n, 0);
		ulist_fini(&l);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("ulist");
	TCase *tc = tcase_create("ulist");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, kinds);
	tcase_add_test(tc, bytes_are_kept);
	tcase_add_test(tc, hash_is_of_the_definitions);
	tcase_add_test(tc, hash_is_of_every_byte);
	tcase_add_test(tc, entries_without_a_name_are_left_out);
	tcase_add_test(tc, names_are_bounded);
	tcase_add_loop_test(tc, results_that_are_no_page, 0, 5);
	tcase_add_loop_test(tc, cursors, 0, 5);
	tcase_add_loop_test(tc, hints, 0, 8);
	tcase_add_test(tc, pages_are_bounded);
	tcase_add_test(tc, items_are_bounded);
	tcase_add_test(tc, bytes_are_bounded);
	tcase_add_test(tc, single_definitions);
	tcase_add_test(tc, memory_is_short);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
