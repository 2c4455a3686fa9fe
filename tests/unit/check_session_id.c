/* layer: front */
/* SPDX-License-Identifier: MIT */
/* Ids of legacy HTTP sessions: what comes back, what is refused and as what. */
#include "mcpvisor/session_id.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW   1800000000
#define UNTIL 1800003600

static const struct mac_key key = {{1, 2, 3, 4, 5}};

static struct session_id
sample(void)
{
	struct session_id s = {
	    .revision = REVISION_2025_11_25,
	    .caps_mask = 0x80000005U,
	    .start_s = NOW,
	    .expires_s = UNTIL,
	    .serial = 0xfedcba9876543210ULL,
	};

	session_id_set_client(&s, "claude", 6);
	ck_assert(session_id_set_principal(&s, "uid:1000", 8));
	return s;
}

/* The caller ends it with buf_fini. */
static struct buf
text_of(const struct session_id *s)
{
	struct buf b;

	buf_init(&b, 1024);
	session_id_put(s, &key, &b);
	ck_assert_int_eq(b.err, MV_OK);
	return b;
}

static enum session_id_verdict
parse(const char *text, size_t n)
{
	struct session_id s;

	return session_id_parse(text, n, &key, NOW + 1, &s);
}

static void
assert_same(const struct session_id *a, const struct session_id *b)
{
	ck_assert_int_eq(a->revision, b->revision);
	ck_assert_uint_eq(a->caps_mask, b->caps_mask);
	ck_assert_str_eq(a->client, b->client);
	ck_assert_str_eq(a->principal, b->principal);
	ck_assert_uint_eq(a->start_s, b->start_s);
	ck_assert_uint_eq(a->expires_s, b->expires_s);
	ck_assert_uint_eq(a->serial, b->serial);
}

static void
assert_comes_back(const struct session_id *s)
{
	struct buf text = text_of(s);
	struct session_id back;

	ck_assert_uint_le(text.len, SESSION_ID_TEXT_MAX);
	for (size_t i = 0; i < text.len; i++)
		ck_assert(text.data[i] > 0x20 && text.data[i] < 0x7f);
	ck_assert_int_eq(
	    session_id_parse(text.data, text.len, &key, NOW, &back), SESSION_ID_OK);
	assert_same(s, &back);
	buf_fini(&text);
}

START_TEST(comes_back_in_each_revision)
{
	struct session_id s = sample();

	s.revision = (enum revision)_i;
	assert_comes_back(&s);
}
END_TEST

START_TEST(comes_back_smallest_and_largest)
{
	struct session_id s = {.revision = REVISION_2025_03_26, .expires_s = NOW + 1};
	char fill[SESSION_ID_PRINCIPAL_MAX];

	assert_comes_back(&s);
	memset(fill, 'x', sizeof(fill));
	session_id_set_client(&s, fill, SESSION_ID_CLIENT_MAX);
	ck_assert(session_id_set_principal(&s, fill, sizeof(fill)));
	s.caps_mask = ~0U;
	s.start_s = s.expires_s = s.serial = UINT64_MAX;
	ck_assert_uint_eq(strlen(s.client), SESSION_ID_CLIENT_MAX);
	ck_assert_uint_eq(strlen(s.principal), SESSION_ID_PRINCIPAL_MAX);
	assert_comes_back(&s);
}
END_TEST

/* What another process wrote: the format is for keeping. */
START_TEST(reads_what_was_written_before)
{
	static const char text[] = "AQE1AfWAAAAFAAAAAGtJ0gAAAAAAa0ngEP7cuph2VDIQ"
				   "BmNsYXVkZQh1aWQ6MTAwMIMmue6mTGqvkeRjZNEd6kE";
	struct session_id s = sample(), back;
	struct buf b = text_of(&s);

	ck_assert_str_eq(buf_cstr(&b), text);
	buf_fini(&b);
	ck_assert_int_eq(
	    session_id_parse(text, strlen(text), &key, NOW, &back), SESSION_ID_OK);
	assert_same(&s, &back);
}
END_TEST

#define A10 "aaaaaaaaaa"
#define A60 A10 A10 A10 A10 A10 A10

static const struct {
	const char *name;
	size_t n;
	const char *kept;
} names[] = {
#define N(s, kept)                                                                       \
	{                                                                                \
		s, sizeof(s) - 1, kept                                                   \
	}
    N("", ""),
    N("claude", "claude"),
    N(A60 "aaaa", A60 "aaaa"),
    N(A60 "aaaab", A60 "aaaa"),
    N(A60 A60, A60 "aaaa"),
    /* Characters of two, three and four bytes around the limit. */
    N(A60 "aa\xc3\xa4", A60 "aa\xc3\xa4"),
    N(A60 "aaa\xc3\xa4", A60 "aaa"),
    N(A60 "a\xe4\xb8\x96", A60 "a\xe4\xb8\x96"),
    N(A60 "aa\xe4\xb8\x96", A60 "aa"),
    N(A60 "aaa\xe4\xb8\x96z", A60 "aaa"),
    N(A60 "\xf0\x9f\x98\x80z", A60 "\xf0\x9f\x98\x80"),
    N(A60 "a\xf0\x9f\x98\x80", A60 "a"),
    N(A60 "aaa\xf0\x9f\x98\x80", A60 "aaa"),
    N("a\0b", "a"),
#undef N
};

START_TEST(cuts_a_name_at_a_character)
{
	struct session_id s = sample();

	session_id_set_client(&s, names[_i].name, names[_i].n);
	ck_assert_str_eq(s.client, names[_i].kept);
	assert_comes_back(&s);
}
END_TEST

