/* SPDX-License-Identifier: MIT */
/*
 * What "tools" and "call" print.
 *
 * Owns: the list of tools, for its struct cli.
 * Driven by: cli.c.
 * Invariants: with JSON output bytes are as they came; in tables, and in texts that go to
 * a terminal, no control byte of an upstream gets through.
 */
#include "cli_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "mcpvisor/caps.h"
#include "mcpvisor/mem.h"

/* A longer name pushes its own description to the right, not everybody's. */
#define NAME_COLUMN_MAX 40

unsigned
cli_width(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	unsigned long n = columns ? strtoul(columns, NULL, 10) : 0;
	struct winsize ws;
	int fd = fileno(out);

	if (n > 0 && n < 10000)
		return (unsigned)n;
	if (fd >= 0 && ioctl(fd, TIOCGWINSZ, &ws) == 0)
		return ws.ws_col;
	return 0;
}

int
cli_flush(FILE *out, FILE *err, int code)
{
	errno = 0;
	if (fflush(out) == 0 && ferror(out) == 0)
		return code;
	if (errno != EPIPE)
		fprintf(err, "mcpvisor: not all could be written%s%s\n",
		    errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
	clearerr(out);
	return code != CLI_OK ? code : CLI_UPSTREAM;
}

static char *
text_decode(struct jtext string, size_t *len)
{
	struct buf b;
	char *s = NULL;

	*len = 0;
	buf_init(&b, CAP_MESSAGE_BYTES);
	if (json_string_decode(string, &b) && buf_cstr(&b)) {
		*len = b.len;
		s = buf_take(&b, len);
	}
	buf_fini(&b);
	return s;
}

bool
cli_list_add(struct cli_list *l, struct jtext tools)
{
	struct json_iter it;
	struct jtext def;

	if (jtext_type(tools) != '[')
		return false;
	json_iter_init(&it, tools);
	while (json_next_element(&it, &def)) {
		struct cli_tool t = {.def_len = def.n};
		struct cli_tool *v;
		size_t len;

		l->bytes += def.n;
		t.name = text_decode(json_member(def, "name"), &len);
		v = mem_try_realloc(l->v, (l->n + 1) * sizeof *v);
		if (v)
			l->v = v;
		t.def = mem_try(def.n + 1);
		if (!v || !t.def || !t.name || l->n >= CAP_LIST_ITEMS ||
		    l->bytes > CAP_LIST_BYTES) {
			mem_free(t.name);
			mem_free(t.def);
			return false;
		}
		memcpy(t.def, def.p, def.n);
		t.def[def.n] = '\0';
		l->v[l->n++] = t;
	}
	return true;
}

void
cli_list_clear(struct cli_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		mem_free(l->v[i].name);
		mem_free(l->v[i].def);
	}
	mem_free(l->v);
	memset(l, 0, sizeof *l);
}

const struct cli_tool *
cli_list_find(const struct cli_list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->v[i].name, name) == 0)
			return &l->v[i];
	}
	return NULL;
}

static bool
byte_is_control(const char *p, size_t left)
{
	unsigned char c = (unsigned char)*p;

	/* U+0080 to U+009F are control characters too. */
	return c < 0x20 || c == 0x7f ||
	       (c == 0xc2 && left > 1 && (unsigned char)p[1] < 0xa0);
}

unsigned
cli_text_columns(const char *s, size_t n)
{
	unsigned columns = 0;

	for (size_t i = 0; i < n; i++)
		columns += ((unsigned char)s[i] & 0xc0) != 0x80;
	return columns;
}

void
cli_print_cut(FILE *out, const char *s, size_t n, unsigned columns)
{
	bool cut = columns > 3 && cli_text_columns(s, n) > columns;
	unsigned room = cut ? columns - 3 : columns;

	for (size_t i = 0; i < n; i++) {
		bool starts = ((unsigned char)s[i] & 0xc0) != 0x80;

		if (cut && starts && room-- == 0)
			break;
		if (!byte_is_control(s + i, n - i))
			putc(s[i], out);
		else if (starts) {
			putc('?', out);
			i += (unsigned char)s[i] == 0xc2;
		}
	}
	if (cut)
		fputs("...", out);
}

static void
print_row(const struct cli_opts *o, const struct cli_tool *t, unsigned column)
{
	struct jtext def = cli_tool_def(t);
	size_t len, name_len = strlen(t->name);
	char *text = text_decode(json_member(def, "description"), &len);
	unsigned used = cli_text_columns(t->name, name_len);
	const char *s;

	if (!text)
		text = text_decode(json_member(def, "title"), &len);
	cli_print_cut(o->out, t->name, name_len, 0);
	if (text) {
		s = text + strspn(text, " \t\r\n");
		do {
			putc(' ', o->out);
		} while (++used < column + 2);
		putc(' ', o->out);
		used++;
		cli_print_cut(o->out, s, strcspn(s, "\r\n"),
		    o->width > used + 10 ? o->width - used
		    : o->width		 ? 10
					 : 0);
	}
	putc('\n', o->out);
	mem_free(text);
}

