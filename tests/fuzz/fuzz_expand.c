/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: texts with ${...}, and files of variables.
 *
 * What is refused is refused with a message and leaves nothing; each variable of a file
 * has a name.
 */
#include "mcpvisor/expand.h"

#include "mcpvisor/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *
fuzz_get(const char *name, void *arg)
{
	(void)arg;
	return strcmp(name, "SET") == 0 ? "value ${SET}" : NULL;
}

static void
try_text(const char *text)
{
	const struct expand_env env = {
	    .get = fuzz_get, .dir = "/nonexistent", .credentials = "/nonexistent"};
	struct mv_errtext et = {.line = 0};
	bool secret = false;
	char *s = expand_text(text, &env, &secret, &et);

	MCPVISOR_ASSERT(s || *et.message);
	if (s && !strstr(text, "${"))
		MCPVISOR_ASSERT(strcmp(s, text) == 0 && !secret);
	mem_free(s);
}

static void
try_file(const uint8_t *data, size_t size)
{
	struct mv_errtext et = {.line = -1};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64], **v = NULL;
	size_t n = 0;

	MCPVISOR_ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (expand_env_file(path, &v, &n, &et) != MV_OK)
		MCPVISOR_ASSERT(n == 0 && et.line >= 0 && *et.message);
	for (size_t i = 0; i < n; i++) {
		MCPVISOR_ASSERT(strcspn(v[i], "=") > 0 && strchr(v[i], '='));
		mem_free(v[i]);
	}
	mem_free(v);
	close(fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_xstrndup((const char *)data, size);

	try_text(text);
	try_file(data, size);
	mem_free(text);
	return 0;
}
