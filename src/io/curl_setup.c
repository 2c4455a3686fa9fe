/* SPDX-License-Identifier: MIT */
/*
 * What curl is told of a transfer, and what it tells back while one runs.
 *
 * Owns: nothing. Driven by: transfer_start; curl.
 * Invariants: inside curl's callbacks a transfer is only marked; a request that has a
 * body is never sent twice, because its first copy may have been acted on.
 */
#include "curl_loop_priv.h"

#include "mcpvisor/caps.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOINED_MAX (16u * 1024)
#define TYPE_BYTES 128
#define MAX_WAIT_S 1000000u

static const struct {
	CURLoption option;
	long value;
} numbers[] = {
    {CURLOPT_NOSIGNAL, 1},
    {CURLOPT_FOLLOWLOCATION, 0},
    {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS},
    {CURLOPT_TCP_KEEPALIVE, 1},
    {CURLOPT_TCP_KEEPIDLE, 60},
    {CURLOPT_TCP_KEEPINTVL, 30},
    {CURLOPT_SUPPRESS_CONNECT_HEADERS, 1},
    /* Many servers (node, uvicorn, Apache) close what idles for 5 s, and a POST that
     * meets such an end cannot be sent again. */
    {CURLOPT_MAXAGE_CONN, 3},
    /* Addresses that were handed over stay until others take their place. */
    {CURLOPT_DNS_CACHE_TIMEOUT, -1},
};

static const struct {
	CURLoption option;
	const char *value;
} texts[] = {
    {CURLOPT_PROTOCOLS_STR, "http,https"},
    {CURLOPT_ACCEPT_ENCODING, "gzip"},
    {CURLOPT_USERAGENT, "mcpvisor/" MCPVISOR_VERSION},
    /* Not as the environment says: that has been looked at. */
    {CURLOPT_NOPROXY, ""},
};

static size_t
on_read(char *p, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	size_t left = t->n_body - t->sent;

	if (t->state != TRANSFER_ST_RUNNING)
		return CURL_READFUNC_ABORT;
	n *= size;
	n = n < left ? n : left;
	if (n > 0)
		memcpy(p, t->body + t->sent, n);
	t->sent += n;
	return n;
}

/* curl sends again on a new connection what a kept one did not answer. */
static int
on_seek(void *arg, curl_off_t offset, int whence)
{
	const struct transfer *t = arg;

	return t->sent == 0 && offset == 0 && whence == SEEK_SET ? CURL_SEEKFUNC_OK
								 : CURL_SEEKFUNC_FAIL;
}

static const char *
transfer_header(struct transfer *t, const char *name, size_t at)
{
	struct curl_header *h;

	return t->c->lib->easy_header(t->easy, name, at, CURLH_HEADER, -1, &h) ==
		       CURLHE_OK
		   ? h->value
		   : NULL;
}

static const char *
transfer_media_type(struct transfer *t, char *out, size_t size)
{
	const char *s = transfer_header(t, "Content-Type", 0);
	size_t n = s ? strcspn(s, "; \t") : 0;

	if (n >= size)
		n = 0;
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)s[i]);
	out[n] = '\0';
	return out;
}

static uint32_t
transfer_retry_after(struct transfer *t)
{
	const char *s = transfer_header(t, "Retry-After", 0);
	uint32_t v = 0;

	if (!s || s[0] == '\0' || s[strspn(s, "0123456789")] != '\0')
		return 0;
	for (; *s && v < MAX_WAIT_S; s++)
		v = v * 10 + (uint32_t)(*s - '0');
	return v < MAX_WAIT_S ? v : MAX_WAIT_S;
}

/* NULL: there is none. */
static const char *
transfer_join(struct transfer *t, const char *name, struct buf *out)
{
	const char *s;

	for (size_t i = 0; (s = transfer_header(t, name, i)); i++) {
		if (i > 0)
			buf_add_str(out, ", ");
		buf_add_str(out, s);
	}
	return out->len > 0 ? buf_cstr(out) : NULL;
}

