/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: the import of client files.
 *
 * A file that is refused leaves nothing behind; an entry that can run has what a start
 * needs, and one that cannot says why.
 */
#include "mcpvisor/import.h"

#include "mcpvisor/caps.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *
fuzz_get(const char *name, void *arg)
{
	(void)arg;
	return strcmp(name, "SET") == 0 ? "value ${SET}" : NULL;
}

static void
check_entry(const struct upstream_conf *c)
{
	MCPVISOR_ASSERT(c->name);
	if (c->broken != MV_OK) {
		MCPVISOR_ASSERT(*c->broken_text);
		return;
	}
	MCPVISOR_ASSERT(*c->name && !c->argv == (c->url != NULL));
	MCPVISOR_ASSERT(c->url || (c->argv[0] && *c->argv[0] && c->env));
	MCPVISOR_ASSERT(c->url ? !c->env && !c->own_env : c->n_headers == 0);
	for (size_t i = 0; i < c->n_headers; i++)
		MCPVISOR_ASSERT(
		    !c->headers[i].value[strcspn(c->headers[i].value, "\r\n")]);
	MCPVISOR_ASSERT(!c->own_env || *c->own_env);
	MCPVISOR_ASSERT(c->isolation <= ISOLATION_CALL && c->era <= ERA_MODERN);
	MCPVISOR_ASSERT(c->start <= START_ON_USE && c->failure <= FAILURE_TOOL_ERROR);
	MCPVISOR_ASSERT(c->call_ms > 0 && c->queue_calls > 0 && c->queue_bytes > 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct expand_env env = {
	    .get = fuzz_get, .dir = "/nonexistent", .credentials = "/nonexistent"};
	struct mv_errtext et = {.line = -1};
	struct import_result r;
	enum mv_err err =
	    import_parse("fuzz.json", (const char *)data, size, &env, &r, &et);

	if (err == MV_OK) {
		MCPVISOR_ASSERT(r.n <= CAP_UPSTREAMS);
		for (size_t i = 0; i < r.n; i++)
			check_entry(r.v[i]);
	} else {
		MCPVISOR_ASSERT(err == MV_CONF && r.n == 0 && r.n_warnings == 0);
		MCPVISOR_ASSERT(et.line >= 0 && *et.message);
	}
	import_free(&r);
	return 0;
}
