/* SPDX-License-Identifier: MIT */
/* What the files of probe share. */
#ifndef APP_PROBE_PRIV_H
#define APP_PROBE_PRIV_H

#include "app_priv.h"

#include "mcpvisor/call.h"
#include "mcpvisor/loop.h"

#include <jansson.h>

#define PROBE_SETTLE_MS 60000 /* for upstreams that start */

struct probe;

/* One upstream's turn. */
struct probe_line {
	struct probe *p;
	struct upstream *u;
	struct route **routes; /* its tools that are shown; one reference each */
	size_t n, next;	       /* that is looked at next */
	struct call call;
	bool is_open; /* call has not ended */
	uint64_t started_ms;
	uint64_t down_ms; /* since when it cannot be called; 0: it can */
	json_t *record;	  /* of the open call */
	struct timer limit, pause;
};

struct probe {
	struct app *a;
	struct fleet *fleet;
	struct loop *loop;
	struct spawner *spawner;
	struct curl_loop *curl;
	struct gateway *gateway;
	struct gateway_observer self;
	uint64_t started_ms;
	struct timer settle;
	struct probe_line *lines;
	size_t n_lines, n_open;
	json_t *old, *records; /* as they were; as they will be */
	unsigned n_called, n_sampled;
	bool stopping;
	int code;
	char time[32];
};

/* app_probe.c */
void probe_keep(struct probe *p, json_t *record); /* takes it */
void probe_finish(struct probe *p);		  /* no line is open any more */

/* app_probe_line.c */
/* Of p and u, which are set. */
void line_init(struct probe_line *line);
void line_begin(
    struct probe_line *line);		 /* probe_finish comes after the last one's end */
void line_stop(struct probe_line *line); /* at once; it has no end then */
void line_fini(struct probe_line *line);

#endif
