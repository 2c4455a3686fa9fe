/* SPDX-License-Identifier: MIT */
/*
 * The exchange of the commands "tools" and "call" with our own endpoint, as a legacy
 * client on a pair of descriptors.
 *
 *   hello --initialized--> list <--> wait
 *                           |  \
 *                           v   v
 *                         call  done
 *
 * Owns: its link, the list of tools.
 * Driven by: its link and one timer.
 * Invariants: one request is open at a time, its id is last_id; done comes once, from
 * deferred work; a list that was asked for while upstreams were starting is never taken
 * for the last word.
 */
#include "mcpvisor/cli.h"

#include "cli_priv.h"

#include <string.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/link.h"
#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/method.h"
#include "mcpvisor/revision.h"

#define CLI_MAGIC      0x636c6900u
#define CLI_WAIT_MS    60000
#define CLI_RECHECK_MS 50

enum cli_state { CLI_ST_HELLO, CLI_ST_LIST, CLI_ST_WAIT, CLI_ST_CALL, CLI_ST_DONE };

struct cli {
	unsigned magic;
	struct loop *loop;
	struct cli_opts opts;
	struct link *link;
	enum cli_state state;
	int64_t last_id;
	struct cli_list tools;
	unsigned pages;
	bool list_is_partial; /* upstreams were starting when it was asked for */
	uint64_t give_up_ms;
	struct timer recheck;
	struct deferred finish;
	int code;
	void (*done)(void *arg, int exit_code);
	void *done_arg;
};

static void
cli_finish(struct cli *c, enum cli_exit code)
{
	if (c->state == CLI_ST_DONE)
		return;
	c->state = CLI_ST_DONE;
	timer_clear(&c->recheck);
	c->code = cli_flush(c->opts.out, c->opts.err, code);
	fflush(c->opts.err);
	deferred_ask(&c->finish);
}

static void
cli_fail(struct cli *c, const char *text)
{
	if (c->state != CLI_ST_DONE)
		fprintf(c->opts.err, "mcpvisor: %s\n", text);
	cli_finish(c, CLI_UPSTREAM);
}

static void
on_finish(void *arg)
{
	struct cli *c = arg;

	MCPVISOR_ASSERT(c->magic == CLI_MAGIC);
	c->done(c->done_arg, c->code);
}

