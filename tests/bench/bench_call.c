/* SPDX-License-Identifier: MIT */
/*
 * Requests and the check of their answers, over whatever transport.
 *
 * Owns: the names and beginnings of the calls that a list has shown.
 * Driven by: bench_load, bench_http.
 * Invariants: each call carries its id in its text as well, so that an answer to another
 * one cannot pass.
 */
#include "bench_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGET_MAX 65536
#define META                                                                             \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" CALL_MODERN "\","    \
	"\"io.modelcontextprotocol/clientCapabilities\":{},"                             \
	"\"io.modelcontextprotocol/clientInfo\":{\"name\":\"bench_load\",\"version\":"   \
	"\"1\"}}"

void
call_put_request(const struct calls *c, struct buf *out, unsigned long long id,
    const char *method, const char *members)
{
	buf_add_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add_u64(out, id);
	buf_addf(out, ",\"method\":\"%s\",\"params\":{%s%s%s}}", method,
	    c->modern ? META : "", c->modern && members[0] ? "," : "", members);
}

void
call_put_initialize(const struct calls *c, struct buf *out, unsigned long long id)
{
	call_put_request(c, out, id, "initialize",
	    "\"protocolVersion\":\"" CALL_LEGACY "\",\"capabilities\":{},\"clientInfo\":"
	    "{\"name\":\"bench_load\",\"version\":\"1\"}");
}

static bool
ends_in(struct piece name, const char *word)
{
	size_t n = strlen(word);

	return name.n == n ? memcmp(name.p, word, n) == 0
			   : name.n > n && name.p[name.n - n - 1] == '_' &&
				 memcmp(name.p + name.n - n, word, n) == 0;
}

static void
on_tool(void *arg, struct piece tool)
{
	struct calls *c = arg;
	struct piece name = bench_string(bench_member(tool, "name"));
	struct call_target *t;
	struct buf *b;

	c->n_tools++;
	if (!ends_in(name, c->blob ? "blob" : "echo") || c->n_targets >= CALL_TARGETS_MAX)
		return;
	t = &c->targets[c->n_targets++];
	buf_init(&t->name, TARGET_MAX);
	buf_add(&t->name, name.p, name.n);
	b = &t->text;
	buf_init(b, TARGET_MAX);
	buf_add_str(b, ",\"method\":\"tools/call\",\"params\":{");
	buf_add_str(b, c->modern ? META ",\"name\":\"" : "\"name\":\"");
	buf_add(b, name.p, name.n);
	buf_add_str(b, "\",\"arguments\":{");
	if (c->blob)
		buf_addf(b, "\"bytes\":%u,", c->blob);
	buf_add_str(b, c->blob ? "\"head\":\"" : "\"text\":\"");
}

bool
call_take_list(struct calls *c, struct piece result, struct piece *cursor)
{
	static const char *const keys[] = {"tools", "nextCursor"};
	struct piece v[2];

	if (!bench_members(result, keys, v, 2) || !bench_elements(v[0], on_tool, c))
		return false;
	*cursor = v[1];
	return true;
}

void
call_forget(struct calls *c)
{
	for (unsigned i = 0; i < c->n_targets; i++) {
		buf_fini(&c->targets[i].name);
		buf_fini(&c->targets[i].text);
	}
	c->n_tools = c->n_targets = 0;
}

const struct call_target *
call_target_of(const struct calls *c, unsigned long long id)
{
	return &c->targets[id % c->n_targets];
}

void
call_put(const struct calls *c, struct buf *out, unsigned long long id)
{
	static char fill[1024];
	const struct buf *t = &call_target_of(c, id)->text;
	size_t start;

	memset(fill, 'x', sizeof(fill));
	buf_add_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add_u64(out, id);
	buf_add(out, t->data, t->len);
	start = out->len;
	buf_add_u64(out, id);
	buf_add_char(out, ' ');
	while (c->blob == 0 && out->len - start < c->bytes) {
		size_t lacks = c->bytes - (out->len - start);

		buf_add(out, fill, lacks < sizeof(fill) ? lacks : sizeof(fill));
	}
	buf_add_str(out, "\"}}}");
}

static void
keep_first(void *arg, struct piece element)
{
	struct piece *first = arg;

	if (first->n == 0)
		*first = element;
}

static bool
text_is_right(const struct calls *c, unsigned long long id, struct piece text)
{
	char head[32];
	size_t n = (size_t)snprintf(head, sizeof(head), "%llu ", id);
	size_t want = c->blob ? c->blob : c->bytes;

	if (want < n + 1)
		want = n;
	if (text.n != want || memcmp(text.p, head, n) != 0)
		return false;
	/* All of the rest is x if the first is, and each equals the one before it. */
	return text.n == n || (text.p[n] == 'x' && memcmp(text.p + n, text.p + n + 1,
						       text.n - n - 1) == 0);
}

bool
call_is_right(const struct calls *c, unsigned long long id, struct piece result)
{
	struct piece first = {NULL, 0};

	return bench_elements(bench_member(result, "content"), keep_first, &first) &&
	       text_is_right(c, id, bench_string(bench_member(first, "text")));
}

static int
by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

double
call_percentile_us(uint64_t *took, size_t n, unsigned percent)
{
	size_t at = n * percent / 100;

	if (n == 0)
		return 0;
	qsort(took, n, sizeof(*took), by_size);
	return (double)took[at < n ? at : n - 1] / 1e3;
}
