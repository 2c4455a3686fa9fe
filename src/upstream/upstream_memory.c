/* SPDX-License-Identifier: MIT */
/*
 * What an upstream leaves to a later process of ours: written as text, taken back
 * whole or not at all.
 *
 *   {"mcpvisor_memory":1,"era":...,"revision":...,"capabilities":[...],"lists":{...}}
 *   "its instructions"
 *   LENGTH DEFINITION        (as many as lists says, kind by kind)
 *
 * Driven by: whoever keeps the text; changes of what it would say.
 * Invariants: a definition comes back byte for byte, whatever white space is in it: its
 * length says where it ends. The text is foreign until all of it has been checked.
 */
#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define MEMORY_VERSION 1

static const char *const era_names[] = {
    [ERA_AUTO] = "unknown", [ERA_LEGACY] = "legacy", [ERA_MODERN] = "modern"};
#define N_ERAS (sizeof(era_names) / sizeof(era_names[0]))

/* Of a remote one; what was never found out is left out. */
static const char *const transport_names[] = {[TRANSPORT_AUTO] = "unknown",
    [TRANSPORT_STREAMABLE] = "http",
    [TRANSPORT_SSE] = "sse"};
#define N_TRANSPORTS (sizeof(transport_names) / sizeof(transport_names[0]))

/* X(member of struct upstream_caps) */
#define CAPS(X)                                                                          \
	X(tools)                                                                         \
	X(prompts)                                                                       \
	X(resources)                                                                     \
	X(completions)                                                                   \
	X(logging)                                                                       \
	X(tools_changed)                                                                 \
	X(prompts_changed)                                                               \
	X(resources_changed)                                                             \
	X(subscribe)                                                                     \
	X(tasks)                                                                         \
	X(tasks_cancel)                                                                  \
	X(tasks_extension)

/* ---- writing ---- */

/* One that never came is no knowledge. */
static bool
memory_has_list(const struct upstream *u, unsigned kind)
{
	return u->lists[kind].is_known && !u->listers[kind].is_guess;
}

