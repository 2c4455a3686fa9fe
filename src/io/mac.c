/* SPDX-License-Identifier: MIT */
/*
 * Keyed digests and the base64 text of bytes, over OpenSSL.
 *
 * Owns: nothing; the key is the caller's.
 * Driven by: whoever hands a client something that has to come back unchanged.
 * Invariants: digests are compared in constant time; each byte string has exactly one
 * base64 text, so nothing that was signed as text can be written a second way.
 */
#include "mcpvisor/mac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#define MAC_LEAST_BYTES 16

struct mac_alphabet {
	const char *digits;
	bool padded;
};

static const struct mac_alphabet alphabet_url = {
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", false};
static const struct mac_alphabet alphabet_standard = {
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", true};

void
mac_key_random(struct mac_key *k)
{
	MCPVISOR_ASSERT(RAND_priv_bytes(k->bytes, MAC_KEY_BYTES) == 1);
}

void
mac_key_wipe(struct mac_key *k)
{
	OPENSSL_cleanse(k->bytes, sizeof(k->bytes));
}

void
mac_sign(const struct mac_key *k, const void *p, size_t n, unsigned char out[MAC_BYTES])
{
	unsigned int len = 0;

	MCPVISOR_ASSERT(
	    HMAC(EVP_sha256(), k->bytes, MAC_KEY_BYTES, p, n, out, &len) != NULL);
	MCPVISOR_ASSERT(len == MAC_BYTES);
}

bool
mac_verify(const struct mac_key *k, const void *p, size_t n, const unsigned char *mac,
    size_t n_mac)
{
	unsigned char own[MAC_BYTES];

	if (n_mac < MAC_LEAST_BYTES || n_mac > MAC_BYTES)
		return false;
	mac_sign(k, p, n, own);
	return CRYPTO_memcmp(own, mac, n_mac) == 0;
}

static void
base64_put_digits(const char *digits, struct buf *out, const void *p, size_t n)
{
	const unsigned char *in = p;
	uint32_t bits = 0;
	unsigned held = 0;

	for (size_t i = 0; i < n; i++) {
		bits = bits << 8 | in[i];
		for (held += 8; held >= 6; held -= 6)
			buf_add_char(out, digits[bits >> (held - 6) & 63]);
	}
	if (held > 0)
		buf_add_char(out, digits[bits << (6 - held) & 63]);
}

void
base64url_put(struct buf *out, const void *p, size_t n)
{
	base64_put_digits(alphabet_url.digits, out, p, n);
}

void
base64_put(struct buf *out, const void *p, size_t n)
{
	base64_put_digits(alphabet_standard.digits, out, p, n);
	for (size_t used = n; used % 3 != 0; used++)
		buf_add_char(out, '=');
}

static int
base64_value(const struct mac_alphabet *a, char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == a->digits[62])
		return 62;
	return c == a->digits[63] ? 63 : -1;
}

/* Takes the digits alone. Bits left over at the end must be zero, or two texts would
 * stand for the same bytes. */
static bool
base64_take_digits(const struct mac_alphabet *a, struct buf *out, const char *p, size_t n)
{
	size_t start = out->len;
	uint32_t bits = 0;
	unsigned held = 0;
	int v = 0;

	if (n % 4 == 1 || buf_reserve(out, n / 4 * 3 + n % 4 * 3 / 4) != MV_OK)
		return false;
	for (size_t i = 0; i < n && v >= 0; i++) {
		v = base64_value(a, p[i]);
		bits = bits << 6 | ((uint32_t)v & 63);
		held += 6;
		if (held >= 8) {
			held -= 8;
			buf_add_char(out, (char)(bits >> held & 0xff));
		}
	}
	if (v >= 0 && (bits & ((1U << held) - 1)) == 0)
		return true;
	out->len = start;
	return false;
}

bool
base64url_take(struct buf *out, const char *p, size_t n)
{
	return base64_take_digits(&alphabet_url, out, p, n);
}

bool
base64_take(struct buf *out, const char *p, size_t n)
{
	size_t pad = 0;

	if (n % 4 != 0)
		return false;
	while (pad < 2 && pad < n && p[n - 1 - pad] == '=')
		pad++;
	return base64_take_digits(&alphabet_standard, out, p, n - pad);
}
