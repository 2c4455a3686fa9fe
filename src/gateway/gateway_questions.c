/* SPDX-License-Identifier: MIT */
/*
 * Whose question it is, when an upstream asks its client something.
 *
 *   a call's stream --> that call
 *   an instance of one client, or its call --> that client
 *   a shared one: the one client with calls in flight; of several: wait for one to be
 * left
 *
 * Owns: questions that wait for their owner to be certain; what upstreams are told that
 * their client can do.
 * Driven by: upstreams (a question), calls that end, clients (what they can be asked).
 * Invariants: an owner is never guessed; an upstream that does not say which call it asks
 * for is shared, once it has asked, only by clients that it cannot ask.
 */
#include "gateway_priv.h"
#include "gateway_questions_priv.h"
#include "gateway_tasks_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <string.h>

/* How long a question waits for its owner to be certain. */
#define OWNER_WAIT_MS 30000
/* How long an upstream may still be at work on a call that it was told to give up. */
#define WITHDRAWN_MS 60000

#define ASKABLE ((unsigned)CLIENT_CAP_SAMPLING | CLIENT_CAP_ELICITATION)

struct pending_question {
	struct pending_question *next, **prev;
	struct gateway *g;
	struct member *m;
	struct question *q;
	uint64_t due_ms;
};

/* ---- what an instance declares ---- */

static unsigned
member_caps(const struct member *m)
{
	const struct gateway *g = m->g;
	enum isolation isolation = upstream_conf_of(m->u)->isolation;

	if (g->opts.one_client)
		return g->client_caps;
	if (m->is_instance)
		return m->caps;
	/* Where clients have instances of their own the shared one only tells what there
	 * is. */
	if (!g->opts.can_ask || isolation == ISOLATION_SESSION ||
	    isolation == ISOLATION_CALL ||
	    (isolation == ISOLATION_AUTO && upstream_asks(m->u)))
		return CLIENT_CAP_NONE;
	return CLIENT_CAPS_SHARED;
}

void
member_declare(struct member *m)
{
	if (!m->g->opts.one_client || m->g->caps_known)
		upstream_set_client_caps(m->u, member_caps(m));
}

void
gateway_set_caps(struct gateway *g, struct gateway_observer *o, unsigned caps)
{
	o->caps = caps;
	if (!g->opts.one_client || g->caps_known)
		return;
	g->caps_known = true;
	g->client_caps = caps;
	for (size_t i = 0; i < g->n; i++)
		member_declare(g->m[i]);
	for (struct member *m = g->instances; m != NULL; m = m->next)
		member_declare(m);
}

void
gateway_roots_changed(struct gateway *g, struct gateway_observer *o)
{
	for (size_t i = 0; g->opts.one_client && i < g->n; i++)
		upstream_tell_roots_changed(g->v[i]);
	for (struct member *m = g->instances; m != NULL; m = m->next)
		if (g->opts.one_client || m->owner == o)
			upstream_tell_roots_changed(m->u);
}

bool
gateway_needs_own(const struct gateway *g, const struct upstream *u, unsigned caps)
{
	const struct upstream_conf *conf = upstream_conf_of(u);

	if (g->opts.one_client || !g->opts.can_ask || !upstream_may_ask_by_request(u))
		return false;
	return (upstream_asks(u) && (caps & ASKABLE) != 0) ||
	       (conf->roots == ROOTS_CLIENT && (caps & CLIENT_CAP_ROOTS) != 0);
}

/* ---- whose it is ---- */

/* Who has calls in flight at an upstream. */
struct askers {
	const void *who;	    /* a client, or the one call of a crowd */
	struct upstream_req *first; /* the oldest */
	unsigned n_calls;
	bool several;
};

static bool
askers_add(struct upstream_req *r, void *arg)
{
	struct askers *s = arg;
	const struct gateway_observer *owner = r->owner;
	const void *who = owner != NULL && !owner->is_crowd ? (const void *)owner : r;

	if (r->cb->on_question == NULL)
		return true;
	s->several |= s->n_calls > 0 && s->who != who;
	s->who = who;
	s->first = r; /* they come newest first */
	s->n_calls++;
	return true;
}

