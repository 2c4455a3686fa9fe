/* SPDX-License-Identifier: MIT */
/*
 * The head of an HTTP/1.1 request, strictly by RFC 9112.
 *
 * Owns: nothing. Driven by: http_server, and whoever reads a parsed head.
 * Invariants: bytes are judged from left to right and each limit is a position, so
 * the verdict does not depend on how the bytes arrived; nothing beyond the head is
 * looked at.
 */
#include "mcpvisor/http_parse.h"

#include "http_parse_priv.h"

#include <string.h>
#include <strings.h>

struct cursor {
	const char *p, *end;
	int out; /* what it means to run out of bytes */
};

struct parse {
	struct cursor c;
	struct http_head *head;
	unsigned n_host, n_length, n_coding;
	struct http_text coding, length;
	bool close, keep, expect_bad;
};

static void
cursor_limit(struct cursor *c, const char *start, size_t n, size_t max, int status)
{
	c->end = start + (n < max ? n : max);
	c->out = n > max ? status : HTTP_MORE;
}

static struct http_text
http_text(const char *from, const char *to)
{
	return (struct http_text){from, (size_t)(to - from)};
}

bool
http_text_is(struct http_text t, const char *s)
{
	return t.n == strlen(s) && memcmp(t.n ? t.p : "", s, t.n) == 0;
}

bool
http_text_is_token(struct http_text t, const char *s)
{
	return t.n == strlen(s) && strncasecmp(t.n ? t.p : "", s, t.n) == 0;
}

struct http_text
http_header(const struct http_head *h, const char *name, bool *doubled)
{
	struct http_text found = {NULL, 0};

	if (doubled)
		*doubled = false;
	for (unsigned i = 0; i < h->n_headers; i++) {
		if (!http_text_is_token(h->headers[i].name, name))
			continue;
		if (found.p) {
			*doubled = true;
			break;
		}
		found = h->headers[i].value;
		if (!doubled)
			break;
	}
	return found;
}

/* Unreserved characters and percent signs: a host with anything else in it is not
 * ours, and is where parsers begin to differ. */
static bool
http_is_host(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' || c == '~' ||
	       c == '%';
}

static bool
http_is_port(const char *p, const char *end)
{
	unsigned long port = 0;

	if (p == end || end - p > 5)
		return false;
	for (; p < end; p++) {
		if (*p < '0' || *p > '9')
			return false;
		port = port * 10 + (unsigned long)(*p - '0');
	}
	return port <= 65535;
}

bool
http_split_authority(struct http_text t, struct http_text *host, struct http_text *port)
{
	const char *p = t.p, *end;

	*host = *port = (struct http_text){NULL, 0};
	if (t.n == 0)
		return false;
	end = p + t.n;
	if (*p == '[') {
		for (p++; p < end && (http_hex(*p) >= 0 || *p == ':' || *p == '.'); p++)
			;
		if (p == end || *p != ']' || p == t.p + 1)
			return false;
		p++;
	} else {
		while (p < end && http_is_host(*p))
			p++;
		if (p == t.p)
			return false;
	}
	*host = http_text(t.p, p);
	if (p == end)
		return true;
	if (*p != ':' || !http_is_port(p + 1, end))
		return false;
	*port = http_text(p + 1, end);
	return true;
}

static int
parse_crlf(struct cursor *c)
{
	if (c->p == c->end)
		return c->out;
	if (*c->p != '\r')
		return HTTP_BAD_REQUEST;
	if (c->p + 1 == c->end)
		return c->out;
	if (c->p[1] != '\n')
		return HTTP_BAD_REQUEST;
	c->p += 2;
	return 0;
}

/* One or more token characters, then the separator, which is eaten. */
static int
parse_token(struct cursor *c, char separator, struct http_text *out)
{
	const char *from = c->p;

	while (c->p < c->end && http_is_token(*c->p))
		c->p++;
	if (c->p == c->end)
		return c->out;
	if (c->p == from || *c->p != separator)
		return HTTP_BAD_REQUEST;
	*out = http_text(from, c->p);
	c->p++;
	return 0;
}

static int
parse_method(struct cursor *c, struct http_head *h)
{
	static const struct {
		const char *name;
		enum http_method method;
	} known[] = {{"POST", HTTP_M_POST}, {"GET", HTTP_M_GET},
	    {"DELETE", HTTP_M_DELETE}, {"OPTIONS", HTTP_M_OPTIONS},
	    {"HEAD", HTTP_M_HEAD}};
	int status = parse_token(c, ' ', &h->method_text);

	if (status)
		return status;
	h->method = HTTP_M_OTHER;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (http_text_is(h->method_text, known[i].name))
			h->method = known[i].method;
	/* Its target has a form of its own, and a tunnel is nothing we offer. */
	return http_text_is(h->method_text, "CONNECT") ? 501 : 0;
}

