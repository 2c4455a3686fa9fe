/* layer: io, fakes: web, libs: libssl */
/* SPDX-License-Identifier: MIT */
/* Transfers over TLS, with an authority made for the test. */
#include "curl_rig.h"

#include "temp_rig.h"

#include <errno.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define PATH_BYTES sizeof(((struct temp *)0)->path)

static const struct canned table[] = {
    {"/hello", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello", 5,
	.is_silent = false},
    {NULL, NULL, NULL, 0, .is_silent = false},
};

struct pair {
	EVP_PKEY *key;
	X509 *cert;
};

static struct temp dir;
static struct pair ca, other_ca;
static SSL_CTX *server;
static char ca_file[PATH_BYTES], other_file[PATH_BYTES], both_file[PATH_BYTES],
    cert_file[PATH_BYTES], key_file[PATH_BYTES];

static void
extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(X509_add_ext(cert, e, -1), 1);
	X509_EXTENSION_free(e);
}

/* by NULL: signs itself, as an authority. */
static struct pair
issue(const char *name, const struct pair *by)
{
	struct pair p = {EVP_EC_gen("P-256"), X509_new()};
	X509_NAME *n = X509_get_subject_name(p.cert);
	static long serial;

	ck_assert(p.key && p.cert);
	ck_assert_int_eq(X509_set_version(p.cert, 2), 1);
	ASN1_INTEGER_set(X509_get_serialNumber(p.cert), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(p.cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(p.cert), 3600);
	X509_NAME_add_entry_by_txt(
	    n, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(p.cert, by ? X509_get_subject_name(by->cert) : n);
	X509_set_pubkey(p.cert, p.key);
	if (by)
		extend(p.cert, by->cert, NID_subject_alt_name, "IP:127.0.0.1");
	else
		extend(p.cert, p.cert, NID_basic_constraints, "critical,CA:TRUE");
	ck_assert_int_gt(X509_sign(p.cert, by ? by->key : p.key, EVP_sha256()), 0);
	return p;
}

static void
pair_free(struct pair *p)
{
	EVP_PKEY_free(p->key);
	X509_free(p->cert);
}

static void
save(const char *name, char *path, X509 *cert, EVP_PKEY *key)
{
	FILE *f;

	snprintf(path, PATH_BYTES, "%s", temp_path(&dir, name));
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	if (cert)
		ck_assert_int_eq(PEM_write_X509(f, cert), 1);
	if (key)
		ck_assert_int_eq(
		    PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
	fclose(f);
}

static void *
on_tls_accept(int fd)
{
	SSL *s = SSL_new(server);

	SSL_set_fd(s, fd);
	SSL_set_accept_state(s);
	return s;
}

static ssize_t
tls_result(SSL *s, int n)
{
	if (n > 0)
		return n;
	switch (SSL_get_error(s, n)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		errno = EIO;
		return -1;
	}
}

static ssize_t
on_tls_read(void *tls, void *p, size_t n)
{
	return tls_result(tls, SSL_read(tls, p, (int)n));
}

static ssize_t
on_tls_write(void *tls, const void *p, size_t n)
{
	return tls_result(tls, SSL_write(tls, p, (int)n));
}

static void
on_tls_close(void *tls)
{
	SSL_free(tls);
}

static const struct web_tls tls = {
    on_tls_accept, on_tls_read, on_tls_write, on_tls_close};

static void
setup_tls(void)
{
	struct pair own, client;

	web.answers = table;
	temp_make(&dir);
	ca = issue("authority", NULL);
	other_ca = issue("another", NULL);
	own = issue("127.0.0.1", &ca);
	client = issue("client", &ca);
	save("ca.pem", ca_file, ca.cert, NULL);
	save("other.pem", other_file, other_ca.cert, NULL);
	save("both.pem", both_file, client.cert, client.key);
	save("cert.pem", cert_file, client.cert, NULL);
	save("key.pem", key_file, NULL, client.key);
	server = SSL_CTX_new(TLS_server_method());
	ck_assert_int_eq(SSL_CTX_use_certificate(server, own.cert), 1);
	ck_assert_int_eq(SSL_CTX_use_PrivateKey(server, own.key), 1);
	X509_STORE_add_cert(SSL_CTX_get_cert_store(server), ca.cert);
	pair_free(&own);
	pair_free(&client);
	web.tls = &tls;
}

static void
teardown_tls(void)
{
	SSL_CTX_free(server);
	pair_free(&ca);
	pair_free(&other_ca);
	temp_remove(&dir);
}

static void
try(struct seen *s, struct transfer_opts *o, const char *host)
{
	o->url = url_of("https", host, "/hello?secret");
	o->proxy = "";
	memset(s, 0, sizeof(*s));
	start(s, o);
	finish(s);
	buf_fini(&s->body);
	ck_assert_ptr_null(strstr(s->text, "secret"));
}

START_TEST(test_trusted)
{
	struct transfer_opts o = {.ca_file = ca_file};
	struct seen s;

	for (int i = 0; i < 3; i++) {
		try(&s, &o, "127.0.0.1");
		ck_assert_msg(s.err == MV_OK, "%s", s.text);
		ck_assert_int_eq(s.status, 200);
	}
	ck_assert_int_eq(web.n_conns, 1);
	/* A connection made with less trust is not used by who has more. */
	o.ca_file = other_file;
	try(&s, &o, "127.0.0.1");
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
}
END_TEST

START_TEST(test_not_trusted)
{
	struct transfer_opts none = {.ca_file = NULL}, other = {.ca_file = other_file},
			     missing = {.ca_file = "/nonexistent/ca.pem"},
			     name = {.ca_file = ca_file}, skip = {.skip_verify = true};
	struct seen s;

	try(&s, &skip, "127.0.0.1");
	ck_assert_int_eq(s.err, MV_OK);
	try(&s, &none, "127.0.0.1");
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
	ck_assert_msg(strstr(s.text, "certificate") != NULL, "%s", s.text);
	try(&s, &other, "127.0.0.1");
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
	try(&s, &missing, "127.0.0.1");
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
	ck_assert_msg(strstr(s.text, "/nonexistent/ca.pem") != NULL, "%s", s.text);
	try(&s, &name, "localhost");
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
	ck_assert_uint_eq(web.n_requests, 1);
}
END_TEST

START_TEST(test_client_certificate)
{
	struct transfer_opts none = {.ca_file = ca_file},
			     two = {.ca_file = ca_file,
				 .cert_file = cert_file,
				 .key_file = key_file},
			     one = {.ca_file = ca_file, .cert_file = both_file},
			     bad = {.ca_file = ca_file, .cert_file = "/nonexistent/c"};
	struct seen s;

	SSL_CTX_set_verify(
	    server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	try(&s, &none, "127.0.0.1");
	ck_assert_int_ne(s.err, MV_OK);
	ck_assert_int_eq(s.heads, 0);
	try(&s, &two, "127.0.0.1");
	ck_assert_msg(s.err == MV_OK, "%s", s.text);
	try(&s, &one, "127.0.0.1");
	ck_assert_msg(s.err == MV_OK, "%s", s.text);
	try(&s, &bad, "127.0.0.1");
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
	ck_assert_uint_eq(web.n_requests, 2);
}
END_TEST

/* What would never be read to its end holds up nobody. */
START_TEST(test_no_file)
{
	const char *pipe = temp_path(&dir, "pipe");
	struct transfer_opts all[] = {{.ca_file = pipe},
	    {.ca_file = ca_file, .cert_file = pipe},
	    {.ca_file = ca_file, .cert_file = cert_file, .key_file = pipe}};
	struct seen s;

	ck_assert_int_eq(mkfifo(pipe, 0600), 0);
	try(&s, &all[_i], "127.0.0.1");
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
	ck_assert_msg(
	    strstr(s.text, "_file is not a regular file") != NULL, "%s", s.text);
	ck_assert_uint_eq(web.n_requests, 0);
}
END_TEST

/* The other side speaks no TLS. */
START_TEST(test_plain)
{
	struct transfer_opts o = {.ca_file = ca_file};
	struct seen s;

	web.tls = NULL;
	web.answers = (const struct canned[]){{"", "", "", 0, .ends = true}};
	o.connect_ms = 500;
	try(&s, &o, "127.0.0.1");
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
}
END_TEST

#define H2_PREFACE_BYTES 24
#define H2_FRAME_BYTES	 9
#define H2_END_STREAM	 1
#define H2_END_HEADERS	 4
#define H2_ACK		 1

enum { H2_DATA, H2_HEADERS, H2_PRIORITY, H2_RST_STREAM, H2_SETTINGS };

static unsigned h2_resets, h2_requests;
static bool h2_hold; /* answers have no end */
static bool h2_is_silent;

static void
h2_add(struct buf *out, int type, int flags, unsigned stream, const char *p, size_t n)
{
	const char head[H2_FRAME_BYTES] = {
	    0, 0, (char)n, (char)type, (char)flags, 0, 0, 0, (char)stream};

	buf_add(out, head, sizeof(head));
	buf_add(out, p, n);
}

static void
h2_take_frame(struct web_conn *c, int type, int flags, unsigned stream)
{
	if (type == H2_SETTINGS && !(flags & H2_ACK))
		h2_add(&c->out, H2_SETTINGS, H2_ACK, 0, "", 0);
	if (type == H2_RST_STREAM)
		h2_resets++;
	if ((type != H2_HEADERS && type != H2_DATA) || !(flags & H2_END_STREAM))
		return;
	h2_requests++;
	if (h2_is_silent)
		return;
	/* ":status: 200" is one byte. */
	h2_add(&c->out, H2_HEADERS, H2_END_HEADERS, stream, "\x88", 1);
	h2_add(&c->out, H2_DATA, h2_hold ? 0 : H2_END_STREAM, stream, "hello", 5);
}

static void
h2_take(struct web_conn *c)
{
	if (c->requests == 0) {
		if (c->in.len < H2_PREFACE_BYTES)
			return;
		c->requests = 1;
		buf_drop(&c->in, H2_PREFACE_BYTES);
		h2_add(&c->out, H2_SETTINGS, 0, 0, "", 0);
	}
	while (c->in.len >= H2_FRAME_BYTES) {
		const unsigned char *p = (const unsigned char *)c->in.data;
		size_t n =
		    H2_FRAME_BYTES + ((size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2]);

		if (c->in.len < n)
			return;
		h2_take_frame(c, p[3], p[4], p[8]);
		buf_drop(&c->in, n);
	}
}

static int
on_alpn(SSL *s, const unsigned char **out, unsigned char *n, const unsigned char *in,
    unsigned in_n, void *arg)
{
	static const unsigned char h2[] = "h2";

	(void)s;
	(void)arg;
	ck_assert_ptr_nonnull(memmem(in, in_n, h2, 2));
	*out = h2;
	*n = 2;
	return SSL_TLSEXT_ERR_OK;
}

/* Several share a connection, and one that is given up leaves the others alone. */
START_TEST(test_http2)
{
	struct iovec iov = {(char *)(uintptr_t) "body", 4};
	struct transfer_opts o = {.ca_file = ca_file, .proxy = ""};
	struct transfer_opts post = {
	    .method = TRANSFER_POST, .ca_file = ca_file, .body = &iov, .n_body = 1};
	struct seen all[3] = {{0}}, b;

	SSL_CTX_set_alpn_select_cb(server, on_alpn, NULL);
	web.take = h2_take;
	h2_resets = h2_requests = 0;
	h2_hold = true;
	o.url = url_of("https", "127.0.0.1", "/hello");
	for (int i = 0; i < 3; i++) {
		/* The last one has no answer at all. */
		h2_is_silent = i == 2;
		start(&all[i], &o);
		while (h2_requests < (unsigned)i + 1 || (i < 2 && all[i].body.len < 5))
			settle(5);
	}
	h2_hold = h2_is_silent = false;
	try(&b, &post, "127.0.0.1");
	ck_assert_msg(b.err == MV_OK, "%s", b.text);
	ck_assert_int_eq(b.status, 200);
	for (unsigned i = 0; i < 2; i++) {
		transfer_cancel(all[i].t);
		while (h2_resets < i + 1)
			settle(5);
	}
	ck_assert_int_eq(web.n_conns, 1);
	ck_assert_int_ge(web.conns[0].fd, 0);
	/* With the last one goes the connection. */
	transfer_cancel(all[2].t);
	while (web.conns[0].fd >= 0)
		settle(5);
	try(&b, &o, "127.0.0.1");
	ck_assert_int_eq(b.err, MV_OK);
	ck_assert_uint_eq(h2_requests, 5);
	/* From inside, too. */
	h2_hold = true;
	memset(&b, 0, sizeof(b));
	o.url = url_of("https", "127.0.0.1", "/hello");
	start(&b, &o);
	b.cancel_in_head = true;
	while (web.conns[1].fd >= 0)
		settle(5);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(all[i].ends, 0);
		buf_fini(&all[i].body);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("curl_tls");
	TCase *tc = tcase_create("curl_tls");

	setup_more = setup_tls;
	teardown_more = teardown_tls;
	tcase_add_test(tc, test_trusted);
	tcase_add_test(tc, test_not_trusted);
	tcase_add_test(tc, test_client_certificate);
	tcase_add_loop_test(tc, test_no_file, 0, 3);
	tcase_add_test(tc, test_plain);
	tcase_add_test(tc, test_http2);
	return run_suite(s, tc);
}
