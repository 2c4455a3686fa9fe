/* SPDX-License-Identifier: MIT */
/* Process-wide counters. One row here is a counter, its name and its doc. */
#ifndef MCPVISOR_METRICS_H
#define MCPVISOR_METRICS_H

#include <stdint.h>

/* X(ID, name, help) */
#define METRICS_TABLE(X)                                                                 \
	X(CALLS, "calls_total", "calls taken from clients")                              \
	X(CALLS_RETURNED, "calls_returned_total", "calls that an upstream answered")     \
	X(CALLS_FAILED, "calls_failed_total", "calls that ended without an answer")      \
	X(CALLS_TOOL_ERROR, "calls_tool_error_total", "results with isError true")       \
	X(CALLS_CANCELLED, "calls_cancelled_total", "calls that their client cancelled") \
	X(CALLS_TIMEOUT, "calls_timeout_total", "calls without an answer in time")       \
	X(CALLS_DIED, "calls_died_total", "calls whose upstream ended")                  \
	X(CALLS_BUSY, "calls_busy_total", "calls refused for a full queue")              \
	X(CALLS_REFUSED, "calls_refused_total", "calls refused before any upstream")     \
	X(CALLS_PARTIAL, "calls_partial_total", "results whose answer was partial")      \
	X(CALLS_SUSPECT, "calls_suspect_total",                                          \
	    "results that look like a failed GraphQL answer, and were left alone")       \
	X(CALLS_NULL_IDENTITY, "calls_null_identity_total",                              \
	    "results that say nobody is who the upstream acts for")                      \
	X(RESULTS_FLIPPED, "results_flipped_total", "results that became isError true")  \
	X(RESULTS_ADDED_BYTES, "results_added_bytes_total", "bytes of labels")           \
	X(IDENTITY_HITS, "identity_hits_total",                                          \
	    "calls answered from the identity cache")                                    \
	X(QUESTIONS, "questions_total", "requests of upstreams to their clients")        \
	X(QUESTIONS_REFUSED, "questions_refused_total", "of those: that no client got")  \
	X(REPLIES_LATE, "replies_late_total", "late, double or unknown answers dropped") \
	X(REPLIES_LOST, "replies_lost_total",                                            \
	    "answers that their client never came for")                                  \
	X(NOTICES_DROPPED, "notices_dropped_total", "notices without a certain owner")   \
	X(NOISE_LINES, "noise_lines_total", "upstream output that was not JSON-RPC")     \
	X(STDERR_LINES, "stderr_lines_total", "lines read from stderr of children")      \
	X(LOG_SUPPRESSED, "log_suppressed_total", "log lines dropped by a rate limit")   \
	X(LOG_LOST, "log_lost_total", "log lines lost to a full stderr")                 \
	X(CHILD_SPAWNS, "child_spawns_total", "processes started")                       \
	X(CHILD_DEATHS, "child_deaths_total", "processes that ended unasked")            \
	X(CHILD_STRAYS, "child_strays_total", "processes that outlived their child")     \
	X(RELOADS, "reloads_total", "reloads that were carried out")                     \
	X(RELOADS_REFUSED, "reloads_refused_total", "reloads refused for their conf")    \
	X(MEMORY_SHORT, "memory_short_total", "times that the memory budget was passed") \
	X(SOURCES_PAUSED, "sources_paused_total",                                        \
	    "times that a source had to wait for memory")                                \
	X(SLOW_TURNS, "slow_turns_total", "loop callbacks over 50 ms")

enum metric {
#define X(id, name, help) METRIC_##id,
	METRICS_TABLE(X)
#undef X
	    METRIC_MAX
};

void metrics_add(enum metric m, uint64_t n);
uint64_t metrics_get(enum metric m);
const char *metrics_name(enum metric m); /* "mcpvisor_" + name */
const char *metrics_help(enum metric m);

#endif
