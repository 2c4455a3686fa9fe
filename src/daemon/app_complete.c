/* SPDX-License-Identifier: MIT */
/*
 * completion: what makes a shell complete our commands, out of their tables.
 *
 * Driven by: main.
 * Invariants: a command or option that is a row is completed; nothing is named here.
 */
#include "app_priv.h"

#include <stdio.h>
#include <string.h>

typedef void shell_fn(void);

/* "--a --b" of one command. */
static void
put_options(const struct command *c, const char *before, const char *between)
{
	const char *sep = before;

	for (const struct app_option *o = app_options; o->name != NULL; o++) {
		if (!app_command_has(c, o->name))
			continue;
		(void)printf("%s--%s", sep, o->name);
		sep = between;
	}
}

/* What an argument may be, out of "a|b|c"; NULL: anything. Good until the next call. */
static const char *
words_of(const struct command *c)
{
	static char words[128];
	size_t n = strlen(c->args);

	if (strchr(c->args, '|') == NULL || n >= sizeof(words) ||
	    strspn(c->args, "abcdefghijklmnopqrstuvwxyz|") != n)
		return NULL;
	for (size_t i = 0; i <= n; i++)
		words[i] = c->args[i] == '|' ? ' ' : c->args[i];
	return words;
}

static void
put_commands(void)
{
	const char *sep = "";

	for (const struct command *c = app_commands; c->name != NULL; c++) {
		if (c->hidden)
			continue;
		(void)printf("%s%s", sep, c->name);
		sep = " ";
	}
}

static void
complete_bash(void)
{
	(void)printf("# bash completion for mcpvisor\n"
		     "_mcpvisor() {\n"
		     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} "
		     "prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		     "\tCOMPREPLY=()\n"
		     "\tcase $prev in\n");
	for (const struct app_option *o = app_options; o->name != NULL; o++) {
		if (o->complete == NULL)
			continue;
		if (strcmp(o->complete, "file") == 0)
			(void)printf("\t--%s) mapfile -t COMPREPLY < <(compgen -f -- "
				     "\"$cur\"); return ;;\n",
			    o->name);
		else
			(void)printf(
			    "\t--%s) mapfile -t COMPREPLY < <(compgen -W '%s' -- "
			    "\"$cur\"); return ;;\n",
			    o->name, o->complete);
	}
	(void)printf("\tesac\n\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
		     "\t\tmapfile -t COMPREPLY < <(compgen -W '");
	put_commands();
	(void)printf("' -- \"$cur\")\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n");
	for (const struct command *c = app_commands; c->name != NULL; c++) {
		const char *words = words_of(c);

		if (c->hidden || (c->options[0] == '\0' && words == NULL))
			continue;
		(void)printf("\t%s) mapfile -t COMPREPLY < <(compgen -W '%s", c->name,
		    words != NULL ? words : "");
		put_options(c, words != NULL ? " " : "", " ");
		(void)printf("' -- \"$cur\") ;;\n");
	}
	(void)printf("\tesac\n}\ncomplete -F _mcpvisor mcpvisor\n");
}

/* Help goes between single quotes. */
static void
put_quoted(const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s == '\'')
			(void)printf("'\\''");
		else
			(void)putchar(*s);
	}
}

static void
zsh_arguments(const struct command *c, const char *words)
{
	(void)printf("\t%s) _arguments", c->name);
	for (const struct app_option *o = app_options; o->name != NULL; o++) {
		if (!app_command_has(c, o->name))
			continue;
		(void)printf(" '*--%s", o->name);
		if (app_option_has_value(c, o))
			(void)printf(":%s:", o->metavar != NULL ? o->metavar : "VALUE");
		if (o->complete != NULL && strcmp(o->complete, "file") == 0)
			(void)printf("_files");
		else if (o->complete != NULL)
			(void)printf("(%s)", o->complete);
		(void)printf("'");
	}
	if (words != NULL)
		(void)printf(" '2: :(%s)' ;;\n", words);
	else
		(void)printf(" '*: :_files' ;;\n");
}

static void
complete_zsh(void)
{
	(void)printf("#compdef mcpvisor\n_mcpvisor() {\n\tlocal -a commands\n"
		     "\tcommands=(\n");
	for (const struct command *c = app_commands; c->name != NULL; c++) {
		if (c->hidden)
			continue;
		(void)printf("\t\t'%s:", c->name);
		put_quoted(c->help);
		(void)printf("'\n");
	}
	(void)printf("\t)\n\tif (( CURRENT == 2 )); then\n"
		     "\t\t_describe command commands\n\t\treturn\n\tfi\n"
		     "\tcase $words[2] in\n");
	for (const struct command *c = app_commands; c->name != NULL; c++) {
		const char *words = words_of(c);

		if (c->hidden || (c->options[0] == '\0' && words == NULL))
			continue;
		zsh_arguments(c, words);
	}
	(void)printf("\tesac\n}\n_mcpvisor \"$@\"\n");
}

static void
complete_fish(void)
{
	(void)printf("# fish completion for mcpvisor\ncomplete -c mcpvisor -f\n");
	for (const struct command *c = app_commands; c->name != NULL; c++) {
		if (c->hidden)
			continue;
		(void)printf(
		    "complete -c mcpvisor -n __fish_use_subcommand -a %s -d '", c->name);
		put_quoted(c->help);
		(void)printf("'\n");
		if (words_of(c) != NULL)
			(void)printf(
			    "complete -c mcpvisor -n '__fish_seen_subcommand_from "
			    "%s' -a '%s'\n",
			    c->name, words_of(c));
		for (const struct app_option *o = app_options; o->name != NULL; o++) {
			if (!app_command_has(c, o->name))
				continue;
			(void)printf(
			    "complete -c mcpvisor -n '__fish_seen_subcommand_from "
			    "%s' -l %s",
			    c->name, o->name);
			if (o->complete != NULL && strcmp(o->complete, "file") == 0)
				(void)printf(" -r -F");
			else if (app_option_has_value(c, o))
				(void)printf(" -x");
			if (o->complete != NULL && strcmp(o->complete, "file") != 0)
				(void)printf(" -a '%s'", o->complete);
			(void)printf("\n");
		}
	}
}

static const struct {
	const char *name;
	shell_fn *put;
} shells[] = {{"bash", complete_bash}, {"zsh", complete_zsh}, {"fish", complete_fish}};

int
run_completion(struct app *a)
{
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(shells[i].name, a->argv[0]) != 0)
			continue;
		shells[i].put();
		return CLI_OK;
	}
	(void)app_usage_error(a, "the shell is bash, zsh or fish, not", a->argv[0]);
	return CLI_USAGE;
}
