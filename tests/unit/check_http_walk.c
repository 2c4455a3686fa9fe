/* layer: transport */
/* SPDX-License-Identifier: MIT */
/* Random walks of clients at an HTTP server: whatever they do, in whatever order, each
 * exchange ends once and each connection is told of once (the rig counts them). */
#include "http_rig.h"

#define STEPS	300
#define SEEDS	40
#define CLIENTS 6

static const char *const words[] = {
    GET("/echo"),
    GET("/none"),
    GET("/big"),
    GET("/hold/a"),
    GET("/hold/b"),
    GET("/stream/s"),
    GET("/own"),
    "HEAD /echo HTTP/1.1\r\n" H "\r\n",
    "HEAD /stream/t HTTP/1.1\r\n" H "\r\n",
    "GET /hold/c HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET /stream/s HTTP/1.0\r\n\r\n",
    "GET /echo HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
    "GET /ec",
    "\r\n",
    "POST /hold/d HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\n",
    "POST /early HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\n",
    "POST /403 HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\n",
    "POST /echo HTTP/1.1\r\n" H "Content-Length: 9\r\nExpect: 100-continue\r\n\r\n",
    "xxxx",
    "xxxxx",
    "POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n",
    "POST /early HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n",
    "2\r\nhi\r\n",
    "0\r\n\r\n",
    "POST /echo HTTP/1.1\r\n" H "Content-Length: 999999999\r\n\r\n",
};

#define N_WORDS (sizeof(words) / sizeof(words[0]))

static unsigned
walk_random(unsigned *seed, unsigned limit)
{
	return (unsigned)rand_r(seed) % limit;
}

/* Something becomes of one of the requests that wait. */
static void
walk_server(unsigned *seed)
{
	struct http_exchange *x = held[(unsigned char)"abcdst"[walk_random(seed, 6)]];
	struct iovec v = {big, walk_random(seed, sizeof(big) / 2)};

	if (!x)
		return;
	if (!http_stream_is_open(x))
		answer(x, "1");
	else if (walk_random(seed, 4) == 0)
		http_stream_end(x);
	else
		(void)!http_stream_event(x, "7", &v, 1);
}

static void
walk_client(unsigned *seed, struct client **c)
{
	const char *word = words[walk_random(seed, N_WORDS)];

	switch (walk_random(seed, 12)) {
	case 0:
		hang_up(*c);
		*c = NULL;
		break;
	case 1:
		shutdown((*c)->fd, SHUT_WR);
		break;
	case 2:
		watch_want(&(*c)->watch, 0);
		break;
	case 3:
		watch_want(&(*c)->watch, (*c)->eof ? 0 : WATCH_READ);
		break;
	case 4:
		(void)!send((*c)->fd, big, 70000, MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	default:
		(void)!send((*c)->fd, word, strlen(word), MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	}
}

START_TEST(random_walks)
{
	unsigned seed = (unsigned)_i + 1;
	struct client *c[CLIENTS] = {NULL};

	opts.connections_max = CLIENTS - 1;
	opts.pipeline_max = 2;
	opts.head_ms = opts.body_ms = 2;
	opts.idle_ms = 4;
	opts.heartbeat_ms = 1;
	opts.out_max = sizeof(big) + 4096; /* one big answer, and no second */
	start();
	for (unsigned i = 0; i < STEPS; i++) {
		struct client **one = &c[walk_random(&seed, CLIENTS)];

		if (!*one)
			*one = dial();
		else
			walk_client(&seed, one);
		if (walk_random(&seed, 3) == 0)
			walk_server(&seed);
		settle();
	}
	if (_i % 2 == 0) {
		http_server_drain(srv, NULL, NULL);
		settle();
	}
	for (int i = 0; i < CLIENTS; i++)
		if (c[i])
			hang_up(c[i]);
	if (_i % 4 < 2)
		while (http_server_connections(srv) > 0)
			settle();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("http_walk");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, random_walks, 0, SEEDS);
	return run_suite(suite, tc);
}
