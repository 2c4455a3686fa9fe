/* SPDX-License-Identifier: MIT */
/*
 * A child without a process.
 *
 * Owns: nothing but itself.
 * Driven by: the test and the owner.
 * Invariants: callbacks come in the order and with the rights that child.h promises;
 * a call that child.h forbids in a state stops the test.
 */
#include "fake/fake_child.h"

#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <stdio.h>
#include <string.h>

#define FAKE_PID 4000

struct child {
	struct loop *loop;
	struct child_opts o;
	const struct child_cb *cb;
	void *arg;
	enum child_state state;
	bool wanted;
	enum mv_err fate;
	struct child_end end;
	unsigned refuse, budget;
	unsigned ups, fails, readies, counted, ends, restarts;
	bool ready;
};

const struct child_ladder child_ladder_defaults = {
    .term_ms = 2000, .kill_ms = 3000, .drain_ms = 1000};

static const char *const fake_state_names[] = {
#define X(id, name) [CHILD_ST_##id] = name,
    CHILD_STATES(X)
#undef X
};

struct child *
child_new(struct loop *l, struct spawner *sp, const struct child_opts *o,
    const struct child_cb *cb, void *arg)
{
	struct child *c = mem_xcalloc(1, sizeof(*c));

	(void)sp;
	c->loop = l;
	c->o = *o;
	c->cb = cb;
	c->arg = arg;
	return c;
}

void
child_free(struct child *c)
{
	if (c == NULL)
		return;
	MCPVISOR_ASSERT(c->state == CHILD_ST_DOWN || c->state == CHILD_ST_BACKOFF ||
			c->state == CHILD_ST_FAILED);
	loop_defer_free(c->loop, mem_free, c);
}

static bool
fake_is_resting(const struct child *c)
{
	return c->state == CHILD_ST_DOWN || c->state == CHILD_ST_BACKOFF ||
	       c->state == CHILD_ST_FAILED;
}

static enum child_state
fake_count_death(struct child *c)
{
	c->counted++;
	return c->budget != 0 && c->counted >= c->budget ? CHILD_ST_FAILED
							 : CHILD_ST_BACKOFF;
}

static void
fake_set_end(struct child *c, enum mv_err err, const char *text)
{
	c->end.err = err;
	c->end.is_clean = strncmp(text, "exited with status 0", 20) == 0;
	(void)snprintf(c->end.text, sizeof(c->end.text), "%s", text);
}

static void
fake_spawn(struct child *c)
{
	if (c->refuse > 0) {
		c->refuse--;
		fake_set_end(c, MV_SPAWN, "cannot create a process");
		c->state = fake_count_death(c);
		(void)c->cb->on_down(c->arg, &c->end, c->wanted);
		if (c->state == CHILD_ST_FAILED)
			c->cb->on_parked(c->arg);
		return;
	}
	c->ups++;
	c->fate = MV_DIED;
	c->ready = false;
	c->state = CHILD_ST_RUNNING;
	c->cb->on_up(c->arg, -1, -1);
}

void
child_start(struct child *c)
{
	c->wanted = true;
	if (c->state == CHILD_ST_FAILED)
		c->counted = 0;
	if (fake_is_resting(c))
		fake_spawn(c);
}

static void
fake_begin_to_stop(struct child *c, enum mv_err fate)
{
	if (c->state != CHILD_ST_RUNNING)
		return;
	c->fate = fate;
	c->state = CHILD_ST_STOPPING;
	c->cb->on_close_input(c->arg);
}

void
child_stop(struct child *c)
{
	c->wanted = false;
	if (fake_is_resting(c)) {
		c->state = CHILD_ST_DOWN;
		c->cb->on_stopped(c->arg);
		return;
	}
	fake_begin_to_stop(c, MV_STOPPING);
}

void
child_restart(struct child *c, const char *reason)
{
	(void)reason;
	c->wanted = true;
	if (fake_is_resting(c))
		fake_spawn(c);
	else
		fake_begin_to_stop(c, MV_STOPPING);
}

void
child_fail(struct child *c, const char *reason)
{
	(void)reason;
	if (c->state == CHILD_ST_RUNNING)
		c->fails++;
	fake_begin_to_stop(c, MV_PROTOCOL);
}

void
fake_child_die(struct child *c, const char *text)
{
	enum child_verdict verdict;

	MCPVISOR_ASSERT(!fake_is_resting(c));
	fake_set_end(c, c->fate, text);
	verdict = c->cb->on_down(c->arg, &c->end, c->wanted);
	if (!c->wanted) {
		c->state = CHILD_ST_DOWN;
		c->cb->on_stopped(c->arg);
	} else if (c->fate == MV_STOPPING ||
		   (c->fate == MV_DIED && verdict == CHILD_EXCUSE)) {
		c->restarts++;
		fake_spawn(c);
	} else if (c->fate == MV_DIED && c->ready && c->end.is_clean) {
		c->state = CHILD_ST_BACKOFF;
	} else {
		c->state = fake_count_death(c);
		if (c->state == CHILD_ST_FAILED)
			c->cb->on_parked(c->arg);
	}
}

void
fake_child_force(struct child *c)
{
	MCPVISOR_ASSERT(!fake_is_resting(c));
	c->cb->on_force_close(c->arg);
}

void
fake_child_pause_over(struct child *c)
{
	MCPVISOR_ASSERT(c->state == CHILD_ST_BACKOFF);
	c->restarts++;
	fake_spawn(c);
}

void
fake_child_refuse(struct child *c, unsigned n)
{
	c->refuse = n;
}

void
fake_child_set_budget(struct child *c, unsigned deaths)
{
	c->budget = deaths;
}

void
child_set_ladder(struct child *c, const struct child_ladder *l)
{
	c->o.ladder = *l;
}

void
child_set_opts(struct child *c, const struct child_opts *o)
{
	c->o = *o;
}

void
child_output_ended(struct child *c)
{
	MCPVISOR_ASSERT(!fake_is_resting(c));
	c->ends++;
}

void
child_note_ready(struct child *c)
{
	c->readies++;
	c->ready = true;
}

enum child_state
child_state(const struct child *c)
{
	return c->state;
}

const char *
child_state_text(enum child_state st)
{
	return fake_state_names[st];
}

pid_t
child_pid(const struct child *c)
{
	return fake_is_resting(c) ? 0 : (pid_t)(FAKE_PID + c->ups);
}

uint32_t
child_restarts(const struct child *c)
{
	return c->restarts;
}

uint64_t
child_next_ms(const struct child *c)
{
	return c->state == CHILD_ST_BACKOFF ? c->o.backoff.base_ms : 0;
}

const struct child_end *
child_last_end(const struct child *c)
{
	return &c->end;
}

unsigned
fake_child_ups(const struct child *c)
{
	return c->ups;
}

unsigned
fake_child_fails(const struct child *c)
{
	return c->fails;
}

unsigned
fake_child_readies(const struct child *c)
{
	return c->readies;
}

unsigned
fake_child_counted(const struct child *c)
{
	return c->counted;
}

unsigned
fake_child_ends(const struct child *c)
{
	return c->ends;
}

const struct child_ladder *
fake_child_ladder(const struct child *c)
{
	return &c->o.ladder;
}

const struct child_opts *
fake_child_opts(const struct child *c)
{
	return &c->o;
}
