/* SPDX-License-Identifier: MIT */
/*
 * Resource templates: which of them a URI fits.
 *
 * Owns: nothing.
 * Driven by: URIs that no list has.
 * Invariants: one walk over pattern and URI; a URI that a view hides fits nothing.
 */
#include "catalog_priv.h"

#include <string.h>

long
template_match(struct jtext pattern, struct jtext uri)
{
	const char *p = pattern.p, *pe = p + pattern.n, *u = uri.p, *ue = u + uri.n;
	const char *brace = memchr(p, '{', pattern.n), *close;
	size_t n = brace ? (size_t)(brace - p) : pattern.n;
	long literal = (long)n;

	if ((size_t)(ue - u) < n || memcmp(p, u, n) != 0)
		return -1;
	u += n;
	p += n;
	while (p < pe) {
		/* At an expression: the literal after it is looked for, the last one at
		 * the end of the URI. */
		close = memchr(p, '}', (size_t)(pe - p));
		if (close == NULL)
			return -1;
		p = close + 1;
		brace = memchr(p, '{', (size_t)(pe - p));
		n = (size_t)((brace ? brace : pe) - p);
		if (brace == NULL) {
			if ((size_t)(ue - u) < n || memcmp(p, ue - n, n) != 0)
				return -1;
			return literal + (long)n;
		}
		u = n ? memmem(u, (size_t)(ue - u), p, n) : u;
		if (u == NULL)
			return -1;
		u += n;
		p += n;
		literal += (long)n;
	}
	return u == ue ? literal : -1;
}

struct route *
catalog_match_template(struct catalog *c, unsigned view, struct jtext uri)
{
	struct merged *m = catalog_look(c, LIST_TEMPLATES);
	struct route *best = NULL;
	long best_literal = -1;

	if (view >= c->n_views)
		return NULL;
	for (size_t i = 0; i < m->n_live; i++) {
		struct route *r = m->live[i];
		long literal;

		if (!route_is_shown(r, m, view))
			continue;
		literal = template_match(r->published, uri);
		if (literal > best_literal && catalog_shows_uri(c, view, r->u, uri)) {
			best = r;
			best_literal = literal;
		}
	}
	return best;
}
