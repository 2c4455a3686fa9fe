/* SPDX-License-Identifier: MIT */
/*
 * http_link.h without HTTP: the test answers as the server does, and reads what was sent.
 */
#ifndef FAKE_HTTP_LINK_H
#define FAKE_HTTP_LINK_H

#include "mcpvisor/http_link.h"

/* A curl_loop that can always be loaded, or never. */
struct curl_loop *fake_curl(void);
void fake_curl_refuse(bool refuse);

/* One message that was sent. */
struct fake_posted {
	uint64_t id;
	bool is_initialize, is_apart;
	char *lines; /* the message's own, each with a newline; "" if none */
	char *text;
};
/* The oldest that was not taken yet; NULL: none. Valid until the next take. */
const struct fake_posted *fake_http_take(void);
void fake_http_forget_all(void);
/* Links that are not freed yet, and the one made last. */
unsigned fake_http_live(void);
struct http_link *fake_http_last(void);

/* The server says something on the stream of that request, or on nobody's. */
void fake_http_say(struct http_link *k, uint64_t by, const char *text);
/* The answer to initialize brings a session; then a 404 takes it away. */
void fake_http_give_session(struct http_link *k);
void fake_http_lose_session(struct http_link *k);
void fake_http_fail(struct http_link *k, uint64_t id, enum mv_err err, int status,
    const char *www_authenticate);
void fake_http_note_fail(struct http_link *k, enum mv_err err, int status);
void fake_http_note_taken(struct http_link *k);
/* What the stream that was asked for came to is told, as far as it was asked for; with
 * fake_http_note_taken, unless streams are slow. */
void fake_http_stream(struct http_link *k);
void fake_http_slow_streams(bool slow);
/* HTTP+SSE: status 0, the endpoint is there. */
void fake_http_endpoint(struct http_link *k, enum mv_err err, int status);
/* The answer to DELETE. */
void fake_http_ended(struct http_link *k);
void fake_http_refuse(struct http_link *k, enum mv_err err); /* of every send */

enum http_mode fake_http_mode(const struct http_link *k);
const char *fake_http_revision(const struct http_link *k); /* "" if none */
unsigned fake_http_renewals(const struct http_link *k);
bool fake_http_has_stream(const struct http_link *k);
bool fake_http_is_ending(const struct http_link *k);	 /* DELETE is out */
uint64_t fake_http_cancelled(const struct http_link *k); /* the last one; 0: none */
/* What put_headers gave for the message sent last, lines with newlines. */
const char *fake_http_headers(const struct http_link *k);

#endif
