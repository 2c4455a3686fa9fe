/* SPDX-License-Identifier: MIT */
/*
 * Every option, once: parser, defaults, conf_dump, conf_diff, the samples and
 * mcpvisor.conf(5) all go by these rows.
 *
 * X(where, key, type, member, lowest, highest, default, reload, flags, doc)
 *
 * where: the struct that holds it. type: a row of CONF_TYPES. default: as the file would
 * have it, NULL for none. flags: E ${...} is expanded, S secret, Q required, O makes no
 * sense for several upstreams (not in "defaults"), N may be empty, P of upstreams that
 * are programs alone, R of remote ones alone.
 */
#ifndef MCPVISOR_CONF_TABLE_H
#define MCPVISOR_CONF_TABLE_H

#define CONF_F_E 1u  /* ${...} is expanded */
#define CONF_F_S 2u  /* secret whatever it is */
#define CONF_F_Q 4u  /* required */
#define CONF_F_O 8u  /* of one upstream: not in "defaults" */
#define CONF_F_N 16u /* may be an empty string */
#define CONF_F_P 32u /* of upstreams that are programs alone */
#define CONF_F_R 64u /* of remote ones alone */
/* Flags of options that an upstream cannot have, being what it is. */
#define CONF_OTHER_KIND(u) ((u)->url ? CONF_F_P : CONF_F_R)

#define CONF_DAY_MS  86400000
#define CONF_WEEK_MS 604800000
#define CONF_HOUR_MS 3600000

