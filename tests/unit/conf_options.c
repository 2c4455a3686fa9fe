/* SPDX-License-Identifier: MIT */
/*
 * Prints what conf_docs compares with the samples and the manual.
 *
 * usage: conf_options                  the table of options, one a line, tabs between
 *        conf_options dump FILE        what a conf sets, or its errors and status 1
 */
#include "conf_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mcpvisor/conf.h"

static const char *const reloads[] = {
    [CONF_LIVE] = "live",
    [CONF_CONN] = "connections",
    [CONF_RESTARTS_UPSTREAM] = "upstream",
    [CONF_NEEDS_RESTART] = "restart",
};

/* "1 to 10", or the words that an option may be. */
static void
print_range(const struct conf_row *r)
{
	const char *const *names = conf_type_of(r)->names;

	const char *comma = "";

	/* What stands for none is no word. */
	for (int i = 0; names && names[i]; i++) {
		if (*names[i] != '\0') {
			printf("%s\"%s\"", comma, names[i]);
			comma = ", ";
		}
	}
	if (!names && r->hi > 0 && r->type != CONF_TY_MODE)
		printf("%" PRIu64 " to %" PRIu64, r->lo, r->hi);
}

static void
print_rows(void)
{
	for (size_t i = 0; i < conf_n_rows; i++) {
		const struct conf_row *r = &conf_rows[i];
		char kinds[CONF_KINDS_BYTES];

		printf("%s%s\t%s\t", conf_scope_prefix(r->where), r->key,
		    conf_type_of(r)->name);
		print_range(r);
		printf("\t%s\t%s\t%s%s%s\t%s\t%s\n", r->dflt ? r->dflt : "",
		    reloads[r->reload], r->flags & CONF_F_E ? "E" : "",
		    r->flags & CONF_F_Q ? "Q" : "", r->flags & CONF_F_O ? "O" : "",
		    conf_kinds_text(r->flags, kinds), r->doc);
	}
}

static int
dump(const char *file)
{
	struct conf_errors e;
	struct conf *c = conf_load(file, NULL, &e);
	struct buf out;

	for (size_t i = 0; i < e.n; i++)
		puts(e.v[i]);
	conf_errors_free(&e);
	if (!c)
		return 1;
	buf_init(&out, 1u << 24);
	conf_dump(c, true, &out);
	fwrite(out.len ? out.data : "", 1, out.len, stdout);
	buf_fini(&out);
	conf_free(c);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "dump") == 0)
		return dump(argv[2]);
	print_rows();
	return 0;
}
