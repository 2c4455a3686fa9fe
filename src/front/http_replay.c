/* SPDX-License-Identifier: MIT */
/*
 * What the event streams of legacy sessions have sent, for clients that lost their line.
 *
 * Owns: the tracks of a session, and the events of theirs that may be asked for again.
 * Driven by: exchanges (messages, ends, returns), the sweep.
 * Invariants: one exchange carries a track, or none; what a session keeps never passes
 * replay_bytes; a session without tracks has no memory here; an id is not given twice
 * in the life of a session, as each memory has an epoch of its own.
 * Spec: 2025-11-25 basic/transports, Resumability and Redelivery.
 */
#include "endpoint_http_priv.h"
#include "http_replay_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <string.h>

/* For a client that lost its line before it had read what its line had taken. */
#define SETTLED_MS 30000u

struct http_replay {
	struct http_session *s;
	struct http_track *tracks;
	struct http_track *away; /* takes notices while no stream is open; may be NULL */
	size_t bytes;
	uint32_t epoch, made;
};

static void
track_drop_first(struct http_track *t)
{
	struct http_event *ev = t->first;
	const struct http_session *s = t->of->s;

	if (t->is_notices && ev->n > t->handed && s->client != NULL)
		client_channel_lost(s->client);
	t->first = ev->next;
	if (t->first == NULL)
		t->tail = &t->first;
	t->of->bytes -= sizeof(*ev) + ev->len;
	mem_free(ev);
}

static void
track_free(struct http_track *t)
{
	struct http_replay *r = t->of;

	MCPVISOR_ASSERT(t->magic == TRACK_MAGIC && t->carrier == NULL);
	if (t->is_over && !t->is_settled && t->first != NULL)
		metrics_add(METRIC_REPLIES_LOST, 1);
	while (t->first != NULL)
		track_drop_first(t);
	*t->prev = t->next;
	if (t->next != NULL)
		t->next->prev = t->prev;
	if (r->away == t)
		r->away = NULL;
	r->bytes -= sizeof(*t);
	t->magic = 0;
	mem_free(t);
}

/* Without tracks there is nothing to remember: not even the epoch. */
static void
replay_rest(struct http_session *s)
{
	if (s->replay != NULL && s->replay->tracks == NULL) {
		mem_free(s->replay);
		s->replay = NULL;
	}
}

/* How gladly t gives something up for another: 0 not at all. */
static unsigned
track_rank(const struct http_track *t, const struct http_track *other)
{
	if (t->is_over && t->carrier == NULL)
		return t->is_settled ? 4 : 1; /* all of it */
	if (t->first == NULL || t->is_over)
		return 0;
	return t == other ? 3 : 2; /* its oldest event */
}

/* False: there is nothing of that rank or above. */
static bool
replay_give_up(struct http_replay *r, const struct http_track *other, unsigned least)
{
	struct http_track *victim = NULL;
	unsigned best = least;

	for (struct http_track *t = r->tracks; t != NULL; t = t->next) {
		unsigned rank = track_rank(t, other);

		if (rank >= best) { /* among equals the oldest */
			best = rank;
			victim = t;
		}
	}
	if (victim == NULL)
		return false;
	if (victim->is_over) {
		track_free(victim);
		return true;
	}
	if (victim->first->n > victim->handed)
		metrics_add(METRIC_NOTICES_DROPPED, 1);
	track_drop_first(victim);
	return true;
}

/* Whether n bytes more may be kept, for t (NULL: a new one). */
static bool
replay_make_room(struct http_replay *r, const struct http_track *t, size_t n)
{
	size_t max = r->s->e->o.replay_bytes;
	bool is_short = mem_is_short();

	while (is_short && replay_give_up(r, NULL, 4))
		;
	if (n > max || is_short)
		return false;
	while (r->bytes + n > max)
		if (!replay_give_up(r, t, 1))
			return false;
	r->bytes += n;
	return true;
}

static void
track_append(struct http_track *t, struct http_event *ev)
{
	ev->next = NULL;
	*t->tail = ev;
	t->tail = &ev->next;
}

/* The message becomes t's last event. False: it cannot be kept. */
static bool
track_keep(struct http_track *t, const struct iovec *iov, int n)
{
	struct http_event *ev;
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	if (!replay_make_room(t->of, t, sizeof(*ev) + len))
		return false;
	ev = mem_try(sizeof(*ev) + len);
	if (ev == NULL) {
		t->of->bytes -= sizeof(*ev) + len;
		return false;
	}
	ev->n = t->last;
	ev->len = 0;
	for (int i = 0; i < n; i++) {
		memcpy(ev->data + ev->len, iov[i].iov_base, iov[i].iov_len);
		ev->len += iov[i].iov_len;
	}
	track_append(t, ev);
	return true;
}

