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

#define WORD_MAX 64

/* Edits that turn one word into the other. */
static size_t
word_distance(const char *a, const char *b)
{
	size_t row[WORD_MAX + 1];
	size_t n = strlen(b);

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

	if (strlen(wrong) > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t d;

		if (strlen(words[i]) > WORD_MAX)
			continue;
		d = word_distance(wrong, words[i]);
		/* More than half of it wrong is another word. */
		if (d < least && d * 2 <= strlen(words[i])) {
			best = words[i];
			least = d;
		}
	}
	return best;
}
