/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: schemas of tools, and arguments against them.
 *
 * Two lines: a schema and an object. A schema that is refused is refused with a message;
 * one that is read is shown as one line of JSON, which is read and shown again as the
 * same bytes. Arguments pass or are refused with one bounded line, and do so whether or
 * not somebody wants the words, however they are spaced, and by both readings.
 */
#include "mcpvisor/argspec.h"

#include "fuzz_rig.h"

/* Names of all levels, and as many values and names as are listed. */
#define WHY_BYTES 8192

static struct argspec *
read_again(const struct argspec *s)
{
	struct mv_errtext t = {.line = 0};
	struct buf first, second;
	struct argspec *again;

	buf_init(&first, SIZE_MAX / 2);
	buf_init(&second, SIZE_MAX / 2);
	argspec_put_schema(s, &first);
	MCPVISOR_ASSERT(first.err == MV_OK);
	MCPVISOR_ASSERT(is_json((struct jtext){first.data, first.len}, JSON_K_OBJECT));
	MCPVISOR_ASSERT(memchr(first.data, '\n', first.len) == NULL);
	again = argspec_read((struct jtext){first.data, first.len}, &t);
	MCPVISOR_ASSERT(again != NULL);
	argspec_put_schema(again, &second);
	MCPVISOR_ASSERT(same_bytes((struct jtext){first.data, first.len},
	    (struct jtext){second.data, second.len}));
	buf_fini(&first);
	buf_fini(&second);
	return again;
}

static bool
check(const struct argspec *s, struct jtext arguments)
{
	struct buf why;
	bool ok;

	buf_init(&why, WHY_BYTES);
	ok = argspec_check(s, arguments, &why);
	MCPVISOR_ASSERT(why.err == MV_OK && ok == (why.len == 0));
	for (size_t i = 0; i < why.len; i++)
		MCPVISOR_ASSERT((unsigned char)why.data[i] >= 0x20);
	MCPVISOR_ASSERT(argspec_check(s, arguments, NULL) == ok);
	buf_fini(&why);
	return ok;
}

static void
check_spaced(const struct argspec *s, struct jtext arguments, bool ok)
{
	struct buf compact;

	buf_init(&compact, arguments.n);
	json_put_compact(&compact, arguments);
	MCPVISOR_ASSERT(
	    is_json((struct jtext){compact.data, compact.len}, JSON_K_OBJECT));
	MCPVISOR_ASSERT(check(s, (struct jtext){compact.data, compact.len}) == ok);
	buf_fini(&compact);
}

/* What passes as an integer can be written. */
static void
try_integer(struct jtext value)
{
	struct buf digits;
	int64_t plain;

	buf_init(&digits, ARGSPEC_INTEGER_DIGITS + 1);
	if (argspec_put_integer(value, &digits))
		MCPVISOR_ASSERT(digits.err == MV_OK && digits.len > 0);
	else
		MCPVISOR_ASSERT(digits.len == 0 && !json_int(value, &plain));
	buf_fini(&digits);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = exact_copy(data, size);
	struct jtext rest = {text, size}, schema = next_line(&rest), value, key;
	struct jtext arguments = next_line(&rest);
	struct mv_errtext t = {.line = 0};
	struct argspec *s = argspec_read(schema, &t), *again;
	struct json_iter it;

	MCPVISOR_ASSERT(s != NULL || t.message[0] != '\0');
	if (s != NULL && is_json(arguments, JSON_K_OBJECT) && arguments.p[0] == '{' &&
	    arguments.p[arguments.n - 1] == '}') {
		bool ok = check(s, arguments);

		again = read_again(s);
		MCPVISOR_ASSERT(check(again, arguments) == ok);
		check_spaced(s, arguments, ok);
		json_iter_init(&it, arguments);
		while (json_next_member(&it, &key, &value))
			try_integer(value);
		argspec_free(again);
	} else if (s != NULL) {
		argspec_free(read_again(s));
	}
	argspec_free(s);
	mem_free(text);
	return 0;
}
