/* SPDX-License-Identifier: MIT */
/* Runs a suite of one case, whose tests all begin with setup and end with teardown: those
 * of the rig that includes this at its end. */
#ifndef SUITE_RIG_H
#define SUITE_RIG_H

#include <check.h>
#include <stdlib.h>

static inline int
run_suite(Suite *suite, TCase *tc)
{
	SRunner *r = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	suite_add_tcase(suite, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
