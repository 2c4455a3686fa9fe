/* SPDX-License-Identifier: MIT */
/* What the parts of identity share. */
#ifndef IDENTITY_PRIV_H
#define IDENTITY_PRIV_H

#include <stdbool.h>

#include "mcpvisor/json.h"

/* What an answer may be nested, and how long it may be as it is written: an identity is
 * small, and each level is read once more. */
#define IDENTITY_DEPTH 32
#define IDENTITY_BYTES ((size_t)256 * 1024)

/* is_too_deep: nobody can tell, and the result is false. */
bool identity_value_is_null_like(struct jtext value, bool *is_too_deep);

#endif