#define CONF_ROWS(X)                                                                     \
	X(CONF, "log.level", LOG_LEVEL, log.level, 0, 0, "\"info\"", LIVE, 0,            \
	    "how much is logged")                                                        \
	X(CONF, "log.format", LOG_FORMAT, log.format, 0, 0, "\"text\"", LIVE, 0,         \
	    "how a line is written")                                                     \
	X(CONF, "log.calls", BOOL, log.calls, 0, 0, "true", LIVE, 0,                     \
	    "one line for each call")                                                    \
	X(CONF, "log.modules", LEVELS, log.modules, 0, 32, NULL, LIVE, 0,                \
	    "levels of single modules, in place of log.level")                           \
	X(CONF, "log.burst", INT, log.burst, 1, 1000000, "10", LIVE, 0,                  \
	    "lines that one place in the code may log in a period")                      \
	X(CONF, "log.period_ms", MS, log.period_ms, 1, CONF_HOUR_MS, "10000", LIVE, 0,   \
	    "length of that period")                                                     \
	X(CONF, "state.dir", PATH, state.dir, 0, 0, NULL, RESTART, CONF_F_E,             \
	    "folder for what outlives the process")                                      \
	X(CONF, "state.lists", BOOL, state.lists, 0, 0, "true", LIVE, 0,                 \
	    "keep the lists of upstreams over restarts")                                 \
	X(CONF, "state.keep_days", INT, state.keep_days, 1, 36500, "30", LIVE, 0,        \
	    "days until the lists of an upstream that nobody uses are removed")          \
	X(CONF, "control.socket", PATH, control.socket, 0, 0, NULL, RESTART,             \
	    CONF_F_E | CONF_F_N, "the control socket; an empty string for none")         \
	X(CONF, "control.mode", MODE, control.mode, 0, 0777, "\"0600\"", RESTART, 0,     \
	    "mode of the control socket")                                                \
	X(CONF, "control.group", STRING, control.group, 0, 0, NULL, RESTART, CONF_F_E,   \
	    "group of the control socket")                                               \
	X(CONF, "limits.memory_max", SIZE, limits.memory_max, 0, 1ull << 50, "0", LIVE,  \
	    0, "memory budget; over it nothing more is read; 0 for none")                \
	X(CONF, "limits.connections_max", INT, limits.connections_max, 1, 100000,        \
	    "1000", CONN, 0, "HTTP connections at a time; one more gets 503")            \
	X(CONF, "limits.pipeline_max", INT, limits.pipeline_max, 1, 10000, "64", CONN,   \
	    0, "requests of one connection that are open at a time")                     \
	X(CONF, "limits.sessions_max", INT, limits.sessions_max, 1, 1000000, "10000",    \
	    CONN, 0, "sessions of HTTP clients in memory")                               \
	X(CONF, "limits.name_bytes", INT, limits.name_bytes, 24, 128, "48", LIVE, 0,     \
	    "longest published name; longer ones get a short form")                      \
	X(CONF, "http.head_ms", MS, http.head_ms, 1, CONF_HOUR_MS, "10000", CONN, 0,     \
	    "from the first byte of a request to its whole head")                        \
	X(CONF, "http.body_ms", MS, http.body_ms, 1, CONF_HOUR_MS, "30000", CONN, 0,     \
	    "longest silence within a body")                                             \
	X(CONF, "http.idle_ms", MS, http.idle_ms, 1, CONF_DAY_MS, "60000", CONN, 0,      \
	    "life of a connection without a request")                                    \
	X(CONF, "http.heartbeat_ms", MS, http.heartbeat_ms, 1, CONF_HOUR_MS, "15000",    \
	    CONN, 0, "silence of an event stream before a comment is sent")              \
	X(CONF, "http.commit_ms", MS, http.commit_ms, 1, CONF_HOUR_MS, "10000", CONN, 0, \
	    "an answer that takes longer becomes an event stream")                       \
	X(CONF, "http.session_s", SECONDS, http.session_s, 60, 31536000, "86400", CONN,  \
	    0, "life of a session id, in seconds")                                       \
	X(CONF, "http.session_idle_ms", MS, http.session_idle_ms, 1, CONF_WEEK_MS,       \
	    "120000", CONN, 0, "idle time until the memory of a session is given back")  \
	X(CONF, "http.session_state_idle_ms", MS, http.session_state_idle_ms, 1,         \
	    CONF_WEEK_MS, "1800000", CONN, 0,                                            \
	    "idle time until a session that cannot come back ends")                      \
	X(CONF, "http.replay_bytes", SIZE, http.replay_bytes, 0, 1ull << 30, "1048576",  \
	    CONN, 0,                                                                     \
	    "bytes of a session's streams kept for a client that lost them; 0: none")    \
	X(CONF, "http.replay_ms", MS, http.replay_ms, 1, CONF_DAY_MS, "300000", CONN, 0, \
	    "how long an answer waits for a client that lost its stream")                \
	X(CONF, "list_wait_ms", MS, list_wait_ms, 0, 600000, "5000", RESTART, 0,         \
	    "how long a first list, or the answer to initialize, waits for upstreams")   \
	X(CONF, "drain_ms", MS, drain_ms, 0, CONF_HOUR_MS, "1000", LIVE, 0,              \
	    "how long calls may go on when mcpvisor stops")                              \
	X(CONF, "reload_drain_ms", MS, reload_drain_ms, 0, CONF_DAY_MS, "30000", LIVE,   \
	    0, "how long calls may go on when their upstream is replaced")               \
	X(CONF, "upstream_dir", PATH, upstream_dir, 0, 0, "\"upstream.d\"", LIVE,        \
	    CONF_F_E, "folder with one file for each upstream")                          \
	X(CONF, "mcp_servers", PATHS, mcp_servers, 0, 0, NULL, LIVE, CONF_F_E,           \
	    "files of MCP clients whose servers become upstreams")                       \
	X(CONF, "listen", LISTENS, listen, 0, 0, NULL, CONN, 0, "where serve listens")   \
	X(CONF, "defaults", DEFAULTS, upstreams, 0, 0, NULL, LIVE, 0,                    \
	    "options for all upstreams that do not set them")                            \
	X(CONF, "upstream", UPSTREAMS, upstreams, 0, 0, NULL, LIVE, 0, "the upstreams")  \
	X(CONF, "profile", PROFILES, profiles, 0, 0, NULL, LIVE, 0,                      \
	    "views that endpoints show")                                                 \
                                                                                         \
	X(LISTEN, "address", ADDRESS, address, 0, 0, NULL, CONN, CONF_F_E | CONF_F_Q,    \
	    "an address and port, unix:/PATH or systemd:NAME")                           \
	X(LISTEN, "path", HTTP_PATH, path, 0, 0, "\"/mcp\"", CONN, CONF_F_E,             \
	    "path of the endpoint")                                                      \
	X(LISTEN, "sse_path", HTTP_PATH, sse_path, 0, 0, NULL, CONN, CONF_F_E,           \
	    "path of HTTP+SSE for clients of 2024-11-05; none: it is off")               \
	X(LISTEN, "profile", STRING, profile, 0, 0, NULL, CONN, 0,                       \
	    "the profile that it shows; none: default")                                  \
	X(LISTEN, "allowed_hosts", STRINGS, allowed_hosts, 0, 0, NULL, CONN, CONF_F_E,   \
	    "names by which it may be reached, beside those of loopback")                \
	X(LISTEN, "allowed_origins", STRINGS, allowed_origins, 0, 0, NULL, CONN,         \
	    CONF_F_E, "origins of web pages that may ask; * for all")                    \
	X(LISTEN, "allow_unauthenticated", BOOL, allow_unauthenticated, 0, 0, "false",   \
	    CONN, 0, "let everybody who reaches it call every tool")                     \
	X(LISTEN, "mode", MODE, mode, 0, 0777, "\"0600\"", CONN, 0,                      \
	    "mode of a unix socket")                                                     \
	X(LISTEN, "group", STRING, group, 0, 0, NULL, CONN, CONF_F_E,                    \
	    "group of a unix socket")                                                    \
                                                                                         \
	X(EXTRA, "name", NAME, name, 0, 0, NULL, UPSTREAM, CONF_F_O,                     \
	    "its name, where that cannot be the name of the group")                      \
	X(UPSTREAM, "command", COMMAND, argv, 0, 0, NULL, UPSTREAM,                      \
	    CONF_F_E | CONF_F_O | CONF_F_P, "the program, looked up in its PATH")        \
	X(UPSTREAM, "args", ARGS, argv, 0, 0, NULL, UPSTREAM,                            \
	    CONF_F_E | CONF_F_O | CONF_F_P, "its arguments")                             \
	X(EXTRA, "env_file", PATH, env_file, 0, 0, NULL, UPSTREAM, CONF_F_E | CONF_F_P,  \
	    "file of NAME=VALUE lines for its environment")                              \
	X(UPSTREAM, "env", ENV, own_env, 0, 0, NULL, UPSTREAM,                           \
	    CONF_F_E | CONF_F_S | CONF_F_P, "variables of its environment")              \
	X(EXTRA, "env_pass", GLOBS, env_pass, 0, 0, NULL, UPSTREAM, CONF_F_E | CONF_F_P, \
	    "patterns of variables of ours that it gets")                                \
	X(UPSTREAM, "cwd", PATH, cwd, 0, 0, NULL, UPSTREAM, CONF_F_E | CONF_F_P,         \
	    "its working folder; none: ours")                                            \
	X(UPSTREAM, "url", URL, url, 0, 0, NULL, UPSTREAM,                               \
	    CONF_F_E | CONF_F_O | CONF_F_R, "the URL of a remote server")                \
	X(UPSTREAM, "transport", TRANSPORT, transport, 0, 0, "\"auto\"", UPSTREAM,       \
	    CONF_F_R, "how it is spoken to; auto finds out")                             \
	X(UPSTREAM, "headers", HEADERS, headers, 0, 0, NULL, UPSTREAM,                   \
	    CONF_F_E | CONF_F_S | CONF_F_R, "headers of each request to it")             \
	X(UPSTREAM, "ca_file", FILE, ca_file, 0, 0, NULL, UPSTREAM, CONF_F_E | CONF_F_R, \
	    "certificates that vouch for it, in place of the system's")                  \
	X(UPSTREAM, "cert_file", FILE, cert_file, 0, 0, NULL, UPSTREAM,                  \
	    CONF_F_E | CONF_F_R, "a certificate of ours that it is shown")               \
	X(UPSTREAM, "key_file", FILE, key_file, 0, 0, NULL, UPSTREAM,                    \
	    CONF_F_E | CONF_F_R, "the key of that; none: it is in the same file")        \
	X(UPSTREAM, "tls_verify", VERIFY, skip_verify, 0, 0, "true", UPSTREAM, CONF_F_R, \
	    "false takes any certificate, also a forged one")                            \
	X(UPSTREAM, "proxy", PROXY, proxy, 0, 0, NULL, UPSTREAM,                         \
	    CONF_F_E | CONF_F_N | CONF_F_R, "URL of a proxy; an empty string for none")  \
	X(UPSTREAM, "connect_ms", MS, connect_ms, 1, 600000, "15000", LIVE, CONF_F_R,    \
	    "for its name, the connection and TLS together")                             \
	X(UPSTREAM, "enabled", BOOL, enabled, 0, 0, "true", LIVE, CONF_F_O,              \
	    "false leaves it out")                                                       \
	X(UPSTREAM, "prefix", PREFIX, prefix, 0, 0, NULL, LIVE, CONF_F_E | CONF_F_N,     \
	    "text before its names; none: its name and two underscores")                 \
	X(UPSTREAM, "uri_prefix", URI_PREFIX, uri_prefix, 0, 0, NULL, LIVE,              \
	    CONF_F_E | CONF_F_O, "text before the URIs of its resources")                \
	X(UPSTREAM, "era", ERA, era, 0, 0, "\"auto\"", UPSTREAM, 0,                      \
	    "revision family to speak; auto asks")                                       \
	X(UPSTREAM, "isolation", ISOLATION, isolation, 0, 0, "\"auto\"", UPSTREAM, 0,    \
	    "who shares one process of it")                                              \
	X(UPSTREAM, "start", START, start, 0, 0, "\"eager\"", LIVE, 0,                   \
	    "when it is started")                                                        \
	X(UPSTREAM, "idle_stop_ms", MS, idle_stop_ms, 0, CONF_WEEK_MS, "0", LIVE, 0,     \
	    "time without use until its process stops; 0 for never")                     \
	X(UPSTREAM, "upstream_failure", FAILURE, failure, 0, 0, "\"error\"", LIVE, 0,    \
	    "what a call to a tool gets when the upstream fails")                        \
	X(UPSTREAM, "rescue_errors", BOOL, rescue_errors, 0, 0, "false", LIVE, 0,        \
	    "make errors of a known tool readable to the model")                         \
	X(UPSTREAM, "roots", ROOTS, roots, 0, 0, "\"auto\"", UPSTREAM, CONF_F_E,         \
	    "which folders it is told of")                                               \
	X(UPSTREAM, "question_ms", MS, question_ms, 1, CONF_DAY_MS, "600000", LIVE, 0,   \
	    "how long a client may take to answer its question")                         \
	X(UPSTREAM, "max_instances", INT, max_instances, 1, 256, "32", LIVE, 0,          \
	    "processes for single clients or calls")                                     \
	X(UPSTREAM, "probe_ms", MS, probe_ms, 1, 600000, "3000", LIVE, 0,                \
	    "how long it is asked in the modern way alone")                              \
	X(UPSTREAM, "start_ms", MS, start_ms, 1, CONF_HOUR_MS, "60000", LIVE, 0,         \
	    "from its start until it has to be ready")                                   \
	X(UPSTREAM, "call_ms", MS, call_ms, 1, CONF_DAY_MS, "300000", LIVE, 0,           \
	    "a call fails after this time without an answer or progress")                \
	X(UPSTREAM, "call_max_ms", MS, call_max_ms, 1, CONF_WEEK_MS, "3600000", LIVE, 0, \
	    "a call fails after this time in any case")                                  \
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
	X(UPSTREAM, "term_ms", MS, term_ms, 0, 600000, "2000", LIVE, 0,                  \
	    "from closing its input to SIGTERM")                                         \
	X(UPSTREAM, "kill_ms", MS, kill_ms, 0, 600000, "3000", LIVE, 0,                  \
	    "from SIGTERM to SIGKILL")                                                   \
	X(UPSTREAM, "tools.allow", PATTERNS, tools.allow, 0, 0, NULL, LIVE, 0,           \
	    "its tools that are offered; none: all")                                     \
	X(UPSTREAM, "tools.deny", PATTERNS, tools.deny, 0, 0, NULL, LIVE, 0,             \
	    "its tools that are not; wins")                                              \
	X(EXTRA, "tools.rename", RENAME, rows, 0, 0, NULL, LIVE, CONF_F_O,               \
	    "other names for its tools")                                                 \
	X(UPSTREAM, "prompts.allow", PATTERNS, prompts.allow, 0, 0, NULL, LIVE, 0,       \
	    "its prompts that are offered; none: all")                                   \
	X(UPSTREAM, "prompts.deny", PATTERNS, prompts.deny, 0, 0, NULL, LIVE, 0,         \
	    "its prompts that are not; wins")                                            \
	X(UPSTREAM, "resources.allow", PATTERNS, resources.allow, 0, 0, NULL, LIVE, 0,   \
	    "its resources that are offered, by URI; none: all")                         \
	X(UPSTREAM, "resources.deny", PATTERNS, resources.deny, 0, 0, NULL, LIVE, 0,     \
	    "its resources that are not; wins")                                          \
	X(EXTRA, "tool", TOOLS, rows, 0, 0, NULL, LIVE, CONF_F_O,                        \
	    "tools seen otherwise than it offers them")                                  \
                                                                                         \
	X(SHAPE, "tool", NAME, tool, 0, 0, NULL, LIVE, CONF_F_Q,                         \
	    "the tool, as its upstream calls it")                                        \
	X(SHAPE, "name", NAME, name, 0, 0, NULL, LIVE, 0, "another name for it")         \
	X(SHAPE, "description", STRING, description, 0, 0, NULL, LIVE, 0,                \
	    "another description")                                                       \
	X(SHAPE, "fixed", JSON, fixed, 0, 0, NULL, LIVE, CONF_F_E,                       \
	    "arguments that clients neither see nor choose")                             \
	X(SHAPE, "defaults", JSON, defaults, 0, 0, NULL, LIVE, CONF_F_E,                 \
	    "arguments for clients that give none; not seen either")                     \
	X(SHAPE, "call_ms", MS, call_ms, 1, CONF_DAY_MS, NULL, LIVE, 0,                  \
	    "call_ms of this tool; none: its upstream's")                                \
	X(SHAPE, "call_max_ms", MS, call_max_ms, 1, CONF_WEEK_MS, NULL, LIVE, 0,         \
	    "call_max_ms of this tool; none: its upstream's")                            \
                                                                                         \
	X(PROFILE, "upstreams", GLOBS, upstreams, 0, 0, NULL, LIVE, 0,                   \
	    "patterns of upstreams that it shows; none: all")                            \
	X(PROFILE, "tools.allow", PATTERNS, tools.allow, 0, 0, NULL, LIVE, 0,            \
	    "published tools that it shows; none: all")                                  \
	X(PROFILE, "tools.deny", PATTERNS, tools.deny, 0, 0, NULL, LIVE, 0,              \
	    "published tools that it does not; wins")                                    \
	X(PROFILE, "prompts.allow", PATTERNS, prompts.allow, 0, 0, NULL, LIVE, 0,        \
	    "published prompts that it shows; none: all")                                \
	X(PROFILE, "prompts.deny", PATTERNS, prompts.deny, 0, 0, NULL, LIVE, 0,          \
	    "published prompts that it does not; wins")                                  \
	X(PROFILE, "resources.allow", PATTERNS, resources.allow, 0, 0, NULL, LIVE, 0,    \
	    "resources that it shows, by URI; none: all")                                \
	X(PROFILE, "resources.deny", PATTERNS, resources.deny, 0, 0, NULL, LIVE, 0,      \
	    "resources that it does not; wins")

#endif
