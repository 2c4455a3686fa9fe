/* SPDX-License-Identifier: MIT */
/*
 * An upstream and its process: what the child reports becomes events, what the conf
 * says becomes the child's options.
 *
 * Owns: the link, from on_up to on_down.
 * Driven by: the child; the gateway at a reload (upstream_set_conf).
 * Invariants: the child's strings are those of the conf in force.
 */
#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"

#include <string.h>

static void
on_child_up(void *arg, int in_fd, int out_fd)
{
	struct upstream *u = arg;
	struct link_opts o = {.rfd = out_fd,
	    .wfd = in_fd,
	    .message_max = CAP_MESSAGE_BYTES,
	    .out_max = CAP_OUT_BYTES,
	    .want_uris = true,
	    .is_vital = true};

	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC && u->link == NULL);
	u->reason[0] = '\0';
	u->heard = false;
	u->n_starts++;
	u->link = link_new(u->loop, &o, &upstream_link_cb, u);
	upstream_event(u, UPSTREAM_EV_UP);
}

static void
on_child_close_input(void *arg)
{
	struct upstream *u = arg;

	if (u->link != NULL)
		link_end_write(u->link, false);
}

static void
on_child_force_close(void *arg)
{
	struct upstream *u = arg;

	link_free(u->link);
	u->link = NULL;
}

/* A server that ends by itself when nobody needs it may stay away until somebody does. */
static bool
child_may_rest(const struct upstream *u, const struct child_end *end)
{
	return u->conf->start == START_ON_USE && u->state == UPSTREAM_ST_READY &&
	       end->err == MV_DIED && end->is_clean && !u->stopping &&
	       !upstream_is_used(u) && upstream_lists_are_known(u);
}

static enum child_verdict
on_child_down(void *arg, const struct child_end *end, bool wanted)
{
	struct upstream *u = arg;
	enum upstream_state was = u->state;
	bool probing = was == UPSTREAM_ST_PROBE || was == UPSTREAM_ST_BOTH, excuse;
	bool rests = child_may_rest(u, end);

	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC);
	link_free(u->link);
	u->link = NULL;
	u->silent_ends =
	    end->err == MV_DIED && end->is_clean && !u->heard ? u->silent_ends + 1 : 0;
	/* A legacy server may end because something came before initialize: it gets one
	 * more start, uncounted, that spares it the probe. After that, failed starts
	 * with and without it take turns. */
	probing = probing && end->err == MV_DIED && u->conf->era == ERA_AUTO &&
		  u->reason[0] == '\0'; /* else we gave it up, for what it said */
	excuse = probing && wanted && !u->excused;
	upstream_event(u, end->err == MV_STOPPING ? UPSTREAM_EV_GONE : UPSTREAM_EV_DOWN);
	u->skip_probe = probing;
	if (u->recalled_era && end->err == MV_DIED) {
		/* It may have died of what an earlier life of ours had learnt. */
		u->recalled_era = false;
		u->known_era = u->conf->era;
	}
	if (excuse) {
		u->excused = true;
		u->reason[0] = '\0';
		return CHILD_EXCUSE;
	}
	if (rests)
		upstream_event(u, UPSTREAM_EV_SLEEP);
	/* Not one that we had sent away ourselves: that is no failure. */
	if (u->state == UPSTREAM_ST_DOWN || u->state == UPSTREAM_ST_PARKED)
		upstream_settle(u);
	return CHILD_COUNT;
}

static void
on_child_parked(void *arg)
{
	upstream_event(arg, UPSTREAM_EV_PARK);
}

static void
on_child_stopped(void *arg)
{
	struct upstream *u = arg;

	if (u->stopping)
		u->cb->on_stopped(u->arg, u);
}

static const struct child_cb child_callbacks = {
    .on_up = on_child_up,
    .on_close_input = on_child_close_input,
    .on_force_close = on_child_force_close,
    .on_down = on_child_down,
    .on_parked = on_child_parked,
    .on_stopped = on_child_stopped,
};

static struct child_opts
child_opts_of(const struct upstream_conf *conf)
{
	return (struct child_opts){
	    .spec = {.name = conf->name,
		.argv = (const char *const *)conf->argv,
		.envp = (const char *const *)conf->env,
		.path = conf->path,
		.cwd = conf->cwd},
	    .backoff = {.base_ms = conf->restart_base_ms,
		.max_ms = conf->restart_max_ms,
		.stable_ms = conf->stable_ms,
		.budget = conf->restart_limit},
	    .ladder = {.term_ms = conf->term_ms,
		.kill_ms = conf->kill_ms,
		.drain_ms = child_ladder_defaults.drain_ms},
	};
}

struct child *
upstream_child_new(struct upstream *u, struct spawner *sp)
{
	struct child_opts o = child_opts_of(u->conf);

	return child_new(u->loop, sp, &o, &child_callbacks, u);
}

void
upstream_set_end_reason(struct upstream *u, const struct child_end *end)
{
	static const char clean[] = "exited with status 0";

	/* Once may be anything; twice is a habit. */
	if (u->silent_ends < 2 || strncmp(end->text, clean, strlen(clean)) != 0)
		upstream_set_reason(u, "%s", end->text);
	else
		upstream_set_reason(u,
		    "%s before it answered: does it read standard input? (docker run "
		    "needs -i)%s",
		    clean, end->text + strlen(clean));
}

void
upstream_set_conf(struct upstream *u, const struct upstream_conf *conf)
{
	bool eager = u->conf->start == START_ON_USE && conf->start == START_EAGER;
	struct child_opts o = child_opts_of(conf);

	u->conf = conf;
	if (u->child == NULL)
		return;
	/* A stop under way has a ladder of its own. */
	if (u->stopping)
		o.ladder = u->stop_ladder;
	child_set_opts(u->child, &o);
	upstream_calls_look(u);
	timer_clear(&u->idle_timer);
	upstream_idle_arm(u);
	if (eager && u->state == UPSTREAM_ST_ASLEEP)
		upstream_wake(u);
}
