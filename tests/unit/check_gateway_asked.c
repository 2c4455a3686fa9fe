/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* What upstreams are told of their clients; instances of those that ask; words of URLs.
 */
#include "questions_rig.h"

/* ---- instances ---- */

START_TEST(marked_at_the_first_question)
{
	struct upstream *own, *other, *pooled;

	setup_auto();
	ck_assert_uint_eq(fake_upstream_client_caps(u), CLIENT_CAPS_SHARED);
	ck_assert_ptr_eq(begin(&k[0], &a, CLIENT_CAPS_SHARED), u);
	ask(u, NULL);
	ck_assert(upstream_asks(u));
	ck_assert_uint_eq(k[0].asked, 1);
	/* Its call goes on there; for others there is one that cannot ask. */
	fake_loop_settle(f->loop);
	fleet_look(f);
	ck_assert_ptr_ne(f->u[0], u);
	ck_assert(upstream_asks(f->u[0]));
	ck_assert_uint_eq(fake_upstream_client_caps(f->u[0]), CLIENT_CAP_NONE);
	ck_assert(fake_upstream_caps_are_known(f->u[0]));
	fleet_ready(f, 0);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	/* Who can be asked gets its own. */
	own = begin(&k[1], &b, CLIENT_CAP_ELICITATION);
	ck_assert_ptr_ne(own, f->u[0]);
	ck_assert_uint_eq(fake_upstream_client_caps(own), CLIENT_CAPS_SHARED); /* b's */
	ask(own, NULL);
	ck_assert_uint_eq(k[1].asked, 1);
	/* Of the crowd each call has one, that is told what this call says. */
	pooled = begin(&k[2], &crowd, CLIENT_CAP_ELICITATION);
	ck_assert_ptr_ne(pooled, own);
	ck_assert_uint_eq(fake_upstream_client_caps(pooled), CLIENT_CAP_ELICITATION);
	other = begin(&k[3], &crowd, CLIENT_CAP_SAMPLING);
	ck_assert_ptr_ne(other, pooled);
	ask(pooled, NULL);
	ask(other, NULL);
	ck_assert_uint_eq(k[2].asked, 1);
	ck_assert_uint_eq(k[3].asked, 1);
	end(&k[3]);
	/* Who cannot be asked shares. */
	ck_assert_ptr_eq(begin(&k[3], &a, CLIENT_CAP_NONE), f->u[0]);
	question_answer(k[0].q, "result", NULL, 0);
	end(&k[0]);
	ck_assert_uint_eq(k[0].done, 1);
}
END_TEST

/* A roots/list says nothing; nor is one marked that is the conf's to share. */
START_TEST(not_marked)
{
	struct fleet_conf *c;

	setup_auto();
	if (_i == 0) {
		(void)begin(&k[0], &a, 0);
		fake_upstream_ask(u, NULL, METHOD_ROOTS, "\"id\":7");
		ck_assert_uint_eq(k[0].asked, 1);
	} else {
		teardown();
		c = conf();
		c->confs[0]->isolation = ISOLATION_SHARED;
		start(c);
		ck_assert_uint_eq(fake_upstream_client_caps(u), CLIENT_CAPS_SHARED);
		(void)begin(&k[0], &a, 0);
		ask(u, NULL);
	}
	ck_assert(!upstream_asks(u));
	fake_loop_settle(f->loop);
	fleet_look(f);
	ck_assert_ptr_eq(f->u[0], u);
}
END_TEST

