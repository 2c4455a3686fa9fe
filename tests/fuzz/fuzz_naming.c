/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: published names.
 *
 * The first byte gives the budget, the first line the upstream. A mapped form has only
 * the published characters and one original; a published name keeps its budget, and two
 * forms of a name are the same only if they are told apart by nothing.
 */
#include "mcpvisor/naming.h"

#include "fuzz_rig.h"

static void
check_charset(const struct buf *b)
{
	for (size_t i = 0; i < b->len; i++) {
		char c = b->data[i];

		MCPVISOR_ASSERT((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				(c >= '0' && c <= '9') || c == '_' || c == '-');
	}
}

static void
check_map(struct jtext name)
{
	struct buf mapped, back;

	buf_init(&mapped, SIZE_MAX / 2);
	buf_init(&back, SIZE_MAX / 2);
	naming_map(name.p, name.n, &mapped);
	check_charset(&mapped);
	if (mapped.len > 0)
		naming_unmap(mapped.data, mapped.len, &back);
	MCPVISOR_ASSERT(same_bytes((struct jtext){back.data, back.len}, name));
	/* What nobody mapped has an original as well, and one that comes back to it. */
	buf_reset(&back);
	buf_reset(&mapped);
	naming_unmap(name.p, name.n, &back);
	naming_map(back.data, back.len, &mapped);
	check_charset(&mapped);
	buf_fini(&mapped);
	buf_fini(&back);
}

static void
publish(const struct naming *y, struct jtext name, enum naming_form form, struct buf *out)
{
	static const char before[] = "kept";
	struct buf again;

	buf_init(out, SIZE_MAX / 2);
	naming_publish(y, name.p, name.n, form, out);
	check_charset(out);
	MCPVISOR_ASSERT(out->len <= y->budget);
	/* Behind other bytes it is the same. */
	buf_init(&again, SIZE_MAX / 2);
	buf_add_str(&again, before);
	naming_publish(y, name.p, name.n, form, &again);
	buf_drop(&again, strlen(before));
	MCPVISOR_ASSERT(same_bytes(
	    (struct jtext){again.data, again.len}, (struct jtext){out->data, out->len}));
	buf_fini(&again);
}

static void
check_publish(const char *upstream, const char *prefix, size_t budget, struct jtext name)
{
	const struct naming y = {
	    .upstream = upstream, .prefix = prefix, .budget = budget};
	struct buf full, preferred, qualified, hashed;

	buf_init(&full, SIZE_MAX / 2);
	naming_prefix(upstream, prefix, &full);
	naming_map(name.p, name.n, &full);
	publish(&y, name, NAMING_PREFERRED, &preferred);
	publish(&y, name, NAMING_QUALIFIED, &qualified);
	publish(&y, name, NAMING_HASHED, &hashed);
	/* Within the budget nothing is lost. */
	if (full.len <= budget)
		MCPVISOR_ASSERT(same_bytes((struct jtext){full.data, full.len},
		    (struct jtext){preferred.data, preferred.len}));
	MCPVISOR_ASSERT(hashed.len >= 17);
	buf_fini(&full);
	buf_fini(&preferred);
	buf_fini(&qualified);
	buf_fini(&hashed);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jtext rest, line;
	char *upstream, *text;
	size_t budget;

	if (size == 0)
		return 0;
	budget =
	    NAMING_BUDGET_MIN + data[0] % (NAMING_BUDGET_MAX - NAMING_BUDGET_MIN + 1);
	text = exact_copy(data + 1, size - 1);
	rest = (struct jtext){text, size - 1};
	line = next_line(&rest);
	upstream = mem_xstrndup(line.p, line.n);
	check_map(rest);
	check_publish(upstream, NULL, budget, rest);
	check_publish("u", upstream, budget, rest);
	mem_free(upstream);
	mem_free(text);
	return 0;
}
