/* SPDX-License-Identifier: MIT */
/*
 * What of a URL decides where a request goes, and references found in documents.
 *
 * Owns: nothing; pure functions.
 * Driven by: curl_loop's parts, and whoever follows a reference.
 * Invariants: what passes here has one reading: no credentials, no escapes or numbers in
 * odd forms in the host, no backslash, so that no other parser of the same text finds
 * another host. Names that are not ASCII are taken in their ASCII form (xn--) only.
 * Spec: RFC 3986.
 */
#include "mcpvisor/curl_loop.h"

#include "curl_loop_priv.h"

#include "mcpvisor/buf.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <arpa/inet.h>

#define LABEL_MAX 63
#define HOST_MAX  253

struct piece {
	const char *p;
	size_t n;
};

struct url_parts {
	struct piece scheme, authority, path, query; /* query with its "?" */
	bool has_authority;
};

static const struct url_scheme {
	const char *name;
	uint16_t port;
} schemes[] = {{"http", 80}, {"https", 443}};

static const struct url_scheme *
url_find_scheme(struct piece s)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (s.n == strlen(schemes[i].name) &&
		    strncasecmp(s.p, schemes[i].name, s.n) == 0)
			return &schemes[i];
	}
	return NULL;
}

static size_t
url_scheme_length(const char *s)
{
	size_t n = 0;

	if (!isalpha((unsigned char)s[0]))
		return 0;
	while (isalnum((unsigned char)s[n]) || (s[n] && strchr("+-.", s[n])))
		n++;
	return s[n] == ':' ? n : 0;
}

/* RFC 3986, appendix B, with the bytes that no URL has refused. */
static bool
url_split(const char *s, struct url_parts *u)
{
	memset(u, 0, sizeof(*u));
	for (const char *c = s; *c; c++) {
		if (*c <= ' ' || *c > '~' || *c == '\\')
			return false;
	}
	u->scheme = (struct piece){s, url_scheme_length(s)};
	if (u->scheme.n > 0)
		s += u->scheme.n + 1;
	if (s[0] == '/' && s[1] == '/') {
		u->has_authority = true;
		u->authority = (struct piece){s + 2, strcspn(s + 2, "/?#")};
		s += 2 + u->authority.n;
	}
	u->path = (struct piece){s, strcspn(s, "?#")};
	s += u->path.n;
	u->query = (struct piece){s, strcspn(s, "#")};
	return true;
}

static bool
url_read_port(const char *p, size_t n, uint16_t *port)
{
	unsigned long v = 0;

	if (n == 0)
		return true; /* "host:" has the scheme's own */
	if (n > 5)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)p[i]))
			return false;
		v = v * 10 + (unsigned long)(p[i] - '0');
	}
	if (v == 0 || v > UINT16_MAX)
		return false;
	*port = (uint16_t)v;
	return true;
}

/* Equal addresses get equal texts. */
static bool
url_read_v6(const char *p, size_t n, char *out, size_t size)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr a;

	if (n >= sizeof(text) || size < sizeof(text) + 2)
		return false;
	memcpy(text, p, n);
	text[n] = '\0';
	if (inet_pton(AF_INET6, text, &a) != 1 ||
	    !inet_ntop(AF_INET6, &a, out + 1, INET6_ADDRSTRLEN))
		return false;
	out[0] = '[';
	n = strlen(out);
	out[n] = ']';
	out[n + 1] = '\0';
	return true;
}

/* Others read "127.1", "0x7f.1" and "2130706433" as addresses: only four decimal numbers
 * are taken for one here, and nothing else may end in a number. */
static bool
url_is_odd_number(const char *host)
{
	const char *last = strrchr(host, '.');
	struct in_addr a;

	last = last ? last + 1 : host;
	if (last[strspn(last, "0123456789")] != '\0' &&
	    !(last[0] == '0' && last[1] == 'x' &&
		last[2 + strspn(last + 2, "0123456789abcdef")] == '\0'))
		return false;
	return inet_pton(AF_INET, host, &a) != 1;
}

static bool
url_is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

