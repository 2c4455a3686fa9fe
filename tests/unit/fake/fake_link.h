/* SPDX-License-Identifier: MIT */
/*
 * link.h without descriptors: the test speaks as the peer and reads what was sent.
 */
#ifndef FAKE_LINK_H
#define FAKE_LINK_H

#include "mcpvisor/link.h"

/* The peer writes one line. The text is a copy that ends with the callback, so that
 * whoever keeps a piece of it is found out. A line that is not JSON arrives as such. */
void fake_link_say(struct link *k, const char *line);
/* A line that was refused, with what could be read of it. */
void fake_link_bad(
    struct link *k, enum mv_err err, const char *id, bool is_reply, const char *line);
/* The peer's output ends; it closes its input. */
void fake_link_end(struct link *k);
void fake_link_write_end(struct link *k, int errnum);
/* Sends fail with err from now on; MV_OK: no longer. */
void fake_link_refuse(struct link *k, enum mv_err err);
/* So much has been sent and not been read. */
void fake_link_set_pending(struct link *k, size_t bytes);
bool fake_link_is_closed(const struct link *k); /* link_end_write came */
const struct link_opts *fake_link_opts(const struct link *k);

/* The oldest message sent over any link and not yet taken; NULL: none. Valid until
 * the next take. */
const char *fake_link_take(void);
void fake_link_forget_all(void);
/* Links that are not freed yet. */
unsigned fake_link_live(void);

#endif
