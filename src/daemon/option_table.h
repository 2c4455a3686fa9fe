/* SPDX-License-Identifier: MIT */
/*
 * Every option, once: parser, defaults, conf_dump, conf_diff, the samples and
 * mcpvisor.conf(5) all go by these rows.
 *
 * X(where, key, type, member, lowest, highest, default, reload, flags, doc)
 *
 * where: the struct that holds it. type: a row of CONF_TYPES. default: as the file would
 * have it, NULL for none. flags: E ${...} is expanded, S secret, Q required, O makes no
 * sense for several upstreams (not in "defaults"), N may be empty; K of these kinds of
 * upstreams alone.
 */
#ifndef MCPVISOR_CONF_TABLE_H
#define MCPVISOR_CONF_TABLE_H

#include "option_main.h"
#include "option_own.h"
#include "option_tool.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/upstream_conf.h"

#define CONF_F_E 1u  /* ${...} is expanded */
#define CONF_F_S 2u  /* secret whatever it is */
#define CONF_F_Q 4u  /* required */
#define CONF_F_O 8u  /* of one upstream: not in "defaults" */
#define CONF_F_N 16u /* may be an empty string */

/* Kinds of upstreams that have an option; none of them: all do. */
#define CONF_K(kind)   (32u << (kind))
#define CONF_K_STDIO   CONF_K(KIND_STDIO)
#define CONF_K_HTTP    CONF_K(KIND_HTTP)
#define CONF_K_GRAPHQL CONF_K(KIND_GRAPHQL)
#define CONF_K_EXEC    CONF_K(KIND_EXEC)
#define CONF_K_SHELL   CONF_K(KIND_SHELL)
#define CONF_K_SERVER  (CONF_K_STDIO | CONF_K_HTTP)
#define CONF_K_NET     (CONF_K_HTTP | CONF_K_GRAPHQL)
#define CONF_K_RUN     (CONF_K_EXEC | CONF_K_SHELL)
#define CONF_K_PROGRAM (CONF_K_STDIO | CONF_K_RUN)
#define CONF_K_OWN     (CONF_K_GRAPHQL | CONF_K_RUN)
#define CONF_K_ALL     (CONF_K_SERVER | CONF_K_OWN)
/* Whether upstreams of some kinds have an option with these flags. */
#define CONF_IS_OF(flags, kinds) (((flags)&CONF_K_ALL) == 0 || ((flags) & (kinds)) != 0)

#define CONF_DAY_MS  86400000
#define CONF_WEEK_MS 604800000
#define CONF_HOUR_MS 3600000

