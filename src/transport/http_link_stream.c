/* SPDX-License-Identifier: MIT */
/*
 * Streams that break are taken up again: the answer of a request, by GET from the last
 * event id on, and the stream of what belongs to no request.
 *
 * Owns: when the next try is. Driven by: what happens to the streams of a talk.
 * Invariants: no two tries without a pause; the server's retry is kept to exactly as long
 * as it answers; a request is given up after some tries that brought no event, the other
 * stream never.
 */
#include "http_link_priv.h"

#include "mcpvisor/clock.h"

#include <string.h>

#define RETRY_MS     1000
#define RETRY_MIN_MS 20
#define RETRY_MAX_MS 60000
#define TRIES_MAX    5
/* A stream that lasted so long is no failed try, if it brought nothing. */
#define STABLE_MS 30000

void
talk_begin_events(struct http_talk *x)
{
	if (!x->events)
		x->events = talk_parser_new(x);
	sse_reset(x->events);
	x->was_open = true;
	x->opened_ms = clock_now_ms();
	if (x->kind == TALK_STREAM)
		link_tell_stream(x->link);
	if (x->kind == TALK_NOTE) {
		talk_set(x, TALK_ST_DRAIN, "no request");
		timer_set(&x->timer, DRAIN_MS);
	}
}

void
talk_note_event(struct http_talk *x)
{
	x->tries = 0;
}

static bool
talk_is_resumable(const struct http_talk *x)
{
	const struct http_link *k = x->link;

	return k->is_resumable && k->mode == HTTP_MODE_STREAMABLE && x->events &&
	       (x->kind == TALK_STREAM || x->kind == TALK_REQUEST);
}

const char *
talk_last_id(struct http_talk *x)
{
	return talk_is_resumable(x) ? sse_last_id(x->events) : "";
}

/* Those that were cut off together should not come back together. */
static uint64_t
talk_delay(const struct http_talk *x)
{
	uint64_t first = x->has_retry ? x->retry_ms : RETRY_MS, ms;
	uint64_t asked = (uint64_t)x->retry_after_s * 1000;
	bool is_told = x->has_retry && x->as == TALK_AS_EVENTS && x->status != 0;

	if (first < RETRY_MIN_MS)
		first = RETRY_MIN_MS;
	ms = first;
	for (unsigned i = 0; i < x->tries && ms < RETRY_MAX_MS; i++)
		ms *= 2;
	if (is_told) {
		ms = first;
	} else if (x->tries > 0) {
		if (ms > RETRY_MAX_MS)
			ms = RETRY_MAX_MS;
		ms -= clock_random((uint32_t)ms / 4 + 1);
	}
	if (ms < first)
		ms = first;
	return ms > asked ? ms : asked;
}

bool
talk_retry(struct http_talk *x)
{
	uint64_t ms;

	if (x->kind != TALK_STREAM && (!x->is_resuming || x->tries >= TRIES_MAX))
		return false;
	ms = talk_delay(x);
	x->tries++;
	talk_wait(x, ms, "stream broke");
	return true;
}

void
talk_end_events(struct http_talk *x, enum mv_err err, const char *text)
{
	if (x->kind == TALK_STREAM && clock_now_ms() - x->opened_ms >= STABLE_MS)
		x->tries = 0;
	if (x->is_answered) {
		talk_finish(x);
		return;
	}
	if (x->kind == TALK_REQUEST && talk_last_id(x)[0] != '\0')
		x->is_resuming = true;
	if (talk_retry(x))
		return;
	if (err != MV_OK)
		talk_fail(x, err, text);
	else
		talk_failf(x, MV_CLOSED, "the event stream ended%s",
		    x->kind == TALK_REQUEST ? " before the response" : "");
}
