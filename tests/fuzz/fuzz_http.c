/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: the request parser, head and body.
 *
 * Whole and cut in two, at a place that the bytes decide, must agree on the verdict and
 * on the body; what was parsed must lie in the input; a sound head must have no second
 * reading.
 */
#include "mcpvisor/buf.h"
#include "mcpvisor/err.h"
#include "mcpvisor/http_guard.h"
#include "mcpvisor/http_parse.h"

#include <string.h>

static const struct http_limits limits = {
    .line_max = 256, .head_max = 1024, .body_max = 1024};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_text(struct http_text t, const char *p, size_t used)
{
	if (t.p)
		MCPVISOR_ASSERT(t.p >= p && t.p + t.n <= p + used);
}

static void
check_head(const struct http_head *h, const char *p, size_t used)
{
	bool doubled;

	MCPVISOR_ASSERT(used >= 4 && memcmp(p + used - 4, "\r\n\r\n", 4) == 0);
	MCPVISOR_ASSERT(used <= limits.head_max + 2);
	MCPVISOR_ASSERT(h->n_headers <= HTTP_HEADERS_MAX);
	MCPVISOR_ASSERT(!(h->chunked && (h->has_length || h->minor == 0)));
	MCPVISOR_ASSERT(h->length <= limits.body_max);
	MCPVISOR_ASSERT(h->minor == 0 || h->host.n > 0);
	check_text(h->method_text, p, used);
	check_text(h->target, p, used);
	check_text(h->authority, p, used);
	check_text(h->host, p, used);
	for (unsigned i = 0; i < h->n_headers; i++) {
		check_text(h->headers[i].name, p, used);
		check_text(h->headers[i].value, p, used);
		MCPVISOR_ASSERT(
		    memchr(h->headers[i].value.p, '\r', h->headers[i].value.n) == NULL);
	}
	(void)http_header(h, "content-length", &doubled);
	MCPVISOR_ASSERT(!doubled);
	(void)http_header(h, "host", &doubled);
	MCPVISOR_ASSERT(!doubled);
}

static void
check_guard(const struct http_head *h)
{
	static const char *const names[] = {"*.example.org", "a:80", "[::2]", NULL};
	static const char *const origins[] = {"https://a", NULL};
	const struct http_guard g = {
	    .loopback = true, .allowed_hosts = names, .allowed_origins = origins};
	struct http_text cors;
	int status = http_guard_host(&g, h);

	MCPVISOR_ASSERT(status == 0 || status == 400 || status == 403);
	status = http_guard_origin(&g, h, &cors);
	MCPVISOR_ASSERT(status == 0 || status == 403);
}

/* As the server does: up to `cut` first, then all. The end is the bytes of it all. */
static int
take(const char *p, size_t n, size_t cut, struct buf *body, size_t *end)
{
	static struct http_head h;
	struct http_body b;
	size_t used = 0, have = cut;
	int status = http_parse_head(&limits, p, cut, &h, &used);

	if (status == HTTP_MORE) {
		have = n;
		status = http_parse_head(&limits, p, n, &h, &used);
	}
	if (status)
		return status;
	check_head(&h, p, used);
	check_guard(&h);
	http_body_init(&b, &h, &limits);
	for (;;) {
		const char *data;
		size_t len, eaten;

		status = http_body_next(&b, p + used, have - used, &data, &len, &eaten);
		if (status != 0 && status != HTTP_MORE)
			return status;
		MCPVISOR_ASSERT(eaten <= have - used);
		MCPVISOR_ASSERT(
		    len == 0 || (data >= p + used && data + len <= p + used + eaten));
		buf_add(body, data, len);
		used += eaten;
		*end = used;
		MCPVISOR_ASSERT(body->len == b.total && b.total <= limits.body_max);
		if (status == 0 || (eaten == 0 && have == n))
			return status;
		if (eaten == 0)
			have = n;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole, parts;
	size_t cut, end_whole = 0, end_parts = 0;
	const char *p = (const char *)data;
	int a, b;

	cut = 0;
	for (size_t i = 0; i < size; i++)
		cut = (cut * 31 + data[i]) % (size + 1);
	buf_init(&whole, 4096);
	buf_init(&parts, 4096);
	a = take(p, size, size, &whole, &end_whole);
	b = take(p, size, cut, &parts, &end_parts);
	MCPVISOR_ASSERT(a == b);
	MCPVISOR_ASSERT(a != 0 || end_whole == end_parts);
	MCPVISOR_ASSERT(whole.err == MV_OK && parts.err == MV_OK);
	if (a == 0)
		MCPVISOR_ASSERT(whole.len == parts.len &&
				memcmp(whole.len ? whole.data : "",
				    parts.len ? parts.data : "", whole.len) == 0);
	buf_fini(&whole);
	buf_fini(&parts);
	return 0;
}
