/* SPDX-License-Identifier: MIT */
/* What the files about programs as tools share: kinds exec and shell. */
#ifndef MCPVISOR_UPSTREAM_EXEC_PRIV_H
#define MCPVISOR_UPSTREAM_EXEC_PRIV_H

#include "upstream_local_priv.h"

#include "mcpvisor/run.h"

#define EXEC_RPC_INTERNAL (-32603)

/* ---- exec_path.c ---- */

/* Appends the absolute path of what is at path, relative to root, if that is below root
 * whatever links are on the way. NULL; or what is wrong with it, as "must ...". */
const char *exec_path_resolve(const char *root, const char *path, struct buf *out);
/* Component by component, where the kernel has no look-up that stays below: no link is
 * followed then, and there is no way up. A descriptor; -1: errno. */
int exec_path_walk(int root, const char *path);

/* ---- exec_args.c ---- */

#define EXEC_WORD_MAX 131071 /* the kernel's limit for one word of a command line */

/* What a program is given. */
struct exec_line {
	struct buf words; /* each with a NUL after it; the program's own name is none */
	size_t n_words;
	enum run_input input_to;
	struct jtext input; /* in own, or in what the arguments are in */
	struct buf own;
};
void exec_line_init(struct exec_line *l);
void exec_line_fini(struct exec_line *l);
/* Fills l, which borrows from arguments (an object, or absent). MV_PARAMS: they are
 * refused, and why says it to whoever calls; MV_NOMEM. */
enum mv_err exec_line_make(struct exec_line *l, const struct exec_tool *t,
    struct jtext arguments, struct buf *why) MCPVISOR_MUST_CHECK;
/* NULL-terminated, into l; freed with mem_free. */
const char **exec_line_argv(const struct exec_line *l, const char *command);

/* ---- exec_result.c ---- */

/* By which the end of a program is an answer. */
struct exec_rules {
	const char *tool; /* its name */
	enum exec_output output;
	const char *mime;
	const int *success; /* NULL: 0 */
	size_t n_success;
	struct exec_limits limits; /* nothing is inherited */
	bool has_effects;	   /* it is not read-only */
};
/* Appends the result; of any end but RUN_NOT_STARTED. */
void exec_result_put(
    struct buf *out, const struct exec_rules *r, const struct run_end *e);
/* Makes spaces of the line ends in a JSON text that is well-formed, where they are white
 * space between tokens: some clients read a message a line. */
void exec_flatten(char *p, size_t n);

/* ---- exec_run.c ---- */

/* What the programs of one upstream have in common. */
struct exec_host {
	struct upstream *u;
	struct spawner *spawner;
	struct spawn_user user;
	gid_t *groups;
	bool has_user;
};
void exec_host_init(
    struct exec_host *h, struct upstream *u, const struct upstream_env *env);
void exec_host_fini(struct exec_host *h);
/* Finds its user. MV_OK, or it cannot run, and u was told so. */
enum mv_err exec_host_start(struct exec_host *h) MCPVISOR_MUST_CHECK;
struct exec_limits exec_limits_of(
    const struct exec_conf *c, const struct exec_limits *own /* or NULL */);
/* As run_start; line is used no more when it returns. NULL: the log says why. */
struct run *exec_host_run(struct exec_host *h, const struct exec_line *line,
    const char *command, const struct exec_limits *l,
    void (*on_end)(void *arg, const struct run_end *e), void *arg);
/* Says in the log what a program wrote to stderr. */
void exec_host_log_stderr(const struct exec_host *h, const struct run_end *e);
/* Appends the decoded name of c's tool, NUL-terminated. */
const char *exec_tool_name(const struct local_call *c, struct buf *text);
void exec_reply_not_started(struct local_call *c);

/* ---- exec_queue.c ---- */

/* A call that waits for its turn, or runs; or what is left of one that was cancelled. */
struct exec_job {
	unsigned magic;
	struct exec_pool *pool;
	struct local_call *call; /* NULL: nobody waits for it, its program is ending */
	struct exec_job *next;	 /* of those that wait, or of those that are ending */
	struct run *run;	 /* NULL: it waits */
	struct exec_line line;	 /* until it runs */
};

/* What a kind says of its jobs. */
struct exec_pool_ops {
	/* Its turn has come: what is run, and how. May still make its line. False: it
	 * was answered instead. */
	bool (*begin)(void *arg, struct exec_job *j, const char **command,
	    struct exec_limits *limits);
	/* Answers j->call; not for RUN_NOT_STARTED. */
	void (*end)(void *arg, struct exec_job *j, const struct run_end *e);
};

/* Calls of one upstream: some run, others wait, in the order in which they came. */
struct exec_pool {
	unsigned magic;
	struct exec_host *host;
	const struct exec_pool_ops *ops;
	void *arg;
	struct exec_job *first, **tail; /* that wait */
	struct exec_job *ending;	/* without a call; they have places */
	uint32_t n_running, n_waiting;
	struct deferred next;
	bool stopped;
};
void exec_pool_init(
    struct exec_pool *p, struct exec_host *h, const struct exec_pool_ops *ops, void *arg);
void exec_pool_fini(struct exec_pool *p); /* it has no call */
void exec_pool_start(struct exec_pool *p);
void exec_pool_stop(struct exec_pool *p); /* nothing is started from now on */
/* Takes line; c is answered sooner or later, maybe at once. */
void exec_pool_add(struct exec_pool *p, struct local_call *c, struct exec_line *line);
void exec_pool_cancel(struct exec_pool *p, struct local_call *c);
/* Answers j->call by what its program has come to. */
void exec_job_answer(
    struct exec_job *j, const struct exec_rules *r, const struct run_end *e);

/* ---- shell_set.c ---- */

/* Which file it was, and in which state; all 0: none. */
struct shell_id {
	uint64_t dev, ino, size;
	int64_t s, ns;
};
void shell_id_of(const char *path, struct shell_id *id);
static inline bool
shell_id_is_same(const struct shell_id *a, const struct shell_id *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->s == b->s && a->ns == b->ns;
}

struct shell_tool {
	struct jtext name, text; /* a JSON string; its definition */
	struct tool_hints hints;
	bool has_function;
};
/* What the two files of a shell upstream say. */
struct shell_set {
	struct shell_id file_id, tools_id;
	struct buf file, tools; /* their bytes; tools without line ends */
	struct shell_tool *v;
	size_t n;
};
/* Reads both. NULL: t says why. */
struct shell_set *shell_set_read(const struct exec_conf *c, struct mv_errtext *t);
void shell_set_free(struct shell_set *s); /* NULL is allowed */
/* Takes what the interpreter lists, by "declare -F" and a line SHELL_LOADED after it.
 * False: it is not all there. */
#define SHELL_LOADED "mcpvisor: loaded"
bool shell_set_take_functions(struct shell_set *s, const char *p, size_t n);
const struct shell_tool *shell_set_find(const struct shell_set *s, struct jtext name);
/* Appends the definitions of those that have a function, as the conf changes them. */
void shell_set_put(const struct shell_set *s, const struct upstream *u, struct buf *out);

#endif
