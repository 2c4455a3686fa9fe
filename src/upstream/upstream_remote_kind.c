/* SPDX-License-Identifier: MIT */
/*
 * A remote upstream as one of the kinds: what upstream.c asks of it.
 *
 * Owns: the remote, from init to free.
 * Driven by: upstream.c; its timer and the ends of turns.
 * Invariants: nothing is sent but in UP; initialize alone waits for an endpoint.
 */
#include "upstream_remote_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/curl_loop.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <stdio.h>
#include <string.h>

#define REMOTE_MAGIC_GONE 0x72656d0du

static void
on_over(void *arg)
{
	struct remote *rm = arg;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	remote_dispatch(rm, REMOTE_EV_OVER);
}

static void
on_timer(void *arg)
{
	struct remote *rm = arg;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	remote_dispatch(rm, REMOTE_EV_TIMER);
}

static void
on_stream_timer(void *arg)
{
	struct remote *rm = arg;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	remote_opened(rm);
}

static void
on_resend(void *arg)
{
	struct remote *rm = arg;

	MCPVISOR_ASSERT(rm->magic == REMOTE_MAGIC);
	upstream_send_held(rm->u);
}

static void
remote_take_conf(struct remote *rm)
{
	const struct upstream_conf *conf = rm->u->conf;
	struct backoff_opts o = upstream_backoff_opts(conf);
	struct url_origin origin;

	backoff_set_opts(&rm->backoff, &o);
	rm->ladder =
	    (struct child_ladder){.term_ms = conf->term_ms, .kill_ms = conf->kill_ms};
	if (url_read_origin(conf->url, &origin))
		(void)snprintf(rm->where, sizeof(rm->where), "%s:%u", origin.host,
		    (unsigned)origin.port);
	else
		(void)snprintf(rm->where, sizeof(rm->where), "the server");
}

static void
remote_init(struct upstream *u, const struct upstream_env *env)
{
	struct remote *rm = mem_xcalloc(1, sizeof(*rm));

	rm->magic = REMOTE_MAGIC;
	rm->u = u;
	rm->curl = env->curl;
	timer_init(&rm->timer, u->loop, on_timer, rm);
	timer_init(&rm->stream_timer, u->loop, on_stream_timer, rm);
	deferred_init(&rm->over, u->loop, on_over, rm);
	deferred_init(&rm->resend, u->loop, on_resend, rm);
	buf_init(&rm->init, CAP_MESSAGE_BYTES);
	buf_init(&rm->lines, CAP_HEADER_LINES_BYTES);
	buf_init(&rm->name, CAP_URI_BYTES);
	rm->annotated = strmap_new();
	u->remote = rm;
	remote_take_conf(rm);
}

static void
remote_destroy(struct upstream *u)
{
	struct remote *rm = u->remote;

	http_link_free(rm->link);
	rm->link = NULL;
	rm->state = REMOTE_ST_DOWN;
	timer_fini(&rm->timer);
	timer_fini(&rm->stream_timer);
	deferred_cancel(&rm->over);
	deferred_cancel(&rm->resend);
	buf_fini(&rm->init);
	buf_fini(&rm->lines);
	buf_fini(&rm->name);
	strmap_free(rm->annotated);
	rm->magic = REMOTE_MAGIC_GONE;
	/* Later: the caller may be its callback, and whoever hears now that a call is
	 * over may still ask whether it is open. */
	loop_defer_free(u->loop, mem_free, rm);
}

static void
remote_start(struct upstream *u)
{
	remote_dispatch(u->remote, REMOTE_EV_START);
}

static void
remote_stop(struct upstream *u)
{
	remote_dispatch(u->remote, REMOTE_EV_STOP);
}

static void
remote_restart(struct upstream *u, const char *why)
{
	LOG_NOTICE("remote", "restart", "upstream=%s reason=%s", UNAME(u),
	    LOG_ESC(why, strlen(why)));
	remote_dispatch(u->remote, REMOTE_EV_RESTART);
}

/* A greeting that came to nothing: what was learnt may be what is wrong. */
static void
remote_fail(struct upstream *u, const char *why)
{
	struct remote *rm = u->remote;

	u->known_transport = u->conf->transport;
	if (!remote_is_up(rm))
		return;
	rm->end.err = MV_PROTOCOL;
	(void)snprintf(rm->end.text, sizeof(rm->end.text), "%s: %s", rm->where, why);
	rm->end.told[0] = '\0';
	remote_dispatch(rm, REMOTE_EV_DIE);
}

static void
remote_set_ladder(struct upstream *u, const struct child_ladder *l)
{
	u->remote->ladder = *l;
}

static void
remote_set_conf(struct upstream *u)
{
	struct remote *rm = u->remote;
	struct http_link_opts o;

	remote_take_conf(rm);
	if (u->stopping)
		rm->ladder = u->stop_ladder;
	remote_put_opts(rm, &o);
	if (rm->link != NULL)
		http_link_set_opts(rm->link, &o);
	/* Whoever reads the conf anew wants to know whether it is better now. */
	if (rm->state == REMOTE_ST_REFUSED)
		remote_dispatch(rm, REMOTE_EV_START);
}

