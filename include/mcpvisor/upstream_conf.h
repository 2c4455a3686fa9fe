/* SPDX-License-Identifier: MIT */
/* What an upstream is told to be: plain data, owned by whoever parsed it. */
#ifndef MCPVISOR_UPSTREAM_CONF_H
#define MCPVISOR_UPSTREAM_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/err.h"

enum era_pin { ERA_AUTO, ERA_LEGACY, ERA_MODERN };
/* Who shares an instance: all clients, or nobody. */
enum isolation { ISOLATION_SHARED, ISOLATION_SESSION };

struct upstream_conf {
	char *name;   /* as in the file */
	char **argv;  /* command first; NULL-terminated */
	char **env;   /* the whole environment of the child, "K=V"; NULL-terminated */
	char *path;   /* its PATH */
	char *cwd;    /* NULL: ours */
	char *prefix; /* before published names; NULL: the mapped name and "__" */
	enum era_pin era;
	enum isolation isolation;
	uint32_t probe_ms;	  /* 3000: discover alone, before initialize joins it */
	uint32_t start_ms;	  /* 60000: from start to ready */
	uint32_t call_ms;	  /* 300000: without an answer or progress */
	uint32_t call_max_ms;	  /* 3600000: in all */
	uint32_t restart_base_ms; /* 500 */
	/* Set: this entry cannot run; why, for the log and for its callers. */
	enum mv_err broken;
	char broken_text[256];
};

/* Zero everything and set the defaults above; name is copied. */
struct upstream_conf *upstream_conf_new(const char *name);
void upstream_conf_free(struct upstream_conf *c); /* NULL is allowed */

#endif
