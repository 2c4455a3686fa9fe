/* SPDX-License-Identifier: MIT */
/* What "status" prints. */
#ifndef MCPVISOR_APP_STATUS_H
#define MCPVISOR_APP_STATUS_H

#include <stdio.h>

struct json_t;

/* status is the daemon's answer; width 0: lines are not cut. */
void status_print(const struct json_t *status, FILE *out, unsigned width);

#endif
