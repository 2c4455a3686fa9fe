/* SPDX-License-Identifier: MIT */
/*
 * The kind of upstream that is a process: what the child and the link report becomes
 * events, what the conf says becomes the child's options.
 *
 * Owns: the child; the link, from on_up to on_down.
 * Driven by: the child, the link, upstream.c.
 * Invariants: the child's strings are those of the conf in force; no other file looks at
 * child or link.
 */
#include "upstream_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/log.h"

#include <string.h>

static void
on_message(void *arg, const struct link_msg *m)
{
	struct upstream *u = arg;

	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC);
	upstream_on_message(u, NULL, m);
}

static void
on_bad(void *arg, enum mv_err err, struct jtext id, bool is_reply, const char *line,
    size_t len)
{
	struct upstream *u = arg;

	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC);
	upstream_on_bad(u, err, id, is_reply, line, len);
}

static void
on_end(void *arg)
{
	struct upstream *u = arg;
	struct link *ended = u->link;

	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC);
	child_output_ended(u->child);
	/* Its exit, which says more, usually follows at once. If it came before this end
	 * the next process may be running by now. Nobody waits for one that was sent
	 * away. */
	if (ended != NULL && u->link == ended && u->state != UPSTREAM_ST_ASLEEP &&
	    u->state != UPSTREAM_ST_WAKING)
		timer_set(&u->mute_timer, MUTE_MS);
}

void
upstream_on_mute(void *arg)
{
	struct upstream *u = arg;

	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC);
	link_free(u->link);
	u->link = NULL;
	upstream_lists_stop(u); /* half of a list is not what it offers */
	upstream_fail_all(u, MV_DIED, "closed its standard output");
}

static void
on_write_end(void *arg, int errnum)
{
	struct upstream *u = arg;

	MCPVISOR_ASSERT(u->magic == UPSTREAM_MAGIC);
	LOG_DEBUG("upstream", "input closed by the child", "upstream=%s errno=%d",
	    LOG_ESC(u->conf->name, strlen(u->conf->name)), errnum);
	/* A server that no longer reads cannot be called; if it is not about to end by
	 * itself the ladder ends it. */
	upstream_give_up(u, "closed its input");
}

static const struct link_cb link_callbacks = {
    .on_message = on_message,
    .on_bad = on_bad,
    .on_end = on_end,
    .on_write_end = on_write_end,
};

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
	u->link = link_new(u->loop, &o, &link_callbacks, u);
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
	upstream_event(u, excuse		    ? UPSTREAM_EV_EXCUSED
			  : end->err == MV_STOPPING ? UPSTREAM_EV_GONE
						    : UPSTREAM_EV_DOWN);
	u->skip_probe = probing;
	if (u->recalled_era && end->err == MV_DIED) {
		/* It may have died of what an earlier life of ours had learnt. */
		u->recalled_era = false;
		u->known_era = u->conf->era;
	}
	if (excuse) {
		u->excused = true;
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
	    .backoff = upstream_backoff_opts(conf),
	    .ladder = {.term_ms = conf->term_ms,
		.kill_ms = conf->kill_ms,
		.drain_ms = child_ladder_defaults.drain_ms},
	};
}

void
upstream_set_end_reason(struct upstream *u, const struct child_end *end)
{
	static const char clean[] = "exited with status 0";
	static const char hint[] = " before it answered: does it read standard input? "
				   "(docker run needs -i)";
	/* Once may be anything; twice is a habit. */
	bool is_habit =
	    u->silent_ends >= 2 && strncmp(end->text, clean, strlen(clean)) == 0;

	if (!is_habit)
		upstream_set_reason(u, "%s", end->text);
	else
		upstream_set_reason(u, "%s%s%s", clean, hint, end->text + strlen(clean));
	if (end->told[0] != '\0')
		upstream_set_told(u, "%s%s", end->told, is_habit ? hint : "");
}

static void
stdio_init(struct upstream *u, const struct upstream_env *env)
{
	struct child_opts o = child_opts_of(u->conf);

	u->child = child_new(u->loop, env->spawner, &o, &child_callbacks, u);
}

static void
stdio_free(struct upstream *u)
{
	link_free(u->link);
	child_free(u->child);
}

static void
stdio_start(struct upstream *u)
{
	child_start(u->child);
}

static void
stdio_stop(struct upstream *u)
{
	child_stop(u->child);
}

static void
stdio_restart(struct upstream *u, const char *why)
{
	child_restart(u->child, why);
}

static void
stdio_fail(struct upstream *u, const char *why)
{
	child_fail(u->child, why);
}

static void
stdio_set_ladder(struct upstream *u, const struct child_ladder *l)
{
	child_set_ladder(u->child, l);
}

static void
stdio_set_conf(struct upstream *u)
{
	struct child_opts o = child_opts_of(u->conf);

	/* A stop under way has a ladder of its own. */
	if (u->stopping)
		o.ladder = u->stop_ladder;
	child_set_opts(u->child, &o);
}

static bool
stdio_is_resting(const struct upstream *u)
{
	return child_state(u->child) == CHILD_ST_DOWN;
}

static const struct child_end *
stdio_last_end(const struct upstream *u)
{
	return child_last_end(u->child);
}

static void
stdio_put_stats(const struct upstream *u, struct upstream_stats *s)
{
	s->out_bytes = u->link != NULL ? link_out_pending(u->link) : 0;
	s->pid = child_pid(u->child);
	s->next_ms = child_next_ms(u->child);
}

static void
stdio_on_greeted(struct upstream *u)
{
	upstream_send_initialized(u);
	upstream_event(u, UPSTREAM_EV_INIT_OK);
}

static void
stdio_note_ready(struct upstream *u)
{
	child_note_ready(u->child);
}

static bool
stdio_is_open(const struct upstream *u)
{
	return u->link != NULL;
}

static enum mv_err
stdio_send(struct upstream *u, const struct upstream_message *what,
    const struct iovec *iov, int n)
{
	(void)what; /* a line of its own, whatever it is */
	return link_send(u->link, iov, n);
}

static size_t
stdio_out_pending(const struct upstream *u)
{
	return link_out_pending(u->link);
}

const struct kind_ops kind_stdio = {
    .name = "stdio",
    .init = stdio_init,
    .free = stdio_free,
    .start = stdio_start,
    .stop = stdio_stop,
    .restart = stdio_restart,
    .fail = stdio_fail,
    .set_ladder = stdio_set_ladder,
    .set_conf = stdio_set_conf,
    .is_resting = stdio_is_resting,
    .last_end = stdio_last_end,
    .put_stats = stdio_put_stats,
    .on_greeted = stdio_on_greeted,
    .note_ready = stdio_note_ready,
    .is_open = stdio_is_open,
    .send = stdio_send,
    .out_pending = stdio_out_pending,
};
