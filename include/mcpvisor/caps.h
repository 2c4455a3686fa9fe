/* SPDX-License-Identifier: MIT */
/*
 * Named bounds on everything a peer can make grow.
 *
 * Each value is the default of an option or a fixed limit; each has a test
 * that reaches it. Bytes unless the name says otherwise.
 */
#ifndef MCPVISOR_CAPS_H
#define MCPVISOR_CAPS_H

/* One JSON-RPC message, either direction. */
#define CAP_MESSAGE_BYTES (64u * 1024 * 1024)
/* Nesting of arrays and objects in one message. */
#define CAP_JSON_DEPTH 1000
/* Questions of an upstream to its client that are open at a time. */
#define CAP_UPSTREAM_QUESTIONS 256
/* Requests of ours to one client that it has not answered. */
#define CAP_CLIENT_ASKS 256
/* Calls of one client, or of all without a session, that wait for its input. */
#define CAP_PARKED_CALLS 1024
/* Clients that were sent to a URL and have not heard that it is done. */
#define CAP_ELICITATIONS 1024
/* Tasks that are known, in all and of one client; an upstream's id of one, as written. */
#define CAP_TASKS	  4096
#define CAP_CLIENT_TASKS  1024
#define CAP_TASK_ID_BYTES 1024
/* Output waiting for one slow reader; never below CAP_MESSAGE_BYTES. */
#define CAP_OUT_BYTES (96u * 1024 * 1024)
/* Calls of one upstream that wait or run. */
#define CAP_UPSTREAM_CALLS 4096
/* Bytes of calls held for an upstream that is still starting. */
#define CAP_UPSTREAM_HELD_BYTES (96u * 1024 * 1024)
/* Bytes of calls that wait for the lists of upstreams that are starting. */
#define CAP_WAITING_BYTES (96u * 1024 * 1024)
/* Calls of one client in flight. */
#define CAP_CLIENT_CALLS 8192
/* A client's JSON-RPC id or progress token, as written. */
#define CAP_ID_BYTES 1024
/* What a client says of itself at initialize, kept for its session. */
#define CAP_CLIENT_INFO_BYTES (64u * 1024)
/* Requests in one batch (2025-03-26). */
#define CAP_BATCH_ITEMS 1024
/* Notifications and answers of ours that one server over HTTP has not taken yet. */
#define CAP_HTTP_NOTES 256
/* Head of an upstream's answer over HTTP. */
#define CAP_ANSWER_HEAD_BYTES (256u * 1024)
/* Pages, items and bytes of one upstream's list. */
#define CAP_LIST_PAGES 1000
#define CAP_LIST_ITEMS 100000
#define CAP_LIST_BYTES (64u * 1024 * 1024)
/* Instructions merged from one upstream. */
#define CAP_INSTRUCTIONS_BYTES (16u * 1024)
/* Published name of a tool or prompt. */
#define CAP_NAME_BYTES 48
/* Names and URIs of one list that no upstream offers any more, kept for whoever had them.
 */
#define CAP_STALE_NAMES 4096
/* A URI or an upstream's tool name that we route by. */
#define CAP_URI_BYTES (8u * 1024)
/* URIs remembered from results, per gateway. */
#define CAP_RECENT_URIS 4096
/* URIs taken from one result. */
#define CAP_RESULT_URIS 64
/* Pieces of one result that may be a GraphQL answer; bytes of a result that is walked to
 * see what it says, and of the definition of a tool that is asked about it. */
#define CAP_RESULT_CANDIDATES	  32
#define CAP_RESULT_WALK_BYTES	  (3u * 1024 * 1024)
#define CAP_DEFINITION_WALK_BYTES (256u * 1024)
/* The same of a result that a sample is made of. */
#define CAP_SAMPLED_BYTES (6u * 1024 * 1024)
/* Arguments of a call that we check ourselves. */
#define CAP_ARGUMENTS_BYTES (4u * 1024 * 1024)
/* Answers to who a client is that are kept, in number, in bytes, and the bytes of what
 * was asked; and clients of upstreams of which it is known whether they are somebody. */
#define CAP_IDENTITY_ENTRIES   1024
#define CAP_IDENTITY_BYTES     (16u * 1024 * 1024)
#define CAP_IDENTITY_KEY_BYTES (4u * 1024)
#define CAP_IDENTITY_STATES    4096
/* Resource subscriptions of one client, and listens of one client. */
#define CAP_CLIENT_SUBSCRIPTIONS 4096
#define CAP_CLIENT_LISTENS	 256
/* Header lines of one message to a remote upstream that mirror its body. */
#define CAP_HEADER_LINES_BYTES (128u * 1024)
/* One logged line of a child's stderr or stdout noise. */
#define CAP_LOG_VALUE_BYTES 1024
/* Instances that belong to one client alone, in all. */
#define CAP_INSTANCES 256
/* Upstreams in one file. */
#define CAP_UPSTREAMS 1000
/* Profiles in one conf; one view more is for endpoints that name none. */
#define CAP_PROFILES 31
/* A conf file, and one line of the control socket either way. */
#define CAP_CONF_BYTES	  (4u * 1024 * 1024)
#define CAP_CONTROL_BYTES (16u * 1024 * 1024)
/* What is kept on disk of one upstream. */
#define CAP_MEMORY_BYTES (64u * 1024 * 1024)
/* An imported file. */
#define CAP_IMPORT_BYTES (4u * 1024 * 1024)

#endif
