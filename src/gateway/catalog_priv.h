/* SPDX-License-Identifier: MIT */
/* What the files of the catalog share. */
#ifndef MCPVISOR_CATALOG_PRIV_H
#define MCPVISOR_CATALOG_PRIV_H

#include "mcpvisor/caps.h"
#include "mcpvisor/catalog.h"
#include "mcpvisor/idmap.h"
#include "mcpvisor/naming.h"

/* A merged list must fit into what may wait for a client, with some room for others. */
#define CATALOG_BODY_MAX (CAP_OUT_BYTES - 1024u * 1024)

/* What one profile shows of a merged list; built when somebody looks. */
struct catalog_view {
	struct buf body;
	uint64_t hash;
	unsigned generation; /* of the merge that body shows; 0: of none */
};

struct merged {
	unsigned generation;
	bool dirty;
	/* Routes of this generation in the order of the list. by_published has the
	 * references. */
	struct route **live;
	size_t n_live, cap_live, n_twins;
	struct strmap *by_published; /* earlier ones too: one reference each */
	struct strmap *by_owner;     /* of names: upstream, NUL, original: the same */
	struct catalog_view views[CATALOG_VIEWS_MAX];
};

struct catalog {
	struct catalog_opts o;
	unsigned n_views;
	struct merged kinds[LIST_MAX];
	struct buf name, key, original; /* scratch */
	struct buf shown;		/* of catalog_definition */
};

/* One upstream's list on its way into the merged one. */
struct merge {
	struct catalog *c;
	struct merged *m;
	enum list_kind kind;
	struct upstream *u;
	const struct upstream_conf *conf;
	const struct filter *own; /* NULL: everything */
	uint32_t shows;		  /* views that show u */
	uint32_t filtered;	  /* those of them that look at each item */
	struct jtext annotations; /* of the item, for filters */
};
void merge_init(
    struct merge *g, struct catalog *c, enum list_kind kind, struct upstream *u);
/* Leaves the item's name, decoded, in c->original. False: it has none that we can use, or
 * its upstream's own filter hides it. */
bool merge_wants(struct merge *g, struct jtext name, struct jtext definition);
/* Of the item in c->original. */
const struct tool_shape *merge_shape(const struct merge *g);
/* Appends the name that it gets in that form. */
void merge_put_name(const struct merge *g, const struct tool_shape *shape,
    enum naming_form form, size_t budget, struct buf *out);
/* The route that the item has had as a name, or NULL. Leaves its key in c->key. */
struct route *merge_known_name(const struct merge *g);
/* Its published URI: in c->name, or as it is. */
struct jtext merge_uri(const struct merge *g);

/* Puts one item where it goes. False: it cannot be published, or not to all. */
bool merge_item(const struct merge *g, uint32_t i);
/* Those that are not of the last generation leave. */
void merged_drop_stale(struct merged *m);
/* Names that their owners still offer, and would still get, stay with them. */
void catalog_claim_names(struct catalog *c, enum list_kind kind);

static inline bool
kind_is_named(enum list_kind kind)
{
	return kind == LIST_TOOLS || kind == LIST_PROMPTS;
}

static inline const struct profile_conf *
catalog_profile(const struct catalog *c, unsigned view)
{
	return view < c->o.n_profiles ? c->o.profiles[view] : NULL;
}

static inline bool
route_is_shown(const struct route *r, const struct merged *m, unsigned view)
{
	return r->generation == m->generation && (r->views >> view & 1);
}

/* The merged list, merged anew if it has to be. */
struct merged *catalog_look(struct catalog *c, enum list_kind kind);

/* NULL: lets everything through. */
const struct filter *catalog_conf_filter(
    const struct upstream_conf *conf, enum list_kind kind);
const struct filter *catalog_profile_filter(
    const struct profile_conf *p, enum list_kind kind);
/* Of g->shows, the views that show an item by its published name. */
uint32_t catalog_views_of(const struct merge *g, struct jtext published);

#endif
