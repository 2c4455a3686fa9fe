/* layer: transport */
/* SPDX-License-Identifier: MIT */
/*
 * A message over HTTP while memory fails at one place.
 */
#include "mcpvisor/http_link.h"

#include "http_link_rig.h"

struct short_case {
	struct step step;
	const char *want;
};

/* Whichever allocation fails, the request has one outcome, and the next one its answer.
 */
static const struct short_case short_cases[] = {
    {{.want = "POST", .status = 200, .type = JSON, .body = RESULT("5")}, "5:r5 "},
    {{.want = "POST",
	 .status = 200,
	 .type = EVENTS,
	 .body = "event: message\nid: 1\n" EV(RESULT("5"))},
	"5:r5 "},
    {{.want = "POST", .status = 200, .type = JSON, .body = "oops"}, "5:syntax "},
    {{.want = "POST", .status = 401, .extra = "WWW-Authenticate: Bearer\r\n"},
	"5:failed(auth,401,Bearer) "},
    {{.want = "POST", .status = 307, .extra = "Location: /mcp\r\n"},
	"5:failed(closed,0) "},
};

static void
ask_while_short(const struct short_case *c, unsigned long nth)
{
	static const char lines[] = "Mcp-Method: x\0";
	enum mv_err err;

	mem_fail_at(nth, 0);
	err = send_message(5, false, lines, "{}");
	if (err != MV_OK) {
		ck_assert_int_eq(err, MV_NOMEM);
		return;
	}
	while (seen.len == 0)
		loop_run(l);
	mem_fail_hold(true);
	ck_assert_msg(strncmp(buf_cstr(&seen), "5:failed(", 9) == 0 ||
			  strncmp(buf_cstr(&seen), c->want, strlen(c->want)) == 0,
	    "%lu: %s", nth, buf_cstr(&seen));
	mem_fail_hold(false);
}

START_TEST(test_no_memory)
{
	const struct short_case *c = &short_cases[_i];
	unsigned long nth = 1, tried;

	is_lenient = true;
	do {
		open_link();
		buf_reset(&seen);
		steps = &c->step;
		n_steps = 1;
		at_step = 0;
		ask_while_short(c, nth);
		tried = mem_try_count();
		mem_fail_at(0, 0);
	} while (tried >= nth++);
	ck_assert_uint_gt(nth, 4);
	buf_reset(&seen);
	at_step = 0;
	ask(6);
	while (seen.len == 0)
		loop_run(l);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http_link_memory");
	TCase *tc = tcase_create("http_link_memory");

	tcase_add_loop_test(
	    tc, test_no_memory, 0, (int)(sizeof(short_cases) / sizeof(*short_cases)));
	return run_suite(s, tc);
}