static bool
url_read_name(const char *p, size_t n, char *out)
{
	size_t label = 0;

	if (n == 0 || n > HOST_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = p[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (c == '.' ? label == 0 : !url_is_name_byte(c))
			return false;
		label = c == '.' ? 0 : label + 1;
		if (label > LABEL_MAX)
			return false;
		out[i] = c;
	}
	out[n] = '\0';
	/* A dot at the end is a second way to write a name. */
	return label > 0 && !url_is_odd_number(out);
}

bool
url_read_host_port(const char *p, size_t n, struct url_origin *o)
{
	const char *end = p + n, *host_end;

	if (n > 0 && p[0] == '[') {
		host_end = memchr(p, ']', n);
		if (!host_end || !url_read_v6(p + 1, (size_t)(host_end - p) - 1, o->host,
				     sizeof(o->host)))
			return false;
		host_end++;
	} else {
		host_end = memchr(p, ':', n);
		host_end = host_end ? host_end : end;
		if (!url_read_name(p, (size_t)(host_end - p), o->host))
			return false;
	}
	if (host_end == end)
		return true;
	return *host_end == ':' &&
	       url_read_port(host_end + 1, (size_t)(end - host_end) - 1, &o->port);
}

static bool
url_read_parts(const struct url_parts *u, struct url_origin *o)
{
	const struct url_scheme *s = url_find_scheme(u->scheme);

	memset(o, 0, sizeof(*o));
	if (!s || !u->has_authority)
		return false;
	memcpy(o->scheme, s->name, strlen(s->name) + 1);
	o->port = s->port;
	return url_read_host_port(u->authority.p, u->authority.n, o);
}

bool
url_read_origin(const char *url, struct url_origin *o)
{
	struct url_parts u;

	return url_split(url, &u) && url_read_parts(&u, o);
}

bool
url_is_same_origin(const char *a, const char *b)
{
	struct url_origin x, y;

	return url_read_origin(a, &x) && url_read_origin(b, &y) &&
	       strcmp(x.scheme, y.scheme) == 0 && strcmp(x.host, y.host) == 0 &&
	       x.port == y.port;
}

/* RFC 3986, 5.2.4, for a path that is empty or begins with "/". */
static size_t
url_remove_dots(char *p, size_t n)
{
	size_t w = 0, end;

	for (size_t r = 0; r < n; r = end) {
		size_t len;
		bool is_dots;

		for (end = r + 1; end < n && p[end] != '/'; end++)
			;
		len = end - r;
		is_dots = len >= 2 && len <= 3 && memcmp(p + r, "/..", len) == 0;
		if (!is_dots) {
			memmove(p + w, p + r, len);
			w += len;
			continue;
		}
		if (len == 3) {
			while (w > 0 && p[--w] != '/')
				;
		}
		if (end == n)
			p[w++] = '/';
	}
	return w;
}

/* What goes before ref's own path. */
static struct piece
url_merge_head(const struct url_parts *base, const struct url_parts *ref)
{
	static const char root[] = "/";
	struct piece head = base->path;

	if (ref->scheme.n > 0 || ref->has_authority || ref->path.p[0] == '/')
		return (struct piece){root, 0};
	if (ref->path.n == 0)
		return head;
	while (head.n > 0 && head.p[head.n - 1] != '/')
		head.n--;
	return head.n > 0 ? head : (struct piece){root, 1};
}

/* RFC 3986, 5.2.2. */
static void
url_add_target(const struct url_parts *base, const struct url_parts *ref, struct buf *out)
{
	const struct url_parts *scheme = ref->scheme.n > 0 ? ref : base;
	const struct url_parts *host = scheme == ref || ref->has_authority ? ref : base;
	bool has_query = host == ref || ref->path.n > 0 || ref->query.n > 0;
	struct piece head = url_merge_head(base, ref);
	struct piece query = has_query ? ref->query : base->query;
	size_t at;

	buf_add(out, scheme->scheme.p, scheme->scheme.n);
	buf_add_str(out, host->has_authority ? "://" : ":");
	buf_add(out, host->authority.p, host->authority.n);
	at = out->len;
	buf_add(out, head.p, head.n);
	buf_add(out, ref->path.p, ref->path.n);
	if (out->err == MV_OK && out->len > at)
		out->len = at + url_remove_dots(out->data + at, out->len - at);
	buf_add(out, query.p, query.n);
}

bool
url_resolve(const char *base, const char *ref, struct buf *out)
{
	struct url_parts b, r;
	struct url_origin o;
	size_t start = out->len;
	const char *text;

	if (!url_split(base, &b) || !url_read_parts(&b, &o) || !url_split(ref, &r))
		return false;
	url_add_target(&b, &r, out);
	text = buf_cstr(out);
	if (text && url_read_origin(text + start, &o))
		return true;
	out->len = start;
	return false;
}
