/* layer: io */
/* SPDX-License-Identifier: MIT */
/* HMAC-SHA-256 against RFC 4231, truncation, and how strict base64 is. */
#include "mcpvisor/mac.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* SHA-256 of the 131 bytes aa that cases 6 and 7 have as their key: what HMAC makes of
 * a key longer than a block. */
#define LONG_KEY                                                                         \
	"\x45\xad\x4b\x37\xc6\xe2\xfc\x0a\x2c\xfc\xc1\xb5\xda\x52\x41\x32"               \
	"\xec\x70\x76\x15\xc2\xca\xe1\xdb\xbc\x43\xc9\x7a\xa5\x21\xdb\x81"
#define X10(s) s s s s s s s s s s

/* RFC 4231 section 4. Keys there are shorter than ours; HMAC fills with zeros. */
static const struct {
	const char *key, *data, *hex;
} vectors[] = {
    {X10("\x0b") X10("\x0b"), "Hi There",
	"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
    {"Jefe", "what do ya want for nothing?",
	"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
    {X10("\xaa") X10("\xaa"), X10("\xdd\xdd\xdd\xdd\xdd"),
	"773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
    {"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14"
     "\x15\x16\x17\x18\x19",
	X10("\xcd\xcd\xcd\xcd\xcd"),
	"82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
    {X10("\x0c") X10("\x0c"), "Test With Truncation", "a3b6167473100ee06e0c796c2955552b"},
    {LONG_KEY, "Test Using Larger Than Block-Size Key - Hash Key First",
	"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    {LONG_KEY,
	"This is a test using a larger than block-size key and a larger than "
	"block-size data. The key needs to be hashed before being used by the HMAC "
	"algorithm.",
	"9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
};

static struct mac_key
key_of(const char *s)
{
	struct mac_key k = {{0}};
	size_t n = strlen(s);

	ck_assert_uint_le(n, sizeof(k.bytes));
	memcpy(k.bytes, s, n);
	return k;
}

static size_t
unhex(const char *hex, unsigned char *out)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		char two[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

		out[i] = (unsigned char)strtoul(two, NULL, 16);
	}
	return n;
}

START_TEST(signs_as_rfc_4231)
{
	struct mac_key k = key_of(vectors[_i].key);
	const char *data = vectors[_i].data;
	unsigned char own[MAC_BYTES], want[MAC_BYTES];
	size_t n = unhex(vectors[_i].hex, want);

	mac_sign(&k, data, strlen(data), own);
	ck_assert_mem_eq(own, want, n);
	ck_assert(mac_verify(&k, data, strlen(data), want, n));
}
END_TEST

START_TEST(refuses_what_differs)
{
	static const char data[] = "what it says";
	struct mac_key k, other;
	unsigned char mac[MAC_BYTES + 1] = {0};

	mac_key_random(&k);
	mac_key_random(&other);
	ck_assert_mem_ne(k.bytes, other.bytes, MAC_KEY_BYTES);
	mac_sign(&k, data, sizeof(data), mac);
	for (size_t n = 0; n <= sizeof(mac); n++)
		ck_assert_int_eq(mac_verify(&k, data, sizeof(data), mac, n),
		    n >= 16 && n <= MAC_BYTES);
	ck_assert(!mac_verify(&other, data, sizeof(data), mac, MAC_BYTES));
	ck_assert(!mac_verify(&k, data, sizeof(data) - 1, mac, MAC_BYTES));
	for (size_t i = 0; i < MAC_BYTES; i++) {
		mac[i] ^= 0x80;
		ck_assert(!mac_verify(&k, data, sizeof(data), mac, MAC_BYTES));
		ck_assert_int_eq(mac_verify(&k, data, sizeof(data), mac, 16), i >= 16);
		mac[i] ^= 0x80;
	}
}
END_TEST

START_TEST(signs_nothing_at_all)
{
	struct mac_key k = key_of("");
	unsigned char mac[MAC_BYTES], want[MAC_BYTES];

	unhex("b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad", want);
	mac_sign(&k, NULL, 0, mac);
	ck_assert_mem_eq(mac, want, MAC_BYTES);
}
END_TEST

START_TEST(wipes)
{
	struct mac_key k, zero = {{0}};

	mac_key_random(&k);
	ck_assert_mem_ne(k.bytes, zero.bytes, MAC_KEY_BYTES);
	mac_key_wipe(&k);
	ck_assert_mem_eq(k.bytes, zero.bytes, MAC_KEY_BYTES);
}
END_TEST

/* RFC 4648 section 10, and the digits in which the alphabets differ. */
static const struct {
	const char *plain, *url, *standard;
} texts[] = {
    {"", "", ""},
    {"f", "Zg", "Zg=="},
    {"fo", "Zm8", "Zm8="},
    {"foo", "Zm9v", "Zm9v"},
    {"foob", "Zm9vYg", "Zm9vYg=="},
    {"fooba", "Zm9vYmE", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
    {"\xfb\xff\xbf", "-_-_", "+/+/"},
    {"Hello, \xe4\xb8\x96\xe7\x95\x8c", "SGVsbG8sIOS4lueVjA", "SGVsbG8sIOS4lueVjA=="},
};

static void
assert_took(struct buf *b, const char *want)
{
	ck_assert_str_eq(buf_cstr(b), want);
	buf_fini(b);
}

START_TEST(base64_goes_there_and_back)
{
	const char *plain = texts[_i].plain, *url = texts[_i].url;
	const char *standard = texts[_i].standard;
	struct buf b;

	buf_init(&b, 100);
	base64url_put(&b, plain, strlen(plain));
	assert_took(&b, url);
	ck_assert(base64url_take(&b, url, strlen(url)));
	assert_took(&b, plain);
	base64_put(&b, plain, strlen(plain));
	assert_took(&b, standard);
	ck_assert(base64_take(&b, standard, strlen(standard)));
	assert_took(&b, plain);
}
END_TEST

START_TEST(base64_takes_any_bytes)
{
	unsigned char bytes[64];
	struct buf text, back;

	srand(11);
	buf_init(&text, 200);
	buf_init(&back, 200);
	for (int round = 0; round < 500; round++) {
		size_t n = (size_t)rand() % sizeof(bytes);

		for (size_t i = 0; i < n; i++)
			bytes[i] = (unsigned char)rand();
		buf_reset(&text);
		buf_reset(&back);
		base64url_put(&text, bytes, n);
		ck_assert(base64url_take(&back, text.data, text.len));
		ck_assert_uint_eq(back.len, n);
		if (n > 0)
			ck_assert_mem_eq(back.data, bytes, n);
	}
	buf_fini(&text);
	buf_fini(&back);
}
END_TEST

/* Which of the two refuses it. */
static const struct {
	const char *text;
	size_t n;
	bool standard, url;
} refused[] = {
#define T(s, standard, url)                                                              \
	{                                                                                \
		s, sizeof(s) - 1, standard, url                                          \
	}
    T("Z", true, true),
    T("Zm9vY", true, true),
    T("Zg", true, false), /* no padding */
    T("Zg=", true, true), /* half of it */
    T("Zg==", false, true),
    T("Zg===", true, true),
    T("Zm9v====", true, true),
    T("====", true, true),
    T("=", true, true),
    T("Z===", true, true),
    T("Zh==", true, true), /* bits that no byte has */
    T("Zm9=", true, true),
    T("Zh", true, true),
    T("Zm9", true, true),
    T("Zm8=Zm8=", true, true), /* padding inside */
    T("Zg==Zg==", true, true),
    T("Z=g=", true, true),
    T("-_-_", true, false), /* the other alphabet */
    T("+/+/", false, true),
    T("Zm9v\n", true, true), /* white space */
    T(" Zm9v", true, true),
    T("Zm 9", true, true),
    T("Zm9\0", true, true),
    T("Zm9\xc3", true, true),
    T("Zm9*", true, true),
#undef T
};

START_TEST(base64_is_strict)
{
	const char *text = refused[_i].text;
	size_t n = refused[_i].n;
	struct buf b;

	buf_init(&b, 100);
	buf_add_str(&b, "kept");
	if (refused[_i].standard)
		ck_assert(!base64_take(&b, text, n));
	if (refused[_i].url)
		ck_assert(!base64url_take(&b, text, n));
	assert_took(&b, "kept");
}
END_TEST

START_TEST(base64_stays_within_bounds)
{
	struct buf b;

	/* No byte more is needed than there are. */
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		buf_init(&b, strlen(texts[i].plain));
		ck_assert(base64url_take(&b, texts[i].url, strlen(texts[i].url)));
		assert_took(&b, texts[i].plain);
		ck_assert(base64_take(&b, texts[i].standard, strlen(texts[i].standard)));
		assert_took(&b, texts[i].plain);
	}
	buf_init(&b, 4);
	ck_assert(!base64_take(&b, "Zm9vYmFy", 8));
	ck_assert_uint_eq(b.len, 0);
	ck_assert_int_eq(b.err, MV_TOO_LONG);
	buf_fini(&b);
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof((table)[0]))

int
main(void)
{
	Suite *s = suite_create("mac");
	TCase *tc = tcase_create("mac");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, signs_as_rfc_4231, 0, ROWS(vectors));
	tcase_add_test(tc, refuses_what_differs);
	tcase_add_test(tc, signs_nothing_at_all);
	tcase_add_test(tc, wipes);
	tcase_add_loop_test(tc, base64_goes_there_and_back, 0, ROWS(texts));
	tcase_add_test(tc, base64_takes_any_bytes);
	tcase_add_loop_test(tc, base64_is_strict, 0, ROWS(refused));
	tcase_add_test(tc, base64_stays_within_bounds);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
