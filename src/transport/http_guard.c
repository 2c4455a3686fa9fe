/* SPDX-License-Identifier: MIT */
/*
 * Host and Origin against what an endpoint allows.
 *
 * Owns: nothing. Driven by: whoever takes requests.
 * Invariants: a name is compared whole, never by a part of it; what cannot be
 * understood does not pass.
 */
#include "mcpvisor/http_guard.h"

#include <string.h>
#include <strings.h>

#include <arpa/inet.h>
#include <netinet/in.h>

static bool
guard_is_loopback(struct http_text host)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr a4;
	struct in6_addr a6;
	bool v6 = host.n > 2 && host.p[0] == '[';

	if (http_text_is_token(host, "localhost"))
		return true;
	if (v6) {
		host.p++;
		host.n -= 2;
	}
	if (host.n >= sizeof(text))
		return false;
	memcpy(text, host.p, host.n);
	text[host.n] = '\0';
	if (v6)
		return inet_pton(AF_INET6, text, &a6) == 1 && IN6_IS_ADDR_LOOPBACK(&a6);
	return inet_pton(AF_INET, text, &a4) == 1 && ntohl(a4.s_addr) >> 24 == 127;
}

/* pattern: "name", "name:port", "*.name", "*.name:port". */
static bool
guard_host_matches(
    const char *pattern, struct http_text whole, struct http_text host, bool has_port)
{
	size_t n = strlen(pattern);
	const char *colon = strrchr(pattern, ':');
	bool with_port = colon && strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
			 colon[1] != '\0' &&
			 (colon == pattern || pattern[0] != '[' || colon[-1] == ']');
	struct http_text t = with_port && has_port ? whole : host;

	if (with_port && !has_port)
		return false;
	if (n > 2 && pattern[0] == '*' && pattern[1] == '.') {
		n -= 1; /* the dot is a part of the suffix */
		return t.n > n && strncasecmp(t.p + t.n - n, pattern + 1, n) == 0;
	}
	return t.n == n && strncasecmp(t.p, pattern, n) == 0;
}

int
http_guard_host(const struct http_guard *g, const struct http_head *h)
{
	struct http_text host, port;

	if (!http_split_authority(h->host, &host, &port))
		return 400;
	if (g->loopback && guard_is_loopback(host))
		return 0;
	for (size_t i = 0; g->allowed_hosts && g->allowed_hosts[i]; i++)
		if (guard_host_matches(
			g->allowed_hosts[i], h->host, host, port.p != NULL))
			return 0;
	return 403;
}

static bool
guard_is_loopback_origin(struct http_text origin)
{
	struct http_text rest = origin, host, port;
	size_t scheme = 0;

	if (origin.n > 7 && strncasecmp(origin.p, "http://", 7) == 0)
		scheme = 7;
	else if (origin.n > 8 && strncasecmp(origin.p, "https://", 8) == 0)
		scheme = 8;
	if (!scheme)
		return false;
	rest.p += scheme;
	rest.n -= scheme;
	return http_split_authority(rest, &host, &port) && guard_is_loopback(host);
}

/* Could be an origin at all: it goes into an answer's header. */
static bool
guard_is_origin(struct http_text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (t.p[i] <= ' ' || t.p[i] >= 0x7f || t.p[i] == ',')
			return false;
	return t.n > 0 && memmem(t.p, t.n, "://", 3) != NULL;
}

int
http_guard_origin(
    const struct http_guard *g, const struct http_head *h, struct http_text *cors)
{
	bool doubled, pass;
	struct http_text origin = http_header(h, "origin", &doubled);

	*cors = (struct http_text){NULL, 0};
	if (!origin.p)
		return 0;
	if (doubled || !guard_is_origin(origin))
		return 403;
	pass = g->loopback && guard_is_loopback_origin(origin);
	for (size_t i = 0; !pass && g->allowed_origins && g->allowed_origins[i]; i++)
		pass = strcmp(g->allowed_origins[i], "*") == 0 ||
		       http_text_is_token(origin, g->allowed_origins[i]);
	if (!pass)
		return 403;
	*cors = origin;
	return 0;
}
