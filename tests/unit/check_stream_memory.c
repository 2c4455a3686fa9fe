/* layer: io */
/* SPDX-License-Identifier: MIT */
/* Streams while memory is short: who waits, who goes on, and that everything arrives. */
#include "mcpvisor/stream.h"

#include "mcpvisor/log.h"
#include "mcpvisor/metrics.h"

#include "stream_rig.h"

#define BUDGET ((size_t)2 * 1024 * 1024)
#define SOME   8
/* A read and the doubling of a buffer may go over. */
#define SLACK (BUDGET / 2)

struct source {
	struct stream *in;
	int out;
	size_t wrote, to_write;
	size_t held; /* a reader that keeps all until it is let */
	size_t read;
	unsigned order;
	int ends;
};

static struct source v[SOME];
static bool let;
static unsigned calls;

static void
on_some_input(void *arg)
{
	struct source *x = arg;
	size_t n;

	(void)stream_peek(x->in, &n);
	x->order = ++calls;
	x->held = n;
	if (!let)
		return;
	x->read += n;
	x->held = 0;
	stream_consume(x->in, n);
}

static void
on_some_end(void *arg, enum stream_end end)
{
	struct source *x = arg;

	(void)end;
	x->ends++;
}

static const struct stream_cb some_cb = {
    on_some_input, NULL, on_some_end, on_peer_write_end};

static void
open_as(struct source *x, struct stream_opts o)
{
	int fd[2];

	o.wfd = -1;
	o.in_max = 4 * BIG;
	o.out_max = 1;
	connect_kind(1, fd);
	memset(x, 0, sizeof(*x));
	o.rfd = fd[0];
	x->out = fd[1];
	x->in = stream_new(l, &o, &some_cb, x);
}

static void
open_one(struct source *x, bool is_vital)
{
	open_as(x, (struct stream_opts){.is_vital = is_vital});
}

static void
close_all(void)
{
	for (int i = 0; i < SOME; i++) {
		stream_free(v[i].in);
		if (v[i].in)
			close(v[i].out);
		v[i].in = NULL;
	}
	mem_set_budget(0);
	log_set_level(LOG_LV_NOTICE);
	let = false;
	calls = 0;
}

static void
tell(struct source *x, const char *text)
{
	ck_assert_int_eq(write(x->out, text, strlen(text)), (ssize_t)strlen(text));
}

/* What the peers have to write, as far as it goes; from memory that does not count. */
static void
pump(void)
{
	static char text[65536];

	for (int i = 0; i < SOME; i++) {
		ssize_t n = 1;

		while (v[i].in && v[i].wrote < v[i].to_write && n > 0) {
			n = send(v[i].out, text, sizeof(text), MSG_DONTWAIT);
			v[i].wrote += n > 0 ? (size_t)n : 0;
		}
	}
}

static size_t
held(void)
{
	size_t n = 0;

	for (int i = 0; i < SOME; i++)
		n += v[i].held;
	return n;
}

/* A while of real time: looks come every 20 ms. */
static void
run_ms(unsigned ms)
{
	struct timer t;

	pump();
	timer_init(&t, l, on_stop, NULL);
	timer_set(&t, ms);
	loop_run(l);
	timer_fini(&t);
}

static void
run_until_all_wait(size_t n)
{
	while (loop_mem_waits(l) < n)
		run_ms(1);
}

START_TEST(test_floods_stop_at_the_budget)
{
	uint64_t paused = metrics_get(METRIC_SOURCES_PAUSED);
	size_t total;

	log_set_level(LOG_LV_ERROR);
	for (int i = 0; i < SOME; i++) {
		open_one(&v[i], false);
		v[i].to_write = BIG;
	}
	mem_set_budget(mem_in_use() + BUDGET);
	run_until_all_wait(SOME);
	ck_assert(mem_is_short());
	ck_assert_uint_ge(metrics_get(METRIC_SOURCES_PAUSED) - paused, SOME);
	ck_assert_uint_lt(mem_in_use(), mem_budget() + SLACK);
	total = held();
	ck_assert_uint_gt(total, BUDGET / 4);
	run_ms(60);
	ck_assert_uint_eq(held(), total);
	ck_assert_uint_eq(loop_mem_waits(l), SOME);
	/* The readers read: all of it comes, and nobody is left behind. */
	let = true;
	for (int i = 0; i < SOME; i++)
		stream_again(v[i].in);
	do {
		run_ms(5);
		total = 0;
		for (int i = 0; i < SOME; i++)
			total += v[i].read;
	} while (total < SOME * BIG);
	ck_assert_uint_eq(loop_mem_waits(l), 0);
	close_all();
}
END_TEST