/* http://authority/path; the scheme has been seen. */
static bool
parse_absolute(struct http_head *h, size_t scheme)
{
	const char *from = h->target.p + scheme, *end = h->target.p + h->target.n;
	const char *p = from;
	struct http_text host, port;

	while (p < end && *p != '/' && *p != '?')
		p++;
	h->authority = http_text(from, p);
	if (!http_split_authority(h->authority, &host, &port))
		return false;
	h->path = p < end && *p == '/' ? http_text(p, end) : (struct http_text){"/", 1};
	return true;
}

static bool
parse_target_form(struct http_head *h)
{
	const struct http_text t = h->target;
	const char *query;

	if (t.p[0] == '/') {
		h->path = t;
	} else if (t.n > 7 && strncasecmp(t.p, "http://", 7) == 0) {
		if (!parse_absolute(h, 7))
			return false;
	} else if (t.n > 8 && strncasecmp(t.p, "https://", 8) == 0) {
		if (!parse_absolute(h, 8))
			return false;
	} else if (http_text_is(t, "*") && h->method == HTTP_M_OPTIONS) {
		h->path = t;
	} else {
		return false;
	}
	query = memchr(h->path.p, '?', h->path.n);
	if (query)
		h->path.n = (size_t)(query - h->path.p);
	return true;
}

static int
parse_target(struct cursor *c, struct http_head *h)
{
	const char *from = c->p;

	while (c->p<c->end && * c->p> 0x20 && *c->p < 0x7f && *c->p != '#')
		c->p++;
	if (c->p == c->end)
		return c->out;
	if (c->p == from || *c->p != ' ')
		return HTTP_BAD_REQUEST;
	h->target = http_text(from, c->p);
	c->p++;
	return parse_target_form(h) ? 0 : HTTP_BAD_REQUEST;
}

static int
parse_version(struct cursor *c, struct http_head *h)
{
	static const char form[] = "HTTP/d.d"; /* d: a digit */
	const char *from = c->p;

	for (size_t i = 0; i < sizeof(form) - 1; i++, c->p++) {
		if (c->p == c->end)
			return c->out;
		if (form[i] == 'd' ? *c->p < '0' || *c->p > '9' : *c->p != form[i])
			return HTTP_BAD_REQUEST;
	}
	if (from[5] != '1' || from[7] > '1')
		return 505;
	h->minor = from[7] - '0';
	return 0;
}

static int
parse_request_line(struct cursor *c, struct http_head *h)
{
	int status = parse_method(c, h);

	if (!status)
		status = parse_target(c, h);
	if (!status)
		status = parse_version(c, h);
	if (!status)
		status = parse_crlf(c);
	return status;
}

static void
parse_connection(struct parse *s, struct http_text v)
{
	const char *p = v.p, *end = v.p + v.n;

	while (p < end) {
		const char *from;
		struct http_text t;

		while (p < end && !http_is_token(*p))
			p++;
		from = p;
		while (p < end && http_is_token(*p))
			p++;
		t = http_text(from, p);
		s->close = s->close || http_text_is_token(t, "close");
		s->keep = s->keep || http_text_is_token(t, "keep-alive");
	}
}

/* Headers that decide where this request ends. */
static void
parse_known(struct parse *s, const struct http_header *f)
{
	switch (f->name.n) {
	case 4:
		if (http_text_is_token(f->name, "host")) {
			s->n_host++;
			s->head->host = f->value;
		}
		break;
	case 6:
		if (http_text_is_token(f->name, "expect")) {
			bool known = http_text_is_token(f->value, "100-continue");

			s->head->expect_continue = known;
			s->expect_bad = s->expect_bad || !known;
		}
		break;
	case 10:
		if (http_text_is_token(f->name, "connection"))
			parse_connection(s, f->value);
		break;
	case 14:
		if (http_text_is_token(f->name, "content-length")) {
			s->n_length++;
			s->length = f->value;
		}
		break;
	case 17:
		if (http_text_is_token(f->name, "transfer-encoding")) {
			s->n_coding++;
			s->coding = f->value;
		}
		break;
	default:
		break;
	}
}

