/* SPDX-License-Identifier: MIT */
/* Options of upstreams that make their tools themselves; see option_table.h. */
#ifndef MCPVISOR_OPTION_OWN_H
#define MCPVISOR_OPTION_OWN_H

#define CONF_ROWS_OWN(X)                                                                 \
	X(OWN, "operations", PATHS, graphql.operations, 0, 0, NULL, UPSTREAM,            \
	    CONF_F_E | CONF_F_O | CONF_K_GRAPHQL,                                        \
	    "files of operations, one tool each; * and ? in their names")                \
	X(OWN, "schema", SCHEMA, graphql.schema, 0, 0, "\"introspect\"", UPSTREAM,       \
	    CONF_F_E | CONF_F_O | CONF_K_GRAPHQL,                                        \
	    "where its schema is from: introspect, none, or the path of a file")         \
	X(OWN, "schema_cache", PATH, graphql.cache, 0, 0, NULL, UPSTREAM,                \
	    CONF_F_E | CONF_F_O | CONF_K_GRAPHQL,                                        \
	    "file for the last good schema, used when the endpoint is down")             \
	X(OWN, "schema_refresh_ms", MS, graphql.refresh_ms, 0, CONF_WEEK_MS, "600000",   \
	    UPSTREAM, CONF_K_GRAPHQL,                                                    \
	    "how often the schema is asked for again; 0 for never")                      \
	X(OWN, "fields", GLOBS, graphql.fields, 0, 0, NULL, UPSTREAM,                    \
	    CONF_F_O | CONF_K_GRAPHQL,                                                   \
	    "patterns such as Query.user of fields that become tools; none: no field "   \
	    "does")                                                                      \
	X(OWN, "mutations", MUTATIONS, graphql.mutations, 0, 0, "\"none\"", UPSTREAM,    \
	    CONF_K_GRAPHQL, "which mutations become tools")                              \
	X(OWN, "execute_tool", EXECUTE, graphql.execute, 0, 0, "\"off\"", UPSTREAM,      \
	    CONF_K_GRAPHQL, "a tool that runs what the model writes")                    \
	X(OWN, "name_style", NAMES, graphql.names, 0, 0, "\"keep\"", UPSTREAM,           \
	    CONF_K_GRAPHQL, "how its tools are named after operations and fields")       \
	X(OWN, "max_tools", INT, graphql.max_tools, 1, 10000, "64", UPSTREAM,            \
	    CONF_K_GRAPHQL, "most tools of it; it does not start with more")             \
	X(OWN, "depth", INT, graphql.depth, 1, 16, "2", UPSTREAM, CONF_K_GRAPHQL,        \
	    "levels of objects that a tool made of a field selects")                     \
	X(OWN, "max_fields", INT, graphql.max_fields, 1, 10000, "60", UPSTREAM,          \
	    CONF_K_GRAPHQL, "most fields that such a tool selects")                      \
	X(OWN, "request_ms", MS, graphql.timeout_ms, 1, CONF_HOUR_MS, "30000", UPSTREAM, \
	    CONF_K_GRAPHQL, "from a request to the end of its answer")                   \
	X(OWN, "response_max", SIZE, graphql.response_max, 1, CAP_MESSAGE_BYTES,         \
	    "4194304", UPSTREAM, CONF_K_GRAPHQL, "longest answer")                       \
	X(OWN, "max_inflight", INT, graphql.inflight, 1, 1000, "16", UPSTREAM,           \
	    CONF_K_GRAPHQL, "requests at a time")                                        \
	X(OWN, "structured", VERIFY, graphql.plain, 0, 0, "true", UPSTREAM,              \
	    CONF_K_GRAPHQL, "results have structuredContent beside the text")            \
	X(OWN, "output_schema", BOOL, graphql.output_schema, 0, 0, "false", UPSTREAM,    \
	    CONF_K_GRAPHQL, "its tools have an outputSchema")                            \
	X(OWN, "scalars", JSON, graphql.scalars, 0, 0, NULL, UPSTREAM, CONF_K_GRAPHQL,   \
	    "JSON Schemas of its own scalar types, by name")                             \
	X(OWN, "file", PATH, exec.file, 0, 0, NULL, UPSTREAM,                            \
	    CONF_F_E | CONF_F_O | CONF_K_SHELL,                                          \
	    "shell file whose functions tool_NAME are its tools")                        \
	X(OWN, "tools_file", PATH, exec.tools_file, 0, 0, NULL, UPSTREAM,                \
	    CONF_F_E | CONF_F_O | CONF_K_SHELL,                                          \
	    "JSON file with the definitions of the tools")                               \
	X(OWN, "interpreter", PROGRAM, exec.interpreter, 0, 0, "\"/bin/bash\"",          \
	    UPSTREAM, CONF_F_E | CONF_K_SHELL, "the shell that runs the file")           \
	X(OWN, "user", USER, exec.user, 0, 0, NULL, UPSTREAM, CONF_F_E | CONF_K_RUN,     \
	    "user that programs run as; none: ours")                                     \
	X(OWN, "max_concurrency", INT, exec.concurrency, 1, 256, "4", UPSTREAM,          \
	    CONF_K_RUN, "programs that run at a time")                                   \
	X(OWN, "max_queue", INT, exec.queue, 0, 65536, "16", UPSTREAM, CONF_K_RUN,       \
	    "calls that wait for one of those; one more fails at once")                  \
	X(OWN, "timeout_ms", MS, exec.limits.timeout_ms, 1, CONF_DAY_MS, "30000",        \
	    UPSTREAM, CONF_K_RUN, "a program that runs longer is stopped")               \
	X(OWN, "stop_ms", MS, exec.limits.stop_ms, 1, 600000, "2000", UPSTREAM,          \
	    CONF_K_RUN, "from its SIGTERM to SIGKILL")                                   \
	X(OWN, "output_max", SIZE, exec.limits.output_max, 1, 16777216, "262144",        \
	    UPSTREAM, CONF_K_RUN, "most bytes of its output that are kept")              \
	X(OWN, "stderr", EXEC_ERR, exec.limits.err, 0, 0, "\"on_error\"", UPSTREAM,      \
	    CONF_K_RUN, "what becomes of its standard error")                            \
	X(OWN, "overflow", EXEC_OVER, exec.limits.overflow, 0, 0, "\"cut\"", UPSTREAM,   \
	    CONF_K_RUN, "what becomes of one that writes more than output_max")          \
	X(OWN, "rlimits.cpu_s", SECONDS, exec.rlimits.cpu_s, 0, 86400, "60", UPSTREAM,   \
	    CONF_K_RUN, "processor time of a program, in seconds; 0 for no limit")       \
	X(OWN, "rlimits.as", SIZE, exec.rlimits.as_bytes, 0, 1ull << 50, "536870912",    \
	    UPSTREAM, CONF_K_RUN, "its address space; 0 for no limit")                   \
	X(OWN, "rlimits.nofile", INT, exec.rlimits.nofile, 0, 1048576, "64", UPSTREAM,   \
	    CONF_K_RUN, "its open files; 0 for no limit")                                \
	X(OWN, "rlimits.nproc", INT, exec.rlimits.nproc, 0, 4194304, "0", UPSTREAM,      \
	    CONF_K_RUN, "processes of its user, whoever started them; 0 for no limit")   \
	X(OWN, "rlimits.fsize", SIZE, exec.rlimits.fsize_bytes, 0, 1ull << 50,           \
	    "67108864", UPSTREAM, CONF_K_RUN,                                            \
	    "longest file that it writes; 0 for no limit")                               \
	X(EXTRA, "tool", TOOLS, rows, 0, 0, NULL, LIVE, CONF_F_O,                        \
	    "tools seen otherwise than it offers them, or made here")

#endif
