/* SPDX-License-Identifier: MIT */
/*
 * Tools of a GraphQL endpoint: one for each operation of the files, for each root field
 * that a pattern names, and maybe one that runs what the model writes.
 *
 * Owns: what a set of tools is made of; the set never changes.
 * Driven by: upstream_graphql.c.
 * Invariants: no two tools have one name; what cannot be a tool is logged and left out,
 * what would hide a tool at random is an error of the whole; subscriptions are never
 * tools.
 */
#include "upstream_graphql_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/glob.h"
#include "mcpvisor/mem.h"

#include <string.h>

#define REQUEST_BYTES (8u * 1024 * 1024)

struct build {
	const struct gql_sources *s;
	const struct upstream_conf *conf;
	struct gql_tools *t;
	struct graphql_types types;
	enum graphql_op op; /* of the fields that are walked */
	size_t n_beyond;    /* fields that were not looked at: there are too many tools */
	bool failed;
	struct mv_errtext *err;
};

static void
build_skip(const struct build *b, const char *source, const char *why)
{
	LOG_NOTICE("graphql", "no tool", "upstream=%s of=%s why=%s", UNAME(b->s->u),
	    LOG_ESC(source, strlen(source)), LOG_ESC(why, strlen(why)));
}

/* ---- one tool ---- */

static void
tool_fini(struct gql_tool *t)
{
	mem_free(t->name);
	mem_free(t->source);
	argspec_free(t->args);
	buf_fini(&t->head);
}

/* Its own description; else that of the field; else what it is. */
static void
tool_put_description(const struct build *b, const struct gql_tool *t,
    const struct graphql_operation *op, struct buf *out)
{
	const char *text = op->description;

	if (text == NULL && b->s->schema != NULL && op->fields != NULL &&
	    op->fields[0] != NULL)
		text = graphql_field_description(b->s->schema, op->op, op->fields[0]);
	if (text != NULL && text[0] != '\0')
		buf_add_str(out, text);
	else
		buf_addf(out, "GraphQL %s %s", graphql_op_words[op->op],
		    op->name != NULL ? op->name : t->name);
}

static void
tool_put_hints(const struct build *b, const struct gql_tool *t, struct jtext name)
{
	static const struct tool_hints query = {.read_only = HINT_YES,
					   .destructive = HINT_NO,
					   .idempotent = HINT_YES,
					   .open_world = HINT_YES},
				       mutation = {.read_only = HINT_NO,
					   .destructive = HINT_YES,
					   .idempotent = HINT_NO,
					   .open_world = HINT_YES};

	local_put_annotations(&b->t->listing, local_shape(b->s->u, name),
	    t->op == GRAPHQL_MUTATION ? &mutation : &query);
}

/* Its root is open and nothing is required: answers that are partial stay valid. */
static const char output_schema[] =
    ",\"outputSchema\":{\"type\":\"object\",\"properties\":{\"data\":{\"description\":"
    "\"What was selected\"},\"errors\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"object\"}},\"extensions\":{\"type\":\"object\"},\"_warning\":{\"type\":"
    "\"string\"}}}";

static void
tool_list(const struct build *b, const struct gql_tool *t, const char *description)
{
	struct buf *out = &b->t->listing, name;

	buf_init(&name, 2 * GRAPHQL_TOOL_NAME_MAX);
	json_put_string(&name, t->name, strlen(t->name));
	if (out->len > 0)
		buf_add_char(out, ',');
	buf_add_str(out, "{\"name\":");
	buf_add(out, name.data, name.len);
	buf_add_str(out, ",\"description\":");
	json_put_string(out, description, strlen(description));
	buf_add_str(out, ",\"inputSchema\":");
	argspec_put_schema(t->args, out);
	/* Who has one has to have structuredContent. */
	if (b->conf->graphql.output_schema && !b->conf->graphql.plain)
		buf_add_str(out, output_schema);
	tool_put_hints(b, t, (struct jtext){name.data, name.len});
	buf_add_char(out, '}');
	buf_fini(&name);
}

