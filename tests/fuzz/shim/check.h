/* SPDX-License-Identifier: MIT */
/* The fakes of tests/unit without libcheck, which asserts inside of its runner only. */
#ifndef MCPVISOR_FUZZ_CHECK_H
#define MCPVISOR_FUZZ_CHECK_H

#include "mcpvisor/err.h"

#include <string.h>

#define ck_assert(cond)		 MCPVISOR_ASSERT(cond)
#define ck_assert_msg(cond, ...) MCPVISOR_ASSERT(cond)
#define ck_assert_int_eq(a, b)	 MCPVISOR_ASSERT((a) == (b))
#define ck_assert_int_ne(a, b)	 MCPVISOR_ASSERT((a) != (b))
#define ck_assert_uint_eq(a, b)	 MCPVISOR_ASSERT((a) == (b))
#define ck_assert_uint_le(a, b)	 MCPVISOR_ASSERT((a) <= (b))
#define ck_assert_uint_lt(a, b)	 MCPVISOR_ASSERT((a) < (b))
#define ck_assert_uint_gt(a, b)	 MCPVISOR_ASSERT((a) > (b))
#define ck_assert_uint_ge(a, b)	 MCPVISOR_ASSERT((a) >= (b))
#define ck_assert_ptr_eq(a, b)	 MCPVISOR_ASSERT((a) == (b))
#define ck_assert_ptr_null(a)	 MCPVISOR_ASSERT((a) == NULL)
#define ck_assert_ptr_nonnull(a) MCPVISOR_ASSERT((a) != NULL)
#define ck_assert_str_eq(a, b)	 MCPVISOR_ASSERT(strcmp(a, b) == 0)
#define ck_assert_str_ne(a, b)	 MCPVISOR_ASSERT(strcmp(a, b) != 0)

#endif
