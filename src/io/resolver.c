/* SPDX-License-Identifier: MIT */
/*
 * Names to addresses through libevent's evdns.
 *
 * Owns: the evdns base, made with the first question and given up when there was none
 * for a while, so that changes of the system's files are seen; the names asked for or
 * known.
 * Driven by: curl_loop; evdns on the loop.
 * Invariants: one question a name at a time, however many wait; a question outlives who
 * waits for it, its answer is kept for the next; the evdns base never ends while one of
 * its questions is open, nor inside its callbacks, because it reports to memory that it
 * has freed.
 */
#include "resolver_priv.h"

#include "loop_priv.h"

#include "mcpvisor/clock.h"
#include "mcpvisor/err.h"
#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>

#define RESOLVER_MAGIC 0x72736c76u
#define QUESTION_MAGIC 0x71737469u
/* As curl has it. */
#define KEEP_MS 60000u
#define IDLE_MS 30000u
/* After a failure: the name servers may be others by now. Not at once, as evdns has more
 * to say of a question in the turns after its answer. */
#define FAILED_MS     100u
#define MAX_ADDRESSES 16
#define ADDRESS_BYTES (INET6_ADDRSTRLEN + 3)
#define FLUSH_ROUNDS  16

/* Lives as long as evdns may call back. */
struct question {
	unsigned magic;
	struct resolver *resolver; /* NULL: nobody is interested any more */
	struct name *name;
	struct evdns_getaddrinfo_request *request; /* NULL while being asked */
	unsigned *open;
};

struct name {
	struct name *next;
	struct question *question; /* NULL: none is open */
	struct resolver_wait *waits;
	uint64_t until_ms;
	char addresses[MAX_ADDRESSES * ADDRESS_BYTES]; /* "" if not known */
	char host[];
};

/* The evdns base and how many questions are open at it, apart from the resolver because
 * it may have to outlive it by a turn. */
struct asker {
	struct event_base *base;
	struct evdns_base *dns;
	unsigned open;
};

struct resolver {
	unsigned magic;
	struct loop *loop;
	struct asker *asker;
	struct timer idle;
	struct name *names;
	char server[64]; /* "": the system's */
};

/* Not inside a callback of the event base: it turns once more, for the last words of
 * evdns, because after this there may be no turn. */
static void
asker_end(void *arg)
{
	struct asker *a = arg;

	for (int i = 0; i < FLUSH_ROUNDS && a->open > 0; i++)
		event_base_loop(a->base, EVLOOP_NONBLOCK);
	evdns_base_free(a->dns, 1);
	mem_free(a);
}

static void
on_idle(void *arg)
{
	struct resolver *r = arg;

	MCPVISOR_ASSERT(r->magic == RESOLVER_MAGIC);
	if (r->asker && r->asker->open == 0) {
		asker_end(r->asker);
		r->asker = NULL;
	}
}

static void
on_evdns_log(int is_warning, const char *text)
{
	if (is_warning)
		LOG_LIMITED(LOG_LV_WARNING, "resolver", "evdns", "text=%s",
		    LOG_ESC(text, strlen(text)));
}

struct resolver *
resolver_new(struct loop *l)
{
	struct resolver *r = mem_xcalloc(1, sizeof(*r));

	r->magic = RESOLVER_MAGIC;
	r->loop = l;
	timer_init(&r->idle, l, on_idle, r);
	return r;
}

static void
resolver_drop_asker(struct resolver *r)
{
	struct asker *a = r->asker;

	r->asker = NULL;
	for (struct name *n = r->names; n; n = n->next) {
		struct question *q = n->question;

		if (!q)
			continue;
		n->question = NULL;
		q->resolver = NULL;
		evdns_getaddrinfo_cancel(q->request);
	}
	if (a)
		loop_defer_free(r->loop, asker_end, a);
}

void
resolver_free(struct resolver *r)
{
	if (!r)
		return;
	resolver_drop_asker(r);
	while (r->names) {
		struct name *n = r->names;

		MCPVISOR_ASSERT(n->waits == NULL);
		r->names = n->next;
		mem_free(n);
	}
	timer_fini(&r->idle);
	r->magic = 0;
	mem_free(r);
}

