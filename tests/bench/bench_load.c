/* SPDX-License-Identifier: MIT */
/*
 * Load over the standard input and output of an MCP server: calls with a window in
 * flight, each answer checked; and what they cost the server.
 *
 * usage: bench_load [options] -- COMMAND [ARG...]     (bench_load --help: the options)
 *
 * Prints one line of key=value words. Exit status 1 when an answer was wrong or
 * missing, or the server did not end well.
 *
 * Owns: the peer, and the time at which each call left.
 * Driven by: itself, until the calls are answered or a limit is reached.
 * Invariants: a call is outstanding from its sending to its one answer; an answer is
 * right only if its id is outstanding and its text begins with that id, ends in the
 * expected fill and has the expected length.
 */
#include "bench_call.h"
#include "bench_options.h"
#include "bench_peer.h"
#include "bench_proc.h"

#include "mcpvisor/mem.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS_MAX  2000000
#define CURSOR_MAX 256

struct options {
	bool modern, quiet;
	unsigned window, calls, warm, bytes, blob, lists, tools, settle_ms, limit_s;
	unsigned ms;
};

struct load {
	struct options o;
	struct peer peer;
	struct calls calls;
	unsigned long long last_id;
	/* The run at hand; by id - first_id. */
	unsigned long long first_id;
	unsigned sent, answered, bad;
	uint64_t *sent_ns, *took_ns; /* sent_ns 0: not outstanding */
};

struct figures {
	double ready_ms, list_ms, secs, rate, cpu_us, mb_per_s;
	double p50_us, p99_us;
	uint64_t list_bytes;
	struct bench_mem idle, loaded;
	bool ended_well;
};

static _Noreturn void
die(const char *why)
{
	fprintf(stderr, "bench_load: %s\n", why);
	exit(1);
}

/* Waits for the answer to id. False when none comes. */
static bool
await(struct load *l, unsigned long long id, struct piece *result)
{
	static const char *const keys[] = {"id", "result", "method"};
	struct piece line, v[3];
	unsigned long long got;

	do {
		while (peer_next_line(&l->peer, &line)) {
			if (!bench_members(line, keys, v, 3))
				die("the peer wrote what is no message");
			if (v[2].n != 0 || !bench_number(v[0], &got) || got != id)
				continue;
			*result = v[1];
			return v[1].n != 0;
		}
	} while (peer_turn(&l->peer));
	return false;
}

static void
put_request(struct load *l, const char *method, const char *members)
{
	call_put_request(&l->calls, &l->peer.out, ++l->last_id, method, members);
	buf_add_char(&l->peer.out, '\n');
}

