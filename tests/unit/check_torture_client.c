/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/*
 * A client of each era through a day's work, in which memory fails at one place: every
 * request is answered once, or the client is given up; and who comes after it is served.
 */
#include "mcpvisor/client.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include "fake/fake_fleet.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define NTH_MAX 40
#define IDS	16

/* Answers by id; a line that cannot be kept counts all the same. */
struct day {
	struct fleet *f;
	struct client *c;
	unsigned asked[IDS], answered[IDS];
	unsigned next, dead;
	bool modern;
};

static enum mv_err
on_send(void *arg, const struct iovec *iov, int n)
{
	static char line[65536];
	static struct json_msg json;
	struct day *d = arg;
	struct link_msg m;
	size_t len = 0;
	int64_t id;

	for (int i = 0; i < n; i++) {
		ck_assert_uint_le(len + iov[i].iov_len, sizeof(line));
		memcpy(line + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	ck_assert_int_eq(link_scan(line, len, &json, &m), MV_OK);
	if (m.env.kind != ENVELOPE_RESULT && m.env.kind != ENVELOPE_ERROR)
		return MV_OK;
	ck_assert(json_int(m.env.id, &id) && id >= 0 && id < IDS);
	ck_assert_uint_eq(d->asked[id], 1);
	ck_assert_uint_eq(d->answered[id]++, 0);
	return MV_OK;
}

static void
on_idle(void *arg)
{
	(void)arg;
}

static void
on_dead(void *arg)
{
	((struct day *)arg)->dead++;
}

static const struct client_cb cb = {
    .send = on_send, .on_idle = on_idle, .on_dead = on_dead};

static void
say(struct day *d, const char *text)
{
	struct json_msg *json = mem_xalloc(sizeof(*json));
	char *copy = mem_xstrndup(text, strlen(text));
	struct link_msg m;

	ck_assert_int_eq(link_scan(copy, strlen(copy), json, &m), MV_OK);
	client_on_message(d->c, &m);
	mem_free(json);
	mem_free(copy);
}

#define META                                                                             \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","         \
	"\"io.modelcontextprotocol/clientCapabilities\":{},\"progressToken\":7}"
#define LEGACY_META "\"_meta\":{\"progressToken\":7}"

static void
ask(struct day *d, const char *method, const char *members)
{
	char text[1024];

	d->asked[d->next]++;
	(void)snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":{%s%s%s}}",
	    d->next++, method, d->modern ? META : LEGACY_META, members[0] ? "," : "",
	    members);
	say(d, text);
}

/* ---- the day ---- */

static void
greet(struct day *d)
{
	if (d->modern)
		ask(d, "server/discover", "");
	else
		ask(d, "initialize",
		    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
		    "\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}");
}

static void
list(struct day *d)
{
	ask(d, "tools/list", "");
	ask(d, "resources/templates/list", "");
}

static void
call(struct day *d)
{
	ask(d, "tools/call", "\"name\":\"alpha__a\",\"arguments\":{\"x\":1}");
	ask(d, "prompts/get", "\"name\":\"beta__a\"");
}

static void
read_resource(struct day *d)
{
	ask(d, "resources/read", "\"uri\":\"file:///b\"");
	ask(d, "resources/read", "\"uri\":\"db://users/7\"");
}

static void
answer_all(struct day *d)
{
	for (size_t u = 0; u < d->f->n; u++)
		for (size_t i = 0; i < fake_upstream_n_sent(d->f->u[u]); i++) {
			if (fake_upstream_sent(d->f->u[u], i)->r == NULL)
				continue;
			fake_upstream_progress(d->f->u[u], i, ",\"progress\":1");
			if (fake_upstream_sent(d->f->u[u], i)->r != NULL)
				fake_upstream_result(d->f->u[u], i,
				    "{\"content\":[{\"uri\":\"file:///new\"}]}");
		}
}

static void
watch(struct day *d)
{
	if (d->modern)
		ask(d, "subscriptions/listen",
		    "\"notifications\":{\"toolsListChanged\":true,"
		    "\"resourceSubscriptions\":[\"file:///a\"]}");
	else
		ask(d, "resources/subscribe", "\"uri\":\"file:///a\"");
}

static void
tell(struct day *d)
{
	fake_upstream_settle_watch(d->f->u[0], NULL);
	fake_upstream_updated(d->f->u[0], "{\"uri\":\"file:///a\"}");
	fake_upstream_log(d->f->u[0], "{\"level\":\"error\",\"data\":1}");
	fake_loop_settle(d->f->loop);
}

static void
call_and_cancel(struct day *d)
{
	char text[256];

	call(d);
	(void)snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":%u}}",
	    d->next - 1);
	if (d->answered[d->next - 1] > 0)
		return;
	/* From then on none may come. */
	d->answered[d->next - 1] = 1;
	say(d, text);
}

static void
reload(struct day *d)
{
	fleet_apply(d->f, fleet_conf_new(1), 100);
	fake_loop_advance(d->f->loop, 1000);
}

static void
upstream_dies(struct day *d)
{
	ask(d, "tools/call", "\"name\":\"alpha__a\"");
	fake_upstream_set_state(d->f->u[0], UPSTREAM_ST_DOWN, "died");
	fake_loop_settle(d->f->loop);
}

static void (*const steps[])(struct day *) = {greet, list, call, read_resource,
    answer_all, watch, tell, call_and_cancel, reload, upstream_dies};
#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

static void
end_day(struct day *d)
{
	answer_all(d);
	fake_loop_settle(d->f->loop);
	client_finish(d->c);
	fake_loop_settle(d->f->loop);
	if (d->dead == 0) {
		ck_assert_uint_eq(client_in_flight(d->c), 0);
		for (unsigned i = 0; i < d->next; i++)
			ck_assert_msg(
			    d->answered[i] == 1, "request %u: %u", i, d->answered[i]);
	}
	client_free(d->c);
}

/* A client that comes later finds all as it should be. */
static void
serve_another(struct fleet *f)
{
	struct day d = {.f = f};

	d.c = client_new(f->loop, f->g, 0, &cb, &d);
	greet(&d);
	list(&d);
	end_day(&d);
	ck_assert_uint_eq(d.dead, 0);
}

static void
live(unsigned failing, unsigned long nth, bool modern)
{
	struct day d = {.f = fleet_full(), .modern = modern};

	d.c = client_new(d.f->loop, d.f->g, 0, &cb, &d);
	for (unsigned i = 0; i < N_STEPS && d.dead == 0; i++) {
		mem_fail_at(i == failing ? nth : 0, 0);
		steps[i](&d);
		mem_fail_at(0, 0);
	}
	end_day(&d);
	serve_another(d.f);
	fleet_free(d.f);
}

START_TEST(each_ends_once)
{
	for (unsigned long nth = 1; nth <= NTH_MAX; nth++) {
		live((unsigned)_i, nth, false);
		live((unsigned)_i, nth, true);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("torture_client");
	TCase *tc = tcase_create("torture");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, each_ends_once, 0, (int)N_STEPS);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
