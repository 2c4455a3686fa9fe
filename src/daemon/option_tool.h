/* SPDX-License-Identifier: MIT */
/* Options of tools and of their parameters; see option_table.h. */
#ifndef MCPVISOR_OPTION_TOOL_H
#define MCPVISOR_OPTION_TOOL_H

#define CONF_ROWS_TOOL(X)                                                                \
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
	X(SHAPE, "graphql", GRAPHQL, label.mode, 0, 0, NULL, LIVE,                       \
	    CONF_K_SERVER | CONF_K_RUN, "graphql of this tool; none: its upstream's")    \
	X(SHAPE, "graphql_survival", SURVIVAL, label.survival, 0, 0, NULL, LIVE, 0,      \
	    "graphql_survival of this tool; none: its upstream's")                       \
	X(SHAPE, "graphql_root", POINTER, label.root, 0, 0, NULL, LIVE, CONF_F_N,        \
	    "graphql_root of this tool; none: its upstream's")                           \
	X(SHAPE, "graphql_annotate", ANNOTATE, label.annotate, 0, 0, NULL, LIVE, 0,      \
	    "graphql_annotate of this tool; none: its upstream's")                       \
	X(SHAPE, "graphql_max_bytes", SIZE, label.max_bytes, 1, CAP_MESSAGE_BYTES, NULL, \
	    LIVE, 0, "graphql_max_bytes of this tool; none: its upstream's")             \
	X(SHAPE, "fail_if", RULES, label.rules, 0, 0, NULL, LIVE, 0,                     \
	    "fail_if of this tool; none: its upstream's")                                \
	X(SHAPE, "probe_args", JSON, probe_args, 0, 0, NULL, LIVE, CONF_F_E,             \
	    "arguments for the call of mcpvisor probe")                                  \
	X(SHAPE, "read_only", HINT, hints.read_only, 0, 0, NULL, UPSTREAM, CONF_K_OWN,   \
	    "it changes nothing")                                                        \
	X(SHAPE, "destructive", HINT, hints.destructive, 0, 0, NULL, UPSTREAM,           \
	    CONF_K_OWN, "it may destroy something")                                      \
	X(SHAPE, "idempotent", HINT, hints.idempotent, 0, 0, NULL, UPSTREAM, CONF_K_OWN, \
	    "the same call again changes nothing more")                                  \
	X(SHAPE, "open_world", HINT, hints.open_world, 0, 0, NULL, UPSTREAM, CONF_K_OWN, \
	    "it speaks to the world outside")                                            \
	X(SHAPE, "command", PROGRAM, exec.command, 0, 0, NULL, UPSTREAM,                 \
	    CONF_F_E | CONF_K_EXEC, "the program that it runs, as an absolute path")     \
	X(SHAPE, "args", TEMPLATE, exec.args, 0, 0, NULL, UPSTREAM, CONF_K_EXEC,         \
	    "arguments of the program, with {name} where a parameter's value goes")      \
	X(SHAPE, "params", PARAMS, exec.params, 0, 0, NULL, UPSTREAM, CONF_K_EXEC,       \
	    "its parameters")                                                            \
	X(SHAPE, "input_schema", SCHEMA_FILE, exec.schema_file, 0, 0, NULL, UPSTREAM,    \
	    CONF_F_E | CONF_K_EXEC,                                                      \
	    "file with a JSON Schema of its parameters, in place of params")             \
	X(SHAPE, "stdin", INPUT, exec.input, 0, 0, NULL, UPSTREAM, CONF_K_EXEC,          \
	    "what the program reads: none, json (the arguments as they come) or {name}") \
	X(SHAPE, "output", EXEC_OUT, exec.output, 0, 0, "\"text\"", UPSTREAM,            \
	    CONF_K_EXEC, "what the program writes")                                      \
	X(SHAPE, "mime", MIME, exec.mime, 0, 0, NULL, UPSTREAM, CONF_K_EXEC,             \
	    "type of what it writes, if output is base64")                               \
	X(SHAPE, "success_exit", STATUSES, exec.success, 0, 255, NULL, UPSTREAM,         \
	    CONF_K_EXEC, "exit statuses that are no failure; none: 0")                   \
	X(SHAPE, "timeout_ms", MS, exec.limits.timeout_ms, 1, CONF_DAY_MS, NULL,         \
	    UPSTREAM, CONF_K_EXEC, "timeout_ms of this tool; none: its upstream's")      \
	X(SHAPE, "stop_ms", MS, exec.limits.stop_ms, 1, 600000, NULL, UPSTREAM,          \
	    CONF_K_EXEC, "stop_ms of this tool; none: its upstream's")                   \
	X(SHAPE, "output_max", SIZE, exec.limits.output_max, 1, 16777216, NULL,          \
	    UPSTREAM, CONF_K_EXEC, "output_max of this tool; none: its upstream's")      \
	X(SHAPE, "stderr", EXEC_ERR, exec.limits.err, 0, 0, NULL, UPSTREAM, CONF_K_EXEC, \
	    "stderr of this tool; none: its upstream's")                                 \
	X(SHAPE, "overflow", EXEC_OVER, exec.limits.overflow, 0, 0, NULL, UPSTREAM,      \
	    CONF_K_EXEC, "overflow of this tool; none: its upstream's")

#define CONF_ROWS_PARAM(X)                                                               \
	X(PARAM, "type", PARAM_TYPE, type, 0, 0, "\"string\"", UPSTREAM, 0,              \
	    "what it is; an array is one of strings")                                    \
	X(PARAM, "description", STRING, description, 0, 0, NULL, UPSTREAM, 0,            \
	    "its description")                                                           \
	X(PARAM, "required", BOOL, is_required, 0, 0, "false", UPSTREAM, 0,              \
	    "a call without it is refused")                                              \
	X(PARAM, "default", VALUE, dflt, 0, 0, NULL, UPSTREAM, 0,                        \
	    "its value where a call has none")                                           \
	X(PARAM, "min", NUMBER, min_text, 0, 0, NULL, UPSTREAM, 0, "lowest number")      \
	X(PARAM, "max", NUMBER, max_text, 0, 0, NULL, UPSTREAM, 0, "highest number")     \
	X(PARAM, "min_length", INT, min_length, 1, 1048576, NULL, UPSTREAM, 0,           \
	    "fewest characters of a string, or of each in an array")                     \
	X(PARAM, "max_length", INT, max_length, 1, 1048576, NULL, UPSTREAM, 0,           \
	    "most characters of a string, or of each in an array")                       \
	X(PARAM, "pattern", REGEX, pattern, 0, 0, NULL, UPSTREAM, 0,                     \
	    "regular expression that a whole string has to fit, or each in an array")    \
	X(PARAM, "enum", WORDS, values, 0, 0, NULL, UPSTREAM, 0,                         \
	    "what a string may be, or each in an array")                                 \
	X(PARAM, "max_items", INT, max_items, 1, 65536, NULL, UPSTREAM, 0,               \
	    "most elements of an array")                                                 \
	X(RULE, "path", PATH, root, 0, 0, NULL, UPSTREAM, CONF_F_E,                      \
	    "it is a path below this folder, or each in an array is")                    \
	X(RULE, "dash", BOOL, may_dash, 0, 0, "false", UPSTREAM, 0,                      \
	    "it may begin with - wherever it stands")                                    \
	X(PARAM, "secret", BOOL, is_secret, 0, 0, "false", UPSTREAM, 0,                  \
	    "no error shows its value")

#endif
