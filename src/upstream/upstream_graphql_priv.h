/* SPDX-License-Identifier: MIT */
/* What the files of the upstream that is a GraphQL endpoint share. */
#ifndef MCPVISOR_UPSTREAM_GRAPHQL_PRIV_H
#define MCPVISOR_UPSTREAM_GRAPHQL_PRIV_H

#include "upstream_local_priv.h"

#include "mcpvisor/backoff.h"
#include "mcpvisor/graphql.h"

#define GQL_MAGIC	   0x6771756cu
#define GQL_CALL_MAGIC	   0x67716361u
#define GQL_EXCHANGE_MAGIC 0x67716578u

#define GQL_QUEUE_MAX	256  /* calls that wait for one of max_inflight to end */
#define GQL_ERROR_BYTES 8192 /* text of a result that is an error */
/* Of what a model writes for the execute tool. */
#define GQL_EXECUTE_DEPTH  15
#define GQL_EXECUTE_FIELDS 500

/* ---- one request and what came of it: graphql_http.c ---- */

enum gql_end {
	GQL_ANSWERED,	 /* status, type and body are there */
	GQL_TIMEOUT,	 /* in time it was not answered; maybe acted upon */
	GQL_UNREACHABLE, /* nothing was sent */
	GQL_BROKEN,	 /* the connection ended before the answer did */
	GQL_TOO_LARGE,
	GQL_NO_HEADERS, /* those of the conf cannot be had; nothing was sent */
	GQL_NOT_READY,	/* the types are not known; nothing was sent */
	GQL_BUSY,	/* too many wait; nothing was sent */
	GQL_NO_MEMORY
};

struct gql_exchange {
	unsigned magic;
	enum gql_end end;
	int status;
	uint32_t retry_after_s; /* 0: not said */
	char type[64];		/* of the body, without parameters */
	struct buf body;
	char why[256]; /* for people, without secrets */
	struct buf
	    headers; /* of the conf, as they were sent: lines with NUL after each */
	/* While it is under way */
	struct upstream *u;
	struct transfer *transfer;
	struct timer timer;
	void (*on_end)(void *arg);
	void *arg;
};

struct gql_request {
	const struct iovec *body;
	int n_body;
	const char *const *lines; /* more headers, NULL-terminated; may be NULL */
	uint64_t body_max;	  /* of the answer */
	uint32_t timeout_ms;
};

void gql_exchange_init(
    struct gql_exchange *x, struct upstream *u, void (*on_over)(void *arg), void *arg);
/* Sends it; what is borrowed is copied. on_over comes once, never before returning, and
 * may come from a callback of the transfer. */
void gql_exchange_start(
    struct gql_exchange *x, struct curl_loop *curl, const struct gql_request *rq);
/* Before anybody is shown what of an answer is no result: our headers are taken out of
 * it, which endpoints repeat in their errors. Texts in the body are to be read anew. */
void gql_exchange_hide(struct gql_exchange *x);
/* Without a word; the connection is closed if it is under way. Fine when it is not. */
void gql_exchange_cancel(struct gql_exchange *x);
void gql_exchange_fini(struct gql_exchange *x); /* that, and all it holds */

/* ---- what an answer means: graphql_answer.c, pure ---- */

struct gql_asked {
	const char *upstream, *host;
	enum graphql_op op;
	bool is_execute, is_plain;
	uint32_t timeout_ms, inflight;
	uint64_t response_max;
};

/* A result of tools/call in two pieces, head and tail. */
struct gql_answer {
	struct buf head;
	struct jtext structured; /* in x->body, and "}" follows; absent: none */
	bool is_error;
	bool is_refused;  /* our credentials are */
	bool is_internal; /* no result: the fault is ours */
};
void gql_answer_init(struct gql_answer *a);
void gql_answer_fini(struct gql_answer *a);
/* Line breaks between the tokens of x->body become blanks. */
void gql_answer_make(
    struct gql_answer *a, const struct gql_asked *q, struct gql_exchange *x);

/* graphql_errors.c: appends up to five errors, a line each after the first; what a caller
 * can do about it; the compact JSON of as many as fit into max bytes of out. */
