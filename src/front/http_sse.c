/* SPDX-License-Identifier: MIT */
/*
 * HTTP+SSE of 2024-11-05: everything comes on one stream, and messages go to the path
 * that its first event names.
 *
 * Owns: nothing; a stream has a session of its own.
 * Driven by: the endpoint.
 * Invariants: the session is as long as its stream; its name is a secret, which says
 * nothing and opens nothing but this.
 * Spec: 2024-11-05 basic/transports, HTTP with SSE.
 */
#include "endpoint_http_priv.h"

#include <string.h>

#define QUERY "sessionId="

static enum mv_err
sse_put_endpoint(struct http_call *k)
{
	const char *path = k->mount->path;
	struct http_session *s = k->session;
	enum mv_err err = MV_NOMEM;
	struct iovec iov;
	struct buf b;

	buf_init(&b, strlen(path) + SESSION_ID_TEXT_MAX + sizeof("?" QUERY));
	buf_add_str(&b, path);
	buf_add_str(&b, "?" QUERY);
	buf_add(&b, s->text, s->text_len);
	iov = (struct iovec){b.data, b.len};
	if (b.err == MV_OK)
		err = http_stream_typed_event(k->x, "endpoint", &iov, 1);
	buf_fini(&b);
	return err;
}

static void
sse_get(struct http_call *k)
{
	char principal[SESSION_ID_PRINCIPAL_MAX + 1];
	struct http_session *s = http_session_new(k->mount);

	if (s != NULL) {
		k->session = s;
		s->calls++;
		http_principal(k, principal);
	}
	if (s == NULL || !http_session_name(s, principal)) {
		http_call_refuse(k, 503, WORDING_SESSIONS_FULL);
		return;
	}
	k->is_get = true;
	s->stream = k;
	http_call_become_stream(k);
	if (sse_put_endpoint(k) == MV_OK)
		client_channel_opened(s->client);
	else
		http_stream_end(k->x);
}

/* What the query says; absent if it does not. */
static struct http_text
sse_read_query(const struct http_head *h)
{
	static const size_t skip = sizeof(QUERY) - 1;
	struct http_text none = {NULL, 0}, value;
	const char *end = h->target.p + h->target.n;
	const char *p = memchr(h->target.p, '?', h->target.n), *next;

	for (; p != NULL; p = next) {
		p++;
		next = memchr(p, '&', (size_t)(end - p));
		value = (struct http_text){p, (size_t)((next ? next : end) - p)};
		if (value.n < skip || memcmp(p, QUERY, skip) != 0)
			continue;
		value.p += skip;
		value.n -= skip;
		return value;
	}
	return none;
}

static void
sse_post(struct http_call *k, const struct http_head *h, const char *body, size_t n)
{
	struct http_text text = sse_read_query(h);
	char principal[SESSION_ID_PRINCIPAL_MAX + 1];
	struct link_msg m;

	if (text.p == NULL) {
		/* A client of later revisions takes it for what it is. */
		http_call_reply(k, 405, "Allow: GET, OPTIONS\r\n", NULL, NULL, 0);
		return;
	}
	if (!http_call_knows_version(k, h))
		return;
	http_principal(k, principal);
	k->session = http_session_named(k->mount, text, principal);
	if (k->session == NULL) {
		http_call_refuse(k, 404, WORDING_SESSION_NO_STREAM);
		return;
	}
	k->session->calls++;
	if (!http_call_scan(k, body, n, &m))
		return;
	/* It is taken; all else is said on the stream. */
	http_call_reply(k, 202, "", NULL, NULL, 0);
	client_on_message(k->session->client, &m);
}

void
http_sse_request(
    struct http_call *k, const struct http_head *h, const char *body, size_t n)
{
	if (h->method == HTTP_M_OPTIONS)
		http_call_options(k);
	else if (h->method == HTTP_M_GET)
		sse_get(k);
	else
		sse_post(k, h, body, n);
}

void
http_sse_end(struct http_call *k)
{
	http_session_delete(k->session);
}
