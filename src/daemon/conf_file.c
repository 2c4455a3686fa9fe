/* SPDX-License-Identifier: MIT */
/*
 * Files of a conf: names relative to them, and the parse into settings.
 *
 * Owns: nothing.
 * Driven by: conf.c, conf_import.c.
 * Invariants: libconfig opens no file itself.
 */
#include "conf_priv.h"

#include <stdio.h>
#include <string.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

char *
conf_file_dir(const char *file)
{
	const char *slash = strrchr(file, '/');

	if (!slash)
		return mem_xstrdup(".");
	return mem_xstrndup(file, slash == file ? 1 : (size_t)(slash - file));
}

char *
conf_file_join(const char *dir, const char *name)
{
	size_t n = strlen(dir) + strlen(name) + 2;
	char *path;

	if (*name == '/' || strcmp(dir, ".") == 0)
		return mem_xstrdup(name);
	path = mem_xalloc(n);
	snprintf(path, n, "%s%s%s", dir, strcmp(dir, "/") == 0 ? "" : "/", name);
	return path;
}

bool
conf_file_parse(struct conf_ctx *x, config_t *cfg, const char *text, size_t n)
{
	char *copy;
	bool good;

	config_init(cfg);
	if (n > CAP_CONF_BYTES) {
		conf_file_error(x, 0, "the file is too long");
		return false;
	}
	copy = conf_text_prepare(x, text, n);
	if (!copy)
		return false;
	good = config_read_string(cfg, copy) == CONFIG_TRUE;
	if (!good)
		conf_file_error(x, config_error_line(cfg), "%s", config_error_text(cfg));
	mem_free_secret(copy, strlen(copy));
	return good;
}
