/* SPDX-License-Identifier: MIT */
/* What an upstream is told to be: plain data, owned by whoever parsed it. */
#ifndef MCPVISOR_UPSTREAM_CONF_H
#define MCPVISOR_UPSTREAM_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/err.h"
#include "mcpvisor/exec_conf.h"
#include "mcpvisor/graphql_conf.h"
#include "mcpvisor/identity.h"
#include "mcpvisor/label.h"

/* What an upstream is: a program that is an MCP server, or such a server elsewhere; or
 * what we make tools of ourselves: a GraphQL endpoint, programs, functions of a shell
 * file. */
enum upstream_kind { KIND_STDIO, KIND_HTTP, KIND_GRAPHQL, KIND_EXEC, KIND_SHELL };
/* Tools are made by us, and take nothing that they do not show. */
static inline bool
upstream_kind_is_own(enum upstream_kind k)
{
	return k == KIND_GRAPHQL || k == KIND_EXEC || k == KIND_SHELL;
}
enum era_pin { ERA_AUTO, ERA_LEGACY, ERA_MODERN };
/* Who shares an instance: as the upstream turns out to need it, all clients, nobody, or
 * not even two calls. */
enum isolation { ISOLATION_AUTO, ISOLATION_SHARED, ISOLATION_SESSION, ISOLATION_CALL };
enum start_mode { START_EAGER, START_ON_USE };
/* How a remote one is spoken to; AUTO: found out. */
enum transport_pin { TRANSPORT_AUTO, TRANSPORT_STREAMABLE, TRANSPORT_SSE };
/* Which folders it is told that its client has: what the client says, if the instance is
 * one client's own (AUTO), or always, for which each client has an instance of its own;
 * none; or those of the conf. */
enum roots_mode { ROOTS_AUTO, ROOTS_CLIENT, ROOTS_NONE, ROOTS_LIST };
/* What a client's call to a tool gets when the upstream fails. */
enum failure_mode { FAILURE_ERROR, FAILURE_TOOL_ERROR };

/* The words of files for them, in the order of the enum, NULL-terminated. */
extern const char *const era_words[],
    *const isolation_words[], *const start_words[],
				  *const failure_words[],
				      *const transport_words[],
					  *const roots_words[], /* without LIST */
					      *const kind_words[];

/* Patterns: names with * and ?, or @read_only, @destructive, @idempotent, @open_world for
 * what a tool's annotations say. Both NULL-terminated or NULL. */
struct filter {
	char **allow; /* NULL: everything */
	char **deny;  /* wins */
};

/* Annotations of a tool of ours, in place of what its kind says. */
enum tool_hint { HINT_INHERIT, HINT_NO, HINT_YES };
struct tool_hints {
	enum tool_hint read_only, destructive, idempotent, open_world;
};

/* One tool seen otherwise than its upstream offers it, or made by us. */
struct tool_shape {
	char *tool;	   /* as the upstream calls it */
	char *name;	   /* in place of it, before the prefix; NULL: the same */
	char *description; /* NULL: the same */
	char *fixed;	   /* text of a JSON object: arguments that no client chooses */
	char *defaults;	   /* the same: arguments for clients that give none */
	uint32_t call_ms, call_max_ms; /* 0: the upstream's */
	char *returns;	     /* what probe has found it to return; NULL: nothing */
	uint64_t returns_of; /* hash_stable of the definition that it had then */
	bool is_found;	     /* the conf has no word of it, but what probe has found */
	char *probe_args;    /* text of a JSON object: what probe calls it with */
	struct label_conf label;
	struct tool_hints hints; /* of kinds that make their tools */
	struct exec_tool exec;	 /* of kind exec */
};
void tool_shape_fini(struct tool_shape *s);

/* A header of every request to a remote one. */
struct header_row {
	char *name;
	char *value;  /* as it was when the conf was read */
	char *source; /* as written, for looking again; NULL: it cannot change */
};

