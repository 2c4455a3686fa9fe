/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/* What is kept of streams for clients that come back, and for how long. */
#include "mcpvisor/endpoint_http.h"

#include "http_replay_priv.h"

#include "endpoint_rig.h"
#include "endpoint_talk.h"

#include "mcpvisor/metrics.h"

#define CALL_B_AS(id)                                                                    \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{"      \
	"\"name\":\"beta__b\",\"_meta\":{\"progressToken\":" id "}}}"
#define CONTENT	 "{\"content\":[]}"
#define ID_BYTES 64
#define MINUTE	 60000

static const struct endpoint_listen rows[] = {
    {.address = ":0", .path = "/mcp", .profile = ""}};
static char session[600];
static struct peer *talk; /* for what does not break */
static size_t first;	  /* of our calls at the upstream */

static void
begin(size_t bytes, uint32_t ms)
{
	struct endpoint_http_opts o = endpoint_http_defaults;

	o.http = http_server_defaults;
	o.replay_bytes = bytes;
	o.replay_ms = ms;
	endpoint_http_set_opts(e, &o);
	SERVE(rows);
	talk = dial(0);
	(void)snprintf(session, sizeof(session), "%s", open_session(talk, "/mcp"));
	first = fake_upstream_n_sent(f->u[1]);
}

/* Takes the id of the event that comes. */
static void
expect_id(struct peer *p, char id[ID_BYTES])
{
	size_t n;

	expect(p, "id: ");
	while ((n = strcspn(buf_cstr(&p->in), "\n")) == p->in.len)
		hear(p);
	ck_assert_uint_lt(n, ID_BYTES);
	memcpy(id, p->in.data, n);
	id[n] = '\0';
}

/* A call that is a stream: one step of progress has come. */
static struct peer *
call(const char *message, size_t nth, char id[ID_BYTES])
{
	struct peer *p = dial(0);

	post(p, "/mcp", session, message);
	hear(p);
	ck_assert_uint_eq(fake_upstream_n_sent(f->u[1]), first + nth + 1);
	fake_upstream_progress(f->u[1], first + nth, ",\"progress\":1");
	expect(p, "text/event-stream");
	expect_id(p, id); /* of the priming event */
	expect(p, "\ndata: \n\n");
	expect_id(p, id);
	expect(p, "\"progress\":1");
	return p;
}

static struct peer *
come_back(const char *id)
{
	struct peer *p;
	char text[1200];

	mem_fail_hold(true);
	p = dial(0);
	ck_assert_int_eq(buf_reserve(&p->in, 65536), MV_OK);
	mem_fail_hold(false);
	(void)snprintf(text, sizeof(text),
	    "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
	    "%sLast-Event-ID: %s" END,
	    session, id);
	say(p, text);
	hear(p);
	return p;
}

static void
expect_nothing(const char *id)
{
	struct peer *p = come_back(id);

	expect(p, "HTTP/1.1 405 ");
	hang_up(p);
}

static void
finish(void)
{
	hang_up(talk);
}

START_TEST(an_answer_waits_so_long)
{
	struct peer *p;
	char id[ID_BYTES];
	uint64_t lost = metrics_get(METRIC_REPLIES_LOST);

	begin(65536, 5 * MINUTE);
	p = call(CALL_B_AS("7"), 0, id);
	hang_up(p);
	/* As long as it runs nothing is over. */
	fake_loop_advance(f->loop, 20 * MINUTE);
	fake_upstream_result(f->u[1], first, CONTENT);
	fake_loop_settle(f->loop);
	ck_assert_uint_eq(endpoint_http_stats(e).in_flight, 0);
	/* It holds its session, which would have gone by now. */
	fake_loop_advance(f->loop, 4 * MINUTE);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 1);
	if (_i == 0) {
		p = come_back(id);
		expect(p, "\"id\":7,\"result\":" CONTENT);
		expect(p, "0" END);
		hang_up(p);
		fake_loop_advance(f->loop, MINUTE);
		expect_nothing(id);
		ck_assert_uint_eq(metrics_get(METRIC_REPLIES_LOST), lost);
	} else {
		fake_loop_advance(f->loop, MINUTE);
		expect_nothing(id);
		ck_assert_uint_eq(metrics_get(METRIC_REPLIES_LOST), lost + 1);
	}
	finish();
}
END_TEST