/* The one instance of a client: its questions are its client's, whoever else calls. */
START_TEST(of_the_owner_of_the_instance)
{
	struct fleet_conf *c = conf();
	struct upstream *own;

	teardown();
	c->confs[0]->isolation = ISOLATION_SESSION;
	start(c);
	ck_assert_uint_eq(fake_upstream_client_caps(u), CLIENT_CAP_NONE);
	own = begin(&k[0], &a, CLIENT_CAPS_SHARED);
	ck_assert_uint_eq(fake_upstream_client_caps(own), CLIENT_CAPS_SHARED);
	end(&k[0]);
	ask(own, NULL);
	ck_assert_uint_eq(a.asked, 1);
	(void)begin(&k[1], &a, 0);
	(void)begin(&k[2], &a, 0);
	ask(own, NULL);
	ck_assert_uint_eq(a.asked, 2);
	give_up(&k[1]);
	ask(own, NULL);
	ck_assert_uint_eq(k[2].asked, 1); /* late or not, it is a's */
	gateway_roots_changed(f->g, &a.o);
	gateway_roots_changed(f->g, &b.o);
	ck_assert_uint_eq(fake_upstream_roots_changes(own), 1);
	ck_assert_uint_eq(fake_upstream_roots_changes(u), 0);
	give_up(&k[2]);
	fake_upstream_withdraw(own);
	ck_assert_uint_eq(a.withdrawn, 2);
}
END_TEST

START_TEST(roots_of_the_client)
{
	struct fleet_conf *c = conf();

	teardown();
	c->confs[0]->roots = ROOTS_CLIENT;
	start(c);
	ck_assert_ptr_eq(begin(&k[0], &a, CLIENT_CAPS_SHARED), u);
	ck_assert_ptr_ne(begin(&k[1], &b, CLIENT_CAP_ROOTS), u);
	end(&k[0]);
	end(&k[1]);
}
END_TEST

/* Where nobody can be asked nothing is declared, and nothing is kept apart. */
START_TEST(nobody_can_be_asked)
{
	struct fleet_conf *c = conf();

	teardown();
	c->can_ask = false;
	start(c);
	upstream_note_asks(u);
	ck_assert_uint_eq(fake_upstream_client_caps(u), CLIENT_CAP_NONE);
	ck_assert_ptr_eq(begin(&k[0], &a, CLIENT_CAPS_SHARED), u);
	end(&k[0]);
}
END_TEST

/* ---- one client ---- */

START_TEST(one_client)
{
	struct fleet_conf *c = fleet_conf_new(1);

	teardown();
	c->one_client = c->can_ask = true;
	f = fleet_running_from(c);
	fleet_list(f, 0, LIST_TOOLS, "a", NULL);
	fake_loop_advance(f->loop, 6000);
	u = f->u[0];
	memset(k, 0, sizeof(k));
	/* Nothing is told before it has said what it can do; that then stays. */
	ck_assert(!fake_upstream_caps_are_known(u));
	observe(&a, false, CLIENT_CAP_ELICITATION);
	ck_assert(fake_upstream_caps_are_known(u));
	ck_assert_uint_eq(fake_upstream_client_caps(u), CLIENT_CAP_ELICITATION);
	gateway_set_caps(f->g, &a.o, CLIENT_CAP_SAMPLING);
	ck_assert_uint_eq(fake_upstream_client_caps(u), CLIENT_CAP_ELICITATION);
	ask(u, NULL);
	ck_assert_uint_eq(a.asked, 1);
	(void)begin(&k[0], &a, 0);
	ask(u, NULL);
	ck_assert_uint_eq(k[0].asked, 1);
	(void)begin(&k[1], &a, 0);
	give_up(&k[0]);
	ask(u, NULL);
	ck_assert_uint_eq(k[1].asked, 1);
	ck_assert(!upstream_asks(u));
	gateway_roots_changed(f->g, &a.o);
	ck_assert_uint_eq(fake_upstream_roots_changes(u), 1);
	fake_upstream_elicited(u, "{\"elicitationId\":\"e\"}");
	ck_assert_uint_eq(a.told, 1);
	observe(&b, false, 0);
	observe(&crowd, false, 0);
}
END_TEST

/* ---- URLs ---- */

#define DONE(id) "{\"elicitationId\":" id "}"

START_TEST(word_goes_to_whom_was_sent)
{
	uint64_t dropped = metrics_get(METRIC_NOTICES_DROPPED);

	gateway_note_elicitation(f->g, &a.o, u, text_of("\"e\""));
	gateway_note_elicitation(f->g, &b.o, u, text_of("\"f\""));
	gateway_note_elicitation(f->g, &b.o, u, text_of("null"));
	fake_upstream_elicited(u, DONE("\"\\u0066\""));
	ck_assert_uint_eq(b.told, 1);
	fake_upstream_elicited(u, DONE("\"e\""));
	ck_assert_uint_eq(a.told, 1);
	/* Once, and not what was never given out. */
	fake_upstream_elicited(u, DONE("\"e\""));
	fake_upstream_elicited(u, DONE("\"g\""));
	fake_upstream_elicited(u, DONE("{}"));
	fake_upstream_elicited(u, "{}");
	ck_assert_uint_eq(a.told + b.told + crowd.told, 2);
	ck_assert_uint_eq(metrics_get(METRIC_NOTICES_DROPPED), dropped + 4);
}
END_TEST