struct upstream_conf {
	char *name; /* as in the file */
	enum upstream_kind kind;
	/* A remote one: url is set and argv is not. */
	char *url;
	struct header_row *headers;
	size_t n_headers;
	char *ca_file, *cert_file, *key_file; /* PEM; NULL: the system's, none */
	char *proxy;	     /* URL; "": none; NULL: as the environment says */
	bool skip_verify;    /* tls_verify = false */
	uint32_t connect_ms; /* 15000: name, connection and TLS */
	enum transport_pin transport;
	/* Appends "Name: value" and NUL for each header, looking again at what their
	 * sources read if that has changed. False: one cannot be had now, why says it
	 * without secrets. Set by whoever parsed the conf if any header has a source. */
	bool (*put_headers)(
	    const struct upstream_conf *c, struct buf *out, struct mv_errtext *why);
	struct header_sources *sources; /* what that function remembers */
	void (*free_sources)(struct header_sources *s);
	/* A process: argv is set and url is not. */
	char **argv;	  /* command first; NULL-terminated */
	char **env;	  /* the whole environment of the child, "K=V"; NULL-terminated */
	char **own_env;	  /* what of it the conf gave, the same; NULL: nothing */
	char *path;	  /* its PATH */
	char *cwd;	  /* NULL: ours */
	char *prefix;	  /* before published names; NULL: the mapped name and "__" */
	char *uri_prefix; /* before published URIs; NULL: none */
	bool enabled;
	enum era_pin era;
	enum isolation isolation;
	enum start_mode start;
	enum failure_mode failure;
	bool rescue_errors; /* -32602 and -32603 of a known tool become isError results */
	enum roots_mode roots;
	char **root_uris;	  /* LIST: file: URIs, NULL-terminated */
	uint32_t question_ms;	  /* 600000: for a client's answer to its question */
	uint32_t max_instances;	  /* 32: of clients' or calls' own */
	uint32_t idle_stop_ms;	  /* without use, then its process stops; 0: never */
	uint32_t probe_ms;	  /* 3000: discover alone, before initialize joins it */
	uint32_t start_ms;	  /* 60000: from start to ready */
	uint32_t call_ms;	  /* 300000: without an answer or progress */
	uint32_t call_max_ms;	  /* 3600000: in all */
	uint32_t queue_calls;	  /* CAP_UPSTREAM_CALLS: that wait or run */
	uint64_t queue_bytes;	  /* CAP_UPSTREAM_HELD_BYTES: of those that wait */
	uint32_t restart_base_ms; /* 500: first delay after a death, doubled by each */
	uint32_t restart_max_ms;  /* 60000: longest delay */
	uint32_t restart_limit;	  /* 10: deaths in a row, then it is parked; 0: never */
	uint32_t stable_ms;	  /* 30000: uptime after which deaths are forgotten */
	uint32_t term_ms;	  /* 2000: from closing stdin to TERM */
	uint32_t kill_ms;	  /* 3000: from TERM to KILL */
	struct filter tools, prompts, resources; /* of its own names, and URIs */
	struct label_conf label;
	struct identity_conf identity;
	struct graphql_conf graphql; /* KIND_GRAPHQL, whose url is the endpoint */
	struct exec_conf exec;	     /* KIND_EXEC, KIND_SHELL */
	struct filter probe;	     /* tools that probe may call, if they are harmless */
	struct tool_shape *shapes;
	size_t n_shapes;
	/* Set: this entry cannot run; why, for the log and for its callers. */
	enum mv_err broken;
	char broken_text[256];
};

/* Zero everything and set the defaults above; name is copied. */
struct upstream_conf *upstream_conf_new(const char *name);
/* Wipes what may be secret. NULL is allowed. */
void upstream_conf_free(struct upstream_conf *c);
/* Appends bytes that are equal for two confs exactly if the same process would be
 * started: command, arguments, folder, what the conf gave of the environment, era; or the
 * same server spoken to: URL, headers, TLS, proxy, transport, era. They hold secrets. */
void upstream_conf_put_identity(const struct upstream_conf *c, struct buf *out);
/* Whether a process under a would serve b as well: same identity, isolation and roots. */
bool upstream_conf_is_same_process(
    const struct upstream_conf *a, const struct upstream_conf *b);
/* The shape of the tool with this name (decoded); NULL if there is none. */
const struct tool_shape *upstream_conf_shape(
    const struct upstream_conf *c, const char *tool, size_t n);
/* What is wrong with a prefix of names, or of URIs, without showing it; NULL: nothing. */
const char *upstream_conf_check_prefix(const char *s);
const char *upstream_conf_check_uri_prefix(const char *s);
void filter_free(struct filter *f); /* what it points to */

#endif
