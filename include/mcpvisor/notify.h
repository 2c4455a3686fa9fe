/* SPDX-License-Identifier: MIT */
/*
 * What a service manager is told: sd_notify(3), without its library. Without
 * $NOTIFY_SOCKET all of it does nothing. A manager that is busy hears it later, the
 * newest in place of what it missed.
 */
#ifndef MCPVISOR_NOTIFY_H
#define MCPVISOR_NOTIFY_H

struct loop;
struct notify;

/* Starts the watchdog's heartbeat if one is wanted ($WATCHDOG_USEC). NULL when nobody
 * listens. */
struct notify *notify_new(struct loop *l);
void notify_free(struct notify *n); /* NULL is allowed, here and below */
void notify_ready(struct notify *n);
void notify_reloading(struct notify *n); /* until notify_ready */
void notify_stopping(struct notify *n);

#endif
