/* SPDX-License-Identifier: MIT */
/* What the files of "serve" share. */
#ifndef MCPVISOR_APP_SERVE_H
#define MCPVISOR_APP_SERVE_H

#include "app_priv.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/endpoint_http.h"
#include "mcpvisor/loop.h"

struct server {
	struct app *a;
	struct fleet *fleet; /* in force */
	struct fleet *old,
	    **old_tail; /* what the gateway has not let go of, oldest first */
	struct loop *loop;
	struct spawner *spawner;
	struct curl_loop *curl;
	struct gateway *gateway;
	struct endpoint_http *endpoint;
	struct state *state;
	struct control *control;
	struct notify *notify;
	struct timer sweep; /* of the state */
	uint64_t started_ms;
	unsigned reloads;
	bool stopping;
};

/* app_serve.c */

/* Serves where f and the command line say. False with *et: an address says no, and
 * nothing has changed but for views that were reserved. */
bool server_listen(struct server *s, const struct fleet *f, struct mv_errtext *et);
void server_put_endpoint_opts(const struct fleet *f, struct endpoint_http_opts *o);

/* app_reload.c */

/* Reads the conf anew and, unless dry_run, goes by it. text gets what changes, a line
 * each; with MV_CONF what is wrong, and nothing has changed. */
enum mv_err server_reload(struct server *s, bool dry_run, struct buf *text);
void server_on_released(void *arg);

/* app_status.c */
void server_put_status(void *arg, struct buf *out);

#endif
