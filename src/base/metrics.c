/* SPDX-License-Identifier: MIT */
/*
 * Process-wide counters.
 *
 * Owns: the array of counters.
 * Driven by: every layer; read by whoever prints them.
 * Invariants: a counter only grows.
 */
#include "mcpvisor/metrics.h"

#include "mcpvisor/err.h"

static uint64_t g_metrics[METRIC_MAX];

static const char *const metrics_names[METRIC_MAX] = {
#define X(id, name, help) [METRIC_##id] = "mcpvisor_" name,
    METRICS_TABLE(X)
#undef X
};

static const char *const metrics_helps[METRIC_MAX] = {
#define X(id, name, help) [METRIC_##id] = (help),
    METRICS_TABLE(X)
#undef X
};

static unsigned
metrics_index(enum metric m)
{
	unsigned i = (unsigned)m;

	MCPVISOR_ASSERT(i < METRIC_MAX);
	return i;
}

void
metrics_add(enum metric m, uint64_t n)
{
	g_metrics[metrics_index(m)] += n;
}

uint64_t
metrics_get(enum metric m)
{
	return g_metrics[metrics_index(m)];
}

const char *
metrics_name(enum metric m)
{
	return metrics_names[metrics_index(m)];
}

const char *
metrics_help(enum metric m)
{
	return metrics_helps[metrics_index(m)];
}
