/* SPDX-License-Identifier: MIT */
/*
 * Defaults and end of life of an upstream's conf, and what of it makes its process.
 *
 * Owns: nothing beyond the struct.
 * Driven by: whoever parses a conf, and the gateway at a reload.
 * Invariants: two identities are equal exactly if each of their parts is: every part
 * comes with its length.
 */
#include "mcpvisor/upstream_conf.h"

#include "upstream_conf_priv.h"

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

#include <stdlib.h>
#include <string.h>

const char *const era_words[] = {
    [ERA_AUTO] = "auto", [ERA_LEGACY] = "legacy", [ERA_MODERN] = "modern", NULL};
const char *const isolation_words[] = {[ISOLATION_AUTO] = "auto",
    [ISOLATION_SHARED] = "shared",
    [ISOLATION_SESSION] = "session",
    [ISOLATION_CALL] = "call",
    NULL};
const char *const start_words[] = {
    [START_EAGER] = "eager", [START_ON_USE] = "on_use", NULL};
const char *const failure_words[] = {
    [FAILURE_ERROR] = "error", [FAILURE_TOOL_ERROR] = "tool_error", NULL};
const char *const transport_words[] = {[TRANSPORT_AUTO] = "auto",
    [TRANSPORT_STREAMABLE] = "streamable",
    [TRANSPORT_SSE] = "sse",
    NULL};
const char *const roots_words[] = {
    [ROOTS_AUTO] = "auto", [ROOTS_CLIENT] = "client", [ROOTS_NONE] = "none", NULL};

#define LETTERS	       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LETTERS_DIGITS LETTERS "0123456789"

const char *
upstream_conf_check_prefix(const char *s)
{
	if (strlen(s) > CAP_NAME_BYTES / 2)
		return "is longer than 24 characters";
	if (s[strspn(s, LETTERS_DIGITS "_-")])
		return "may have letters, digits, _ and - only";
	return NULL;
}

const char *
upstream_conf_check_uri_prefix(const char *s)
{
	if (strlen(s) > 256)
		return "is longer than 256 bytes";
	/* What it is put before begins with a scheme: so must the whole. */
	if (*s == '\0' || !strchr(LETTERS, *s))
		return "does not begin with a letter";
	if (s[strspn(s, LETTERS_DIGITS "-._~:/?#[]@!$&'()*+,;=%")])
		return "has a character that a URI cannot have";
	return NULL;
}

struct upstream_conf *
upstream_conf_new(const char *name)
{
	struct upstream_conf *c = mem_xcalloc(1, sizeof(*c));

	c->name = mem_xstrdup(name);
	c->enabled = true;
	c->era = ERA_AUTO;
	c->isolation = ISOLATION_AUTO;
	c->start = START_EAGER;
	c->failure = FAILURE_ERROR;
	c->connect_ms = 15000;
	c->question_ms = 600000;
	c->max_instances = 32;
	c->probe_ms = 3000;
	c->start_ms = 60000;
	c->call_ms = 300000;
	c->call_max_ms = 3600000;
	c->queue_calls = CAP_UPSTREAM_CALLS;
	c->queue_bytes = CAP_UPSTREAM_HELD_BYTES;
	c->restart_base_ms = 500;
	c->restart_max_ms = 60000;
	c->restart_limit = 10;
	c->stable_ms = 30000;
	c->term_ms = 2000;
	c->kill_ms = 3000;
	upstream_conf_set_kinds(c);
	return c;
}

static void
string_wipe(char *s)
{
	if (s != NULL)
		mem_free_secret(s, strlen(s));
}

static void
strings_wipe(char **v)
{
	for (char **p = v; p != NULL && *p != NULL; p++)
		string_wipe(*p);
	mem_free(v);
}

void
upstream_strings_free(char **v)
{
	for (char **p = v; p != NULL && *p != NULL; p++)
		mem_free(*p);
	mem_free(v);
}

void
filter_free(struct filter *f)
{
	upstream_strings_free(f->allow);
	upstream_strings_free(f->deny);
	*f = (struct filter){.allow = NULL};
}

void
tool_shape_fini(struct tool_shape *s)
{
	mem_free(s->tool);
	mem_free(s->name);
	mem_free(s->description);
	string_wipe(s->fixed);
	string_wipe(s->defaults);
	mem_free(s->returns);
	string_wipe(s->probe_args);
	label_conf_fini(&s->label);
	exec_tool_fini(&s->exec);
	*s = (struct tool_shape){.tool = NULL};
}

static void
header_free(struct header_row *h)
{
	mem_free(h->name);
	string_wipe(h->value);
	string_wipe(h->source);
}