void
cli_print_tools(const struct cli_opts *o, const struct cli_list *l)
{
	unsigned column = 4;

	if (o->json) {
		fputs("[", o->out);
		for (size_t i = 0; i < l->n; i++) {
			fputs(i ? ",\n" : "\n", o->out);
			fwrite(l->v[i].def, 1, l->v[i].def_len, o->out);
		}
		fputs(l->n ? "\n]\n" : "]\n", o->out);
		return;
	}
	for (size_t i = 0; i < l->n; i++) {
		unsigned columns = cli_text_columns(l->v[i].name, strlen(l->v[i].name));

		if (columns > column && columns <= NAME_COLUMN_MAX)
			column = columns;
	}
	if (l->n)
		fprintf(o->out, "%-*s   DESCRIPTION\n", (int)column, "NAME");
	for (size_t i = 0; i < l->n; i++)
		print_row(o, &l->v[i], column);
}

static bool
out_is_terminal(FILE *out)
{
	int fd = fileno(out);

	return fd >= 0 && isatty(fd);
}

/* Prints the byte at p, or for a terminal what is harmless; returns what it took. */
static size_t
print_byte(FILE *out, bool terminal, const char *p, size_t left)
{
	if (!terminal || *p == '\n' || *p == '\t' || !byte_is_control(p, left)) {
		putc(*p, out);
		return 1;
	}
	putc('?', out);
	return (unsigned char)*p == 0xc2 ? 2 : 1;
}

static void
print_text(const struct cli_opts *o, const char *s, size_t n)
{
	bool terminal = out_is_terminal(o->out);

	for (size_t i = 0; i < n;)
		i += print_byte(o->out, terminal, s + i, n - i);
	if (n == 0 || s[n - 1] != '\n')
		putc('\n', o->out);
}

static void
print_string_member(const struct cli_opts *o, struct jtext object, const char *member)
{
	size_t len;
	char *s = text_decode(json_member(object, member), &len);

	if (s) {
		putc(' ', o->out);
		cli_print_cut(o->out, s, len, 200);
	}
	mem_free(s);
}

/* A block of the content; true if it was text. */
static bool
print_block(const struct cli_opts *o, struct jtext block)
{
	struct jtext data = json_member(block, "data");
	size_t len;
	char *s;

	if (json_string_is(json_member(block, "type"), "text")) {
		s = text_decode(json_member(block, "text"), &len);
		if (s)
			print_text(o, s, len);
		mem_free(s);
		return true;
	}
	putc('[', o->out);
	s = text_decode(json_member(block, "type"), &len);
	cli_print_cut(o->out, s ? s : "block", s ? len : 5, 40);
	mem_free(s);
	print_string_member(o, block, "mimeType");
	print_string_member(o, block, "uri");
	print_string_member(o, json_member(block, "resource"), "uri");
	if (data.n > 2)
		fprintf(o->out, ", about %zu bytes", (data.n - 2) / 4 * 3);
	fputs("]\n", o->out);
	return false;
}

static void
print_newline(FILE *out, unsigned depth)
{
	putc('\n', out);
	while (depth--)
		fputs("  ", out);
}

/* Indents JSON token by token, so that numbers and strings stay as they are. */
static void
print_indented(FILE *out, struct jtext t)
{
	unsigned depth = 0;
	bool in_string = false, terminal = out_is_terminal(out);

	for (size_t i = 0; i < t.n; i++) {
		char c = t.p[i];

		if (in_string) {
			i += print_byte(out, terminal, t.p + i, t.n - i) - 1;
			if (c == '\\' && i + 1 < t.n)
				putc(t.p[++i], out);
			in_string = c != '"';
		} else if (c == '{' || c == '[') {
			size_t next = i + 1 + strspn(t.p + i + 1, " \t\r\n");

			putc(c, out);
			if (next < t.n && (t.p[next] == '}' || t.p[next] == ']'))
				putc(t.p[i = next], out);
			else
				print_newline(out, ++depth);
		} else if (c == '}' || c == ']') {
			print_newline(out, --depth);
			putc(c, out);
		} else if (c == ',') {
			putc(c, out);
			print_newline(out, depth);
		} else if (c == ':') {
			fputs(": ", out);
		} else if (!strchr(" \t\r\n", c)) {
			putc(c, out);
			in_string = c == '"';
		}
	}
	putc('\n', out);
}

enum cli_exit
cli_print_result(const struct cli_opts *o, struct jtext result)
{
	struct jtext content = json_member(result, "content"), block;
	struct jtext structured = json_member(result, "structuredContent");
	bool any_text = false;
	struct json_iter it;

	if (o->json) {
		fwrite(result.p, 1, result.n, o->out);
		putc('\n', o->out);
	} else {
		if (jtext_type(content) == '[') {
			json_iter_init(&it, content);
			while (json_next_element(&it, &block))
				any_text |= print_block(o, block);
		}
		if (!any_text && structured.n)
			print_indented(o->out, structured);
	}
	return json_is_true(json_member(result, "isError")) ? CLI_TOOL_ERROR : CLI_OK;
}

enum cli_exit
cli_print_error(const struct cli_opts *o, struct jtext error)
{
	struct jtext data = json_member(error, "data");
	int64_t code = 0;
	size_t len;
	char *message = text_decode(json_member(error, "message"), &len);

	(void)json_int(json_member(error, "code"), &code);
	fprintf(o->err, "mcpvisor: error %lld: ", (long long)code);
	cli_print_cut(o->err, message ? message : "", message ? len : 0, 0);
	if (data.n) {
		fputs(" ", o->err);
		cli_print_cut(o->err, data.p, data.n, 1000);
	}
	putc('\n', o->err);
	if (o->json) {
		fwrite(error.p, 1, error.n, o->out);
		putc('\n', o->out);
	}
	mem_free(message);
	return code <= -32600 && code >= -32602 ? CLI_PARAMS : CLI_UPSTREAM;
}
