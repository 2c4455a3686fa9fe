/* SPDX-License-Identifier: MIT */
/*
 * What a remote server answers, or does not: messages, failures of single requests, ends
 * of the whole.
 *
 * Owns: nothing; the link is the remote's.
 * Driven by: the link.
 * Invariants: a request that fails fails alone, unless the server cannot be reached or
 * takes us for somebody else; whatever ends the whole does so in a later turn.
 */
#include "upstream_remote_priv.h"

#include "upstream_http_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"

#include <stdio.h>
#include <string.h>

/* ---- credentials ---- */

static bool
on_put_headers(void *arg, struct buf *out)
{
	struct remote *rm = arg;
	struct mv_errtext why = {.line = 0};
	size_t start = out->len;
	bool there;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	there = upstream_headers_put(rm->u->conf, out, &why) && out->err == MV_OK;
	rm->sent_hash =
	    there ? upstream_headers_hash(out->data + start, out->len - start) : 0;
	if (!rm->has_sent)
		rm->first_hash = rm->sent_hash;
	rm->has_sent = true;
	if (!there)
		(void)snprintf(rm->no_headers, sizeof(rm->no_headers), "%s",
		    why.message[0] != '\0' ? why.message : "too long");
	return there;
}

bool
remote_has_other_credentials(struct remote *rm)
{
	uint64_t hash = upstream_headers_now(rm->u->conf);

	return hash != 0 && hash != rm->refused_hash;
}

/* The one line of the log that tells of it is that of its parking. */
static void
remote_refused(struct remote *rm, const struct http_failure *f)
{
	struct upstream *u = rm->u;
	struct buf b;

	/* Maybe it is those of before that were refused: the next life shows. */
	if (rm->has_sent && rm->sent_hash != 0 && rm->sent_hash != rm->first_hash) {
		remote_die(rm, MV_CLOSED,
		    "%s refused credentials that were renewed since", rm->where);
		return;
	}
	rm->refused_hash = rm->sent_hash;
	buf_init(&b, sizeof(u->reason));
	if (f->status != 0)
		buf_addf(
		    &b, "%s refused our credentials: status %d", rm->where, f->status);
	else
		buf_addf(
		    &b, "there are no credentials for %s: %s", rm->where, rm->no_headers);
	if (f->www_authenticate != NULL)
		challenge_put(&b, f->www_authenticate);
	upstream_set_reason(u, "%.*s", (int)b.len, b.data != NULL ? b.data : "");
	buf_fini(&b);
	/* What the header says is for whoever holds the credentials. */
	if (f->status != 0)
		(void)snprintf(rm->end.told, sizeof(rm->end.told),
		    "%.100s refused our credentials: status %d", rm->where, f->status);
	else
		(void)snprintf(rm->end.told, sizeof(rm->end.told),
		    "there are no credentials for %.100s", rm->where);
	remote_die(rm, MV_AUTH, "%s", u->reason);
}

/* ---- messages ---- */

static void
on_message(void *arg, uint64_t by, const struct link_msg *m)
{
	struct remote *rm = arg;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	if (remote_is_up(rm))
		upstream_on_message(
		    rm->u, by != 0 ? idmap_get(rm->u->by_id, by) : NULL, m);
}

static void
/* NOLINTNEXTLINE(readability-function-size): as the link has it */
on_bad(void *arg, uint64_t by, enum mv_err err, struct jtext id, bool is_reply,
    const char *line, size_t len)
{
	struct remote *rm = arg;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	(void)by;
	if (remote_is_up(rm))
		upstream_on_bad(rm->u, err, id, is_reply, line, len);
}

/* ---- failures ---- */

const char *
remote_words(const struct remote *rm, const struct http_failure *f)
{
	return upstream_skip_place(f->text, rm->where);
}

/* This request has no answer, and that is all. */
static void
remote_fail_one(struct remote *rm, struct upstream_req *r, const struct http_failure *f)
{
	char text[512];
	/* What it sent is too long, not what its client did. */
	struct outcome o = {.kind = OUTCOME_FAILED,
	    .err = f->err == MV_TOO_LONG ? MV_PROTOCOL : f->err,
	    .detail = text};

	if (f->retry_after_s != 0)
		(void)snprintf(text, sizeof(text), "%s: %s (Retry-After: %u s)",
		    rm->where, remote_words(rm, f), f->retry_after_s);
	else
		(void)snprintf(
		    text, sizeof(text), "%s: %s", rm->where, remote_words(rm, f));
	LOG_LIMITED(LOG_LV_WARNING, "remote", "request failed",
	    "upstream=%s method=%s reason=%s detail=%s", UNAME(rm->u),
	    method_name(r->method), mv_err_reason(f->err), LOG_ESC(text, strlen(text)));
	upstream_end(r, &o);
}

