/* SPDX-License-Identifier: MIT */
/*
 * The lists by which clients show some tools of a server alone, as filters of ours.
 *
 * Owns: nothing; the conf is the caller's.
 * Driven by: import_entry.c.
 * Invariants: a list that is none is ignored with a warning, as its client does.
 */
#include "import_priv.h"

#include <string.h>

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

static const struct tools_list {
	const char *member;
	bool allow;
} tools_lists[] = {
    {"enabledTools", true},
    {"includeTools", true},
    {"disabledTools", false},
    {"excludeTools", false},
};

static bool
tools_is_strings(const json_t *list)
{
	const json_t *v;
	size_t i;

	json_array_foreach(list, i, v)
	{
		if (!json_is_string(v))
			return false;
	}
	return json_is_array(list);
}

/* Puts the names behind those of *to, which then is there even with none. */
static void
tools_add(struct import_ctx *x, const struct import_entry *e, const char *member,
    const json_t *list, char ***to)
{
	size_t n = 0, i;
	json_t *v;

	while (*to && (*to)[n])
		n++;
	*to = mem_xrealloc(*to, (n + json_array_size(list) + 1) * sizeof **to);
	json_array_foreach(list, i, v)
	{
		const char *name = json_string_value(v);

		/* With us a word about annotations; a tool's name has no @. */
		if (!*name || *name == '@')
			import_warn(x, e, "%s: %.100s is not a tool's name", member,
			    LOG_ESC(name, strlen(name)));
		else
			(*to)[n++] = mem_xstrdup(name);
	}
	(*to)[n] = NULL;
}

void
import_entry_read_tools(
    struct import_ctx *x, const struct import_entry *e, struct upstream_conf *c)
{
	for (size_t i = 0; i < sizeof tools_lists / sizeof *tools_lists; i++) {
		const struct tools_list *l = &tools_lists[i];
		json_t *list = import_entry_get(e, l->member);

		if (!list)
			continue;
		if (!tools_is_strings(list)) {
			import_warn(x, e, "%s is ignored: it is not an array of strings",
			    l->member);
			continue;
		}
		if (l->allow)
			tools_add(x, e, l->member, list, &c->tools.allow);
		else if (json_array_size(list) > 0)
			tools_add(x, e, l->member, list, &c->tools.deny);
	}
	if (c->tools.allow && !*c->tools.allow)
		import_warn(x, e, "no tool is offered, as the list of tools is empty");
}
