/* SPDX-License-Identifier: MIT */
/* The part of upstream.h that has to do with what is remembered, without an upstream. */
#ifndef FAKE_MEMORY_H
#define FAKE_MEMORY_H

#include "mcpvisor/upstream.h"

/* Runs "command"; memory (borrowed) is what upstream_put_memory says; "": nothing. */
struct upstream *fake_memory_new(
    const char *name, const char *command, const char *memory);
void fake_memory_free(struct upstream *u);
void fake_memory_set(struct upstream *u, const char *memory);
/* Its conf, to be changed. */
struct upstream_conf *fake_memory_conf(struct upstream *u);
/* What upstream_put_memory fails with, and upstream_take_memory. */
void fake_memory_fail(struct upstream *u, enum mv_err err);
/* What upstream_take_memory got last, NULL if nothing since the last look. */
const char *fake_memory_taken(struct upstream *u);

#endif
