/* SPDX-License-Identifier: MIT */
/* An HTTP link and a scripted server in one loop with a bound. */
#ifndef HTTP_LINK_RIG_H
#define HTTP_LINK_RIG_H

#include "http_link_owner.h"
#include "http_script_rig.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/curl_loop.h"

#include <arpa/inet.h>
#include <stdio.h>

#define BOUND_MS    20000
#define MESSAGE_MAX 2048
#define OUT_MAX	    8192

#define EV(data)   "data: " data "\n\n"
#define RESULT(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{}}"
#define ERROR(id)                                                                        \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":-1,\"message\":\"\"}}"
#define NOTE "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}"
#define ASK  "{\"jsonrpc\":\"2.0\",\"id\":70,\"method\":\"m\"}"

static struct curl_loop *curl;
static struct timer bound, tick;
static struct http_link_opts opts;
static struct buf url;

static inline void
on_bound(void *arg)
{
	(void)arg;
	ck_abort_msg("nothing happened in time: \"%s\", step %d, last request:\n%s",
	    buf_cstr(&seen), at_step, buf_cstr(&request));
}

static inline void
start_server(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t n = sizeof(a);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(bind(listen_fd, (void *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(listen_fd, 16), 0);
	ck_assert_int_eq(getsockname(listen_fd, (void *)&a, &n), 0);
	port = ntohs(a.sin_port);
	watch_init(&listening, l, listen_fd, on_listen, NULL);
	watch_want(&listening, WATCH_READ);
}

static inline void
end_server(void)
{
	watch_fini(&listening);
	close(listen_fd);
	for (int i = 0; i < n_conns; i++) {
		conn_close(&conns[i]);
		buf_fini(&conns[i].in);
		buf_fini(&conns[i].out);
	}
}

/* The steps to come. */
#define SCRIPT(...)                                                                      \
	do {                                                                             \
		static const struct step steps_[] = {__VA_ARGS__};                       \
		steps = steps_;                                                          \
		n_steps = sizeof(steps_) / sizeof(*steps_);                              \
		at_step = 0;                                                             \
	} while (0)

static inline enum mv_err
send_message(uint64_t id, bool is_initialize, const char *lines, const char *text)
{
	const struct http_message what = {
	    .id = id, .is_initialize = is_initialize, .lines = lines};
	char *copy = mem_xstrdup(text);
	size_t n = strlen(copy);
	struct iovec iov[2] = {{copy, n / 2}, {copy + n / 2, n - n / 2}};
	enum mv_err err = http_link_send(k, &what, iov, 2);

	mem_free(copy);
	return err;
}

static inline void
ask(uint64_t id)
{
	char text[128];

	(void)snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"m\"}", (unsigned long long)id);
	ck_assert_int_eq(send_message(id, false, NULL, text), MV_OK);
}

static inline void
note(void)
{
	ck_assert_int_eq(send_message(0, false, NULL, NOTE), MV_OK);
}

/* Runs until this has come of the link, and nothing else; it is eaten. */
static inline void
await(const char *text)
{
	while (seen.len < strlen(text)) {
		ck_assert_mem_eq(buf_cstr(&seen), text, seen.len);
		loop_run(l);
	}
	ck_assert_str_eq(buf_cstr(&seen), text);
	buf_reset(&seen);
}

/* Until so many requests came. */
static inline void
await_step(int n)
{
	while (at_step < n) {
		ck_assert_ptr_null(strstr(buf_cstr(&seen), "failed"));
		loop_run(l);
	}
	ck_assert_int_eq(at_step, n);
}

static inline void
await_closed(int n)
{
	while (n_closed < n)
		loop_run(l);
}

static inline void
on_tick(void *arg)
{
	(void)arg;
	loop_stop(l, 0);
}

/* A while in which nothing comes. */
static inline void
await_nothing(void)
{
	uint64_t end = clock_now_ms() + 60;

	while (clock_now_ms() < end) {
		timer_set(&tick, 10);
		loop_run(l);
	}
	ck_assert_str_eq(buf_cstr(&seen), "");
	ck_assert_int_eq(at_step, n_steps);
}

/* A session begins. */
#define HELLO                                                                            \
	{                                                                                \
		.want = "\"initialize\"|!mcp-session-id", .status = 200, .type = JSON,   \
		.body = RESULT("1"), .extra = "Mcp-Session-Id: s1\r\n"                   \
	}
#define HELLO_AGAIN                                                                      \
	{                                                                                \
		.want = "\"initialize\"|!mcp-session-id", .status = 200, .type = JSON,   \
		.body = RESULT("1"), .extra = "Mcp-Session-Id: s2\r\n"                   \
	}

static inline void
hello(void)
{
	ck_assert_int_eq(send_message(1, true, NULL,
			     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}"),
	    MV_OK);
	await("1:r1 ");
}

static inline void
open_link(void)
{
	http_link_free(k);
	k = http_link_new(l, curl, &opts, &link_cb, &seen);
}

static inline void
setup(void)
{
	l = loop_new();
	curl = curl_loop_new(l);
	timer_init(&bound, l, on_bound, NULL);
	timer_set(&bound, BOUND_MS);
	timer_init(&tick, l, on_tick, NULL);
	buf_init(&seen, 1u << 16);
	buf_init(&request, 1u << 20);
	buf_init(&url, 256);
	buf_init(&fail_text, 4096);
	(void)buf_reserve(&seen, 4096);
	(void)buf_reserve(&fail_text, 4095);
	n_conns = n_closed = n_steps = at_step = calls = free_at = 0;
	steps = NULL;
	last = NULL;
	piece = 0;
	is_lenient = false;
	has_headers = true;
	start_server();
	buf_addf(&url, "http://127.0.0.1:%d/mcp", port);
	opts = (struct http_link_opts){
	    .url = buf_cstr(&url),
	    .proxy = "",
	    .message_max = MESSAGE_MAX,
	    .out_max = OUT_MAX,
	};
	k = NULL;
	open_link();
}

static inline void
teardown(void)
{
	http_link_free(k);
	curl_loop_free(curl);
	end_server();
	timer_fini(&bound);
	timer_fini(&tick);
	loop_free(l);
	buf_fini(&seen);
	buf_fini(&request);
	buf_fini(&url);
	buf_fini(&fail_text);
}

#include "suite_rig.h"

#endif
