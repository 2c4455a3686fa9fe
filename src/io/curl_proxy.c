/* SPDX-License-Identifier: MIT */
/*
 * Which proxy a request takes, by the rules and variables that curl has for it.
 *
 * Owns: nothing.
 * Driven by: transfer_start.
 * Invariants: curl itself is always told, so it never looks; names behind a SOCKS proxy
 * are always resolved by the proxy, because curl would do it here and block.
 */
#include "curl_loop_priv.h"

#include "mcpvisor/mem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <arpa/inet.h>

static const struct proxy_scheme {
	const char *name, *use;
	uint16_t port;
} proxy_schemes[] = {
    {"http", "http", 1080},
    {"https", "https", 443},
    {"socks4", "socks4a", 1080},
    {"socks4a", "socks4a", 1080},
    {"socks5", "socks5h", 1080},
    {"socks5h", "socks5h", 1080},
};

/* In the order of looking; HTTP_PROXY is left out because a CGI's client can set it. */
static const struct {
	const char *scheme, *variable;
} proxy_variables[] = {
    {"http", "http_proxy"},
    {"https", "https_proxy"},
    {"https", "HTTPS_PROXY"},
    {NULL, "all_proxy"},
    {NULL, "ALL_PROXY"},
};

static const char *
proxy_env(const char *name)
{
	const char *v = getenv(name);

	return v && v[0] ? v : NULL;
}

static unsigned
proxy_read_bits(const char *p, unsigned most)
{
	unsigned v = 0;

	for (; *p >= '0' && *p <= '9' && v <= most; p++)
		v = v * 10 + (unsigned)(*p - '0');
	return *p == '\0' ? v : most + 1;
}

static bool
proxy_has_prefix(const unsigned char *a, const unsigned char *b, unsigned bits)
{
	unsigned bytes = bits / 8, rest = bits % 8;

	return memcmp(a, b, bytes) == 0 &&
	       (rest == 0 || (a[bytes] ^ b[bytes]) >> (8 - rest) == 0);
}

/* token: an address, or a network "192.0.2.0/24". */
static bool
proxy_has_address(char *token, int family, const unsigned char *host)
{
	unsigned most = family == AF_INET6 ? 128 : 32, bits = most;
	unsigned char net[sizeof(struct in6_addr)];
	char *slash = strchr(token, '/'), *end;

	if (slash) {
		*slash = '\0';
		bits = slash[1] ? proxy_read_bits(slash + 1, most) : most + 1;
	}
	end = token + strlen(token);
	if (token[0] == '[' && end[-1] == ']') {
		end[-1] = '\0';
		token++;
	}
	return bits <= most && inet_pton(family, token, net) == 1 &&
	       proxy_has_prefix(host, net, bits);
}

/* token: a domain, with what is under it. */
static bool
proxy_has_name(const char *token, const char *host)
{
	size_t n = strlen(token), len = strlen(host);

	if (token[0] == '.') {
		token++;
		n--;
	}
	if (n > 0 && token[n - 1] == '.')
		n--;
	return n > 0 && n <= len && strncasecmp(host + len - n, token, n) == 0 &&
	       (n == len || host[len - n - 1] == '.');
}

bool
curl_proxy_is_excepted(const char *list, const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];
	char token[256], bare[256];
	size_t len = strlen(host);
	int family = 0;

	if (strcmp(list, "*") == 0)
		return true;
	if (host[0] == '[' && len < sizeof(bare)) {
		memcpy(bare, host + 1, len - 2);
		bare[len - 2] = '\0';
		family = inet_pton(AF_INET6, bare, address) == 1 ? AF_INET6 : 0;
	} else if (inet_pton(AF_INET, host, address) == 1) {
		family = AF_INET;
	}
	for (size_t n; *list; list += n) {
		list += strspn(list, ", \t");
		n = strcspn(list, ", \t");
		if (n == 0 || n >= sizeof(token))
			continue;
		memcpy(token, list, n);
		token[n] = '\0';
		if (family ? proxy_has_address(token, family, address)
			   : proxy_has_name(token, host))
			return true;
	}
	return false;
}

static const char *
proxy_from_env(const struct url_origin *o)
{
	const char *except = proxy_env("no_proxy"), *v = NULL;

	if (!except)
		except = proxy_env("NO_PROXY");
	for (size_t i = 0; i < sizeof(proxy_variables) / sizeof(proxy_variables[0]);
	     i++) {
		const char *scheme = proxy_variables[i].scheme;

		if (!v && (!scheme || strcmp(scheme, o->scheme) == 0))
			v = proxy_env(proxy_variables[i].variable);
	}
	return v && except && curl_proxy_is_excepted(except, o->host) ? NULL : v;
}

static const struct proxy_scheme *
proxy_read_scheme(const char **url)
{
	const char *colon = strstr(*url, "://");
	size_t n = colon ? (size_t)(colon - *url) : 0;

	if (!colon)
		return &proxy_schemes[0];
	for (size_t i = 0; i < sizeof(proxy_schemes) / sizeof(proxy_schemes[0]); i++) {
		const struct proxy_scheme *s = &proxy_schemes[i];

		if (strlen(s->name) == n && strncasecmp(*url, s->name, n) == 0) {
			*url = colon + 3;
			return s;
		}
	}
	return NULL;
}

bool
curl_proxy_find(const char *wanted, const struct url_origin *o, struct buf *out,
    struct url_origin *via)
{
	const char *p = wanted ? wanted : proxy_from_env(o), *host;
	const struct proxy_scheme *s;
	size_t n, user;

	*via = *o;
	if (!p || !p[0])
		return true;
	s = proxy_read_scheme(&p);
	if (!s)
		return false;
	n = strcspn(p, "/?#");
	host = memrchr(p, '@', n);
	host = host ? host + 1 : p;
	user = (size_t)(host - p);
	via->port = s->port;
	if (!url_read_host_port(host, n - user, via))
		return false;
	for (size_t i = 0; i < user; i++) {
		if (p[i] <= ' ' || p[i] > '~')
			return false;
	}
	buf_addf(out, "%s://", s->use);
	buf_add(out, p, user);
	buf_addf(out, "%s:%u", via->host, (unsigned)via->port);
	return out->err == MV_OK;
}

bool
url_is_proxy(const char *url)
{
	struct url_origin any = {.scheme = "http", .host = "x", .port = 80}, via;
	struct buf use;
	bool ok;

	buf_init(&use, strlen(url) + 64);
	ok = *url != '\0' && curl_proxy_find(url, &any, &use, &via);
	buf_fini(&use);
	return ok;
}
