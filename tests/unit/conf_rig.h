/* SPDX-License-Identifier: MIT */
/* What the suites of the conf share. */
#ifndef CONF_RIG_H
#define CONF_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcpvisor/conf.h"
#include "mcpvisor/expand.h"
#include "mcpvisor/mem.h"

#include <check.h>

#define RIG_MARK "hush-4711"

static inline const char *
rig_get(const char *name, void *arg)
{
	(void)arg;
	if (strcmp(name, "MARK") == 0)
		return RIG_MARK;
	return strcmp(name, "HOME") == 0 ? "/home/u" : NULL;
}

static const struct expand_env rig_env = {.get = rig_get};

static inline struct conf *
rig_parse(const char *text, struct conf_errors *e)
{
	return conf_parse("/nonexistent/m.conf", text, &rig_env, e);
}

/* A text that must be a conf. */
static inline struct conf *
rig_good(const char *text)
{
	struct conf_errors e;
	struct conf *c = rig_parse(text, &e);

	ck_assert_msg(c != NULL, "%s: %s", text, e.n ? e.v[0] : "no error");
	ck_assert_uint_eq(e.n, 0);
	conf_errors_free(&e);
	return c;
}

/* A text whose first error must have these words. */
static inline void
rig_bad(const char *text, const char *words)
{
	struct conf_errors e;
	struct conf *c = rig_parse(text, &e);

	ck_assert_msg(c == NULL && e.n > 0, "%s: no error", text);
	ck_assert_msg(strstr(e.v[0], words) != NULL, "%s: %s", text, e.v[0]);
	conf_errors_free(&e);
}

/* A text that is no conf for one reason, which must not hold the mark. */
static inline void
rig_bad_unshown(const char *text)
{
	struct conf_errors e;

	ck_assert_ptr_null(rig_parse(text, &e));
	ck_assert_uint_eq(e.n, 1);
	ck_assert_ptr_null(strstr(e.v[0], RIG_MARK));
	conf_errors_free(&e);
}

/* Whichever of its first allocations fails: no conf, or a whole one. */
static inline void
rig_no_memory(const char *text, unsigned long n)
{
	for (unsigned long i = 1; i < n; i++) {
		struct conf_errors e;
		struct conf *c;

		mem_fail_at(i, i & 1);
		c = rig_parse(text, &e);
		mem_fail_at(0, 0);
		ck_assert((c != NULL) == (e.n == 0));
		conf_free(c);
		conf_errors_free(&e);
	}
}

/* The caller's. */
static inline char *
rig_dump(const struct conf *c, bool changed_only)
{
	struct buf b;
	char *s;

	buf_init(&b, 1u << 24);
	conf_dump(c, changed_only, &b);
	s = buf_take(&b, NULL);
	ck_assert_ptr_nonnull(s);
	return s;
}

/* What a text sets, without the mark. */
static inline void
rig_dumps(const char *text, const char *want)
{
	struct conf *c = rig_good(text);
	char *dump = rig_dump(c, true);

	ck_assert_str_eq(dump, want);
	ck_assert_ptr_null(strstr(dump, RIG_MARK));
	mem_free(dump);
	conf_free(c);
}

/* Whether a text has a line. */
static inline bool
rig_has_line(const char *text, const char *line)
{
	size_t n = strlen(line);

	for (const char *p = text; (p = strstr(p, line)); p++) {
		if ((p == text || p[-1] == '\n') && (p[n] == '\n' || p[n] == '\0'))
			return true;
	}
	return false;
}

static inline void
rig_write(const char *dir, const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, strlen(text), f), strlen(text));
	ck_assert_int_eq(fclose(f), 0);
}

static inline const char *
rig_env_get(char *const *env, const char *key)
{
	size_t n = strlen(key);

	for (char *const *p = env; p && *p; p++) {
		if (strncmp(*p, key, n) == 0 && (*p)[n] == '=')
			return *p + n + 1;
	}
	return NULL;
}

/* Runs a suite of one case. */
static inline int
rig_run(const char *name, TCase *tc)
{
	Suite *s = suite_create(name);
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
