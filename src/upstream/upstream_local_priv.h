/* SPDX-License-Identifier: MIT */
/*
 * Upstreams that are no MCP servers: their tools are made by us, and they speak MCP
 * through the same door as a server would, so that lists, queues, limits, cancellation
 * and counters are those of any upstream.
 */
#ifndef MCPVISOR_UPSTREAM_LOCAL_PRIV_H
#define MCPVISOR_UPSTREAM_LOCAL_PRIV_H

#include "upstream_priv.h"

/* A tools/call that has no answer yet. */
struct local_call {
	struct upstream *u;
	struct local_call *next, **prev;
	uint64_t id;
	struct jtext name;	/* of the tool, a JSON string */
	struct jtext arguments; /* an object; absent: none were given */
	struct buf message;	/* what those point into */
	void *state;		/* the kind's */
};

/* A kind of them. All but init, free and call may be NULL. */
struct local_ops {
	const char *name;
	/* u->local is there; arg is the kind's own, as local_arg returns it. */
	void *(*init)(struct upstream *u, const struct upstream_env *env);
	void (*free)(void *arg); /* no call is left */
	/* It is wanted, or no more. start ends by local_up or local_down, maybe before it
	 * returns; NULL: it is up at once. After stop nothing is called but
	 * has_changed, free and start. */
	void (*start)(void *arg);
	void (*stop)(void *arg);
	/* Whether what it is made of is other than when it was started last, or than at
	 * the last time of asking. Asked while it is parked: true starts it anew. */
	bool (*has_changed)(void *arg);
	/* u->conf is another one (of the same process). */
	void (*set_conf)(void *arg);
	/* Appends the definitions of its tools, with commas between them. */
	void (*put_tools)(void *arg, struct buf *out);
	/* Appends what models should know of it all; nothing: none. */
	void (*put_instructions)(void *arg, struct buf *out);
	/* Ends by one local_reply..., not before it returns. */
	void (*call)(void *arg, struct local_call *c);
	/* Nobody waits for c any more: it is gone when this returns. */
	void (*cancel)(void *arg, struct local_call *c);
};
extern const struct local_ops local_exec, local_shell, local_graphql;

void *local_arg(const struct upstream *u);
/* It can be called. */
void local_up(struct upstream *u);
/* It cannot: its calls fail, it is started again after a pause that grows, until its
 * budget is spent. Also what a start comes to that fails. */
void local_down(struct upstream *u, enum mv_err err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Its tools are others now: they are listed anew. */
void local_tools_changed(struct upstream *u);
/* It was refused for its credentials (for the gateway: nobody is who they were). */
void local_note_refused(struct upstream *u);

/* The end of c, which is gone then. result is an object, in pieces. */
void local_reply(struct local_call *c, const struct iovec *result, int n);
/* {"content":[{"type":"text","text":TEXT}],"isError":...}; text need not be UTF-8. */
void local_reply_text(struct local_call *c, const char *text, size_t n, bool is_error);
void local_reply_error(struct local_call *c, int code, const char *message);
/* -32602 in the words of all unknown tools. */
void local_reply_unknown(struct local_call *c);
/* -32602: arguments are no object. True if that is so, and c is gone. */
bool local_refuse_arguments(struct local_call *c);

/* The row of the conf about a tool of that name, a JSON string; NULL: there is none. */
const struct tool_shape *local_shape(const struct upstream *u, struct jtext name);
/* Appends ,"annotations":{...}: of the row, else those. shape may be NULL. */
void local_put_annotations(
    struct buf *out, const struct tool_shape *shape, const struct tool_hints *dflt);

#endif
