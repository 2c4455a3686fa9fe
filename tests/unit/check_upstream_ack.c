/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* What a modern upstream acknowledges of many wishes, and listens that memory is short
 * for. */
#include "fake/fake_upstream_owner.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCHABLE "{\"resources\":{\"subscribe\":true}}"
#define WISHES	  64
#define URI_BYTES 64

struct wishes {
	struct uowner *o;
	struct watcher w[WISHES];
	char uri[WISHES][URI_BYTES];
};

static struct wishes *
wishes_new(void)
{
	struct wishes *all = mem_xcalloc(1, sizeof(*all));
	unsigned long long id;

	all->o = uowner_new(ERA_AUTO);
	uowner_be_modern(all->o, WATCHABLE);
	id = uowner_heard_request("resources/list");
	uowner_answer(all->o, id, "{\"resources\":[]}");
	id = uowner_heard_request("resources/templates/list");
	uowner_answer(all->o, id, "{\"resourceTemplates\":[]}");
	for (unsigned i = 0; i < WISHES; i++) {
		/* The last two are the same, written differently. */
		if (i < WISHES - 1)
			(void)snprintf(all->uri[i], URI_BYTES, "\"file:///%u\"", i);
		else
			(void)snprintf(
			    all->uri[i], URI_BYTES, "\"file:\\/\\/\\/%u\"", i - 1);
		watcher_watch(all->o, &all->w[i], all->uri[i]);
	}
	fake_loop_settle(all->o->loop);
	return all;
}

static void
wishes_free(struct wishes *all)
{
	uowner_free(all->o);
	mem_free(all);
}

/* Acknowledges every second one, amid many that nobody asked for. */
static void
wishes_acknowledge(struct wishes *all, unsigned long long id, unsigned others)
{
	struct buf b;

	mem_fail_hold(true);
	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/"
			"acknowledged\",\"params\":{\"notifications\":{"
			"\"resourceSubscriptions\":[null");
	for (unsigned i = 0; i < others; i++)
		buf_addf(&b, ",\"other:%u\"", i);
	for (unsigned i = 0; i < WISHES; i += 2)
		buf_addf(&b, ",\"file:///%u\"", i);
	buf_addf(
	    &b, "]},\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%llu}}}", id);
	(void)buf_cstr(&b);
	mem_fail_hold(false);
	uowner_say(all->o, "%s", b.data);
	buf_fini(&b);
}

START_TEST(each_gets_its_answer)
{
	struct wishes *all = wishes_new();

	wishes_acknowledge(all, uowner_heard_request("subscriptions/listen"), 10000);
	for (unsigned i = 0; i < WISHES - 1; i++)
		watcher_check(&all->w[i], i % 2 == 0 ? MV_OK : MV_UNSUPPORTED);
	watcher_check(&all->w[WISHES - 1], MV_OK);
	wishes_free(all);
}
END_TEST

/* Whatever cannot be kept while they are compared is no yes, and nobody waits for ever.
 */
START_TEST(no_memory_to_compare)
{
	struct wishes *all = wishes_new();
	unsigned long long id = uowner_heard_request("subscriptions/listen");
	unsigned lost = 0;

	mem_fail_at((unsigned long)_i * 8 + 1, 1);
	wishes_acknowledge(all, id, 0);
	mem_fail_at(0, 0);
	for (unsigned i = 0; i < WISHES; i++) {
		bool wanted = i % 2 == 0 || i == WISHES - 1;

		ck_assert_uint_eq(all->w[i].settled, 1);
		ck_assert(!all->w[i].yes || wanted);
		lost += !all->w[i].yes && all->w[i].err == MV_NOMEM;
	}
	ck_assert_uint_gt(lost, 0);
	wishes_free(all);
}
END_TEST

/* The listen that is open is not given up for one that there is no memory for; that one
 * is tried again. */
START_TEST(no_memory_for_a_listen)
{
	struct wishes *all = wishes_new();
	unsigned long long id = uowner_heard_request("subscriptions/listen");
	struct watcher late;

	wishes_acknowledge(all, id, 0);
	watcher_watch(all->o, &late, "\"late:\"");
	if (_i < 8)
		mem_fail_at((unsigned long)_i + 1, 1);
	else
		fake_link_refuse(all->o->u->link, MV_BUSY);
	fake_loop_settle(all->o->loop);
	mem_fail_at(0, 0);
	fake_link_refuse(all->o->u->link, MV_OK);
	if (late.settled) {
		uowner_heard_nothing(); /* no cancelling above all */
		ck_assert(!late.yes);
		fake_loop_advance(all->o->loop, 1000);
	}
	(void)uowner_heard_request("subscriptions/listen");
	uowner_heard_nothing();
	wishes_free(all);
}
END_TEST

START_TEST(stop_lets_nobody_wait)
{
	struct wishes *all = wishes_new();

	upstream_stop(all->o->u, &child_ladder_defaults);
	for (unsigned i = 0; i < WISHES; i++)
		watcher_check(&all->w[i], MV_STOPPING);
	wishes_free(all);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream_ack");
	TCase *tc = tcase_create("ack");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, each_gets_its_answer);
	tcase_add_loop_test(tc, no_memory_to_compare, 0, 8);
	tcase_add_loop_test(tc, no_memory_for_a_listen, 0, 9);
	tcase_add_test(tc, stop_lets_nobody_wait);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