/* Takes what t has. */
static void
build_add(struct build *b, struct gql_tool *t, const char *description)
{
	struct gql_tools *all = b->t;
	uintptr_t old = (uintptr_t)strmap_get(all->by_name, t->name, strlen(t->name));

	if (old != 0) {
		mv_errtext_set(b->err, "two tools would be called %s: %s, and %s",
		    t->name, all->of[old - 1].source, t->source);
		b->failed = true;
		tool_fini(t);
		return;
	}
	all->of = mem_xrealloc(all->of, (all->n + 1) * sizeof(*all->of));
	all->of[all->n++] = *t;
	if (!strmap_put(
		all->by_name, t->name, strlen(t->name), (void *)(uintptr_t)all->n))
		b->failed = true;
	tool_list(b, &all->of[all->n - 1], description);
}

/* ---- operations ---- */

/* What an operation is taken from. */
struct origin {
	const struct gql_file *file; /* NULL: it is made of a field */
	const struct graphql_document *doc;
	const char *field; /* then that */
	bool is_apart;	   /* the only document is its own */
};

/* Bytes of the path of its folder. */
static size_t
folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? (size_t)(slash - path) : 0;
}

static bool
file_is_library(const struct gql_file *f, const struct gql_file *of)
{
	size_t n = folder_length(of->path);

	return f->doc != NULL && f->doc->n_operations == 0 && !f->is_manifest &&
	       folder_length(f->path) == n && memcmp(f->path, of->path, n) == 0;
}

/* The request up to its variables. */
static bool
tool_put_head(const struct build *b, struct gql_tool *t, const struct origin *from,
    const struct graphql_operation *op, struct mv_errtext *why)
{
	const struct gql_files *files = b->s->files;
	const struct graphql_document **docs =
	    mem_xcalloc(files->n + 1, sizeof(const struct graphql_document *));
	struct buf text;
	size_t n = 0;
	bool ok;

	for (size_t i = 0; !from->is_apart && i < files->n; i++) {
		if (&files->of[i] == from->file)
			docs[n++] = from->doc;
		else if (file_is_library(&files->of[i], from->file))
			docs[n++] = files->of[i].doc;
	}
	if (from->is_apart)
		docs[n++] = from->doc;
	buf_init(&text, REQUEST_BYTES);
	ok = graphql_put_request(&text, op, docs, n, NULL, NULL, why);
	if (ok) {
		buf_add_str(&t->head, "{\"query\":");
		json_put_string(&t->head, text.data, text.len);
	}
	if (ok && op->name != NULL) {
		buf_add_str(&t->head, ",\"operationName\":");
		json_put_string(&t->head, op->name, strlen(op->name));
	}
	buf_add_str(&t->head, ",\"variables\":");
	if (ok && (text.err != MV_OK || t->head.err != MV_OK)) {
		mv_errtext_set(why, "it is too long");
		ok = false;
	}
	buf_fini(&text);
	mem_free(docs);
	return ok;
}

static char *
file_stem(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *stem = mem_xstrdup(slash != NULL ? slash + 1 : path);
	char *dot = strrchr(stem, '.');

	if (dot != NULL && dot != stem)
		*dot = '\0';
	return stem;
}

/* That of the operation; of one without, that of its file. */
static char *
tool_name(
    const struct build *b, const struct origin *from, const struct graphql_operation *op)
{
	bool is_snake = b->conf->graphql.names == NAMES_SNAKE;
	const char *word = op->name;
	char *stem = NULL, *s;
	struct buf name;

	if (word == NULL && from->file != NULL)
		word = stem = file_stem(from->file->path);
	buf_init(&name, 2 * GRAPHQL_TOOL_NAME_MAX);
	if (from->file == NULL && is_snake && op->op == GRAPHQL_MUTATION)
		buf_add_str(&name, "mutate_");
	graphql_put_tool_name(&name, word != NULL ? word : from->field, is_snake);
	if (name.len > GRAPHQL_TOOL_NAME_MAX)
		name.len = GRAPHQL_TOOL_NAME_MAX;
	s = buf_take(&name, NULL);
	buf_fini(&name);
	mem_free(stem);
	return s != NULL ? s : mem_xstrdup("_");
}