void
upstream_conf_free(struct upstream_conf *c)
{
	if (c == NULL)
		return;
	strings_wipe(c->argv);
	strings_wipe(c->env);
	strings_wipe(c->own_env);
	if (c->free_sources != NULL)
		c->free_sources(c->sources);
	for (size_t i = 0; i < c->n_headers; i++)
		header_free(&c->headers[i]);
	mem_free(c->headers);
	string_wipe(c->url);
	string_wipe(c->proxy);
	mem_free(c->ca_file);
	mem_free(c->cert_file);
	mem_free(c->key_file);
	upstream_strings_free(c->root_uris);
	mem_free(c->name);
	mem_free(c->path);
	mem_free(c->cwd);
	mem_free(c->prefix);
	mem_free(c->uri_prefix);
	filter_free(&c->tools);
	filter_free(&c->prompts);
	filter_free(&c->resources);
	filter_free(&c->probe);
	label_conf_fini(&c->label);
	identity_conf_fini(&c->identity);
	graphql_conf_fini(&c->graphql);
	exec_conf_fini(&c->exec);
	for (size_t i = 0; i < c->n_shapes; i++)
		tool_shape_fini(&c->shapes[i]);
	mem_free(c->shapes);
	mem_free(c);
}

void
upstream_identity_put(struct buf *out, const char *s)
{
	if (s == NULL) {
		buf_add_str(out, "-;");
		return;
	}
	buf_add_u64(out, strlen(s));
	buf_add_char(out, ':');
	buf_add_str(out, s);
	buf_add_char(out, ';');
}

static size_t
strings_count(char *const *v)
{
	size_t n = 0;

	while (v != NULL && v[n] != NULL)
		n++;
	return n;
}

static int
strings_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A value that is looked up again may be another one tomorrow, at the same server. */
static void
identity_put_remote(const struct upstream_conf *c, struct buf *out)
{
	const char *const files[] = {
	    c->url, c->ca_file, c->cert_file, c->key_file, c->proxy};

	buf_add_char(out, "ahs"[c->transport]);
	buf_add_char(out, c->skip_verify ? '!' : '.');
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		upstream_identity_put(out, files[i]);
	for (size_t i = 0; i < c->n_headers; i++) {
		const struct header_row *h = &c->headers[i];

		upstream_identity_put(out, h->name);
		upstream_identity_put(out, h->source != NULL ? h->source : h->value);
	}
}

void
upstream_conf_put_identity(const struct upstream_conf *c, struct buf *out)
{
	size_t n_args = strings_count(c->argv), n_env = strings_count(c->own_env);
	/* No process sees in which order a file names its variables. */
	char **env = mem_xcalloc(n_env + 1, sizeof(*env));

	if (n_env > 0)
		memcpy(env, c->own_env, n_env * sizeof(*env));
	qsort(env, n_env, sizeof(*env), strings_order);
	buf_add_char(out, "alm"[c->era]);
	upstream_identity_put(out, c->cwd);
	buf_add_u64(out, n_args);
	buf_add_char(out, ';');
	for (size_t i = 0; i < n_args; i++)
		upstream_identity_put(out, c->argv[i]);
	for (size_t i = 0; i < n_env; i++)
		upstream_identity_put(out, env[i]);
	mem_free(env);
	if (c->url != NULL)
		identity_put_remote(c, out);
	upstream_conf_put_kinds(c, out);
}

/* What it is told of roots is told once, when it is greeted. */
static bool
roots_are_same(const struct upstream_conf *a, const struct upstream_conf *b)
{
	size_t n = strings_count(a->root_uris);
	bool same = a->roots == b->roots && n == strings_count(b->root_uris);

	for (size_t i = 0; same && i < n; i++)
		same = strcmp(a->root_uris[i], b->root_uris[i]) == 0;
	return same;
}

bool
upstream_conf_is_same_process(
    const struct upstream_conf *a, const struct upstream_conf *b)
{
	struct buf x, y;
	bool same;

	if (a->isolation != b->isolation || !roots_are_same(a, b) ||
	    a->broken != b->broken ||
	    (a->broken != MV_OK && strcmp(a->broken_text, b->broken_text) != 0))
		return false;
	buf_init(&x, SIZE_MAX);
	buf_init(&y, SIZE_MAX);
	upstream_conf_put_identity(a, &x);
	upstream_conf_put_identity(b, &y);
	same = x.err == MV_OK && y.err == MV_OK && x.len == y.len &&
	       memcmp(x.data, y.data, x.len) == 0;
	if (x.len > 0)
		explicit_bzero(x.data, x.len);
	if (y.len > 0)
		explicit_bzero(y.data, y.len);
	buf_fini(&x);
	buf_fini(&y);
	return same;
}

const struct tool_shape *
upstream_conf_shape(const struct upstream_conf *c, const char *tool, size_t n)
{
	for (size_t i = 0; i < c->n_shapes; i++)
		if (strlen(c->shapes[i].tool) == n &&
		    memcmp(c->shapes[i].tool, tool, n) == 0)
			return &c->shapes[i];
	return NULL;
}
