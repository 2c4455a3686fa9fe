/* SPDX-License-Identifier: MIT */
/*
 * Two small MCP servers of our own, for a first look without any file and for
 * the tests: "legacy" (2024-11-05 to 2025-11-25) and "modern" (2026-07-28).
 */
#ifndef MCPVISOR_DEMO_H
#define MCPVISOR_DEMO_H

struct import_result;

/* Serves one of them on stdin and stdout until end of input. Returns the exit code of
 * the process: 0, 1 when stdin or stdout failed, 2 when which is neither name. */
int demo_run(const char *which);

/* Fills *r, as import_parse would, with both as upstreams "legacy" and "modern": each
 * the command "self demo NAME". End it with import_free. */
void demo_import(const char *self, struct import_result *r);

#endif
