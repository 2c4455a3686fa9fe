/* SPDX-License-Identifier: MIT */
/*
 * The meaning of each error, to an operator and to a client.
 *
 * Owns: nothing; the table is constant.
 * Driven by: every layer.
 * Invariants: one row per error; no other place maps an error to a code or a text.
 */
#include "mcpvisor/err.h"

#include "mcpvisor/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct err_row {
	const char *reason;
	const char *text;
	int rpc_code;
	bool retryable;
};

static const struct err_row err_rows[MV_ERR_MAX] = {
#define X(name, token, code, retry, words)                                               \
	[MV_##name] = {.reason = (token),                                                \
	    .text = (words),                                                             \
	    .rpc_code = (code),                                                          \
	    .retryable = (retry)},
    MV_ERR_TABLE(X)
#undef X
};

static const struct err_row *
err_row_of(enum mv_err err)
{
	unsigned i = (unsigned)err;

	return &err_rows[i < MV_ERR_MAX ? i : (unsigned)MV_SYSTEM];
}

const char *
mv_err_text(enum mv_err err)
{
	return err_row_of(err)->text;
}

const char *
mv_err_reason(enum mv_err err)
{
	return err_row_of(err)->reason;
}

int
mv_err_rpc_code(enum mv_err err)
{
	return err_row_of(err)->rpc_code;
}

bool
mv_err_retryable(enum mv_err err)
{
	return err_row_of(err)->retryable;
}

void
mv_errtext_set(struct mv_errtext *t, const char *fmt, ...)
{
	va_list ap;

	if (t == NULL)
		return;
	va_start(ap, fmt);
	if (vsnprintf(t->message, sizeof(t->message), fmt, ap) < 0)
		t->message[0] = '\0';
	va_end(ap);
}

void
mv_assert_failed(const char *cond, const char *file, int line)
{
	LOG_ERROR("assert", "failed", "cond=%s file=%s line=%d",
	    LOG_ESC(cond, strlen(cond)), file, line);
	abort();
}
