/* SPDX-License-Identifier: MIT */
/*
 * libcurl's multi interface as a guest of the loop.
 *
 * Owns: the multi with its connections, a watch for each socket that curl waits for, and
 * the transfers under way.
 * Driven by: the loop: sockets, curl's timer, and work at the end of a turn that takes
 * out what is over.
 * Invariants: nothing is added to the multi or taken out inside curl's callbacks, which
 * forbids it; what curl says is over is told from the end of the turn only.
 */
#include "mcpvisor/curl_loop.h"

#include "curl_loop_priv.h"

#include "mcpvisor/loop.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define CURL_LOOP_MAGIC	  0x6375726cu
#define CURL_SOCKET_MAGIC 0x63736f63u
/* Idle ones that are kept; those in use are not counted by it. */
#define MAX_IDLE_CONNECTIONS 128L

struct curl_socket {
	unsigned magic;
	struct curl_socket *next, **prev;
	struct curl_loop *c;
	struct watch watch;
};

static void
curl_loop_act(struct curl_loop *c, curl_socket_t fd, int ready)
{
	int running;

	(void)c->lib->multi_socket_action(c->multi, fd, ready, &running);
	deferred_ask(&c->collect);
}

static void
on_ready(void *arg, unsigned ready)
{
	struct curl_socket *s = arg;
	int mask = 0;

	MCPVISOR_ASSERT(s->magic == CURL_SOCKET_MAGIC);
	if (ready & WATCH_READ)
		mask |= CURL_CSELECT_IN;
	if (ready & WATCH_WRITE)
		mask |= CURL_CSELECT_OUT;
	curl_loop_act(s->c, s->watch.fd, mask);
}

static void
curl_socket_end(struct curl_socket *s)
{
	watch_fini(&s->watch);
	*s->prev = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->magic = 0;
	loop_defer_free(s->c->loop, mem_free, s);
}

static struct curl_socket *
curl_socket_new(struct curl_loop *c, curl_socket_t fd)
{
	struct curl_socket *s = mem_xcalloc(1, sizeof(*s));

	s->magic = CURL_SOCKET_MAGIC;
	s->c = c;
	s->next = c->sockets;
	s->prev = &c->sockets;
	if (s->next)
		s->next->prev = &s->next;
	c->sockets = s;
	watch_init(&s->watch, c->loop, fd, on_ready, s);
	return s;
}

static int
on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket)
{
	struct curl_loop *c = arg;
	struct curl_socket *s = socket;
	unsigned want = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			curl_socket_end(s);
		return 0;
	}
	if (!s) {
		s = curl_socket_new(c, fd);
		(void)c->lib->multi_assign(c->multi, fd, s);
	}
	if (what & CURL_POLL_IN)
		want |= WATCH_READ;
	if (what & CURL_POLL_OUT)
		want |= WATCH_WRITE;
	watch_want(&s->watch, want);
	return 0;
}

static int
on_curl_timer(CURLM *multi, long ms, void *arg)
{
	struct curl_loop *c = arg;

	(void)multi;
	if (ms < 0)
		timer_clear(&c->timer);
	else
		timer_set(&c->timer, (uint64_t)ms);
	return 0;
}

static void
on_timer(void *arg)
{
	struct curl_loop *c = arg;

	MCPVISOR_ASSERT(c->magic == CURL_LOOP_MAGIC);
	curl_loop_act(c, CURL_SOCKET_TIMEOUT, 0);
}

static void
curl_loop_bury(struct curl_loop *c)
{
	while (c->dead)
		transfer_bury(c->dead);
}

static void
on_collect(void *arg)
{
	struct curl_loop *c = arg;
	CURLMsg *m;
	int left;

	MCPVISOR_ASSERT(c->magic == CURL_LOOP_MAGIC);
	curl_loop_bury(c);
	while (c->multi && (m = c->lib->multi_info_read(c->multi, &left))) {
		struct transfer *t = NULL;

		(void)c->lib->easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
		/* Its owner may have cancelled it out of another one's callback. */
		if (t && t->state == TRANSFER_ST_RUNNING)
			transfer_done(t, m->data.result);
	}
	curl_loop_bury(c);
}

struct curl_loop *
curl_loop_new(struct loop *l)
{
	struct curl_loop *c = mem_xcalloc(1, sizeof(*c));

	c->magic = CURL_LOOP_MAGIC;
	c->loop = l;
	c->resolver = resolver_new(l);
	timer_init(&c->timer, l, on_timer, c);
	deferred_init(&c->collect, l, on_collect, c);
	return c;
}

void
curl_loop_free(struct curl_loop *c)
{
	if (!c)
		return;
	while (c->live)
		transfer_cancel(c->live);
	curl_loop_bury(c);
	if (c->multi)
		(void)c->lib->multi_cleanup(c->multi);
	while (c->sockets)
		curl_socket_end(c->sockets);
	resolver_free(c->resolver);
	timer_fini(&c->timer);
	deferred_cancel(&c->collect);
	c->magic = 0;
	loop_defer_free(c->loop, mem_free, c);
}

enum mv_err
curl_loop_load(struct curl_loop *c, struct mv_errtext *t)
{
	const struct curl_lib *lib;
	CURLM *multi;

	if (c->multi)
		return MV_OK;
	lib = curl_lib_get(t);
	if (!lib)
		return MV_SYSTEM;
	multi = lib->multi_init();
	if (!multi) {
		mv_errtext_set(t, "libcurl cannot be started");
		return MV_SYSTEM;
	}
	(void)lib->multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
	(void)lib->multi_setopt(multi, CURLMOPT_SOCKETDATA, c);
	(void)lib->multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
	(void)lib->multi_setopt(multi, CURLMOPT_TIMERDATA, c);
	(void)lib->multi_setopt(multi, CURLMOPT_MAXCONNECTS, MAX_IDLE_CONNECTIONS);
	(void)lib->multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, 0L);
	(void)lib->multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 0L);
	c->lib = lib;
	c->multi = multi;
	return MV_OK;
}

bool
curl_loop_set_name_server(struct curl_loop *c, const char *address)
{
	return resolver_set_server(c->resolver, address);
}

size_t
curl_loop_count(const struct curl_loop *c)
{
	return c->n_live;
}