/* Ids are the upstream's own. */
START_TEST(word_of_another_upstream)
{
	struct fleet_conf *c = fleet_conf_new(2);

	teardown();
	c->can_ask = true;
	start(c);
	gateway_note_elicitation(f->g, &a.o, f->u[0], text_of("\"e\""));
	gateway_note_elicitation(f->g, &b.o, f->u[1], text_of("\"e\""));
	fake_upstream_elicited(f->u[1], DONE("\"e\""));
	ck_assert_uint_eq(b.told, 1);
	ck_assert_uint_eq(a.told, 0);
	fake_upstream_elicited(f->u[0], DONE("\"e\""));
	ck_assert_uint_eq(a.told, 1);
}
END_TEST

/* One id for two clients is nobody's; but an instance of one client speaks of that one.
 */
START_TEST(word_for_two)
{
	struct fleet_conf *c = conf();
	struct upstream *own;

	teardown();
	c->confs[0]->isolation = ISOLATION_SESSION;
	start(c);
	own = begin(&k[0], &a, 0);
	gateway_note_elicitation(f->g, &a.o, u, text_of("\"e\""));
	gateway_note_elicitation(f->g, &b.o, u, text_of("\"e\""));
	if (_i == 0) {
		fake_upstream_elicited(u, DONE("\"e\""));
		ck_assert_uint_eq(a.told + b.told, 0);
	} else {
		fake_upstream_elicited(own, DONE("\"e\""));
		ck_assert_uint_eq(a.told, 1);
		fake_upstream_elicited(u, DONE("\"e\""));
		ck_assert_uint_eq(b.told, 1);
	}
	end(&k[0]);
}
END_TEST

START_TEST(oldest_word_is_forgotten)
{
	char id[32];

	for (unsigned i = 0; i <= CAP_ELICITATIONS; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		gateway_note_elicitation(f->g, &a.o, u, text_of(id));
	}
	fake_upstream_elicited(u, DONE("0"));
	ck_assert_uint_eq(a.told, 0);
	fake_upstream_elicited(u, DONE("1"));
	(void)snprintf(id, sizeof(id), "{\"elicitationId\":%d}", CAP_ELICITATIONS);
	fake_upstream_elicited(u, id);
	ck_assert_uint_eq(a.told, 2);
	mem_fail_at(1, 1);
	gateway_note_elicitation(f->g, &a.o, u, text_of("\"e\""));
	mem_fail_at(0, 0);
	fake_upstream_elicited(u, DONE("\"e\""));
	ck_assert_uint_eq(a.told, 2);
}
END_TEST

START_TEST(word_for_one_that_has_left)
{
	gateway_note_elicitation(f->g, &a.o, u, text_of("\"e\""));
	gateway_unobserve(f->g, &a.o);
	fake_upstream_elicited(u, DONE("\"e\""));
	ck_assert_uint_eq(a.told, 0);
	observe(&a, true, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gateway_asked");
	TCase *tc = tcase_create("questions");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, marked_at_the_first_question);
	tcase_add_loop_test(tc, not_marked, 0, 2);
	tcase_add_test(tc, of_the_owner_of_the_instance);
	tcase_add_test(tc, roots_of_the_client);
	tcase_add_test(tc, nobody_can_be_asked);
	tcase_add_test(tc, one_client);
	tcase_add_test(tc, word_goes_to_whom_was_sent);
	tcase_add_test(tc, word_of_another_upstream);
	tcase_add_loop_test(tc, word_for_two, 0, 2);
	tcase_add_test(tc, oldest_word_is_forgotten);
	tcase_add_test(tc, word_for_one_that_has_left);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
