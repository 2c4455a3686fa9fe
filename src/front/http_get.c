/* SPDX-License-Identifier: MIT */
/*
 * Event streams that a client of a legacy session asks for: for what comes unasked, or
 * to go on with one that it has lost.
 *
 * Owns: nothing; the streams for notices hang on to their session, the newest first.
 * Driven by: the endpoint.
 * Invariants: a message goes to one stream; answers travel on the stream of their request
 * alone. Spec: 2025-11-25 basic/transports, Listening for Messages from the Server.
 */
#include "endpoint_http_priv.h"
#include "http_replay_priv.h"

static void
get_notices(struct http_call *k, struct http_track *t, uint64_t after)
{
	struct http_session *s = k->session;

	k->is_get = true;
	k->older = s->stream;
	s->stream = k; /* notices go to the newest */
	if (t != NULL)
		http_track_resume(k, t, after);
	else
		http_call_become_stream(k);
	http_replay_return(k);
	client_channel_opened(s->client);
}

void
http_session_get(struct http_call *k, const struct http_head *h)
{
	bool doubled;
	struct http_text id = http_header(h, "last-event-id", &doubled);
	struct http_track *t = NULL;
	uint64_t after = 0;

	if (doubled) {
		http_call_refuse(k, 400, WORDING_EVENT_TWICE);
		return;
	}
	if (id.p != NULL && !http_track_find(k->session, id, &t, &after)) {
		/* There is no such stream any more, and another one is not what its
		 * client waits for. */
		http_call_reply(
		    k, 405, "Allow: POST, DELETE, OPTIONS\r\n", NULL, NULL, 0);
		return;
	}
	if (t == NULL || t->is_notices)
		get_notices(k, t, after);
	else
		http_track_resume(k, t, after);
}

void
http_session_leave(struct http_call *k)
{
	struct http_call **at = &k->session->stream;

	while (*at != k)
		at = &(*at)->older;
	*at = k->older;
	if (k->session->stream == NULL)
		client_channel_closed(k->session->client);
}
