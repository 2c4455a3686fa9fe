/* SPDX-License-Identifier: MIT */
/* The commands of the control socket. One row here is a command; its handler is
 * control_do_ID in control_run.c. */
#ifndef MCPVISOR_CONTROL_TABLE_H
#define MCPVISOR_CONTROL_TABLE_H

/* X(ID, name, for root and our own user alone) */
#define CONTROL_COMMANDS(X)                                                              \
	X(status, "status", false)                                                       \
	X(version, "version", false)                                                     \
	X(restart, "restart", true)                                                      \
	X(reload, "reload", true)                                                        \
	X(mcp, "mcp", true) /* it calls tools */

/* X(command's ID, member, type, required) */
#define CONTROL_MEMBERS(X)                                                               \
	X(restart, "upstream", STRING, true)                                             \
	X(reload, "dry_run", BOOLEAN, false)                                             \
	X(mcp, "profile", STRING, false)

#endif
