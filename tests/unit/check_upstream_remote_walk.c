/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Random walks through the states of a remote upstream. */
#include "remote_rig.h"

#define WALK_STEPS 6000
#define WALK_SEEDS 12
#define N_CALLS	   6

struct walk {
	struct uowner *o;
	unsigned seed;
	struct ucall calls[N_CALLS];
};

static unsigned
walk_random(struct walk *w, unsigned limit)
{
	return (unsigned)rand_r(&w->seed) % limit;
}

/* Something about a request that may be there or not. */
static void
walk_answer(struct walk *w, struct http_link *k)
{
	static const char *const results[] = {
	    "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}}}",
	    "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}}",
	    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}", "{\"tools\":[]}"};
	static const char *const codes[] = {"-32601", "-32022", "-32020", "-32000"};
	static const enum mv_err errs[] = {
	    MV_HTTP, MV_CLOSED, MV_PROTOCOL, MV_UNREACHABLE, MV_AUTH};
	static const int statuses[] = {400, 404, 405, 500, 503};
	unsigned long long id = w->o->u->last_id - walk_random(w, 4);
	enum mv_err err = errs[walk_random(w, 10) < 7 ? 0 : walk_random(w, 5)];

	switch (walk_random(w, 4)) {
	case 0:
		server_refuses(id, codes[walk_random(w, 4)]);
		break;
	case 1:
		fake_http_fail(k, id, err,
		    err == MV_HTTP   ? statuses[walk_random(w, 5)]
		    : err == MV_AUTH ? 401
				     : 0,
		    NULL);
		break;
	default:
		server_answers(id, results[walk_random(w, 4)]);
		break;
	}
}

static void
walk_server_step(struct walk *w)
{
	struct http_link *k = fake_http_last();

	if (k == NULL)
		return;
	switch (walk_random(w, 8)) {
	case 0:
	case 1:
		fake_http_note_taken(k);
		break;
	case 2:
		if (fake_http_mode(k) == HTTP_MODE_SSE)
			fake_http_endpoint(k, walk_random(w, 3) > 0 ? MV_OK : MV_HTTP,
			    walk_random(w, 2) > 0 ? 404 : 503);
		break;
	case 3:
		fake_http_lose_session(k);
		break;
	case 4:
		fake_http_give_session(k);
		break;
	default:
		walk_answer(w, k);
		break;
	}
}

static void
walk_call_step(struct walk *w)
{
	struct ucall *c = &w->calls[walk_random(w, N_CALLS)];

	if (c->req.u != NULL)
		upstream_cancel(&c->req, NULL);
	else
		(void)ucall_try(w->o, c, CALL, NULL);
}

static void
walk_life_step(struct walk *w)
{
	struct http_link *k = fake_http_last();

	switch (walk_random(w, 6)) {
	case 0:
		upstream_restart(w->o->u, "for the test");
		break;
	case 1:
		upstream_wake(w->o->u);
		break;
	case 2:
		upstream_start(w->o->u);
		break;
	case 3:
		upstream_set_conf(w->o->u, w->o->conf);
		break;
	default:
		if (k != NULL && fake_http_is_ending(k))
			fake_http_ended(k);
		break;
	}
}

static void
walk_step(struct walk *w)
{
	switch (walk_random(w, 16)) {
	case 0:
		fake_loop_advance(w->o->loop, walk_random(w, 70000));
		break;
	case 1:
	case 2:
		fake_loop_advance(w->o->loop, walk_random(w, 4000));
		break;
	case 3:
	case 4:
		walk_call_step(w);
		break;
	case 5:
		walk_life_step(w);
		break;
	case 6:
	case 7:
		fake_loop_settle(w->o->loop);
		break;
	default:
		walk_server_step(w);
		break;
	}
	fake_http_forget_all();
}

static void
walk_check(struct walk *w)
{
	const struct upstream *u = w->o->u;
	const struct remote *rm = u->remote;
	enum upstream_state st = upstream_state(u);
	bool greets = st == UPSTREAM_ST_PROBE || st == UPSTREAM_ST_BOTH ||
		      st == UPSTREAM_ST_INIT || st == UPSTREAM_ST_LATE;
	bool there = rm->state == REMOTE_ST_UP || rm->state == REMOTE_ST_ENDING;
	unsigned in_flight = 0;

	ck_assert_int_eq(rm->link != NULL, there);
	ck_assert_uint_eq(fake_http_live(), w->o->https + (there ? 1 : 0));
	if (greets || st == UPSTREAM_ST_READY)
		ck_assert(there);
	if (rm->state == REMOTE_ST_UP)
		ck_assert(greets || st == UPSTREAM_ST_READY);
	ck_assert_int_eq(u->era != NULL, st == UPSTREAM_ST_READY);
	ck_assert_int_eq(timer_is_set(&rm->timer), rm->state == REMOTE_ST_BACKOFF);
	if (rm->state == REMOTE_ST_FAILED || rm->state == REMOTE_ST_REFUSED)
		ck_assert_int_eq(st, UPSTREAM_ST_PARKED);
	ck_assert(!rm->greeting || greets || rm->state == REMOTE_ST_ENDING);
	for (unsigned i = 0; i < N_CALLS; i++)
		in_flight += w->calls[i].req.u != NULL;
	ck_assert_uint_eq(upstream_in_flight(u), in_flight);
	if (in_flight == 0)
		ck_assert_uint_eq(u->held_bytes, 0);
}

START_TEST(random_walks_keep_the_invariants)
{
	struct upstream_conf *c = remote_conf();
	unsigned visits[UPSTREAM_ST_MAX] = {0}, kinds[REMOTE_ST_MAX] = {0};
	struct walk w = {.seed = (unsigned)_i + 1};

	c->idle_stop_ms = 500;
	w.o = uowner_new_of(c);
	for (unsigned i = 0; i < WALK_STEPS; i++) {
		walk_step(&w);
		walk_check(&w);
		visits[upstream_state(w.o->u)]++;
		kinds[w.o->u->remote->state]++;
	}
	for (int st = 0; st < UPSTREAM_ST_MAX; st++)
		ck_assert_msg((visits[st] > 0) == (st != UPSTREAM_ST_AGREED),
		    "never, or ever %s", upstream_state_text((enum upstream_state)st));
	for (int st = 0; st < REMOTE_ST_MAX; st++)
		ck_assert_msg(kinds[st] > 0, "never %d", st);
	uowner_free(w.o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_remote_walk");
	TCase *tc = tcase_create("walks");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, random_walks_keep_the_invariants, 0, WALK_SEEDS);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
