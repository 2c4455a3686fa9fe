/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: the conf, from text to snapshot, to its values and back.
 *
 * A text is a conf or has errors, not both; a conf is no different from itself nor from
 * what the same text gives once more; errors are lines that name the file.
 */
#include "mcpvisor/conf.h"
#include "mcpvisor/expand.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define NAME "/nonexistent/m.conf"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libconfig 1.5 leaks the string before which a syntax error is. */
const char *
__lsan_default_suppressions(void)
{
	return "leak:libconfig.so";
}

static const char *
fuzz_get(const char *name, void *arg)
{
	(void)arg;
	return strcmp(name, "HOME") == 0 ? "/home/u" : NULL;
}

static const struct expand_env env = {.get = fuzz_get, .credentials = "/nonexistent"};

static struct conf *
parse(const char *text)
{
	struct conf_errors e;
	struct conf *c = conf_parse(NAME, text, &env, &e);

	MCPVISOR_ASSERT((c != NULL) == (e.n == 0));
	MCPVISOR_ASSERT(e.n <= 100 && (e.n == 100 || e.n_more == 0));
	for (size_t i = 0; i < e.n; i++)
		MCPVISOR_ASSERT(!strchr(e.v[i], '\n') && strchr(e.v[i], ':'));
	conf_errors_free(&e);
	return c;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_xstrndup((const char *)data, size);
	struct conf *a = parse(text), *b = parse(text);
	struct buf out, again;

	MCPVISOR_ASSERT((a != NULL) == (b != NULL));
	buf_init(&out, 1u << 26);
	buf_init(&again, 1u << 26);
	if (a && b) {
		MCPVISOR_ASSERT(conf_diff(a, a, &out) == 0 && conf_diff(a, b, &out) == 0);
		MCPVISOR_ASSERT(out.len == 0);
		conf_dump(a, false, &out);
		conf_dump(b, false, &again);
		MCPVISOR_ASSERT(out.err == MV_OK && out.len == again.len &&
				memcmp(out.data, again.data, out.len) == 0);
	}
	buf_fini(&out);
	buf_fini(&again);
	conf_free(a);
	conf_free(b);
	mem_free(text);
	return 0;
}
