/* SPDX-License-Identifier: MIT */
/*
 * The owner of one upstream on the fake loop, child and link: plays the server on
 * the other side, and counts what the upstream tells.
 */
#ifndef FAKE_UPSTREAM_OWNER_H
#define FAKE_UPSTREAM_OWNER_H

#include "mcpvisor/upstream.h"

#include "upstream_priv.h"

#include "fake/fake_child.h"
#include "fake/fake_http_link.h"
#include "fake/fake_link.h"
#include "fake/fake_loop.h"

/* What we send, as text. */
#define OWN_META                                                                         \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","         \
	"\"io.modelcontextprotocol/clientCapabilities\":{},"                             \
	"\"io.modelcontextprotocol/clientInfo\":" MCPVISOR_IDENTITY "}"
#define DISCOVER(id)                                                                     \
	"{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"server/discover\","            \
	"\"params\":{" OWN_META "}}"
#define INITIALIZE(id)                                                                   \
	"{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"initialize\",\"params\":{"     \
	"\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"                        \
	"\"clientInfo\":" MCPVISOR_IDENTITY "}}"
#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define CANCELLED(id)                                                                    \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","                   \
	"\"params\":{\"requestId\":" #id "}}"

/* What a server says, as printf forms with its id first. */
#define RESULT "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":%s}"
#define REFUSED                                                                          \
	"{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":{\"code\":%s,\"message\":\"m\"%s}}"

struct uowner {
	struct loop *loop;
	struct upstream_conf *conf;
	struct upstream *u;
	unsigned lists[LIST_MAX], changes[LIST_MAX];
	unsigned settled, stopped, logs, updates, dones, memories, idles;
	unsigned asked, withdrawn, elicited;
	struct question *question; /* the last one asked; taken for its call, if any */
	struct upstream_req *asked_by;
	enum upstream_state settled_in;
	char last[1024]; /* of logs, updates and progress */
	char log[16384]; /* what was logged, with newlines, until it is full */
	size_t log_len;
	unsigned links, https; /* live at the beginning */
};

struct uowner *uowner_new(enum era_pin pin);
struct uowner *uowner_new_of(struct upstream_conf *conf); /* takes it */
/* Stops it if need be and frees all; nothing may be left. */
void uowner_free(struct uowner *o);
void uowner_start(struct uowner *o);
/* From start to ready, as one of this revision or as a modern one; caps is the
 * object of its capabilities. The messages of the greeting are taken. */
void uowner_be_legacy(struct uowner *o, const char *revision, const char *caps);
void uowner_be_modern(struct uowner *o, const char *caps);
/* The process ends, for good or until its next start, which then comes. */
void uowner_die(struct uowner *o);
void uowner_reborn(struct uowner *o);

/* The server writes a line. */
void uowner_say(struct uowner *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void uowner_answer(struct uowner *o, unsigned long long id, const char *result);
void uowner_refuse(struct uowner *o, unsigned long long id, const char *code);
/* The next message that it was sent is this one; the next is a request of this
 * method, whose id is returned; there is none. */
void uowner_heard(const char *text);
unsigned long long uowner_heard_request(const char *method);
void uowner_heard_nothing(void);
bool uowner_is_ready(const struct uowner *o);
/* What has to hold in every state. */
void uowner_check(const struct uowner *o);
bool uowner_log_has(const struct uowner *o, const char *text);

/* One client's call. Its text lives only as long as the send. */
struct ucall {
	struct upstream_req req;
	struct uowner *o;
	unsigned done, progressed, logged;
	unsigned order; /* the how manieth to end */
	enum outcome_kind kind;
	enum mv_err err;
	char body[512], detail[256];
	struct ucall *then; /* to send with then_text when this one ends */
	const char *then_text;
	/* In place of the client's arguments, or after its name with a comma in front. */
	const char *arguments;
	bool has_state; /* as upstream_call has it */
};

/* The taker of questions that uowner_on_question is; for those that a test makes. */
extern const struct question_cb uowner_question_cb;

/* As a client of the time before 2026-07-28 that has a name of its own; target replaces
 * params.name, NULL: nothing. */
enum mv_err ucall_try(
    struct uowner *o, struct ucall *c, const char *text, const char *target);
void ucall_send(struct uowner *o, struct ucall *c, const char *text);
#define CLIENT_INFO "{\"name\":\"cl\"}"

/* One wish for updates. */
struct watcher {
	struct upstream_watch watch;
	unsigned settled;
	bool yes;
	enum outcome_kind kind;
	enum mv_err err;
	bool unwatch; /* in its own callback */
};

/* uri is JSON text and constant. */
void watcher_watch(struct uowner *o, struct watcher *w, const char *uri);
/* It settled, once: MV_OK is yes. */
void watcher_check(const struct watcher *w, enum mv_err err);
#define UPDATED_OF(uri)                                                                  \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","           \
	"\"params\":{\"uri\":" uri "}}"

#endif
