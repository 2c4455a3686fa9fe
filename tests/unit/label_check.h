/* SPDX-License-Identifier: MIT */
/*
 * What holds for any result that is labelled: bytes are inserted only, but for the one
 * isError; it is JSON afterwards, within its strings too; who has been told of an error
 * stays told; and a second pass, whatever its options, changes nothing.
 */
#ifndef LABEL_CHECK_H
#define LABEL_CHECK_H

#include "mcpvisor/label.h"

#include "mcpvisor/caps.h"

#include <string.h>
#include <sys/uio.h>

#define LABEL_CHECK_HEAD "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"

/* The message that holds a result. */
static inline void
label_check_wrap(struct buf *message, const char *result, size_t n)
{
	buf_reset(message);
	buf_add_str(message, LABEL_CHECK_HEAD);
	buf_add(message, result, n);
	buf_add_char(message, '}');
	MCPVISOR_ASSERT(message->err == MV_OK);
}

static inline void
label_check_apply(struct buf *after, const char *base, const struct json_msg *json,
    const struct label *l)
{
	struct iovec iov[2 * JSON_EDITS_MAX + 1];
	int n = json_edit_pieces(base, json->slot[JSON_RESULT], &l->edits, iov);

	buf_reset(after);
	for (int i = 0; i < n; i++)
		buf_add(after, iov[i].iov_base, iov[i].iov_len);
	MCPVISOR_ASSERT(after->err == MV_OK);
}

static inline bool
label_check_is_json(struct jtext literal)
{
	struct json_msg json;
	struct buf b;
	bool is;

	if (jtext_type(literal) != '"')
		return false;
	buf_init(&b, literal.n);
	MCPVISOR_ASSERT(json_string_decode(literal, &b) && b.err == MV_OK);
	is = b.len > 0 && json_scan(&json, b.data, b.len, false) == MV_OK;
	buf_fini(&b);
	return is;
}

/* A text that was JSON is JSON. */
static inline void
label_check_texts(struct jtext before, struct jtext after)
{
	struct json_iter old, new;
	struct jtext a, b;

	json_iter_init(&old, json_member(before, "content"));
	json_iter_init(&new, json_member(after, "content"));
	if (jtext_type(json_member(before, "content")) != '[')
		return;
	while (json_next_element(&old, &a)) {
		MCPVISOR_ASSERT(json_next_element(&new, &b));
		if (label_check_is_json(json_member(a, "text")))
			MCPVISOR_ASSERT(label_check_is_json(json_member(b, "text")));
	}
	a = json_member(json_member(before, "structuredContent"), "result");
	b = json_member(json_member(after, "structuredContent"), "result");
	MCPVISOR_ASSERT(!label_check_is_json(a) || label_check_is_json(b));
}

static inline void
label_check_edits(const struct label *l, const char *base, const struct json_msg *json)
{
	struct json_span result = json->slot[JSON_RESULT],
			 flag = json->slot[JSON_IS_ERROR];
	uint32_t at = result.off;
	bool is_edit = l->reason == LABEL_PARTIAL || l->reason == LABEL_ERROR ||
		       l->reason == LABEL_RULE;

	MCPVISOR_ASSERT(is_edit || l->edits.n == 0);
	MCPVISOR_ASSERT(l->edits.n <= CAP_RESULT_CANDIDATES + 3);
	MCPVISOR_ASSERT(!json_is_true(jtext_of(base, flag)) || l->edits.n == 0);
	for (unsigned i = 0; i < l->edits.n; i++) {
		const struct json_edit *e = &l->edits.e[i];

		MCPVISOR_ASSERT(e->off >= at && e->off < result.off + result.len);
		MCPVISOR_ASSERT(e->put_len > 0);
		at = e->off + e->len;
		if (e->len == 0)
			continue;
		MCPVISOR_ASSERT(e->off == flag.off && e->len == flag.len);
		MCPVISOR_ASSERT(base[e->off] == 'f' || base[e->off] == 'n');
		MCPVISOR_ASSERT(e->put_len == 4 && memcmp(e->put, "true", 4) == 0);
	}
}

/* Labels a result; after is what it has become. False: it is no result. */
static inline bool
label_check_once(struct label *l, const struct label_opts *o, const char *result,
    size_t n, struct buf *after)
{
	struct json_msg json, again;
	struct buf message, next;
	bool is_result;

	buf_init(&message, CAP_MESSAGE_BYTES);
	buf_init(&next, CAP_MESSAGE_BYTES);
	label_check_wrap(&message, result, n);
	is_result = json_scan(&json, message.data, message.len, false) == MV_OK &&
		    !json.duplicate && json.slot[JSON_RESULT].len > 0;
	if (is_result) {
		struct jtext before = jtext_of(message.data, json.slot[JSON_RESULT]);

		label_result(l, o, message.data, &json);
		label_check_edits(l, message.data, &json);
		label_check_apply(after, message.data, &json, l);
		label_check_wrap(&next, after->data, after->len);
		MCPVISOR_ASSERT(json_scan(&again, next.data, next.len, false) == MV_OK);
		label_check_texts(before, (struct jtext){after->data, after->len});
		MCPVISOR_ASSERT(json.kind != JSON_K_OBJECT || before.p[0] != '{' ||
				l->reason == LABEL_MALFORMED ||
				l->is_error == json_is_true(jtext_of(next.data,
						   again.slot[JSON_IS_ERROR])));
	}
	buf_fini(&next);
	buf_fini(&message);
	return is_result;
}

/* The same by each of the options; what one of them has changed none changes again. */
static inline void
label_check_all(const struct label_opts *o, size_t n_opts, const char *result, size_t n)
{
	struct label first, second;
	struct buf once, twice;

	label_init(&first);
	label_init(&second);
	buf_init(&once, CAP_MESSAGE_BYTES);
	buf_init(&twice, CAP_MESSAGE_BYTES);
	for (size_t i = 0; i < n_opts; i++) {
		if (!label_check_once(&first, &o[i], result, n, &once))
			break;
		for (size_t k = 0; k < n_opts && first.edits.n > 0; k++) {
			MCPVISOR_ASSERT(label_check_once(
			    &second, &o[k], once.data, once.len, &twice));
			MCPVISOR_ASSERT(second.edits.n == 0);
		}
	}
	buf_fini(&twice);
	buf_fini(&once);
	label_fini(&second);
	label_fini(&first);
}

#endif