static void
transfer_take_head(struct transfer *t)
{
	char type[TYPE_BYTES];
	struct transfer_head h;
	struct buf joined;
	long status = 0;

	(void)t->c->lib->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 100 && status < 200)
		return;
	t->has_head = true;
	buf_init(&joined, JOINED_MAX);
	memset(&h, 0, sizeof(h));
	h.status = (int)status;
	h.content_type = transfer_media_type(t, type, sizeof(type));
	h.session_id = transfer_header(t, "Mcp-Session-Id", 0);
	h.location = transfer_header(t, "Location", 0);
	h.www_authenticate = transfer_join(t, "WWW-Authenticate", &joined);
	h.retry_after_s = transfer_retry_after(t);
	t->cb.on_head(t->arg, &h);
	buf_fini(&joined);
}

static size_t
on_header(char *p, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;

	n *= size;
	if (t->state != TRANSFER_ST_RUNNING)
		return 0;
	t->head_bytes += n;
	if (t->head_bytes > CAP_ANSWER_HEAD_BYTES) {
		t->refusal = "the head of the answer is too long";
		(void)t->c->lib->easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
		return 0;
	}
	/* What comes after the body is nobody's. */
	if (!t->has_head && n > 0 && (p[0] == '\r' || p[0] == '\n'))
		transfer_take_head(t);
	return t->state == TRANSFER_ST_RUNNING ? n : 0;
}

static size_t
on_body(char *p, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;

	n *= size;
	if (t->state != TRANSFER_ST_RUNNING)
		return 0;
	if (mem_wait_is_needed(&t->wait))
		mem_wait_start(&t->wait);
	if (t->is_paused || mem_wait_is_set(&t->wait)) {
		t->is_held = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (n > 0)
		t->cb.on_body(t->arg, p, n);
	return t->state == TRANSFER_ST_RUNNING ? n : 0;
}

static bool
transfer_add_line(struct transfer *t, const char *line)
{
	struct curl_slist *more = t->c->lib->slist_append(t->headers, line);

	if (more)
		t->headers = more;
	return more != NULL;
}

static bool
transfer_add_header(struct transfer *t, const char *line)
{
	size_t name = strcspn(line, ":");
	struct buf empty;
	bool ok;

	if (strpbrk(line, "\r\n") || line[name] != ':' || name == 0) {
		t->refusal = "a header is malformed";
		return true;
	}
	if (line[name + 1 + strspn(line + name + 1, " \t")] != '\0')
		return transfer_add_line(t, line);
	/* curl's way to send one without a value; as it is, it would take one out. */
	buf_init(&empty, SIZE_MAX / 2);
	buf_add(&empty, line, name);
	buf_add_char(&empty, ';');
	ok = buf_cstr(&empty) && transfer_add_line(t, empty.data);
	buf_fini(&empty);
	return ok;
}

static bool
transfer_set_headers(struct transfer *t, const struct transfer_opts *o)
{
	/* No waiting for a go-ahead, and no type of curl's choice. */
	bool ok = transfer_add_line(t, "Expect:");

	for (const char *const *h = o->headers; ok && h && *h; h++)
		ok = transfer_add_header(t, *h);
	return ok && t->c->lib->easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) ==
			 CURLE_OK;
}

static void
transfer_set_method(struct transfer *t, enum transfer_method m)
{
	const struct curl_lib *lib = t->c->lib;

	switch (m) {
	case TRANSFER_GET:
		(void)lib->easy_setopt(t->easy, CURLOPT_HTTPGET, 1L);
		break;
	case TRANSFER_POST:
		(void)lib->easy_setopt(t->easy, CURLOPT_POST, 1L);
		(void)lib->easy_setopt(
		    t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->n_body);
		(void)lib->easy_setopt(t->easy, CURLOPT_READFUNCTION, on_read);
		(void)lib->easy_setopt(t->easy, CURLOPT_READDATA, t);
		(void)lib->easy_setopt(t->easy, CURLOPT_SEEKFUNCTION, on_seek);
		(void)lib->easy_setopt(t->easy, CURLOPT_SEEKDATA, t);
		break;
	case TRANSFER_DELETE:
		(void)lib->easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, "DELETE");
		break;
	}
}

