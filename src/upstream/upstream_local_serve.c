/* SPDX-License-Identifier: MIT */
/*
 * The small MCP server in front of what our own kinds do: server/discover, tools/list,
 * and calls that the kind answers.
 *
 * Owns: the calls that have no answer yet, and the answers that wait for their turn.
 * Driven by: upstream_local.c; the kind's replies; the end of a turn.
 * Invariants: nothing is answered in the turn that asks; a call is answered once or
 * cancelled.
 * Spec: 2026-07-28 server/discover, server/tools.
 */
#include "upstream_local_base_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/wording.h"

#define LOCAL_TTL_TEXT "300000" /* of a list that says itself when it changes */

static void
call_unlink(struct local_call *c)
{
	*c->prev = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
	buf_fini(&c->message);
	mem_free(c);
}

void
local_drop_calls(struct local *l)
{
	while (l->calls != NULL) {
		struct local_call *c = l->calls;

		l->ops->cancel(l->arg, c);
		call_unlink(c);
	}
}

static void
answer_free(struct local_answer *a)
{
	buf_fini(&a->text);
	mem_free(a);
}

void
local_drop_answers(struct local *l)
{
	while (l->answers != NULL) {
		struct local_answer *a = l->answers;

		l->answers = a->next;
		answer_free(a);
	}
	l->answers_tail = &l->answers;
	l->n_answers = 0;
	deferred_cancel(&l->deliver);
}

/* Takes the oldest one out, if there is one. */
static struct local_answer *
local_next_answer(struct local *l)
{
	struct local_answer *a = l->answers;

	if (a == NULL)
		return NULL;
	l->answers = a->next;
	if (l->answers == NULL)
		l->answers_tail = &l->answers;
	l->n_answers--;
	return a;
}

static void
local_deliver(struct local *l, const struct local_answer *a)
{
	struct link_msg m;

	/* What is wrong with it is ours, or there was no memory: its call ends anyhow. */
	if (a->text.err == MV_OK &&
	    link_scan(a->text.data, a->text.len, &l->json, &m) == MV_OK) {
		upstream_on_message(l->u, NULL, &m);
	} else {
		struct upstream_req *r = idmap_get(l->u->by_id, a->id);
		struct outcome o = {.kind = OUTCOME_FAILED,
		    .err = a->text.err == MV_OK ? MV_PROTOCOL : a->text.err};

		if (r != NULL)
			upstream_end(r, &o);
	}
}

static void
on_deliver(void *arg)
{
	struct local *l = arg;
	struct local_answer *a;

	MCPVISOR_ASSERT(l->magic == LOCAL_MAGIC);
	/* Those that are there now: what they lead to has a turn of its own. */
	for (size_t n = l->n_answers; n > 0 && l->magic == LOCAL_MAGIC; n--) {
		a = local_next_answer(l);
		if (a == NULL)
			break;
		local_deliver(l, a);
		answer_free(a);
	}
}

static struct local_answer *
answer_new(struct local *l, uint64_t id)
{
	struct local_answer *a = mem_xcalloc(1, sizeof(*a));

	a->id = id;
	buf_init(&a->text, CAP_MESSAGE_BYTES);
	buf_addf(&a->text, "{\"jsonrpc\":\"2.0\",\"id\":%llu,", (unsigned long long)id);
	*l->answers_tail = a;
	l->answers_tail = &a->next;
	l->n_answers++;
	deferred_ask(&l->deliver);
	return a;
}

void
local_reply(struct local_call *c, const struct iovec *result, int n)
{
	struct local_answer *a = answer_new(c->u->local, c->id);

	buf_add_str(&a->text, "\"result\":");
	for (int i = 0; i < n; i++)
		buf_add(&a->text, result[i].iov_base, result[i].iov_len);
	buf_add_char(&a->text, '}');
	call_unlink(c);
}

void
local_reply_text(struct local_call *c, const char *text, size_t n, bool is_error)
{
	struct local_answer *a = answer_new(c->u->local, c->id);

	buf_add_str(&a->text, "\"result\":{\"content\":[{\"type\":\"text\",\"text\":");
	json_put_string(&a->text, text, n);
	buf_add_str(&a->text, is_error ? "}],\"isError\":true}}" : "}]}}");
	call_unlink(c);
}

static void
answer_put_wording(struct local_answer *a, enum wording w, struct jtext value)
{
	buf_add_str(&a->text, "\"error\":");
	wording_put(&a->text, w, value);
	buf_add_char(&a->text, '}');
}

static void
answer_put_error(struct local_answer *a, int code, const char *message)
{
	buf_add_str(&a->text, "\"error\":");
	wording_put_error(&a->text, code, message);
	buf_add_char(&a->text, '}');
}

void
local_reply_error(struct local_call *c, int code, const char *message)
{
	answer_put_error(answer_new(c->u->local, c->id), code, message);
	call_unlink(c);
}

void
local_reply_unknown(struct local_call *c)
{
	struct local_answer *a = answer_new(c->u->local, c->id);

	buf_add_str(&a->text, "\"error\":");
	wording_put_unknown(&a->text, METHOD_TOOLS_CALL, c->name);
	buf_add_char(&a->text, '}');
	call_unlink(c);
}