/* What came back has to come back again, if that line breaks as well. */
START_TEST(breaks_again)
{
	struct peer *p;
	char id[ID_BYTES];

	begin(65536, 5 * MINUTE);
	p = call(CALL_B_AS("7"), 0, id);
	hang_up(p);
	hang_up(come_back(id));
	fake_upstream_result(f->u[1], first, CONTENT);
	p = come_back(id);
	expect(p, "\"id\":7,\"result\":");
	/* All was handed over: for this long it may have been lost on the way. */
	hang_up(p);
	fake_loop_advance(f->loop, MINUTE / 4);
	p = come_back(id);
	expect(p, "\"id\":7,\"result\":");
	hang_up(p);
	fake_loop_advance(f->loop, MINUTE);
	expect_nothing(id);
	finish();
}
END_TEST

/* Of more than is kept the oldest goes; the answer stays. */
START_TEST(bound_of_bytes)
{
	static const char steps[] =
	    ",\"progress\":2,\"message\":\"0123456789012345678901234567890123456789\"";
	struct peer *p;
	char id[ID_BYTES];
	uint64_t dropped = metrics_get(METRIC_NOTICES_DROPPED);

	begin(4096, MINUTE);
	p = call(CALL_B_AS("7"), 0, id);
	hang_up(p);
	for (int i = 0; i < 100; i++)
		fake_upstream_progress(f->u[1], first, steps);
	ck_assert_uint_gt(metrics_get(METRIC_NOTICES_DROPPED), dropped + 50);
	fake_upstream_result(f->u[1], first, CONTENT);
	p = come_back(id);
	expect(p, "\"progress\":2");
	expect(p, "\"id\":7,\"result\":" CONTENT);
	expect(p, "0" END);
	hang_up(p);
	finish();
}
END_TEST

/* An answer that is too large to be kept is told of. */
START_TEST(too_large_an_answer)
{
	struct peer *p;
	char id[ID_BYTES], big[6000];

	begin(_i == 0 ? 4096 : 1 << 20, MINUTE);
	memset(big, 'x', sizeof(big));
	memcpy(big, "{\"content\":\"", 12);
	memcpy(big + sizeof(big) - 3, "\"}", 3);
	p = call(CALL_B_AS("\"a b\""), 0, id);
	hang_up(p);
	if (_i == 1)
		mem_set_budget(1);
	fake_upstream_result(f->u[1], first, big);
	mem_set_budget(0);
	if (_i == 1) {
		/* While memory is short not even that. */
		expect_nothing(id);
	} else {
		p = come_back(id);
		expect(p, "\"id\":\"a b\",\"error\":{\"code\":-32603");
		expect(p, "\"not_kept\"");
		expect(p, "0" END);
		hang_up(p);
	}
	finish();
}
END_TEST

/* Streams that are over make room for those that are not. */
START_TEST(the_oldest_goes)
{
	char id[12][ID_BYTES], message[256];
	struct peer *p;

	begin(2500, MINUTE);
	for (size_t i = 0; i < 12; i++) {
		(void)snprintf(message, sizeof(message),
		    "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"method\":\"tools/"
		    "call\",\"params\":"
		    "{\"name\":\"beta__b\",\"_meta\":{\"progressToken\":%zu}}}",
		    i, i);
		p = call(message, i, id[i]);
		hang_up(p);
		fake_upstream_result(f->u[1], first + i, CONTENT);
		fake_loop_settle(f->loop);
	}
	expect_nothing(id[0]);
	p = come_back(id[11]);
	expect(p, "\"id\":11,\"result\":");
	hang_up(p);
	finish();
}
END_TEST

/* Without room, or by the conf, streams have no ids, and all else is as ever. */
START_TEST(nothing_is_kept)
{
	struct peer *p = NULL;

	begin(_i == 0 ? 0 : 1 << 20, MINUTE);
	p = dial(0);
	post(p, "/mcp", session, CALL_B_AS("7"));
	hear(p);
	if (_i == 1)
		mem_set_budget(1);
	fake_upstream_progress(f->u[1], first, ",\"progress\":1");
	mem_set_budget(0);
	fake_upstream_result(f->u[1], first, CONTENT);
	expect(p, "text/event-stream");
	expect(p, END);
	hear(p);
	ck_assert_ptr_null(strstr(buf_cstr(&p->in), "id: "));
	expect(p, "\"id\":7,\"result\":");
	hang_up(p);
	finish();
}
END_TEST

