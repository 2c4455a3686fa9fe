/* SPDX-License-Identifier: MIT */
/* What upstreams leave to later processes, as texts of format 1, and ways with them. */
#ifndef MEMORY_RIG_H
#define MEMORY_RIG_H

#include "fake/fake_upstream_owner.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL                                                                              \
	"{\"tools\":{\"listChanged\":true},\"prompts\":{},\"resources\":{\"subscribe\":" \
	"true},\"logging\":{}}"
#define HEAD(era, rev, caps, tools)                                                      \
	"{\"mcpvisor_memory\":1,\"era\":\"" era "\",\"revision\":\"" rev                 \
	"\",\"capabilities\":[" caps "],\"lists\":{\"tools\":" tools                     \
	",\"prompts\":{\"count\":0,\"private\":false},\"resources\":{\"count\":0,"       \
	"\"private\":false},\"resourceTemplates\":{\"count\":0,\"private\":false}}}\n"
#define TOOLS_CAP  "\"tools\""
#define LIST_OF(n) "{\"count\":" #n ",\"private\":true}"
#define MEMORY(era, rev)                                                                 \
	HEAD(era, rev, TOOLS_CAP, LIST_OF(1))                                            \
	"\"\"\n"                                                                         \
	"12 {\"name\":\"a\"}\n"
#define OF_LEGACY MEMORY("legacy", "2025-06-18")
#define OF_MODERN MEMORY("modern", "2026-07-28")

static inline enum mv_err
take(struct uowner *o, const char *p, size_t n)
{
	char *copy = mem_xalloc(n + 1); /* no byte more may be read */
	enum mv_err err;

	memcpy(copy, p, n);
	err = upstream_take_memory(o->u, copy, n);
	mem_free(copy);
	return err;
}

static inline void
take_ok(struct uowner *o, const char *text)
{
	ck_assert_int_eq(take(o, text, strlen(text)), MV_OK);
}

static inline struct buf
memory_of(const struct uowner *o)
{
	struct buf b;

	buf_init(&b, CAP_MEMORY_BYTES);
	upstream_put_memory(o->u, &b);
	ck_assert_int_eq(b.err, MV_OK);
	return b;
}

/* Answers the lists that are asked for; odd is the array of tools. */
static inline void
answer_lists(struct uowner *o, const char *odd)
{
	char text[4096];

	for (unsigned k = 0; k < LIST_MAX; k++) {
		struct lister *l = &o->u->listers[k];

		if (!l->running)
			continue;
		(void)snprintf(text, sizeof(text), "{\"%s\":%s,\"cacheScope\":\"%s\"}",
		    list_member(l->kind), k == LIST_TOOLS ? odd : "[]",
		    k == LIST_TOOLS ? "public" : "private");
		uowner_answer(o, l->req.id, text);
	}
	fake_link_forget_all();
}

#endif
