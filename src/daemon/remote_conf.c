/* SPDX-License-Identifier: MIT */
/*
 * What texts of a remote upstream may be: URL, proxy, roots, names of headers.
 *
 * Owns: nothing.
 * Driven by: the conf and the import.
 * Invariants: no answer shows the text, which may hold a secret.
 */
#include "remote_conf.h"

#include <string.h>
#include <strings.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/curl_loop.h"

#define LETTERS_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
/* What the limit of a transport leaves for names that are resolved against it. */
#define URL_BYTES_MAX (CAP_URI_BYTES / 2)

static bool
remote_has_user(const char *s)
{
	const char *host = strstr(s, "://");

	host = host ? host + 3 : s;
	return memchr(host, '@', strcspn(host, "/?#")) != NULL;
}

const char *
remote_check_url(const char *s)
{
	struct url_origin o;

	if (strlen(s) > URL_BYTES_MAX)
		return "is longer than 4096 bytes";
	if (url_read_origin(s, &o))
		return NULL;
	if (strncasecmp(s, "ws://", 5) == 0 || strncasecmp(s, "wss://", 6) == 0)
		return "is of a WebSocket, which is no transport of MCP";
	if (strncasecmp(s, "http://", 7) != 0 && strncasecmp(s, "https://", 8) != 0)
		return "does not begin with http:// or https://";
	if (remote_has_user(s))
		return "has a user or a password in it; headers are the place for them";
	return "is not the URL of a server, with a host by its usual name";
}

const char *
remote_check_proxy(const char *s)
{
	if (strlen(s) > URL_BYTES_MAX)
		return "is longer than 4096 bytes";
	for (const char *p = s; *p; p++) {
		if (*p <= ' ' || *p > '~')
			return "has a character that a URL cannot have";
	}
	if (*s && !url_is_proxy(s))
		return "is not the URL of a proxy: http, https, socks4, socks4a, socks5 "
		       "or socks5h, and a host";
	return NULL;
}

const char *
remote_check_root(const char *s)
{
	if (strncmp(s, "file:///", 8) != 0)
		return "does not begin with file:///";
	if (strlen(s) > URL_BYTES_MAX)
		return "is longer than 4096 bytes";
	if (s[strspn(s, LETTERS_DIGITS "-._~:/?#[]@!$&'()*+,;=%")])
		return "has a character that a URI cannot have";
	return NULL;
}

const char *
remote_check_header_name(const char *s)
{
	/* The last ones are those by which a connection is run. */
	static const char *const ours[] = {"Accept", "Accept-Encoding", "Content-Length",
	    "Content-Type", "Host", "Last-Event-ID", "MCP-Protocol-Version", "Mcp-Method",
	    "Mcp-Name", "Mcp-Session-Id", "Connection", "Expect", "Keep-Alive",
	    "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade"};

	if (!*s || strlen(s) > 128)
		return "is no name of a header: it has 1 to 128 characters";
	if (s[strspn(s, LETTERS_DIGITS "!#$%&'*+-.^_`|~")])
		return "is no name of a header: a character cannot be in one";
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
		if (strcasecmp(s, ours[i]) == 0)
			return "is a header that mcpvisor sets itself";
	}
	if (strncasecmp(s, "Mcp-Param-", 10) == 0)
		return "is a header that mcpvisor sets itself";
	return NULL;
}
