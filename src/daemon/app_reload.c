/* SPDX-License-Identifier: MIT */
/*
 * A reload: the conf is read into a new snapshot, compared, and put into force.
 *
 * Owns: nothing beyond the step itself; the snapshots are the server's.
 * Driven by: SIGHUP, the control socket.
 * Invariants: whatever can fail comes before anything is changed; a conf with an error
 * changes nothing, and the old one goes on.
 */
#include "app_serve.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/client.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"
#include "mcpvisor/notify.h"

#include <string.h>

/* The gateway has let go of the oldest conf that was replaced. */
void
server_on_released(void *arg)
{
	struct server *s = arg;
	struct fleet *f = s->old;

	MCPVISOR_ASSERT(f != NULL);
	s->old = f->next;
	if (s->old == NULL)
		s->old_tail = &s->old;
	fleet_free(f);
}

/* Each line of text is a line of the log. */
static void
reload_log(enum log_level level, const char *event, const struct buf *text)
{
	const char *p = text->data, *end = text->len ? p + text->len : p;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = nl ? (size_t)(nl - p) : (size_t)(end - p);

		log_event(level, "reload", event, "text=%s", LOG_ESC(p, n));
		p += n + 1;
	}
}

/* Whether a line is about an endpoint: "+ listen.", "~ listen.". */
static bool
reload_has_listen(const struct buf *text)
{
	const char *p = text->data, *end = text->len ? p + text->len : p;

	while (end - p > 8 && memcmp(p + 1, " listen", 7) != 0) {
		p = memchr(p, '\n', (size_t)(end - p));
		p = p != NULL ? p + 1 : end;
	}
	return end - p > 8;
}

/* A difference that is longer than its buffer ends with a whole line, and says so. */
static void
reload_end_text(struct buf *text)
{
	static const char more[] = "(more does not fit)\n";

	if (text->err == MV_OK)
		return;
	text->err = MV_OK;
	while (text->len > 0 && (text->data[text->len - 1] != '\n' ||
				    text->max - text->len < sizeof(more)))
		text->len--;
	buf_add_str(text, more);
}

static enum mv_err
reload_refuse(const struct buf *text, enum mv_err err)
{
	metrics_add(METRIC_RELOADS_REFUSED, 1);
	reload_log(LOG_LV_ERROR, "refused", text);
	return err;
}

static struct fleet *
reload_read(const struct server *s, struct buf *text)
{
	struct conf_errors e;
	struct fleet *f = fleet_load(s->a, &e);

	for (size_t i = 0; i < e.n; i++) {
		buf_add_str(text, e.v[i]);
		buf_add_char(text, '\n');
	}
	if (e.n_more > 0)
		buf_addf(text, "and %zu more errors\n", e.n_more);
	conf_errors_free(&e);
	return f;
}

/* Binds what is new. False: why says what is wrong, and nothing has changed. */
static bool
reload_listen(struct server *s, const struct fleet *f, struct buf *why)
{
	struct mv_errtext et = {.line = 0};
	bool ok;

	/* The defaults were bound as far as they could be. */
	if (s->a->listen[0] != NULL ||
	    (f->conf->n_listen == 0 && s->fleet->conf->n_listen == 0))
		return true;
	ok = server_listen(s, f, &et);
	if (!ok) {
		gateway_unreserve_views(s->gateway);
		buf_addf(
		    why, "listen: %s%s%s\n", et.file, et.file[0] ? ": " : "", et.message);
	}
	return ok;
}

/* From here on nothing fails. */
static void
reload_apply(struct server *s, struct fleet *f)
{
	struct endpoint_http_opts eo = endpoint_http_defaults;
	struct gateway_apply_opts go = {.drain_ms = f->conf->reload_drain_ms};
	struct fleet *was = s->fleet;

	server_put_endpoint_opts(f, &eo);
	endpoint_http_set_opts(s->endpoint, &eo);
	fleet_settle(s->a, f);
	client_log_calls(f->conf->log.calls);
	was->next = NULL;
	*s->old_tail = was;
	s->old_tail = &was->next;
	s->fleet = f;
	fleet_put_opts(f, &go.fleet);
	gateway_apply(s->gateway, &go);
}

/* What changes is told as such only once it does. */
static enum mv_err
reload_change(struct server *s, struct fleet *f, struct buf *text)
{
	struct buf why;
	bool ok;

	buf_init(&why, sizeof(struct mv_errtext) + 64);
	ok = reload_listen(s, f, &why);
	if (ok) {
		reload_log(LOG_LV_NOTICE, "change", text);
	} else {
		fleet_free(f);
		buf_reset(text);
		buf_add(text, why.data, why.len);
	}
	buf_fini(&why);
	if (!ok)
		return reload_refuse(text, MV_CONF);
	fleet_warn(f);
	reload_apply(s, f);
	s->reloads++;
	metrics_add(METRIC_RELOADS, 1);
	LOG_NOTICE("reload", "done", "upstreams=%zu", f->n);
	return MV_OK;
}

enum mv_err
server_reload(struct server *s, bool dry_run, struct buf *text)
{
	struct fleet *f;
	enum mv_err err;

	if (s->stopping)
		return MV_STOPPING;
	if (s->a->conf_file == NULL && s->a->mcp_json == NULL) {
		buf_add_str(text, "there is no conf to read: the demo runs\n");
		return dry_run ? MV_UNSUPPORTED : reload_refuse(text, MV_UNSUPPORTED);
	}
	f = reload_read(s, text);
	if (f == NULL)
		return dry_run ? MV_CONF : reload_refuse(text, MV_CONF);
	(void)conf_diff(s->fleet->conf, f->conf, text);
	reload_end_text(text);
	if (s->a->listen[0] != NULL && reload_has_listen(text))
		buf_add_str(
		    text, "(--listen is in force: rows of listen are not used)\n");
	if (dry_run) {
		fleet_free(f);
		return MV_OK;
	}
	notify_reloading(s->notify);
	err = reload_change(s, f, text);
	notify_ready(s->notify);
	return err;
}
