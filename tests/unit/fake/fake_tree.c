/* SPDX-License-Identifier: MIT */
/*
 * Another parser's opinion on what we wrote.
 *
 * Owns: nothing. Driven by: tests.
 */
#include "fake/fake_tree.h"

#include <check.h>
#include <jansson.h>

static json_t *
tree_load(const char *p, size_t n)
{
	json_error_t error;
	json_t *tree = json_loadb(p, n, JSON_REJECT_DUPLICATES, &error);

	ck_assert_msg(tree != NULL, "%s: %.*s", error.text, (int)n, p);
	ck_assert(json_is_object(tree));
	return tree;
}

void
tree_assert_object(const char *p, size_t n)
{
	json_decref(tree_load(p, n));
}

void
tree_assert_error(const char *p, size_t n)
{
	json_t *tree = tree_load(p, n);

	ck_assert(json_is_integer(json_object_get(tree, "code")));
	ck_assert(json_is_string(json_object_get(tree, "message")));
	ck_assert_uint_gt(json_string_length(json_object_get(tree, "message")), 0);
	json_decref(tree);
}
