/* layer: gateway, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* Tasks: whose they are, how long they are known, and what bounds them. */
#include "mcpvisor/tasks.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include "fake/fake_fleet.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY(id, more) "{\"taskId\":\"" id "\",\"status\":\"working\"" more "}"

struct listener {
	struct gateway_observer o;
	unsigned n;
	char last[512];
};

static struct fleet *f;
static struct listener one, two;

static void
on_task(void *arg, const struct link_msg *m, struct json_edits *ed)
{
	struct listener *l = arg;
	struct json_span whole = {0, (uint32_t)m->len};
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	int n = json_edit_pieces(m->base, whole, ed, iov);
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		ck_assert_uint_lt(at + iov[i].iov_len, sizeof(l->last));
		memcpy(l->last + at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	l->last[at] = '\0';
	l->n++;
}

static void
listen(struct listener *l)
{
	memset(l, 0, sizeof(*l));
	l->o.on_task = on_task;
	l->o.arg = l;
	gateway_observe(f->g, &l->o);
}

static void
setup(void)
{
	f = fleet_full();
	listen(&one);
	listen(&two);
}

static void
teardown(void)
{
	gateway_unobserve(f->g, &one.o);
	gateway_unobserve(f->g, &two.o);
	fleet_free(f);
}

static struct task_owner
core(struct listener *l)
{
	return (struct task_owner){.o = &l->o, .kind = TASKS_CORE};
}

static enum mv_err
note(struct listener *l, size_t i, const char *body, struct task **t)
{
	struct task_owner who = core(l);
	struct task_made made = {
	    .body = text_of(body), .token = text_of("\"tok\""), .request = 77};

	return task_note(f->g, &who, f->u[i], &made, t);
}

static struct task *
must_note(struct listener *l, size_t i, const char *body)
{
	struct task *t = NULL;

	ck_assert_int_eq(note(l, i, body, &t), MV_OK);
	ck_assert_ptr_nonnull(t);
	return t;
}

/* A copy of its id, which is freed with the test. */
static char *
id_of(const struct task *t)
{
	return mem_xstrndup(task_id(t).p, task_id(t).n);
}

START_TEST(an_id_is_its_owners_alone)
{
	struct task_owner who = core(&one), other = core(&two), kind = who, name = who;
	struct task *t = must_note(&one, 0, BODY("a\\u0062 \\\"", ""));
	struct jtext id = task_id(t);

	/* 16 letters and a dot, then the upstream's own bytes. */
	ck_assert_uint_eq(id.n, 1 + 16 + 1 + strlen("a\\u0062 \\\"") + 1);
	ck_assert_int_eq(memcmp(id.p + 18, "a\\u0062 \\\"\"", 11), 0);
	ck_assert_ptr_eq(task_find(f->g, &who, id), t);
	ck_assert_ptr_eq(task_upstream(t), f->u[0]);
	kind.kind = TASKS_EXTENSION;
	name.principal = text_of("uid:1");
	ck_assert_ptr_null(task_find(f->g, &other, id));
	ck_assert_ptr_null(task_find(f->g, &kind, id));
	ck_assert_ptr_null(task_find(f->g, &name, id));
	ck_assert_ptr_null(task_find(f->g, &who, text_of("\"ab \\\"\"")));
	ck_assert_ptr_null(task_find(f->g, &who, text_of("\"\"")));
	ck_assert_ptr_null(task_find(f->g, &who, text_of("7")));
	ck_assert_ptr_null(task_find(f->g, &who, (struct jtext){NULL, 0}));
	/* However the upstream spells it the next time. */
	ck_assert_ptr_eq(
	    task_find_own(f->g, &one.o, f->u[0], text_of("\"\\u0061b \\u0022\"")), t);
	ck_assert_ptr_null(task_find_own(f->g, &two.o, f->u[0], task_own_id(t)));
	ck_assert_ptr_null(task_find_own(f->g, &one.o, f->u[1], task_own_id(t)));
	/* Told again it is the same one; somebody else's it is not. */
	ck_assert_ptr_eq(must_note(&one, 0, BODY("ab \\\"", "")), t);
	ck_assert_int_eq(note(&two, 0, BODY("ab \\\"", ""), &t), MV_PROTOCOL);
	ck_assert_ptr_ne(must_note(&two, 1, BODY("ab \\\"", "")), t);
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 1);
}
END_TEST

