/* layer: upstream, fakes: loop child link http_link upstream_owner */
/* SPDX-License-Identifier: MIT */
/* Lives of an upstream: what it says of itself, how it dies, what is forgiven. */
#include "fake/fake_upstream_owner.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define IS_MODERN "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}}"
#define IS_LEGACY "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}"
#define MODERN	  "\"2026-07-28\""
#define CALL                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"           \
	"\"name\":\"t\"}}"

static void
check_state(const struct uowner *o, enum upstream_state st)
{
	ck_assert_msg(upstream_state(o->u) == st, "is %s, not %s",
	    upstream_state_text(upstream_state(o->u)), upstream_state_text(st));
}

static struct uowner *
owner_probing(void)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_start(o);
	uowner_heard(DISCOVER(1));
	uowner_heard_nothing();
	return o;
}

static struct uowner *
owner_asking_both(void)
{
	struct uowner *o = owner_probing();

	fake_loop_advance(o->loop, 2999);
	uowner_heard_nothing();
	fake_loop_advance(o->loop, 1);
	uowner_heard(INITIALIZE(2));
	uowner_heard_nothing();
	check_state(o, UPSTREAM_ST_BOTH);
	ck_assert_int_eq(child_state(o->u->child), CHILD_ST_RUNNING);
	return o;
}

START_TEST(child_is_told_what_the_conf_says)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	const struct child_opts *got = fake_child_opts(o->u->child);

	ck_assert_str_eq(got->spec.name, "alpha");
	ck_assert_uint_eq(got->backoff.base_ms, o->conf->restart_base_ms);
	ck_assert_uint_eq(got->ladder.term_ms, child_ladder_defaults.term_ms);
	uowner_start(o);
	ck_assert_uint_eq(fake_link_opts(o->u->link)->message_max, CAP_MESSAGE_BYTES);
	ck_assert_uint_eq(fake_link_opts(o->u->link)->out_max, CAP_OUT_BYTES);
	ck_assert(fake_link_opts(o->u->link)->want_uris);
	uowner_free(o);
}
END_TEST

/* ---- initialize ---- */

START_TEST(unknown_revisions_are_refused)
{
	static const char *const versions[] = {"\"protocolVersion\":\"2026-07-28\"",
	    "\"protocolVersion\":\"1.0\"", "\"protocolVersion\":7", "\"x\":1"};
	struct uowner *o = owner_probing();

	uowner_refuse(o, 1, "-32601");
	uowner_heard(INITIALIZE(2));
	uowner_say(o, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{%s}}", versions[_i]);
	uowner_heard_nothing();
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	ck_assert_ptr_nonnull(
	    strstr(upstream_reason(o->u), "answered initialize with revision"));
	uowner_free(o);
}
END_TEST

START_TEST(no_answer_at_all_is_a_refusal)
{
	struct uowner *o = owner_probing();

	uowner_refuse(o, 1, "-32601");
	uowner_heard(INITIALIZE(2));
	uowner_say(o, "%s", "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":[]}");
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	ck_assert_ptr_nonnull(strstr(upstream_reason(o->u), "answered initialize"));
	uowner_free(o);
}
END_TEST

START_TEST(legacy_revisions)
{
	static const char *const versions[] = {
	    "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
	struct uowner *o = uowner_new(ERA_AUTO);

	uowner_be_legacy(o, versions[_i], "{}");
	ck_assert_str_eq(revision_text(o->u->revision), versions[_i]);
	/* The capability is younger than the method. */
	ck_assert_int_eq(upstream_caps(o->u)->completions, _i == 0);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

START_TEST(capabilities)
{
	static const char caps[] =
	    "{\"tools\":{\"listChanged\":true},\"prompts\":{\"listChanged\":false},"
	    "\"resources\":{\"subscribe\":true,\"listChanged\":true},"
	    "\"completions\":{},\"logging\":{},\"experimental\":{\"x\":1}}";
	struct uowner *o = uowner_new(ERA_AUTO);
	const struct upstream_caps *c = upstream_caps(o->u);

	if (_i == 0)
		uowner_be_legacy(o, "2025-11-25", caps);
	else
		uowner_be_modern(o, caps);
	ck_assert(c->tools && c->prompts && c->resources && c->completions && c->logging);
	ck_assert(c->tools_changed && !c->prompts_changed && c->resources_changed);
	ck_assert(c->subscribe);
	uowner_reborn(o);
	ck_assert(c->tools && c->subscribe);
	fake_link_forget_all();
	uowner_answer(o, o->u->last_id,
	    _i == 0
		? "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":1}}"
		: IS_MODERN);
	ck_assert(uowner_is_ready(o));
	ck_assert(!c->tools && !c->prompts && !c->resources && !c->logging);
	ck_assert(!c->tools_changed && !c->subscribe);
	uowner_free(o);
}
END_TEST

