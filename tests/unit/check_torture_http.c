/* layer: front, fakes: loop upstream upstream_script upstream_ask fleet */
/* SPDX-License-Identifier: MIT */
/*
 * An HTTP client through a session, in which memory fails at one place: every exchange
 * ends once, or its connection does; and who comes after it is served.
 */
#include "endpoint_rig.h"
#include "endpoint_talk.h"

#define NTH_MAX 40
#define TALK	"/mcp"

static const struct endpoint_listen rows[] = {
    {.address = "127.0.0.1:0", .path = TALK, .profile = ""}};

static void
put_post(struct buf *b, const char *session, const char *message)
{
	buf_addf(b,
	    "POST " TALK " HTTP/1.1\r\nHost: localhost\r\n"
	    "Content-Type: application/json\r\n"
	    "Accept: application/json, text/event-stream\r\n%sContent-Length: %zu" END
	    "%s",
	    session, strlen(message), message);
}

#define CALL_A                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{"           \
	"\"name\":\"alpha__a\",\"_meta\":{\"progressToken\":1}}}"
#define INITIALIZE                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"           \
	"\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"                        \
	"\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}"
#define PLAIN "Host: localhost\r\n"

enum kind { INIT, LIST, CALL, BATCH, STREAM, DELETE, BAD, KINDS };

static void
put_request(struct buf *b, enum kind kind, const char *session)
{
	switch (kind) {
	case INIT:
		put_post(b, "", INITIALIZE);
		break;
	case LIST:
		put_post(b, session, LIST_ALL);
		break;
	case CALL:
		put_post(b, session, CALL_A);
		break;
	case BATCH:
		put_post(b, "", "[" LIST_ALL "," CALL_A "]");
		break;
	case STREAM:
		buf_addf(b,
		    "GET " TALK " HTTP/1.1\r\n" PLAIN "Accept: text/event-stream\r\n%s"
		    "\r\n",
		    session);
		break;
	case DELETE:
		buf_addf(b, "DELETE " TALK " HTTP/1.1\r\n" PLAIN "%s\r\n", session);
		break;
	case BAD:
		put_post(b, session, "{\"jsonrpc\":\n\"2.0\",\"id\":1}");
		break;
	case KINDS:
		break;
	}
}

static unsigned
count(const struct buf *b, const char *text)
{
	unsigned n = 0;
	const char *at = b->data;
	size_t len = strlen(text), left = b->len;

	while (left >= len && (at = memmem(at, left, text, len)) != NULL) {
		n++;
		at += len;
		left = b->len - (size_t)(at - b->data);
	}
	return n;
}

static void
answer_calls(void)
{
	for (size_t i = 0; i < fake_upstream_n_sent(f->u[0]); i++) {
		if (fake_upstream_sent(f->u[0], i)->r != NULL)
			fake_upstream_progress(f->u[0], i, ",\"progress\":1");
		if (fake_upstream_sent(f->u[0], i)->r != NULL)
			fake_upstream_result(f->u[0], i, "{\"content\":[]}");
	}
}

/* One exchange of the session; more than one status is never one too few. */
static void
exchange(enum kind kind, const char *session, unsigned long nth)
{
	struct peer *p = dial(0);
	struct buf text;

	hear(p);
	(void)buf_reserve(&p->in, 65536);
	buf_init(&text, 65536);
	put_request(&text, kind, session);
	say(p, buf_cstr(&text));
	buf_fini(&text);
	mem_fail_at(nth, 0);
	fake_loop_settle(f->loop);
	answer_calls();
	fake_loop_settle(f->loop);
	mem_fail_at(0, 0);
	for (int i = 0; i < 100 && !p->eof && count(&p->in, "HTTP/1.1 ") == 0; i++)
		hear(p);
	hear(p);
	ck_assert_uint_le(count(&p->in, "HTTP/1.1 "), 1);
	ck_assert_msg(p->eof || count(&p->in, "HTTP/1.1 ") == 1, "no answer");
	ck_assert_uint_le(count(&p->in, "\"id\":2,"), 1);
	hang_up(p);
}

START_TEST(each_exchange_ends_once)
{
	SERVE(rows);
	for (unsigned long nth = 1; nth <= NTH_MAX; nth++) {
		struct peer *p = dial(0);
		char session[600];

		(void)snprintf(session, sizeof(session), "%s", open_session(p, TALK));
		exchange((enum kind)_i, session, nth);
		/* All that is left of it: nothing that a later one could meet. */
		ck_assert_uint_eq(upstream_in_flight(f->u[0]), 0);
		ck_assert_str_eq(look(p, TALK), "ab");
		hang_up(p);
	}
	ck_assert_int_eq(serve(NULL, 0), MV_OK);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("torture");

	tcase_add_loop_test(tc, each_exchange_ends_once, 0, KINDS);
	return run_suite(suite_create("torture_http"), tc);
}
