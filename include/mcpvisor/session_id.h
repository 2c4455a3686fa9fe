/* SPDX-License-Identifier: MIT */
/*
 * The id of a legacy client's HTTP session: it holds what has to survive a restart of
 * ours, signed, so that any process with the same key can serve the session.
 *
 * Pure: key and time are the caller's. 2025-11-25 basic/transports, Session Management.
 */
#ifndef MCPVISOR_SESSION_ID_H
#define MCPVISOR_SESSION_ID_H

#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/mac.h"
#include "mcpvisor/revision.h"

#define SESSION_ID_TEXT_MAX	 512
#define SESSION_ID_CLIENT_MAX	 64
#define SESSION_ID_PRINCIPAL_MAX 160

struct session_id {
	enum revision revision;
	unsigned caps_mask; /* what the client declared; bits are the caller's */
	char client[SESSION_ID_CLIENT_MAX + 1];	      /* its name, valid UTF-8 */
	char principal[SESSION_ID_PRINCIPAL_MAX + 1]; /* bytes without NUL */
	uint64_t start_s, expires_s;		      /* wall clock */
	uint64_t serial; /* random: tells two sessions of one second apart */
};

/* X(NAME, text for the log) */
#define SESSION_ID_TABLE(X)                                                              \
	X(OK, "valid")                                                                   \
	X(LENGTH, "empty or too long")                                                   \
	X(MALFORMED, "not a session id")                                                 \
	X(FOREIGN, "of another version of mcpvisor")                                     \
	X(FORGED, "altered, or signed with another key")                                 \
	X(EXPIRED, "expired")

enum session_id_verdict {
#define X(name, text) SESSION_ID_##name,
	SESSION_ID_TABLE(X)
#undef X
	    SESSION_ID_MAX
};

const char *session_id_verdict_text(enum session_id_verdict v);

/* Takes a client's name of n bytes of UTF-8: up to a NUL, cut before the character that
 * does not fit. */
void session_id_set_client(struct session_id *s, const char *name, size_t n);
/* The exact bytes: a principal is never cut, or two could become one. False (and s
 * unchanged) if it does not fit or has a NUL. */
bool session_id_set_principal(
    struct session_id *s, const char *p, size_t n) MCPVISOR_MUST_CHECK;

/* Appends the text: at most SESSION_ID_TEXT_MAX characters of base64url. */
void session_id_put(const struct session_id *s, const struct mac_key *k, struct buf *out);
/* Nothing of *s is to be used unless the verdict is OK, with one exception: after EXPIRED
 * it is what was signed. */
enum session_id_verdict session_id_parse(const char *text, size_t n,
    const struct mac_key *k, uint64_t now_s, struct session_id *s) MCPVISOR_MUST_CHECK;

#endif