struct gateway_observer *
member_sole_client(const struct member *m)
{
	const struct gateway *g = m->g;

	if (m->owner != NULL)
		return m->owner;
	if (!g->opts.one_client || g->observers == NULL || g->observers->next != NULL)
		return NULL;
	return g->observers;
}

bool
member_may_be_late(const struct member *m, const struct gateway_observer *who)
{
	uint64_t at = upstream_withdrawn_ms(m->u);

	/* Of its own calls a client may hear in any case. */
	if (who != NULL && !who->is_crowd && upstream_withdrawn_owner(m->u) == who)
		return false;
	return at != 0 && clock_now_ms() - at < WITHDRAWN_MS;
}

static void
question_to_client(struct member *m, struct gateway_observer *o,
    const struct upstream_req *only, struct question *q)
{
	if (only != NULL)
		only->cb->on_question(only->arg, q);
	else if (o != NULL && o->on_question != NULL)
		o->on_question(o->arg, m->u, q);
	else
		question_refuse(q, WORDING_ASK_NO_CLIENT);
}

/* Whose calls they are, if that is still one of the clients. */
static struct gateway_observer *
askers_client(const struct gateway *g, const struct askers *s)
{
	struct gateway_observer *o = s->n_calls > 0 ? g->observers : NULL;

	while (o != NULL && o != s->first->owner)
		o = o->next;
	return o;
}

/* False: it may be one of several clients'. */
static bool
question_deliver(struct member *m, struct upstream_req *by, struct question *q)
{
	struct gateway_observer *o = member_sole_client(m);
	struct askers s = {.n_calls = 0};

	if (by != NULL && by->cb->on_question != NULL) {
		question_to_client(m, NULL, by, q);
		return true;
	}
	upstream_each_req(m->u, askers_add, &s);
	if (o == NULL &&
	    (s.several || (s.n_calls > 0 && member_may_be_late(m, s.first->owner))))
		return false;
	if (o == NULL)
		o = askers_client(m->g, &s);
	question_to_client(m, o, s.n_calls == 1 ? s.first : NULL, q);
	return true;
}

/* ---- waiting ---- */

static void
pending_free(struct pending_question *p)
{
	*p->prev = p->next;
	if (p->next != NULL)
		p->next->prev = p->prev;
	p->g->n_pending--;
	mem_free(p);
}

static void
pending_on_withdrawn(void *arg, struct question *q)
{
	(void)q;
	pending_free(arg);
}

static const struct question_cb pending_cb = {.on_withdrawn = pending_on_withdrawn};

static void
pending_add(struct member *m, struct question *q)
{
	struct gateway *g = m->g;
	struct pending_question *p =
	    g->n_pending < CAP_UPSTREAM_QUESTIONS ? mem_try(sizeof(*p)) : NULL;

	if (p == NULL) {
		question_refuse(q, WORDING_ASK_UNCERTAIN);
		return;
	}
	*p = (struct pending_question){
	    .g = g, .m = m, .q = q, .due_ms = clock_now_ms() + OWNER_WAIT_MS};
	p->next = g->pending;
	if (p->next != NULL)
		p->next->prev = &p->next;
	p->prev = &g->pending;
	g->pending = p;
	g->n_pending++;
	question_take(q, &pending_cb, p, NULL);
	if (!timer_is_set(&g->pending_timer))
		timer_set(&g->pending_timer, OWNER_WAIT_MS);
}

/* Some call is over: maybe one client is left. */
static void
on_look_again(void *arg)
{
	struct gateway *g = arg;
	struct pending_question *next;

	for (struct pending_question *p = g->pending; p != NULL; p = next) {
		struct member *m = p->m;
		struct question *q = p->q;

		next = p->next;
		question_take(q, NULL, NULL, NULL);
		if (question_deliver(m, NULL, q)) {
			pending_free(p);
			next = g->pending; /* whoever it went to may have ended others */
		} else {
			question_take(q, &pending_cb, p, NULL);
		}
	}
}

static void
pending_refuse(struct pending_question *p)
{
	struct question *q = p->q;

	LOG_LIMITED(LOG_LV_WARNING, "gateway", "question refused",
	    "upstream=%s method=%s reason=%s",
	    LOG_ESC(upstream_name(p->m->u), strlen(upstream_name(p->m->u))),
	    method_name(q->method), "several clients could be meant");
	pending_free(p);
	question_refuse(q, WORDING_ASK_UNCERTAIN);
}

