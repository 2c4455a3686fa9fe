/* SPDX-License-Identifier: MIT */
/*
 * What a client can be asked for, as a mask: the capabilities that both eras know.
 * Spec: 2025-11-25 basic/lifecycle, Capability Negotiation; 2026-07-28 basic/index,
 * _meta.
 */
#ifndef MCPVISOR_CLIENT_CAPS_H
#define MCPVISOR_CLIENT_CAPS_H

#include "mcpvisor/json.h"
#include "mcpvisor/method.h"

/* X(ID, name of the capability, its member; NULL: the capability itself) */
#define CLIENT_CAP_TABLE(X)                                                              \
	X(SAMPLING, "sampling", NULL)                                                    \
	X(SAMPLING_TOOLS, "sampling", "tools")                                           \
	X(SAMPLING_CONTEXT, "sampling", "context")                                       \
	X(ELICITATION, "elicitation", NULL)                                              \
	X(ELICITATION_FORM, "elicitation", "form")                                       \
	X(ELICITATION_URL, "elicitation", "url")                                         \
	X(ROOTS, "roots", NULL)                                                          \
	X(ROOTS_CHANGED, "roots", "listChanged")

enum client_cap_bit {
#define X(id, name, member) CLIENT_CAP_BIT_##id,
	CLIENT_CAP_TABLE(X)
#undef X
	    CLIENT_CAP_BITS
};
enum client_cap {
	CLIENT_CAP_NONE = 0,
#define X(id, name, member) CLIENT_CAP_##id = 1 << CLIENT_CAP_BIT_##id,
	CLIENT_CAP_TABLE(X)
#undef X
};
/* What an instance for all declares: whoever is asked in the end may still have to
 * refuse.
 */
#define CLIENT_CAPS_SHARED                                                               \
	((unsigned)CLIENT_CAP_SAMPLING | CLIENT_CAP_SAMPLING_TOOLS |                     \
	    CLIENT_CAP_SAMPLING_CONTEXT | CLIENT_CAP_ELICITATION |                       \
	    CLIENT_CAP_ELICITATION_FORM | CLIENT_CAP_ELICITATION_URL)
#define CLIENT_CAPS_ROOTS ((unsigned)CLIENT_CAP_ROOTS | CLIENT_CAP_ROOTS_CHANGED)

/* From a ClientCapabilities object; an elicitation that names no mode has FORM. */
unsigned client_caps_read(struct jtext capabilities);
/* Appends such an object. modern: members that 2026-07-28 has no more are left out. */
void client_caps_put(struct buf *out, unsigned caps, bool modern);
/* What a client must have to be asked this (params: of the request; decides the mode of
 * an elicitation and whether sampling brings tools); 0: nothing can be asked so. */
unsigned client_caps_needed(enum method m, struct jtext params);

#endif
