/* SPDX-License-Identifier: MIT */
/* Keyed digests (HMAC-SHA-256, OpenSSL) and base64url text of them. */
#ifndef MCPVISOR_MAC_H
#define MCPVISOR_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/buf.h"

#define MAC_KEY_BYTES 32
#define MAC_BYTES     32

struct mac_key {
	unsigned char bytes[MAC_KEY_BYTES];
};

void mac_key_random(struct mac_key *k);
void mac_key_wipe(struct mac_key *k);
void mac_sign(
    const struct mac_key *k, const void *p, size_t n, unsigned char out[MAC_BYTES]);
/* In constant time; n_mac may be shorter than MAC_BYTES (a truncated one), at least 16.
 */
bool mac_verify(const struct mac_key *k, const void *p, size_t n,
    const unsigned char *mac, size_t n_mac);
void base64url_put(struct buf *out, const void *p, size_t n); /* no padding */
/* Appends. False for anything that base64url_put does not write (nothing is appended
 * then), and where out cannot hold the bytes (its error says which). */
bool base64url_take(struct buf *out, const char *p, size_t n);
/* The same for the standard alphabet with padding (RFC 4648 section 4). */
bool base64_take(struct buf *out, const char *p, size_t n);
void base64_put(struct buf *out, const void *p, size_t n);

#endif
