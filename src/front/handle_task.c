/* SPDX-License-Identifier: MIT */
/*
 * Tasks: requests about them go to the upstream that made them, and the ids in what
 * comes back are those that the client knows.
 *
 * Driven by: dispatch, results of calls, the gateway (notices), questions.
 * Invariants: a client knows tasks of its own era alone: those of 2025-11-25 need its
 * session, those of the extension that the request declares it; an id of an upstream's
 * never reaches a client where ours is known.
 * Spec: 2025-11-25 basic/utilities/tasks; the extension io.modelcontextprotocol/tasks.
 */
#include "client_task_priv.h"

#include "client_ask_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/tasks.h"
#include "mcpvisor/wording.h"

#include <stdlib.h>

#define EXTENSION "io.modelcontextprotocol/tasks"

enum { RPC_PARAMS = -32602 };

static const struct jtext no_value = {NULL, 0};

static bool
session_has_tasks(const struct client *c)
{
	return c->session.open && c->session.revision == REVISION_2025_11_25;
}

enum task_kind
task_kind_of(const struct request *r)
{
	if (r->era->modern)
		return TASKS_EXTENSION;
	return session_has_tasks(r->c) ? TASKS_CORE : TASKS_NONE;
}

/* Text of a principal goes into b. */
static struct task_owner
task_owner_of(const struct request *r, struct buf *b)
{
	struct task_owner who = {.o = &r->c->observer, .kind = task_kind_of(r)};

	buf_init(b, 4096);
	if (r->c->is_shared && r->port != NULL) {
		r->port->ops->put_principal(r->port->arg, b);
		who.principal = (struct jtext){b->data, b->len};
	}
	return who;
}

/* ---- requests about tasks ---- */

/* WORDING_NONE: the extension is not declared. */
static void
task_reply_error(struct request *r, int status, enum wording w, struct jtext value)
{
	struct buf *out = &r->c->scratch;
	struct iovec iov;

	buf_reset(out);
	if (w == WORDING_NONE)
		wording_put_needs_tasks(out);
	else
		wording_put(out, w, value);
	iov = (struct iovec){out->data, out->len};
	request_reply_status(r, r->era->modern ? status : 200, "error", &iov, 1);
}

static bool
task_is_declared(const struct link_msg *m)
{
	struct jtext caps = jtext_of(m->base, m->json->slot[JSON_M_CLIENT_CAPS]);

	return jtext_type(json_member(json_member(caps, "extensions"), EXTENSION)) == '{';
}

/* False: r has been answered. */
static bool
task_check(struct request *r, const struct link_msg *m)
{
	struct upstream_caps caps = gateway_caps(r->c->g, r->c->observer.view);

	if (!upstream_caps_has_tasks(&caps, task_kind_of(r)))
		task_reply_error(r, 404, WORDING_NO_TASKS, no_value);
	else if (r->era->modern && !task_is_declared(m))
		task_reply_error(r, 400, WORDING_NONE, no_value);
	else
		return true;
	return false;
}

void
handle_task(struct request *r, const struct link_msg *m)
{
	struct jtext id = jtext_of(m->base, m->json->slot[JSON_P_TASK_ID]);
	struct task_owner who;
	struct buf b;

	if (!task_check(r, m))
		return;
	if (jtext_type(id) != '"') {
		task_reply_error(r, 200, WORDING_TASK_ID, id);
		return;
	}
	who = task_owner_of(r, &b);
	r->call.task = task_find(r->c->g, &who, id);
	buf_fini(&b);
	handle_forward(r, m);
}

bool
task_may_listen(struct request *r, const struct link_msg *m)
{
	struct upstream_caps caps = gateway_caps(r->c->g, r->c->observer.view);
	struct jtext filter = jtext_of(m->base, m->json->slot[JSON_P_NOTIFICATIONS]);

	if (json_member(filter, "taskIds").n == 0 || !caps.tasks_extension ||
	    task_is_declared(m))
		return true;
	task_reply_error(r, 400, WORDING_NONE, no_value);
	return false;
}

