/* SPDX-License-Identifier: MIT */
/*
 * Self-contained ids of legacy HTTP sessions.
 *
 * Owns: nothing. Driven by: the HTTP endpoint, at initialize and at each request.
 * Invariants: what parses was written with this key by this format, byte for byte; the
 * text of an id is unique (base64url is strict, no byte is ignored), so a tombstone
 * that is keyed by it cannot be walked around.
 *
 * Format, before base64url; numbers are big-endian:
 *   1 version | 4 revision as a number (20251125) | 4 mask | 8 start | 8 expiry |
 *   8 serial | 1 + n client | 1 + n principal | 16 of HMAC-SHA-256
 * Revisions are written as dates because the values of the enum are not for keeping.
 */
#include "mcpvisor/session_id.h"

#include "mcpvisor/utf8.h"

#include <stdio.h>
#include <string.h>

#define ID_VERSION   1
#define ID_MAC_BYTES 16
#define ID_BYTES_MAX                                                                     \
	(1 + 4 + 4 + 8 + 8 + 8 + 1 + SESSION_ID_CLIENT_MAX + 1 +                         \
	    SESSION_ID_PRINCIPAL_MAX + ID_MAC_BYTES)

/* Signed with the bytes: the key may sign other things too. */
static const char id_purpose[] = "mcpvisor session id";

_Static_assert((ID_BYTES_MAX * 4 + 2) / 3 <= SESSION_ID_TEXT_MAX, "an id fits its text");
_Static_assert(SESSION_ID_PRINCIPAL_MAX <= 255, "lengths are one byte");

struct id_reader {
	const unsigned char *p, *end;
	bool short_of; /* something was missing */
};

const char *
session_id_verdict_text(enum session_id_verdict v)
{
	static const char *const texts[] = {
#define X(name, text) text,
	    SESSION_ID_TABLE(X)
#undef X
	};

	return (unsigned)v < SESSION_ID_MAX ? texts[v] : texts[SESSION_ID_MALFORMED];
}

void
session_id_set_client(struct session_id *s, const char *name, size_t n)
{
	n = utf8_cut(name, strnlen(name, n), SESSION_ID_CLIENT_MAX);
	memset(s->client, 0, sizeof(s->client));
	memcpy(s->client, name, n);
}

bool
session_id_set_principal(struct session_id *s, const char *p, size_t n)
{
	if (n > SESSION_ID_PRINCIPAL_MAX || strnlen(p, n) != n)
		return false;
	memset(s->principal, 0, sizeof(s->principal));
	memcpy(s->principal, p, n);
	return true;
}

/* 2025-11-25 as 20251125. */
static uint32_t
id_date_of(enum revision r)
{
	uint32_t date = 0;

	for (const char *p = revision_text(r); *p != '\0'; p++) {
		if (*p != '-')
			date = date * 10 + (uint32_t)(*p - '0');
	}
	return date;
}

static enum revision
id_revision_of(uint64_t date)
{
	for (int r = REVISION_NONE + 1; r < REVISION_MAX; r++) {
		if (id_date_of((enum revision)r) == date)
			return (enum revision)r;
	}
	return REVISION_NONE;
}

static void
id_put_number(struct buf *out, uint64_t v, unsigned bytes)
{
	while (bytes-- > 0)
		buf_add_char(out, (char)(v >> (8 * bytes) & 0xff));
}

static void
id_put_text(struct buf *out, const char *s, size_t max)
{
	size_t n = strnlen(s, max);

	id_put_number(out, n, 1);
	buf_add(out, s, n);
}

static uint64_t
id_get_number(struct id_reader *r, size_t bytes)
{
	uint64_t v = 0;

	if ((size_t)(r->end - r->p) < bytes) {
		r->short_of = true;
		return 0;
	}
	while (bytes-- > 0)
		v = v << 8 | *r->p++;
	return v;
}

