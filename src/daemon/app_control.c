/* SPDX-License-Identifier: MIT */
/*
 * status, restart and reload: words with the running daemon.
 *
 * Driven by: main.
 * Invariants: exit codes are those of every command; what is not asked for in JSON is
 * for people, and no control byte of an upstream gets to their terminal.
 */
#include "app_priv.h"

#include "app_status.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/control.h"
#include "mcpvisor/mem.h"

#include <string.h>

#include <jansson.h>

const char *
app_control_path(const struct app *a, char *out, size_t size)
{
	const char *path = control_default_path(out, size);

	/* Of one that was named its own error says most. */
	if (a->socket != NULL)
		return a->socket;
	if (path != NULL && control_is_there(path))
		return path;
	/* A user may ask the service of the machine as well. */
	return control_is_there(CONTROL_SYSTEM_PATH) ? CONTROL_SYSTEM_PATH : NULL;
}

/* The answer's object, or NULL after its error was printed; *code says what to exit
 * with. */
static json_t *
control_say(struct app *a, json_t *request, int *code)
{
	char text[512], *line = json_dumps(request, JSON_COMPACT);
	const char *path = app_control_path(a, text, sizeof(text)), *what;
	struct mv_errtext et = {.line = 0};
	json_t *answer = NULL;
	struct buf reply;

	json_decref(request);
	*code = CLI_UPSTREAM;
	buf_init(&reply, CAP_CONTROL_BYTES);
	if (path == NULL) {
		fprintf(stderr,
		    "mcpvisor %s: no daemon answers; --socket PATH names its control "
		    "socket\n",
		    a->command->name);
	} else if (line == NULL || control_ask(path, line, &reply, &et) != MV_OK) {
		fprintf(stderr, "mcpvisor %s: %s\n", a->command->name, et.message);
	} else {
		answer = json_loadb(reply.data, reply.len, 0, NULL);
		if (answer == NULL)
			fprintf(stderr,
			    "mcpvisor %s: %s: what answers there is no mcpvisor\n",
			    a->command->name, path);
	}
	if (answer != NULL && !json_is_true(json_object_get(answer, "ok"))) {
		what = json_string_value(json_object_get(answer, "text"));
		if (what == NULL)
			what = json_string_value(json_object_get(answer, "error"));
		fprintf(stderr, "mcpvisor %s: %s%s%s\n", a->command->name,
		    a->argc > 0 ? a->argv[0] : "", a->argc > 0 ? ": " : "",
		    what ? what : "the daemon refused");
		what = json_string_value(json_object_get(answer, "reason"));
		*code = what != NULL && strcmp(what, "conf") == 0	 ? CLI_CONF
			: what != NULL && strcmp(what, "not_found") == 0 ? CLI_PARAMS
									 : CLI_UPSTREAM;
		json_decref(answer);
		answer = NULL;
	}
	mem_free(line);
	buf_fini(&reply);
	return answer;
}

static int
control_print_json(json_t *answer)
{
	(void)json_object_del(answer, "ok");
	(void)json_dumpf(answer, stdout, JSON_INDENT(2));
	(void)putchar('\n');
	json_decref(answer);
	return CLI_OK;
}

int
run_status(struct app *a)
{
	int code;
	json_t *answer = control_say(a, json_pack("{s:s}", "command", "status"), &code);

	if (answer == NULL)
		return code;
	if (a->json)
		return control_print_json(answer);
	status_print(answer, stdout, cli_width(stdout));
	json_decref(answer);
	return CLI_OK;
}

int
run_restart(struct app *a)
{
	int code;
	json_t *answer = control_say(a,
	    json_pack("{s:s, s:s}", "command", "restart", "upstream", a->argv[0]), &code);

	if (answer == NULL)
		return code;
	if (a->json)
		return control_print_json(answer);
	json_decref(answer);
	return CLI_OK;
}

int
run_reload(struct app *a)
{
	int code;
	json_t *answer = control_say(a,
	    json_pack("{s:s, s:b}", "command", "reload", "dry_run", a->dry_run), &code);
	const char *text;

	if (answer == NULL)
		return code;
	if (a->json)
		return control_print_json(answer);
	text = json_string_value(json_object_get(answer, "text"));
	if (text == NULL || text[0] == '\0')
		text = "nothing has changed\n";
	(void)fputs(text, stdout);
	json_decref(answer);
	return CLI_OK;
}
