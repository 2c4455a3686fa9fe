/* SPDX-License-Identifier: MIT */
/* Between the connections of the control socket and what answers a request. */
#ifndef MCPVISOR_CONTROL_PRIV_H
#define MCPVISOR_CONTROL_PRIV_H

#include "mcpvisor/control.h"

/* Who asks. take is called for "mcp" and gives the connection away. */
struct control_asker {
	const struct control_ops *ops;
	void *arg;
	uid_t uid;
	enum mv_err (*take)(void *conn, const char *profile);
	void *conn;
	bool taken; /* take has succeeded: the answer goes out, and nothing after it */
};

/* Root or our own user. */
bool control_is_owner(uid_t uid);
/* Answers one line: appends the answer's object, without a line break. */
void control_run(struct control_asker *a, const char *line, size_t n, struct buf *out);
/* The answer to what was not even read. */
void control_put_error(struct buf *out, const char *reason, const char *text);

#endif
