/* layer: io, fakes: web */
/* SPDX-License-Identifier: MIT */
/* Names of hosts, with a name server on the same loop that answers, lies, or is silent.
 */
#include "curl_rig.h"

#include "resolver_priv.h"

#include <dirent.h>
#include <strings.h>

#include <netinet/in.h>

#define TYPE_A	  1
#define TYPE_AAAA 28

static const struct canned table[] = {
    {"/hello", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello", 5,
	.is_silent = false},
    {NULL, NULL, NULL, 0, .is_silent = false},
};

static int dns_fd;
static uint16_t dns_port;
static struct watch dns_watch;
static unsigned questions;
static bool is_hole;

/* Names as on the wire. */
static const struct {
	const char *name;
	const char *v4, *v6;
} zone[] = {
    {"\4here\4test", "\x7f\0\0\1", NULL},
    /* Nobody listens at the other one. */
    {"\4both\4test", "\x7f\0\0\1", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"},
    {"\4none\4test", NULL, NULL},
};

static size_t
dns_put(unsigned char *p, size_t at, const void *what, size_t n)
{
	memcpy(p + at, what, n);
	return at + n;
}

/* Makes the answer out of the question. */
static size_t
dns_answer(unsigned char *p, size_t n)
{
	size_t name = strlen((char *)p + 12) + 1, at = 12 + name + 4;
	unsigned type = p[12 + name + 1];
	const char *data = NULL;
	size_t len = type == TYPE_A ? 4 : 16;
	bool known = false;

	ck_assert_uint_le(at, n);
	for (size_t i = 0; i < sizeof(zone) / sizeof(zone[0]); i++) {
		if (strcasecmp(zone[i].name, (char *)p + 12) != 0)
			continue;
		known = true;
		data = type == TYPE_A ? zone[i].v4 : zone[i].v6;
	}
	p[2] = 0x81;
	p[3] = known ? 0x80 : 0x83;
	memset(p + 6, 0, 6);
	if (!data)
		return at;
	p[7] = 1;
	at = dns_put(p, at, "\xc0\x0c\0", 3);
	p[at++] = (unsigned char)type;
	at = dns_put(p, at, "\0\1\0\0\0\x3c\0", 7);
	p[at++] = (unsigned char)len;
	return dns_put(p, at, data, len);
}

static void
on_question(void *arg, unsigned ready)
{
	unsigned char p[1024];
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(dns_fd, p, 512, 0, (struct sockaddr *)&from, &len);

	(void)arg;
	(void)ready;
	if (n < 16)
		return;
	p[n] = '\0';
	questions++;
	if (is_hole)
		return;
	n = (ssize_t)dns_answer(p, (size_t)n);
	ck_assert_int_eq(
	    sendto(dns_fd, p, (size_t)n, 0, (struct sockaddr *)&from, len), n);
}

static void
setup_dns(void)
{
	char address[32];

	web.answers = table;
	questions = 0;
	is_hole = false;
	dns_fd = web_socket(SOCK_DGRAM, &dns_port);
	watch_init(&dns_watch, l, dns_fd, on_question, NULL);
	watch_want(&dns_watch, WATCH_READ);
	snprintf(address, sizeof(address), "127.0.0.1:%u", dns_port);
	ck_assert(curl_loop_set_name_server(it, address));
}

static void
teardown_dns(void)
{
	watch_fini(&dns_watch);
	close(dns_fd);
}

static void
ask(struct seen *s, const char *host, uint32_t connect_ms)
{
	struct transfer_opts o = {
	    .url = url_of("http", host, "/hello"), .proxy = "", .connect_ms = connect_ms};

	memset(s, 0, sizeof(*s));
	start(s, &o);
}

static const struct {
	const char *host;
	bool needed;
} hosts[] = {
    {"a", true},
    {"localhost.a", true},
    {"nolocalhost", true},
    {"1.a", true},
    {"127.0.0.1", false},
    {"[::1]", false},
    {"localhost", false},
    {"a.localhost", false},
};

START_TEST(test_needed)
{
	ck_assert_int_eq(resolver_is_needed(hosts[_i].host), hosts[_i].needed);
}
END_TEST

START_TEST(test_server_address)
{
	ck_assert(!curl_loop_set_name_server(it, ""));
	ck_assert(!curl_loop_set_name_server(it, "a.test"));
	ck_assert(!curl_loop_set_name_server(it, "127.0.0.1:99999"));
	ck_assert(curl_loop_set_name_server(it, "[::1]:53"));
}
END_TEST

static int
count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	ck_assert_ptr_nonnull(d);
	for (const struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static const char *const there[] = {"here.test", "HERE.Test", "both.test", "localhost"};

/* curl has no thread of its own for any of these. */
START_TEST(test_found)
{
	int threads = count_threads();
	struct seen s;

	ask(&s, there[_i], 0);
	while (s.ends == 0) {
		ck_assert_int_eq(count_threads(), threads);
		settle(1);
	}
	ck_assert_msg(s.err == MV_OK, "%s", s.text);
	buf_fini(&s.body);
}
END_TEST

/* One question for each kind of address, however many ask, and none for a while. */
START_TEST(test_kept)
{
	struct seen s[8];

	for (int i = 0; i < 8; i++)
		ask(&s[i], "here.test", 0);
	for (int i = 0; i < 8; i++) {
		finish(&s[i]);
		ck_assert_int_eq(s[i].err, MV_OK);
		buf_fini(&s[i].body);
	}
	ck_assert_uint_eq(questions, 2);
	is_hole = true;
	ask(&s[0], "here.test", 0);
	finish(&s[0]);
	ck_assert_int_eq(s[0].err, MV_OK);
	buf_fini(&s[0].body);
	ck_assert_uint_eq(questions, 2);
}
END_TEST

static const struct {
	const char *host, *words;
} absent[] = {
    {"gone.test", "there is no such name"},
    {"none.test", "no name server has an address of it"},
};

START_TEST(test_absent)
{
	struct seen s;
	char text[128];

	ask(&s, absent[_i].host, 0);
	finish(&s);
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
	snprintf(
	    text, sizeof(text), "%s:%u: %s", absent[_i].host, web.port, absent[_i].words);
	ck_assert_msg(strcmp(s.text, text) == 0, "%s", s.text);
	buf_fini(&s.body);
}
END_TEST

/* While nobody answers the loop goes on, and so do others. */
START_TEST(test_hole)
{
	struct seen s, other;
	uint64_t begin = clock_now_ms(), turn, slowest = 0;

	is_hole = true;
	ask(&s, "here.test", 400);
	while (s.ends == 0) {
		turn = clock_now_ms();
		get(&other, "/hello");
		while (other.ends == 0)
			loop_run(l);
		ck_assert_int_eq(other.err, MV_OK);
		buf_fini(&other.body);
		turn = clock_now_ms() - turn;
		slowest = turn > slowest ? turn : slowest;
	}
	ck_assert_int_eq(s.err, MV_UNREACHABLE);
	ck_assert_ptr_nonnull(strstr(s.text, "no name server answered in time"));
	ck_assert_uint_ge(clock_now_ms() - begin, 350);
	ck_assert_uint_lt(clock_now_ms() - begin, 5000);
	ck_assert_uint_lt(slowest, 300);
	ck_assert_uint_gt(questions, 0);
	buf_fini(&s.body);
}
END_TEST

/* Given up one by one, and all at once with the loop's end; the answer to the first is
 * still taken. */
START_TEST(test_given_up)
{
	struct seen s[3];

	is_hole = true;
	for (int i = 0; i < 3; i++)
		ask(&s[i], i == 2 ? "both.test" : "here.test", 0);
	while (questions < 4)
		settle(5);
	transfer_cancel(s[0].t);
	transfer_cancel(s[1].t);
	settle(5);
	ask(&s[0], "here.test", 0);
	settle(5);
	curl_loop_free(it);
	it = NULL;
	ck_assert_int_eq(s[0].ends + s[1].ends + s[2].ends, 0);
}
END_TEST

/* A server that works in place of one that does not. */
START_TEST(test_other_server)
{
	struct seen s, again;
	uint16_t hole_port;
	int hole = web_socket(SOCK_DGRAM, &hole_port);
	char address[32];

	snprintf(address, sizeof(address), "127.0.0.1:%u", hole_port);
	ck_assert(curl_loop_set_name_server(it, address));
	ask(&s, "here.test", 0);
	settle(20);
	ck_assert_int_eq(s.ends, 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", dns_port);
	ck_assert(curl_loop_set_name_server(it, address));
	ask(&again, "here.test", 0);
	finish(&again);
	finish(&s);
	ck_assert_int_eq(again.err, MV_OK);
	ck_assert_int_eq(s.err, MV_OK);
	buf_fini(&s.body);
	buf_fini(&again.body);
	close(hole);
}
END_TEST

START_TEST(test_hosts_file)
{
	char line[256], name[128];
	FILE *f = fopen("/etc/hosts", "r");
	bool found = false;
	struct seen s;

	while (f && !found && fgets(line, sizeof(line), f))
		found =
		    sscanf(line, "127.%*s %127s", name) == 1 && resolver_is_needed(name);
	if (f)
		fclose(f);
	if (!found)
		return; /* this one names nothing of the kind */
	ask(&s, name, 0);
	finish(&s);
	ck_assert_uint_eq(questions, 0);
	buf_fini(&s.body);
}
END_TEST

/* Where nobody listens any more, the next who comes asks anew. */
START_TEST(test_forgotten)
{
	uint16_t nobody;
	int fd = web_socket(SOCK_STREAM, &nobody);
	char url[64];
	struct transfer_opts o = {.url = url, .proxy = ""};

	snprintf(url, sizeof(url), "http://here.test:%u/", nobody);
	for (unsigned i = 1; i <= 2; i++) {
		struct seen s = {0};

		start(&s, &o);
		finish(&s);
		ck_assert_int_eq(s.err, MV_UNREACHABLE);
		ck_assert_uint_eq(questions, 2 * i);
		buf_fini(&s.body);
	}
	close(fd);
}
END_TEST

/* The name that counts is the proxy's. */
START_TEST(test_proxy_name)
{
	struct transfer_opts o = {.url = "http://gone.test/hello"};
	struct seen s = {0};
	char proxy[64];

	snprintf(proxy, sizeof(proxy), "here.test:%u", web.port);
	o.proxy = proxy;
	start(&s, &o);
	finish(&s);
	ck_assert_msg(s.err == MV_OK, "%s", s.text);
	ck_assert_uint_eq(questions, 2);
	buf_fini(&s.body);
}
END_TEST

#define COUNT(t) ((int)(sizeof(t) / sizeof((t)[0])))

int
main(void)
{
	Suite *s = suite_create("resolver");
	TCase *tc = tcase_create("resolver");

	setup_more = setup_dns;
	teardown_more = teardown_dns;
	tcase_add_loop_test(tc, test_needed, 0, COUNT(hosts));
	tcase_add_test(tc, test_server_address);
	tcase_add_loop_test(tc, test_found, 0, COUNT(there));
	tcase_add_test(tc, test_kept);
	tcase_add_loop_test(tc, test_absent, 0, COUNT(absent));
	tcase_add_test(tc, test_hole);
	tcase_add_test(tc, test_given_up);
	tcase_add_test(tc, test_other_server);
	tcase_add_test(tc, test_hosts_file);
	tcase_add_test(tc, test_forgotten);
	tcase_add_test(tc, test_proxy_name);
	return run_suite(s, tc);
}