#define NOTICE "notifications/tools/list_changed"

static void
change(const char *name)
{
	fleet_list(f, 0, LIST_TOOLS, name, NULL);
	fake_loop_advance(f->loop, 1000);
}

/* Notices wait, and go to whichever stream is opened next; once. */
START_TEST(notices_wait)
{
	struct peer *p, *q;
	char id[ID_BYTES], other[ID_BYTES];

	begin(65536, MINUTE);
	p = dial(0);
	get_stream(p, "/mcp", session);
	expect_id(p, id);
	hang_up(p);
	change("x");
	if (_i == 0) {
		p = come_back(id);
		expect(p, NOTICE);
	} else {
		p = dial(0);
		get_stream(p, "/mcp", session);
		expect_id(p, other);
		ck_assert_str_ne(id, other);
		expect(p, NOTICE);
	}
	/* Two streams at once: the newer has it, and when that is gone the other. */
	q = dial(0);
	get_stream(q, "/mcp", session);
	expect_id(q, other);
	change("y");
	expect(q, NOTICE);
	hang_up(q);
	change("z");
	expect(p, NOTICE);
	hear(p);
	ck_assert_ptr_null(strstr(buf_cstr(&p->in), NOTICE));
	/* The newer one comes back to where it was, and is the newer one again. */
	q = come_back(other);
	expect(q, NOTICE);
	change("w");
	expect(q, NOTICE);
	hang_up(q);
	hang_up(p);
	finish();
}
END_TEST

/* ... but not for ever: then they are only noted, as without a stream. */
START_TEST(notices_go)
{
	struct peer *p;
	char id[ID_BYTES];

	begin(65536, MINUTE);
	p = dial(0);
	get_stream(p, "/mcp", session);
	expect_id(p, id);
	hang_up(p);
	if (_i == 0)
		change("x");
	fake_loop_advance(f->loop, MINUTE + MINUTE / 2);
	if (_i == 1)
		change("x");
	p = come_back(id);
	expect(p, "HTTP/1.1 200 ");
	expect(p, NOTICE);
	/* Once. */
	hear(p);
	ck_assert_ptr_null(strstr(buf_cstr(&p->in), NOTICE));
	hang_up(p);
	finish();
}
END_TEST

/* What an idle session costs, with a stream and without. */
START_TEST(memory)
{
	struct peer *p;
	size_t before, with;

	begin(1 << 20, MINUTE);
	p = dial(0);
	hear(p);
	fake_loop_advance(f->loop, 100);
	before = mem_in_use();
	get_stream(p, "/mcp", session);
	fake_loop_settle(f->loop);
	with = mem_in_use();
	ck_assert_uint_lt(with - before, 4096);
	hang_up(p);
	/* Less than there was: the connection has gone as well. */
	ck_assert_uint_lt(mem_in_use(), before);
	before = mem_in_use();
	for (int i = 0; i < 20; i++) { /* on which nothing came */
		p = dial(0);
		get_stream(p, "/mcp", session);
		hang_up(p);
	}
	ck_assert_uint_le(mem_in_use(), before);
	fake_loop_advance(f->loop, 3 * MINUTE);
	ck_assert_uint_eq(endpoint_http_stats(e).sessions, 0);
	finish();
}
END_TEST