static char *
tool_source(const struct origin *from, const struct graphql_operation *op)
{
	struct buf text;
	char *s;

	buf_init(&text, 4096);
	if (from->file == NULL)
		buf_addf(&text, "the field %s", from->field);
	else
		buf_addf(&text, "the operation at %s:%d", from->file->path, op->line);
	s = buf_take(&text, NULL);
	buf_fini(&text);
	return s != NULL ? s : mem_xstrdup("an operation");
}

/* Why it must not be a tool; NULL: it may be one. */
static const char *
op_refusal(const struct build *b, enum graphql_op op, bool is_field)
{
	enum graphql_mutations mode = b->conf->graphql.mutations;

	if (op == GRAPHQL_SUBSCRIPTION)
		return "subscriptions are not supported";
	if (op == GRAPHQL_MUTATION && mode == MUTATIONS_NONE)
		return "mutations = none";
	if (op == GRAPHQL_MUTATION && is_field && mode != MUTATIONS_ALL)
		return "of fields only mutations = all makes tools that change things";
	return NULL;
}

static void
build_operation(
    struct build *b, const struct origin *from, const struct graphql_operation *op)
{
	const char *refusal = op_refusal(b, op->op, from->file == NULL);
	struct mv_errtext why = {.line = 0};
	struct gql_tool t = {.op = op->op};
	struct buf description;

	buf_init(&t.head, REQUEST_BYTES);
	buf_init(&description, CAP_MESSAGE_BYTES);
	t.source = tool_source(from, op);
	t.name = tool_name(b, from, op);
	if (refusal != NULL) {
		build_skip(b, t.source, refusal);
		tool_fini(&t);
		goto out;
	}
	t.args = graphql_arguments(&b->types, op, &why);
	if (t.args == NULL || !tool_put_head(b, &t, from, op, &why)) {
		build_skip(b, t.source, why.message);
		tool_fini(&t);
		goto out;
	}
	tool_put_description(b, &t, op, &description);
	build_add(b, &t, buf_cstr(&description) != NULL ? description.data : "");
out:
	buf_fini(&description);
}

static void
build_files(struct build *b)
{
	const struct gql_files *files = b->s->files;

	for (size_t i = 0; i < files->n; i++) {
		const struct gql_file *f = &files->of[i];
		struct origin from = {
		    .file = f, .doc = f->doc, .is_apart = f->is_manifest};

		for (size_t o = 0; f->doc != NULL && o < f->doc->n_operations; o++)
			build_operation(b, &from, &f->doc->operations[o]);
	}
}

/* ---- fields ---- */

static bool
field_is_wanted(const struct build *b, const char *type, const char *field)
{
	struct buf path;
	bool found = false;

	buf_init(&path, 4096);
	buf_addf(&path, "%s.%s", type, field);
	for (char *const *p = b->conf->graphql.fields; *p != NULL && !found; p++)
		found = glob_match(*p, path.data, path.len);
	buf_fini(&path);
	return found;
}

static void
on_field(void *arg, const char *type, const char *field)
{
	struct build *b = arg;
	const struct graphql_generate_opts opts = {
	    .depth = b->conf->graphql.depth, .max_fields = b->conf->graphql.max_fields};
	struct mv_errtext why = {.line = 0};
	struct origin from = {.field = field, .is_apart = true};
	const char *refusal = op_refusal(b, b->op, true);
	struct graphql_document *doc;

	if (!field_is_wanted(b, type, field))
		return;
	if (refusal != NULL) {
		build_skip(b, field, refusal);
		return;
	}
	/* How many there are is up to the endpoint: no more is made than can be used. */
	if (b->failed || b->t->n > b->conf->graphql.max_tools) {
		b->n_beyond++;
		return;
	}
	doc = graphql_generate(b->s->schema, b->op, field, &opts, &why);
	if (doc == NULL) {
		build_skip(b, field, why.message);
		return;
	}
	from.doc = doc;
	build_operation(b, &from, &doc->operations[0]);
	graphql_document_free(doc);
}

