/* SPDX-License-Identifier: MIT */
/*
 * Names of hosts to addresses, on the loop: /etc/hosts, then the name servers of
 * /etc/resolv.conf, in the form that CURLOPT_RESOLVE takes.
 *
 * Other sources of the system's (mDNS, directories) are not asked, and answers that do
 * not fit into a datagram are none.
 */
#ifndef MCPVISOR_RESOLVER_PRIV_H
#define MCPVISOR_RESOLVER_PRIV_H

#include <stdbool.h>

struct loop;
struct resolver;

/* addresses: "192.0.2.1,[2001:db8::1]"; NULL: there are none, and why says it. */
typedef void resolver_fn(void *arg, const char *addresses, const char *why);

/* One who waits for an answer. A member of its owner. */
struct resolver_wait {
	struct resolver_wait *next, **prev;
	resolver_fn *fn;
	void *arg;
};

struct resolver *resolver_new(struct loop *l);
/* Nobody may wait. NULL is allowed. */
void resolver_free(struct resolver *r);
/* "ADDRESS:PORT": asked in place of those of the system from the next question on.
 * False: it is none. */
bool resolver_set_server(struct resolver *r, const char *address);

/* False: host (as url_origin has it) is an address, or localhost. */
bool resolver_is_needed(const char *host);
/* Asks, unless it is asked already or known. May call back before it returns, and does
 * so once at most. Nothing here has a time limit that suits a caller: it has its own,
 * and cancels. */
void resolver_ask(struct resolver *r, const char *host, struct resolver_wait *w);
/* Its addresses did not serve: whoever asks next gets fresh ones. */
void resolver_forget(struct resolver *r, const char *host);
void resolver_cancel(struct resolver_wait *w); /* fine on zeroed memory, and again */

#endif