START_TEST(never_cuts_a_principal)
{
	char fill[SESSION_ID_PRINCIPAL_MAX + 1];
	struct session_id s = sample();

	memset(fill, 'x', sizeof(fill));
	ck_assert(!session_id_set_principal(&s, fill, sizeof(fill)));
	ck_assert(!session_id_set_principal(&s, "a\0b", 3));
	ck_assert_str_eq(s.principal, "uid:1000");
}
END_TEST

START_TEST(refuses_any_altered_character)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ .";
	struct session_id s = sample();
	struct buf text = text_of(&s);

	for (size_t i = 0; i < text.len; i++) {
		char was = text.data[i];

		for (const char *c = digits; *c != '\0'; c++) {
			text.data[i] = *c;
			ck_assert_int_eq(
			    parse(text.data, text.len) == SESSION_ID_OK, *c == was);
		}
		text.data[i] = was;
	}
	ck_assert_int_eq(parse(text.data, text.len), SESSION_ID_OK);
	buf_fini(&text);
}
END_TEST

START_TEST(refuses_any_other_length)
{
	struct session_id s = sample();
	struct buf text = text_of(&s);
	size_t n = text.len;

	for (size_t i = 0; i < n; i++)
		ck_assert_int_ne(parse(text.data, i), SESSION_ID_OK);
	for (size_t i = 1; i < n; i++)
		ck_assert_int_ne(parse(text.data + i, n - i), SESSION_ID_OK);
	for (int i = 0; i < 8; i++) {
		buf_add_char(&text, 'A');
		ck_assert_int_ne(parse(text.data, text.len), SESSION_ID_OK);
	}
	buf_fini(&text);
}
END_TEST

START_TEST(tells_why)
{
	struct session_id s = sample(), back;
	struct buf text = text_of(&s);
	struct mac_key other = key;
	char longest[SESSION_ID_TEXT_MAX + 1];

	memset(longest, 'A', sizeof(longest));
	ck_assert_int_eq(parse("", 0), SESSION_ID_LENGTH);
	ck_assert_int_eq(parse(longest, sizeof(longest)), SESSION_ID_LENGTH);
	ck_assert_int_eq(parse(longest, sizeof(longest) - 1), SESSION_ID_FOREIGN);
	ck_assert_int_eq(parse("A", 1), SESSION_ID_MALFORMED);
	ck_assert_int_eq(parse("AQ", 2), SESSION_ID_MALFORMED);
	ck_assert_int_eq(parse("Ag", 2), SESSION_ID_FOREIGN);
	ck_assert_int_eq(parse("6f1ed002-ab5c", 13), SESSION_ID_MALFORMED);
	ck_assert_int_eq(parse("not an id", 9), SESSION_ID_MALFORMED);

	other.bytes[MAC_KEY_BYTES - 1] ^= 1;
	ck_assert_int_eq(
	    session_id_parse(text.data, text.len, &other, NOW, &back), SESSION_ID_FORGED);
	ck_assert_int_eq(back.revision, REVISION_NONE);
	text.data[text.len - 4] ^= 1;
	ck_assert_int_eq(parse(text.data, text.len), SESSION_ID_FORGED);
	buf_fini(&text);
}
END_TEST

START_TEST(expires)
{
	struct session_id s = sample(), back;
	struct buf text = text_of(&s);

	ck_assert_int_eq(
	    session_id_parse(text.data, text.len, &key, UNTIL - 1, &back), SESSION_ID_OK);
	ck_assert_int_eq(session_id_parse(text.data, text.len, &key, UNTIL, &back),
	    SESSION_ID_EXPIRED);
	assert_same(&s, &back);
	ck_assert_int_eq(session_id_parse(text.data, text.len, &key, UINT64_MAX, &back),
	    SESSION_ID_EXPIRED);
	/* A clock that was set back. */
	ck_assert_int_eq(
	    session_id_parse(text.data, text.len, &key, 0, &back), SESSION_ID_OK);
	buf_fini(&text);
}
END_TEST

START_TEST(sessions_of_one_second_differ)
{
	struct session_id s = sample();
	struct buf a = text_of(&s), b;

	s.serial++;
	b = text_of(&s);
	ck_assert_str_ne(buf_cstr(&a), buf_cstr(&b));
	buf_fini(&a);
	buf_fini(&b);
}
END_TEST

START_TEST(has_a_text_for_each_verdict)
{
	for (int v = 0; v <= SESSION_ID_MAX; v++)
		ck_assert_str_ne(session_id_verdict_text((enum session_id_verdict)v), "");
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof((table)[0]))

int
main(void)
{
	Suite *s = suite_create("session_id");
	TCase *tc = tcase_create("session_id");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(
	    tc, comes_back_in_each_revision, REVISION_NONE + 1, REVISION_MAX);
	tcase_add_test(tc, comes_back_smallest_and_largest);
	tcase_add_test(tc, reads_what_was_written_before);
	tcase_add_loop_test(tc, cuts_a_name_at_a_character, 0, ROWS(names));
	tcase_add_test(tc, never_cuts_a_principal);
	tcase_add_test(tc, refuses_any_altered_character);
	tcase_add_test(tc, refuses_any_other_length);
	tcase_add_test(tc, tells_why);
	tcase_add_test(tc, expires);
	tcase_add_test(tc, sessions_of_one_second_differ);
	tcase_add_test(tc, has_a_text_for_each_verdict);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