static void
say_instructions(struct uowner *o, unsigned long long id, const char *text)
{
	uowner_say(o,
	    "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{\"supportedVersions\":[" MODERN
	    "],\"capabilities\":{},\"instructions\":%s}}",
	    id, text);
	ck_assert(uowner_is_ready(o));
}

START_TEST(instructions)
{
	struct uowner *o = owner_probing();
	char *much = mem_xcalloc(1, CAP_INSTRUCTIONS_BYTES + 4);

	ck_assert_ptr_null(upstream_instructions(o->u));
	say_instructions(o, 1, "\"Say \\u0022please\\u0022.\"");
	ck_assert_str_eq(upstream_instructions(o->u), "Say \"please\".");
	uowner_reborn(o);
	ck_assert_str_eq(upstream_instructions(o->u), "Say \"please\".");
	memset(much, 'x', CAP_INSTRUCTIONS_BYTES + 2);
	much[0] = '"';
	much[CAP_INSTRUCTIONS_BYTES + 1] = '"';
	say_instructions(o, 2, much);
	ck_assert_uint_eq(strlen(upstream_instructions(o->u)), CAP_INSTRUCTIONS_BYTES);
	uowner_reborn(o);
	much[CAP_INSTRUCTIONS_BYTES + 1] = 'x';
	much[CAP_INSTRUCTIONS_BYTES + 2] = '"';
	say_instructions(o, 3, much);
	ck_assert_ptr_null(upstream_instructions(o->u));
	ck_assert(uowner_log_has(o, "instructions left out: too long"));
	uowner_reborn(o);
	say_instructions(o, 4, "\"\"");
	ck_assert_ptr_null(upstream_instructions(o->u));
	mem_free(much);
	uowner_free(o);
}
END_TEST

/* ---- deaths ---- */

/* It may have died of what came before initialize: once that is forgiven, and the
 * next start spares it. */
START_TEST(death_by_probe_is_excused_once)
{
	struct uowner *o = _i == 0 ? owner_probing() : owner_asking_both();
	unsigned long long id = _i == 0 ? 2 : 3;

	uowner_die(o);
	ck_assert_uint_eq(fake_child_ups(o->u->child), 2);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 0);
	ck_assert_uint_eq(o->settled, 0);
	ck_assert_uint_eq(uowner_heard_request("initialize"), id);
	check_state(o, UPSTREAM_ST_INIT);
	fake_loop_advance(o->loop, 10000);
	uowner_heard_nothing();
	uowner_answer(o, id, IS_LEGACY);
	uowner_heard(INITIALIZED);
	ck_assert_uint_eq(o->settled, 1);
	/* That it is a legacy one is now known. */
	uowner_reborn(o);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 1);
	ck_assert_uint_eq(uowner_heard_request("initialize"), id + 1);
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* Who waited was not sent yet, and waits on; unless there is no next process. */
START_TEST(excused_death_fails_nobody)
{
	struct uowner *o = _i < 2 ? owner_probing() : owner_asking_both();
	struct ucall c = {.done = 0};

	ucall_send(o, &c, CALL);
	fake_child_refuse(o->u->child, _i == 1 ? 1 : 0);
	uowner_die(o);
	if (_i == 1) {
		ck_assert_int_eq(c.err, MV_SPAWN);
		ck_assert_str_eq(upstream_reason(o->u), "cannot create a process");
		check_state(o, UPSTREAM_ST_DOWN);
	} else {
		ck_assert_uint_eq(upstream_in_flight(o->u), 1);
		uowner_answer(o, uowner_heard_request("initialize"), IS_LEGACY);
		uowner_heard(INITIALIZED);
		uowner_answer(o, uowner_heard_request("tools/call"), "{}");
		ck_assert_int_eq(c.kind, OUTCOME_RESULT);
	}
	ck_assert_uint_eq(c.done, 1);
	uowner_free(o);
}
END_TEST

