/* SPDX-License-Identifier: MIT */
/* Options of the whole, of endpoints and of profiles; see option_table.h. */
#ifndef MCPVISOR_OPTION_MAIN_H
#define MCPVISOR_OPTION_MAIN_H

#define CONF_ROWS_MAIN(X)                                                                \
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
	X(CONF, "probe.file", PATH, probe.file, 0, 0, NULL, LIVE, CONF_F_E,              \
	    "what mcpvisor probe has found out of tools")                                \
	X(CONF, "probe.timeout_ms", MS, probe.timeout_ms, 1, CONF_HOUR_MS, "10000",      \
	    LIVE, 0, "how long mcpvisor probe waits for a result")                       \
	X(CONF, "probe.sample_max", SIZE, probe.sample_max, 1, 1048576, "4096", LIVE, 0, \
	    "most bytes of a result that it writes down")                                \
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
	    "views that endpoints show")

#define CONF_ROWS_LISTEN(X)                                                              \
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
	    "group of a unix socket")

#define CONF_ROWS_PROFILE(X)                                                             \
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
