/* SPDX-License-Identifier: MIT */
/*
 * What a WWW-Authenticate header asks for, for people.
 *
 * Owns: nothing; a pure function.
 * Driven by: refusals of a remote upstream.
 * Invariants: the header is a stranger's: only known names are looked for, and their
 * values are escaped.
 * Spec: RFC 9110 section 11; RFC 9728 section 5.1 (resource_metadata).
 */
#include "upstream_remote_priv.h"

#include "mcpvisor/log.h"

#include <string.h>
#include <strings.h>

#define VALUE_BYTES 512

struct piece {
	const char *p;
	size_t n;
};

static void
challenge_skip(const char **s)
{
	*s += strspn(*s, " \t,");
}

static struct piece
challenge_token(const char **s)
{
	struct piece t = {*s, strcspn(*s, " \t,=\"")};

	*s += t.n;
	return t;
}

/* A token, or a quoted string without its quotes and escapes. */
static void
challenge_value(const char **s, struct buf *out)
{
	if (**s != '"') {
		size_t n = strcspn(*s, " \t,\"");

		buf_add(out, *s, n);
		*s += n;
		return;
	}
	for ((*s)++; **s != '\0' && **s != '"'; (*s)++) {
		if (**s == '\\' && (*s)[1] != '\0')
			(*s)++;
		buf_add_char(out, **s);
	}
	if (**s == '"')
		(*s)++;
}

static bool
challenge_is_shown(struct piece name)
{
	static const char *const shown[] = {
	    "realm", "resource_metadata", "scope", "error", "error_description"};

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (strlen(shown[i]) == name.n &&
		    strncasecmp(shown[i], name.p, name.n) == 0)
			return true;
	return false;
}

static void
challenge_put_value(struct buf *out, struct piece name, const char **s)
{
	struct buf value;
	const char *text;

	buf_init(&value, VALUE_BYTES);
	challenge_value(s, &value);
	text = LOG_ESC(value.data != NULL ? value.data : "", value.len);
	if (challenge_is_shown(name)) {
		buf_add_char(out, ' ');
		buf_add(out, name.p, name.n);
		buf_add_char(out, '=');
		buf_add_str(out, text);
	}
	buf_fini(&value);
}

void
challenge_put(struct buf *out, const char *header)
{
	const char *s = header;

	challenge_skip(&s);
	while (*s != '\0') {
		struct piece t = challenge_token(&s);
		size_t space = strspn(s, " \t");

		if (t.n == 0) {
			s++;
		} else if (s[space] == '=' && s[space + 1] != '=') {
			s += space + 1;
			s += strspn(s, " \t");
			challenge_put_value(out, t, &s);
		} else {
			buf_add_str(out, " scheme=");
			buf_add_str(out, LOG_ESC(t.p, t.n));
		}
		challenge_skip(&s);
	}
}
