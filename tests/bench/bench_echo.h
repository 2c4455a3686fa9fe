/* SPDX-License-Identifier: MIT */
/*
 * The server of the benchmark, apart from how it is reached.
 */
#ifndef MCPVISOR_BENCH_ECHO_H
#define MCPVISOR_BENCH_ECHO_H

#include <stdbool.h>
#include <stddef.h>

#include "mcpvisor/buf.h"

#define ECHO_MESSAGE_MAX ((size_t)64 * 1024 * 1024)
#define ECHO_READ_BYTES	 ((size_t)64 * 1024)

enum era { ERA_BOTH, ERA_LEGACY, ERA_MODERN };

struct server {
	enum era era;
	unsigned long long tools; /* beyond the named ones */
	unsigned long long page;  /* 0: one page has all */
	unsigned long long wait_ms;
	unsigned long long port; /* 0: standard input and output */
	const char *stamp;	 /* NULL: none is wanted */
	bool listed;		 /* the last page is in out */
	struct buf in, out;
};

/* Appends the answer to out, if there is one, as a line. */
void server_on_line(struct server *s, const char *line, size_t n);
/* Serves Streamable HTTP on 127.0.0.1 until it is killed. Returns an exit status. */
int server_run_http(struct server *s);

#endif
