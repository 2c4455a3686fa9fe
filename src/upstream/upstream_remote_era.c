/* SPDX-License-Identifier: MIT */
/*
 * Which era and which transport a remote server speaks: found by what it answers,
 * remembered, and found anew when it contradicts.
 *
 * Owns: nothing.
 * Driven by: answers and failures of server/discover and initialize; answers that fit no
 * longer.
 * Invariants: a status alone is never an answer of a modern server; HTTP+SSE is tried
 * after initialize was refused by status, once in a life.
 * Spec: 2026-07-28 basic/transports/streamable-http, Backward Compatibility.
 */
#include "upstream_remote_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"

#include <stdio.h>
#include <string.h>

#define DOUBT_MS 10000
/* For the head of the stream of what comes unasked. */
#define STREAM_MS 1000
/* A session is asked for anew at once, but not again and again: several servers behind
 * one name know each other's sessions not at all. */
#define LOSSES_MS    10000
#define LOSSES_MAX   3
#define FLIP_MS	     (3600u * 1000)
#define LEAST_MAX_MS (3600u * 1000)

bool
remote_is_refusal(const struct http_failure *f)
{
	if (f->err != MV_HTTP)
		return false;
	/* These say something of the moment. */
	if (f->status == 408 || f->status == 425 || f->status == 429)
		return false;
	return f->status >= 400 && f->status < 500;
}

/* Servers fail in odd ways over a method that they have never heard of. */
static bool
remote_is_lost_for_words(const struct http_failure *f)
{
	return f->err == MV_PROTOCOL || remote_is_refusal(f) ||
	       (f->err == MV_HTTP && (f->status == 500 || f->status == 501));
}

static void
remote_die_of(struct remote *rm, const struct http_failure *f)
{
	uint64_t least = (uint64_t)f->retry_after_s * 1000;

	rm->least_ms = (uint32_t)(least < LEAST_MAX_MS ? least : LEAST_MAX_MS);
	remote_die(rm, f->err, "%s: %s", rm->where, remote_words(rm, f));
}

void
remote_discover_failed(struct remote *rm, const struct http_failure *f)
{
	struct upstream *u = rm->u;

	/* Beside it initialize may still be answered. */
	if (u->state == UPSTREAM_ST_READY) {
		upstream_forget(&u->discover);
		if (remote_is_lost_for_words(f))
			remote_flip(rm);
	} else if (u->state == UPSTREAM_ST_BOTH || remote_is_lost_for_words(f)) {
		upstream_forget(&u->discover);
		upstream_event(u, UPSTREAM_EV_DISCOVER_LEGACY);
	} else {
		remote_die_of(rm, f);
	}
}

/* The other transport, and initialize once more. */
static void
remote_try_sse(struct remote *rm, const struct http_failure *f)
{
	struct upstream *u = rm->u;

	(void)snprintf(rm->refusal, sizeof(rm->refusal), "%s", f->text);
	if (u->state == UPSTREAM_ST_BOTH) {
		(void)upstream_drop(&u->discover);
		upstream_event(u, UPSTREAM_EV_DISCOVER_LEGACY);
	}
	upstream_forget(&u->init);
	rm->mode = HTTP_MODE_SSE;
	http_link_set_mode(rm->link, HTTP_MODE_SSE);
	upstream_send_initialize(u);
}

void
remote_initialize_failed(struct remote *rm, const struct http_failure *f)
{
	struct upstream *u = rm->u;
	bool may_be_old = f->err == MV_HTTP &&
			  (f->status == 400 || f->status == 404 || f->status == 405);

	if (may_be_old && rm->mode == HTTP_MODE_STREAMABLE &&
	    u->conf->transport == TRANSPORT_AUTO) {
		remote_try_sse(rm, f);
	} else if (u->state == UPSTREAM_ST_BOTH || f->err == MV_PROTOCOL ||
		   remote_is_refusal(f)) {
		upstream_set_reason(
		    u, "%s refused initialize: %s", rm->where, remote_words(rm, f));
		upstream_forget(&u->init);
		upstream_event(u, UPSTREAM_EV_INIT_BAD);
	} else {
		remote_die_of(rm, f);
	}
}

/* It speaks neither: maybe the first one again, if that is long ago. */
static void
remote_no_endpoint(struct remote *rm, const struct http_failure *f)
{
	struct upstream *u = rm->u;

	if (u->conf->transport != TRANSPORT_AUTO ||
	    (f->err != MV_PROTOCOL && !remote_is_refusal(f))) {
		remote_die_of(rm, f);
		return;
	}
	if (rm->refusal[0] != '\0')
		upstream_set_reason(u, "%s speaks no MCP: POST: %s; GET: %s", rm->where,
		    rm->refusal, remote_words(rm, f));
	else
		upstream_set_reason(u, "%s: %s", rm->where, remote_words(rm, f));
	rm->init_id = 0;
	rm->mode = HTTP_MODE_STREAMABLE;
	http_link_set_mode(rm->link, HTTP_MODE_STREAMABLE);
	u->known_transport = TRANSPORT_AUTO;
	u->init_waits = false;
	upstream_forget(&u->init);
	upstream_event(u, UPSTREAM_EV_INIT_BAD);
}