/* Starts a request; what follows is its params and '}'. */
static void
request_begin(struct cli *c, struct buf *b, enum method m)
{
	buf_init(b, CAP_MESSAGE_BYTES);
	buf_add_str(b, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add_u64(b, (uint64_t)++c->last_id);
	buf_add_str(b, ",\"method\":\"");
	buf_add_str(b, method_name(m));
	buf_add_str(b, "\",\"params\":");
}

static void
request_send(struct cli *c, struct buf *b)
{
	if (b->err != MV_OK || link_send_buf(c->link, b) != MV_OK)
		cli_fail(c, "the request could not be sent");
	buf_fini(b);
}

static void
cli_send_hello(struct cli *c)
{
	struct buf b;

	request_begin(c, &b, METHOD_INITIALIZE);
	buf_addf(&b,
	    "{\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":{\"name\":"
	    "\"mcpvisor-cli\",\"version\":\"%s\"}}}",
	    revision_text(REVISION_LATEST_LEGACY), MCPVISOR_VERSION);
	request_send(c, &b);
}

static void
cli_send_initialized(struct cli *c)
{
	struct buf b;

	buf_init(&b, CAP_MESSAGE_BYTES);
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"");
	buf_add_str(&b, method_name(METHOD_N_INITIALIZED));
	buf_add_str(&b, "\"}");
	request_send(c, &b);
}

static unsigned
cli_count_starting(const struct cli *c)
{
	return c->opts.starting ? c->opts.starting(c->opts.starting_arg) : 0;
}

/* cursor absent: the first page of a new list. */
static void
cli_send_list(struct cli *c, struct jtext cursor)
{
	struct buf b;

	if (c->state == CLI_ST_DONE)
		return; /* the message before this one could not be sent */
	if (!cursor.n) {
		cli_list_clear(&c->tools);
		c->pages = 0;
		c->list_is_partial = cli_count_starting(c) > 0;
	}
	c->pages++;
	c->state = CLI_ST_LIST;
	request_begin(c, &b, METHOD_TOOLS_LIST);
	buf_add_str(&b, cursor.n ? "{\"cursor\":" : "{");
	json_put(&b, cursor);
	buf_add_str(&b, "}}");
	request_send(c, &b);
}

static void
cli_list_again(struct cli *c)
{
	struct jtext none = {NULL, 0};

	timer_clear(&c->recheck);
	cli_send_list(c, none);
}

static void
cli_send_call(struct cli *c, const struct cli_tool *t)
{
	struct buf b;
	enum cli_exit code;

	c->state = CLI_ST_CALL;
	request_begin(c, &b, METHOD_TOOLS_CALL);
	buf_add_str(&b, "{\"name\":");
	json_put_string(&b, t->name, strlen(t->name));
	buf_add_str(&b, ",\"arguments\":");
	code = cli_args_build(&c->opts, t, &b);
	buf_add_str(&b, "}}");
	if (code == CLI_OK) {
		request_send(c, &b);
	} else {
		buf_fini(&b);
		cli_finish(c, code);
	}
}

/* The list is all there will be. */
static void
cli_conclude(struct cli *c)
{
	unsigned starting = cli_count_starting(c);

	if (starting)
		fprintf(c->opts.err, "mcpvisor: %u %s still starting\n", starting,
		    starting == 1 ? "upstream is" : "upstreams are");
	if (c->opts.tool) {
		cli_print_unknown(&c->opts, &c->tools);
		cli_finish(c, CLI_PARAMS);
		return;
	}
	cli_print_tools(&c->opts, &c->tools);
	if (c->tools.n == 0)
		fprintf(c->opts.err, "mcpvisor: there are no tools\n");
	cli_finish(c, c->tools.n ? CLI_OK : CLI_NOTHING);
}

static void
cli_on_list_complete(struct cli *c)
{
	const struct cli_tool *t =
	    c->opts.tool ? cli_list_find(&c->tools, c->opts.tool) : NULL;

	if (t) {
		cli_send_call(c, t);
	} else if (c->list_is_partial && clock_now_ms() < c->give_up_ms) {
		c->state = CLI_ST_WAIT;
		timer_set(&c->recheck, CLI_RECHECK_MS);
	} else {
		cli_conclude(c);
	}
}

static void
on_recheck(void *arg)
{
	struct cli *c = arg;

	MCPVISOR_ASSERT(c->magic == CLI_MAGIC);
	if (cli_count_starting(c) == 0 || clock_now_ms() >= c->give_up_ms)
		cli_list_again(c);
	else
		timer_set(&c->recheck, CLI_RECHECK_MS);
}

static void
cli_on_page(struct cli *c, struct jtext result)
{
	struct jtext cursor = json_member(result, "nextCursor");

	if (!cli_list_add(&c->tools, json_member(result, "tools")) ||
	    c->pages >= CAP_LIST_PAGES)
		cli_fail(c, "the list of tools is too long or not a list");
	else if (jtext_type(cursor) == '"')
		cli_send_list(c, cursor);
	else
		cli_on_list_complete(c);
}

static void
cli_on_result(struct cli *c, struct jtext result)
{
	switch (c->state) {
	case CLI_ST_HELLO:
		c->give_up_ms =
		    clock_now_ms() +
		    (c->opts.wait_ms ? c->opts.wait_ms : (uint32_t)CLI_WAIT_MS);
		cli_send_initialized(c);
		cli_list_again(c);
		break;
	case CLI_ST_LIST:
		cli_on_page(c, result);
		break;
	case CLI_ST_CALL:
		cli_finish(c, cli_print_result(&c->opts, result));
		break;
	case CLI_ST_WAIT:
	case CLI_ST_DONE:
		break;
	}
}

static void
on_message(void *arg, const struct link_msg *m)
{
	struct cli *c = arg;
	int64_t id;

	MCPVISOR_ASSERT(c->magic == CLI_MAGIC);
	if (c->state == CLI_ST_DONE)
		return;
	if (m->env.kind == ENVELOPE_NOTIFICATION) {
		/* Somebody came up; the tool that we wait for may be there. */
		if (c->state == CLI_ST_WAIT && c->opts.tool &&
		    method_parse(m->env.method) == METHOD_N_TOOLS_CHANGED)
			cli_list_again(c);
		return;
	}
	if ((m->env.kind != ENVELOPE_RESULT && m->env.kind != ENVELOPE_ERROR) ||
	    !json_int(m->env.id, &id) || id != c->last_id)
		return;
	if (m->env.kind == ENVELOPE_RESULT)
		cli_on_result(c, jtext_of(m->base, m->json->slot[JSON_RESULT]));
	else
		cli_finish(c, cli_print_error(&c->opts,
				  jtext_of(m->base, m->json->slot[JSON_ERROR])));
}

static void
on_bad(void *arg, enum mv_err err, struct jtext id, bool is_reply, const char *line,
    size_t len)
{
	struct cli *c = arg;

	(void)id;
	(void)is_reply;
	(void)line;
	(void)len;
	MCPVISOR_ASSERT(c->magic == CLI_MAGIC);
	cli_fail(c, mv_err_text(err));
}

static void
on_end(void *arg)
{
	struct cli *c = arg;

	MCPVISOR_ASSERT(c->magic == CLI_MAGIC);
	cli_fail(c, "the endpoint ended before its answer");
}

static void
on_write_end(void *arg, int errnum)
{
	(void)errnum;
	on_end(arg);
}

struct cli *
cli_new(struct loop *l, const struct cli_opts *o, int rfd, int wfd,
    void (*done)(void *arg, int exit_code), void *arg)
{
	const struct link_opts lo = {.rfd = rfd,
	    .wfd = wfd,
	    .message_max = CAP_MESSAGE_BYTES,
	    .out_max = CAP_OUT_BYTES,
	    .want_uris = false};
	const struct link_cb cb = {.on_message = on_message,
	    .on_bad = on_bad,
	    .on_end = on_end,
	    .on_write_end = on_write_end};
	struct cli *c = mem_xcalloc(1, sizeof *c);

	c->magic = CLI_MAGIC;
	c->loop = l;
	c->opts = *o;
	c->done = done;
	c->done_arg = arg;
	timer_init(&c->recheck, l, on_recheck, c);
	deferred_init(&c->finish, l, on_finish, c);
	c->link = link_new(l, &lo, &cb, c);
	cli_send_hello(c);
	return c;
}

void
cli_free(struct cli *c)
{
	if (!c)
		return;
	MCPVISOR_ASSERT(c->magic == CLI_MAGIC);
	deferred_cancel(&c->finish);
	timer_fini(&c->recheck);
	link_free(c->link);
	cli_list_clear(&c->tools);
	c->magic = 0;
	mem_free(c);
}
