/* SPDX-License-Identifier: MIT */
/*
 * Copies of calls that have to wait, or may have to be sent again.
 *
 * Owns: nothing. Driven by: whoever keeps a call.
 * Invariants: a copy points into itself alone.
 */
#include "mcpvisor/upcall.h"

#include "mcpvisor/mem.h"

#include <string.h>

size_t
upstream_call_bytes(const struct upstream_call *c)
{
	return c->len + c->target.put_len + c->arguments.put_len + c->input.put_len +
	       c->client_info.n + c->client_caps.n;
}

/* Copies the n bytes at *p, if there are any, to at, where *p then points; returns the
 * place after them. */
static char *
bytes_dup(const char **p, size_t n, char *at)
{
	if (n == 0)
		return at;
	memcpy(at, *p, n);
	*p = at;
	return at + n;
}

struct upstream_call_copy *
upstream_call_dup(const struct upstream_call *c)
{
	size_t bytes = upstream_call_bytes(c);
	struct upstream_call_copy *h = mem_try(sizeof(*h) + bytes);
	char *at;

	if (h == NULL)
		return NULL;
	h->len = bytes;
	h->json = *c->json;
	h->call = *c;
	h->call.json = &h->json;
	at = bytes_dup(&h->call.base, c->len, h->bytes);
	at = bytes_dup(&h->call.target.put, c->target.put_len, at);
	at = bytes_dup(&h->call.arguments.put, c->arguments.put_len, at);
	at = bytes_dup(&h->call.input.put, c->input.put_len, at);
	at = bytes_dup(&h->call.client_info.p, c->client_info.n, at);
	(void)bytes_dup(&h->call.client_caps.p, c->client_caps.n, at);
	return h;
}

void
upstream_call_free(struct upstream_call_copy *c)
{
	mem_free(c);
}