bool
local_refuse_arguments(struct local_call *c)
{
	if (c->arguments.n == 0 || jtext_type(c->arguments) == '{')
		return false;
	struct local_answer *a = answer_new(c->u->local, c->id);

	answer_put_wording(a, WORDING_ARGUMENTS, c->arguments);
	call_unlink(c);
	return true;
}

/* ---- the server ---- */

static void
serve_discover(struct local *l, uint64_t id)
{
	struct local_answer *a;
	struct buf about;

	if (l->state != LOCAL_ST_UP) {
		l->waiting = id;
		return;
	}
	a = answer_new(l, id);
	buf_init(&about, CAP_INSTRUCTIONS_BYTES);
	buf_addf(&a->text,
	    "\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"%s\"],"
	    "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"%s\","
	    "\"version\":\"" MCPVISOR_VERSION "\"}",
	    revision_text(REVISION_LATEST_MODERN), l->ops->name);
	if (l->ops->put_instructions != NULL)
		l->ops->put_instructions(l->arg, &about);
	if (about.err == MV_OK && about.len > 0) {
		buf_add_str(&a->text, ",\"instructions\":");
		json_put_string(&a->text, about.data, about.len);
	}
	buf_add_str(&a->text, "}}");
	buf_fini(&about);
}

void
local_serve_waiting(struct local *l)
{
	if (l->waiting != 0)
		serve_discover(l, l->waiting);
	l->waiting = 0;
}

static void
serve_tools(struct local *l, uint64_t id)
{
	struct local_answer *a = answer_new(l, id);

	buf_add_str(&a->text,
	    "\"result\":{\"resultType\":\"complete\",\"ttlMs\":" LOCAL_TTL_TEXT
	    ",\"cacheScope\":\"public\",\"tools\":[");
	l->ops->put_tools(l->arg, &a->text);
	buf_add_str(&a->text, "]}}");
}

static enum mv_err
serve_call(struct local *l, uint64_t id, const struct iovec *iov, int n)
{
	struct local_call *c = mem_xcalloc(1, sizeof(*c));
	struct jtext params;
	struct link_msg m;

	c->u = l->u;
	c->id = id;
	buf_init(&c->message, CAP_MESSAGE_BYTES);
	for (int i = 0; i < n; i++)
		buf_add(&c->message, iov[i].iov_base, iov[i].iov_len);
	if (c->message.err != MV_OK ||
	    link_scan(c->message.data, c->message.len, &l->asked, &m) != MV_OK) {
		enum mv_err err = c->message.err;

		buf_fini(&c->message);
		mem_free(c);
		return err != MV_OK ? err : MV_PROTOCOL;
	}
	params = jtext_of(m.base, m.json->slot[JSON_PARAMS]);
	c->name = json_member(params, "name");
	c->arguments = json_member(params, "arguments");
	c->next = l->calls;
	c->prev = &l->calls;
	if (c->next != NULL)
		c->next->prev = &c->next;
	l->calls = c;
	l->ops->call(l->arg, c);
	return MV_OK;
}

static void
serve_nothing(struct local *l, uint64_t id)
{
	/* The gateway asks for nothing that it does not say it has. */
	answer_put_wording(answer_new(l, id), WORDING_NO_METHOD, (struct jtext){NULL, 0});
}

static const struct {
	enum method method;
	void (*serve)(struct local *l, uint64_t id);
} served[] = {
    {METHOD_DISCOVER, serve_discover},
    {METHOD_TOOLS_LIST, serve_tools},
};

enum mv_err
local_send(struct upstream *u, const struct upstream_message *what,
    const struct iovec *iov, int n)
{
	struct local *l = u->local;

	if (what->id == 0)
		return MV_OK; /* a notification: there is nothing to be told */
	if (what->method == METHOD_TOOLS_CALL)
		return serve_call(l, what->id, iov, n);
	for (size_t i = 0; i < sizeof(served) / sizeof(served[0]); i++) {
		if (served[i].method == what->method) {
			served[i].serve(l, what->id);
			return MV_OK;
		}
	}
	serve_nothing(l, what->id);
	return MV_OK;
}

bool
local_drop(struct upstream *u, uint64_t id)
{
	struct local *l = u->local;

	for (struct local_call *c = l->calls; c != NULL; c = c->next) {
		if (c->id == id) {
			l->ops->cancel(l->arg, c);
			call_unlink(c);
			break;
		}
	}
	return true;
}

/* Limits are the kind's own, which knows what it is waiting for. */
void
local_on_sent(struct upstream *u, struct upstream_req *r, const struct upstream_call *c)
{
	(void)u;
	(void)c;
	if (r->call_ms == 0)
		r->call_ms = UINT32_MAX;
	if (r->call_max_ms == 0)
		r->call_max_ms = UINT32_MAX;
}

void
local_serve_init(struct local *l)
{
	l->answers_tail = &l->answers;
	deferred_init(&l->deliver, l->u->loop, on_deliver, l);
}
