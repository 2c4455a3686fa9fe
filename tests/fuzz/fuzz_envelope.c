/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: what kind of message a text is.
 *
 * Told a second time from jansson's tree, for texts that it reads and that repeat no
 * key; whatever is INVALID leaves no method, and an id only if it is a usable one; ids
 * have the same key exactly if they are equal.
 */
#include "mcpvisor/envelope.h"

#include "fuzz_rig.h"

#include <jansson.h>

#undef json_is_true /* jansson's macro of that name */

static enum envelope_kind
kind_of_call(const json_t *v, struct jtext id)
{
	const json_t *params = json_object_get(v, "params");

	if (!json_is_string(json_object_get(v, "method")) ||
	    (params != NULL && !json_is_object(params)))
		return ENVELOPE_INVALID;
	if (json_object_get(v, "id") == NULL)
		return ENVELOPE_NOTIFICATION;
	return json_is_id(id) ? ENVELOPE_REQUEST : ENVELOPE_INVALID;
}

static enum envelope_kind
kind_of_error(const json_t *v, struct jtext id)
{
	const json_t *error = json_object_get(v, "error");

	if (!json_is_integer(json_object_get(error, "code")) ||
	    !json_is_string(json_object_get(error, "message")))
		return ENVELOPE_INVALID;
	return json_object_get(v, "id") == NULL ||
		       json_is_null(json_object_get(v, "id")) || json_is_id(id)
		   ? ENVELOPE_ERROR
		   : ENVELOPE_INVALID;
}

static enum envelope_kind
kind_of(const json_t *v, struct jtext id)
{
	const json_t *version = json_object_get(v, "jsonrpc");
	bool method = json_object_get(v, "method") != NULL;
	bool result = json_object_get(v, "result") != NULL;
	bool error = json_object_get(v, "error") != NULL;

	if (json_is_array(v))
		return ENVELOPE_BATCH;
	if (!json_is_string(version) || json_string_length(version) != 3 ||
	    memcmp(json_string_value(version), "2.0", 3) != 0 ||
	    method + result + error != 1)
		return ENVELOPE_INVALID;
	if (method)
		return kind_of_call(v, id);
	if (error)
		return kind_of_error(v, id);
	return json_is_id(id) && json_is_object(json_object_get(v, "result"))
		   ? ENVELOPE_RESULT
		   : ENVELOPE_INVALID;
}

/* The id as jansson reads it is the one that is spoken of. */
static void
check_id(const json_t *v, struct jtext id)
{
	const json_t *theirs = json_object_get(v, "id");
	struct buf key, want;

	if (!json_is_id(id))
		return;
	buf_init(&key, CAP_ID_BYTES * 4);
	buf_init(&want, CAP_ID_BYTES * 4);
	json_id_key(id, &key);
	if (json_is_string(theirs)) {
		buf_add_char(&want, 's');
		buf_add(&want, json_string_value(theirs), json_string_length(theirs));
	} else {
		MCPVISOR_ASSERT(json_is_integer(theirs));
		buf_addf(&want, "i%lld", (long long)json_integer_value(theirs));
	}
	MCPVISOR_ASSERT(key.err == MV_OK && want.err == MV_OK);
	MCPVISOR_ASSERT(same_bytes(
	    (struct jtext){key.data, key.len}, (struct jtext){want.data, want.len}));
	buf_fini(&key);
	buf_fini(&want);
}

static void
check_shape(const struct envelope *e)
{
	bool is_call = e->kind == ENVELOPE_REQUEST || e->kind == ENVELOPE_NOTIFICATION;

	MCPVISOR_ASSERT((e->kind == ENVELOPE_INVALID) == (e->err != MV_OK));
	MCPVISOR_ASSERT((jtext_type(e->method) == '"') == is_call);
	MCPVISOR_ASSERT(e->id.n == 0 || json_is_id(e->id));
	if (e->kind == ENVELOPE_REQUEST || e->kind == ENVELOPE_RESULT)
		MCPVISOR_ASSERT(e->id.n > 0);
	if (e->kind == ENVELOPE_NOTIFICATION || e->kind == ENVELOPE_BATCH)
		MCPVISOR_ASSERT(e->id.n == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES;
	char *text = exact_copy(data, size);
	struct json_msg msg;
	struct envelope e;
	json_t *v = NULL;

	if (json_scan(&msg, text, size, false) == MV_OK) {
		e = envelope_read(text, &msg);
		check_shape(&e);
		v = json_loadb(text, size, flags, NULL);
		if (msg.duplicate && msg.kind == JSON_K_OBJECT) {
			MCPVISOR_ASSERT(e.err == MV_DUPLICATE);
		} else if (v != NULL) {
			struct jtext id = jtext_of(text, msg.slot[JSON_ID]);

			MCPVISOR_ASSERT((id.n > 0) == (json_object_get(v, "id") != NULL));
			MCPVISOR_ASSERT(e.kind == kind_of(v, id));
			check_id(v, id);
		}
	}
	json_decref(v);
	mem_free(text);
	return 0;
}
