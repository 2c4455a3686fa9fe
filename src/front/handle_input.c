/* SPDX-License-Identifier: MIT */
/*
 * A modern upstream's input_required result for a legacy client: its requests become
 * requests to the client, the answers the retry.
 *
 *   input_required -> one ask for each request -> all answered -> the call again
 *         ^                                                            |
 *         +------------------------- again ----------------------------+
 *
 * Owns: the answers that are in, and the state, until the retry.
 * Driven by: a call's end; the client's answers.
 * Invariants: an answer's bytes go back as they came, under the key that was asked with;
 * the state goes back as it was written; a call asks in a bounded number of rounds.
 * Spec: 2026-07-28 basic/patterns/mrtr.
 */
#include "client_ask_priv.h"
#include "client_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/wording.h"

#include <stdio.h>
#include <string.h>

#define ROUNDS_MAX 64

/* One request of a round. */
struct input_ask {
	struct input *in;
	struct ask *ask; /* NULL: answered */
	enum method method;
	struct input_ask *next;
	size_t key_len;
	char key[]; /* JSON string text */
};

struct input {
	struct request *r;
	struct input_ask *asks;
	unsigned open, rounds;
	struct buf responses; /* members, each with its comma */
	struct buf state;     /* JSON text; empty: none */
};

static void
input_reset(struct input *in)
{
	while (in->asks != NULL) {
		struct input_ask *a = in->asks;

		in->asks = a->next;
		if (a->ask != NULL)
			ask_drop(a->ask);
		mem_free(a);
	}
	in->open = 0;
	buf_reset(&in->responses);
	buf_reset(&in->state);
}

void
input_free(struct input *in)
{
	if (in == NULL)
		return;
	input_reset(in);
	buf_fini(&in->responses);
	buf_fini(&in->state);
	in->r->input = NULL;
	mem_free(in);
}

static void
input_fail(struct input *in, const char *why)
{
	struct request *r = in->r;

	input_free(in);
	call_look(&r->call);
	request_fail_call(r, MV_PROTOCOL, why);
}

/* All answers are in: the call goes on. */
static void
input_retry(struct input *in)
{
	struct request *r = in->r;
	struct jtext responses = {NULL, 0};
	struct jtext state = {in->state.data, in->state.len};
	struct buf all;
	enum mv_err err;

	buf_init(&all, CAP_MESSAGE_BYTES);
	if (in->responses.len > 0) {
		buf_add_char(&all, '{');
		buf_add(&all, in->responses.data, in->responses.len - 1);
		buf_add_char(&all, '}');
		responses = (struct jtext){all.data, all.len};
	}
	err = all.err != MV_OK ? all.err : in->responses.err;
	if (err == MV_OK)
		err = in->state.err;
	if (err == MV_OK)
		err = call_retry(&r->call, responses, state);
	buf_fini(&all);
	if (err != MV_OK) {
		input_free(in);
		request_fail_call(
		    r, err, err == MV_DIED ? wording_text(WORDING_WHY_GONE) : NULL);
		return;
	}
	input_reset(in);
}

static void
input_take(struct input_ask *a, struct jtext answer)
{
	struct input *in = a->in;

	a->ask = NULL;
	buf_add(&in->responses, a->key, a->key_len);
	buf_add_char(&in->responses, ':');
	json_put(&in->responses, answer);
	buf_add_char(&in->responses, ',');
	if (--in->open == 0)
		input_retry(in);
}

static void
input_on_answer(void *arg, const struct link_msg *m)
{
	static const char cancel[] = "{\"action\":\"cancel\"}";
	struct input_ask *a = arg;
	struct input *in = a->in;
	char why[WORDING_BYTES];
	const char *method = method_name(a->method);

	if (m->env.kind == ENVELOPE_RESULT) {
		input_take(a, jtext_of(m->base, m->json->slot[JSON_RESULT]));
		return;
	}
	/* Who cannot show a form has not answered it: that is an answer of its own. */
	if (a->method == METHOD_ELICIT) {
		input_take(a, (struct jtext){cancel, sizeof(cancel) - 1});
		return;
	}
	a->ask = NULL;
	wording_print(why, sizeof(why), WORDING_WHY_REFUSED,
	    (struct jtext){method, strlen(method)});
	input_fail(in, why);
}