void
remote_on_endpoint(struct remote *rm, const struct http_failure *f)
{
	struct http_message m = {.id = rm->init_id, .is_initialize = true};
	struct iovec iov = {rm->init.data, rm->init.len};
	enum mv_err err;

	if (f != NULL && rm->has_endpoint) {
		remote_die(rm, f->err == MV_HTTP ? MV_CLOSED : f->err,
		    "%s ended its event stream: %s", rm->where, remote_words(rm, f));
		return;
	}
	if (f != NULL) {
		remote_no_endpoint(rm, f);
		return;
	}
	rm->has_endpoint = true;
	if (rm->init_id == 0)
		return;
	rm->init_id = 0;
	err = http_link_send(rm->link, &m, &iov, 1);
	if (err != MV_OK)
		remote_die(rm, err, "%s", mv_err_text(err));
}

/* Nothing else may come before the server has taken it. */
void
remote_greet(struct remote *rm)
{
	struct upstream *u = rm->u;

	(void)upstream_drop(&u->discover);
	http_link_set_revision(rm->link,
	    u->revision >= REVISION_2025_06_18 ? revision_text(u->revision) : NULL,
	    u->revision >= REVISION_2025_03_26);
	rm->greeting = true;
	upstream_send_initialized(u);
}

/* What changes from now on is said on its stream: nothing is asked for, nor watched,
 * before that is there. Some servers hold its head back until there is something to say.
 */
void
remote_greeted(struct remote *rm)
{
	rm->greeting = false;
	rm->opening = true;
	if (rm->mode == HTTP_MODE_STREAMABLE) {
		timer_set(&rm->stream_timer, STREAM_MS);
		http_link_open_stream(rm->link);
	} else {
		remote_opened(rm);
	}
}

void
remote_opened(struct remote *rm)
{
	if (!remote_is_up(rm) || !rm->opening)
		return;
	rm->opening = false;
	timer_clear(&rm->stream_timer);
	upstream_event(rm->u, UPSTREAM_EV_INIT_OK);
}

/* Whether a session is in use, or about to be. */
static bool
remote_has_greeted(const struct upstream *u)
{
	return u->era != NULL
		   ? !u->era->mirrors
		   : u->state == UPSTREAM_ST_INIT || u->state == UPSTREAM_ST_BOTH;
}

void
remote_session_lost(struct remote *rm)
{
	struct upstream *u = rm->u;
	uint64_t now = clock_now_ms();

	/* One of an initialize that came to nothing: there is none to have anew. */
	if (!remote_has_greeted(u)) {
		http_link_forget_session(rm->link);
		http_link_renew(rm->link);
		return;
	}
	if (now - rm->lost_ms > LOSSES_MS)
		rm->n_lost = 0;
	rm->lost_ms = now;
	if (++rm->n_lost > LOSSES_MAX) {
		remote_die(
		    rm, MV_CLOSED, "%s loses one session after the other", rm->where);
		return;
	}
	rm->greeting = rm->opening = false;
	timer_clear(&rm->stream_timer);
	LOG_NOTICE("remote", "session lost", "upstream=%s", UNAME(u));
	upstream_event(u, UPSTREAM_EV_RENEW);
}

/* ---- contradictions ---- */

void
remote_flip(struct remote *rm)
{
	struct upstream *u = rm->u;

	if (u->conf->era == ERA_AUTO)
		u->known_era = ERA_AUTO;
	u->known_transport = u->conf->transport;
	upstream_restart(u, "it does not answer as one of its era any more");
}

bool
remote_flip_to_modern(struct remote *rm)
{
	uint64_t now = clock_now_ms();

	/* Its tools may have errors of the same numbers. */
	if (rm->flipped_ms != 0 && now - rm->flipped_ms < FLIP_MS)
		return false;
	rm->flipped_ms = now;
	remote_flip(rm);
	return true;
}

static void
on_doubt_done(void *arg, const struct outcome *o)
{
	struct upstream *u = arg;

	if (o->kind == OUTCOME_FAILED && o->err != MV_PROTOCOL)
		return; /* no answer is none either way */
	if (!upstream_is_modern_answer(o) && u->state == UPSTREAM_ST_READY)
		remote_flip(u->remote);
}

static const struct upstream_req_cb doubt_cb = {.on_done = on_doubt_done};

void
remote_doubt(struct remote *rm)
{
	struct upstream *u = rm->u;
	uint64_t now = clock_now_ms();

	if (u->state != UPSTREAM_ST_READY || !u->era->mirrors ||
	    u->conf->era != ERA_AUTO || u->discover.u != NULL ||
	    (rm->doubts_ms != 0 && now - rm->doubts_ms < DOUBT_MS))
		return;
	rm->doubts_ms = now;
	upstream_send_doubt(u, &doubt_cb);
}
