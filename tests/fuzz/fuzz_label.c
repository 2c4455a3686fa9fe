/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: labels of results.
 *
 * The input is what a call has answered. By each of the options bytes are only inserted,
 * but for the one isError; the result, and the JSON in its strings, is JSON afterwards;
 * what said that it is an error is untouched; and what one of them has changed none of
 * them changes again.
 */
#include "fuzz_rig.h"

#include "label_check.h"

#define TEXT(s)                                                                          \
	{                                                                                \
		s, sizeof(s) - 1                                                         \
	}

static char pointer[] = "/error", pointer_ok[] = "/data/ok", no[] = "false";
static const struct fail_rule rules[] = {
    {.pointer = pointer},
    {.pointer = pointer_ok, .value = no},
};

#define MAX_BYTES 65536

static const struct label_opts options[] = {
    {.mode = GRAPHQL_AUTO, .max_bytes = MAX_BYTES, .definition = TEXT("{}")},
    {.mode = GRAPHQL_AUTO, .max_bytes = 64, .is_deep = true, .definition = TEXT("{}")},
    {.mode = GRAPHQL_ON, .max_bytes = MAX_BYTES},
    {.mode = GRAPHQL_ON,
	.max_bytes = MAX_BYTES,
	.is_deep = true,
	.definition = TEXT("{\"outputSchema\":{\"properties\":{\"result\":{}}}}")},
    {.mode = GRAPHQL_ON,
	.max_bytes = MAX_BYTES,
	.root = "/data/a",
	.definition = TEXT("{}")},
    {.mode = GRAPHQL_AUTO,
	.max_bytes = MAX_BYTES,
	.is_meta_only = true,
	.definition =
	    TEXT("{\"outputSchema\":{\"properties\":{\"data\":{},\"errors\":{}},"
		 "\"additionalProperties\":false}}")},
    {.mode = GRAPHQL_OFF, .max_bytes = MAX_BYTES, .rules = rules, .n_rules = 2},
    {.mode = GRAPHQL_ON,
	.max_bytes = MAX_BYTES,
	.rules = rules,
	.n_rules = 2,
	.definition = TEXT("{\"outputSchema\":false}")},
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = exact_copy(data, size);

	label_check_all(options, sizeof(options) / sizeof(options[0]), text, size);
	mem_free(text);
	return 0;
}
