/* SPDX-License-Identifier: MIT */
/*
 * The client's end of MCP over HTTP: one POST for each message, answers as JSON or as an
 * event stream, and the streams that a server opens beside them. Knows the transports,
 * not the methods: its owner says which headers a message has.
 * Spec: basic/transports, Streamable HTTP (2025-03-26 to 2026-07-28), Backward
 * Compatibility; HTTP with SSE (2024-11-05).
 */
#ifndef MCPVISOR_HTTP_LINK_H
#define MCPVISOR_HTTP_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "mcpvisor/link.h"

struct curl_loop;
struct http_link;
struct loop;

/* Strings stay the caller's, valid as long as the link or until http_link_set_opts. */
struct http_link_opts {
	const char *url;
	const char *ca_file, *cert_file, *key_file, *proxy; /* as in transfer_opts */
	bool skip_verify;
	uint32_t connect_ms;
	size_t message_max; /* of one message, either way */
	size_t out_max;	    /* bytes of messages that wait for their answers' heads */
	bool want_uris;
};

/* Why a message got no answer. */
struct http_failure {
	/* MV_UNREACHABLE, MV_CLOSED, MV_PROTOCOL, MV_TOO_LONG, MV_NOMEM, MV_AUTH (401,
	 * 403, put_headers), MV_HTTP (any other status that is no success) */
	enum mv_err err;
	int status; /* 0: there was no answer at all */
	/* For people: status, or curl's words, or the start of the body; escaped, no
	 * secrets */
	const char *text;
	const char *www_authenticate; /* NULL: none */
	uint32_t retry_after_s;
};

struct http_link_cb {
	/* One message, as link_cb's. by: the id of the request on whose stream it came;
	 * 0: the stream is nobody's (GET, or HTTP+SSE), or a notification's. A message of
	 * any status but 401 and 403 that is one JSON-RPC message comes here too (errors
	 * of 400 and 404). May free the link. */
	void (*on_message)(void *arg, uint64_t by, const struct link_msg *m);
	/* As link_cb's: the body of a 2xx, or an event. A reply that names the request by
	 * its id is its end: no on_failed follows. May free the link. */
	void (*on_bad)(void *arg, uint64_t by, enum mv_err err, struct jtext id,
	    bool is_reply, const char *line, size_t len);
	/* The exchange of this request is over, and it brought no response to it. Not
	 * after http_link_cancel. HTTP+SSE: its POST failed; what is unanswered when the
	 * stream ends is told by on_endpoint alone. May free the link. */
	void (*on_failed)(void *arg, uint64_t id, const struct http_failure *f);
	/* The same for a notification or a response. May free the link. */
	void (*on_note_failed)(void *arg, const struct http_failure *f);
	/* The server took a notification or a response (2xx). May be NULL, may free the
	 * link. */
	void (*on_note_taken)(void *arg);
	/* The server knows our session no more (404). Messages it refused for that
	 * reason, and all but initialize that are sent before there is a new one, wait,
	 * unless they are cancelled, for http_link_renew; each is sent a second time, not
	 * a third. Once a session. May free the link. */
	void (*on_session_lost)(void *arg);
	/* HTTP+SSE: the endpoint is known, messages can be sent (f NULL); or its stream
	 * could not be opened, or ended: f is why, and nothing can be sent until it is
	 * opened again. May free the link. */
	void (*on_endpoint)(void *arg, const struct http_failure *f);
	/* The header lines that go with every request are wanted: appends "Name: value"
	 * strings, each ended by NUL. False: they cannot be had, and the message fails
	 * with MV_AUTH. The one callback that comes before a call of ours returns;
	 * changes nothing. May be NULL. */
	bool (*put_headers)(void *arg, struct buf *out);
	/* The stream of http_link_open_stream is open, or it is known that there is none,
	 * or none for now. Once for each time that it was asked for, from a turn of its
	 * own. */
	void (*on_stream)(void *arg);
};

/* Never calls back before returning. */
struct http_link *http_link_new(struct loop *l, struct curl_loop *c,
    const struct http_link_opts *o, const struct http_link_cb *cb, void *arg);
/* Cancels all. Allowed inside callbacks; no callback comes after. NULL is allowed. */
void http_link_free(struct http_link *k);
/* For what is sent from now on. */
void http_link_set_opts(struct http_link *k, const struct http_link_opts *o);

/* Which of the two transports; STREAMABLE at first. */
enum http_mode { HTTP_MODE_STREAMABLE, HTTP_MODE_SSE };
/* HTTP_MODE_SSE opens its stream, unless it is open: on_endpoint tells. The other mode
 * closes it without a word. */
void http_link_set_mode(struct http_link *k, enum http_mode mode);
/* Legacy: the negotiated revision, sent as MCP-Protocol-Version from now on (NULL: none;
 * copied); is_resumable: streams that break are resumed (Last-Event-ID) if events have
 * ids. The session id is the one that the answer to initialize brought; kept by the link.
 */
void http_link_set_revision(struct http_link *k, const char *revision, bool is_resumable);
/* What waits for a new session is sent again, with the session of now; so is the stream
 * of http_link_open_stream. */
void http_link_renew(struct http_link *k);
/* Forgets the session, and its stream. */
void http_link_forget_session(struct http_link *k);
bool http_link_has_session(const struct http_link *k);

/* Sends one message given in pieces (copied). id: of a request, which gets its answer, or
 * on_failed; 0: of a notification or response. is_initialize: the session id is taken
 * from its answer. is_apart: of no session: without its id and revision, and a 404 says
 * nothing of it. lines: header lines for this message alone (copied), each "Name:
 * value" and NUL, an empty one at the end; NULL: none. MV_BUSY: over out_max, or too many
 * that are no requests; MV_CLOSED: HTTP+SSE without its stream; MV_AUTH: put_headers;
 * MV_NOMEM, also if libcurl cannot be loaded: nothing was sent. */
struct http_message {
	uint64_t id;
	bool is_initialize;
	bool is_apart;
	const char *lines;
};
enum mv_err http_link_send(struct http_link *k, const struct http_message *what,
    const struct iovec *iov, int n) MCPVISOR_MUST_CHECK;
/* The request is of no more interest: its stream is closed. Streamable: true. HTTP+SSE,
 * and an id of no request or of one that has its response: false, nothing happened. */
bool http_link_cancel(struct http_link *k, uint64_t id);
size_t http_link_out_pending(const struct http_link *k); /* of out_max */

/* Legacy: the stream of what belongs to no request (GET), kept open, reopened with a
 * back-off (or the server's retry), resumed by Last-Event-ID; given up silently, for this
 * session, where the server has none (405 and its like). A second time in a session:
 * nothing. on_stream tells. */
void http_link_open_stream(struct http_link *k);
/* Ends the session at the server (DELETE), or one that an initialize under way may still
 * bring, without waiting for any word longer than ms; then done(arg). Without a session,
 * or if nothing can be sent, at once, before it returns. The link has no session from
 * then on. Not done after http_link_free. */
void http_link_end_session(
    struct http_link *k, uint32_t ms, void (*done)(void *arg), void *arg);

#endif
