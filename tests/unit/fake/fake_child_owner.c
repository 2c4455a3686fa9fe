/* SPDX-License-Identifier: MIT */
/*
 * The owner of one child.
 *
 * Owns: the child, its loop and spawner, its ends of stdin and stdout.
 * Driven by: the test and the child's callbacks.
 * Invariants: up and down alternate, except that a start without a process has
 * only a down; stopped comes when it is owed and never else.
 */
#include "fake/fake_child_owner.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <check.h>
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#define OWNER_PATIENCE_MS 100000

int
status_exit(int code)
{
	return code << 8;
}

int
status_signal(int signo)
{
	return signo;
}

static int
owner_count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n;
}

static void
owner_close(struct owner *o)
{
	if (o->in >= 0)
		(void)close(o->in);
	if (o->out >= 0)
		(void)close(o->out);
	o->in = -1;
	o->out = -1;
}

static void
owner_act(struct owner *o, enum owner_do what)
{
	switch (what) {
	case OWNER_NOTHING:
		break;
	case OWNER_START:
		owner_start(o);
		break;
	case OWNER_STOP:
		owner_stop(o);
		break;
	case OWNER_RESTART:
		owner_restart(o);
		break;
	}
}

static void
on_up(void *arg, int in_fd, int out_fd)
{
	struct owner *o = arg;

	ck_assert(!o->up);
	ck_assert_int_eq(owner_state(o), CHILD_ST_RUNNING);
	o->up = true;
	o->out_open = true;
	o->ups++;
	o->in = in_fd;
	o->out = out_fd;
}

static void
on_close_input(void *arg)
{
	struct owner *o = arg;

	ck_assert(o->up);
	ck_assert_int_ge(o->in, 0);
	o->closes++;
	(void)close(o->in);
	o->in = -1;
}

static void
on_force_close(void *arg)
{
	struct owner *o = arg;

	ck_assert(o->up && o->out_open);
	o->forces++;
	o->out_open = false;
	if (o->report_in_force)
		child_output_ended(o->child);
}

static enum child_verdict
on_down(void *arg, const struct child_end *end, bool wanted)
{
	struct owner *o = arg;

	if (!o->up) {
		ck_assert_int_eq(end->err, MV_SPAWN);
		ck_assert_ptr_nonnull(strstr(end->text, "cannot create a process"));
	}
	ck_assert(!o->out_open);
	ck_assert_uint_gt(strlen(end->text), 0);
	o->up = false;
	o->downs++;
	o->last_end = *end;
	o->last_wanted = wanted;
	owner_close(o);
	owner_act(o, o->in_down);
	return o->verdict;
}

static void
on_parked(void *arg)
{
	struct owner *o = arg;

	ck_assert(!o->up);
	ck_assert_int_eq(owner_state(o), CHILD_ST_FAILED);
	o->parked++;
}

static void
on_stopped(void *arg)
{
	struct owner *o = arg;

	ck_assert(o->stop_owed && !o->up);
	ck_assert_int_eq(owner_state(o), CHILD_ST_DOWN);
	o->stop_owed = false;
	o->stopped++;
	if (o->free_in_stopped) {
		child_free(o->child);
		o->child = NULL;
	}
}

static const struct child_cb owner_cb = {
    .on_up = on_up,
    .on_close_input = on_close_input,
    .on_force_close = on_force_close,
    .on_down = on_down,
    .on_parked = on_parked,
    .on_stopped = on_stopped,
};

static void
on_line(enum log_level level, const char *line, size_t len, void *arg)
{
	struct owner *o = arg;

	(void)level;
	o->lines++;
	if (len + 2 > sizeof(o->log) - o->log_len)
		return;
	memcpy(o->log + o->log_len, line, len);
	o->log_len += len;
	o->log[o->log_len++] = '\n';
	o->log[o->log_len] = '\0';
}

struct child_opts
owner_opts(void)
{
	static const char *const argv[] = {"tool", "-v", NULL};
	static const char *const envp[] = {NULL};

	return (struct child_opts){
	    .spec = {.name = "alpha",
		.argv = argv,
		.envp = envp,
		.path = "/opt/bin",
		.cwd = "/srv"},
	    .backoff = backoff_defaults,
	    .ladder = child_ladder_defaults,
	};
}

struct owner *
owner_new(const struct child_opts *opts)
{
	struct owner *o = mem_xcalloc(1, sizeof(*o));

	o->fds = owner_count_fds();
	o->in = -1;
	o->out = -1;
	log_set_sink(on_line, o);
	log_set_level(LOG_LV_DEBUG);
	o->loop = loop_new();
	o->spawner = spawner_new(o->loop);
	o->child = child_new(o->loop, o->spawner, opts, &owner_cb, o);
	return o;
}

void
owner_free(struct owner *o)
{
	o->in_down = OWNER_NOTHING;
	o->free_in_stopped = false;
	if (o->child != NULL) {
		owner_stop(o);
		fake_loop_advance(o->loop, OWNER_PATIENCE_MS);
		ck_assert_int_eq(owner_state(o), CHILD_ST_DOWN);
		child_free(o->child);
	}
	ck_assert(!o->stop_owed && !o->up);
	fake_loop_settle(o->loop);
	spawner_free(o->spawner);
	loop_free(o->loop);
	log_set_level(LOG_LV_NOTICE);
	log_set_sink(NULL, NULL);
	ck_assert_int_eq(owner_count_fds(), o->fds);
	mem_free(o);
}

void
owner_start(struct owner *o)
{
	o->stop_owed = false;
	child_start(o->child);
}

void
owner_stop(struct owner *o)
{
	o->stop_owed = true;
	child_stop(o->child);
}

void
owner_restart(struct owner *o)
{
	o->stop_owed = false;
	child_restart(o->child, "because \x1b");
}

void
owner_fail(struct owner *o)
{
	child_fail(o->child, "no good");
}

void
owner_output_ends(struct owner *o)
{
	o->out_open = false;
	child_output_ended(o->child);
}

void
owner_proc_dies(struct owner *o, int status)
{
	struct proc *p = owner_proc(o);

	fake_proc_close_all(p);
	fake_proc_exit(p, status);
	owner_output_ends(o);
}

struct proc *
owner_proc(const struct owner *o)
{
	return fake_spawner_last(o->spawner);
}

enum child_state
owner_state(const struct owner *o)
{
	return child_state(o->child);
}

bool
owner_log_has(const struct owner *o, const char *text)
{
	return strstr(o->log, text) != NULL;
}

void
owner_log_clear(struct owner *o)
{
	o->lines = 0;
	o->log_len = 0;
	o->log[0] = '\0';
}
