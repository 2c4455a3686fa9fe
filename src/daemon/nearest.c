/* SPDX-License-Identifier: MIT */
/*
 * Which of some words a misspelt one was meant to be.
 *
 * Owns: nothing. Driven by: whoever refuses a word.
 * Invariants: the same question has the same answer; the first of equals wins.
 */
#include "nearest_priv.h"

#include <stdint.h>
#include <string.h>

#define WORD_MAX 128

size_t
nearest_distance(const char *a, const char *b)
{
	size_t row[WORD_MAX + 1];
	size_t n = strlen(b);

	if (n > WORD_MAX || strlen(a) > WORD_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; *a; a++, i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t best = corner + (*a != b[j - 1]);

			corner = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n];
}

const char *
nearest_word(const char *wrong, const char *const *words, size_t n)
{
	const char *best = NULL;
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		size_t d = nearest_distance(wrong, words[i]);

		/* More than half of it wrong is another word. */
		if (d < least && d <= strlen(words[i]) / 2) {
			best = words[i];
			least = d;
		}
	}
	return best;
}