START_TEST(what_is_no_id)
{
	static const char *const bad[] = {
	    "{}", "{\"taskId\":7}", "{\"taskId\":null}", "[]", "7"};
	struct buf b;
	struct task *t;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(note(&one, 0, bad[i], &t), MV_PROTOCOL);
	buf_init(&b, 2 * CAP_TASK_ID_BYTES);
	buf_add_str(&b, "{\"taskId\":\"");
	for (unsigned i = 0; i < CAP_TASK_ID_BYTES - 2; i++)
		buf_add_char(&b, 'x');
	buf_add_str(&b, "\"}");
	ck_assert_int_eq(note(&one, 0, buf_cstr(&b), &t), MV_OK);
	b.len -= 2;
	buf_add_str(&b, "x\"}");
	ck_assert_int_eq(note(&one, 0, buf_cstr(&b), &t), MV_TOO_LONG);
	buf_fini(&b);
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 1);
}
END_TEST

static const struct {
	enum task_kind kind;
	const char *body;
	bool settles;
} tells[] = {
    {TASKS_CORE, "{\"status\":\"working\",\"ttl\":null}", false},
    {TASKS_CORE, "{\"status\":\"input_required\"}", false},
    /* Its result is still to be fetched. */
    {TASKS_CORE, "{\"status\":\"completed\",\"ttl\":null}", false},
    {TASKS_CORE, "{\"status\":\"failed\"}", false},
    {TASKS_CORE, "{\"status\":\"cancelled\"}", true},
    {TASKS_EXTENSION, "{\"status\":\"working\"}", false},
    {TASKS_EXTENSION, "{\"status\":\"input_required\"}", false},
    {TASKS_EXTENSION, "{\"status\":\"completed\",\"result\":{}}", true},
    {TASKS_EXTENSION, "{\"status\":\"failed\",\"error\":{}}", true},
    {TASKS_EXTENSION, "{\"status\":\"cancelled\"}", true},
    {TASKS_EXTENSION, "{\"status\":7}", false},
    {TASKS_EXTENSION, "{}", false},
};

START_TEST(what_lets_its_upstream_go)
{
	struct task_owner who = {.o = &one.o, .kind = tells[_i].kind};
	struct task_made made = {.body = text_of(BODY("a", ""))};
	struct task *t;

	ck_assert_int_eq(task_note(f->g, &who, f->u[0], &made, &t), MV_OK);
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 1);
	task_heard(t, text_of(tells[_i].body));
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), tells[_i].settles ? 0 : 1);
	task_settle(t);
	task_settle(t);
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 0);
	ck_assert_ptr_eq(task_find(f->g, &who, task_id(t)), t);
}
END_TEST

START_TEST(its_time)
{
	struct task_owner who = core(&one);
	char *brief = id_of(must_note(&one, 0, BODY("a", ",\"ttl\":5000")));
	char *moved = id_of(must_note(&one, 0, BODY("b", ",\"ttl\":5000")));
	char *endless = id_of(must_note(&one, 1, BODY("c", ",\"ttl\":null")));
	char *huge = id_of(must_note(&one, 1, BODY("d", ",\"ttl\":9223372036854775807")));

	fake_loop_advance(f->loop, 4999);
	ck_assert_ptr_nonnull(task_find(f->g, &who, text_of(brief)));
	task_heard(task_find(f->g, &who, text_of(moved)),
	    text_of("{\"status\":\"working\",\"ttl\":9000}"));
	fake_loop_advance(f->loop, 1);
	ck_assert_ptr_null(task_find(f->g, &who, text_of(brief)));
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 1);
	fake_loop_advance(f->loop, 4000);
	ck_assert_ptr_null(task_find(f->g, &who, text_of(moved)));
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 0);
	ck_assert_ptr_nonnull(task_find(f->g, &who, text_of(endless)));
	fake_loop_advance(f->loop, (uint64_t)24 * 3600 * 1000);
	ck_assert_ptr_null(task_find(f->g, &who, text_of(endless)));
	ck_assert_ptr_nonnull(task_find(f->g, &who, text_of(huge)));
	ck_assert_uint_eq(fake_upstream_holds(f->u[1]), 1);
	mem_free(brief);
	mem_free(moved);
	mem_free(endless);
	mem_free(huge);
}
END_TEST