static bool
remote_is_resting(const struct upstream *u)
{
	return u->remote->state == REMOTE_ST_DOWN;
}

static const struct child_end *
remote_last_end(const struct upstream *u)
{
	return &u->remote->end;
}

static void
remote_put_stats(const struct upstream *u, struct upstream_stats *s)
{
	const struct remote *rm = u->remote;
	uint64_t now = clock_now_ms();

	s->out_bytes = rm->link != NULL ? http_link_out_pending(rm->link) : 0;
	if (rm->state == REMOTE_ST_BACKOFF && rm->resume_ms > now)
		s->next_ms = rm->resume_ms - now;
}

static void
remote_on_greeted(struct upstream *u)
{
	remote_greet(u->remote);
}

static void
remote_note_ready(struct upstream *u)
{
	struct remote *rm = u->remote;

	rm->ready_ms = clock_now_ms();
	rm->refusal[0] = '\0';
	if (u->era->mirrors)
		rm->flipped_ms = 0;
	u->known_transport =
	    rm->mode == HTTP_MODE_SSE ? TRANSPORT_SSE : TRANSPORT_STREAMABLE;
}

static void
remote_on_ready(struct upstream *u)
{
	if (!u->era->mirrors)
		http_link_renew(u->remote->link);
}

static bool
remote_is_open(const struct upstream *u)
{
	return remote_is_up(u->remote);
}

/* The endpoint is not known: initialize, which is all that can come now, waits. */
static enum mv_err
remote_keep(struct remote *rm, uint64_t id, const struct iovec *iov, int n)
{
	buf_reset(&rm->init);
	for (int i = 0; i < n; i++)
		buf_add(&rm->init, iov[i].iov_base, iov[i].iov_len);
	rm->init_id = rm->init.err == MV_OK ? id : 0;
	return rm->init.err;
}

static enum mv_err
remote_send(struct upstream *u, const struct upstream_message *what,
    const struct iovec *iov, int n)
{
	struct remote *rm = u->remote;
	struct http_message m = {.id = what->id,
	    .is_initialize = what->id != 0 && what->method == METHOD_INITIALIZE};
	bool greets = what->id != 0 && u->era == NULL;
	enum mv_err err = MV_OK;

	if (m.is_initialize && rm->mode == HTTP_MODE_SSE && !rm->has_endpoint)
		return remote_keep(rm, what->id, iov, n);
	rm->is_annotated = false;
	if (what->id != 0 &&
	    (what->method == METHOD_DISCOVER || (u->era != NULL && u->era->mirrors))) {
		err = remote_put_lines(rm, what, iov, n);
		m.lines = rm->lines.data;
		/* There may be one, of an initialize that was answered in vain. */
		m.is_apart = true;
	}
	if (err == MV_OK)
		err = http_link_send(rm->link, &m, iov, n);
	if (err == MV_AUTH)
		rm->refused_hash = rm->sent_hash;
	/* Nobody would hear of it otherwise. */
	if (err == MV_AUTH || (err != MV_OK && greets))
		remote_die(
		    rm, err, "%s", err == MV_AUTH ? rm->no_headers : mv_err_text(err));
	return err;
}

static size_t
remote_out_pending(const struct upstream *u)
{
	return remote_is_up(u->remote) ? http_link_out_pending(u->remote->link) : 0;
}

static bool
remote_drop(struct upstream *u, uint64_t id)
{
	struct remote *rm = u->remote;

	if (rm->init_id == id)
		rm->init_id = 0;
	if (rm->link != NULL)
		(void)http_link_cancel(rm->link, id);
	return u->era != NULL && u->era->mirrors;
}

static void
remote_look_again(struct upstream *u)
{
	struct remote *rm = u->remote;

	if (rm->state == REMOTE_ST_REFUSED && remote_has_other_credentials(rm))
		remote_dispatch(rm, REMOTE_EV_START);
}

/* HTTP+SSE has one stream for all. */
static bool
remote_tells_calls(const struct upstream *u)
{
	return u->known_transport != TRANSPORT_SSE;
}

const struct kind_ops kind_http = {
    .name = "http",
    .is_remote = true,
    .init = remote_init,
    .free = remote_destroy,
    .start = remote_start,
    .stop = remote_stop,
    .restart = remote_restart,
    .fail = remote_fail,
    .set_ladder = remote_set_ladder,
    .set_conf = remote_set_conf,
    .is_resting = remote_is_resting,
    .last_end = remote_last_end,
    .put_stats = remote_put_stats,
    .on_greeted = remote_on_greeted,
    .note_ready = remote_note_ready,
    .on_ready = remote_on_ready,
    .is_open = remote_is_open,
    .send = remote_send,
    .out_pending = remote_out_pending,
    .look_again = remote_look_again,
    .on_sent = remote_on_sent,
    .drop = remote_drop,
    .on_error = remote_on_error,
    .on_list = remote_on_list,
    .on_listed = remote_on_listed,
    .tells_calls = remote_tells_calls,
};
