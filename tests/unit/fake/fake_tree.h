/* SPDX-License-Identifier: MIT */
/* Another parser's opinion on what we wrote. */
#ifndef FAKE_TREE_H
#define FAKE_TREE_H

#include <stddef.h>

/* Aborts the test unless the text is one JSON object without duplicate members. */
void tree_assert_object(const char *p, size_t n);
/* The same, and it is an error object: an integer code and a message. */
void tree_assert_error(const char *p, size_t n);

#endif
