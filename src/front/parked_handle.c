/* SPDX-License-Identifier: MIT */
/*
 * Handles of parked calls: what one is good for, and for whom.
 *
 * Owns: nothing; the key is the client's.
 * Driven by: calls that may be parked, and those that come back.
 * Invariants: what is signed is a number of its own, its time, and all that makes a
 * request the same one: method, name or URI, arguments byte by byte, and who sends it.
 * Spec: 2026-07-28 basic/patterns/mrtr.
 */
#include "client_ask_priv.h"
#include "client_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/mac.h"
#include "mcpvisor/mem.h"

#include <string.h>
#include <time.h>

#define HANDLE_PREFIX "mv1."
#define NONCE_BYTES   PARKED_NONCE_BYTES
#define STAMP_BYTES   8
#define HANDLE_BYTES  (NONCE_BYTES + STAMP_BYTES + MAC_BYTES)

static uint64_t
wall_s(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec;
}

static const struct mac_key *
client_park_key(struct client *c)
{
	struct mac_key key;

	if (c->park_key == NULL) {
		mac_key_random(&key);
		client_set_key(c, &key);
		mac_key_wipe(&key);
	}
	return c->park_key;
}

void
parked_bind(struct request *r, const struct link_msg *m)
{
	const struct mac_key *key = client_park_key(r->c);
	struct jtext name = jtext_of(m->base, m->json->slot[method_name_slot(r->method)]);
	struct jtext args = jtext_of(m->base, m->json->slot[JSON_P_ARGUMENTS]);
	struct buf b;

	mac_sign(key, args.p, args.n, r->bound);
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add(&b, r->bound, MAC_BYTES);
	buf_add_str(&b, method_name(r->method));
	buf_add_char(&b, '\0');
	if (r->port == NULL)
		buf_add_str(&b, "local");
	else
		r->port->ops->put_principal(r->port->arg, &b);
	buf_add_char(&b, '\0');
	json_put(&b, name);
	r->is_bound = b.err == MV_OK;
	if (r->is_bound)
		mac_sign(key, b.data, b.len, r->bound);
	buf_fini(&b);
}

/* What is signed: the head of a handle and the request that it is for. */
static void
handle_put_signed(const struct request *r, const unsigned char *head, unsigned char *text)
{
	memcpy(text, head, NONCE_BYTES + STAMP_BYTES);
	memcpy(text + NONCE_BYTES + STAMP_BYTES, r->bound, MAC_BYTES);
}

void
parked_put_handle(
    const struct request *r, uint32_t ms, unsigned char *nonce, struct buf *out)
{
	unsigned char h[HANDLE_BYTES], text[NONCE_BYTES + STAMP_BYTES + MAC_BYTES];
	uint64_t until = wall_s() + ms / 1000;

	clock_random_bytes(nonce, NONCE_BYTES);
	memcpy(h, nonce, NONCE_BYTES);
	for (size_t i = 0; i < STAMP_BYTES; i++)
		h[NONCE_BYTES + i] = (unsigned char)(until >> (8 * i));
	handle_put_signed(r, h, text);
	mac_sign(r->c->park_key, text, sizeof(text), h + NONCE_BYTES + STAMP_BYTES);
	buf_add_str(out, HANDLE_PREFIX);
	base64url_put(out, h, sizeof(h));
}

bool
parked_read_handle(const struct request *r, struct jtext text, unsigned char *nonce)
{
	unsigned char h[HANDLE_BYTES];
	unsigned char signed_text[NONCE_BYTES + STAMP_BYTES + MAC_BYTES];
	size_t skip = 1 + strlen(HANDLE_PREFIX);
	struct buf b;
	bool ok = false;

	if (jtext_type(text) != '"' || text.n < skip + 1 ||
	    memcmp(text.p + 1, HANDLE_PREFIX, skip - 1) != 0)
		return false;
	buf_init(&b, HANDLE_BYTES * 2);
	if (base64url_take(&b, text.p + skip, text.n - skip - 1) &&
	    b.len == HANDLE_BYTES) {
		memcpy(h, b.data, HANDLE_BYTES);
		ok = true;
	}
	buf_fini(&b);
	if (!ok)
		return false;
	memcpy(nonce, h, NONCE_BYTES);
	handle_put_signed(r, h, signed_text);
	return mac_verify(r->c->park_key, signed_text, sizeof(signed_text),
	    h + NONCE_BYTES + STAMP_BYTES, MAC_BYTES);
}
