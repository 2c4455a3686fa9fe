/* SPDX-License-Identifier: MIT */
/*
 * Sessions of legacy HTTP clients: made by initialize, found by their signed id, brought
 * back from it when their memory is gone.
 *
 * Owns: the client of each session in memory.
 * Driven by: the endpoint; a sweep.
 * Invariants: what is in memory can be dropped when it holds nothing that its id does
 * not say; what does hold more is marked where it outlives us, so that after a restart
 * its client is told (404) and starts anew.
 * Spec: 2025-11-25 basic/transports, Session Management.
 */
#include "endpoint_http_priv.h"
#include "http_replay_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>
#include <time.h>

#define TRIM_MS	 1000
#define RETRY_MS 1000 /* a client waits before it looks for us again */

static enum mv_err
on_send(void *arg, const struct iovec *iov, int n)
{
	struct http_session *s = arg;
	struct http_call *k = s->stream;
	struct http_track *t = k != NULL ? k->track : http_replay_away(s);

	if (t != NULL)
		return http_track_send(t, iov, n);
	if (k == NULL || k->x == NULL)
		return MV_CLOSED;
	return s->is_sse ? http_stream_typed_event(k->x, "message", iov, n)
			 : http_stream_event(k->x, NULL, iov, n);
}

static void
on_idle(void *arg)
{
	struct http_session *s = arg;

	deferred_ask(&s->e->check);
}

static void
on_dead(void *arg)
{
	(void)arg; /* its stream has ended already */
}

static const struct client_cb client_callbacks = {
    .send = on_send, .on_idle = on_idle, .on_dead = on_dead};

static uint64_t
session_now_s(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec;
}

/* printf would cost as much as much of a call. */
static size_t
principal_put(char *out, size_t at, const char *s, size_t n)
{
	size_t room = SESSION_ID_PRINCIPAL_MAX - at;

	if (n > room)
		n = room;
	memcpy(out + at, s, n);
	return at + n;
}

static size_t
principal_put_uid(char *out, size_t at, uid_t uid)
{
	char digits[16];
	size_t i = sizeof(digits);

	do
		digits[--i] = (char)('0' + uid % 10);
	while ((uid /= 10) != 0);
	return principal_put(out, at, digits + i, sizeof(digits) - i);
}

/* The default profile adds nothing, as in ids from before there were others. */
void
http_principal(const struct http_call *k, char out[SESSION_ID_PRINCIPAL_MAX + 1])
{
	uid_t uid = http_exchange_uid(k->x);
	const char *profile = k->mount->profile;
	size_t n = 0;

	/* Over TCP, where nobody has said who they are, the session stands for itself. */
	if (uid != (uid_t)-1) {
		n = principal_put(out, n, "uid:", 4);
		n = principal_put_uid(out, n, uid);
	}
	if (profile[0] != '\0') {
		n = principal_put(out, n, "@", 1);
		n = principal_put(out, n, profile, strlen(profile));
	}
	out[n] = '\0';
}

static void
on_reap(void *arg)
{
	struct http_session *s = arg;

	if (s->calls > 0)
		return;
	if (s->is_deleted || s->text_len == 0)
		http_session_drop(s);
	else
		client_rest(s->client);
}

static struct http_session *
session_alloc(struct http_mount *m)
{
	struct endpoint_http *e = m->e;
	struct http_session *s;

	if (e->n_sessions >= e->o.sessions_max)
		http_sessions_sweep(e);
	s = e->n_sessions < e->o.sessions_max ? mem_try(sizeof(*s)) : NULL;
	if (s == NULL)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->e = e;
	s->mount = http_mount_ref(m);
	s->client = client_new(e->loop, e->g, m->view, &client_callbacks, s);
	client_set_own_instances(s->client, true);
	deferred_init(&s->reap, e->loop, on_reap, s);
	s->used_ms = clock_now_ms();
	s->next = e->first;
	if (s->next != NULL)
		s->next->prev = &s->next;
	s->prev = &e->first;
	e->first = s;
	e->n_sessions++;
	return s;
}

struct http_session *
http_session_new(struct http_mount *m)
{
	return session_alloc(m);
}

void
http_session_drop(struct http_session *s)
{
	struct endpoint_http *e = s->e;

	if (s->text_len > 0 && strmap_get(e->sessions, s->text, s->text_len) == s)
		(void)strmap_del(e->sessions, s->text, s->text_len);
	*s->prev = s->next;
	if (s->next != NULL)
		s->next->prev = s->prev;
	e->n_sessions--;
	/* Calls that end with it may ask for its end once more. */
	client_free(s->client);
	s->client = NULL;
	http_replay_free(s);
	deferred_cancel(&s->reap);
	http_mount_unref(s->mount);
	mem_free(s->text);
	mem_free(s);
	/* What many have left goes back soon. */
	if (!e->is_trim_due && mem_has_slack()) {
		e->is_trim_due = true;
		timer_set(&e->sweep_timer, TRIM_MS);
	}
}

