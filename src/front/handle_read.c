/* SPDX-License-Identifier: MIT */
/*
 * resources/read of an upstream whose URIs are published under a prefix.
 *
 * Driven by: handle_call.c, with the result of such a read.
 * Invariants: by splice: every byte of the upstream's stays, the prefix comes before
 * the URI of each content, however many there are. Who asked without the prefix is
 * answered without it.
 */
#include "client_priv.h"

#include "mcpvisor/caps.h"

#include <string.h>

bool
read_is_prefixed(const struct request *r)
{
	const struct upstream *u = r->call.u;
	struct buf uri;
	bool yes;

	if (r->method != METHOD_RESOURCES_READ || u == NULL ||
	    upstream_conf_of(u)->uri_prefix == NULL)
		return false;
	/* Who has the URI from a result knows it as its upstream wrote it, and finds it
	 * so in the answer. */
	buf_init(&uri, CAP_URI_BYTES * 6);
	yes = json_string_decode((struct jtext){r->uri.data, r->uri.len}, &uri) &&
	      uri.err == MV_OK &&
	      catalog_own_uri(u, (struct jtext){uri.data, uri.len}).n < uri.len;
	buf_fini(&uri);
	return yes;
}

/* Where the text of the next content's URI begins; 0: there is none. */
static uintptr_t
read_next_uri(struct json_iter *contents)
{
	struct jtext content, uri;

	while (json_next_element(contents, &content)) {
		uri = json_member(content, "uri");
		if (jtext_type(uri) == '"')
			return (uintptr_t)(uri.p + 1);
	}
	return 0;
}

void
read_put_prefixed(const struct request *r, struct jtext body, const struct iovec *iov,
    int n, struct buf *out)
{
	const char *text = upstream_conf_of(r->call.u)->uri_prefix;
	struct jtext contents = json_member(body, "contents");
	struct json_iter it = {NULL, NULL};
	struct buf prefix; /* as a JSON string */
	uintptr_t next = 0;

	buf_init(&prefix, CAP_OUT_BYTES);
	json_put_string(&prefix, text, strlen(text));
	if (jtext_type(contents) == '[') {
		json_iter_init(&it, contents);
		next = read_next_uri(&it);
	}
	/* Pieces of the body come in its order; those of edits are elsewhere. */
	for (int i = 0; i < n; i++) {
		const char *p = iov[i].iov_base;
		size_t left = iov[i].iov_len;

		while (next != 0 && next - (uintptr_t)p < left) {
			size_t before = next - (uintptr_t)p;

			buf_add(out, p, before);
			buf_add(out, prefix.data + 1, prefix.len - 2);
			p += before;
			left -= before;
			next = read_next_uri(&it);
		}
		buf_add(out, p, left);
	}
	buf_fini(&prefix);
}
