/* SPDX-License-Identifier: MIT */
/*
 * What the head of a request decides, before its body is read.
 *
 * Owns: nothing; makes the http_call that the exchange keeps.
 * Driven by: the server.
 * Invariants: Host and Origin come first, by the guard of the path at the address that
 * the connection came by; a refusal says what would have been taken. Spec: 2026-07-28
 * basic/transports/streamable-http, Security & Endpoint.
 */
#include "endpoint_http_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <string.h>

/* Names with Mcp-Param- are the tools' own; the asterisk does not stand for
 * Authorization. */
#define OPTIONS_HEADERS(methods)                                                         \
	HTTP_ALLOW(methods)                                                              \
	"Access-Control-Allow-Methods: " methods "\r\n"                                  \
	"Access-Control-Allow-Headers: Content-Type, Accept, Authorization, "            \
	"Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, "                   \
	"Last-Event-ID, *\r\n"                                                           \
	"Access-Control-Max-Age: 600\r\n"

static bool
text_has(struct http_text t, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= t.n; i++)
		if (strncasecmp(t.p + i, word, n) == 0)
			return true;
	return false;
}

/* Several Accept headers are one list. */
static void
call_read_accept(struct http_call *k, const struct http_head *h)
{
	bool any = false;

	for (unsigned i = 0; i < h->n_headers; i++) {
		struct http_text v = h->headers[i].value;

		if (!http_text_is_token(h->headers[i].name, "accept"))
			continue;
		any = true;
		k->takes_json |= text_has(v, "application/json") ||
				 text_has(v, "application/*") || text_has(v, "*/*");
		k->takes_stream |= text_has(v, "text/event-stream") ||
				   text_has(v, "text/*") || text_has(v, "*/*");
	}
	if (!any)
		k->takes_json = k->takes_stream = true;
}

static bool
head_is_json(const struct http_head *h)
{
	struct http_text type = http_header(h, "content-type", NULL);
	const char *semicolon = type.n ? memchr(type.p, ';', type.n) : NULL;

	if (semicolon != NULL)
		type.n = (size_t)(semicolon - type.p);
	while (type.n > 0 && (type.p[type.n - 1] == ' ' || type.p[type.n - 1] == '\t'))
		type.n--;
	/* Anything else a web page could send without asking first. */
	return http_text_is_token(type, "application/json");
}

struct guard_verdict {
	int status;
	bool is_host; /* what was refused */
	struct http_text cors;
};

static struct guard_verdict
guard_ask(const struct http_row *r, const struct http_head *h)
{
	struct guard_verdict v = {.cors = {NULL, 0}};

	v.status = http_guard_host(&r->guard, h);
	v.is_host = v.status != 0;
	if (v.status == 0)
		v.status = http_guard_origin(&r->guard, h, &v.cors);
	return v;
}

/* That of the row; of a path that is not there, whichever row lets it pass: nobody
 * else is to learn what there is. */
static struct guard_verdict
guard_judge(
    const struct http_door *d, const struct http_row *row, const struct http_head *h)
{
	struct guard_verdict v = {.status = 403, .is_host = true};

	if (row != NULL)
		return guard_ask(row, h);
	for (size_t i = 0; i < d->n_rows && v.status != 0; i++)
		v = guard_ask(&d->rows[i], h);
	return v;
}

/* 0, or a status. */
static int
head_guard(struct http_call *k, const struct guard_verdict *v, const struct http_head *h)
{
	struct http_text origin = http_header(h, "origin", NULL);

	if (v->status == 0 && v->cors.n > 0 && v->cors.n < sizeof(k->origin)) {
		memcpy(k->origin, v->cors.p, v->cors.n);
		k->origin[v->cors.n] = '\0';
	} else if (v->status != 0 && v->is_host) {
		LOG_LIMITED(LOG_LV_WARNING, "http", "host refused",
		    "host=%s hint=\"allowed_hosts of its listen row, or --allowed-host "
		    "NAME, allows it\"",
		    LOG_ESC(h->host.p, h->host.n));
	} else if (v->status != 0) {
		LOG_LIMITED(LOG_LV_WARNING, "http", "origin refused",
		    "origin=%s hint=\"allowed_origins of its listen row, or "
		    "--allowed-origin ORIGIN, allows it\"",
		    LOG_ESC(origin.p, origin.n));
	}
	return v->status;
}

