/* SPDX-License-Identifier: MIT */
/* What the kinds that send requests over HTTP share. */
#ifndef MCPVISOR_UPSTREAM_HTTP_PRIV_H
#define MCPVISOR_UPSTREAM_HTTP_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/buf.h"
#include "mcpvisor/upstream_conf.h"

#define UPSTREAM_HEADERS_BYTES (64u * 1024)
#define UPSTREAM_HEADERS_MAX   256

/* The headers that the conf adds to every request: appends "Name: value" and NUL for
 * each. False: one cannot be had now, and why says it without secrets. */
bool upstream_headers_put(
    const struct upstream_conf *c, struct buf *out, struct mv_errtext *why);
/* Of lines as appended there: which credentials they are. Never 0, which stands for none.
 */
uint64_t upstream_headers_hash(const char *p, size_t n);
/* Of what would be sent now; 0: they cannot be had. */
uint64_t upstream_headers_now(const struct upstream_conf *c);
/* Writes stars over the values of those lines wherever text has them, also with the
 * backslashes that JSON allows, and over what follows a scheme as "Bearer". Values of a
 * few bytes stay. */
void upstream_headers_hide(const struct buf *lines, char *text, size_t n);
/* The words of a failure without the place, HOST:PORT, that they may begin with. */
const char *upstream_skip_place(const char *words, const char *place);

#endif