static bool
track_is_open(const struct http_track *t)
{
	return t->carrier != NULL && t->carrier->x != NULL &&
	       http_stream_is_open(t->carrier->x);
}

static enum mv_err
track_write(struct http_track *t, uint64_t at, const struct iovec *iov, int n)
{
	struct http_event_id id = {t->is_notices, t->of->epoch, t->number, at};
	char text[HTTP_EVENT_ID_BYTES];
	enum mv_err err;

	if (!track_is_open(t))
		return MV_CLOSED;
	http_event_id_put(&id, text);
	err = http_stream_event(t->carrier->x, text, iov, n);
	if (err == MV_OK)
		t->handed = at;
	return err;
}

void
http_track_prime(struct http_call *k)
{
	enum revision revision = client_session_of(k->session->client).revision;

	/* If it does not get there, neither does anything else. */
	if (revision_has_priming(revision))
		(void)!track_write(k->track, k->track->handed, NULL, 0);
}

/* NULL: there is no room for it. */
static struct http_track *
track_new(struct http_session *s, struct http_call *carrier, bool is_notices)
{
	struct http_replay *r = s->replay;
	struct http_track *t = NULL;

	if (r == NULL) {
		r = s->replay = mem_xcalloc(1, sizeof(*r));
		r->s = s;
		r->epoch = clock_random(UINT32_MAX);
	}
	if (replay_make_room(r, NULL, sizeof(*t))) {
		t = mem_try(sizeof(*t));
		r->bytes -= t == NULL ? sizeof(*t) : 0;
	}
	if (t == NULL) {
		replay_rest(s);
		return NULL;
	}
	*t = (struct http_track){.magic = TRACK_MAGIC,
	    .of = r,
	    .next = r->tracks,
	    .prev = &r->tracks,
	    .carrier = carrier,
	    .tail = &t->first,
	    .number = ++r->made,
	    .is_notices = is_notices};
	if (t->next != NULL)
		t->next->prev = &t->next;
	r->tracks = t;
	return t;
}

void
http_track_begin(struct http_call *k)
{
	struct http_session *s = k->session;

	if (!s->is_sse && s->e->o.replay_bytes > 0 &&
	    revision_has_event_ids(client_session_of(s->client).revision))
		k->track = track_new(s, k, k->is_get);
}

enum mv_err
http_track_send(struct http_track *t, const struct iovec *iov, int n)
{
	bool kept;
	enum mv_err err;

	MCPVISOR_ASSERT(t->magic == TRACK_MAGIC && !t->is_over);
	t->last++;
	kept = track_keep(t, iov, n);
	err = track_write(t, t->last, iov, n);
	/* Whoever was too slow for it can come back for it. */
	return kept ? MV_OK : err;
}

/* Better than none: its client knows that the request has been carried out. */
static void
track_keep_excuse(struct http_track *t, struct jtext id)
{
	static const char error[] = "\"error\":" WORDING_NOT_KEPT "}";
	struct iovec iov;
	struct buf b;

	buf_init(&b, CAP_ID_BYTES + sizeof(error) + 64);
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",");
	if (id.n > 0) {
		buf_add_str(&b, "\"id\":");
		buf_add(&b, id.p, id.n);
		buf_add_char(&b, ',');
	}
	buf_add(&b, error, sizeof(error) - 1);
	iov = (struct iovec){b.data, b.len};
	if (b.err != MV_OK || !track_keep(t, &iov, 1))
		LOG_LIMITED(LOG_LV_WARNING, "http", "answer is not kept",
		    "hint=\"http.replay_bytes bounds what is\"");
	buf_fini(&b);
}

void
http_track_answer(struct http_track *t, struct jtext id, const struct iovec *iov, int n)
{
	MCPVISOR_ASSERT(t->magic == TRACK_MAGIC && !t->is_over);
	t->last++;
	if (!track_keep(t, iov, n))
		track_keep_excuse(t, id);
	(void)!track_write(t, t->last, iov, n);
	http_track_end(t);
}

void
http_track_end(struct http_track *t)
{
	MCPVISOR_ASSERT(t->magic == TRACK_MAGIC);
	t->is_over = true;
	t->due_ms = clock_now_ms() + t->of->s->e->o.replay_ms;
	if (track_is_open(t))
		http_stream_end(t->carrier->x);
}

