/* SPDX-License-Identifier: MIT */
/*
 * Types that only remote upstreams and roots have: URLs, headers, tls_verify, roots.
 *
 * Owns: nothing; values are the snapshot's.
 * Driven by: conf_group.c and conf_walk.c, through the types.
 * Invariants: of a URL no query and no password is shown, of a header no value.
 */
#include "conf_value_priv.h"

#include "remote_conf.h"

#include <string.h>
#include <strings.h>

#include "mcpvisor/json.h"
#include "mcpvisor/mem.h"

static int
remote_line(const config_setting_t *s)
{
	return (int)config_setting_source_line(s);
}

/* The start of a URL that has no secret; 0: a password is in it. */
static size_t
url_open_length(const char *s)
{
	const char *host = strstr(s, "://");
	size_t n;

	host = host ? host + 3 : s;
	n = strcspn(host, "/?#");
	if (memchr(host, '@', n))
		return 0;
	return (size_t)(host - s) + n + strcspn(host + n, "?#");
}

bool
conf_put_url(struct conf_put *p, const struct conf_row *r, const void *member)
{
	const char *s = *(char *const *)member;
	size_t n = s ? url_open_length(s) : 0;

	if (!s)
		return false;
	if (s[n] == '\0') {
		conf_put_string(p, r, s);
		return true;
	}
	json_put_string(p->real, s, strlen(s));
	if (n > 0 && !conf_is_marked(p->c, s)) {
		json_put_string(p->shown, s, n);
		buf_add_char(p->shown, ' ');
	}
	buf_add_str(p->shown, "(secret)");
	return true;
}

/* The name says yes, the member no. */
void
conf_parse_verify(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	bool verify = !*(bool *)member;

	conf_parse_bool(x, r, &verify, s);
	*(bool *)member = !verify;
}

bool
conf_put_verify(struct conf_put *p, const struct conf_row *r, const void *member)
{
	bool verify = !*(const bool *)member;

	return conf_put_bool(p, r, &verify);
}

void
conf_parse_roots(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	struct upstream_conf *u = x->at[CONF_UPSTREAM];
	bool is_list = config_setting_is_array(s) || config_setting_is_list(s);
	char **v = NULL;

	if (is_list) {
		conf_parse_strings(x, r, &v, s);
		if (!v)
			return;
		u->roots = ROOTS_LIST;
	} else if (config_setting_type(s) == CONFIG_TYPE_STRING) {
		conf_parse_enum(x, r, member, s);
	} else {
		conf_want(x, r, s);
		return;
	}
	for (char **p = u->root_uris; p && *p; p++)
		conf_unmark(x->c, *p);
	conf_strings_free(u->root_uris);
	u->root_uris = v;
}

bool
conf_put_roots(struct conf_put *p, const struct conf_row *r, const void *member)
{
	const void *base = (const char *)member - r->offset;
	const struct upstream_conf *u = base;

	if (u->roots == ROOTS_LIST)
		return conf_put_strings(p, r, &u->root_uris);
	return conf_put_enum(p, r, member);
}

/* Whether the group has the name before its member i, in whatever case. */
static bool
header_is_twin(const config_setting_t *group, int i, const char *name)
{
	for (int k = 0; k < i; k++) {
		const config_setting_t *e = config_setting_get_elem(group, (unsigned)k);

		if (strcasecmp(config_setting_name(e), name) == 0)
			return true;
	}
	return false;
}

static void
header_read(struct conf_ctx *x, const config_setting_t *e, bool is_twin)
{
	struct upstream_conf *u = x->at[CONF_UPSTREAM];
	const char *name = config_setting_name(e),
		   *wrong = remote_check_header_name(name);
	const char *text = config_setting_get_string(e);
	struct mv_errtext et = {.line = 0};

	if (wrong)
		conf_error(x, remote_line(e), "%s", wrong);
	else if (is_twin)
		conf_error(x, remote_line(e),
		    "is there twice: names of headers are the "
		    "same in any case");
	else if (config_setting_type(e) != CONFIG_TYPE_STRING)
		conf_error(
		    x, remote_line(e), "want a string, not %s", conf_setting_type(e));
	else if (x->keep_set && remote_has_header(u, name))
		return;
	else if (!remote_add_header(u, name, text, &x->env, &et) &&
		 !(x->lenient && remote_add_header(u, name, text, NULL, &et)))
		conf_error(x, remote_line(e), "%s", et.message);
}

void
conf_parse_headers(
    struct conf_ctx *x, const struct conf_row *r, void *member, const config_setting_t *s)
{
	int n = config_setting_length(s);

	(void)member;
	if (!config_setting_is_group(s)) {
		conf_want(x, r, s);
		return;
	}
	for (int i = 0; i < n; i++) {
		const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
		const char *name = config_setting_name(e);
		size_t old = conf_push(x, name);

		header_read(x, e, header_is_twin(s, i, name));
		conf_pop(x, old);
	}
}

/* One whose value is looked at again is as it is written: a new token changes no conf. */
void
conf_each_header(struct conf_walk *w, const struct conf_row *r, const void *member)
{
	const struct upstream_conf *u = w->at[CONF_UPSTREAM];

	(void)member;
	for (size_t i = 0; i < u->n_headers; i++) {
		const struct header_row *h = &u->headers[i];
		size_t old = conf_walk_push(w, conf_label(h->name));

		buf_add_str(&w->shown, "(secret)");
		buf_add_str(&w->real, h->source ? h->source : h->value);
		conf_walk_value(w, r);
		conf_walk_pop(w, old);
	}
}