void gql_put_error_lines(struct buf *out, struct jtext errors);
void gql_put_error_json(struct buf *out, struct jtext errors, size_t max);
/* What the first of errors, which may be absent, says of trying again. */
void gql_put_retry(struct buf *out, const struct gql_asked *q,
    const struct gql_exchange *x, struct jtext errors);
/* Text of a peer on one line: control characters become blanks, at most max bytes. */
void gql_put_line(struct buf *out, const char *p, size_t n, size_t max);
unsigned gql_count(struct jtext array);

/* ---- operations: graphql_files.c ---- */

struct gql_file {
	char *path;
	uint64_t stamp;		      /* of its state when it was read last */
	struct graphql_document *doc; /* NULL: it was never sound */
	bool is_manifest;	      /* it needs no other file */
	bool is_seen;		      /* in this look */
};

struct gql_files {
	struct gql_file *of; /* by path */
	size_t n;
};

/* Looks at all that patterns name, and reads what is new or has changed. A file that is
 * broken is logged, and keeps what it had. */
void gql_files_look(struct gql_files *f, const char *upstream, char *const *patterns);
void gql_files_fini(struct gql_files *f);
/* Appends a file, if out has room for all of it. NULL, or else why not. */
const char *gql_file_read(const char *path, struct buf *out);

/* ---- tools: graphql_tools.c ---- */

struct gql_tool {
	char *name;   /* as it is listed */
	char *source; /* what it is made of, for people */
	enum graphql_op op;
	bool is_execute;
	struct argspec *args;
	struct buf head; /* of the request, up to the variables */
};

struct gql_tools {
	struct gql_tool *of;
	size_t n;
	struct strmap *by_name; /* index + 1 */
	struct buf listing;	/* definitions with commas between them */
};

struct gql_sources {
	const struct upstream *u;
	const struct gql_files *files;
	const struct graphql_schema *schema; /* NULL: it is not known */
};
/* NULL: two have one name, or there are too many; err says which. */
struct gql_tools *gql_tools_new(const struct gql_sources *s, struct mv_errtext *err);
void gql_tools_free(struct gql_tools *t); /* NULL is allowed */
const struct gql_tool *gql_tools_find(const struct gql_tools *t, struct jtext name);

/* graphql_execute.c: the tool that runs what the model writes. */
bool gql_execute_may_change(const struct graphql_conf *c);
struct argspec *gql_execute_arguments(void);
/* Arguments that have passed that: what would run. False: it may not, and why says so. */
bool gql_execute_check(const struct graphql_conf *c, struct jtext arguments,
    enum graphql_op *kind, struct buf *why);
void gql_execute_put_request(struct buf *out, struct jtext arguments); /* to empty out */

/* ---- the whole: upstream_graphql.c ---- */

struct gql {
	unsigned magic;
	struct upstream *u;
	struct curl_loop *curl;
	char where[280]; /* host of the endpoint, and its port if it is a special one */
	struct gql_files files;
	struct graphql_schema *schema; /* the last good one */
	uint64_t schema_hash;	       /* of its text; 0: there is none */
	struct gql_tools *tools;       /* the last good ones */
	bool is_started, is_up;
	bool is_ready; /* calls are sent: the types are known, or not wanted */
	char not_ready[256];
	/* Introspection: graphql_introspect.c */
	struct gql_exchange fetch;
	enum graphql_introspection how;
	bool is_fetching;
	struct backoff backoff;
	struct timer refresh;
	/* Calls: graphql_call.c */
	struct gql_call *running, *waiting, **waiting_tail;
	unsigned n_running, n_waiting;
};

/* upstream_graphql.c: a schema came, or did not and why says so. */
void gql_schema_came(struct gql *g, const char *text, size_t n);
void gql_schema_failed(struct gql *g, const char *why);

/* graphql_introspect.c */
void gql_introspect(struct gql *g); /* ends by one of those two */
void gql_introspect_stop(struct gql *g);
void gql_introspect_init(struct gql *g);

/* graphql_call.c */
void gql_call(void *arg, struct local_call *c);
void gql_call_cancel(void *arg, struct local_call *c);

#endif
