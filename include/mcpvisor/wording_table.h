/* SPDX-License-Identifier: MIT */
/*
 * Every sentence of our own that says what is wrong, but for those about arguments
 * (argspec.h) and about upstreams that gave no answer (err.h).
 */
#ifndef MCPVISOR_WORDING_TABLE_H
#define MCPVISOR_WORDING_TABLE_H

#include "mcpvisor/buf.h"
#include "mcpvisor/json.h"

/* X(RETRY, text): what ends a sentence. SAID: it says itself what to do, or is as the
 * protocol has it. */
#define WORDING_RETRIES(X)                                                               \
	X(SAID, "")                                                                      \
	X(UNCHANGED, ". Retrying unchanged will fail.")                                  \
	X(NEVER, "; a retry will not help")                                              \
	X(MAY, "; a retry may help")                                                     \
	X(PART, "") /* of another sentence, that goes on: why it is so */

/* X(WORDING, code, RETRY, text). A % is where the current value goes; without one it
 * stands behind the text, but for SAID. Names of what a client sent are as the protocol
 * spells them.
 */
#define WORDINGS_OF_REQUESTS(X)                                                          \
	X(NO_METHOD, -32601, UNCHANGED, "Method not found: %")                           \
	X(METHOD_OF_BEFORE, -32601, UNCHANGED,                                           \
	    "Method not found: initialize belongs to earlier revisions; this request "   \
	    "is one of 2026-07-28")                                                      \
	X(NO_TASKS, -32601, UNCHANGED, "Method not found: nothing here has tasks")       \
	X(NO_SUBSCRIPTIONS, -32601, UNCHANGED,                                           \
	    "The upstream of resource % takes no subscriptions")                         \
	X(BATCH_MODERN, -32600, UNCHANGED, "Invalid request: 2026-07-28 has no batches") \
	X(BATCH_REVISION, -32600, UNCHANGED,                                             \
	    "Invalid request: this revision has no batches")                             \
	X(BATCH_INITIALIZE, -32600, UNCHANGED,                                           \
	    "Invalid request: initialize must not be part of a batch")                   \
	X(ID_IN_FLIGHT, -32600, SAID,                                                    \
	    "Invalid request: the id is that of a request still in flight; use "         \
	    "another one")                                                               \
	X(NEEDS_SESSION, -32600, SAID,                                                   \
	    "Invalid request: % needs a session; send initialize first")                 \
	X(LISTEN_MUTE, -32600, UNCHANGED,                                                \
	    "Invalid request: subscriptions/listen is answered by an event stream, "     \
	    "which the Accept header does not take")                                     \
	X(LISTEN_FULL, -32603, MAY, "Too many subscriptions on this connection are open")

