/* SPDX-License-Identifier: MIT */
/*
 * Whether a name fits a pattern.
 *
 * Owns: nothing. Driven by: whoever has lists of names in its conf.
 * Invariants: never more steps than pattern times text, whatever they hold.
 */
#include "mcpvisor/glob.h"

bool
glob_match(const char *pattern, const char *text, size_t n)
{
	const char *p = pattern, *star = NULL;
	size_t i = 0, retry = 0;

	while (i < n) {
		if (*p == '*') {
			star = p++;
			retry = i;
		} else if (*p != '\0' && (*p == '?' || *p == text[i])) {
			p++;
			i++;
		} else if (star != NULL) {
			/* The last star alone has to take more: what the earlier ones
			 * took is as good as anything. */
			p = star + 1;
			i = ++retry;
		} else {
			return false;
		}
	}
	while (*p == '*')
		p++;
	return *p == '\0';
}