static struct asker *
asker_new(struct resolver *r)
{
	struct asker *a = mem_xcalloc(1, sizeof(*a));

	a->base = loop_base(r->loop);
	/* Its open sockets alone must not look like work to do. */
	a->dns = evdns_base_new(a->base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (!a->dns) {
		mem_free(a);
		return NULL;
	}
	evdns_set_log_fn(on_evdns_log);
	if (r->server[0]) {
		evdns_base_load_hosts(a->dns, "/etc/hosts");
		evdns_base_nameserver_ip_add(a->dns, r->server);
		return a;
	}
	/* It reads /etc/hosts as well. Without the file, or a server in it, the local one
	 * is asked. */
	evdns_base_resolv_conf_parse(a->dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
	return a;
}

bool
resolver_set_server(struct resolver *r, const char *address)
{
	struct sockaddr_storage ss;
	int len = sizeof(ss);
	size_t n = strlen(address);

	if (n >= sizeof(r->server) ||
	    evutil_parse_sockaddr_port(address, (struct sockaddr *)&ss, &len) != 0)
		return false;
	memcpy(r->server, address, n + 1);
	/* Who waits does so for the next who asks, or until its own limit. */
	resolver_drop_asker(r);
	for (struct name *i = r->names; i; i = i->next)
		i->until_ms = 0;
	return true;
}

bool
resolver_is_needed(const char *host)
{
	static const char local[] = ".localhost";
	struct in_addr a;
	size_t n = strlen(host);

	if (host[0] == '[' || inet_pton(AF_INET, host, &a) == 1 ||
	    strcasecmp(host, local + 1) == 0)
		return false;
	return n < sizeof(local) ||
	       strcasecmp(host + n - (sizeof(local) - 1), local) != 0;
}

static void
name_put_addresses(struct name *n, const struct evutil_addrinfo *all)
{
	size_t at = 0;
	int count = 0;

	n->addresses[0] = '\0';
	for (const struct evutil_addrinfo *i = all; i && count < MAX_ADDRESSES;
	     i = i->ai_next) {
		char text[INET6_ADDRSTRLEN];
		bool six = i->ai_family == AF_INET6;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;

		if (six) {
			memcpy(&v6, i->ai_addr, sizeof(v6));
			(void)inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
		} else if (i->ai_family == AF_INET) {
			memcpy(&v4, i->ai_addr, sizeof(v4));
			(void)inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
		} else {
			continue;
		}
		at += (size_t)snprintf(n->addresses + at, sizeof(n->addresses) - at,
		    six ? "%s[%s]" : "%s%s", at > 0 ? "," : "", text);
		count++;
	}
}

static void
name_answer(struct name *n, const char *why)
{
	struct resolver_wait *mine = n->waits, *w;

	/* Whoever begins to wait meanwhile has a question of its own. */
	n->waits = NULL;
	if (mine)
		mine->prev = &mine;
	while ((w = mine)) {
		resolver_cancel(w);
		w->fn(w->arg, n->addresses[0] ? n->addresses : NULL, why);
	}
}

static void
on_answer(int result, struct evutil_addrinfo *all, void *arg)
{
	struct question *q = arg;
	struct resolver *r = q->resolver;
	struct name *n = q->name;
	const char *why = "no name server has an address of it";

	MCPVISOR_ASSERT(q->magic == QUESTION_MAGIC);
	(*q->open)--;
	q->magic = 0;
	mem_free(q);
	if (r) {
		n->question = NULL;
		name_put_addresses(n, result == 0 ? all : NULL);
		n->until_ms = clock_now_ms() + KEEP_MS;
		if (result == EVUTIL_EAI_NONAME)
			why = "there is no such name";
		timer_set(&r->idle, result == 0 ? IDLE_MS : FAILED_MS);
	}
	if (all)
		evutil_freeaddrinfo(all);
	if (r)
		name_answer(n, why);
}

static struct name *
resolver_name(struct resolver *r, const char *host)
{
	uint64_t now = clock_now_ms();
	struct name **at = &r->names, *n, *found = NULL;
	size_t len = strlen(host);

	while ((n = *at)) {
		if (strcmp(n->host, host) == 0) {
			found = n;
		} else if (!n->question && !n->waits && n->until_ms <= now) {
			*at = n->next;
			mem_free(n);
			continue;
		}
		at = &n->next;
	}
	if (found)
		return found;
	n = mem_xcalloc(1, sizeof(*n) + len + 1);
	memcpy(n->host, host, len + 1);
	n->next = r->names;
	r->names = n;
	return n;
}

static void
resolver_question(struct resolver *r, struct name *n)
{
	struct evutil_addrinfo hints = {.ai_family = PF_UNSPEC,
	    .ai_socktype = SOCK_STREAM,
	    .ai_protocol = IPPROTO_TCP};
	struct evdns_getaddrinfo_request *request;
	struct question *q;

	if (!r->asker)
		r->asker = asker_new(r);
	if (!r->asker) {
		n->until_ms = clock_now_ms() + KEEP_MS;
		name_answer(n, "the resolver cannot be started");
		return;
	}
	q = mem_xcalloc(1, sizeof(*q));
	q->magic = QUESTION_MAGIC;
	q->resolver = r;
	q->name = n;
	q->open = &r->asker->open;
	r->asker->open++;
	n->question = q;
	timer_clear(&r->idle);
	request = evdns_getaddrinfo(r->asker->dns, n->host, NULL, &hints, on_answer, q);
	/* Without a request it has called back already, and the question is gone. */
	if (request)
		q->request = request;
}

void
resolver_ask(struct resolver *r, const char *host, struct resolver_wait *w)
{
	struct name *n = resolver_name(r, host);

	MCPVISOR_ASSERT(r->magic == RESOLVER_MAGIC);
	if (!n->question && n->addresses[0] && n->until_ms > clock_now_ms()) {
		w->fn(w->arg, n->addresses, NULL);
		return;
	}
	w->next = n->waits;
	w->prev = &n->waits;
	if (w->next)
		w->next->prev = &w->next;
	n->waits = w;
	if (!n->question)
		resolver_question(r, n);
}

void
resolver_forget(struct resolver *r, const char *host)
{
	for (struct name *n = r->names; n; n = n->next) {
		if (strcmp(n->host, host) == 0)
			n->until_ms = 0;
	}
}

void
resolver_cancel(struct resolver_wait *w)
{
	if (!w->prev)
		return;
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->next = NULL;
	w->prev = NULL;
}
