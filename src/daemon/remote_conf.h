/* SPDX-License-Identifier: MIT */
/* What conf and import share about remote upstreams: checks of texts, and headers. */
#ifndef MCPVISOR_REMOTE_CONF_H
#define MCPVISOR_REMOTE_CONF_H

#include "mcpvisor/expand.h"
#include "mcpvisor/upstream_conf.h"

/* What is wrong with a text, without showing it; NULL: nothing. */
const char *remote_check_url(const char *s);
const char *remote_check_proxy(const char *s);
const char *remote_check_root(const char *s);
/* Also refuses the names of headers that are mcpvisor's own to set. */
const char *remote_check_header_name(const char *s);

bool remote_has_header(const struct upstream_conf *c, const char *name);
/* Adds a header, in place of one with the same name in any case. text is expanded, and
 * looked at again later if files stand in it; env NULL: it stays as it is. False: its
 * value cannot be had, or cannot be one; et says why without showing it. */
bool remote_add_header(struct upstream_conf *c, const char *name, const char *text,
    const struct expand_env *env, struct mv_errtext *et) MCPVISOR_MUST_CHECK;

#endif