static void
id_get_text(struct id_reader *r, char *s, size_t max)
{
	size_t n = id_get_number(r, 1);

	if (n > max || (size_t)(r->end - r->p) < n) {
		r->short_of = true;
		n = 0;
	}
	memset(s, 0, max + 1);
	memcpy(s, r->p, n);
	r->p += n;
}

/* What the digest is over: the purpose, then the bytes. */
static void
id_put_purpose(struct buf *out)
{
	buf_add(out, id_purpose, sizeof(id_purpose));
}

void
session_id_put(const struct session_id *s, const struct mac_key *k, struct buf *out)
{
	unsigned char mac[MAC_BYTES];
	struct buf b;

	buf_init(&b, sizeof(id_purpose) + ID_BYTES_MAX);
	id_put_purpose(&b);
	id_put_number(&b, ID_VERSION, 1);
	id_put_number(&b, id_date_of(s->revision), 4);
	id_put_number(&b, s->caps_mask, 4);
	id_put_number(&b, s->start_s, 8);
	id_put_number(&b, s->expires_s, 8);
	id_put_number(&b, s->serial, 8);
	id_put_text(&b, s->client, SESSION_ID_CLIENT_MAX);
	id_put_text(&b, s->principal, SESSION_ID_PRINCIPAL_MAX);
	if (b.err == MV_OK) {
		mac_sign(k, b.data, b.len, mac);
		buf_add(&b, mac, ID_MAC_BYTES);
	}
	if (b.err == MV_OK)
		base64url_put(
		    out, b.data + sizeof(id_purpose), b.len - sizeof(id_purpose));
	else
		out->err = b.err;
	buf_fini(&b);
}

static enum session_id_verdict
id_read(struct id_reader *r, uint64_t now_s, struct session_id *s)
{
	s->revision = id_revision_of(id_get_number(r, 4));
	s->caps_mask = (unsigned)id_get_number(r, 4);
	s->start_s = id_get_number(r, 8);
	s->expires_s = id_get_number(r, 8);
	s->serial = id_get_number(r, 8);
	id_get_text(r, s->client, SESSION_ID_CLIENT_MAX);
	id_get_text(r, s->principal, SESSION_ID_PRINCIPAL_MAX);
	if (r->short_of || r->p != r->end)
		return SESSION_ID_MALFORMED;
	if (s->revision == REVISION_NONE)
		return SESSION_ID_FOREIGN;
	return now_s >= s->expires_s ? SESSION_ID_EXPIRED : SESSION_ID_OK;
}

enum session_id_verdict
session_id_parse(const char *text, size_t n, const struct mac_key *k, uint64_t now_s,
    struct session_id *s)
{
	enum session_id_verdict verdict = SESSION_ID_MALFORMED;
	const unsigned char *bytes;
	struct buf b;
	size_t signed_len;

	*s = (struct session_id){.revision = REVISION_NONE};
	if (n == 0 || n > SESSION_ID_TEXT_MAX)
		return SESSION_ID_LENGTH;
	buf_init(&b, sizeof(id_purpose) + SESSION_ID_TEXT_MAX);
	id_put_purpose(&b);
	if (!base64url_take(&b, text, n))
		goto out;
	bytes = (const unsigned char *)b.data + sizeof(id_purpose);
	if (bytes[0] != ID_VERSION) {
		verdict = SESSION_ID_FOREIGN;
		goto out;
	}
	if (b.len < sizeof(id_purpose) + 1 + ID_MAC_BYTES)
		goto out;
	signed_len = b.len - ID_MAC_BYTES;
	verdict = SESSION_ID_FORGED;
	if (mac_verify(k, b.data, signed_len, (const unsigned char *)b.data + signed_len,
		ID_MAC_BYTES)) {
		struct id_reader r = {
		    bytes + 1, (const unsigned char *)b.data + signed_len, false};

		verdict = id_read(&r, now_s, s);
	}
out:
	buf_fini(&b);
	return verdict;
}