START_TEST(another_process_does_not_know_it)
{
	struct task_owner who = core(&one);
	struct task *t = must_note(&one, 0, BODY("a", ""));
	char *id = id_of(t), *again;

	fake_upstream_stats(f->u[0])->restarts++;
	ck_assert_ptr_null(task_next(f->g, &who, 0));
	ck_assert_ptr_null(task_find(f->g, &who, text_of(id)));
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 0);
	/* The same id may be anybody's now. */
	again = id_of(must_note(&two, 0, BODY("a", "")));
	ck_assert_str_ne(id, again);
	ck_assert_ptr_null(task_find(f->g, &who, text_of(again)));
	mem_free(id);
	mem_free(again);
}
END_TEST

START_TEST(who_leaves_takes_its_tasks_along)
{
	struct task_owner who = core(&two);
	struct task *mine = must_note(&one, 0, BODY("a", ""));
	struct task *its = must_note(&two, 0, BODY("b", ""));

	(void)mine;
	gateway_unobserve(f->g, &one.o);
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 1);
	ck_assert_ptr_eq(task_next(f->g, &who, 0), its);
	gateway_observe(f->g, &one.o);
}
END_TEST

START_TEST(a_fleet_that_goes_takes_them_along)
{
	struct task_owner who = core(&one);
	char *id = id_of(must_note(&one, 0, BODY("a", "")));
	struct fleet_conf *c = fleet_conf_new(1);

	/* Its conf is another one: it drains as long as it may, for the task's sake. */
	c->confs[0]->cwd = mem_xstrdup("/elsewhere");
	fleet_apply(f, c, 5000);
	fake_loop_advance(f->loop, 4999);
	ck_assert_ptr_nonnull(task_find(f->g, &who, text_of(id)));
	fake_loop_advance(f->loop, 1);
	ck_assert_ptr_null(task_find(f->g, &who, text_of(id)));
	ck_assert_ptr_null(task_next(f->g, &who, 0));
	mem_free(id);
}
END_TEST

START_TEST(a_fleet_that_goes_need_not_wait_for_what_is_over)
{
	struct task *t = must_note(&one, 0, BODY("a", ""));
	struct fleet_conf *c = fleet_conf_new(1);
	unsigned released = f->released;

	c->confs[0]->cwd = mem_xstrdup("/elsewhere");
	fleet_apply(f, c, 5000);
	fake_loop_advance(f->loop, 10);
	ck_assert_uint_eq(f->released, released);
	task_settle(t);
	fake_loop_advance(f->loop, 10);
	ck_assert_uint_eq(f->released, released + 1);
}
END_TEST

START_TEST(there_are_not_too_many)
{
	struct task_owner who = core(&one);
	struct task *first = NULL, *t;
	char body[64];

	for (unsigned i = 0; i < CAP_CLIENT_TASKS; i++) {
		ck_assert(tasks_have_room(f->g, &one.o));
		(void)snprintf(body, sizeof(body), BODY("t%u", ""), i);
		t = must_note(&one, 0, body);
		first = first != NULL ? first : t;
	}
	ck_assert(!tasks_have_room(f->g, &one.o));
	ck_assert_int_eq(note(&one, 1, BODY("more", ""), &t), MV_BUSY);
	ck_assert(tasks_have_room(f->g, &two.o));
	(void)must_note(&two, 1, BODY("more", ""));
	/* One whose result is where it belongs makes room. */
	task_settle(first);
	ck_assert(tasks_have_room(f->g, &one.o));
	(void)must_note(&one, 0, BODY("more", ""));
	ck_assert(!tasks_have_room(f->g, &one.o));
	ck_assert_uint_eq(task_serial(task_next(f->g, &who, 0)), 2);
}
END_TEST