/* What ends more than one request; false: nothing of that kind. */
static bool
remote_failed_whole(
    struct remote *rm, const struct upstream_req *r, const struct http_failure *f)
{
	if (f->err == MV_AUTH)
		rm->u->n_refused++;
	/* What one client must not do is no matter of the others. */
	if (f->err == MV_AUTH && f->status == 403 && r != NULL &&
	    (r->is_call || r->method == METHOD_SUBSCRIBE))
		return false;
	if (f->err == MV_AUTH)
		remote_refused(rm, f);
	else if (f->err == MV_UNREACHABLE)
		remote_die(rm, MV_UNREACHABLE, "%s cannot be reached: %s", rm->where,
		    remote_words(rm, f));
	else
		return false;
	return true;
}

static void
on_failed(void *arg, uint64_t id, const struct http_failure *f)
{
	struct remote *rm = arg;
	struct upstream *u = rm->u;
	struct upstream_req *r;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	if (!remote_is_up(rm))
		return;
	r = idmap_get(u->by_id, id);
	if (remote_failed_whole(rm, r, f) || r == NULL)
		return;
	if (r == &u->discover)
		remote_discover_failed(rm, f);
	else if (r == &u->init)
		remote_initialize_failed(rm, f);
	else {
		remote_fail_one(rm, r, f);
		if (remote_is_refusal(f))
			remote_doubt(rm);
	}
}

static void
on_note_taken(void *arg)
{
	struct remote *rm = arg;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	if (!remote_is_up(rm) || !rm->greeting)
		return;
	remote_greeted(rm);
}

static void
on_stream(void *arg)
{
	struct remote *rm = arg;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	remote_opened(rm);
}

static void
on_note_failed(void *arg, const struct http_failure *f)
{
	struct remote *rm = arg;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	if (!remote_is_up(rm) || remote_failed_whole(rm, NULL, f))
		return;
	LOG_LIMITED(LOG_LV_INFO, "remote", "notification refused",
	    "upstream=%s reason=%s detail=%s", UNAME(rm->u), mv_err_reason(f->err),
	    LOG_ESC(f->text, strlen(f->text)));
	on_note_taken(rm); /* the next answer shows what it thinks of us */
}

static void
on_session_lost(void *arg)
{
	struct remote *rm = arg;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	if (remote_is_up(rm))
		remote_session_lost(rm);
}

static void
on_endpoint(void *arg, const struct http_failure *f)
{
	struct remote *rm = arg;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	if (remote_is_up(rm) && (f == NULL || !remote_failed_whole(rm, NULL, f)))
		remote_on_endpoint(rm, f);
}

static const struct http_link_cb callbacks = {
    .on_message = on_message,
    .on_bad = on_bad,
    .on_failed = on_failed,
    .on_note_failed = on_note_failed,
    .on_note_taken = on_note_taken,
    .on_session_lost = on_session_lost,
    .on_endpoint = on_endpoint,
    .put_headers = on_put_headers,
    .on_stream = on_stream,
};

void
remote_put_opts(const struct remote *rm, struct http_link_opts *o)
{
	const struct upstream_conf *c = rm->u->conf;

	*o = (struct http_link_opts){.url = c->url,
	    .ca_file = c->ca_file,
	    .cert_file = c->cert_file,
	    .key_file = c->key_file,
	    .proxy = c->proxy,
	    .skip_verify = c->skip_verify,
	    .connect_ms = c->connect_ms,
	    .message_max = CAP_MESSAGE_BYTES,
	    .out_max = CAP_OUT_BYTES,
	    .want_uris = true};
}

void
remote_open(struct remote *rm)
{
	struct http_link_opts o;

	remote_put_opts(rm, &o);
	rm->has_sent = false;
	rm->n_lost = 0;
	rm->mode = rm->u->known_transport == TRANSPORT_SSE ? HTTP_MODE_SSE
							   : HTTP_MODE_STREAMABLE;
	rm->link = http_link_new(rm->u->loop, rm->curl, &o, &callbacks, rm);
	if (rm->mode == HTTP_MODE_SSE) {
		/* It is older than all that could be asked. */
		rm->u->known_era = ERA_LEGACY;
		http_link_set_mode(rm->link, HTTP_MODE_SSE);
	}
}