/* Each start that fails says why by itself, whatever was said before. */
START_TEST(reason_is_the_last_start)
{
	struct uowner *o = uowner_new(ERA_LEGACY);

	uowner_be_legacy(o, "2025-06-18", "{}");
	fake_child_set_budget(o->u->child, _i == 0 ? 1 : 0);
	uowner_die(o);
	ck_assert_str_eq(upstream_reason(o->u), "exited with status 1");
	fake_child_set_budget(o->u->child, 0);
	fake_child_refuse(o->u->child, 1);
	if (_i == 2)
		fake_child_pause_over(o->u->child);
	else
		upstream_restart(o->u, "the operator asked");
	/* It was parked and is not any more: it is tried again. */
	check_state(o, UPSTREAM_ST_DOWN);
	ck_assert_int_eq(upstream_refusal(o->u), MV_BACKOFF);
	ck_assert_str_eq(upstream_reason(o->u), "cannot create a process");
	uowner_free(o);
}
END_TEST

START_TEST(reason_after_a_restart)
{
	struct uowner *o = uowner_new(ERA_LEGACY);

	uowner_be_legacy(o, "2025-06-18", "{}");
	upstream_restart(o->u, "the operator asked");
	fake_child_refuse(o->u->child, 1);
	uowner_die(o);
	check_state(o, UPSTREAM_ST_DOWN);
	ck_assert_str_eq(upstream_reason(o->u), "cannot create a process");
	uowner_free(o);
}
END_TEST

/* A greeting that fails says nothing of the one before. */
START_TEST(revision_is_that_of_the_last_life)
{
	struct uowner *o = uowner_new(ERA_LEGACY);

	uowner_be_legacy(o, "2025-06-18", "{}");
	uowner_reborn(o);
	uowner_answer(o, uowner_heard_request("initialize"),
	    "{\"protocolVersion\":\"1999-01-01\",\"capabilities\":{}}");
	ck_assert_str_eq(upstream_revision_text(o->u), "2025-06-18");
	uowner_free(o);
}
END_TEST

/* It died of something else: a modern one that is spared the probe is asked after all. */
START_TEST(spared_the_probe_in_vain)
{
	struct uowner *o = owner_probing();

	uowner_die(o); /* excused */
	uowner_refuse(o, uowner_heard_request("initialize"), "-32601");
	check_state(o, UPSTREAM_ST_PROBE);
	if (_i == 0) {
		uowner_answer(o, uowner_heard_request("server/discover"), IS_MODERN);
		ck_assert(uowner_is_ready(o));
		ck_assert_uint_eq(fake_child_fails(o->u->child), 0);
		uowner_reborn(o);
		(void)uowner_heard_request("server/discover");
	} else { /* once a process */
		uowner_refuse(o, uowner_heard_request("server/discover"), "-32601");
		uowner_refuse(o, uowner_heard_request("initialize"), "-32601");
		ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	}
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* One that dies of everything is asked in turns, and each death but the first counts. */
START_TEST(failed_starts_take_turns)
{
	struct uowner *o = owner_probing();

	uowner_die(o); /* excused */
	(void)uowner_heard_request("initialize");
	uowner_reborn(o);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 1);
	ck_assert_uint_eq(o->settled, 1);
	(void)uowner_heard_request("server/discover");
	uowner_reborn(o);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 2);
	(void)uowner_heard_request("initialize");
	uowner_reborn(o);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 3);
	(void)uowner_heard_request("server/discover");
	ck_assert_str_eq(upstream_reason(o->u), "");
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* Once ready, it may be forgiven again. */
START_TEST(excuse_is_back_after_ready)
{
	struct uowner *o = owner_probing();

	uowner_die(o);
	uowner_reborn(o);
	fake_link_forget_all();
	uowner_answer(o, o->u->last_id, IS_MODERN);
	uowner_reborn(o);
	(void)uowner_heard_request("server/discover");
	ck_assert_uint_eq(fake_child_counted(o->u->child), 2);
	uowner_die(o);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 2);
	(void)uowner_heard_request("initialize");
	uowner_heard_nothing();
	uowner_free(o);
}
END_TEST

