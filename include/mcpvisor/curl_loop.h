/* SPDX-License-Identifier: MIT */
/*
 * HTTP requests to others, on the loop: libcurl's multi interface, loaded with the first
 * transfer, and names resolved by libevent's evdns, so that nothing here ever blocks.
 *
 * Connections are kept and used again, HTTP/2 is spoken where TLS offers it, compressed
 * bodies are unpacked. Redirects are not followed.
 */
#ifndef MCPVISOR_CURL_LOOP_H
#define MCPVISOR_CURL_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "mcpvisor/err.h"

struct curl_loop;
struct loop;
struct transfer;

struct curl_loop *curl_loop_new(struct loop *l);
/* Ends what is under way without a word. Not inside a transfer's callback. NULL is
 * allowed. */
void curl_loop_free(struct curl_loop *c);
/* Loads libcurl if it is not there yet. MV_SYSTEM: it cannot be had, and t says why. */
enum mv_err curl_loop_load(struct curl_loop *c, struct mv_errtext *t) MCPVISOR_MUST_CHECK;

/* "ADDRESS:PORT" of a name server, asked from now on in place of the system's. False: it
 * is none. */
bool curl_loop_set_name_server(struct curl_loop *c, const char *address);

/* Scheme (http, https), host and port of a URL, for comparing: two URLs have one origin
 * exactly if these are equal. False: it is none that can be fetched (another scheme, no
 * host, credentials in it, bytes that belong into no URL) or that others could read
 * otherwise (a name that ends in a dot or is not ASCII, 127.1, 0x7f.1). A fragment is
 * ignored. */
struct url_origin {
	char scheme[8];
	char host[256]; /* lower case; an IPv6 address in brackets */
	uint16_t port;
};
bool url_read_origin(const char *url, struct url_origin *o);
bool url_is_same_origin(const char *a, const char *b);
/* Whether it is one by which a request can go: a scheme of proxies, or none, a host,
 * maybe a port, user and password. */
bool url_is_proxy(const char *url);
/* Appends what ref, found in a document at base, refers to (RFC 3986, 5.3), without a
 * fragment. False: it refers to nothing that can be fetched; out is as it was, but for
 * its error. */
struct buf;
bool url_resolve(const char *base, const char *ref, struct buf *out);

enum transfer_method { TRANSFER_GET, TRANSFER_POST, TRANSFER_DELETE };

/* Strings are copied; NULL: none, or the default. */
struct transfer_opts {
	enum transfer_method method;
	const char *url;
	/* "Name: value", NULL-terminated. Without Accept-Encoding and Content-Length. */
	const char *const *headers;
	const struct iovec *body; /* of a POST; copied */
	int n_body;
	const char *ca_file;		  /* in place of the system's */
	const char *cert_file, *key_file; /* of a client certificate, PEM */
	const char *proxy; /* URL (http, https, socks4a, socks5h); "": none; NULL: as the
			      environment says (http_proxy, https_proxy, all_proxy,
			      no_proxy) */
	bool skip_verify; /* takes any certificate; for tests and people who ask for it */
	uint32_t connect_ms; /* for name, connection and TLS together; 0: 15000 */
	bool is_vital;	     /* as in stream_opts: else it waits while memory is short */
};

/* As headers of those options: the lines of a text, each ended by NUL, the first max of
 * them. headers has room for one more. */
void transfer_split_headers(const struct buf *lines, const char **headers, size_t max);

struct transfer_head {
	int status;
	const char *content_type;     /* without parameters, lower case; "" if none */
	const char *session_id;	      /* Mcp-Session-Id; NULL: none */
	const char *location;	      /* NULL: none */
	const char *www_authenticate; /* all of them, joined by ", "; NULL: none */
	uint32_t retry_after_s;	      /* 0: none, or a date */
};

struct transfer_cb {
	/* The head of the final answer (not 1xx). Once, before any body. */
	void (*on_head)(void *arg, const struct transfer_head *h);
	/* Unpacked bytes of the body. */
	void (*on_body)(void *arg, const char *p, size_t n);
	/* It is over; t is gone after this. err: MV_OK, the body ended as its framing
	 * says; MV_UNREACHABLE, nothing was sent (no name, no connection, no TLS);
	 * MV_CLOSED, it broke later. text says it for people, and has no secret; "" if
	 * MV_OK. */
	void (*on_end)(void *arg, enum mv_err err, const char *text);
};

/* Never calls back before returning; what cannot be fetched at all ends MV_UNREACHABLE.
 * NULL: no memory, or libcurl cannot be loaded. A request is sent once: on a kept
 * connection that breaks, a POST ends MV_CLOSED once its body has left, as it may have
 * been acted on; what has no body is tried again on a new one. */
struct transfer *transfer_start(struct curl_loop *c, const struct transfer_opts *o,
    const struct transfer_cb *cb, void *arg);
/* Ends it; no callback comes after. Allowed inside its callbacks. The connection of an
 * answer that is still coming is closed (HTTP/2: the stream, if others share it). */
void transfer_cancel(struct transfer *t);
/* No body is taken while paused. */
void transfer_pause(struct transfer *t, bool paused);
size_t curl_loop_count(const struct curl_loop *c); /* transfers under way */

#endif