/* Of HTTP+SSE: a stream that everything comes on, and messages to it. */
static int
head_status_sse(struct http_call *k, const struct http_head *h)
{
	if (h->method == HTTP_M_OPTIONS)
		return 0;
	call_read_accept(k, h);
	if (h->method == HTTP_M_GET)
		return k->takes_stream ? 0 : 406;
	if (h->method != HTTP_M_POST)
		return 405;
	k->takes_json = true; /* its answers have no body, whatever it accepts */
	return head_is_json(h) ? 0 : 415;
}

static int
head_status(struct http_call *k, const struct http_head *h)
{
	const struct http_door *d = http_exchange_door(k->x);
	const struct http_row *row = http_door_find(d, h->path);
	struct guard_verdict v = guard_judge(d, row, h);
	int status = head_guard(k, &v, h);

	if (status != 0)
		return status;
	if (row == NULL)
		return 404;
	k->mount = http_mount_ref(row->mount);
	if (k->mount->is_sse)
		return head_status_sse(k, h);
	if (h->method == HTTP_M_OPTIONS || h->method == HTTP_M_DELETE)
		return 0;
	if (h->method != HTTP_M_POST && h->method != HTTP_M_GET)
		return 405;
	call_read_accept(k, h);
	if (h->method == HTTP_M_GET)
		return k->takes_stream ? 0 : 406;
	if (!head_is_json(h))
		return 415;
	return k->takes_json || k->takes_stream ? 0 : 406;
}

static const char *
head_allow(const struct http_call *k)
{
	return k->mount->is_sse ? HTTP_ALLOW(HTTP_METHODS_SSE)
				: HTTP_ALLOW(HTTP_METHODS_ALL);
}

/* The server has plain words for the others. */
static void
head_refuse(struct http_call *k, int status)
{
	if (status == 405)
		http_call_reply(k, 405, head_allow(k), NULL, NULL, 0);
	else if (status == 403)
		http_call_refuse(k, 403, WORDING_FORBIDDEN);
	else if (status == 406)
		http_call_refuse(k, 406, WORDING_NOT_ACCEPTABLE);
	else if (status == 415)
		http_call_refuse(k, 415, WORDING_MEDIA_TYPE);
}

void
http_call_options(struct http_call *k)
{
	http_call_reply(k, 204,
	    k->mount->is_sse ? OPTIONS_HEADERS(HTTP_METHODS_SSE)
			     : OPTIONS_HEADERS(HTTP_METHODS_ALL),
	    NULL, NULL, 0);
}

int
http_call_on_head(
    void *arg, struct http_exchange *x, const struct http_head *h, void **user)
{
	struct endpoint_http *e = arg;
	struct http_call *k = mem_try(sizeof(*k));
	int status;

	MCPVISOR_ASSERT(e->magic == ENDPOINT_MAGIC);
	*user = k;
	if (k == NULL)
		return 503;
	memset(k, 0, sizeof(*k));
	k->magic = HTTP_CALL_MAGIC;
	k->e = e;
	k->x = x;
	k->port = (struct client_port){.ops = &http_port_ops, .arg = k};
	status = e->state == HTTP_ST_OPEN ? head_status(k, h) : 503;
	head_refuse(k, status);
	return status;
}

bool
http_call_read_version(struct http_call *k, const struct http_head *h)
{
	bool doubled;
	struct http_text v = http_header(h, "mcp-protocol-version", &doubled);
	enum revision r = REVISION_NONE;
	char quoted[64];

	if (v.p == NULL)
		return true;
	if (doubled) {
		http_call_refuse(k, 400, WORDING_VERSION_TWICE);
		return false;
	}
	if (v.n < sizeof(quoted) - 2) {
		quoted[0] = '"';
		memcpy(quoted + 1, v.p, v.n);
		quoted[v.n + 1] = '"';
		r = revision_parse((struct jtext){quoted, v.n + 2});
	}
	k->port.modern = r == REVISION_NONE || revision_is_modern(r);
	k->no_batches = !revision_has_batches(r);
	k->no_revision = r == REVISION_NONE;
	return true;
}
