/* SPDX-License-Identifier: MIT */
/*
 * The commands "tools" and "call": a small MCP client inside the process that
 * speaks to our own endpoint over a pair of descriptors, then prints.
 */
#ifndef MCPVISOR_CLI_H
#define MCPVISOR_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cli;
struct loop;

/* Exit codes of both commands. */
enum cli_exit {
	CLI_OK = 0,
	CLI_TOOL_ERROR = 1, /* the tool answered with isError */
	CLI_USAGE = 2,	    /* the command line is wrong */
	CLI_CONF = 3,	    /* the file of upstreams is wrong */
	CLI_PARAMS = 4,	    /* unknown tool, or arguments that it does not take */
	CLI_UPSTREAM = 5,   /* the upstream failed, no answer came in time, or what
			     * was to be printed could not be */
	CLI_NOTHING = 6	    /* not one tool could be listed */
};

/* All strings stay valid as long as the cli. */
struct cli_opts {
	const char *tool;	  /* published name; NULL: list the tools */
	const char *const *pairs; /* its arguments as "key=value" ... */
	size_t n_pairs;
	const char *args; /* ... or as the text of one JSON object; NULL: pairs */
	bool json;	  /* print JSON: the definitions, or the result, as they came */
	FILE *out, *err;
	unsigned width; /* to cut tables to; 0: not at all. See cli_width */
	/* How many upstreams are still on their way; what is missing from the list may
	 * come with them, for which wait_ms (0: 60000) is spent at most. May be NULL. */
	unsigned (*starting)(void *arg);
	void *starting_arg;
	uint32_t wait_ms;
};

/* Looks at the arguments before anything is started: CLI_OK or CLI_USAGE, with a text
 * on err. */
enum cli_exit cli_check(const struct cli_opts *o);
/* COLUMNS, else the width of the terminal, else 0. */
unsigned cli_width(FILE *out);
/* The number of columns, each character counted as one. */
unsigned cli_text_columns(const char *s, size_t n);
/* Prints at most columns of s (0: all) on one line, control bytes as '?'. */
void cli_print_cut(FILE *out, const char *s, size_t n, unsigned columns);

/* Gets out what was printed; says on err what kept it, unless that is a reader who has
 * gone. Returns code, but CLI_UPSTREAM for CLI_OK if something was lost. */
int cli_flush(FILE *out, FILE *err, int code);

/* Starts the exchange; rfd and wfd (may be equal) are taken. done comes once, never
 * before cli_new has returned; the cli may be freed in it. */
struct cli *cli_new(struct loop *l, const struct cli_opts *o, int rfd, int wfd,
    void (*done)(void *arg, int exit_code), void *arg);
void cli_free(struct cli *c); /* NULL is allowed; done does not come after */

#endif
