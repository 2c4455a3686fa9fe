/* SPDX-License-Identifier: MIT */
/*
 * Who may talk to an HTTP endpoint, going by Host and Origin: the defence against DNS
 * rebinding and foreign web pages. Pure functions.
 */
#ifndef MCPVISOR_HTTP_GUARD_H
#define MCPVISOR_HTTP_GUARD_H

#include <stdbool.h>

#include "mcpvisor/http_parse.h"

struct http_guard {
	bool loopback; /* the endpoint listens on loopback (or a unix socket) only */
	/* Names with or without port, "*.example.org" for subdomains; beyond loopback's
	 * own. */
	const char *const *allowed_hosts; /* NULL-terminated, or NULL */
	/* "https://app.example.org", "*" for any; beyond loopback's own. */
	const char *const *allowed_origins;
};

/* Status 0 (pass), 400 (absent or malformed) or 403 (foreign). On loopback the names
 * localhost, 127.0.0.0/8, [::1] with any port pass. */
int http_guard_host(const struct http_guard *g, const struct http_head *h);
/* 0 or 403. No Origin passes; "null" does not. Loopback origins (http or https, any port)
 * pass on loopback. *cors is the origin to allow in the answer, absent if none was sent.
 */
int http_guard_origin(
    const struct http_guard *g, const struct http_head *h, struct http_text *cors);

#endif
