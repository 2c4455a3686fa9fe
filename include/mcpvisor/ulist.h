/* SPDX-License-Identifier: MIT */
/*
 * A list as one upstream gave it: each definition's bytes as they came, and where
 * its name is. Pages are added one by one; nothing is rebuilt.
 */
#ifndef MCPVISOR_ULIST_H
#define MCPVISOR_ULIST_H

#include <stdbool.h>
#include <stdint.h>

#include "mcpvisor/json.h"
#include "mcpvisor/method.h"

/* X(KIND, list method, member of the result, key of an item, capability,
 *   list_changed notification) */
#define LIST_KINDS(X)                                                                    \
	X(TOOLS, TOOLS_LIST, "tools", "name", "tools", N_TOOLS_CHANGED)                  \
	X(PROMPTS, PROMPTS_LIST, "prompts", "name", "prompts", N_PROMPTS_CHANGED)        \
	X(RESOURCES, RESOURCES_LIST, "resources", "uri", "resources",                    \
	    N_RESOURCES_CHANGED)                                                         \
	X(TEMPLATES, TEMPLATES_LIST, "resourceTemplates", "uriTemplate", "resources",    \
	    N_RESOURCES_CHANGED)

enum list_kind {
#define X(id, method, member, key, cap, changed) LIST_##id,
	LIST_KINDS(X)
#undef X
	    LIST_MAX
};

enum method list_method(enum list_kind k);
const char *list_member(enum list_kind k);
const char *list_key(enum list_kind k);
enum method list_changed_method(enum list_kind k);
/* LIST_MAX: m lists nothing. */
enum list_kind list_kind_of(enum method m);

struct ulist_item {
	uint32_t off, len;	     /* the definition in bytes */
	uint32_t name_off, name_len; /* its name or URI, quotes included, in bytes */
};

struct ulist {
	enum list_kind kind;
	struct buf bytes; /* definitions, one after another */
	struct ulist_item *items;
	uint32_t n, cap;
	uint32_t pages;
	uint64_t hash; /* of all bytes, by ulist_hash */
	uint64_t fetched_ms;
	int64_t ttl_ms;	 /* smallest of the pages; -1: none was given */
	bool is_private; /* any page said so, or one said nothing */
	bool is_known;	 /* fetched whole at least once */
};

/* Takes n more bytes into h, for lists of megabytes: eight bytes at a time. Only compared
 * within a process. */
uint64_t ulist_hash(uint64_t h, const char *p, size_t n);

void ulist_init(struct ulist *l, enum list_kind kind);
void ulist_fini(struct ulist *l);
/* Takes one page's result object. Entries that are no object or have no usable name
 * are skipped and counted in *skipped. *cursor is nextCursor's text (absent: the
 * end). MV_PROTOCOL: the result has no such array; MV_TOO_LONG: over a bound;
 * MV_NOMEM. */
enum mv_err ulist_add_page(struct ulist *l, struct jtext result, struct jtext *cursor,
    unsigned *skipped) MCPVISOR_MUST_CHECK;
/* Takes one definition. MV_PROTOCOL: it has no usable name; MV_TOO_LONG, MV_NOMEM. */
enum mv_err ulist_add_def(struct ulist *l, struct jtext def) MCPVISOR_MUST_CHECK;

static inline struct jtext
ulist_def(const struct ulist *l, uint32_t i)
{
	struct jtext t = {l->bytes.data + l->items[i].off, l->items[i].len};
	return t;
}
static inline struct jtext
ulist_name(const struct ulist *l, uint32_t i)
{
	struct jtext t = {l->bytes.data + l->items[i].name_off, l->items[i].name_len};
	return t;
}

#endif
