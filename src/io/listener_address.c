/* SPDX-License-Identifier: MIT */
/*
 * Addresses of listening sockets, as text and as the system has them.
 *
 * Owns: nothing. Driven by: listener.c.
 * Invariants: no name is ever resolved but localhost: that could block, and change.
 */
#include "mcpvisor/listener.h"

#include "listener_priv.h"

#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>

#define INHERITED_NAME_MAX 255

static bool
address_port(const char *s, in_port_t *port)
{
	unsigned long n = 0;
	size_t digits = strspn(s, "0123456789");

	if (digits == 0 || digits > 5 || s[digits])
		return false;
	for (; *s; s++)
		n = n * 10 + (unsigned long)(*s - '0');
	if (n > 65535)
		return false;
	*port = htons((uint16_t)n);
	return true;
}

static bool
address_unix(const char *path, struct listener_place *p)
{
	size_t n = strlen(path);

	if (path[0] != '/' || n >= sizeof(p->a.un.sun_path))
		return false;
	p->a.un.sun_family = AF_UNIX;
	memcpy(p->a.un.sun_path, path, n + 1);
	p->len = (socklen_t)sizeof(p->a.un);
	return true;
}

/* As the service manager takes them: visible, without a colon. */
static bool
address_inherited(const char *name, struct listener_place *p)
{
	size_t n = 0;

	while (name[n] > ' ' && name[n] < 0x7f && name[n] != ':')
		n++;
	if (n == 0 || n > INHERITED_NAME_MAX || name[n] != '\0')
		return false;
	p->inherited = name;
	return true;
}

static bool
address_host(const char *host, size_t n, struct listener_place *p)
{
	char text[INET6_ADDRSTRLEN];

	if (n == 0 || (n == 9 && memcmp(host, "localhost", 9) == 0)) {
		host = "127.0.0.1";
		n = 9;
	}
	if (host[0] == '[') {
		if (n < 3 || host[n - 1] != ']' || n - 2 >= sizeof(text))
			return false;
		memcpy(text, host + 1, n - 2);
		text[n - 2] = '\0';
		p->a.v6.sin6_family = AF_INET6;
		p->len = (socklen_t)sizeof(p->a.v6);
		return inet_pton(AF_INET6, text, &p->a.v6.sin6_addr) == 1;
	}
	if (n >= sizeof(text))
		return false;
	memcpy(text, host, n);
	text[n] = '\0';
	p->a.v4.sin_family = AF_INET;
	p->len = (socklen_t)sizeof(p->a.v4);
	return inet_pton(AF_INET, text, &p->a.v4.sin_addr) == 1;
}

bool
listener_place_parse(const char *s, struct listener_place *p)
{
	const char *colon = strrchr(s, ':');
	in_port_t port;

	memset(p, 0, sizeof(*p));
	if (strncmp(s, "unix:", 5) == 0)
		return address_unix(s + 5, p);
	if (strncmp(s, "systemd:", 8) == 0)
		return address_inherited(s + 8, p);
	if (!colon || !address_port(colon + 1, &port) ||
	    !address_host(s, (size_t)(colon - s), p))
		return false;
	if (p->a.sa.sa_family == AF_INET6)
		p->a.v6.sin6_port = port;
	else
		p->a.v4.sin_port = port;
	return true;
}

bool
listener_place_of_fd(int fd, struct listener_place *p)
{
	memset(p, 0, sizeof(*p));
	p->len = (socklen_t)sizeof(p->a);
	return getsockname(fd, &p->a.sa, &p->len) == 0;
}

bool
listener_place_is_loopback(const struct listener_place *p)
{
	if (p->a.sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&p->a.v6.sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&p->a.v6.sin6_addr) &&
			   p->a.v6.sin6_addr.s6_addr[12] == 127);
	if (p->a.sa.sa_family == AF_INET)
		return ntohl(p->a.v4.sin_addr.s_addr) >> 24 == 127;
	/* A socket that was handed over may be of any other family, a virtual machine's
	 * say. */
	return p->a.sa.sa_family == AF_UNIX;
}

bool
listener_place_is_same(const struct listener_place *p, const struct listener_place *q)
{
	if (p->inherited || q->inherited || p->a.sa.sa_family != q->a.sa.sa_family)
		return false;
	if (p->a.sa.sa_family == AF_INET)
		return p->a.v4.sin_port != 0 && p->a.v4.sin_port == q->a.v4.sin_port &&
		       p->a.v4.sin_addr.s_addr == q->a.v4.sin_addr.s_addr;
	if (p->a.sa.sa_family == AF_INET6)
		return p->a.v6.sin6_port != 0 && p->a.v6.sin6_port == q->a.v6.sin6_port &&
		       memcmp(&p->a.v6.sin6_addr, &q->a.v6.sin6_addr,
			   sizeof(p->a.v6.sin6_addr)) == 0;
	return p->a.sa.sa_family == AF_UNIX && p->a.un.sun_path[0] == '/' &&
	       strcmp(p->a.un.sun_path, q->a.un.sun_path) == 0;
}

void
listener_place_text(const struct listener_place *p, char *out, size_t size)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (p->a.sa.sa_family == AF_UNIX) {
		/* A name without a file begins with a NUL and has no other end than its
		 * length, which the zeroes after it give here. */
		const char *path = p->a.un.sun_path;

		snprintf(out, size, "unix:%s%.*s", path[0] ? "" : "@",
		    (int)sizeof(p->a.un.sun_path) - 1, path[0] ? path : path + 1);
	} else if (p->a.sa.sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &p->a.v6.sin6_addr, text, sizeof(text));
		snprintf(out, size, "[%s]:%u", text, (unsigned)ntohs(p->a.v6.sin6_port));
	} else {
		(void)inet_ntop(AF_INET, &p->a.v4.sin_addr, text, sizeof(text));
		snprintf(out, size, "%s:%u", text, (unsigned)ntohs(p->a.v4.sin_port));
	}
}

enum mv_err
listener_check(const char *address, bool *loopback, struct mv_errtext *et)
{
	struct listener_place p, there;
	int fd;

	if (!listener_place_parse(address, &p)) {
		mv_errtext_set(et,
		    "\"%s\" is not an address: want ADDRESS:PORT, [ADDRESS]:PORT, "
		    "localhost:PORT, :PORT, unix:/PATH or systemd:NAME",
		    address);
		return MV_CONF;
	}
	*loopback = true;
	if (!p.inherited) {
		*loopback = listener_place_is_loopback(&p);
		return MV_OK;
	}
	/* Somebody else's choice, which is known only to whom the socket was given. */
	fd = listener_find_inherited(p.inherited, NULL);
	if (fd >= 0 && listener_place_of_fd(fd, &there))
		*loopback = listener_place_is_loopback(&there);
	return MV_OK;
}