/* Deleted and stopped with tracks of every kind. */
START_TEST(ends_with_its_session)
{
	struct peer *p, *q;
	char id[ID_BYTES], other[ID_BYTES], text[900];

	begin(65536, MINUTE);
	p = call(CALL_B_AS("7"), 0, id);
	hang_up(p);
	p = call(CALL_B_AS("8"), 1, other);
	q = dial(0);
	get_stream(q, "/mcp", session);
	hang_up(q);
	if (_i == 0) {
		(void)snprintf(text, sizeof(text),
		    "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n%s\r\n", session);
		say(talk, text);
		expect(talk, "HTTP/1.1 204 ");
		fake_upstream_result(f->u[1], first, CONTENT);
		fake_upstream_result(f->u[1], first + 1, CONTENT);
		expect(p, "\"id\":8,\"result\":");
		fake_loop_settle(f->loop);
		ck_assert_uint_eq(endpoint_http_stats(e).sessions, 0);
	} else if (_i == 1) {
		endpoint_http_stop(e, true, on_stopped, &stopped);
		expect(p, "\"id\":8,\"error\":");
		expect(p, "0" END);
	} /* else all of it is there at the end of the endpoint */
	hang_up(p);
	finish();
}
END_TEST

#define NTH_MAX 40

/* One allocation fails: whoever comes back gets the end of the call, or is told that
 * there is no such stream; and all that is open ends. */
START_TEST(memory_fails)
{
	struct peer *p;
	char id[ID_BYTES];

	begin(65536, MINUTE);
	p = call(CALL_B_AS("7"), 0, id);
	hang_up(p);
	mem_fail_at((unsigned long)_i, 0);
	fake_upstream_progress(f->u[1], first, ",\"progress\":2");
	fake_upstream_result(f->u[1], first, CONTENT);
	fake_loop_settle(f->loop);
	p = come_back(id);
	mem_fail_at(0, 0);
	while (p->in.len == 0 && !p->eof)
		hear(p);
	/* Else 405, or 503 as memory is short. */
	if (!p->eof && strstr(buf_cstr(&p->in), "HTTP/1.1 200 ") != NULL) {
		expect(p, "\"id\":7,");
		expect(p, "0" END);
	}
	hang_up(p);
	ck_assert_uint_eq(endpoint_http_stats(e).in_flight, 0);
	finish();
}
END_TEST

static const struct {
	const char *text;
	bool good;
} ids[] = {
    {"n00000001-2-3", true},
    {"rffffffff-4294967295-999999999999999999", true},
    {"r00000000-0-0", true},
    {"n1-2-3", false},
    {"n00000001-02-3", false},
    {"n00000001-2-03", false},
    {"n0000000A-2-3", false},
    {"n100000000000000001-2-3", false},
    {"", false},
    {"n", false},
    {"x00000001-2-3", false},
    {"n00000001-2", false},
    {"n00000001-2-", false},
    {"n00000001--3", false},
    {"n-2-3", false},
    {"n00000001-2-3 ", false},
    {"n00000001-2-3-4", false},
    {"nG-2-3", false},
    {"n100000000-2-3", false},
    {"n1-4294967296-3", false},
    {"n1-2-9999999999999999999", false},
    {"n1-2--3", false},
};

START_TEST(ids_of_events)
{
	struct http_text t = {ids[_i].text, strlen(ids[_i].text)};
	struct http_event_id id, again;
	char text[HTTP_EVENT_ID_BYTES];

	ck_assert_int_eq(http_event_id_parse(t, &id), ids[_i].good);
	if (!ids[_i].good)
		return;
	http_event_id_put(&id, text);
	t = (struct http_text){text, strlen(text)};
	ck_assert(http_event_id_parse(t, &again));
	ck_assert(again.is_notices == id.is_notices && again.epoch == id.epoch &&
		  again.number == id.number && again.n == id.n);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("http_replay");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, an_answer_waits_so_long, 0, 2);
	tcase_add_test(tc, breaks_again);
	tcase_add_test(tc, bound_of_bytes);
	tcase_add_loop_test(tc, too_large_an_answer, 0, 2);
	tcase_add_test(tc, the_oldest_goes);
	tcase_add_loop_test(tc, nothing_is_kept, 0, 2);
	tcase_add_loop_test(tc, notices_wait, 0, 2);
	tcase_add_loop_test(tc, notices_go, 0, 2);
	tcase_add_test(tc, memory);
	tcase_add_loop_test(tc, ends_with_its_session, 0, 3);
	tcase_add_loop_test(tc, ids_of_events, 0, (int)(sizeof(ids) / sizeof(ids[0])));
	tcase_add_loop_test(tc, memory_fails, 1, NTH_MAX);
	return run_suite(suite, tc);
}