/* Editors' framing has a reason of its own, and another start would not help. */
START_TEST(content_length_is_named)
{
	struct uowner *o = owner_probing();

	uowner_say(o, "%s", "Content-Length: 96\r");
	ck_assert_ptr_nonnull(strstr(upstream_reason(o->u), "Content-Length framing"));
	fake_loop_advance(o->loop, 60000);
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	ck_assert_ptr_nonnull(strstr(upstream_reason(o->u), "Content-Length framing"));
	uowner_die(o);
	ck_assert_uint_eq(fake_child_counted(o->u->child), 1);
	ck_assert_ptr_nonnull(strstr(upstream_reason(o->u), "Content-Length framing"));
	uowner_free(o);
}
END_TEST

START_TEST(reason_is_the_end_of_the_process)
{
	struct uowner *o = uowner_new(ERA_LEGACY);

	uowner_start(o);
	fake_child_set_budget(o->u->child, 1);
	fake_child_die(o->u->child, "killed by signal 11 (Segmentation fault)");
	check_state(o, UPSTREAM_ST_PARKED);
	ck_assert_str_eq(
	    upstream_reason(o->u), "killed by signal 11 (Segmentation fault)");
	ck_assert(uowner_log_has(o, "error upstream: parked upstream=\"alpha\" reason="));
	/* Whoever asks for it gets it again. */
	fake_link_forget_all();
	uowner_start(o);
	ck_assert_str_eq(upstream_reason(o->u), "");
	uowner_heard(INITIALIZE(2));
	uowner_free(o);
}
END_TEST

START_TEST(closing_its_input_ends_it)
{
	struct uowner *o = owner_asking_both();

	fake_link_write_end(o->u->link, 32);
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	ck_assert(fake_link_is_closed(o->u->link));
	uowner_answer(o, 1, IS_MODERN);
	ck_assert(!uowner_is_ready(o));
	fake_loop_advance(o->loop, 100000);
	ck_assert_uint_eq(fake_child_fails(o->u->child), 1);
	uowner_free(o);
}
END_TEST

START_TEST(stopped_while_greeting)
{
	struct uowner *o = _i == 0 ? owner_probing() : owner_asking_both();
	static const struct child_ladder ladder = {
	    .term_ms = 1, .kill_ms = 2, .drain_ms = 3};

	upstream_stop(o->u, &ladder);
	ck_assert_uint_eq(fake_child_ladder(o->u->child)->kill_ms, 2);
	ck_assert(fake_link_is_closed(o->u->link));
	ck_assert_uint_eq(o->stopped, 0);
	/* Neither its silence nor its words matter any more. */
	fake_loop_advance(o->loop, 100000);
	uowner_answer(o, 1, IS_MODERN);
	uowner_say(o, "%s", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}");
	uowner_heard_nothing();
	ck_assert_uint_eq(fake_child_fails(o->u->child), 0);
	uowner_die(o);
	ck_assert_uint_eq(o->stopped, 1);
	check_state(o, UPSTREAM_ST_DOWN);
	ck_assert_uint_eq(fake_child_ups(o->u->child), 1);
	uowner_free(o);
}
END_TEST

static void
add_tests(TCase *tc)
{
	tcase_add_test(tc, child_is_told_what_the_conf_says);
	tcase_add_loop_test(tc, unknown_revisions_are_refused, 0, 4);
	tcase_add_test(tc, no_answer_at_all_is_a_refusal);
	tcase_add_loop_test(tc, legacy_revisions, 0, 4);
	tcase_add_loop_test(tc, capabilities, 0, 2);
	tcase_add_test(tc, instructions);
	tcase_add_loop_test(tc, death_by_probe_is_excused_once, 0, 2);
	tcase_add_loop_test(tc, excused_death_fails_nobody, 0, 3);
	tcase_add_loop_test(tc, reason_is_the_last_start, 0, 3);
	tcase_add_test(tc, reason_after_a_restart);
	tcase_add_test(tc, revision_is_that_of_the_last_life);
	tcase_add_test(tc, failed_starts_take_turns);
	tcase_add_test(tc, excuse_is_back_after_ready);
	tcase_add_loop_test(tc, spared_the_probe_in_vain, 0, 2);
	tcase_add_test(tc, content_length_is_named);
	tcase_add_test(tc, reason_is_the_end_of_the_process);
	tcase_add_test(tc, closing_its_input_ends_it);
	tcase_add_loop_test(tc, stopped_while_greeting, 0, 2);
}

int
main(void)
{
	Suite *s = suite_create("upstream_life");
	TCase *tc = tcase_create("life");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	add_tests(tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