/* From now on it has that name. False: memory is short. */
static bool
session_enter(struct http_session *s, struct http_text text, const struct session_id *id)
{
	size_t n = strlen(id->principal);
	char *p = mem_try(text.n + 1 + n + 1);

	if (p == NULL)
		return false;
	memcpy(p, text.p, text.n);
	p[text.n] = '\0';
	memcpy(p + text.n + 1, id->principal, n + 1);
	s->text = p;
	s->text_len = text.n;
	s->serial = id->serial;
	s->expires_s = id->expires_s;
	if (strmap_put(s->e->sessions, s->text, s->text_len, s))
		return true;
	/* Without it, it goes with its call. */
	s->text = NULL;
	s->text_len = 0;
	mem_free(p);
	return false;
}

static bool
session_is_of(const struct http_session *s, const char *principal)
{
	return strcmp(s->text + s->text_len + 1, principal) == 0;
}

bool
http_session_seal(struct http_session *s, const char *principal)
{
	struct client_session c = client_session_of(s->client);
	struct session_id id = {.revision = c.revision, .caps_mask = c.caps};
	bool done = false;
	struct buf b;

	if (!c.open)
		return false;
	buf_init(&b, CAP_MESSAGE_BYTES);
	if (json_string_decode(json_member(c.client_info, "name"), &b) && b.len > 0)
		session_id_set_client(&id, b.data, b.len);
	buf_reset(&b);
	id.start_s = session_now_s();
	id.expires_s = id.start_s + s->e->o.session_s;
	id.serial = (uint64_t)clock_random(UINT32_MAX) << 32 | clock_random(UINT32_MAX);
	if (session_id_set_principal(&id, principal, strlen(principal)))
		session_id_put(&id, &s->e->o.key, &b);
	if (b.err == MV_OK && b.len > 0 && b.len <= SESSION_ID_TEXT_MAX)
		done = session_enter(s, (struct http_text){b.data, b.len}, &id);
	buf_fini(&b);
	return done;
}

bool
http_session_name(struct http_session *s, const char *principal)
{
	/* It lasts as long as its stream, and nobody brings it back. */
	struct session_id id = {.expires_s = UINT64_MAX};
	unsigned char secret[24];
	bool done = false;
	struct buf b;

	clock_random_bytes(secret, sizeof(secret));
	buf_init(&b, SESSION_ID_TEXT_MAX);
	base64url_put(&b, secret, sizeof(secret));
	s->is_sse = s->is_marked = true;
	if (b.err == MV_OK && session_id_set_principal(&id, principal, strlen(principal)))
		done = session_enter(s, (struct http_text){b.data, b.len}, &id);
	buf_fini(&b);
	return done;
}

struct http_session *
http_session_named(struct http_mount *m, struct http_text text, const char *principal)
{
	struct http_session *s = strmap_get(m->e->sessions, text.p, text.n);

	if (s == NULL || !s->is_sse || s->is_deleted || s->mount != m ||
	    !session_is_of(s, principal))
		return NULL;
	return s;
}

static bool
session_is_gone(const struct endpoint_http *e, uint64_t serial)
{
	return e->o.is_gone != NULL && e->o.is_gone(e->o.gone_arg, serial);
}

/* A session of an earlier process, or one whose memory was given back. */
static int
session_revive(struct http_mount *m, struct http_text text, const struct session_id *id,
    struct http_session **out)
{
	struct http_session *s;

	if (session_is_gone(m->e, id->serial))
		return 404;
	/* It is as good as ever, and there will be room: its client is not to start anew
	 * for that. */
	s = session_alloc(m);
	if (s == NULL)
		return 503;
	client_session_restore(s->client, id->revision, id->caps_mask, id->client);
	if (!session_enter(s, text, id)) {
		http_session_drop(s);
		return 503;
	}
	*out = s;
	return 0;
}

static int
session_read(struct http_mount *m, struct http_text text, const char *principal,
    struct http_session **out)
{
	struct session_id id;
	enum session_id_verdict v =
	    session_id_parse(text.p, text.n, &m->e->o.key, session_now_s(), &id);

	if (v != SESSION_ID_OK) {
		LOG_DEBUG(
		    "http", "session refused", "why=%s", session_id_verdict_text(v));
		return 404;
	}
	if (strcmp(id.principal, principal) != 0)
		return 404;
	return session_revive(m, text, &id, out);
}