/* Of a pipe that nobody writes to, the library's open would not return. */
static void
transfer_check_files(struct transfer *t, const struct transfer_opts *o)
{
	const struct {
		const char *path, *refusal;
	} files[] = {
	    {o->ca_file, "its ca_file is not a regular file"},
	    {o->cert_file, "its cert_file is not a regular file"},
	    {o->key_file, "its key_file is not a regular file"},
	};
	struct stat st;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (files[i].path && stat(files[i].path, &st) == 0 &&
		    !S_ISREG(st.st_mode))
			t->refusal = files[i].refusal;
}

static void
transfer_set_tls(struct transfer *t, const struct transfer_opts *o)
{
	const struct curl_lib *lib = t->c->lib;
	const char *bundle = o->ca_file;

	transfer_check_files(t, o);
	if (bundle)
		(void)lib->easy_setopt(t->easy, CURLOPT_CAINFO, bundle);
	else
		(void)lib->easy_getinfo(t->easy, CURLINFO_CAINFO, &bundle);
	/* With a folder besides, curl reads the whole bundle for each connection, and
	 * keeps it for the next ones without. */
	if (o->ca_file || (bundle && access(bundle, R_OK) == 0))
		(void)lib->easy_setopt(t->easy, CURLOPT_CAPATH, (const char *)NULL);
	if (o->cert_file) {
		(void)lib->easy_setopt(t->easy, CURLOPT_SSLCERT, o->cert_file);
		(void)lib->easy_setopt(
		    t->easy, CURLOPT_SSLKEY, o->key_file ? o->key_file : o->cert_file);
	}
	if (o->skip_verify) {
		(void)lib->easy_setopt(t->easy, CURLOPT_SSL_VERIFYPEER, 0L);
		(void)lib->easy_setopt(t->easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

static bool
transfer_set_place(struct transfer *t, const struct transfer_opts *o)
{
	const struct curl_lib *lib = t->c->lib;
	struct buf proxy;
	bool ok;

	if (!url_read_origin(o->url, &t->origin)) {
		memset(&t->origin, 0, sizeof(t->origin));
		t->via = t->origin;
		t->refusal = "it cannot be fetched";
		return true;
	}
	buf_init(&proxy, SIZE_MAX / 2);
	if (!curl_proxy_find(o->proxy, &t->origin, &proxy, &t->via)) {
		t->via = t->origin;
		t->refusal = "its proxy is not the URL of one";
	}
	/* "" keeps curl from looking for itself. */
	ok = buf_cstr(&proxy) &&
	     lib->easy_setopt(t->easy, CURLOPT_PROXY, proxy.data) == CURLE_OK &&
	     lib->easy_setopt(t->easy, CURLOPT_URL, o->url) == CURLE_OK;
	if (proxy.data)
		explicit_bzero(proxy.data, proxy.cap);
	buf_fini(&proxy);
	return ok;
}

bool
transfer_setup(struct transfer *t, const struct transfer_opts *o)
{
	const struct curl_lib *lib = t->c->lib;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)lib->easy_setopt(t->easy, numbers[i].option, numbers[i].value);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		(void)lib->easy_setopt(t->easy, texts[i].option, texts[i].value);
	(void)lib->easy_setopt(t->easy, CURLOPT_PRIVATE, t);
	(void)lib->easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->error);
	(void)lib->easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
	(void)lib->easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
	(void)lib->easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
	(void)lib->easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	transfer_set_method(t, o->method);
	transfer_set_tls(t, o);
	return transfer_set_place(t, o) && transfer_set_headers(t, o);
}
