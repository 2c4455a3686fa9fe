/* SPDX-License-Identifier: MIT */
/* The rows of the table of options, and their types. */
#ifndef MCPVISOR_CONF_ROWS_PRIV_H
#define MCPVISOR_CONF_ROWS_PRIV_H

#include "option_table.h"

#include "mcpvisor/conf.h"

#include <libconfig.h>

/* Where a row's member is. UPSTREAM, EXTRA and OWN are one group of the file, and so are
 * PARAM and RULE. */
enum conf_where {
	CONF_CONF,
	CONF_LISTEN,
	CONF_UPSTREAM,
	CONF_EXTRA,
	CONF_OWN,
	CONF_SHAPE,
	CONF_PARAM,
	CONF_RULE,
	CONF_PROFILE,
	CONF_WHERE_MAX
};

/* What a new value means to a running daemon. */
enum conf_reload { CONF_LIVE, CONF_CONN, CONF_RESTARTS_UPSTREAM, CONF_NEEDS_RESTART };
/* As the table abbreviates them. */
#define CONF_R_LIVE	CONF_LIVE
#define CONF_R_CONN	CONF_CONN
#define CONF_R_UPSTREAM CONF_RESTARTS_UPSTREAM
#define CONF_R_RESTART	CONF_NEEDS_RESTART

struct conf_row;
struct conf_ctx;
struct conf_walk;

/* Two texts of one value: as it may be shown, and as it is. */
struct conf_put {
	const struct conf *c;
	struct buf *shown, *real;
};

/* What rows of one type have in common. */
struct conf_type {
	const char *name;  /* for people */
	const char *label; /* in "want ..." */
	size_t size;	   /* of the member */
	/* Reads s into the member, or reports why not. */
	void (*parse)(struct conf_ctx *x, const struct conf_row *r, void *member,
	    const config_setting_t *s);
	/* Appends the value; false: there is none. Or NULL, and then each has what is
	 * below. */
	bool (*put)(struct conf_put *p, const struct conf_row *r, const void *member);
	void (*each)(struct conf_walk *w, const struct conf_row *r, const void *member);
	/* Of strings: what is wrong with s, without showing it; NULL: nothing. */
	const char *(*check)(const char *s);
	const char *const *names; /* of an enum, NULL-terminated */
	unsigned per_unit;	  /* of a duration: milliseconds */
};

#define CONF_TYPES(X)                                                                    \
	X(BOOL)                                                                          \
	X(INT)                                                                           \
	X(MS)                                                                            \
	X(SECONDS)                                                                       \
	X(SIZE)                                                                          \
	X(MODE)                                                                          \
	X(LOG_LEVEL)                                                                     \
	X(LOG_FORMAT)                                                                    \
	X(ERA)                                                                           \
	X(ISOLATION)                                                                     \
	X(START)                                                                         \
	X(FAILURE)                                                                       \
	X(TRANSPORT)                                                                     \
	X(ROOTS)                                                                         \
	X(VERIFY)                                                                        \
	X(STRING)                                                                        \
	X(PATH)                                                                          \
	X(FILE)                                                                          \
	X(URL)                                                                           \
	X(PROXY)                                                                         \
	X(NAME)                                                                          \
	X(ADDRESS)                                                                       \
	X(HTTP_PATH)                                                                     \
	X(PREFIX)                                                                        \
	X(URI_PREFIX)                                                                    \
	X(COMMAND)                                                                       \
	X(STRINGS)                                                                       \
	X(PATHS)                                                                         \
	X(GLOBS)                                                                         \
	X(PATTERNS)                                                                      \
	X(ARGS)                                                                          \
	X(LEVELS)                                                                        \
	X(ENV)                                                                           \
	X(HEADERS)                                                                       \
	X(RENAME)                                                                        \
	X(JSON)                                                                          \
	X(LISTENS)                                                                       \
	X(TOOLS)                                                                         \
	X(DEFAULTS)                                                                      \
	X(UPSTREAMS)                                                                     \
	X(KIND)                                                                          \
	X(GRAPHQL)                                                                       \
	X(SURVIVAL)                                                                      \
	X(ANNOTATE)                                                                      \
	X(POINTER)                                                                       \
	X(RULES)                                                                         \
	X(IDENTITY)                                                                      \
	X(REGEXES)                                                                       \
	X(SCHEMA)                                                                        \
	X(MUTATIONS)                                                                     \
	X(EXECUTE)                                                                       \
	X(NAMES)                                                                         \
	X(PROGRAM)                                                                       \
	X(USER)                                                                          \
	X(EXEC_ERR)                                                                      \
	X(EXEC_OVER)                                                                     \
	X(EXEC_OUT)                                                                      \
	X(HINT)                                                                          \
	X(TEMPLATE)                                                                      \
	X(STATUSES)                                                                      \
	X(INPUT)                                                                         \
	X(MIME)                                                                          \
	X(SCHEMA_FILE)                                                                   \
	X(PARAMS)                                                                        \
	X(PARAM_TYPE)                                                                    \
	X(VALUE)                                                                         \
	X(NUMBER)                                                                        \
	X(REGEX)                                                                         \
	X(WORDS)                                                                         \
	X(PROFILES)
enum conf_type_id {
#define X(id) CONF_TY_##id,
	CONF_TYPES(X)
#undef X
	    CONF_TY_MAX
};
extern const struct conf_type conf_types[CONF_TY_MAX];

#define CONF_NAME_MAX 128 /* of an upstream, profile, tool */

struct conf_row {
	enum conf_where where;
	enum conf_type_id type;
	const char *key; /* within its group: "tools.allow" */
	size_t offset, size;
	uint64_t lo, hi;
	const char *dflt;
	enum conf_reload reload;
	unsigned flags;
	const char *doc;
};
extern const struct conf_row conf_rows[];
extern const size_t conf_n_rows;

static inline const struct conf_type *
conf_type_of(const struct conf_row *r)
{
	return &conf_types[r->type];
}
enum conf_where conf_scope_of(const struct conf_row *r); /* the group that it is in */
/* Rows of a group lie together: [first, end). */
void conf_scope_range(enum conf_where scope, size_t *first, size_t *end);
/* What a row's path begins with: "", "listen.[].", "upstream.*.". */
const char *conf_scope_prefix(enum conf_where scope);
const struct conf_row *conf_row_find(enum conf_where scope, const char *key);
/* Whether keys of the group go on behind this one and a dot. */
bool conf_is_section(enum conf_where scope, const char *key);
/* The key of the group that key is most likely meant to be; NULL: none is near. */
const char *conf_row_nearest(enum conf_where scope, const char *key);
/* What upstreams have an option with these flags: "http or graphql"; "": all have. */
#define CONF_KINDS_BYTES 64
const char *conf_kinds_text(unsigned flags, char text[CONF_KINDS_BYTES]);
/* Sets the members of one struct to the defaults of the table. */
void conf_set_defaults(enum conf_where where, void *base);

#endif