static void
say_hello(struct load *l)
{
	struct piece result;

	if (l->o.modern)
		return; /* each request says who asks */
	call_put_initialize(&l->calls, &l->peer.out, ++l->last_id);
	buf_add_char(&l->peer.out, '\n');
	if (!await(l, l->last_id, &result))
		die("initialize was not answered");
	buf_add_str(&l->peer.out,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
}

static void
list_all(struct load *l)
{
	char members[CURSOR_MAX + 16] = "";
	struct piece result, cursor;

	call_forget(&l->calls);
	do {
		put_request(l, "tools/list", members);
		if (!await(l, l->last_id, &result) ||
		    !call_take_list(&l->calls, result, &cursor))
			die("tools/list was not answered by a list");
		if (cursor.n >= CURSOR_MAX)
			die("the cursor is too long");
		(void)snprintf(members, sizeof(members), "\"cursor\":%.*s", (int)cursor.n,
		    cursor.n ? cursor.p : "");
	} while (cursor.n != 0);
}

/* Until all tools are there; an endpoint may answer while upstreams still start. */
static void
get_ready(struct load *l)
{
	say_hello(l);
	do {
		list_all(l);
		if (bench_now_ns() > l->peer.limit_ns)
			die("the list does not become complete");
	} while (l->calls.n_tools < l->o.tools);
}

static void
send_call(struct load *l)
{
	call_put(&l->calls, &l->peer.out, ++l->last_id);
	buf_add_char(&l->peer.out, '\n');
}

/* Notices are none of our business; all else answers a call of ours, or is wrong. */
static void
on_answer(struct load *l, struct piece line)
{
	static const char *const keys[] = {"id", "result", "method"};
	struct piece v[3];
	unsigned long long id, at;

	if (!bench_members(line, keys, v, 3)) {
		l->bad++;
		return;
	}
	if (v[2].n != 0)
		return;
	if (!bench_number(v[0], &id) || id < l->first_id ||
	    (at = id - l->first_id) >= l->sent || l->sent_ns[at] == 0) {
		l->bad++;
		return;
	}
	l->took_ns[l->answered++] = l->peer.read_ns - l->sent_ns[at];
	l->sent_ns[at] = 0;
	if (!call_is_right(&l->calls, id, v[1]))
		l->bad++;
}

static double
run(struct load *l, unsigned calls, unsigned ms)
{
	uint64_t start = bench_now_ns(), now = start;
	uint64_t until = start + ms * UINT64_C(1000000);
	struct piece line;

	l->sent = l->answered = 0;
	l->first_id = l->last_id + 1;
	for (;;) {
		while (l->sent < calls && l->sent - l->answered < l->o.window &&
		       now < until) {
			l->sent_ns[l->sent++] = now;
			send_call(l);
		}
		if (l->answered == l->sent)
			break;
		if (!peer_turn(&l->peer)) {
			l->bad += l->sent - l->answered; /* lost */
			break;
		}
		while (peer_next_line(&l->peer, &line))
			on_answer(l, line);
		now = bench_now_ns();
	}
	return (double)(bench_now_ns() - start) / 1e9;
}

static void
measure_lists(struct load *l, struct figures *f)
{
	uint64_t start = bench_now_ns(), bytes = l->peer.bytes;

	for (unsigned i = 0; i < l->o.lists; i++)
		list_all(l);
	f->list_ms = (double)(bench_now_ns() - start) / 1e6 / l->o.lists;
	f->list_bytes = (l->peer.bytes - bytes) / l->o.lists;
}

static void
measure_calls(struct load *l, struct figures *f)
{
	uint64_t cpu, bytes;

	if (l->calls.n_targets == 0)
		die("no tool to call in the list");
	(void)run(l, l->o.warm, l->o.ms);
	bytes = l->peer.bytes;
	cpu = bench_cpu_ns(l->peer.pid);
	f->secs = run(l, l->o.calls, l->o.ms);
	cpu = bench_cpu_ns(l->peer.pid) - cpu;
	if (l->answered == 0)
		return;
	f->rate = l->answered / f->secs;
	f->cpu_us = (double)cpu / 1e3 / l->answered;
	f->mb_per_s = (double)(l->peer.bytes - bytes) / 1e6 / f->secs;
	f->p50_us = call_percentile_us(l->took_ns, l->answered, 50);
	f->p99_us = call_percentile_us(l->took_ns, l->answered, 99);
}

static void
print_figures(const struct load *l, const struct figures *f)
{
	printf("ready_ms=%.2f tools=%u idle_processes=%u idle_rss_kb=%llu "
	       "idle_private_kb=%llu idle_anon_kb=%llu",
	    f->ready_ms, l->calls.n_tools, f->idle.processes,
	    (unsigned long long)f->idle.rss_kb, (unsigned long long)f->idle.private_kb,
	    (unsigned long long)f->idle.anon_kb);
	if (l->o.lists)
		printf(" list_ms=%.2f list_bytes=%llu", f->list_ms,
		    (unsigned long long)f->list_bytes);
	if (l->o.calls) {
		printf(
		    " calls=%u secs=%.3f rate=%.0f p50_us=%.1f p99_us=%.1f cpu_us=%.2f "
		    "mb_per_s=%.1f",
		    l->answered, f->secs, f->rate, f->p50_us, f->p99_us, f->cpu_us,
		    f->mb_per_s);
	}
	printf(" end_rss_kb=%llu end_private_kb=%llu end_anon_kb=%llu bad=%u "
	       "ended_well=%d\n",
	    (unsigned long long)f->loaded.rss_kb,
	    (unsigned long long)f->loaded.private_kb,
	    (unsigned long long)f->loaded.anon_kb, l->bad, (int)f->ended_well);
}

/* Returns the index of the command in argv. */
static int
take_options(struct options *o, int argc, char **argv)
{
	static const char usage[] = "bench_load [options] -- COMMAND [ARG...]";
	const struct bench_option rows[] = {
	    {"modern", "revision " CALL_MODERN ", else " CALL_LEGACY, &o->modern, NULL,
		0},
	    {"quiet", "without the command's standard error", &o->quiet, NULL, 0},
	    {"window", "calls in flight (1)", NULL, &o->window, 4096},
	    {"calls", "calls that are measured (0)", NULL, &o->calls, CALLS_MAX},
	    {"warm", "calls before them (0)", NULL, &o->warm, CALLS_MAX},
	    {"ms", "send no more after this time (60000)", NULL, &o->ms, 60000},
	    {"bytes", "length of an echoed text (100)", NULL, &o->bytes, 1000000},
	    {"blob", "call blob for that many bytes instead of echo", NULL, &o->blob,
		32000000},
	    {"lists", "complete lists of tools that are measured (0)", NULL, &o->lists,
		1000},
	    {"tools", "ready when that many tools are listed (1)", NULL, &o->tools,
		1000000},
	    {"settle", "ms of rest before idle memory is read (0)", NULL, &o->settle_ms,
		10000},
	    {"limit", "seconds until all is given up (30)", NULL, &o->limit_s, 600},
	};
	const size_t n = sizeof(rows) / sizeof(rows[0]);
	int command;

	*o = (struct options){
	    .window = 1, .ms = 60000, .bytes = 100, .tools = 1, .limit_s = 30};
	command = bench_take_options(usage, rows, n, argc, argv);
	if (command >= argc || o->window == 0)
		bench_usage(usage, rows, n, 2);
	return command;
}

int
main(int argc, char **argv)
{
	static struct load l;
	struct figures f = {0};
	int command = take_options(&l.o, argc, argv);
	unsigned most = l.o.calls > l.o.warm ? l.o.calls : l.o.warm;
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	uint64_t start;

	sigaction(SIGPIPE, &ignore, NULL);
	l.calls =
	    (struct calls){.modern = l.o.modern, .bytes = l.o.bytes, .blob = l.o.blob};
	l.sent_ns = mem_xcalloc(most + 1, sizeof(*l.sent_ns));
	l.took_ns = mem_xcalloc(most + 1, sizeof(*l.took_ns));
	start = bench_now_ns();
	if (!peer_start(&l.peer, argv + command, l.o.quiet, l.o.limit_s))
		return 1;
	get_ready(&l);
	f.ready_ms = (double)(bench_now_ns() - start) / 1e6;
	(void)usleep(l.o.settle_ms * 1000);
	bench_mem_of(l.peer.pid, &f.idle);
	if (l.o.lists)
		measure_lists(&l, &f);
	if (l.o.calls)
		measure_calls(&l, &f);
	bench_mem_of(l.peer.pid, &f.loaded);
	f.ended_well = peer_end(&l.peer);
	print_figures(&l, &f);
	call_forget(&l.calls);
	mem_free(l.sent_ns);
	mem_free(l.took_ns);
	return l.bad != 0 || !f.ended_well;
}
