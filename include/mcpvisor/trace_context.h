/* SPDX-License-Identifier: MIT */
/*
 * Trace context as _meta has it. Pure functions.
 * Spec: W3C Trace Context; MCP 2026-07-28 basic, _meta.
 */
#ifndef MCPVISOR_TRACE_CONTEXT_H
#define MCPVISOR_TRACE_CONTEXT_H

#include <stdbool.h>

#include "mcpvisor/json.h"

#define TRACE_ID_BYTES 32 /* hexadecimal, as it is written */

/* The trace-id of a well-formed traceparent, a JSON string. False: it is none. out may be
 * NULL. */
bool trace_context_id(struct jtext parent, char out[TRACE_ID_BYTES]);

#endif
