/* SPDX-License-Identifier: MIT */
/*
 * Which processes are ours, and what is told of those that came to us as orphans.
 *
 * Owns: the records. Driven by: spawn.
 * Invariants: a process that we forked has a record until it is reaped; one that lives on
 * elsewhere is told once, and then has one as well.
 */
#include "spawn_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct pidrec **
spawner_bucket(struct spawner *sp, pid_t pid)
{
	return &sp->recs[(unsigned)pid % SPAWN_BUCKETS];
}

struct pidrec *
spawner_find(struct spawner *sp, pid_t pid)
{
	struct pidrec *r = *spawner_bucket(sp, pid);

	while (r && r->pid != pid)
		r = r->next;
	return r;
}

void
spawner_register(struct spawner *sp, pid_t pid, struct proc *p, bool is_guard)
{
	struct pidrec **at = spawner_bucket(sp, pid);
	struct pidrec *r = mem_xcalloc(1, sizeof(*r));

	r->pid = pid;
	r->proc = p;
	r->is_guard = is_guard;
	r->next = *at;
	*at = r;
}

void
spawner_forget(struct spawner *sp, struct pidrec *r)
{
	struct pidrec **at = spawner_bucket(sp, r->pid);

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	mem_free(r);
}

void
spawner_disown(struct spawner *sp, const struct proc *p)
{
	const pid_t both[] = {p->pid, p->guard};

	for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
		struct pidrec *r = spawner_find(sp, both[i]);

		if (r && r->proc == p)
			r->proc = NULL;
	}
}

void
spawner_forget_all(struct spawner *sp)
{
	for (size_t i = 0; i < SPAWN_BUCKETS; i++) {
		while (sp->recs[i]) {
			MCPVISOR_ASSERT(!sp->recs[i]->proc);
			waitpid(sp->recs[i]->pid, NULL, WNOHANG);
			spawner_forget(sp, sp->recs[i]);
		}
	}
}

void
spawner_wait_add(
    struct spawner *sp, struct spawner_wait *w, void (*fn)(void *arg), void *arg)
{
	*w = (struct spawner_wait){
	    .next = sp->waits, .prev = &sp->waits, .fn = fn, .arg = arg};
	if (w->next)
		w->next->prev = &w->next;
	sp->waits = w;
}

void
spawner_wait_remove(struct spawner_wait *w)
{
	if (!w->prev)
		return;
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->prev = NULL;
}

void
spawner_call_waits(struct spawner *sp)
{
	while (sp->waits) {
		struct spawner_wait *w = sp->waits;

		spawner_wait_remove(w);
		w->fn(w->arg);
	}
}

/* By the group's first process or its guard, whichever is left. */
static const char *
spawner_name_group(const struct spawner *sp, pid_t pgid)
{
	for (size_t i = 0; i < SPAWN_BUCKETS; i++)
		for (const struct pidrec *r = sp->recs[i]; r; r = r->next)
			if (r->proc && r->proc->pid == pgid)
				return r->proc->name;
	return "?";
}

void
spawner_note_stray(struct spawner *sp, pid_t pid)
{
	struct spawn_stat st = {.comm = "?"};
	const char *name = "?";

	metrics_add(METRIC_CHILD_STRAYS, 1);
	if (spawn_stat_read(pid, &st))
		name = spawner_name_group(sp, st.pgid);
	LOG_LIMITED(LOG_LV_NOTICE, "spawn", "stray reaped", "pid=%d of=%s command=%s",
	    (int)pid, LOG_ESC(name, strlen(name)), LOG_ESC(st.comm, strlen(st.comm)));
}

/* Out of its group it may live on, and nobody else would know: it is told once. */
static void
on_own_child(void *arg, pid_t pid)
{
	struct spawner *sp = arg;
	struct spawn_stat st;

	if (spawner_find(sp, pid) || getsid(pid) == getsid(0) ||
	    !spawn_stat_read(pid, &st) || st.state == 'Z')
		return;
	metrics_add(METRIC_CHILD_STRAYS, 1);
	LOG_LIMITED(LOG_LV_NOTICE, "spawn", "left running", "pid=%d after=%s command=%s",
	    (int)pid, LOG_ESC(sp->after, strlen(sp->after)),
	    LOG_ESC(st.comm, strlen(st.comm)));
	spawner_register(sp, pid, NULL, false);
}

void
spawner_look(struct spawner *sp)
{
	if (!sp->after)
		return;
	spawn_each_child(on_own_child, sp);
	mem_free(sp->after);
	sp->after = NULL;
}

void
spawner_look_later(struct spawner *sp, char *after)
{
	mem_free(sp->after);
	sp->after = after;
	deferred_ask(&sp->look);
}
