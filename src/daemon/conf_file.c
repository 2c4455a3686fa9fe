/* SPDX-License-Identifier: MIT */
/*
 * Files of a conf: reading, names relative to them, and the parse into settings.
 *
 * Owns: nothing.
 * Driven by: conf.c, conf_import.c.
 * Invariants: libconfig opens no file itself.
 */
#include "conf_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/expand.h"
#include "mcpvisor/mem.h"

static enum mv_err
file_read_all(int fd, size_t max, struct buf *b)
{
	char chunk[16384];

	while (b->len <= max) {
		ssize_t got = read(fd, chunk, sizeof(chunk));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return MV_SYSTEM;
		if (got == 0)
			return MV_OK;
		buf_add(b, chunk, (size_t)got);
		if (b->err != MV_OK)
			return b->err;
	}
	return MV_TOO_LONG;
}

char *
conf_file_read(const char *file, size_t max, size_t *n, const char **text)
{
	int fd = expand_open_file(file, S_IFCHR, text);
	enum mv_err err;
	char *data = NULL;
	struct buf b;

	if (fd < 0)
		return NULL;
	buf_init(&b, max + 16384);
	err = file_read_all(fd, max, &b);
	if (err == MV_OK) {
		*n = b.len;
		data = buf_take(&b, NULL);
		err = data ? MV_OK : MV_NOMEM;
	}
	if (err == MV_SYSTEM)
		*text = strerror(errno);
	else if (err != MV_OK)
		*text =
		    err == MV_TOO_LONG ? "the file is too long" : mv_err_text(MV_NOMEM);
	close(fd);
	buf_fini(&b);
	return data;
}

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
