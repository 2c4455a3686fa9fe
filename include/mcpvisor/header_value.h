/* SPDX-License-Identifier: MIT */
/*
 * JSON values as headers have them: text as it is or, where that cannot be, in a Base64
 * form between marks.
 * Spec: 2026-07-28 basic/transports/streamable-http, Value Encoding.
 */
#ifndef MCPVISOR_HEADER_VALUE_H
#define MCPVISOR_HEADER_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "mcpvisor/json.h"

/* Whether a header can mirror a value. */
enum header_fit {
	HEADER_FIT_YES,
	HEADER_FIT_TYPE, /* no: an object or an array */
	HEADER_FIT_RANGE /* no: an integer that a double does not hold */
};
enum header_fit header_value_fit(struct jtext value);
/* Appends the value, which fits, in its header form. */
void header_value_put(struct buf *out, struct jtext value);
/* Appends what a header stands for. False: its Base64 form is not valid. */
bool header_value_take(struct buf *out, const char *p, size_t n);
/* Visible ASCII, space and tab alone. */
bool header_value_is_ascii(const char *p, size_t n);
/* Whether the text and the JSON value are one number, however they are written. */
bool header_value_is_number(const char *p, size_t n, struct jtext number);

#endif