int
http_session_find(struct http_mount *m, struct http_text text, const char *principal,
    struct http_session **out)
{
	struct endpoint_http *e = m->e;
	struct http_session *s = strmap_get(e->sessions, text.p, text.n);
	int status = 0;

	*out = NULL;
	if (s == NULL) {
		status = session_read(m, text, principal, &s);
	} else if (s->is_deleted || s->is_sse || !session_is_of(s, principal) ||
		   s->expires_s <= session_now_s()) {
		status = 404;
	} else if (!s->is_marked && session_is_gone(e, s->serial)) {
		/* Marked by another process that shares our key: deleted, or more than
		 * its id there. */
		s->is_marked = true;
		http_session_delete(s);
		deferred_ask(&s->reap);
		status = 404;
	}
	if (status != 0)
		return status;
	s->used_ms = clock_now_ms();
	*out = s;
	return 0;
}

/* A restart, or its removal from memory, is to end it. */
static void
session_mark(struct http_session *s)
{
	if (s->is_marked)
		return;
	s->is_marked = true;
	if (s->e->o.mark_gone != NULL)
		s->e->o.mark_gone(s->e->o.gone_arg, s->serial, s->expires_s);
}

void
http_session_note_state(struct http_session *s)
{
	struct client_session c = client_session_of(s->client);

	if (c.n_subscriptions > 0 || c.n_instances > 0 || c.n_asks > 0 || c.n_tasks > 0)
		session_mark(s);
}

void
http_session_delete(struct http_session *s)
{
	s->is_deleted = true;
	if (!s->is_marked && s->e->o.mark_gone != NULL)
		s->e->o.mark_gone(s->e->o.gone_arg, s->serial, s->expires_s);
	s->is_marked = true;
	(void)strmap_del(s->e->sessions, s->text, s->text_len);
	http_session_end_streams(s);
}

void
http_session_retire(struct http_session *s)
{
	/* What its id does not say is lost with its memory. */
	if (s->text_len > 0) {
		http_session_note_state(s);
		if (client_session_of(s->client).has_level)
			session_mark(s);
	}
	s->is_deleted = true;
	if (s->text_len > 0 && strmap_get(s->e->sessions, s->text, s->text_len) == s)
		(void)strmap_del(s->e->sessions, s->text, s->text_len);
	http_session_end_streams(s);
	deferred_ask(&s->reap);
}

void
http_session_end_streams(struct http_session *s)
{
	for (struct http_call *k = s->stream; k != NULL; k = k->older)
		if (k->x != NULL)
			http_stream_end(k->x);
}

void
http_session_leave_streams(struct http_session *s)
{
	for (struct http_call *k = s->stream; k != NULL; k = k->older)
		if (k->x != NULL && k->track != NULL)
			http_stream_retry(k->x, RETRY_MS);
	http_session_end_streams(s);
}

void
http_session_release(struct http_session *s)
{
	if (s->text_len > 0)
		http_session_note_state(s);
	s->calls--;
	s->used_ms = clock_now_ms();
	/* One that never was opened, or is no more, has nobody to wait for; any other
	 * keeps what its next call needs and no more. Its client may be on the stack:
	 * the last call ends in one of its callbacks. */
	if (s->calls == 0)
		deferred_ask(&s->reap);
}

/* How long s may be idle in memory. */
static uint64_t
session_patience(const struct http_session *s)
{
	const struct endpoint_http *e = s->e;

	/* To end one that cannot be brought back is not for the next comer to decide. */
	if (s->is_marked || client_session_of(s->client).has_level)
		return e->o.session_state_idle_ms;
	/* When they are too many, idle means not busy. */
	return e->n_sessions >= e->o.sessions_max ? 0 : e->o.session_idle_ms;
}

/* An answer that waits for its client holds its session, if there is room. */
static bool
session_has_time(const struct http_session *s, uint64_t now, bool waits)
{
	return (waits && s->e->n_sessions < s->e->o.sessions_max) ||
	       now - s->used_ms < session_patience(s);
}

void
http_sessions_sweep(struct endpoint_http *e)
{
	uint64_t now = clock_now_ms(), wall = session_now_s();
	struct http_session *next;

	for (struct http_session *s = e->first; s != NULL; s = next) {
		bool over = s->expires_s <= wall;
		bool waits = http_replay_sweep(s);

		next = s->next;
		if (s->calls > 0 || (!over && session_has_time(s, now, waits)))
			continue;
		if (client_session_of(s->client).has_level)
			session_mark(s);
		http_session_drop(s);
	}
	/* Empty, it would keep the room of its fullest hour. */
	if (e->is_trim_due && strmap_count(e->sessions) == 0) {
		strmap_free(e->sessions);
		e->sessions = strmap_new();
	}
}
