/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: what an upstream takes from disk.
 *
 * Bytes that are refused change nothing, of a new upstream nor of one that knew
 * something; what is taken is put, and what is put is taken and put again the same; no
 * definition has a line break. If the input begins with '#', the lines from the third on
 * get the length that belongs before them: else hardly any definition would be found.
 */
#include "fake/fake_upstream_owner.h"

#include "fuzz_rig.h"

#define KNOWN                                                                            \
	"{\"mcpvisor_memory\":1,\"era\":\"legacy\",\"revision\":\"2025-06-18\","         \
	"\"capabilities\":[\"tools\"],\"lists\":{\"tools\":{\"count\":1,\"private\":"    \
	"true},\"prompts\":null,\"resources\":null,\"resourceTemplates\":null}}\n"       \
	"\"x\"\n12 {\"name\":\"a\"}\n"

static struct buf
memory_of(const struct uowner *o)
{
	struct buf b;

	buf_init(&b, SIZE_MAX / 2);
	upstream_put_memory(o->u, &b);
	MCPVISOR_ASSERT(b.err == MV_OK);
	return b;
}

static bool
is_memory(const struct uowner *o, struct jtext text)
{
	struct buf b = memory_of(o);
	bool is = same_bytes((struct jtext){b.data, b.len}, text);

	buf_fini(&b);
	return is;
}

static void
check_lists(const struct uowner *o)
{
	for (unsigned k = 0; k < LIST_MAX; k++) {
		const struct ulist *l = upstream_list(o->u, (enum list_kind)k);

		for (uint32_t i = 0; i < l->n; i++) {
			struct jtext def = ulist_def(l, i);

			MCPVISOR_ASSERT(is_json(def, JSON_K_OBJECT));
			MCPVISOR_ASSERT(memchr(def.p, '\n', def.n) == NULL &&
					memchr(def.p, '\r', def.n) == NULL);
			MCPVISOR_ASSERT(is_json(ulist_name(l, i), JSON_K_STRING));
		}
	}
}

static void
check_taken(const struct uowner *o)
{
	struct uowner *second = uowner_new(ERA_AUTO);
	struct buf text = memory_of(o);

	check_lists(o);
	MCPVISOR_ASSERT(text.len > 0);
	MCPVISOR_ASSERT(upstream_take_memory(second->u, text.data, text.len) == MV_OK);
	MCPVISOR_ASSERT(is_memory(second, (struct jtext){text.data, text.len}));
	MCPVISOR_ASSERT(second->settled == o->settled);
	uowner_free(second);
	buf_fini(&text);
}

static void
check_new(struct jtext text)
{
	struct uowner *o = uowner_new(ERA_AUTO);
	enum mv_err err = upstream_take_memory(o->u, text.p, text.n);

	if (err == MV_OK) {
		check_taken(o);
	} else {
		MCPVISOR_ASSERT(err == MV_PROTOCOL && o->settled == 0);
		MCPVISOR_ASSERT(is_memory(o, (struct jtext){NULL, 0}));
	}
	uowner_free(o);
}

static void
check_one_that_knows(struct jtext text)
{
	struct uowner *o = uowner_new(ERA_AUTO);

	MCPVISOR_ASSERT(upstream_take_memory(o->u, KNOWN, strlen(KNOWN)) == MV_OK);
	if (upstream_take_memory(o->u, text.p, text.n) == MV_OK)
		check_taken(o);
	else
		MCPVISOR_ASSERT(is_memory(o, (struct jtext){KNOWN, strlen(KNOWN)}));
	uowner_free(o);
}

/* With lengths, if the input asks for them. */
static void
build(struct jtext in, struct buf *out)
{
	bool counted = in.n > 0 && in.p[0] == '#';

	in.p += counted;
	in.n -= counted;
	if (!counted) {
		buf_add(out, in.p, in.n);
		return;
	}
	for (unsigned i = 0; in.n > 0; i++) {
		struct jtext line = next_line(&in);

		if (i >= 2)
			buf_addf(out, "%zu ", line.n);
		json_put(out, line);
		buf_add_char(out, '\n');
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf text;
	struct jtext exact;
	char *copy;

	buf_init(&text, SIZE_MAX / 2);
	build((struct jtext){(const char *)data, size}, &text);
	copy = exact_copy(text.data, text.len);
	exact = (struct jtext){copy, text.len};
	check_new(exact);
	check_one_that_knows(exact);
	mem_free(copy);
	buf_fini(&text);
	return 0;
}
