/* SPDX-License-Identifier: MIT */
/* What the suites of argspec share. */
#ifndef MCPVISOR_ARGSPEC_RIG_H
#define MCPVISOR_ARGSPEC_RIG_H

#include "mcpvisor/argspec.h"
#include "mcpvisor/caps.h"

#include <check.h>
#include <string.h>

static struct buf out;

static void
setup(void)
{
	buf_init(&out, CAP_MESSAGE_BYTES);
}

static void
teardown(void)
{
	buf_fini(&out);
}

#include "suite_rig.h"

#define N(table) (int)(sizeof(table) / sizeof((table)[0]))

static struct jtext
text_of(const char *s)
{
	return (struct jtext){s, s != NULL ? strlen(s) : 0};
}

/* Fails with the reason. */
static struct argspec *
spec_of(const char *schema)
{
	struct mv_errtext t = {.line = 0};
	struct argspec *s = argspec_read(text_of(schema), &t);

	ck_assert_msg(s != NULL, "%s: %s", schema, t.message);
	return s;
}

#endif