void
http_track_leave(struct http_call *k, bool gone)
{
	struct http_track *t = k->track;
	const struct endpoint_http *e = k->e;
	uint32_t patience;

	if (t == NULL || t->carrier != k)
		return;
	MCPVISOR_ASSERT(t->magic == TRACK_MAGIC);
	t->carrier = NULL;
	t->is_settled = t->is_over && !gone;
	patience = e->o.replay_ms;
	if (t->is_settled && patience > SETTLED_MS)
		patience = SETTLED_MS;
	t->due_ms = clock_now_ms() + patience;
	if (!t->is_notices)
		return;
	if (k->session->stream == NULL) {
		k->session->away_ms = t->due_ms;
		t->of->away = t;
	}
	/* Nothing to ask for again: its id brings another stream, as good as this. */
	if (t->first == NULL) {
		k->track = NULL;
		track_free(t);
		replay_rest(k->session);
	}
}

static struct http_track *
replay_find(const struct http_replay *r, const struct http_event_id *id)
{
	struct http_track *t = r != NULL && r->epoch == id->epoch ? r->tracks : NULL;

	while (t != NULL && (t->number != id->number || t->is_notices != id->is_notices))
		t = t->next;
	return t;
}

static bool
track_has_after(const struct http_track *t, uint64_t after)
{
	const struct http_event *ev = t->first;

	while (ev != NULL && ev->n <= after)
		ev = ev->next;
	return ev != NULL;
}

bool
http_track_find(struct http_session *s, struct http_text text, struct http_track **out,
    uint64_t *after)
{
	struct http_event_id id;
	struct http_track *t;

	*out = NULL;
	*after = 0;
	if (!http_event_id_parse(text, &id))
		return true; /* what we have not written says nothing */
	(void)http_replay_sweep(s);
	t = replay_find(s->replay, &id);
	if (t == NULL)
		return id.is_notices;
	*out = t;
	*after = id.n < t->last ? id.n : t->last;
	/* An SDK client that had an error as its answer comes back for more, again and
	 * again as long as it is given a stream. */
	return !t->is_over || track_has_after(t, *after);
}

static void
track_replay(struct http_track *t)
{
	enum mv_err err = MV_OK;

	for (struct http_event *ev = t->first; ev != NULL && err == MV_OK; ev = ev->next)
		if (ev->n > t->handed)
			err =
			    track_write(t, ev->n, &(struct iovec){ev->data, ev->len}, 1);
	if (err != MV_OK)
		LOG_DEBUG("http", "not all came again", "reason=%s", mv_err_reason(err));
}

void
http_track_resume(struct http_call *k, struct http_track *t, uint64_t after)
{
	struct http_call *old = t->carrier;

	MCPVISOR_ASSERT(t->magic == TRACK_MAGIC);
	if (t->of->away == t)
		t->of->away = NULL;
	t->carrier = k;
	t->is_settled = false;
	k->track = t;
	if (old != NULL) {
		/* Its client knows better than we that this line is dead. */
		if (old->request == NULL && !old->batch_open)
			old->track = NULL;
		if (old->x != NULL)
			http_stream_end(old->x);
	}
	while (t->first != NULL && t->first->n <= after)
		track_drop_first(t);
	t->handed = after;
	http_call_become_stream(k);
	track_replay(t);
	if (t->is_over && track_is_open(t))
		http_stream_end(k->x);
}

struct http_track *
http_replay_away(struct http_session *s)
{
	struct http_track *t = s->replay != NULL ? s->replay->away : NULL;

	if (s->away_ms <= clock_now_ms())
		return NULL;
	if (t == NULL && (t = track_new(s, NULL, true)) != NULL) {
		t->due_ms = s->away_ms;
		s->replay->away = t;
	}
	return t;
}

void
http_replay_return(struct http_call *k)
{
	struct http_replay *r = k->session->replay;
	struct http_track *t = k->track, *away = r != NULL ? r->away : NULL;
	struct http_event *ev;

	if (away == NULL || t == NULL)
		return;
	/* What no connection ever had belongs to whichever comes. */
	r->away = NULL;
	while (away->first != NULL && away->first->n <= away->handed)
		track_drop_first(away);
	while ((ev = away->first) != NULL) {
		away->first = ev->next;
		ev->n = ++t->last;
		track_append(t, ev);
	}
	away->tail = &away->first;
	away->last = away->handed;
	track_replay(t);
}

bool
http_replay_sweep(struct http_session *s)
{
	uint64_t now = clock_now_ms();
	bool is_short = mem_is_short(), waits = false;
	struct http_track *t = s->replay != NULL ? s->replay->tracks : NULL, *next;

	for (; t != NULL; t = next) {
		next = t->next;
		if (t->carrier != NULL || (!t->is_over && !t->is_notices))
			continue;
		if (t->due_ms <= now || (t->is_settled && is_short))
			track_free(t);
		else
			waits = waits || (t->is_over && !t->is_settled);
	}
	replay_rest(s);
	return waits;
}

void
http_replay_free(struct http_session *s)
{
	while (s->replay != NULL && s->replay->tracks != NULL)
		track_free(s->replay->tracks);
	replay_rest(s);
}