#define WORDINGS_OF_PARAMS(X)                                                            \
	X(META_VERSION, -32602, UNCHANGED,                                               \
	    "Invalid params: params._meta must have "                                    \
	    "io.modelcontextprotocol/protocolVersion, a string")                         \
	X(META_CAPABILITIES, -32602, UNCHANGED,                                          \
	    "Invalid params: params._meta must have "                                    \
	    "io.modelcontextprotocol/clientCapabilities, an object")                     \
	X(META_INFO, -32602, UNCHANGED,                                                  \
	    "Invalid params: io.modelcontextprotocol/clientInfo must be an object")      \
	X(META_LEVEL, -32602, UNCHANGED,                                                 \
	    "Invalid params: io.modelcontextprotocol/logLevel must be debug, info, "     \
	    "notice, warning, error, critical, alert or emergency")                      \
	X(META_TOKEN, -32602, UNCHANGED,                                                 \
	    "Invalid params: _meta.progressToken must be a string or an integer")        \
	X(VERSION, -32602, UNCHANGED,                                                    \
	    "Invalid params: protocolVersion must be a non-empty string")                \
	X(LEVEL, -32602, UNCHANGED,                                                      \
	    "Invalid params: level must be debug, info, notice, warning, error, "        \
	    "critical, alert or emergency")                                              \
	X(URI, -32602, UNCHANGED, "Invalid params: uri must be a string")                \
	X(CURSOR_ONE_PAGE, -32602, UNCHANGED,                                            \
	    "Invalid params: unknown cursor; the list has one page")                     \
	X(CURSOR, -32602, UNCHANGED,                                                     \
	    "Invalid params: cursor must be one that was given out here")                \
	X(LISTEN_FILTER, -32602, UNCHANGED,                                              \
	    "Invalid params: notifications must be an object")                           \
	X(LISTEN_FLAG, -32602, UNCHANGED,                                                \
	    "Invalid params: toolsListChanged, promptsListChanged and "                  \
	    "resourcesListChanged must be booleans")                                     \
	X(LISTEN_URIS, -32602, UNCHANGED,                                                \
	    "Invalid params: resourceSubscriptions must be an array of strings")         \
	X(TASK_ID, -32602, UNCHANGED, "Invalid params: taskId must be a string")         \
	X(TASK_UNKNOWN, -32602, UNCHANGED,                                               \
	    "Invalid params: taskId names no task of this client, or one that is over "  \
	    "and gone")                                                                  \
	X(TASK_REVISION, -32602, NEVER,                                                  \
	    "Invalid params: this tool runs as a task of 2025-11-25 alone, which a "     \
	    "client of another revision cannot ask for")                                 \
	X(ARGUMENTS, -32602, UNCHANGED, "Invalid params: arguments must be an object")   \
	X(ARGUMENTS_TWICE, -32602, UNCHANGED,                                            \
	    "Invalid params: arguments must be given once; they were given twice")       \
	X(ARGUMENT_FIXED, -32602, UNCHANGED,                                             \
	    "Invalid params: argument % is fixed by the operator and not to be given")   \
	X(ARGUMENT_CASE, -32602, UNCHANGED,                                              \
	    "Invalid params: argument % differs only by case from one that is fixed")    \
	X(STATE_OF_LATER, -32602, UNCHANGED,                                             \
	    "Invalid params: requestState and inputResponses are of a later revision")   \
	X(STATE_FOREIGN, -32602, UNCHANGED,                                              \
	    "Invalid params: requestState was not given out here")                       \
	X(STATE_GONE, -32602, SAID,                                                      \
	    "Invalid params: requestState has expired or was used before; send the "     \
	    "request again without it")

/* What HTTP answers with a status of its own. */
#define WORDINGS_OF_HTTP(X)                                                              \
	X(SESSION_HEADER, -32600, UNCHANGED,                                             \
	    "Invalid request: the Mcp-Session-Id header is missing")                     \
	X(SESSION_UNKNOWN, -32600, SAID,                                                 \
	    "Session not found: the Mcp-Session-Id header names none; initialize anew")  \
	X(SESSION_NO_STREAM, -32600, SAID,                                               \
	    "Session not found: the URL names none; open a new stream")                  \
	X(SESSIONS_FULL, -32603, MAY, "Too many sessions are open")                      \
	X(VERSION_HEADER, -32600, UNCHANGED,                                             \
	    "Invalid request: the MCP-Protocol-Version header names no revision that "   \
	    "is spoken here")                                                            \
	X(VERSION_TWICE, -32600, UNCHANGED,                                              \
	    "Invalid request: more than one MCP-Protocol-Version header")                \
	X(EVENT_TWICE, -32600, UNCHANGED,                                                \
	    "Invalid request: more than one Last-Event-ID header")                       \
	X(FORBIDDEN, -32600, NEVER,                                                      \
	    "Forbidden: this Host or Origin may not talk to this endpoint")              \
	X(NOT_ACCEPTABLE, -32600, UNCHANGED,                                             \
	    "Not acceptable: Accept must allow application/json or text/event-stream, "  \
	    "for GET the latter")                                                        \
	X(MEDIA_TYPE, -32600, UNCHANGED,                                                 \
	    "Unsupported media type: Content-Type must be application/json")

