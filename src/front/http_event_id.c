/* SPDX-License-Identifier: MIT */
/*
 * Ids of events: letter of the kind, epoch, "-", stream, "-", number.
 *
 * Owns: nothing. Driven by: http_replay.c.
 * Invariants: what parses names the memory of a session, a stream there and a place in
 * it; an id is visible ASCII. Spec: 2025-11-25 basic/transports, Resumability and
 * Redelivery.
 */
#include "http_replay_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OF_REQUEST 'r'
#define OF_NOTICES 'n'
#define DIGITS_MAX 18

void
http_event_id_put(const struct http_event_id *id, char out[HTTP_EVENT_ID_BYTES])
{
	(void)snprintf(out, HTTP_EVENT_ID_BYTES, "%c%08" PRIx32 "-%" PRIu32 "-%" PRIu64,
	    id->is_notices ? OF_NOTICES : OF_REQUEST, id->epoch, id->number, id->n);
}

/* False: there is none, or it is larger than max. */
static bool
id_take(struct http_text *t, unsigned base, uint64_t max, uint64_t *v)
{
	size_t n = 0;

	*v = 0;
	for (; t->n > 0 && n < DIGITS_MAX; n++, t->p++, t->n--) {
		char c = *t->p;

		if (c >= '0' && c <= '9')
			*v = *v * base + (uint64_t)(c - '0');
		else if (base == 16 && c >= 'a' && c <= 'f')
			*v = *v * base + (uint64_t)(c - 'a') + 10;
		else
			break;
	}
	return n > 0 && *v <= max;
}

static bool
id_take_char(struct http_text *t, char c)
{
	if (t->n == 0 || *t->p != c)
		return false;
	t->p++;
	t->n--;
	return true;
}

bool
http_event_id_parse(struct http_text t, struct http_event_id *id)
{
	struct http_text whole = t;
	uint64_t epoch, number;
	char ours[HTTP_EVENT_ID_BYTES];

	id->is_notices = id_take_char(&t, OF_NOTICES);
	if ((!id->is_notices && !id_take_char(&t, OF_REQUEST)) ||
	    !id_take(&t, 16, UINT32_MAX, &epoch) || !id_take_char(&t, '-') ||
	    !id_take(&t, 10, UINT32_MAX, &number) || !id_take_char(&t, '-') ||
	    !id_take(&t, 10, UINT64_MAX, &id->n) || t.n > 0)
		return false;
	id->epoch = (uint32_t)epoch;
	id->number = (uint32_t)number;
	/* Each has one spelling, in which no number has turned over. */
	http_event_id_put(id, ours);
	return whole.n == strlen(ours) && memcmp(whole.p, ours, whole.n) == 0;
}