static void
on_pending_timer(void *arg)
{
	struct gateway *g = arg;
	struct pending_question *last;
	uint64_t now = clock_now_ms();

	/* The oldest is the last one. */
	for (;;) {
		for (last = g->pending; last != NULL && last->next != NULL;)
			last = last->next;
		if (last == NULL || last->due_ms > now)
			break;
		pending_refuse(last);
	}
	if (last != NULL)
		timer_set(&g->pending_timer, last->due_ms - now);
}

void
gateway_note_call_over(struct gateway *g)
{
	if (g->pending != NULL)
		deferred_ask(&g->look_again);
}

/* ---- one that asks ---- */

/* Those that have turned out to ask make room for one that cannot. */
static void
on_replace(void *arg)
{
	struct gateway *g = arg;

	for (size_t i = 0; i < g->n; i++) {
		struct member *m = g->m[i];

		const struct upstream_conf *conf = upstream_conf_of(m->u);

		if (!m->must_replace)
			continue;
		m->must_replace = false;
		/* The call that it asks for has all of its time, and so has its client.
		 */
		gateway_restart(g, m->u, conf->question_ms + conf->call_max_ms);
	}
}

static void
member_note_asks(struct member *m)
{
	struct gateway *g = m->g;

	if (g->opts.one_client || m->is_instance || m->state != MEMBER_ST_ACTIVE ||
	    upstream_tells_calls(m->u) || upstream_asks(m->u) ||
	    upstream_conf_of(m->u)->isolation != ISOLATION_AUTO)
		return;
	LOG_NOTICE("gateway", "it asks its client: clients get instances of their own",
	    "upstream=%s", LOG_ESC(upstream_name(m->u), strlen(upstream_name(m->u))));
	upstream_note_asks(m->u);
	m->must_replace = true;
	deferred_ask(&g->replace);
}

struct waiter_search {
	const struct gateway_observer *o;
	struct upstream_req *found;
};

static bool
waiter_find(struct upstream_req *r, void *arg)
{
	struct waiter_search *s = arg;

	if (r->owner == s->o && r->method == METHOD_TASKS_RESULT &&
	    r->cb->on_question != NULL)
		s->found = r; /* they come newest first */
	return true;
}

/* The oldest request of o that waits for the result of a task, which is the stream that
 * the client expects to be asked on. */
static struct upstream_req *
task_waiter(const struct member *m, const struct gateway_observer *o)
{
	struct waiter_search s = {.o = o};

	upstream_each_req(m->u, waiter_find, &s);
	return s.found;
}

void
gateway_on_question(struct member *m, struct upstream_req *by, struct question *q)
{
	struct gateway_observer *o;

	metrics_add(METRIC_QUESTIONS, 1);
	if (by == NULL && task_owner_by_meta(m, q->bytes, &q->json, &o)) {
		/* It says whose it is. */
		question_to_client(m, o, o != NULL ? task_waiter(m, o) : NULL, q);
		return;
	}
	if (by == NULL && q->method != METHOD_ROOTS)
		member_note_asks(m);
	if (!question_deliver(m, by, q))
		pending_add(m, q);
}

void
gateway_questions_leave(struct gateway *g, const struct gateway_observer *o)
{
	for (size_t i = 0; i < g->n; i++)
		upstream_forget_owner(g->v[i], o);
	for (struct member *m = g->instances; m != NULL; m = m->next)
		upstream_forget_owner(m->u, o);
	for (struct member *m = g->leaving; m != NULL; m = m->next)
		upstream_forget_owner(m->u, o);
	elicitations_leave(g, o);
}

void
gateway_questions_init(struct gateway *g)
{
	elicitations_init(g);
	timer_init(&g->pending_timer, g->loop, on_pending_timer, g);
	deferred_init(&g->look_again, g->loop, on_look_again, g);
	deferred_init(&g->replace, g->loop, on_replace, g);
}

/* After the upstreams, which have withdrawn what they asked. */
void
gateway_questions_fini(struct gateway *g)
{
	MCPVISOR_ASSERT(g->pending == NULL);
	elicitations_fini(g);
	timer_fini(&g->pending_timer);
	deferred_cancel(&g->look_again);
	deferred_cancel(&g->replace);
}