#define CONF_ROWS_UPSTREAM(X)                                                            \
	X(EXTRA, "name", NAME, name, 0, 0, NULL, UPSTREAM, CONF_F_O,                     \
	    "its name, where that cannot be the name of the group")                      \
	X(UPSTREAM, "kind", KIND, kind, 0, 0, NULL, UPSTREAM, CONF_F_O,                  \
	    "what it is, where that does not follow from command or url")                \
	X(UPSTREAM, "command", COMMAND, argv, 0, 0, NULL, UPSTREAM,                      \
	    CONF_F_E | CONF_F_O | CONF_K_STDIO, "the program, looked up in its PATH")    \
	X(UPSTREAM, "args", ARGS, argv, 0, 0, NULL, UPSTREAM,                            \
	    CONF_F_E | CONF_F_O | CONF_K_STDIO, "its arguments")                         \
	X(EXTRA, "env_file", PATH, env_file, 0, 0, NULL, UPSTREAM,                       \
	    CONF_F_E | CONF_K_PROGRAM, "file of NAME=VALUE lines for its environment")   \
	X(UPSTREAM, "env", ENV, own_env, 0, 0, NULL, UPSTREAM,                           \
	    CONF_F_E | CONF_F_S | CONF_K_PROGRAM, "variables of its environment")        \
	X(EXTRA, "env_pass", GLOBS, env_pass, 0, 0, NULL, UPSTREAM,                      \
	    CONF_F_E | CONF_K_PROGRAM, "patterns of variables of ours that it gets")     \
	X(UPSTREAM, "cwd", PATH, cwd, 0, 0, NULL, UPSTREAM, CONF_F_E | CONF_K_PROGRAM,   \
	    "its working folder; none: ours")                                            \
	X(UPSTREAM, "url", URL, url, 0, 0, NULL, UPSTREAM,                               \
	    CONF_F_E | CONF_F_O | CONF_K_NET,                                            \
	    "the URL of a remote server, or of a GraphQL endpoint")                      \
	X(UPSTREAM, "transport", TRANSPORT, transport, 0, 0, "\"auto\"", UPSTREAM,       \
	    CONF_K_HTTP, "how it is spoken to; auto finds out")                          \
	X(UPSTREAM, "headers", HEADERS, headers, 0, 0, NULL, UPSTREAM,                   \
	    CONF_F_E | CONF_F_S | CONF_K_NET, "headers of each request to it")           \
	X(UPSTREAM, "ca_file", FILE, ca_file, 0, 0, NULL, UPSTREAM,                      \
	    CONF_F_E | CONF_K_NET,                                                       \
	    "certificates that vouch for it, in place of the system's")                  \
	X(UPSTREAM, "cert_file", FILE, cert_file, 0, 0, NULL, UPSTREAM,                  \
	    CONF_F_E | CONF_K_NET, "a certificate of ours that it is shown")             \
	X(UPSTREAM, "key_file", FILE, key_file, 0, 0, NULL, UPSTREAM,                    \
	    CONF_F_E | CONF_K_NET, "the key of that; none: it is in the same file")      \
	X(UPSTREAM, "tls_verify", VERIFY, skip_verify, 0, 0, "true", UPSTREAM,           \
	    CONF_K_NET, "false takes any certificate, also a forged one")                \
	X(UPSTREAM, "proxy", PROXY, proxy, 0, 0, NULL, UPSTREAM,                         \
	    CONF_F_E | CONF_F_N | CONF_K_NET,                                            \
	    "URL of a proxy; an empty string for none")                                  \
	X(UPSTREAM, "connect_ms", MS, connect_ms, 1, 600000, "15000", LIVE, CONF_K_NET,  \
	    "for its name, the connection and TLS together")                             \
	X(UPSTREAM, "enabled", BOOL, enabled, 0, 0, "true", LIVE, CONF_F_O,              \
	    "false leaves it out")                                                       \
	X(UPSTREAM, "prefix", PREFIX, prefix, 0, 0, NULL, LIVE, CONF_F_E | CONF_F_N,     \
	    "text before its names; none: its name and two underscores")                 \
	X(UPSTREAM, "uri_prefix", URI_PREFIX, uri_prefix, 0, 0, NULL, LIVE,              \
	    CONF_F_E | CONF_F_O | CONF_K_SERVER,                                         \
	    "text before the URIs of its resources")                                     \
	X(UPSTREAM, "era", ERA, era, 0, 0, "\"auto\"", UPSTREAM, CONF_K_SERVER,          \
	    "revision family to speak; auto asks")                                       \
	X(UPSTREAM, "isolation", ISOLATION, isolation, 0, 0, "\"auto\"", UPSTREAM,       \
	    CONF_K_SERVER, "who shares one process of it")                               \
	X(UPSTREAM, "start", START, start, 0, 0, "\"eager\"", LIVE, 0,                   \
	    "when it is started")                                                        \
	X(UPSTREAM, "idle_stop_ms", MS, idle_stop_ms, 0, CONF_WEEK_MS, "0", LIVE,        \
	    CONF_K_SERVER, "time without use until its process stops; 0 for never")      \
	X(UPSTREAM, "upstream_failure", FAILURE, failure, 0, 0, "\"error\"", LIVE, 0,    \
	    "what a call to a tool gets when the upstream fails")                        \
	X(UPSTREAM, "rescue_errors", BOOL, rescue_errors, 0, 0, "false", LIVE, 0,        \
	    "make errors of a known tool readable to the model")                         \
	X(UPSTREAM, "roots", ROOTS, roots, 0, 0, "\"auto\"", UPSTREAM,                   \
	    CONF_F_E | CONF_K_SERVER, "which folders it is told of")                     \
	X(UPSTREAM, "question_ms", MS, question_ms, 1, CONF_DAY_MS, "600000", LIVE,      \
	    CONF_K_SERVER, "how long a client may take to answer its question")          \
	X(UPSTREAM, "max_instances", INT, max_instances, 1, 256, "32", LIVE,             \
	    CONF_K_SERVER, "processes for single clients or calls")                      \
	X(UPSTREAM, "probe_ms", MS, probe_ms, 1, 600000, "3000", LIVE, CONF_K_SERVER,    \
	    "how long it is asked in the modern way alone")                              \
	X(UPSTREAM, "start_ms", MS, start_ms, 1, CONF_HOUR_MS, "60000", LIVE, 0,         \
	    "from its start until it has to be ready")                                   \
	X(UPSTREAM, "call_ms", MS, call_ms, 1, CONF_DAY_MS, "300000", LIVE,              \
	    CONF_K_SERVER, "a call fails after this time without an answer or progress") \
	X(UPSTREAM, "call_max_ms", MS, call_max_ms, 1, CONF_WEEK_MS, "3600000", LIVE,    \
	    CONF_K_SERVER, "a call fails after this time in any case")                   \
	X(UPSTREAM, "queue_calls", INT, queue_calls, 1, 65536, "4096", LIVE, 0,          \
	    "calls that wait or run; one more fails at once")                            \
	X(UPSTREAM, "queue_bytes", SIZE, queue_bytes, 1, 1ull << 30, "100663296", LIVE,  \
	    0, "bytes of calls that wait")                                               \
	X(UPSTREAM, "restart_base_ms", MS, restart_base_ms, 1, 60000, "500", LIVE, 0,    \
	    "first delay after a crash; each further one doubles it")                    \
	X(UPSTREAM, "restart_max_ms", MS, restart_max_ms, 1, CONF_HOUR_MS, "60000",      \
	    LIVE, 0, "longest delay after a crash")                                      \
	X(UPSTREAM, "restart_limit", INT, restart_limit, 0, 1000000, "10", LIVE, 0,      \
	    "crashes in a row until it is parked; 0 for never")                          \
	X(UPSTREAM, "stable_ms", MS, stable_ms, 1, CONF_DAY_MS, "30000", LIVE, 0,        \
	    "uptime after which crashes are forgotten")                                  \
	X(UPSTREAM, "term_ms", MS, term_ms, 0, 600000, "2000", LIVE, CONF_K_SERVER,      \
	    "from closing its input to SIGTERM")                                         \
	X(UPSTREAM, "kill_ms", MS, kill_ms, 0, 600000, "3000", LIVE, CONF_K_SERVER,      \
	    "from SIGTERM to SIGKILL")                                                   \
	X(UPSTREAM, "tools.allow", PATTERNS, tools.allow, 0, 0, NULL, LIVE, 0,           \
	    "its tools that are offered; none: all")                                     \
	X(UPSTREAM, "tools.deny", PATTERNS, tools.deny, 0, 0, NULL, LIVE, 0,             \
	    "its tools that are not; wins")                                              \
	X(EXTRA, "tools.rename", RENAME, rows, 0, 0, NULL, LIVE, CONF_F_O,               \
	    "other names for its tools")                                                 \
	X(UPSTREAM, "prompts.allow", PATTERNS, prompts.allow, 0, 0, NULL, LIVE,          \
	    CONF_K_SERVER, "its prompts that are offered; none: all")                    \
	X(UPSTREAM, "prompts.deny", PATTERNS, prompts.deny, 0, 0, NULL, LIVE,            \
	    CONF_K_SERVER, "its prompts that are not; wins")                             \
	X(UPSTREAM, "resources.allow", PATTERNS, resources.allow, 0, 0, NULL, LIVE,      \
	    CONF_K_SERVER, "its resources that are offered, by URI; none: all")          \
	X(UPSTREAM, "resources.deny", PATTERNS, resources.deny, 0, 0, NULL, LIVE,        \
	    CONF_K_SERVER, "its resources that are not; wins")                           \
	X(UPSTREAM, "graphql", GRAPHQL, label.mode, 0, 0, "\"auto\"", LIVE,              \
	    CONF_K_SERVER | CONF_K_RUN,                                                  \
	    "whether results of its tools are looked at as GraphQL answers")             \
	X(UPSTREAM, "graphql_survival", SURVIVAL, label.survival, 0, 0, "\"shallow\"",   \
	    LIVE, 0,                                                                     \
	    "how deep the data of an answer with errors is searched for a value")        \
	X(UPSTREAM, "graphql_root", POINTER, label.root, 0, 0, NULL, LIVE, CONF_F_N,     \
	    "JSON Pointer to the answer within a result; for graphql = on")              \
	X(UPSTREAM, "graphql_annotate", ANNOTATE, label.annotate, 0, 0, "\"full\"",      \
	    LIVE, 0, "where a partial answer is labelled")                               \
	X(UPSTREAM, "graphql_max_bytes", SIZE, label.max_bytes, 1, CAP_MESSAGE_BYTES,    \
	    "1048576", LIVE, 0, "longest text of a result that is looked at")            \
	X(UPSTREAM, "fail_if", RULES, label.rules, 0, 0, NULL, LIVE, 0,                  \
	    "what makes a result a failure: json:POINTER, json:POINTER=JSON, "           \
	    "text:REGEX")                                                                \
	X(UPSTREAM, "identity_tools", IDENTITY, identity.tools, 0, 0, "\"auto\"", LIVE,  \
	    0, "its tools that say whom it acts for")                                    \
	X(UPSTREAM, "identity_path", POINTER, identity.path, 0, 0, NULL, LIVE, CONF_F_N, \
	    "JSON Pointer to what the result of such a tool must have")                  \
	X(UPSTREAM, "identity_null_text", REGEXES, identity.null_texts, 0, 0, NULL,      \
	    LIVE, 0, "regular expressions for texts that mean nobody")                   \
	X(UPSTREAM, "identity_cache_ms", MS, identity.cache_ms, 0, CONF_DAY_MS, "0",     \
	    LIVE, 0, "how long an answer that names somebody is kept; 0: not at all")    \
	X(UPSTREAM, "identity_cache_max", SIZE, identity.cache_max, 1, 16777216,         \
	    "65536", LIVE, 0, "longest answer that is kept")                             \
	X(UPSTREAM, "identity_hint", BOOL, identity.hint, 0, 0, "false", LIVE, 0,        \
	    "tell the model when the answer names nobody")                               \
	X(UPSTREAM, "probe.allow", PATTERNS, probe.allow, 0, 0, NULL, LIVE, 0,           \
	    "its tools that mcpvisor probe may call, if they only read; none: all")      \
	X(UPSTREAM, "probe.deny", PATTERNS, probe.deny, 0, 0, NULL, LIVE, 0,             \
	    "its tools that it may not; wins")

/* Rows of one group of a file lie together. */
#define CONF_ROWS(X)                                                                     \
	CONF_ROWS_MAIN(X)                                                                \
	CONF_ROWS_LISTEN(X)                                                              \
	CONF_ROWS_UPSTREAM(X)                                                            \
	CONF_ROWS_OWN(X) CONF_ROWS_TOOL(X) CONF_ROWS_PARAM(X) CONF_ROWS_PROFILE(X)

#endif
