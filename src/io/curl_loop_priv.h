/* SPDX-License-Identifier: MIT */
/* What the parts of curl_loop share. */
#ifndef MCPVISOR_CURL_LOOP_PRIV_H
#define MCPVISOR_CURL_LOOP_PRIV_H

#include "mcpvisor/curl_loop.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/loop.h"

#include "resolver_priv.h"

#include <curl/curl.h>

/* Of libcurl all that is used here, found when it is loaded. */
#define CURL_LIB_FUNCTIONS(X)                                                            \
	X(global_init)                                                                   \
	X(version_info)                                                                  \
	X(slist_append)                                                                  \
	X(slist_free_all)                                                                \
	X(easy_init)                                                                     \
	X(easy_cleanup)                                                                  \
	X(easy_setopt)                                                                   \
	X(easy_getinfo)                                                                  \
	X(easy_pause)                                                                    \
	X(easy_header)                                                                   \
	X(easy_strerror)                                                                 \
	X(multi_init)                                                                    \
	X(multi_cleanup)                                                                 \
	X(multi_setopt)                                                                  \
	X(multi_assign)                                                                  \
	X(multi_add_handle)                                                              \
	X(multi_remove_handle)                                                           \
	X(multi_socket_action)                                                           \
	X(multi_info_read)

struct curl_lib {
#define X(name) __typeof__(curl_##name) *name;
	CURL_LIB_FUNCTIONS(X)
#undef X
};
/* NULL: it cannot be had, and t (which may be NULL) says why. Stays loaded. */
const struct curl_lib *curl_lib_get(struct mv_errtext *t);

struct curl_loop {
	unsigned magic;
	struct loop *loop;
	const struct curl_lib *lib; /* NULL: not loaded yet */
	CURLM *multi;
	struct timer timer;	 /* curl's own */
	struct deferred collect; /* what is over is taken out of the multi */
	struct curl_socket *sockets;
	struct transfer *live, *dead;
	size_t n_live;
	struct resolver *resolver;
};

/* "HOST:PORT" with the host as url_origin has it; an empty port leaves o->port. */
bool url_read_host_port(const char *p, size_t n, struct url_origin *o);

/* Appends the URL of the proxy for o, with scheme and port and without what curl would
 * have to resolve itself, to out, which stays empty if there is none; via: host and port
 * of it. wanted as in transfer_opts. False: what is wanted is no proxy. */
bool curl_proxy_find(const char *wanted, const struct url_origin *o, struct buf *out,
    struct url_origin *via);
/* Whether a list as in no_proxy has host. */
bool curl_proxy_is_excepted(const char *list, const char *host);

enum transfer_state {
	TRANSFER_ST_NEW,
	TRANSFER_ST_RESOLVING,
	TRANSFER_ST_RUNNING, /* in the multi */
	TRANSFER_ST_OVER,    /* on_end is being told */
	TRANSFER_ST_DEAD,    /* cancelled; waits to be taken out of the multi */
};

struct transfer {
	unsigned magic;
	enum transfer_state state;
	struct transfer *next, **prev;
	struct curl_loop *c;
	struct transfer_cb cb;
	void *arg;
	CURL *easy;
	struct curl_slist *headers, *resolve;
	struct url_origin origin, via; /* via: what is connected to */
	char *body;
	size_t n_body, sent;
	size_t head_bytes;
	uint32_t connect_ms;
	uint64_t start_ms;
	bool has_head, is_paused;
	bool is_held; /* curl holds bytes that we did not take */
	bool is_in_multi;
	const char *refusal; /* why it cannot begin */
	struct timer deadline;
	struct deferred step;
	struct mem_wait wait;
	struct resolver_wait name;
	char error[CURL_ERROR_SIZE];
};

/* Options and the callbacks of curl; false: no memory. */
bool transfer_setup(struct transfer *t, const struct transfer_opts *o);
/* curl is done with it. Frees t. */
void transfer_done(struct transfer *t, CURLcode result);
/* Takes all of it back; not inside curl's callbacks. Frees t. */
void transfer_bury(struct transfer *t);

#endif