static bool
http_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int
parse_field(struct parse *s)
{
	struct cursor *c = &s->c;
	struct http_head *h = s->head;
	struct http_header *f;
	struct http_text name = {NULL, 0};
	const char *from, *to;
	int status = parse_token(c, ':', &name);

	if (status)
		return status;
	while (c->p < c->end && http_is_blank(*c->p))
		c->p++;
	from = c->p;
	while (c->p < c->end && http_is_value(*c->p))
		c->p++;
	to = c->p;
	status = parse_crlf(c);
	if (status)
		return status;
	if (h->n_headers == HTTP_HEADERS_MAX)
		return 431;
	while (to > from && http_is_blank(to[-1]))
		to--;
	f = &h->headers[h->n_headers++];
	f->name = name;
	f->value = http_text(from, to);
	parse_known(s, f);
	return 0;
}

static bool
settle_host(struct parse *s)
{
	struct http_head *h = s->head;
	struct http_text host, port;

	if (s->n_host > 1 || (s->n_host == 0 && h->minor == 1))
		return false;
	if (s->n_host && !http_split_authority(h->host, &host, &port))
		return false;
	if (!h->authority.p)
		return true;
	/* RFC 9112, 3.2.2: the target's authority stands for Host; a client that says
	 * two different things wants two readers to disagree. */
	if (s->n_host && (h->host.n != h->authority.n ||
			     strncasecmp(h->host.p, h->authority.p, h->host.n) != 0))
		return false;
	h->host = h->authority;
	return true;
}

static bool
settle_length(struct http_head *h, struct http_text t)
{
	h->has_length = true;
	if (t.n == 0)
		return false;
	for (size_t i = 0; i < t.n; i++) {
		uint64_t digit = (uint64_t)(t.p[i] - '0');

		if (t.p[i] < '0' || t.p[i] > '9')
			return false;
		/* Beyond 64 bits is beyond every limit. */
		if (h->length > (UINT64_MAX - digit) / 10)
			h->length = UINT64_MAX;
		else
			h->length = h->length * 10 + digit;
	}
	return true;
}

static int
settle_body(struct parse *s, uint64_t max)
{
	struct http_head *h = s->head;

	if (s->n_coding) {
		if (s->n_length || s->n_coding > 1 || h->minor == 0 || s->coding.n == 0)
			return HTTP_BAD_REQUEST;
		if (!http_text_is_token(s->coding, "chunked"))
			return 501;
		h->chunked = true;
	}
	if (s->n_length > 1 || (s->n_length && !settle_length(h, s->length)))
		return HTTP_BAD_REQUEST;
	return h->length > max ? HTTP_TOO_LARGE : 0;
}

static int
settle_head(struct parse *s, const struct http_limits *l)
{
	struct http_head *h = s->head;
	int status;

	if (!settle_host(s))
		return HTTP_BAD_REQUEST;
	status = settle_body(s, l->body_max);
	if (status)
		return status;
	h->keep_alive = !s->close && (h->minor == 1 || s->keep);
	/* RFC 9110, 10.1.1: HTTP/1.0 knows no expectations. */
	if (h->minor == 0)
		h->expect_continue = false;
	else if (s->expect_bad)
		return 417;
	if (!h->chunked && h->length == 0)
		h->expect_continue = false;
	return 0;
}

static void
head_clear(struct http_head *h)
{
	const struct http_text absent = {NULL, 0};

	/* Not the table, which is most of it. */
	h->method = HTTP_M_OTHER;
	h->method_text = h->target = h->path = h->authority = h->host = absent;
	h->minor = 0;
	h->keep_alive = h->expect_continue = h->chunked = h->has_length = false;
	h->length = 0;
	h->n_headers = 0;
}

int
http_parse_head(const struct http_limits *l, const char *p, size_t n,
    struct http_head *head, size_t *used)
{
	struct parse s = {.head = head, .c = {.p = p, .end = p + n, .out = HTTP_MORE}};
	const char *start;
	int status;

	head_clear(head);
	if (n && p[0] == '\r') {
		status = parse_crlf(&s.c);
		if (status)
			return status;
	}
	start = s.c.p;
	n -= (size_t)(start - p);
	cursor_limit(&s.c, start, n, l->line_max + 2, 414);
	status = parse_request_line(&s.c, head);
	if (status)
		return status;
	cursor_limit(&s.c, start, n, l->head_max, 431);
	if (s.c.p > s.c.end)
		return 431;
	while (s.c.p == s.c.end || *s.c.p != '\r') {
		status = parse_field(&s);
		if (status)
			return status;
	}
	status = parse_crlf(&s.c);
	if (status)
		return status;
	*used = (size_t)(s.c.p - p);
	return settle_head(&s, l);
}