static void
input_on_lost(void *arg, enum wording why)
{
	struct input_ask *a = arg;
	struct input *in = a->in;
	struct request *r = in->r;

	a->ask = NULL;
	/* One that its client has given up ends by itself. */
	if (r->is_ending) {
		input_free(in);
		return;
	}
	input_fail(in, wording_text(why));
}

static const struct ask_ops input_ops = {
    .on_answer = input_on_answer, .on_lost = input_on_lost};

/* A URL that it was sent to had a name in earlier revisions, which have to have one. */
static struct jtext
input_first(struct input *in, enum method m, struct jtext params, char *text, size_t size)
{
	int n;

	if (m != METHOD_ELICIT || !json_string_is(json_member(params, "mode"), "url") ||
	    json_member(params, "elicitationId").n != 0)
		return (struct jtext){NULL, 0};
	n = snprintf(text, size, "\"elicitationId\":\"mcpvisor-%llu\",",
	    (unsigned long long)in->r->c->last_ask + 1);
	return (struct jtext){text, (size_t)n};
}

/* NULL: it was asked; else why it cannot be. */
static const char *
input_ask_one(struct input *in, struct jtext key, struct jtext request)
{
	struct request *r = in->r;
	struct ask_what what = {
	    .method = method_parse(json_member(request, "method")),
	    .params = json_member(request, "params"),
	    .limit_ms = upstream_conf_of(r->call.u)->question_ms,
	};
	struct input_ask *a;
	char text[64];

	if (!client_can_be_asked(r->c, what.method, what.params))
		return wording_text(WORDING_WHY_NOT_OFFERED);
	a = mem_try(sizeof(*a) + key.n);
	if (a == NULL)
		return wording_text(WORDING_WHY_MEMORY);
	*a = (struct input_ask){.in = in, .method = what.method, .key_len = key.n};
	for (size_t i = 0; i < key.n; i++)
		a->key[i] = key.p[i];
	a->next = in->asks;
	in->asks = a;
	in->open++;
	what.first = input_first(in, what.method, what.params, text, sizeof(text));
	a->ask = client_ask(r->c, r, &what, &input_ops, a);
	return a->ask != NULL ? NULL : wording_text(WORDING_ASK_TOO_MANY);
}

static const char *
input_ask_all(struct input *in, struct jtext requests)
{
	const char *why = NULL;
	struct json_iter it;
	struct jtext key, value;

	if (jtext_type(requests) != '{')
		return NULL;
	/* The last answer starts the retry: not before the last question is out. */
	in->open++;
	json_iter_init(&it, requests);
	while (why == NULL && json_next_member(&it, &key, &value))
		why = input_ask_one(in, key, value);
	in->open--;
	return why;
}

static struct input *
input_new(struct request *r)
{
	struct input *in = mem_try(sizeof(*in));

	if (in == NULL)
		return NULL;
	*in = (struct input){.r = r};
	buf_init(&in->responses, CAP_MESSAGE_BYTES);
	buf_init(&in->state, CAP_MESSAGE_BYTES);
	r->input = in;
	return in;
}

void
input_begin(struct request *r, const struct outcome *o)
{
	struct input *in = r->input != NULL ? r->input : input_new(r);
	const char *why;

	if (in == NULL) {
		request_fail_call(r, MV_NOMEM, NULL);
		return;
	}
	input_reset(in);
	if (++in->rounds > ROUNDS_MAX) {
		input_fail(in, wording_text(WORDING_WHY_AGAIN));
		return;
	}
	json_put(&in->state, json_member(o->body, "requestState"));
	why = input_ask_all(in, json_member(o->body, "inputRequests"));
	if (why == NULL && in->open == 0 && in->asks == NULL && in->state.len == 0)
		why = wording_text(WORDING_WHY_NOTHING);
	if (why != NULL)
		input_fail(in, why);
	else if (in->open == 0)
		input_retry(in);
}
