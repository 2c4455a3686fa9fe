/* SPDX-License-Identifier: MIT */
/* What the files of an upstream's conf share. */
#ifndef MCPVISOR_UPSTREAM_CONF_PRIV_H
#define MCPVISOR_UPSTREAM_CONF_PRIV_H

#include "mcpvisor/upstream_conf.h"

/* NULL is told from the empty string. */
void upstream_identity_put(struct buf *out, const char *s);
void upstream_strings_free(char **v);

/* upstream_conf_kinds.c */
void upstream_conf_set_kinds(struct upstream_conf *c); /* the defaults */
void upstream_conf_put_kinds(const struct upstream_conf *c, struct buf *out);

#endif
