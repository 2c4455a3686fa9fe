/* SPDX-License-Identifier: MIT */
/*
 * The control socket: one JSON object a line each way, {"command": NAME, ...} and
 * {"ok": true, ...} or {"ok": false, "error": TEXT, "reason": WORD}. Only root and our
 * own user get answers to what changes anything; others that the socket's mode lets in
 * may look. Requests are answered in their order, the next one when the last answer has
 * left.
 *
 *	status				the members of control_ops.put_status
 *	version				"version", "pid"
 *	restart {"upstream": NAME}
 *	reload {"dry_run": BOOL}	"text": the difference, or, when it is refused for
 *					the conf ("reason" is "conf"), all errors; lines
 *	mcp {"profile": NAME}		the connection speaks MCP in lines from here on:
 *					the command line lists and calls tools by it
 *
 * Words for "reason": "request" (not a request, or not of this form), "not_permitted",
 * "conf", and those of err.h ("not_found", "unsupported", "too_long", "busy", ...).
 */
#ifndef MCPVISOR_CONTROL_H
#define MCPVISOR_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/err.h"

struct control;
struct loop;

/* Where the service of the machine has it. */
#define CONTROL_SYSTEM_PATH "/run/mcpvisor/control.sock"
/* Connections in all and of other users than root and ours, the time that each has for a
 * request or to take an answer, and a request's longest line. */
#define CONTROL_CONNECTIONS   16
#define CONTROL_OTHERS	      8
#define CONTROL_WAIT_MS	      10000
#define CONTROL_REQUEST_BYTES (64u * 1024)

/* The commands are rows of a table in control_table.h; what they need of the daemon comes
 * from here. None of these calls back into the control. */
struct control_ops {
	/* Puts the whole status into out, a JSON object without "ok". */
	void (*put_status)(void *arg, struct buf *out);
	/* MV_NOT_FOUND: no such upstream. */
	enum mv_err (*restart)(void *arg, const char *upstream);
	/* Reads the conf anew; text gets the difference, or on MV_CONF all errors. With
	 * dry_run nothing is done. MV_UNSUPPORTED: there is no conf file. */
	enum mv_err (*reload)(void *arg, bool dry_run, struct buf *text);
	/* The connection is MCP's from here on: fd is taken, and of what the other side
	 * sent already there are n bytes in buffered. Writes nothing before it returns,
	 * since the answer to the command has to go first. profile NULL: the first one.
	 * On an error (MV_NOT_FOUND: no such profile) fd stays. */
	enum mv_err (*take_mcp)(void *arg, int fd, uid_t uid, const char *profile,
	    const char *buffered, size_t n);
};

struct control_opts {
	const char *path;  /* absolute */
	unsigned mode;	   /* see listener_set_access */
	const char *group; /* NULL: ours */
};

/* Binds the path; ops is copied. MV_BUSY, MV_CONF, MV_SYSTEM with *et. */
enum mv_err control_new(struct loop *l, const struct control_opts *o,
    const struct control_ops *ops, void *arg, struct control **out,
    struct mv_errtext *et) MCPVISOR_MUST_CHECK;
void control_free(struct control *c); /* NULL is allowed */
/* Where it is when nobody says: $RUNTIME_DIRECTORY/control.sock, else
 * $XDG_RUNTIME_DIR/mcpvisor.control, else /run/mcpvisor/control.sock for root, else NULL.
 * out is a buffer for the text. */
const char *control_default_path(char *out, size_t size);

/* Whether somebody listens there, as far as that can be said without a wait. */
bool control_is_there(const char *path);
/* The other side, for the command line; blocking, for at most 5 seconds (30 for a
 * reload). Connects, sends the request (a JSON object without a line break), gives the
 * answer's line (a JSON object) in reply, whatever it says. MV_CLOSED: nobody is there;
 * MV_TIMEOUT, MV_TOO_LONG, MV_CONF (no path), MV_SYSTEM. *et says more. */
enum mv_err control_ask(const char *path, const char *request, struct buf *reply,
    struct mv_errtext *et) MCPVISOR_MUST_CHECK;
/* Opens a connection that speaks MCP; *fd is the caller's. profile may be NULL. When the
 * daemon refuses (MV_NOT_FOUND: no such profile, else MV_UNSUPPORTED), *et has its words.
 */
enum mv_err control_open_mcp(const char *path, const char *profile, int *fd,
    struct mv_errtext *et) MCPVISOR_MUST_CHECK;

#endif
