/* SPDX-License-Identifier: MIT */
/*
 * The member "mcpvisor" of an imported entry: options of our own, by table.
 *
 * Owns: nothing.
 * Driven by: import_entry.c.
 * Invariants: an option that is wrong or unknown breaks the entry by its name, so that a
 * misspelt limit is never silently the default.
 */
#include "import_priv.h"

#include <string.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

/* X(option, most): milliseconds from 1 on */
#define IMPORT_MS_OPTIONS(X)                                                             \
	X(probe_ms, 600000)                                                              \
	X(start_ms, 3600000)                                                             \
	X(call_ms, 86400000)                                                             \
	X(call_max_ms, 604800000)                                                        \
	X(restart_base_ms, 60000)

static const struct ms_option {
	const char *name;
	size_t offset;
	uint32_t max;
} ms_options[] = {
#define X(option, max) {#option, offsetof(struct upstream_conf, option), max},
    IMPORT_MS_OPTIONS(X)
#undef X
};

static bool
options_read_prefix(struct upstream_conf *c, const json_t *v)
{
	const char *s = json_string_value(v);

	if (!s)
		return import_break(c, MV_CONF, "mcpvisor.prefix is not a string");
	if (strlen(s) > CAP_NAME_BYTES / 2)
		return import_break(c, MV_CONF,
		    "mcpvisor.prefix is longer than %d characters", CAP_NAME_BYTES / 2);
	for (const char *p = s; *p; p++) {
		if (!((*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') ||
			(*p >= '0' && *p <= '9') || *p == '_' || *p == '-'))
			return import_break(c, MV_CONF,
			    "mcpvisor.prefix may have letters, digits, _ and - only");
	}
	c->prefix = mem_xstrdup(s);
	return true;
}

static bool
options_read_era(struct upstream_conf *c, const json_t *v)
{
	static const char *const names[] = {
	    [ERA_AUTO] = "auto", [ERA_LEGACY] = "legacy", [ERA_MODERN] = "modern"};
	const char *s = json_string_value(v);

	for (size_t i = 0; s && i < sizeof names / sizeof *names; i++) {
		if (strcmp(s, names[i]) == 0) {
			c->era = (enum era_pin)i;
			return true;
		}
	}
	return import_break(c, MV_CONF, "mcpvisor.era is none of auto, legacy, modern");
}

static bool
options_read_isolation(struct upstream_conf *c, const json_t *v)
{
	const char *s = json_string_value(v);

	if (s && (strcmp(s, "shared") == 0 || strcmp(s, "session") == 0)) {
		c->isolation = s[1] == 'h' ? ISOLATION_SHARED : ISOLATION_SESSION;
		return true;
	}
	return import_break(c, MV_CONF, "mcpvisor.isolation is none of shared, session");
}

static bool
options_read_ms(struct upstream_conf *c, const char *name, const json_t *v)
{
	const struct ms_option *o = NULL;
	json_int_t ms = json_integer_value(v);
	uint32_t value;

	for (size_t i = 0; i < sizeof ms_options / sizeof *ms_options && !o; i++) {
		if (strcmp(ms_options[i].name, name) == 0)
			o = &ms_options[i];
	}
	if (!o)
		return import_break(c, MV_CONF, "mcpvisor.%.100s is not a known option",
		    LOG_ESC(name, strlen(name)));
	if (!json_is_integer(v) || ms < 1 || ms > (json_int_t)o->max)
		return import_break(c, MV_CONF,
		    "mcpvisor.%s is not a whole number from 1 to %u", name, o->max);
	value = (uint32_t)ms;
	memcpy((char *)c + o->offset, &value, sizeof value);
	return true;
}

bool
import_options_read(struct upstream_conf *c, json_t *options)
{
	const char *name;
	json_t *v;
	bool good = true;

	if (options && !json_is_object(options))
		return import_break(c, MV_CONF, "mcpvisor is not an object");
	json_object_foreach(options, name, v)
	{
		if (!good)
			break;
		if (strcmp(name, "prefix") == 0)
			good = options_read_prefix(c, v);
		else if (strcmp(name, "era") == 0)
			good = options_read_era(c, v);
		else if (strcmp(name, "isolation") == 0)
			good = options_read_isolation(c, v);
		else
			good = options_read_ms(c, name, v);
	}
	return good;
}
