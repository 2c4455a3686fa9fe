/* SPDX-License-Identifier: MIT */
/* The owner of an HTTP link under test: what comes is written down, one word each. */
#ifndef HTTP_LINK_OWNER_H
#define HTTP_LINK_OWNER_H

#include "http_script_rig.h"

#include "mcpvisor/http_link.h"

#include "mcpvisor/buf.h"
#include "mcpvisor/loop.h"

#include <string.h>

#include <check.h>

static struct http_link *k;
static struct buf seen;	     /* what came */
static struct buf fail_text; /* of the last failure */
static int free_at;	     /* the link ends in its nth callback */
static int calls;
static bool has_headers;
static unsigned n_streams; /* that were told of */

static inline void
count_call(void)
{
	buf_add_char(&seen, ' ');
	loop_stop(l, 0);
	if (++calls != free_at)
		return;
	http_link_free(k);
	k = NULL;
}

static inline void
on_message(void *arg, uint64_t by, const struct link_msg *m)
{
	static const char kinds[] = "qnrebi";

	ck_assert_ptr_eq(arg, &seen);
	ck_assert_ptr_null(memchr(m->base, '\n', m->len));
	ck_assert_ptr_null(memchr(m->base, '\r', m->len));
	buf_addf(&seen, "%llu:%c", (unsigned long long)by, kinds[m->env.kind]);
	buf_add(&seen, m->env.id.p, m->env.id.n);
	count_call();
}

static inline void
on_bad(void *arg, uint64_t by, enum mv_err err, struct jtext id, bool is_reply,
    const char *line, size_t len)
{
	ck_assert_ptr_eq(arg, &seen);
	ck_assert(len == 0 || line[0] != '\0');
	buf_addf(&seen, "%llu:%s%s", (unsigned long long)by, mv_err_reason(err),
	    is_reply ? "/reply" : "");
	buf_add_str(&seen, id.n ? "=" : "");
	buf_add(&seen, id.p, id.n);
	count_call();
}

static inline void
put_failure(const struct http_failure *f)
{
	buf_addf(&seen, "(%s,%d", mv_err_reason(f->err), f->status);
	if (f->www_authenticate)
		buf_addf(&seen, ",%s", f->www_authenticate);
	if (f->retry_after_s)
		buf_addf(&seen, ",after=%u", f->retry_after_s);
	buf_add_str(&seen, ")");
	ck_assert(*f->text != '\0');
	buf_reset(&fail_text);
	buf_add_str(&fail_text, f->text);
}

static inline void
on_failed(void *arg, uint64_t id, const struct http_failure *f)
{
	ck_assert_ptr_eq(arg, &seen);
	buf_addf(&seen, "%llu:failed", (unsigned long long)id);
	put_failure(f);
	count_call();
}

static inline void
on_note_failed(void *arg, const struct http_failure *f)
{
	ck_assert_ptr_eq(arg, &seen);
	buf_add_str(&seen, "note-failed");
	put_failure(f);
	count_call();
}

static inline void
on_note_taken(void *arg)
{
	ck_assert_ptr_eq(arg, &seen);
	buf_add_str(&seen, "taken");
	count_call();
}

static inline void
on_session_lost(void *arg)
{
	ck_assert_ptr_eq(arg, &seen);
	buf_add_str(&seen, "lost");
	count_call();
}

static inline void
on_endpoint(void *arg, const struct http_failure *f)
{
	ck_assert_ptr_eq(arg, &seen);
	buf_add_str(&seen, "endpoint");
	if (f)
		put_failure(f);
	count_call();
}

static inline bool
put_headers(void *arg, struct buf *out)
{
	static const char lines[] = "X-Own: 1\0Authorization: Bearer secret";

	ck_assert_ptr_eq(arg, &seen);
	if (has_headers)
		buf_add(out, lines, sizeof(lines));
	return has_headers;
}

static inline void
on_stream(void *arg)
{
	ck_assert_ptr_eq(arg, &seen);
	n_streams++;
}

static const struct http_link_cb link_cb = {on_message, on_bad, on_failed, on_note_failed,
    on_note_taken, on_session_lost, on_endpoint, put_headers, on_stream};

static inline void
on_done(void *arg)
{
	ck_assert_ptr_eq(arg, &seen);
	buf_add_str(&seen, "done");
	count_call();
}

#endif