static void
memory_put_caps(const struct upstream_caps *c, struct buf *out)
{
	const char *sep = "";

	buf_add_char(out, '[');
#define X(cap)                                                                           \
	if (c->cap) {                                                                    \
		buf_addf(out, "%s\"%s\"", sep, #cap);                                    \
		sep = ",";                                                               \
	}
	CAPS(X)
#undef X
	(void)sep;
	buf_add_char(out, ']');
}

/* Whether a revision fits the era that was learnt. */
static bool
memory_fits(enum era_pin era, enum revision r)
{
	return era == ERA_AUTO ||
	       (r != REVISION_NONE && revision_is_modern(r) == (era == ERA_MODERN));
}

static void
memory_put_head(const struct upstream *u, struct buf *out)
{
	/* A greeting that failed may have left half of an answer. */
	enum era_pin era =
	    memory_fits(u->known_era, u->revision) ? u->known_era : ERA_AUTO;

	buf_addf(out, "{\"mcpvisor_memory\":%d,\"era\":\"%s\",\"revision\":\"%s\",",
	    MEMORY_VERSION, era_names[era], revision_text(u->revision));
	buf_add_str(out, "\"capabilities\":");
	memory_put_caps(&u->caps, out);
	if (u->known_transport != TRANSPORT_AUTO)
		buf_addf(
		    out, ",\"transport\":\"%s\"", transport_names[u->known_transport]);
	if (u->asks)
		buf_add_str(out, ",\"asks\":true");
	buf_add_str(out, ",\"lists\":{");
	for (unsigned k = 0; k < LIST_MAX; k++) {
		const struct ulist *l = &u->lists[k];

		buf_addf(
		    out, "%s\"%s\":", k > 0 ? "," : "", list_member((enum list_kind)k));
		if (memory_has_list(u, k))
			buf_addf(out, "{\"count\":%u,\"private\":%s}", l->n,
			    l->is_private ? "true" : "false");
		else
			buf_add_str(out, "null");
	}
	buf_add_str(out, "}}\n");
}

static void
memory_put_list(const struct ulist *l, struct buf *out)
{
	for (uint32_t i = 0; i < l->n; i++) {
		buf_add_u64(out, l->items[i].len);
		buf_add_char(out, ' ');
		json_put(out, ulist_def(l, i));
		buf_add_char(out, '\n');
	}
}

void
upstream_put_memory(const struct upstream *u, struct buf *out)
{
	const char *text = u->instructions != NULL ? u->instructions : "";

	if (!u->has_memory)
		return;
	memory_put_head(u, out);
	json_put_string(out, text, strlen(text));
	buf_add_char(out, '\n');
	for (unsigned k = 0; k < LIST_MAX; k++)
		if (memory_has_list(u, k))
			memory_put_list(&u->lists[k], out);
}

/* ---- reading ---- */

struct memory {
	enum era_pin era;
	enum transport_pin transport;
	bool asks;
	enum revision revision;
	struct upstream_caps caps;
	struct buf instructions;
	struct ulist lists[LIST_MAX];
	bool has[LIST_MAX];
	int64_t counts[LIST_MAX];
};

static enum mv_err
memory_check_text(struct jtext t, enum json_kind kind)
{
	struct json_msg json;
	enum mv_err err = json_scan(&json, t.p, t.n, false);

	return err == MV_OK && json.kind == kind ? MV_OK : MV_PROTOCOL;
}

/* The text up to the next line feed, which is skipped. */
static bool
memory_next_line(struct jtext *rest, struct jtext *line)
{
	const char *end = rest->n > 0 ? memchr(rest->p, '\n', rest->n) : NULL;

	if (end == NULL)
		return false;
	line->p = rest->p;
	line->n = (size_t)(end - rest->p);
	rest->n -= line->n + 1;
	rest->p = end + 1;
	return true;
}

static enum mv_err
memory_read_caps(struct memory *m, struct jtext list)
{
	struct json_iter it;
	struct jtext name;
	bool known = true;

	if (jtext_type(list) != '[')
		return MV_PROTOCOL;
	json_iter_init(&it, list);
	while (known && json_next_element(&it, &name)) {
		known = false;
#define X(cap)                                                                           \
	if (json_string_is(name, #cap))                                                  \
		m->caps.cap = known = true;
		CAPS(X)
#undef X
	}
	return known ? MV_OK : MV_PROTOCOL;
}

static enum mv_err
memory_read_list_head(struct memory *m, enum list_kind k, struct jtext head)
{
	struct jtext private = json_member(head, "private");

	if (jtext_type(head) == 'n')
		return MV_OK;
	if (!json_int(json_member(head, "count"), &m->counts[k]) || m->counts[k] < 0 ||
	    m->counts[k] > CAP_LIST_ITEMS ||
	    (jtext_type(private) != 't' && jtext_type(private) != 'f'))
		return MV_PROTOCOL;
	m->has[k] = true;
	m->lists[k].is_private = json_is_true(private);
	return MV_OK;
}

static enum mv_err
memory_read_transport(struct memory *m, struct jtext word)
{
	unsigned i = 0;

	if (word.n == 0)
		return MV_OK;
	while (i < N_TRANSPORTS && !json_string_is(word, transport_names[i]))
		i++;
	if (i == N_TRANSPORTS)
		return MV_PROTOCOL;
	m->transport = (enum transport_pin)i;
	return MV_OK;
}

static enum mv_err
memory_read_head(struct memory *m, struct jtext line)
{
	struct jtext lists, era;
	enum mv_err err = memory_check_text(line, JSON_K_OBJECT);
	int64_t version = 0;
	unsigned e = 0;

	if (err != MV_OK)
		return err;
	if (!json_int(json_member(line, "mcpvisor_memory"), &version) ||
	    version != MEMORY_VERSION)
		return MV_PROTOCOL;
	era = json_member(line, "era");
	while (e < N_ERAS && !json_string_is(era, era_names[e]))
		e++;
	if (e == N_ERAS)
		return MV_PROTOCOL;
	m->era = (enum era_pin)e;
	m->revision = revision_parse(json_member(line, "revision"));
	if (!memory_fits(m->era, m->revision))
		return MV_PROTOCOL;
	lists = json_member(line, "lists");
	err = memory_read_caps(m, json_member(line, "capabilities"));
	if (err == MV_OK)
		err = memory_read_transport(m, json_member(line, "transport"));
	m->asks = json_is_true(json_member(line, "asks"));
	for (unsigned k = 0; k < LIST_MAX && err == MV_OK; k++)
		err = memory_read_list_head(m, (enum list_kind)k,
		    json_member(lists, list_member((enum list_kind)k)));
	return err;
}

static enum mv_err
memory_read_instructions(struct memory *m, struct jtext line)
{
	enum mv_err err = memory_check_text(line, JSON_K_STRING);

	if (err != MV_OK || !json_string_decode(line, &m->instructions))
		return MV_PROTOCOL;
	return m->instructions.err == MV_TOO_LONG ? MV_PROTOCOL : m->instructions.err;
}

/* "LENGTH " and that many bytes, then a line feed. */
static enum mv_err
memory_next_definition(struct jtext *rest, struct jtext *def)
{
	size_t i = 0, n = 0;

	while (
	    i < rest->n && rest->p[i] >= '0' && rest->p[i] <= '9' && n <= CAP_LIST_BYTES)
		n = n * 10 + (size_t)(rest->p[i++] - '0');
	if (i == 0 || rest->p[0] == '0' || i == rest->n || rest->p[i] != ' ' ||
	    n >= rest->n - i - 1 || rest->p[i + 1 + n] != '\n')
		return MV_PROTOCOL;
	*def = (struct jtext){rest->p + i + 1, n};
	rest->p += i + n + 2;
	rest->n -= i + n + 2;
	/* Without white space around it, as a member of an array. */
	if (def->p[0] != '{' || def->p[n - 1] != '}')
		return MV_PROTOCOL;
	return memory_check_text(*def, JSON_K_OBJECT);
}

static enum mv_err
memory_read_list(struct memory *m, enum list_kind k, struct jtext *rest)
{
	struct jtext def;
	enum mv_err err = MV_OK;

	for (int64_t i = 0; i < m->counts[k] && err == MV_OK; i++) {
		err = memory_next_definition(rest, &def);
		if (err == MV_OK)
			err = ulist_add_def(&m->lists[k], def);
	}
	return err == MV_TOO_LONG ? MV_PROTOCOL : err;
}

static enum mv_err
memory_read(struct memory *m, struct jtext rest)
{
	struct jtext line;
	enum mv_err err = MV_PROTOCOL;

	if (memory_next_line(&rest, &line))
		err = memory_read_head(m, line);
	if (err == MV_OK)
		err = memory_next_line(&rest, &line) ? memory_read_instructions(m, line)
						     : MV_PROTOCOL;
	for (unsigned k = 0; k < LIST_MAX && err == MV_OK; k++)
		err = memory_read_list(m, (enum list_kind)k, &rest);
	return err == MV_OK && rest.n > 0 ? MV_PROTOCOL : err;
}

static void
memory_adopt(struct upstream *u, struct memory *m)
{
	u->has_memory = true;
	u->caps = m->caps;
	u->revision = m->revision;
	u->asks |= m->asks;
	if (u->conf->era == ERA_AUTO && m->era != ERA_AUTO) {
		u->known_era = m->era;
		u->recalled_era = true;
		if (u->conf->transport == TRANSPORT_AUTO)
			u->known_transport = m->transport;
	}
	mem_free(u->instructions);
	u->instructions = m->instructions.len > 0
			      ? mem_xstrndup(m->instructions.data, m->instructions.len)
			      : NULL;
	for (unsigned k = 0; k < LIST_MAX; k++) {
		if (!m->has[k])
			continue;
		ulist_fini(&u->lists[k]);
		u->lists[k] = m->lists[k];
		u->lists[k].is_known = true;
		u->lists[k].pages = 1;
		u->lists[k].fetched_ms = clock_now_ms();
		u->listers[k].is_guess = false;
		ulist_init(&m->lists[k], (enum list_kind)k);
	}
}

enum mv_err
upstream_take_memory(struct upstream *u, const char *p, size_t n)
{
	struct memory m = {.era = ERA_AUTO, .transport = TRANSPORT_AUTO};
	enum mv_err err;

	buf_init(&m.instructions, CAP_INSTRUCTIONS_BYTES);
	for (unsigned k = 0; k < LIST_MAX; k++)
		ulist_init(&m.lists[k], (enum list_kind)k);
	err = n > CAP_MEMORY_BYTES ? MV_PROTOCOL : memory_read(&m, (struct jtext){p, n});
	if (err == MV_OK)
		memory_adopt(u, &m);
	for (unsigned k = 0; k < LIST_MAX; k++)
		ulist_fini(&m.lists[k]);
	buf_fini(&m.instructions);
	if (err == MV_OK && upstream_lists_are_known(u))
		upstream_settle(u);
	return err;
}

/* ---- telling ---- */

static uint64_t
memory_hash(const struct upstream *u)
{
	const char *text = u->instructions != NULL ? u->instructions : "";
	uint64_t h = HASH_STABLE_SEED;

	h = hash_stable(h, &u->known_era, sizeof(u->known_era));
	h = hash_stable(h, &u->known_transport, sizeof(u->known_transport));
	h = hash_stable(h, &u->asks, sizeof(u->asks));
	h = hash_stable(h, &u->revision, sizeof(u->revision));
	h = hash_stable(h, &u->caps, sizeof(u->caps)); /* bytes of truth, no gaps */
	h = hash_stable(h, text, strlen(text) + 1);
	for (unsigned k = 0; k < LIST_MAX; k++) {
		const struct ulist *l = &u->lists[k];
		bool flags[] = {memory_has_list(u, k), l->is_private};

		h = hash_stable(h, flags, sizeof(flags));
		h = hash_stable(h, &l->n, sizeof(l->n));
		h = hash_stable(h, &l->hash, sizeof(l->hash));
	}
	return h;
}

static bool
memory_is_listing(const struct upstream *u)
{
	for (unsigned k = 0; k < LIST_MAX; k++)
		if (u->listers[k].running)
			return true;
	return false;
}

static void
memory_tell(struct upstream *u)
{
	uint64_t hash = memory_hash(u);

	if (u->has_told && u->told_hash == hash)
		return;
	u->has_told = true;
	u->told_hash = hash;
	u->cb->on_memory(u->arg, u);
}

static void
on_memory_timer(void *arg)
{
	struct upstream *u = arg;

	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC);
	/* Lists that are on their way end a burst later. */
	if (!memory_is_listing(u))
		memory_tell(u);
}

void
upstream_memory_touch(struct upstream *u)
{
	if (u->cb->on_memory != NULL && !u->stopping && u->has_memory &&
	    !timer_is_set(&u->memory_timer))
		timer_set(&u->memory_timer, MEMORY_MS);
}

void
upstream_memory_flush(struct upstream *u)
{
	if (!timer_is_set(&u->memory_timer) &&
	    (u->cb->on_memory == NULL || !memory_is_listing(u)))
		return;
	timer_clear(&u->memory_timer);
	memory_tell(u);
}

void
upstream_memory_init(struct upstream *u)
{
	timer_init(&u->memory_timer, u->loop, on_memory_timer, u);
}

void
upstream_memory_fini(struct upstream *u)
{
	timer_fini(&u->memory_timer);
}
