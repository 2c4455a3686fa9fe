/* SPDX-License-Identifier: MIT */
/* Runs of real programs, and what was told of their ends. */
#ifndef CHECK_RUN_RIG_H
#define CHECK_RUN_RIG_H

#include "mcpvisor/run.h"

#include "mcpvisor/mem.h"
#include "spawn_rig.h"

#define RUNS_MAX   50
#define TEXT_MAX   (1u << 20)
#define NEVER_MS   60000
#define SH(script) ((const char *const[]){"sh", "-c", script, NULL})

struct seen {
	int n;
	enum run_how how;
	int status;
	uint64_t total;
	struct buf out, err;
	char error[256];
};

static struct seen seen[RUNS_MAX];
static int wanted_ends;
/* Looked at while on_end runs; the number that the output begins with. */
static bool was_running;

/* Not a zombie. */
static inline bool
is_running(pid_t pid)
{
	char path[64], text[512], *paren;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n <= 0)
		return false;
	text[n] = '\0';
	paren = strrchr(text, ')');
	return paren && paren[2] != 'Z' && paren[2] != 'X';
}

static inline void
on_run_end(void *arg, const struct run_end *e)
{
	struct seen *s = arg;
	pid_t pid;

	s->n++;
	s->how = e->how;
	s->status = e->status;
	s->total = e->out_total;
	mem_fail_hold(true);
	buf_add(&s->out, e->out.p, e->out.n);
	buf_add(&s->err, e->err.p, e->err.n);
	snprintf(s->error, sizeof(s->error), "%s", e->error);
	pid = (pid_t)strtol(buf_cstr(&s->out), NULL, 10);
	mem_fail_hold(false);
	was_running = pid > 1 && is_running(pid);
}

static inline bool
all_have_ended(void)
{
	int n = 0;

	for (int i = 0; i < RUNS_MAX; i++)
		n += seen[i].n;
	return n >= wanted_ends;
}

static inline struct run_opts
run_opts_of(const char *const *argv)
{
	return (struct run_opts){.spec = {.name = "t", .argv = argv, .envp = env},
	    .out_max = TEXT_MAX / 2,
	    .err_max = 4096,
	    .timeout_ms = NEVER_MS,
	    .kill_ms = NEVER_MS};
}

static inline struct run *
run_begin(int i, const struct run_opts *o)
{
	struct mv_errtext error = {.message = ""};
	struct run *r = run_start(l, sp, o, on_run_end, &seen[i], &error);

	ck_assert_msg(r != NULL, "%s", error.message);
	ck_assert_int_eq(seen[i].n, 0);
	return r;
}

/* What came of one. */
static inline const struct seen *
run_to_end(const struct run_opts *o)
{
	wanted_ends = 1;
	run_begin(0, o);
	wait_until(all_have_ended);
	ck_assert_int_eq(seen[0].n, 1);
	return &seen[0];
}

static inline const char *
run_script(const char *script)
{
	struct run_opts o = run_opts_of(SH(script));

	run_to_end(&o);
	return buf_cstr(&seen[0].out);
}

static inline void
seen_reset(void)
{
	for (int i = 0; i < RUNS_MAX; i++) {
		buf_fini(&seen[i].out);
		buf_fini(&seen[i].err);
		seen[i] = (struct seen){.n = 0};
		buf_init(&seen[i].out, TEXT_MAX);
		buf_init(&seen[i].err, TEXT_MAX);
	}
	was_running = false;
}

#endif
