/* SPDX-License-Identifier: MIT */
/* What the two demo servers share: demo.c (wire, time) and demo_features.c (methods that
 * both eras have, over the tables that each demo fills). */
#ifndef MCPVISOR_DEMO_PRIV_H
#define MCPVISOR_DEMO_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpvisor/buf.h"

#include <jansson.h>

/* JSON as a C string without the escapes. */
#define DEMO_JSON(...) #__VA_ARGS__

#define DEMO_RPC_INVALID   (-32600)
#define DEMO_RPC_NO_METHOD (-32601)
#define DEMO_RPC_PARAMS	   (-32602)

struct demo;
struct demo_batch;
struct demo_slow;
struct demo_listen;

/* A request; all borrowed. */
struct demo_req {
	const char *method;
	json_t *id;
	json_t *params; /* an object, maybe empty */
	struct demo_batch *batch;
};

/* What an era with caching hints says of a result. */
enum demo_cache { DEMO_CACHE_NONE, DEMO_CACHE_LIST, DEMO_CACHE_LIVE };

typedef void demo_method_fn(struct demo *d, const struct demo_req *r);
typedef void demo_tool_fn(struct demo *d, const struct demo_req *r, json_t *args);

struct demo_method {
	const char *name; /* NULL ends a table */
	demo_method_fn *fn;
};

struct demo_tool {
	const char *name;
	const char *def; /* JSON */
	demo_tool_fn *fn;
	bool hidden; /* until revealed */
};

/* A prompt of one argument, or a template of one variable, with completions. */
struct demo_form {
	const char *name;	    /* of the prompt; of the template its URI */
	const char *def;	    /* JSON */
	const char *variable;	    /* the argument */
	const char *prefix;	    /* of the URIs that the template makes */
	const char *before, *after; /* text around the value */
	const char *const *values;  /* known ones, NULL-terminated */
};

struct demo_resource {
	const char *uri;
	const char *def;  /* JSON */
	const char *text; /* NULL: the counter */
};

struct demo_kind {
	const char *name;
	const struct demo_method *methods; /* of this era alone */
	const struct demo_tool *tools;
	const struct demo_resource *resources;
	const struct demo_form *prompt, *template;
	int not_found; /* code for a resource that is not there */
	/* The era's rules ahead of any method but those of the table; false: it has
	 * replied. known: some table has the method. */
	bool (*admit)(struct demo *d, const struct demo_req *r, bool known);
	/* Takes a result, gives it with the members that the era wants. */
	json_t *(*dress)(json_t *result, enum demo_cache cache);
	void (*on_bump)(struct demo *d); /* the counter has changed */
	void (*on_cancelled)(struct demo *d, json_t *id);
	void (*on_end)(struct demo *d); /* last words at end of input */
	bool (*takes_batches)(const struct demo *d);
};

#define DEMO_MAGIC 0x64656d6fu
struct demo {
	unsigned magic;
	const struct demo_kind *kind;
	bool ended; /* stdout is gone */
	int64_t counter;
	bool revealed;
	struct demo_slow *slow;
	struct demo_batch *batch; /* being read */
	struct buf in;
	size_t searched; /* bytes of in without a newline */
	bool discarding; /* the rest of a line that was too long */
	/* legacy */
	const char *version; /* negotiated; NULL: before initialize */
	unsigned level;
	json_t *subscribed; /* object: uri -> true */
	/* modern */
	struct demo_listen *listens;
};

extern const struct demo_kind demo_kind_legacy, demo_kind_modern;

/* Wire. _take: the json_t is theirs. */
void demo_reply_take(
    struct demo *d, const struct demo_req *r, enum demo_cache cache, json_t *result);
void demo_error_take(struct demo *d, const struct demo_req *r, int code, json_t *data,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void demo_notify_take(struct demo *d, const char *method, json_t *params);
/* The reply comes after ms, with progress at each of steps if that was asked for. */
void demo_slow_start(struct demo *d, const struct demo_req *r, int64_t ms, int64_t steps);

/* Features. */
extern const struct demo_method demo_features[];
bool demo_has_resource(const struct demo *d, const char *uri);
void demo_reply_text(
    struct demo *d, const struct demo_req *r, const char *text, bool is_error);
/* The same of a JSON string, NUL in it included. */
void demo_reply_value(
    struct demo *d, const struct demo_req *r, json_t *text, bool is_error);
/* Text and structuredContent of one object (taken). */
void demo_reply_structured_take(struct demo *d, const struct demo_req *r, json_t *object);
/* Arguments; false or NULL: replied that they are wrong. */
const char *demo_arg_string(
    struct demo *d, const struct demo_req *r, json_t *args, const char *name);
bool demo_arg_int(struct demo *d, const struct demo_req *r, json_t *args,
    const char *name, int64_t max, int64_t *value);
/* Tools that both have. */
demo_tool_fn demo_tool_slow, demo_tool_fail, demo_tool_bump;

#endif
