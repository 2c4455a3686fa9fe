/* SPDX-License-Identifier: MIT */
/*
 * Lists as their upstream sent them.
 *
 * Owns: the copied bytes and the item table.
 * Driven by: the lister (upstream_list.c), page by page.
 * Invariants: items lie in bytes in order; bounds of caps.h hold for the sum of
 * all pages.
 */
#include "mcpvisor/ulist.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/mem.h"

#include <string.h>
#include <strings.h>

#define HASH_STEP 0x9e3779b97f4a7c15ULL /* odd, so that no two words become one */

static const struct {
	enum method method, changed;
	const char *member, *key;
} kinds[LIST_MAX] = {
#define X(id, m, mem, k, cap, chg) [LIST_##id] = {METHOD_##m, METHOD_##chg, mem, k},
    LIST_KINDS(X)
#undef X
};

enum method
list_method(enum list_kind k)
{
	return kinds[k].method;
}

const char *
list_member(enum list_kind k)
{
	return kinds[k].member;
}

const char *
list_key(enum list_kind k)
{
	return kinds[k].key;
}

enum method
list_changed_method(enum list_kind k)
{
	return kinds[k].changed;
}

enum list_kind
list_kind_of(enum method m)
{
	unsigned k = 0;

	while (k < LIST_MAX && kinds[k].method != m)
		k++;
	return (enum list_kind)k;
}

void
ulist_init(struct ulist *l, enum list_kind kind)
{
	*l = (struct ulist){.kind = kind, .ttl_ms = -1, .hash = HASH_STABLE_SEED};
	buf_init(&l->bytes, CAP_LIST_BYTES);
}

void
ulist_fini(struct ulist *l)
{
	buf_fini(&l->bytes);
	mem_free(l->items);
	ulist_init(l, l->kind);
}

/* Equal but for the case of letters. Keys of ours have no letter with a third form. */
static bool
key_is_like(struct jtext key, const char *wanted)
{
	size_t n = strlen(wanted);
	struct buf text;
	bool is;

	if (memchr(key.p, '\\', key.n) == NULL)
		return key.n == n + 2 && strncasecmp(key.p + 1, wanted, n) == 0;
	buf_init(&text, key.n);
	is = json_string_decode(key, &text) && text.err == MV_OK && text.len == n &&
	     strncasecmp(text.data, wanted, n) == 0;
	buf_fini(&text);
	return is;
}

/* The name that a definition goes by. Absent if there is none, or a second one that some
 * clients would take instead of the one that we replace. */
static struct jtext
def_name(struct jtext def, const char *wanted)
{
	struct jtext key, value, name = {NULL, 0}, none = {NULL, 0};
	struct json_iter it;

	if (jtext_type(def) != '{')
		return none;
	json_iter_init(&it, def);
	while (json_next_member(&it, &key, &value)) {
		if (!key_is_like(key, wanted))
			continue;
		if (name.n != 0 || !json_string_is(key, wanted))
			return none;
		name = value;
	}
	return name;
}

/* No message may have a raw line break, and a definition goes into those of clients as it
 * is. In JSON it is white space, as is what takes its place. */
static void
def_flatten(char *p, size_t n)
{
	const char breaks[] = {'\n', '\r'};

	for (size_t i = 0; i < sizeof(breaks); i++) {
		char *at = p, *end = p + n;

		while ((at = memchr(at, breaks[i], (size_t)(end - at))) != NULL)
			*at++ = ' ';
	}
}

uint64_t
ulist_hash(uint64_t h, const char *p, size_t n)
{
	uint64_t word;

	for (; n >= sizeof(word); p += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = (h ^ word) * HASH_STEP;
		h ^= h >> 32;
	}
	return hash_stable(h, p, n);
}

static enum mv_err
ulist_add_item(struct ulist *l, struct jtext def, struct jtext name)
{
	struct ulist_item *it;

	if (l->n >= CAP_LIST_ITEMS)
		return MV_TOO_LONG;
	if (l->n == l->cap) {
		uint32_t cap = l->cap ? l->cap * 2 : 16;

		it = mem_try_realloc(l->items, cap * sizeof(*it));
		if (it == NULL)
			return MV_NOMEM;
		l->items = it;
		l->cap = cap;
	}
	it = &l->items[l->n];
	it->off = (uint32_t)l->bytes.len;
	it->len = (uint32_t)def.n;
	it->name_off = it->off + (uint32_t)(name.p - def.p);
	it->name_len = (uint32_t)name.n;
	json_put(&l->bytes, def);
	if (l->bytes.err != MV_OK)
		return l->bytes.err;
	def_flatten(l->bytes.data + it->off, def.n);
	l->hash = ulist_hash(l->hash, l->bytes.data + it->off, def.n);
	l->n++;
	return MV_OK;
}

enum mv_err
ulist_add_def(struct ulist *l, struct jtext def)
{
	struct jtext name = def_name(def, list_key(l->kind));

	/* An empty name or one too long to route by cannot be called. */
	if (jtext_type(name) != '"' || name.n <= 2 || name.n > CAP_URI_BYTES)
		return MV_PROTOCOL;
	return ulist_add_item(l, def, name);
}

/* The members of a page that count, found in one walk: a page may be megabytes. */
struct page {
	struct jtext array, cursor, ttl, scope;
};

static void
page_read(struct page *p, struct jtext result, const char *member)
{
	const struct {
		const char *key;
		struct jtext *to;
	} wanted[] = {{member, &p->array}, {"nextCursor", &p->cursor}, {"ttlMs", &p->ttl},
	    {"cacheScope", &p->scope}};
	struct json_iter it;
	struct jtext key, value;

	*p = (struct page){.array = {NULL, 0}};
	if (jtext_type(result) != '{')
		return;
	json_iter_init(&it, result);
	while (json_next_member(&it, &key, &value))
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
			if (wanted[i].to->n == 0 && json_string_is(key, wanted[i].key))
				*wanted[i].to = value;
}

static void
ulist_note_hints(struct ulist *l, const struct page *p)
{
	int64_t ttl;

	/* A page without hints is as good as stale and nobody else's. */
	if (!json_int(p->ttl, &ttl))
		ttl = -1;
	else if (ttl < 0)
		ttl = 0;
	if (l->pages == 0 || ttl < l->ttl_ms)
		l->ttl_ms = ttl;
	if (!json_string_is(p->scope, "public"))
		l->is_private = true;
}

enum mv_err
ulist_add_page(
    struct ulist *l, struct jtext result, struct jtext *cursor, unsigned *skipped)
{
	struct json_iter it;
	struct jtext def;
	struct page p;
	enum mv_err err = MV_OK;

	*skipped = 0;
	*cursor = (struct jtext){NULL, 0};
	page_read(&p, result, list_member(l->kind));
	if (jtext_type(p.array) != '[')
		return MV_PROTOCOL;
	if (l->pages >= CAP_LIST_PAGES)
		return MV_TOO_LONG;
	ulist_note_hints(l, &p);
	json_iter_init(&it, p.array);
	while (err == MV_OK && json_next_element(&it, &def)) {
		err = ulist_add_def(l, def);
		if (err == MV_PROTOCOL) {
			++*skipped;
			err = MV_OK;
		}
	}
	l->pages++;
	if (err == MV_OK && jtext_type(p.cursor) == '"')
		*cursor = p.cursor;
	return err;
}