static void
page_on_done(void *arg, struct task_page *p)
{
	struct request *r = arg;
	struct buf *out = &r->c->scratch;

	buf_reset(out);
	task_page_put(p, out);
	request_reply_buf(r, "result", out);
}

/* The number after which the page begins, which is all that our cursors are. */
static bool
cursor_read(const struct request *r, struct jtext cursor, uint64_t *after)
{
	char digits[24] = "";
	char *end = digits;

	*after = 0;
	if (cursor.n == 0 || jtext_type(cursor) == 'n')
		return true;
	if (jtext_type(cursor) != '"' || cursor.n < 3 || cursor.n > 21)
		return false;
	for (size_t i = 1; i < cursor.n - 1; i++)
		digits[i - 1] = cursor.p[i];
	*after = strtoull(digits, &end, 10);
	return digits[0] >= '1' && digits[0] <= '9' && *end == '\0' &&
	       *after <= tasks_last_serial(r->c->g);
}

void
handle_task_list(struct request *r, const struct link_msg *m)
{
	static const struct task_page_cb cb = {.on_done = page_on_done};
	struct jtext cursor = jtext_of(m->base, m->json->slot[JSON_P_CURSOR]);
	struct task_owner who;
	uint64_t after;
	struct buf b;

	if (!task_check(r, m))
		return;
	if (!cursor_read(r, cursor, &after)) {
		task_reply_error(r, 200, WORDING_CURSOR, cursor);
		return;
	}
	who = task_owner_of(r, &b);
	r->page = task_page_new(r->c->g, &who, after, &cb, r);
	buf_fini(&b);
	task_page_start(r->page);
}

/* ---- calls that become tasks ---- */

bool
task_wish(struct request *r)
{
	if (r->method != METHOD_TOOLS_CALL || task_kind_of(r) != TASKS_CORE)
		return true; /* it means nothing, and goes nowhere */
	r->wants_task = true;
	if (tasks_have_room(r->c->g, &r->c->observer))
		return true;
	request_fail_call(r, MV_BUSY, wording_text(WORDING_WHY_TASKS_MANY));
	return false;
}

/* The object that tells of a task made for r's call; absent: none was. */
static struct jtext
result_made(const struct request *r, const struct outcome *o)
{
	struct jtext task = jtext_of(o->base, o->json->slot[JSON_RESULT_TASK]);
	struct jtext type = jtext_of(o->base, o->json->slot[JSON_RESULT_TYPE]);
	bool made = r->method == METHOD_TOOLS_CALL &&
		    upstream_caps_has_tasks(upstream_caps(r->call.u), task_kind_of(r));

	if (made && r->wants_task && jtext_type(task) == '{')
		return task;
	if (made && r->era->modern && json_string_is(type, "task"))
		return o->body;
	return (struct jtext){NULL, 0};
}

static enum mv_err
result_note(
    struct request *r, const struct outcome *o, struct jtext body, struct json_edits *ed)
{
	struct task_made made = {.body = body};
	struct task_owner who;
	struct task *t;
	enum mv_err err;
	int64_t request = 0;
	struct buf b;

	/* The extension has no progress of tasks. */
	if (!r->era->modern &&
	    json_int(jtext_of(o->base, o->json->slot[JSON_ID]), &request) &&
	    request > 0) {
		made.request = (uint64_t)request;
		made.token = r->token;
	}
	who = task_owner_of(r, &b);
	err = task_note(r->c->g, &who, r->call.u, &made, &t);
	buf_fini(&b);
	if (err == MV_OK)
		task_edit(t, o->base, json_member(body, "taskId"), ed);
	return err;
}

enum mv_err
task_edit_result(struct request *r, const struct outcome *o, struct json_edits *ed)
{
	struct gateway_observer *owner = &r->c->observer;
	struct jtext own = jtext_of(o->base, o->json->slot[JSON_RESULT_TASK_ID]);
	struct jtext made = result_made(r, o);
	enum mv_err err = MV_OK;
	struct task *t;

	if (made.n != 0) {
		err = result_note(r, o, made, ed);
	} else if (own.n != 0) {
		t = task_find_own(r->c->g, owner, r->call.u, own);
		if (t != NULL) {
			task_edit(t, o->base, own, ed);
			task_heard(t, o->body);
		}
	}
	task_edit_related(
	    r->c->g, owner, r->call.u, o->base, o->json->slot[JSON_RM_RELATED_TASK], ed);
	return err;
}

