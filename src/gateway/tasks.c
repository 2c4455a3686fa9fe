/* SPDX-License-Identifier: MIT */
/*
 * One page of a client's tasks: each of them is asked for at its own upstream, so that
 * the list holds what tasks/get would say and nothing that is somebody else's.
 *
 * Owns: the questions, and the answers until they are written.
 * Driven by: upstreams' answers.
 * Invariants: a task that cannot be asked for, or is not known there any more, is left
 * out; order is that of their making.
 */
#include "mcpvisor/tasks.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/upstream.h"

#define PAGE_TASKS 32

struct page_item {
	struct task_page *p;
	uint64_t serial;
	struct upstream_req req;
	struct buf text; /* empty: it has nothing to show */
};

struct task_page {
	struct gateway *g;
	const struct task_page_cb *cb;
	void *arg;
	unsigned n, n_open;
	uint64_t next; /* after that number there are more; 0: there are none */
	struct page_item items[PAGE_TASKS];
};

static void
item_take(struct page_item *it, const struct outcome *o)
{
	struct jtext own = jtext_of(o->base, o->json->slot[JSON_RESULT_TASK_ID]);
	struct task *t = task_get(it->p->g, it->serial);
	struct json_edits ed;
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	int n;

	json_edits_init(&ed);
	if (t == NULL || !json_id_is_same(own, task_own_id(t)))
		return;
	task_edit(t, o->base, own, &ed);
	n = json_edit_pieces(o->base, o->json->slot[JSON_RESULT], &ed, iov);
	for (int i = 0; i < n; i++)
		buf_add(&it->text, iov[i].iov_base, iov[i].iov_len);
	if (it->text.err != MV_OK)
		buf_fini(&it->text);
	task_heard(t, o->body);
}

static void
on_done(void *arg, const struct outcome *o)
{
	struct page_item *it = arg;
	struct task_page *p = it->p;

	if (o->kind == OUTCOME_RESULT && jtext_type(o->body) == '{' &&
	    o->json->slot[JSON_RESULT_TASK_ID].len != 0)
		item_take(it, o);
	if (--p->n_open == 0)
		p->cb->on_done(p->arg, p);
}

static const struct upstream_req_cb item_cb = {.on_done = on_done};

struct task_page *
task_page_new(struct gateway *g, const struct task_owner *who, uint64_t after,
    const struct task_page_cb *cb, void *arg)
{
	struct task_page *p = mem_xcalloc(1, sizeof(*p));
	struct task *t;

	p->g = g;
	p->cb = cb;
	p->arg = arg;
	for (t = task_next(g, who, after); t != NULL && p->n < PAGE_TASKS;
	     t = task_next(g, who, task_serial(t))) {
		struct page_item *it = &p->items[p->n++];

		it->p = p;
		it->serial = task_serial(t);
		it->req.cb = &item_cb;
		it->req.arg = it;
		buf_init(&it->text, CAP_MESSAGE_BYTES / PAGE_TASKS);
	}
	if (t != NULL)
		p->next = p->items[p->n - 1].serial;
	return p;
}

void
task_page_start(struct task_page *p)
{
	struct buf b;

	buf_init(&b, CAP_TASK_ID_BYTES + 64);
	p->n_open = 1; /* until all are asked */
	for (unsigned i = 0; i < p->n; i++) {
		const struct task *t = task_get(p->g, p->items[i].serial);

		buf_reset(&b);
		buf_add_str(&b, "\"taskId\":");
		if (t != NULL)
			json_put(&b, task_own_id(t));
		if (t != NULL && buf_cstr(&b) != NULL &&
		    upstream_ask(task_upstream(t), &p->items[i].req, METHOD_TASKS_GET,
			b.data) == MV_OK)
			p->n_open++;
	}
	buf_fini(&b);
	if (--p->n_open == 0)
		p->cb->on_done(p->arg, p);
}

void
task_page_free(struct task_page *p)
{
	if (p == NULL)
		return;
	for (unsigned i = 0; i < p->n; i++) {
		upstream_cancel(&p->items[i].req, NULL);
		buf_fini(&p->items[i].text);
	}
	mem_free(p);
}

void
task_page_put(const struct task_page *p, struct buf *out)
{
	const char *sep = "";

	buf_add_str(out, "{\"tasks\":[");
	for (unsigned i = 0; i < p->n; i++) {
		const struct buf *text = &p->items[i].text;

		if (text->len == 0)
			continue;
		buf_add_str(out, sep);
		buf_add(out, text->data, text->len);
		sep = ",";
	}
	buf_add_char(out, ']');
	if (p->next != 0)
		buf_addf(out, ",\"nextCursor\":\"%llu\"", (unsigned long long)p->next);
	buf_add_char(out, '}');
}
