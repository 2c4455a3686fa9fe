/* SPDX-License-Identifier: MIT */
/* What programs an upstream of the kinds exec and shell runs: plain data, owned by
 * whoever parsed it. */
#ifndef MCPVISOR_EXEC_CONF_H
#define MCPVISOR_EXEC_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/argspec.h"

enum exec_arg_kind {
	EXEC_ARG_PLAIN,	   /* one element */
	EXEC_ARG_OPTIONAL, /* the same, if each of its placeholders has a value */
	EXEC_ARG_EACH	   /* "{name}": one element for each item of that array */
};
struct exec_arg {
	enum exec_arg_kind kind;
	char *text; /* with {name}; {{ and }} are braces */
};

/* A piece of such a text. */
struct exec_piece {
	const char *p; /* literal bytes, or the name in a placeholder */
	size_t n;
	bool is_name;
	bool is_bad; /* a brace without a partner, or without a name */
};
/* Takes the next one from *at. False: that was the end. */
bool exec_piece_next(const char **at, struct exec_piece *piece);

/* What a parameter is beyond its argspec. */
struct exec_param {
	char *name;
	char *root;    /* it is a path below this folder; NULL: it is none */
	bool may_dash; /* its value may begin with - wherever it stands */
};

enum exec_output { EXEC_OUTPUT_TEXT, EXEC_OUTPUT_JSON, EXEC_OUTPUT_BASE64 };
enum exec_stderr {
	EXEC_STDERR_INHERIT,
	EXEC_STDERR_DROP,
	EXEC_STDERR_LOG,
	EXEC_STDERR_ON_ERROR,
	EXEC_STDERR_MERGE
};
enum exec_overflow { EXEC_OVERFLOW_INHERIT, EXEC_OVERFLOW_CUT, EXEC_OVERFLOW_KILL };
/* Words of files, in that order, "" for INHERIT, NULL-terminated. */
extern const char *const exec_output_words[], *const exec_stderr_words[],
						  *const exec_overflow_words[];

/* How a program is run; 0, NULL and INHERIT: as its upstream says. */
struct exec_limits {
	uint32_t timeout_ms;	     /* 30000 */
	uint32_t stop_ms;	     /* 2000: from TERM to KILL */
	uint64_t output_max;	     /* 262144 */
	enum exec_stderr err;	     /* ON_ERROR */
	enum exec_overflow overflow; /* CUT */
};

/* One tool of kind exec. */
struct exec_tool {
	char *command; /* absolute; NULL: the row is of another kind */
	struct exec_arg *args;
	size_t n_args;
	char *input;		/* "json", "{name}"; NULL or "none": nothing */
	struct argspec *params; /* an object; NULL: it takes nothing */
	char *schema_file;	/* that params was read from; NULL: none */
	struct exec_param *rules;
	size_t n_rules;
	enum exec_output output;
	char *mime;   /* BASE64: image/... or audio/... */
	int *success; /* exit statuses; NULL: 0 */
	size_t n_success;
	struct exec_limits limits;
};
void exec_tool_fini(struct exec_tool *t);
/* Of its parameter of that name; NULL: it is as any. */
const struct exec_param *exec_tool_rule(const struct exec_tool *t, const char *name);

/* Limits of the processes; 0: none. */
struct exec_rlimits {
	uint32_t cpu_s;	      /* 60 */
	uint64_t as_bytes;    /* 512 MiB */
	uint32_t nofile;      /* 64 */
	uint32_t nproc;	      /* 0: it counts what else the user runs */
	uint64_t fsize_bytes; /* 64 MiB */
};

/* Of the upstream. */
struct exec_conf {
	/* Kind shell: functions tool_NAME of a file, and the tools as a JSON file. */
	char *file, *tools_file, *interpreter;
	char *user; /* NULL: ours */
	struct exec_limits limits;
	struct exec_rlimits rlimits;
	uint32_t concurrency; /* 4 */
	uint32_t queue;	      /* 16: that wait for one of those */
};
void exec_conf_fini(struct exec_conf *c);

#endif
