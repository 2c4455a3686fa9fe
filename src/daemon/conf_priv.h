/* SPDX-License-Identifier: MIT */
/*
 * Shared by the parts of the conf. A parse goes through conf_ctx; what is read lies in
 * the structs of conf_ctx.at, which the rows of the table point into.
 */
#ifndef MCPVISOR_CONF_PRIV_H
#define MCPVISOR_CONF_PRIV_H

#include "conf_rows_priv.h"
#include "conf_walk_priv.h"

#include "mcpvisor/conf.h"
#include "mcpvisor/expand.h"

#include <libconfig.h>

/* A tool's shape before rows about the same tool are merged. */
struct conf_shape_row {
	struct tool_shape s;
	int line;
	unsigned order;
	bool is_rename; /* of tools.rename, not of tool */
};

/* What the file says of an upstream beyond upstream_conf. */
struct conf_extra {
	char *name, *env_file;
	char **env_pass;
	struct conf_shape_row *rows; /* NULL once they are merged */
	size_t n_rows;
	char *file; /* of its group; line 0: none is known */
	int line;
	bool imported;
};

struct conf_more {
	struct conf_extra **extras; /* of the upstreams, one each */
	/* Values of the snapshot that came from somewhere else than the file, by
	 * address; sorted once the snapshot is whole. */
	const char **marks;
	size_t n_marks;
};
bool conf_is_marked(const struct conf *c, const char *value);
void conf_mark(struct conf *c, const char *value);
void conf_unmark(struct conf *c, const char *value); /* before it is freed */
void conf_sort_marks(struct conf *c);

struct conf_found {
	unsigned file_no, order;
	int line;
	char *text;
};

/* One load under way. */
struct conf_ctx {
	struct conf *c;
	struct expand_env env; /* dir: of the file that is being read */
	const char *main_file, *main_dir;
	const char *file;
	unsigned file_no, n_files;
	struct conf_found *found;
	size_t n_found, n_more;
	char path[400]; /* of the setting that is being read */
	size_t path_len;
	void *at[CONF_WHERE_MAX];
	const config_setting_t *root, *defaults;
	const char *mcp_json; /* after those of mcp_servers; NULL: none */
	int *listen_lines;
	/* Errors are not recorded: they have been already. */
	bool quiet;
	/* An unset variable leaves the text as it is: of what is not enabled. */
	bool lenient;
	bool in_defaults;
	/* CONF_K of the upstream that is read; 0: any option may stand. */
	unsigned kind;
	/* Members that differ from the table's default stay. */
	bool keep_set;
};

/* conf_error.c */
void conf_error(struct conf_ctx *x, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same without a path: of the file as a whole. */
void conf_file_error(struct conf_ctx *x, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void conf_want(struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s);
/* Appends a part to the path; conf_pop with what it returned takes it off. */
size_t conf_push(struct conf_ctx *x, const char *part);
size_t conf_push_index(struct conf_ctx *x, int i);
void conf_pop(struct conf_ctx *x, size_t len);
/* A name as a part of a path: quoted if it would be mistaken. */
const char *conf_label(const char *name);
const char *conf_setting_type(const config_setting_t *s);
void conf_take_errors(struct conf_ctx *x, struct conf_errors *e);

/* conf_text.c. Makes a text fit for libconfig 1.5, which ends the process or lies about
 * some: see there. Returns a copy, or NULL with the errors recorded. */
char *conf_text_prepare(struct conf_ctx *x, const char *text, size_t n);

/* conf_file.c */
char *conf_file_dir(const char *file); /* folder of a file's name, "." if it has none */
/* dir/name, or name if that is absolute. */
char *conf_file_join(const char *dir, const char *name);
/* Parses a text into cfg; false with the errors recorded. cfg is to be destroyed in
 * either case. */
bool conf_file_parse(struct conf_ctx *x, config_t *cfg, const char *text, size_t n);

/* conf_group.c */
/* Reads the members of a group by the rows of a scope. */
void conf_read_group(
    struct conf_ctx *x, enum conf_where scope, const config_setting_t *group);

/* conf_value.c, conf_list.c, conf_map.c, conf_json.c */
/* A string of a row: expanded and marked if that is the rule; NULL: reported. */
char *conf_string(
    struct conf_ctx *x, const struct conf_row *r, const config_setting_t *s);
/* Gives s a new value. */
void conf_set_string(char **slot, char *value);
void conf_strings_free(char **v);
size_t conf_strings_count(char *const *v);
void conf_put_text(struct conf_put *p, const char *s);
void conf_put_string(struct conf_put *p, const struct conf_row *r, const char *s);
/* A setting as JSON; false: reported. *secret: a string of it was expanded. */
bool conf_json_write(struct conf_ctx *x, const struct conf_row *r,
    const config_setting_t *s, struct buf *out, bool *secret);
/* Sets "K=V" in a list of such; keep: not if K is there. */
void conf_env_set(char ***v, const char *pair, bool keep);

/* Whether a string of a row is the name of a file, which may start at its folder. */
bool conf_is_path(enum conf_type_id type);

/* conf_upstream.c, conf_shape.c, conf_import.c */
void conf_read_upstream(
    struct conf_ctx *x, const char *key, const config_setting_t *group);
/* Adds to the snapshot. False: the name is taken, reported. */
bool conf_add_upstream(
    struct conf_ctx *x, struct upstream_conf *u, struct conf_extra *extra);
void conf_append_upstream(
    struct conf *c, struct upstream_conf *u, struct conf_extra *extra);
void conf_extra_free(struct conf_extra *extra);
/* Options of an upstream go there from here on. */
void conf_at_upstream(
    struct conf_ctx *x, struct upstream_conf *u, struct conf_extra *extra);
void conf_apply_defaults(struct conf_ctx *x);
/* Puts own_env together: env_file, what it has already, env_pass; a later one wins. group
 * has the lines; NULL: the extra has. */
void conf_finish_env(struct conf_ctx *x, const config_setting_t *group);
void conf_make_env(struct upstream_conf *u); /* env and path, out of own_env */
void conf_finish_shapes(struct conf_ctx *x);
/* conf_kind.c, conf_env.c, conf_tool.c, conf_template.c, conf_param.c */
/* What the upstream of x->at is: sets its kind and x->kind. */
void conf_read_kind(struct conf_ctx *x, const config_setting_t *group);
/* What upstreams of its kind must have. */
void conf_check_kind(struct conf_ctx *x, const config_setting_t *group);
/* Whether the upstream runs programs for calls, which get no environment of ours. */
bool conf_is_runner(const struct upstream_conf *u);
/* What takes several options of a tool to see. */
void conf_finish_tool(struct conf_ctx *x, const config_setting_t *group);
/* Args and stdin of a tool against its parameters. */
void conf_check_templates(
    struct conf_ctx *x, const struct exec_tool *t, const config_setting_t *group);
void conf_read_folder(struct conf_ctx *x);
void conf_read_imports(struct conf_ctx *x);
void conf_check_listens(struct conf_ctx *x);

#endif
