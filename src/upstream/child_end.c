/* SPDX-License-Identifier: MIT */
/*
 * How a process ended, in words.
 *
 * Owns: nothing.
 * Driven by: child, with the facts.
 * Invariants: the reason and the error's text are never cut away by what the
 * operator (command, PATH) or the child (stderr) made long; what clients are told has
 * no path, and of stderr one short line at most.
 */
#include "child_priv.h"

#include "mcpvisor/utf8.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define CHILD_COMMAND_SHOWN 100
#define CHILD_COMMAND_TOLD  64
#define CHILD_LAST_TOLD	    64
#define CHILD_PATH_SHOWN    200
#define CHILD_LAST_MIN	    8 /* a shorter piece of the last line says nothing */

static const char *
child_errno_text(int errnum)
{
	const char *text = strerrordesc_np(errnum);

	return text != NULL ? text : "unknown error";
}

static const char *
child_spawn_why(const struct child_fate *f)
{
	if (f->step == SPAWN_STEP_NONE && f->fork_err != MV_SYSTEM)
		return mv_err_text(f->fork_err);
	return child_errno_text(f->errnum);
}

/* A command that is looked for has a name, another one a path. */
static void
child_tell_spawn(struct child_end *end, const struct child_fate *f)
{
	const char *name = f->spec->argv[0];

	if (strchr(name, '/') != NULL)
		name = "its command";
	(void)snprintf(end->told, sizeof(end->told), "%s%s %.*s: %s",
	    spawn_step_text(f->step), f->step == SPAWN_STEP_EXEC ? "" : " for",
	    CHILD_COMMAND_TOLD, name, child_spawn_why(f));
}

static void
child_describe_spawn(struct child_end *end, const struct child_fate *f)
{
	const char *path = f->spec->path != NULL ? f->spec->path : "default";
	const char *why = child_spawn_why(f);
	char dir[CHILD_PATH_SHOWN + 32] = "";

	if (f->step == SPAWN_STEP_CWD)
		(void)snprintf(dir, sizeof(dir), " to %.*s", CHILD_PATH_SHOWN,
		    f->spec->cwd != NULL ? f->spec->cwd : ".");
	(void)snprintf(end->text, sizeof(end->text), "%s%s%s %.*s (PATH=%.*s%s): %s",
	    spawn_step_text(f->step), dir, f->step == SPAWN_STEP_EXEC ? "" : " for",
	    CHILD_COMMAND_SHOWN, f->spec->argv[0],
	    dir[0] != '\0' ? CHILD_PATH_SHOWN / 2 : CHILD_PATH_SHOWN, path,
	    strlen(path) > CHILD_PATH_SHOWN ? "..." : "", why);
}

static void
child_describe_status(struct child_end *end, int status)
{
	const char *text;

	if (status == CHILD_STATUS_NONE) {
		(void)snprintf(end->text, sizeof(end->text), "did not end when killed");
	} else if (WIFSIGNALED(status)) {
		text = sigdescr_np(WTERMSIG(status));
		(void)snprintf(end->text, sizeof(end->text), "killed by signal %d (%s)",
		    WTERMSIG(status), text != NULL ? text : "unknown");
	} else {
		(void)snprintf(end->text, sizeof(end->text), "exited with status %d",
		    WEXITSTATUS(status));
	}
}

/* Escaping makes it up to four times as long: less of it until it fits. */
static void
child_describe_last(struct child_end *end, const char *last, size_t len)
{
	size_t used = strlen(end->text);
	const char *text = NULL;
	bool cut = false;

	while (len > 0) {
		text = log_escape(last, len);
		if (strlen(text) + sizeof("; last on stderr: ...") <=
		    sizeof(end->text) - used)
			break;
		cut = true;
		len = len > CHILD_LAST_MIN ? len - len / 4 : 0;
	}
	if (len > 0)
		(void)snprintf(end->text + used, sizeof(end->text) - used,
		    "; last on stderr: %s%s", text, cut ? "..." : "");
}

/* Where a program came from is nobody's but the operator's to know. */
static bool
line_is_of_stack(const char *line, size_t len)
{
	static const char *const frames[] = {
	    "at ", "File \"", "from ", "Traceback", "goroutine ", "#", "stack"};

	while (len > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		if (len >= strlen(frames[i]) &&
		    strncmp(line, frames[i], strlen(frames[i])) == 0)
			return true;
	return false;
}

static void
child_tell_last(struct child_end *end, const char *last, size_t len)
{
	size_t used = strlen(end->told);
	bool cut = len > CHILD_LAST_TOLD;

	if (len == 0 || line_is_of_stack(last, len))
		return;
	(void)snprintf(end->told + used, sizeof(end->told) - used,
	    "; last on stderr: %s%s",
	    log_escape(last, utf8_cut(last, len, CHILD_LAST_TOLD)), cut ? "..." : "");
}

void
child_end_describe(struct child_end *end, const struct child_fate *f)
{
	end->err = f->err;
	end->is_clean = f->err != MV_SPAWN && f->status == 0;
	if (f->err == MV_SPAWN) {
		child_describe_spawn(end, f);
		child_tell_spawn(end, f);
	} else {
		child_describe_status(end, f->status);
		(void)snprintf(end->told, sizeof(end->told), "%.*s",
		    (int)sizeof(end->told) - 1, end->text);
	}
	child_describe_last(end, f->last, f->last_len);
	child_tell_last(end, f->last, f->last_len);
}
