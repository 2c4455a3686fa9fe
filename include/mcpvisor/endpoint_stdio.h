/* SPDX-License-Identifier: MIT */
/*
 * One client on a pair of descriptors, usually standard input and output.
 * Spec: basic/transports, stdio, Shutdown.
 */
#ifndef MCPVISOR_ENDPOINT_STDIO_H
#define MCPVISOR_ENDPOINT_STDIO_H

#include "mcpvisor/gateway.h"

struct endpoint_stdio;

struct endpoint_stdio_opts {
	int rfd, wfd;	     /* taken */
	unsigned view;	     /* 0 */
	uint32_t drain_ms;   /* calls may finish after the end of input: 1000 */
	uint32_t term_at_ms; /* TERM to children, counted from the end of input: 1200 */
	uint32_t kill_at_ms; /* KILL: 1700 */
};
extern const struct endpoint_stdio_opts endpoint_stdio_defaults;

/* on_gone comes once: all is answered and written, all upstreams have stopped. It may
 * free the endpoint. */
struct endpoint_stdio *endpoint_stdio_new(struct loop *l, struct gateway *g,
    const struct endpoint_stdio_opts *o, void (*on_gone)(void *), void *arg);
void endpoint_stdio_free(struct endpoint_stdio *e);
/* As if input had ended; a second time: without waiting for calls. */
void endpoint_stdio_stop(struct endpoint_stdio *e);

#endif