START_TEST(test_vital_goes_on_and_has_its_bound)
{
	char *weight;

	log_set_level(LOG_LV_ERROR);
	open_one(&v[0], false);
	open_one(&v[1], true);
	open_as(&v[2], (struct stream_opts){.is_exempt = true});
	weight = mem_xalloc(BUDGET);
	mem_set_budget(mem_in_use() - 1);
	let = true;
	tell(&v[0], "ordinary");
	tell(&v[1], "vital");
	run_until_all_wait(1);
	while (v[1].read < 5)
		run_ms(1);
	ck_assert_uint_eq(v[0].read, 0);
	/* An eighth over: it waits too. */
	mem_set_budget(mem_in_use() / 2);
	tell(&v[1], "more");
	run_until_all_wait(2);
	ck_assert_uint_eq(v[1].read, 5);
	/* One that never waits still goes on. */
	tell(&v[2], "exempt");
	while (v[2].read < 6)
		run_ms(1);
	mem_free(weight);
	mem_set_budget(mem_in_use() * 4);
	while (v[0].read < 8 || v[1].read < 9)
		run_ms(1);
	ck_assert_uint_eq(loop_mem_waits(l), 0);
	close_all();
}
END_TEST

/* An end that nobody sees would hold memory for as long as memory is short. */
START_TEST(test_hangup_is_seen)
{
	char *weight = mem_xalloc(8 * BUDGET);

	log_set_level(LOG_LV_ERROR);
	for (int i = 0; i < 3; i++)
		open_one(&v[i], false);
	mem_set_budget(mem_in_use());
	let = true;
	for (int i = 0; i < 3; i++)
		tell(&v[i], "last words");
	run_until_all_wait(3);
	ck_assert_int_eq(shutdown(v[1].out, SHUT_WR), 0);
	while (v[1].ends == 0)
		run_ms(1);
	ck_assert_uint_eq(v[1].read, 10);
	ck_assert(mem_is_short());
	ck_assert_uint_eq(loop_mem_waits(l), 2);
	stream_free(v[0].in); /* ends while it waits */
	v[0].in = NULL;
	close(v[0].out);
	ck_assert_uint_eq(loop_mem_waits(l), 1);
	mem_free(weight);
	close_all();
}
END_TEST

START_TEST(test_order_is_kept)
{
	struct deferred d;

	log_set_level(LOG_LV_ERROR);
	for (int i = 0; i < SOME; i++)
		open_one(&v[i], false);
	deferred_init(&d, l, on_stop, NULL);
	deferred_ask(&d); /* behind the first look of each */
	loop_run(l);
	mem_set_budget(mem_in_use());
	let = true;
	for (int i = 0; i < SOME; i++) {
		tell(&v[(i * 3) % SOME], "x");
		run_until_all_wait((size_t)i + 1);
	}
	mem_set_budget(0);
	while (calls < SOME)
		run_ms(1);
	for (int i = 0; i < SOME; i++)
		ck_assert_uint_eq(v[(i * 3) % SOME].order, (unsigned)i + 1);
	close_all();
}
END_TEST

static struct mem_wait waits[700];
static unsigned woken;

static void
on_woken(void *arg)
{
	struct mem_wait *w = arg;

	ck_assert(!mem_wait_is_set(w));
	if (w == &waits[0])
		mem_wait_cancel(&waits[1]);
	woken++;
}

START_TEST(test_many_waits)
{
	int p[2];

	log_set_level(LOG_LV_ERROR);
	connect_kind(0, p);
	mem_set_budget(1);
	for (int i = 0; i < 700; i++) {
		mem_wait_init(&waits[i], l, on_woken, &waits[i]);
		/* The last one's peer has gone: found, though far behind. */
		waits[i].fd = i == 699 ? p[0] : -1;
		ck_assert(mem_wait_is_needed(&waits[i]));
		mem_wait_start(&waits[i]);
		mem_wait_start(&waits[i]);
	}
	close(p[1]);
	ck_assert_uint_eq(loop_mem_waits(l), 700);
	while (!waits[699].is_vital)
		run_ms(1);
	ck_assert_uint_eq(woken, 0);
	mem_set_budget(0);
	while (loop_mem_waits(l) > 0) {
		unsigned before = woken;

		run_ms(0);
		/* Not all in one go. */
		ck_assert_uint_le(woken - before, 2 * 64);
	}
	ck_assert_uint_eq(woken, 699);
	close(p[0]);
	close_all();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("stream_memory");
	TCase *tc = tcase_create("stream_memory");

	tcase_add_test(tc, test_floods_stop_at_the_budget);
	tcase_add_test(tc, test_vital_goes_on_and_has_its_bound);
	tcase_add_test(tc, test_hangup_is_seen);
	tcase_add_test(tc, test_order_is_kept);
	tcase_add_test(tc, test_many_waits);
	return run_suite(suite, tc);
}
