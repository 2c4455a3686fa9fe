/* SPDX-License-Identifier: MIT */
/*
 * A catalog over fake upstreams, without a gateway. A reload makes everything anew and
 * frees what was before, so that a pointer kept too long is found.
 */
#ifndef FAKE_RIG_H
#define FAKE_RIG_H

#include "mcpvisor/catalog.h"

#include "fake/fake_upstream.h"

#include <string.h>

#define RIG_MAX 6

/* What one conf says; the rig's once given to rig_new or rig_reload. */
struct rig_conf {
	struct upstream_conf *confs[RIG_MAX];
	struct upstream *u[RIG_MAX];
	size_t n;
	struct profile_conf *profiles[CATALOG_VIEWS_MAX];
	size_t n_profiles, name_bytes;
};

struct rig {
	struct loop *loop;
	struct rig_conf *conf;
	struct catalog *c;
};

static inline struct jtext
text_of(const char *s)
{
	return (struct jtext){s, strlen(s)};
}

/* Words separated by spaces, as a filter has them; NULL stays NULL. */
char **rig_words(const char *s);

/* Either may be NULL. */
struct filter rig_filter(const char *allow, const char *deny);

struct rig_conf *rig_conf_new(void);
/* prefix NULL: the default. */
struct upstream_conf *rig_upstream(
    struct rig_conf *c, const char *name, const char *prefix);
/* upstreams NULL: all of them. */
struct profile_conf *rig_profile(
    struct rig_conf *c, const char *name, const char *upstreams);
/* Says that a tool is seen otherwise: its shape, whose texts are the caller's to set. */
struct tool_shape *rig_shape(struct upstream_conf *conf, const char *tool);

/* Takes c. No upstream has a list yet. */
struct rig *rig_new(struct rig_conf *c);
/* catalog_set; takes c. fill gives the new upstreams (r->conf) the lists that they have
 * by then. */
void rig_reload(struct rig *r, struct rig_conf *c, void (*fill)(struct rig *r));
void rig_free(struct rig *r);

/* The list of upstream i is the items that text names, separated by spaces, each
 * {"name":"x"} or with the key of its kind. */
void rig_list(struct rig *r, size_t i, enum list_kind kind, const char *names);

void rig_assert_text(struct jtext t, const char *want);
void rig_assert_body(struct rig *r, unsigned view, enum list_kind kind, const char *want);
/* The names or URIs of a body, separated by spaces. */
void rig_assert_names(
    struct rig *r, unsigned view, enum list_kind kind, const char *want);
struct route *rig_find(
    struct rig *r, unsigned view, enum list_kind kind, const char *name);
/* "alpha": who has it in that view; "nobody". */
void rig_assert_owner(struct rig *r, unsigned view, enum list_kind kind, const char *name,
    const char *want);

#endif
