/* SPDX-License-Identifier: MIT */
/*
 * Arguments of "call": their look on the command line, their types by the tool's schema,
 * and the names that an unknown tool may have meant.
 *
 * Owns: nothing.
 * Driven by: main (cli_check) and cli.c.
 * Invariants: what is built is one JSON object without a raw newline; numbers go out as
 * they were typed.
 */
#include "cli_priv.h"
#include "nearest_priv.h"

#include <string.h>

#include "mcpvisor/json_scan.h"

#define NEAR_MAX 3

/* Types of a JSON schema, as bits. */
static const struct {
	const char *name;
	char first; /* of such a value: see jtext_type; 0: a digit or '-' */
} types[] = {
    {"string", '"'},
    {"number", 0},
    {"integer", 0},
    {"boolean", 't'},
    {"object", '{'},
    {"array", '['},
    {"null", 'n'},
};
#define TYPES (sizeof types / sizeof *types)

static bool
args_is_object(const char *text)
{
	struct json_msg msg;

	return json_scan(&msg, text, strlen(text), false) == MV_OK &&
	       msg.kind == JSON_K_OBJECT;
}

static bool
args_has_twin(const struct cli_opts *o, size_t i, size_t key_len)
{
	for (size_t j = 0; j < i; j++) {
		if (strncmp(o->pairs[j], o->pairs[i], key_len + 1) == 0)
			return true;
	}
	return false;
}

enum cli_exit
cli_check(const struct cli_opts *o)
{
	if (o->args && o->n_pairs > 0) {
		fprintf(o->err, "mcpvisor: give either key=value or --json, not both\n");
		return CLI_USAGE;
	}
	if (o->args && !args_is_object(o->args)) {
		fprintf(o->err, "mcpvisor: --json wants the text of one JSON object\n");
		return CLI_USAGE;
	}
	for (size_t i = 0; i < o->n_pairs; i++) {
		size_t key_len = strcspn(o->pairs[i], "=");

		if (key_len == 0 || !o->pairs[i][key_len]) {
			fprintf(o->err, "mcpvisor: \"%s\" is not of the form key=value\n",
			    o->pairs[i]);
			return CLI_USAGE;
		}
		if (args_has_twin(o, i, key_len)) {
			fprintf(o->err, "mcpvisor: \"%.*s\" is given twice\n",
			    (int)key_len, o->pairs[i]);
			return CLI_USAGE;
		}
	}
	return CLI_OK;
}

static unsigned
type_bit(struct jtext name)
{
	for (unsigned i = 0; i < TYPES; i++) {
		if (json_string_is(name, types[i].name))
			return 1u << i;
	}
	return 0;
}

static unsigned
type_mask(struct jtext schema)
{
	struct jtext type = json_member(schema, "type"), one;
	unsigned mask = type_bit(type);
	struct json_iter it;

	if (jtext_type(type) == '[') {
		json_iter_init(&it, type);
		while (json_next_element(&it, &one))
			mask |= type_bit(one);
	}
	return mask;
}

/* The types that a property allows, "anyOf" and "oneOf" looked into, as an optional
 * number is often {"anyOf":[{"type":"integer"},{"type":"null"}]}. 0: any. */
static unsigned
property_mask(struct jtext def, const char *key)
{
	static const char *const groups[] = {"anyOf", "oneOf"};
	struct jtext property =
	    json_member(json_member(json_member(def, "inputSchema"), "properties"), key);
	unsigned mask = type_mask(property);

	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
		struct jtext group = json_member(property, groups[i]), one;
		struct json_iter it;

		if (jtext_type(group) != '[')
			continue;
		json_iter_init(&it, group);
		while (json_next_element(&it, &one))
			mask |= type_mask(one);
	}
	return mask;
}

static bool
value_fits(const char *value, unsigned mask)
{
	struct json_msg msg;
	char first = *(value + strspn(value, " \t\r\n"));

	if (json_scan(&msg, value, strlen(value), false) != MV_OK)
		return false;
	if (first == 'f')
		first = 't';
	for (unsigned i = 0; i < TYPES; i++) {
		bool is_number = first == '-' || (first >= '0' && first <= '9');

		if ((mask & (1u << i)) &&
		    (types[i].first ? types[i].first == first : is_number))
			return true;
	}
	return false;
}

/* JSON text has newlines only between its tokens. */
static void
add_on_one_line(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_add_char(out, *text == '\n' || *text == '\r' ? ' ' : *text);
}

static enum cli_exit
args_add_pair(
    const struct cli_opts *o, const struct cli_tool *t, const char *pair, struct buf *out)
{
	const char *value = strchr(pair, '=') + 1;
	struct buf key;
	unsigned mask;
	enum cli_exit code = CLI_OK;

	buf_init(&key, CAP_MESSAGE_BYTES);
	buf_add(&key, pair, (size_t)(value - pair) - 1);
	mask = buf_cstr(&key) ? property_mask(cli_tool_def(t), buf_cstr(&key)) : 0;
	json_put_string(out, key.data, key.len);
	buf_add_char(out, ':');
	if (mask == 0 || (mask & 1u)) {
		json_put_string(out, value, strlen(value));
	} else if (value_fits(value, mask)) {
		add_on_one_line(out, value);
	} else {
		fprintf(o->err, "mcpvisor: %s must be of type", buf_cstr(&key));
		for (unsigned i = 0; i < TYPES; i++) {
			if (mask & (1u << i))
				fprintf(o->err, " %s", types[i].name);
		}
		fprintf(o->err, "; \"%s\" is not\n", value);
		code = CLI_PARAMS;
	}
	buf_fini(&key);
	return code;
}

enum cli_exit
cli_args_build(const struct cli_opts *o, const struct cli_tool *t, struct buf *out)
{
	enum cli_exit code = CLI_OK;

	if (o->args) {
		add_on_one_line(out, o->args);
		return CLI_OK;
	}
	buf_add_char(out, '{');
	for (size_t i = 0; i < o->n_pairs && code == CLI_OK; i++) {
		if (i)
			buf_add_char(out, ',');
		code = args_add_pair(o, t, o->pairs[i], out);
	}
	buf_add_char(out, '}');
	return code;
}

/* How far a name is from the wanted one; a name that contains it is near. */
static size_t
name_rank(const char *name, const char *wanted)
{
	size_t n = strlen(wanted);

	if (n >= 2 && strstr(name, wanted))
		return 0;
	return nearest_distance(name, wanted);
}

void
cli_print_unknown(const struct cli_opts *o, const struct cli_list *l)
{
	size_t limit = strlen(o->tool) / 3;
	unsigned printed = 0;

	if (limit < 2)
		limit = 2;
	fprintf(o->err, "mcpvisor: unknown tool \"%s\"", o->tool);
	for (size_t rank = 0; rank <= limit; rank++) {
		for (size_t i = 0; i < l->n && printed < NEAR_MAX; i++) {
			const char *name = l->v[i].name;

			if (name_rank(name, o->tool) != rank)
				continue;
			fputs(printed++ ? ", " : "; near: ", o->err);
			cli_print_cut(o->err, name, strlen(name), 0);
		}
	}
	fprintf(o->err, "\nmcpvisor: \"mcpvisor tools\" lists them all\n");
}
