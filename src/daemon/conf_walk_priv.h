/* SPDX-License-Identifier: MIT */
/* The walk over the values of a snapshot, for conf_dump and conf_diff. */
#ifndef MCPVISOR_CONF_WALK_PRIV_H
#define MCPVISOR_CONF_WALK_PRIV_H

#include "conf_rows_priv.h"

#include "mcpvisor/buf.h"

/* All values of a snapshot, in the order of the table. */
struct conf_item {
	const struct conf_row *row;
	const char *path;
	const char *shown, *real; /* NULL: an object begins or, with end, ends */
	bool is_default, end;
};
struct conf_walk {
	const struct conf *c;
	const void *at[CONF_WHERE_MAX];
	struct buf path, shown, real;
	void (*fn)(void *arg, const struct conf_item *item);
	void *arg;
	bool lost; /* memory was short, and something was not said */
};
#define CONF_WALK_LOST "(out of memory: this is not all)\n"
/* False: something is missing for lack of memory. */
bool conf_walk_all(
    const struct conf *c, void (*fn)(void *arg, const struct conf_item *item), void *arg);
size_t conf_walk_push(struct conf_walk *w, const char *part);
void conf_walk_pop(struct conf_walk *w, size_t len);
/* Says that an object, whose label was pushed, begins or ends. */
void conf_walk_object(struct conf_walk *w, const struct conf_row *r, bool end);
/* Says what shown and real hold; then empties them. */
void conf_walk_value(struct conf_walk *w, const struct conf_row *r);
void conf_walk_rows(struct conf_walk *w, enum conf_where scope);
void conf_each_listen(struct conf_walk *w, const struct conf_row *r, const void *member);
void conf_each_upstream(
    struct conf_walk *w, const struct conf_row *r, const void *member);
void conf_each_profile(struct conf_walk *w, const struct conf_row *r, const void *member);
void conf_each_tool(struct conf_walk *w, const struct conf_row *r, const void *member);
void conf_each_env(struct conf_walk *w, const struct conf_row *r, const void *member);
void conf_each_header(struct conf_walk *w, const struct conf_row *r, const void *member);
void conf_each_param(struct conf_walk *w, const struct conf_row *r, const void *member);
void conf_each_level(struct conf_walk *w, const struct conf_row *r, const void *member);

#endif
