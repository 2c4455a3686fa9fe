/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Random walks through the states of an upstream. */
#include "fake/fake_upstream_owner.h"

#include <check.h>
#include <stdlib.h>

#define WALK_STEPS 3000
#define WALK_SEEDS 12
#define BOUNDS	   "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}}"
#define LEGACY	   "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}"
#define TEXT_DIE   "exited with status 1"
#define CALL                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"                              \
	"call\",\"params\":{\"name\":\"t\"}}"

struct walk {
	struct uowner *o;
	unsigned seed;
	struct ucall calls[8];
};

static unsigned
walk_random(struct walk *w, unsigned limit)
{
	return (unsigned)rand_r(&w->seed) % limit;
}

/* The server says something about a request that may be there or not. */
static void
walk_server_step(struct walk *w)
{
	static const char *const codes[] = {
	    "-32601", "-32022", "-32020", "\"none\"", "0"};
	static const char *const results[] = {BOUNDS, LEGACY, "{}",
	    "{\"supportedVersions\":[\"2025-06-18\"]}",
	    "{\"protocolVersion\":\"1999-01-01\"}"};
	unsigned long long id = w->o->u->last_id - walk_random(w, 3);

	if (w->o->u->link == NULL)
		return;
	switch (walk_random(w, 6)) {
	case 0:
		uowner_refuse(w->o, id, codes[walk_random(w, 5)]);
		break;
	case 1:
		uowner_say(w->o, REFUSED, id, "-32022",
		    ",\"data\":{\"supported\":[\"2026-07-28\"]}");
		break;
	case 2:
		uowner_say(w->o, "%s", "Content-Length: 20");
		break;
	default:
		uowner_answer(w->o, id, results[walk_random(w, 5)]);
		break;
	}
}

static void
walk_child_step(struct walk *w)
{
	struct child *c = w->o->u->child;

	switch (child_state(c)) {
	case CHILD_ST_BACKOFF:
		fake_child_refuse(c, walk_random(w, 2));
		fake_child_pause_over(c);
		break;
	case CHILD_ST_RUNNING:
		if (walk_random(w, 3) == 0)
			fake_link_end(w->o->u->link);
		else if (walk_random(w, 2) == 0)
			fake_link_write_end(w->o->u->link, 32);
		fake_child_die(c, TEXT_DIE);
		break;
	case CHILD_ST_STOPPING:
		if (walk_random(w, 2) == 0)
			fake_child_force(c);
		fake_child_die(c, TEXT_DIE);
		break;
	case CHILD_ST_DOWN:
	case CHILD_ST_FAILED:
		upstream_start(w->o->u);
		break;
	case CHILD_ST_REAPED:
	case CHILD_ST_CLOSED:
	case CHILD_ST_MAX:
		break;
	}
}

static void
walk_call_step(struct walk *w)
{
	struct ucall *c = &w->calls[walk_random(w, 8)];

	if (c->req.u != NULL)
		upstream_cancel(&c->req, NULL);
	else
		(void)ucall_try(w->o, c, CALL, NULL);
}

static void
walk_step(struct walk *w)
{
	switch (walk_random(w, 18)) {
	case 16:
		fake_loop_advance(w->o->loop, w->o->conf->idle_stop_ms);
		break;
	case 17:
		if (walk_random(w, 3) == 0)
			upstream_restart(w->o->u, "for the test");
		else if (walk_random(w, 2) == 0)
			upstream_wake(w->o->u);
		break;
	case 0:
		fake_loop_advance(w->o->loop, walk_random(w, 80000));
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
	case 6:
		walk_child_step(w);
		break;
	default:
		walk_server_step(w);
		break;
	}
	fake_link_forget_all();
}

START_TEST(random_walks_keep_the_invariants)
{
	struct walk w = {.o = uowner_new(ERA_AUTO), .seed = (unsigned)_i + 1};
	static unsigned agreed; /* of all walks: seldom */
	unsigned visits[UPSTREAM_ST_MAX] = {0};

	w.o->conf->idle_stop_ms = 2000;
	fake_child_set_budget(w.o->u->child, 4);
	for (unsigned i = 0; i < WALK_STEPS; i++) {
		unsigned in_flight = 0;

		walk_step(&w);
		uowner_check(w.o);
		for (unsigned n = 0; n < 8; n++)
			in_flight += w.calls[n].req.u != NULL;
		ck_assert_uint_eq(upstream_in_flight(w.o->u), in_flight);
		visits[upstream_state(w.o->u)]++;
	}
	agreed += visits[UPSTREAM_ST_AGREED];
	visits[UPSTREAM_ST_AGREED] = 1;
	ck_assert(agreed > 0 || _i < WALK_SEEDS - 1);
	for (int st = 0; st < UPSTREAM_ST_MAX; st++)
		ck_assert_msg(visits[st] > 0, "never %s",
		    upstream_state_text((enum upstream_state)st));
	uowner_free(w.o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_walk");
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
