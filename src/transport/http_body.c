/* SPDX-License-Identifier: MIT */
/*
 * The framing of a request's body: a length, or chunks (RFC 9112, 7.1).
 *
 *	SIZE --hex--> DIGITS --;--> EXT
 *	                 |          |
 *	                 CR --------+--> SIZE_LF --size>0--> DATA --> DATA_CR --> DATA_LF
 *--> SIZE
 *	                                    |
 *	                                  size 0
 *	                                    v
 *	        END <-- END_LF <--CR-- TRAILER --token--> NAME --:--> VALUE --CR-->
 *VALUE_LF --> TRAILER
 *
 * Owns: nothing. Driven by: http_server.
 * Invariants: what a line may hold is bounded; each byte is judged once; the total
 * never passes the limit.
 */
#include "mcpvisor/http_parse.h"

#include "http_parse_priv.h"

#define SIZE_DIGITS_MAX 16
#define EXT_BYTES_MAX	256
#define TRAILER_MAX	8192

enum body_state {
	BODY_ST_SIZE,
	BODY_ST_DIGITS,
	BODY_ST_EXT,
	BODY_ST_SIZE_LF,
	BODY_ST_DATA,
	BODY_ST_DATA_CR,
	BODY_ST_DATA_LF,
	BODY_ST_TRAILER,
	BODY_ST_NAME,
	BODY_ST_VALUE,
	BODY_ST_VALUE_LF,
	BODY_ST_END_LF,
	BODY_ST_END
};

void
http_body_init(
    struct http_body *b, const struct http_head *h, const struct http_limits *l)
{
	*b = (struct http_body){
	    .chunked = h->chunked,
	    .left = h->chunked ? 0 : h->length,
	    .max = l->body_max,
	    .state = BODY_ST_SIZE,
	};
}

static int
body_on_size(struct http_body *b, char c)
{
	int digit = http_hex(c);

	if (digit >= 0) {
		if (++b->line > SIZE_DIGITS_MAX)
			return HTTP_BAD_REQUEST;
		b->left = b->left << 4 | (uint64_t)digit;
		b->state = BODY_ST_DIGITS;
		return 0;
	}
	if (b->state == BODY_ST_SIZE || (c != ';' && c != '\r'))
		return HTTP_BAD_REQUEST;
	b->line = 0;
	b->state = c == ';' ? BODY_ST_EXT : BODY_ST_SIZE_LF;
	return b->left > b->max - b->total ? HTTP_TOO_LARGE : 0;
}

/* A line's text up to its CR. */
static int
body_on_text(struct http_body *b, char c, enum body_state next)
{
	if (c == '\r')
		b->state = next;
	else if (!http_is_value(c))
		return HTTP_BAD_REQUEST;
	return 0;
}

static int
body_on_lf(struct http_body *b, char c, enum body_state next)
{
	b->state = next;
	b->line = 0;
	return c == '\n' ? 0 : HTTP_BAD_REQUEST;
}

static int
body_on_trailer(struct http_body *b, char c)
{
	if (++b->trailer > TRAILER_MAX)
		return HTTP_BAD_REQUEST;
	if (b->state == BODY_ST_VALUE)
		return body_on_text(b, c, BODY_ST_VALUE_LF);
	if (b->state == BODY_ST_TRAILER && c == '\r') {
		b->state = BODY_ST_END_LF;
		return 0;
	}
	if (b->state == BODY_ST_NAME && c == ':') {
		b->state = BODY_ST_VALUE;
		return 0;
	}
	b->state = BODY_ST_NAME;
	return http_is_token(c) ? 0 : HTTP_BAD_REQUEST;
}

static int
body_on_byte(struct http_body *b, char c)
{
	switch ((enum body_state)b->state) {
	case BODY_ST_SIZE:
	case BODY_ST_DIGITS:
		return body_on_size(b, c);
	case BODY_ST_EXT:
		if (++b->line > EXT_BYTES_MAX)
			return HTTP_BAD_REQUEST;
		return body_on_text(b, c, BODY_ST_SIZE_LF);
	case BODY_ST_SIZE_LF:
		return body_on_lf(b, c, b->left ? BODY_ST_DATA : BODY_ST_TRAILER);
	case BODY_ST_DATA_CR:
		b->state = BODY_ST_DATA_LF;
		return c == '\r' ? 0 : HTTP_BAD_REQUEST;
	case BODY_ST_DATA_LF:
		return body_on_lf(b, c, BODY_ST_SIZE);
	case BODY_ST_TRAILER:
	case BODY_ST_NAME:
	case BODY_ST_VALUE:
		return body_on_trailer(b, c);
	case BODY_ST_VALUE_LF:
		return body_on_lf(b, c, BODY_ST_TRAILER);
	case BODY_ST_END_LF:
		return body_on_lf(b, c, BODY_ST_END);
	case BODY_ST_DATA:
	case BODY_ST_END:
		break;
	}
	return HTTP_BAD_REQUEST;
}

/* As much as there is of a length or a chunk. */
static size_t
body_take(struct http_body *b, size_t n)
{
	size_t take = b->left < n ? (size_t)b->left : n;

	b->left -= take;
	b->total += take;
	return take;
}

static int
body_next_chunked(struct http_body *b, const char *p, size_t n, const char **data,
    size_t *len, size_t *used)
{
	size_t i = 0;

	while (i < n && b->state != BODY_ST_END) {
		int status;

		if (b->state == BODY_ST_DATA) {
			if (*len)
				break; /* one run a call */
			*data = p + i;
			*len = body_take(b, n - i);
			i += *len;
			if (b->left == 0)
				b->state = BODY_ST_DATA_CR;
			continue;
		}
		status = body_on_byte(b, p[i]);
		if (status)
			return status;
		i++;
	}
	*used = i;
	return b->state == BODY_ST_END ? 0 : HTTP_MORE;
}

int
http_body_next(struct http_body *b, const char *p, size_t n, const char **data,
    size_t *len, size_t *used)
{
	*data = NULL;
	*len = 0;
	*used = 0;
	if (b->chunked)
		return body_next_chunked(b, p, n, data, len, used);
	if (b->left && n) {
		*data = p;
		*len = body_take(b, n);
		*used = *len;
	}
	return b->left ? HTTP_MORE : 0;
}
