/* SPDX-License-Identifier: MIT */
/* Shared by the parts of the import. */
#ifndef MCPVISOR_IMPORT_PRIV_H
#define MCPVISOR_IMPORT_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "import_text_priv.h"

#include "mcpvisor/import.h"

#include <jansson.h>

/* Turns JSON with comments and trailing commas into JSON, in place: what is no JSON
 * becomes white space, so that lines and columns stay. MV_SYNTAX with *line set for a
 * comment that does not end. */
enum mv_err jsonc_blank(char *p, size_t n, int *line) MCPVISOR_MUST_CHECK;

/* One parse under way. */
struct import_ctx {
	const char *file;
	struct expand_env env; /* relative files start at the folder of file */
	struct import_result *r;
};

/* One entry of the file: the tree that is read, and the text, which still knows how a
 * number was written. */
struct import_entry {
	const char *name;
	int line;
	json_t *tree;
	struct import_text text;
};

void import_warn(struct import_ctx *x, const struct import_entry *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* NULL: the entry is switched off and was left out with a warning. */
struct upstream_conf *import_entry_read(
    struct import_ctx *x, const struct import_entry *e);

/* Sets broken, unless an earlier fault is there already. Returns false. */
bool import_break(struct upstream_conf *c, enum mv_err err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A member that is there: null counts as absent. */
json_t *import_entry_get(const struct import_entry *e, const char *member);
/* Expands text of the member field; NULL with c broken. secret: see expand_text. */
char *import_entry_expand(struct import_ctx *x, struct upstream_conf *c,
    const char *field, const char *text, bool *secret);
/* Puts a value of an entry among those that are not to be shown. */
void import_add_secret(struct import_ctx *x, const char *value);
/* The environment; false when c was broken. */
bool import_entry_read_env(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c);
/* The client's lists of tools, as filters. */
void import_entry_read_tools(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c);
/* A name of the entry: a relative one starts at the folder of the file. */
char *import_entry_path(const struct import_ctx *x, const char *name);
/* Whether the entry is of a remote server; false as well when c was broken. */
bool import_entry_is_remote(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c);
/* Its URL and headers; false when c was broken. */
bool import_entry_read_remote(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c);
/* The member "mcpvisor" of an entry; false when c was broken. */
bool import_options_read(struct import_ctx *x, struct upstream_conf *c, json_t *options);

#endif