START_TEST(all_clients_together_have_not_too_many)
{
	static struct listener many[CAP_TASKS / CAP_CLIENT_TASKS];
	struct task *t;
	char body[64];

	for (unsigned k = 0; k < CAP_TASKS / CAP_CLIENT_TASKS; k++) {
		listen(&many[k]);
		for (unsigned i = 0; i < CAP_CLIENT_TASKS; i++) {
			(void)snprintf(body, sizeof(body), BODY("t%u-%u", ""), k, i);
			(void)must_note(&many[k], 0, body);
		}
	}
	ck_assert(!tasks_have_room(f->g, &one.o));
	ck_assert_int_eq(note(&one, 1, BODY("more", ""), &t), MV_BUSY);
	for (unsigned k = 0; k < CAP_TASKS / CAP_CLIENT_TASKS; k++)
		gateway_unobserve(f->g, &many[k].o);
	ck_assert_int_eq(note(&one, 1, BODY("more", ""), &t), MV_OK);
}
END_TEST

START_TEST(notices_reach_the_owner)
{
	struct task *t = must_note(&one, 0, BODY("a", ""));
	uint64_t dropped = metrics_get(METRIC_NOTICES_DROPPED);
	char want[256];

	fake_upstream_task(f->u[0], METHOD_N_TASK_STATUS,
	    "{\"status\":\"cancelled\",\"taskId\" : \"\\u0061\",\"x\":1.0}");
	(void)snprintf(want, sizeof(want),
	    "\"params\":{\"status\":\"cancelled\",\"taskId\" : %.*s,\"x\":1.0}}",
	    (int)task_id(t).n, task_id(t).p);
	ck_assert_uint_eq(one.n, 1);
	ck_assert_ptr_nonnull(strstr(one.last, want));
	ck_assert_uint_eq(fake_upstream_holds(f->u[0]), 0);
	/* Progress under the token that its request was sent with. */
	fake_upstream_task(
	    f->u[0], METHOD_N_PROGRESS, "{\"progress\":1,\"progressToken\":77}");
	ck_assert_uint_eq(one.n, 2);
	ck_assert_ptr_nonnull(strstr(one.last, "\"progressToken\":\"tok\""));
	/* Of others, or of nobody. */
	fake_upstream_task(f->u[1], METHOD_N_PROGRESS, "{\"progressToken\":77}");
	fake_upstream_task(f->u[0], METHOD_N_PROGRESS, "{\"progressToken\":78}");
	fake_upstream_task(f->u[0], METHOD_N_PROGRESS, "{\"progressToken\":\"77\"}");
	fake_upstream_task(f->u[0], METHOD_N_PROGRESS, "{}");
	fake_upstream_task(f->u[1], METHOD_N_TASK_STATUS, BODY("a", ""));
	fake_upstream_task(f->u[0], METHOD_N_TASK_STATUS, "{\"taskId\":1}");
	fake_upstream_task(f->u[0], METHOD_N_TASK_STATUS, "{}");
	ck_assert_uint_eq(one.n + two.n, 2);
	ck_assert_uint_eq(metrics_get(METRIC_NOTICES_DROPPED), dropped + 7);
	one.o.on_task = NULL;
	fake_upstream_task(f->u[0], METHOD_N_TASK_STATUS, BODY("a", ""));
	ck_assert_uint_eq(metrics_get(METRIC_NOTICES_DROPPED), dropped + 8);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("tasks");
	TCase *tc = tcase_create("tasks");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_id_is_its_owners_alone);
	tcase_add_test(tc, what_is_no_id);
	tcase_add_loop_test(
	    tc, what_lets_its_upstream_go, 0, (int)(sizeof(tells) / sizeof(tells[0])));
	tcase_add_test(tc, its_time);
	tcase_add_test(tc, another_process_does_not_know_it);
	tcase_add_test(tc, who_leaves_takes_its_tasks_along);
	tcase_add_test(tc, a_fleet_that_goes_takes_them_along);
	tcase_add_test(tc, a_fleet_that_goes_need_not_wait_for_what_is_over);
	tcase_add_test(tc, there_are_not_too_many);
	tcase_add_test(tc, all_clients_together_have_not_too_many);
	tcase_add_test(tc, notices_reach_the_owner);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
