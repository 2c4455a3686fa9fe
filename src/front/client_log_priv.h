/* SPDX-License-Identifier: MIT */
/* What is noted of the end of a call. */
#ifndef MCPVISOR_CLIENT_LOG_PRIV_H
#define MCPVISOR_CLIENT_LOG_PRIV_H

#include "client_priv.h"

/* X(ENDING, name): what became of a call on its way, whatever it says. ERROR: it was
 * answered by an error, ours or the upstream's. */
#define CALL_ENDINGS(X)                                                                  \
	X(ERROR, "error")                                                                \
	X(RETURNED, "returned")                                                          \
	X(TIMEOUT, "timeout")                                                            \
	X(CANCELLED, "cancelled")                                                        \
	X(DIED, "died")                                                                  \
	X(BUSY, "busy")
enum call_ending {
#define X(id, name) CALL_END_##id,
	CALL_ENDINGS(X)
#undef X
};
struct call_end {
	enum call_ending ending;
	enum mv_err err; /* why there is no answer of an upstream; MV_OK: there is */
	int64_t code;	 /* of the upstream's error; 0: it gave a result */
	bool is_err;	 /* its result has isError true */
	enum outcome_answer answer;
	const struct label *label; /* of its result; NULL: it was not looked at */
	size_t out;   /* bytes of the value of result or error as it is sent */
	size_t added; /* of them: that were put into the upstream's */
};
/* m is about to be forwarded. */
void call_log_begin(struct request *r, const struct link_msg *m);
/* That is over: counted, and a line of the log. Does nothing the second time. name is
 * what r asks for as its client wrote it, used if nothing better is known; may be
 * absent. */
void call_log_end(struct request *r, const struct call_end *e, struct jtext name);
/* The same without an answer of an upstream. out is as in call_end. */
void call_log_failed(struct request *r, enum mv_err err, struct jtext name, size_t out);
/* Takes the name out of an Implementation object (may be absent). */
void log_client_set(struct log_client *lc, struct jtext info);

#endif