static void
build_fields(struct build *b)
{
	static const enum graphql_op ops[] = {GRAPHQL_QUERY, GRAPHQL_MUTATION};

	if (b->s->schema == NULL || b->conf->graphql.fields == NULL)
		return;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		b->op = ops[i];
		graphql_each_field(b->s->schema, ops[i], on_field, b);
	}
}

/* ---- what the model writes ---- */

static void
build_execute(struct build *b)
{
	bool is_all = gql_execute_may_change(&b->conf->graphql);
	struct gql_tool t = {.is_execute = true,
	    .op = is_all ? GRAPHQL_MUTATION : GRAPHQL_QUERY,
	    .args = gql_execute_arguments(),
	    .source = mem_xstrdup("the tool of execute_tool")};
	struct buf text, name;

	buf_init(&t.head, REQUEST_BYTES);
	buf_init(&text, 4096);
	buf_addf(&text, "%s_execute", b->conf->name);
	buf_init(&name, 2 * GRAPHQL_TOOL_NAME_MAX);
	graphql_put_tool_name(
	    &name, buf_cstr(&text) != NULL ? text.data : "execute", false);
	t.name = buf_take(&name, NULL);
	buf_fini(&name);
	if (t.name == NULL)
		t.name = mem_xstrdup("execute");
	buf_reset(&text);
	buf_addf(&text,
	    "Run a GraphQL %s on %s and return its response. The document may be %d "
	    "levels deep and select %d fields, fragments included; subscriptions%s are "
	    "refused.",
	    is_all ? "query or mutation" : "query", b->conf->name, GQL_EXECUTE_DEPTH,
	    GQL_EXECUTE_FIELDS, is_all ? "" : " and mutations");
	build_add(b, &t, buf_cstr(&text) != NULL ? text.data : "");
	buf_fini(&text);
}

/* ---- all of them ---- */

static bool
build_is_sound(struct build *b)
{
	uint32_t max = b->conf->graphql.max_tools;

	if (b->failed)
		return false;
	if (b->t->n > max) {
		mv_errtext_set(b->err,
		    "it has %zu tools, and max_tools is %u: narrow the patterns of "
		    "operations and fields, raise max_tools, or make two upstreams of it",
		    b->t->n + b->n_beyond, max);
		return false;
	}
	if (b->t->listing.err != MV_OK) {
		mv_errtext_set(b->err, "the list of its tools is too long");
		return false;
	}
	return true;
}

struct gql_tools *
gql_tools_new(const struct gql_sources *s, struct mv_errtext *err)
{
	const char *scalars = s->u->conf->graphql.scalars;
	struct build b = {.s = s,
	    .conf = s->u->conf,
	    .err = err,
	    .types = {.schema = s->schema,
		.scalars = {scalars, scalars != NULL ? strlen(scalars) : 0}}};

	b.t = mem_xcalloc(1, sizeof(*b.t));
	b.t->by_name = strmap_new();
	buf_init(&b.t->listing, CAP_LIST_BYTES);
	build_files(&b);
	build_fields(&b);
	if (b.conf->graphql.execute != EXECUTE_OFF)
		build_execute(&b);
	if (!build_is_sound(&b)) {
		gql_tools_free(b.t);
		return NULL;
	}
	return b.t;
}

void
gql_tools_free(struct gql_tools *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < t->n; i++)
		tool_fini(&t->of[i]);
	mem_free(t->of);
	strmap_free(t->by_name);
	buf_fini(&t->listing);
	mem_free(t);
}

const struct gql_tool *
gql_tools_find(const struct gql_tools *t, struct jtext name)
{
	struct buf text;
	uintptr_t i = 0;

	buf_init(&text, CAP_URI_BYTES);
	if (t != NULL && json_string_decode(name, &text) && text.err == MV_OK &&
	    text.len > 0)
		i = (uintptr_t)strmap_get(t->by_name, text.data, text.len);
	buf_fini(&text);
	return i != 0 ? &t->of[i - 1] : NULL;
}
