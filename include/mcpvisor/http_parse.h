/* SPDX-License-Identifier: MIT */
/*
 * A strict HTTP/1.1 request parser (RFC 9112) as a pure, resumable function over a
 * buffer: the head at once, then the body piece by piece.
 *
 * What another parser could read differently is refused: bare CR or LF, folding, space
 * before a colon, two lengths, a length and a chunked body, chunk extensions over a
 * bound, NUL and control bytes, a missing or doubled Host.
 */
#ifndef MCPVISOR_HTTP_PARSE_H
#define MCPVISOR_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_text {
	const char *p;
	size_t n; /* 0 with p NULL: absent */
};

enum http_method {
	HTTP_M_OTHER, /* a token we do not know */
	HTTP_M_GET,
	HTTP_M_POST,
	HTTP_M_DELETE,
	HTTP_M_OPTIONS,
	HTTP_M_HEAD
};

struct http_header {
	struct http_text name;	/* as sent */
	struct http_text value; /* without the white space around it */
};

#define HTTP_HEADERS_MAX 100

/* A request's head. Everything points into the buffer it was parsed from. */
struct http_head {
	enum http_method method;
	struct http_text method_text;
	struct http_text target;    /* as sent: origin form, or absolute form */
	struct http_text path;	    /* of either form, without the query */
	struct http_text authority; /* of an absolute form; else absent */
	int minor;		    /* HTTP/1.minor: 0 or 1 */
	struct http_text host;	    /* the Host header, or of HTTP/1.0 maybe absent */
	bool keep_alive;	    /* as version and Connection say */
	bool expect_continue;
	bool chunked;
	bool has_length;
	uint64_t length;
	struct http_header headers[HTTP_HEADERS_MAX];
	unsigned n_headers;
};

struct http_limits {
	size_t line_max; /* request line: 8192 */
	size_t head_max; /* all of the head: 32768 */
	uint64_t body_max;
};

/* 0: done. HTTP_MORE: needs more bytes. Else the status to refuse it with (400, 405 is
 * not the parser's, 413, 414, 417, 431, 501, 505); the connection ends after it. */
#define HTTP_MORE (-1)

/* Parses one head at p. Empty lines (CRLF, one) before it are skipped. On 0, *used is
 * the length of the head. Pure: after HTTP_MORE call again with the same bytes and more.
 */
int http_parse_head(const struct http_limits *l, const char *p, size_t n,
    struct http_head *head, size_t *used);
/* The only header of that name (case-insensitive); absent if there is none. *doubled says
 * that there are several, of which the first is returned; doubled may be NULL. */
struct http_text http_header(const struct http_head *h, const char *name, bool *doubled);
/* Splits "host", "host:port", "[v6]" or "[v6]:port"; false if it is none of them. host
 * keeps its brackets; port is absent if there is none. */
bool http_split_authority(
    struct http_text t, struct http_text *host, struct http_text *port);
bool http_text_is(struct http_text t, const char *s);	    /* exact */
bool http_text_is_token(struct http_text t, const char *s); /* ASCII case ignored */

/* The body's framing. */
struct http_body {
	bool chunked;
	uint64_t left;	/* of the length, or of the chunk */
	uint64_t total; /* body bytes so far */
	uint64_t max;
	unsigned state; /* of the chunked machine */
	size_t line;	/* bytes of the current chunk line or trailer */
	size_t trailer;
};
void http_body_init(
    struct http_body *b, const struct http_head *h, const struct http_limits *l);
/* Looks at n bytes at p. Sets *data and *len to body bytes to take (maybe none) and *used
 * to what is to be consumed. 0: the body is complete with these; HTTP_MORE: it is not;
 * else a status (400, 413). */
int http_body_next(struct http_body *b, const char *p, size_t n, const char **data,
    size_t *len, size_t *used);

#endif