/* What upstreams are told that ask their client something. */
#define WORDINGS_OF_QUESTIONS(X)                                                         \
	X(ASK_UNDECLARED, -32601, NEVER,                                                 \
	    "Method not found: this client did not declare the capability")              \
	X(ASK_PROBE, -32601, NEVER, "Method not found: mcpvisor probe answers nothing")  \
	X(ASK_CALLER_UNDECLARED, -32603, NEVER,                                          \
	    "The client that made this call did not declare the capability")             \
	X(ASK_NO_CLIENT, -32603, MAY, "There is no client to ask")                       \
	X(ASK_UNCERTAIN, -32603, MAY,                                                    \
	    "It cannot be told which of several clients this is for")                    \
	X(ASK_OVER, -32603, NEVER, "Nobody waits for this call any more")                \
	X(ASK_NOT_HERE, -32603, NEVER, "Its client cannot be asked for this")            \
	X(ASK_NOBODY_NOW, -32603, MAY, "Nobody can be asked at the moment")              \
	X(ASK_NOT_NOW, -32603, MAY, "The client cannot be asked at the moment")          \
	X(ASK_NO_CALL, -32603, NEVER, "There is no call to ask it for")                  \
	X(ASK_TOO_MANY, -32603, MAY, "The client has too many open questions")           \
	X(ASK_SILENT, -32603, MAY, "The client gave no answer in time")                  \
	X(ASK_NO_STREAM, -32603, MAY, "The client has no stream to be asked on")         \
	X(ASK_CANCELLED, -32603, NEVER, "The client has cancelled the request")          \
	X(ASK_GONE, -32603, NEVER, "The client has gone")

/* Why an upstream's call has failed, behind the words of its error. */
#define WORDINGS_OF_FAILURES(X)                                                          \
	X(WHY_URLS_NONE, 0, PART, "it asks for URL elicitations and names none")         \
	X(WHY_NOT_HERE, 0, PART, "it asks for input where none can be asked for")        \
	X(WHY_NOT_OFFERED, 0, PART, "it asks for input that was not offered to it")      \
	X(WHY_NOTHING, 0, PART, "it asks for input and does not say for which")          \
	X(WHY_AGAIN, 0, PART, "it asks for input again and again")                       \
	X(WHY_REFUSED, 0, PART, "the client refused %")                                  \
	X(WHY_GONE, 0, PART, "it went while the client was asked")                       \
	X(WHY_PARKED_MANY, 0, PART, "too many calls wait for their clients' input")      \
	X(WHY_TASKS_MANY, 0, PART, "too many tasks of this client are open")             \
	X(WHY_MEMORY, 0, PART, "there is no memory for what it asks")

/* Error objects for where there is no memory, or no room, to put one together. */
#define WORDING_ANSWER_LARGE                                                             \
	"{\"code\":-32603,\"message\":\"The answer is over the size limit. Retrying "    \
	"unchanged will fail.\"}"
#define WORDING_NOT_KEPT                                                                 \
	"{\"code\":-32603,\"message\":\"The request was carried out, but its answer "    \
	"was "                                                                           \
	"too large to be kept until its client came back; check what it has done "       \
	"before a retry\",\"data\":{\"reason\":\"not_kept\",\"retryable\":false}}"
#define WORDING_NO_MEMORY                                                                \
	"{\"code\":-32603,\"message\":\"out of memory; a retry may help\",\"data\":{"    \
	"\"reason\":\"no_memory\",\"retryable\":true}}"

#define WORDINGS(X)                                                                      \
	WORDINGS_OF_REQUESTS(X)                                                          \
	WORDINGS_OF_PARAMS(X)                                                            \
	WORDINGS_OF_HTTP(X)                                                              \
	WORDINGS_OF_QUESTIONS(X)                                                         \
	WORDINGS_OF_FAILURES(X)

enum wording {
	WORDING_NONE,
#define X(id, code, retry, text) WORDING_##id,
	WORDINGS(X)
#undef X
	    WORDING_MAX
};

/* Room for the longest sentence of wording_print. */
#define WORDING_BYTES 320

/* Appends {"code","message"} of a row. value is JSON text of a client, or absent. */
void wording_put(struct buf *out, enum wording w, struct jtext value);
/* A string without its quotes, for value. */
static inline struct jtext
wording_inside(struct jtext s)
{
	return s.n >= 2 ? (struct jtext){s.p + 1, s.n - 2} : s;
}
/* The sentence alone, with its end; cut at size. */
void wording_print(char *to, size_t size, enum wording w, struct jtext value);
/* As the table has it, without its end; a detail of failures. */
const char *wording_text(enum wording w);
int wording_code(enum wording w);

#endif