void
task_note_answer(struct request *r, const struct outcome *o)
{
	bool is_error = o->kind == OUTCOME_ERROR;
	struct task *t = task_get(r->c->g, r->call.task_serial);
	int64_t code = 0;

	if (t == NULL || (!is_error && o->kind != OUTCOME_RESULT))
		return;
	if (is_error)
		(void)json_int(jtext_of(o->base, o->json->slot[JSON_E_CODE]), &code);
	/* Its result may be an error; and to one that is asked for in vain there is no
	 * more. */
	if (r->method == METHOD_TASKS_RESULT ||
	    (r->method == METHOD_TASKS_GET && code == RPC_PARAMS))
		task_settle(t);
}

bool
task_is_refusal(const struct request *r, struct buf *out)
{
	struct jtext definition;

	if (r->method != METHOD_TOOLS_CALL || !upstream_caps(r->call.u)->tasks)
		return false;
	definition = request_definition(r);
	if (!r->wants_task &&
	    !json_string_is(
		json_member(json_member(definition, "execution"), "taskSupport"),
		"required"))
		return false;
	if (task_kind_of(r) != TASKS_CORE)
		wording_put(out, WORDING_TASK_REVISION, no_value);
	return true;
}

/* ---- notices and questions ---- */

void
task_edit_notice(struct client *c, const struct upstream *u, const struct link_msg *m,
    struct json_edits *ed)
{
	if (m->json->slot[JSON_M_RELATED_TASK].len != 0)
		task_edit_related(c->g, &c->observer, u, m->base,
		    m->json->slot[JSON_M_RELATED_TASK], ed);
}

void
client_on_task(void *arg, const struct link_msg *m, struct json_edits *ed)
{
	struct client *c = arg;
	struct json_span whole = {0, (uint32_t)m->len};
	struct iovec iov[2 * JSON_EDITS_MAX + 1];

	MCPVISOR_ASSERT(c->magic == CLIENT_MAGIC);
	if (session_has_tasks(c))
		client_send(c, iov, json_edit_pieces(m->base, whole, ed, iov));
	else
		metrics_add(METRIC_NOTICES_DROPPED, 1);
}

struct jtext
task_question_params(struct client *c, const struct question *q, struct buf *b)
{
	const struct json_span *slot = q->json.slot;
	struct json_edits ed;
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	int n;

	json_edits_init(&ed);
	buf_init(b, CAP_MESSAGE_BYTES);
	if (slot[JSON_M_RELATED_TASK].len == 0)
		return jtext_of(q->bytes, slot[JSON_PARAMS]);
	task_edit_related(
	    c->g, &c->observer, q->u, q->bytes, slot[JSON_M_RELATED_TASK], &ed);
	n = json_edit_pieces(q->bytes, slot[JSON_PARAMS], &ed, iov);
	for (int i = 0; i < n; i++)
		buf_add(b, iov[i].iov_base, iov[i].iov_len);
	return (struct jtext){b->data, b->err == MV_OK ? b->len : 0};
}

void
task_answer_question(struct question *q, const struct link_msg *m)
{
	struct jtext own =
	    json_member(jtext_of(q->bytes, q->json.slot[JSON_M_RELATED_TASK]), "taskId");
	struct jtext id =
	    json_member(jtext_of(m->base, m->json->slot[JSON_RM_RELATED_TASK]), "taskId");
	struct json_edits ed;
	struct iovec iov[2 * JSON_EDITS_MAX + 1];

	json_edits_init(&ed);
	if (own.n != 0 && id.n != 0)
		json_edit_add(
		    &ed, (uint32_t)(id.p - m->base), (uint32_t)id.n, own.p, own.n);
	question_answer(q, "result", iov,
	    json_edit_pieces(m->base, m->json->slot[JSON_RESULT], &ed, iov));
}
