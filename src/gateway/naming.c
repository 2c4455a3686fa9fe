/* SPDX-License-Identifier: MIT */
/*
 * Published names, as pure functions.
 *
 * Invariants: equal input gives equal output on every run and machine; two names of
 * one upstream never map to the same text below the budget.
 */
#include "mcpvisor/naming.h"

#include "mcpvisor/idmap.h"
#include "mcpvisor/json.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool
naming_is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static int
naming_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
naming_is_escape(const char *p, size_t n)
{
	return n >= 4 && p[0] == '_' && p[1] == 'x' && naming_hex(p[2]) >= 0 &&
	       naming_hex(p[3]) >= 0;
}

void
naming_map(const char *name, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];

		if (naming_is_plain(c) && !naming_is_escape(name + i, n - i))
			buf_add_char(out, (char)c);
		else
			buf_addf(out, "_x%02x", c);
	}
}

void
naming_unmap(const char *mapped, size_t n, struct buf *out)
{
	size_t i = 0;

	while (i < n) {
		if (naming_is_escape(mapped + i, n - i)) {
			buf_add_char(out, (char)(naming_hex(mapped[i + 2]) * 16 +
						 naming_hex(mapped[i + 3])));
			i += 4;
		} else {
			buf_add_char(out, mapped[i++]);
		}
	}
}

static void
naming_shorten(
    const struct naming *y, struct jtext name, bool whole, struct buf *full, size_t start)
{
	uint64_t h = hash_stable(HASH_STABLE_SEED, y->upstream, strlen(y->upstream) + 1);
	char tail[24];

	h = hash_stable(h, name.p, name.n);
	if (whole)
		(void)snprintf(tail, sizeof(tail), "_%016" PRIx64, h);
	else
		(void)snprintf(
		    tail, sizeof(tail), "_%08" PRIx64, (h ^ (h >> 32)) & 0xffffffff);
	if (full->len - start > y->budget - strlen(tail))
		full->len = start + y->budget - strlen(tail);
	buf_add_str(full, tail);
}

void
naming_prefix(const char *upstream, const char *prefix, struct buf *out)
{
	if (prefix != NULL) {
		naming_map(prefix, strlen(prefix), out);
	} else {
		naming_map(upstream, strlen(upstream), out);
		buf_add_str(out, "__");
	}
}

void
naming_publish(const struct naming *y, const char *name, size_t n, enum naming_form form,
    struct buf *out)
{
	size_t start = out->len;
	struct jtext text = {name, n};

	MCPVISOR_ASSERT(y->budget >= NAMING_BUDGET_MIN);
	naming_prefix(y->upstream, form == NAMING_QUALIFIED ? NULL : y->prefix, out);
	naming_map(name, n, out);
	if (out->err == MV_OK && (form == NAMING_HASHED || out->len - start > y->budget))
		naming_shorten(y, text, form == NAMING_HASHED, out, start);
}
