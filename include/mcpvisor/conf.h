/* SPDX-License-Identifier: MIT */
/*
 * The conf: a file (libconfig), a folder with one file per upstream beside it, and the
 * mcpServers files that it names, read into one snapshot.
 *
 * Every option is a row of src/daemon/option_table.h, which parser, defaults, conf_dump,
 * the sample and mcpvisor.conf(5) share.
 */
#ifndef MCPVISOR_CONF_H
#define MCPVISOR_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "mcpvisor/filter.h"
#include "mcpvisor/import.h"
#include "mcpvisor/log.h"
#include "mcpvisor/upstream_conf.h"

struct conf_listen {
	char *address, *path, *profile; /* profile NULL: the default one */
	char *sse_path;			/* NULL: none */
	char **allowed_hosts, **allowed_origins;
	bool allow_unauthenticated;
	uint32_t mode; /* of a unix socket: 0600 */
	char *group;   /* NULL: ours */
};

struct conf_log_module {
	char *module;
	enum log_level level;
};

/* Plain data; everything is the snapshot's. */
struct conf {
	char *file; /* the main one; NULL: there is none */
	struct {
		enum log_level level;	/* info */
		enum log_format format; /* text */
		bool calls;		/* true: one line a call */
		struct conf_log_module *modules;
		size_t n_modules;
		uint32_t burst, period_ms; /* of a place that logs: 10, 10000 */
	} log;
	struct {
		char *dir;	    /* NULL: see state.h */
		bool lists;	    /* true: keep lists over restarts */
		uint32_t keep_days; /* of what no conf has any more: 30 */
	} state;
	struct {
		char *socket;  /* NULL: see control.h; "": none */
		uint32_t mode; /* 0600 */
		char *group;
	} control;
	struct {
		uint64_t memory_max;	  /* bytes; 0: no budget */
		uint32_t connections_max; /* 1000 */
		uint32_t pipeline_max;	  /* 64 */
		uint32_t sessions_max;	  /* 10000 */
		uint32_t name_bytes;	  /* 48, from 24 to 128 */
	} limits;
	struct {
		uint32_t head_ms, body_ms, idle_ms, heartbeat_ms, commit_ms;
		uint32_t session_s, session_idle_ms, session_state_idle_ms;
		uint64_t replay_bytes; /* of a session; 0: none are kept */
		uint32_t replay_ms;
	} http;
	struct {
		char *file;	     /* NULL: none */
		uint32_t timeout_ms; /* 10000 */
		uint64_t sample_max; /* bytes: 4096 */
	} probe;
	uint32_t list_wait_ms;	  /* 5000 */
	uint32_t drain_ms;	  /* 1000: calls may finish when we stop */
	uint32_t reload_drain_ms; /* 30000: ... when their upstream is replaced */
	char *upstream_dir;	  /* "upstream.d" beside the file */
	char **mcp_servers;	  /* files that were imported; NULL: none */
	struct conf_listen *listen;
	size_t n_listen; /* 0: serve listens where it does without a conf */
	struct upstream_conf **upstreams; /* all, in conf order; see enabled */
	size_t n_upstreams;
	struct profile_conf **profiles; /* "default" first, if there is one */
	size_t n_profiles;
	char **warnings; /* of imported files, one line each */
	size_t n_warnings;
	struct conf_more *more; /* what the module itself remembers */
};

/* All that is wrong, each "file:line: what"; in the order of the files. */
struct conf_errors {
	char **v;
	size_t n; /* at most 100; more are counted in n_more */
	size_t n_more;
};
void conf_errors_free(struct conf_errors *e);

/* Where variables, files and credentials are looked up; NULL: the process's own. */
struct expand_env;

/* NULL with *e filled: nothing of a conf with errors is used. file is the main file, or a
 * folder that holds it as mcpvisor.conf. e is empty on success. */
struct conf *conf_load(
    const char *file, const struct expand_env *env, struct conf_errors *e);
/* The same with one file more of mcp_servers; NULL for none. */
struct conf *conf_load_with(const char *file, const char *mcp_json,
    const struct expand_env *env, struct conf_errors *e);
/* The same from text, which needs no file; relative names start at the folder of name. */
struct conf *conf_parse(const char *name, const char *text, const struct expand_env *env,
    struct conf_errors *e);
/* Every option at its default, no upstream: what runs when there is no conf. */
struct conf *conf_new_default(void);
/* Puts the servers of an import behind the others; r is empty after. MV_CONF with *et: a
 * name is taken, or there are too many. */
enum mv_err conf_add_import(
    struct conf *c, struct import_result *r, struct mv_errtext *et) MCPVISOR_MUST_CHECK;
void conf_free(struct conf *c); /* NULL is allowed; wipes secrets */

/* Every option that has a value, "path = value" a line, in the order of the table and the
 * conf; what is secret shows as "(secret)". changed_only: without those at their
 * default. */
void conf_dump(const struct conf *c, bool changed_only, struct buf *out);

/* What a reload would do, a line each, in the order of the table: "+ upstream.x",
 * "- upstream.x", "~ upstream.x.args: OLD -> NEW (restarts it)",
 * "~ limits.x: 1 -> 2 (needs a restart)". Secrets that differ show as changed. Returns
 * the number of lines. */
size_t conf_diff(const struct conf *from, const struct conf *to, struct buf *out);

#endif
