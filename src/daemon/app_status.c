/* SPDX-License-Identifier: MIT */
/*
 * The status of the daemon as one JSON object, and as tables for people.
 *
 * Driven by: the control socket (put), "mcpvisor status" (print).
 * Invariants: every number comes from the object that it is about, at the moment of the
 * question; nothing here can change anything.
 */
#include "app_status.h"

#include "app_serve.h"

#include "mcpvisor/cli.h"
#include "mcpvisor/clock.h"
#include "mcpvisor/curl_loop.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

static json_t *
number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* Text that may come from a peer: what is not UTF-8 shows as nothing. */
static json_t *
text(const char *s)
{
	json_t *j = s != NULL && s[0] != '\0' ? json_string(s) : NULL;

	return j != NULL ? j : json_null();
}

/* What the results that are no errors have told. */
static json_t *
status_of_answers(const struct upstream_stats *st, uint64_t n_ok)
{
	json_t *o = json_object();
	uint64_t seen = 0;

	for (unsigned i = 0; i < ANSWER_MAX; i++) {
		if (i == ANSWER_UNKNOWN)
			continue;
		seen += st->answers[i];
		(void)json_object_set_new(o, outcome_answer_text((enum outcome_answer)i),
		    number(st->answers[i]));
	}
	/* Those of prompts and resources are among them. */
	(void)json_object_set_new(o, outcome_answer_text(ANSWER_UNKNOWN),
	    number(n_ok > seen ? n_ok - seen : 0));
	return o;
}

/* What has been made of results of tools. */
static json_t *
status_of_labels(const struct upstream_stats *st)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < LABEL_REASON_MAX; i++)
		(void)json_object_set_new(
		    o, label_reason_text((enum label_reason)i), number(st->labels[i]));
	return o;
}

/* A call ends on three axes; they are never folded into one. */
static json_t *
status_of_calls(const struct upstream_stats *st, size_t in_flight)
{
	uint64_t results = st->returned - st->rpc_errors;

	return json_pack("{s:o, s:o, s:{s:o, s:o, s:o, s:o, s:o, s:o, s:o}, "
			 "s:{s:o, s:o}, s:o, s:o}",
	    "total", number(st->calls), "in_flight", number(in_flight), "transport",
	    "returned", number(results), "error", number(st->rpc_errors), "timeout",
	    number(st->timeouts), "busy", number(st->busy), "cancelled",
	    number(st->cancelled), "died",
	    number(st->failed - st->timeouts > st->busy
		       ? st->failed - st->timeouts - st->busy
		       : 0),
	    "failed", number(st->failed), "tool", "ok", number(results - st->tool_errors),
	    "is_error", number(st->tool_errors), "answer",
	    status_of_answers(st, results - st->tool_errors), "labels",
	    status_of_labels(st));
}

static json_t *
status_of_lists(const struct upstream *u)
{
	json_t *o = json_object();

	for (unsigned k = 0; k < LIST_MAX; k++) {
		const struct ulist *l = upstream_list(u, (enum list_kind)k);

		(void)json_object_set_new(o, list_member((enum list_kind)k),
		    l->is_known ? number(l->n) : json_null());
	}
	return o;
}

/* Of a remote one: where it is, and nothing of its path, which may be a secret. */
static json_t *
status_of_origin(const struct upstream_conf *conf)
{
	struct url_origin o;

	if (conf->url == NULL || !url_read_origin(conf->url, &o))
		return json_null();
	return json_sprintf("%s://%s:%u", o.scheme, o.host, (unsigned)o.port);
}

static json_t *
status_of_identity(const struct gateway *g, const struct upstream *u)
{
	struct identity_counts n;

	gateway_count_identities(g, u, &n);
	return json_pack("{s:o, s:o, s:o}", "resolved", number(n.resolved), "unresolved",
	    number(n.unresolved), "unknown", number(n.unknown));
}

static json_t *
status_of_upstream(const struct gateway *g, const struct upstream *u)
{
	struct upstream_stats st = gateway_stats(g, u);

	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			 "s:o, s:{s:o, s:o, s:o}, s:o}",
	    "name", text(upstream_name(u)), "state",
	    upstream_state_text(upstream_state(u)), "reason", text(upstream_reason(u)),
	    "state_ms", number(st.state_ms), "pid",
	    st.pid > 0 ? number((uint64_t)st.pid) : json_null(), "url",
	    status_of_origin(upstream_conf_of(u)), "restarts", number(st.restarts),
	    "next_start_ms", st.next_ms > 0 ? number(st.next_ms) : json_null(),
	    "revision", text(upstream_revision_text(u)), "instances",
	    number(gateway_count_instances(g, u)), "lists", status_of_lists(u), "calls",
	    status_of_calls(&st, gateway_in_flight(g, u)), "identity",
	    status_of_identity(g, u), "queue", "held", number(st.held), "held_bytes",
	    number(st.held_bytes), "out_bytes", number(st.out_bytes), "noise_lines",
	    number(st.noise_lines));
}

/* The second number of statm, in pages. */
static uint64_t
status_resident(void)
{
	char line[128];
	const char *second = NULL;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f == NULL)
		return 0;
	if (fgets(line, sizeof(line), f) != NULL)
		second = strchr(line, ' ');
	(void)fclose(f);
	return second != NULL
		   ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE)
		   : 0;
}

static json_t *
status_of_counters(void)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < METRIC_MAX; i++)
		(void)json_object_set_new(
		    o, metrics_name((enum metric)i), number(metrics_get((enum metric)i)));
	return o;
}

static json_t *
status_of_listen(const struct server *s)
{
	json_t *a = json_array();
	const char *bound;

	for (size_t i = 0; (bound = endpoint_http_address(s->endpoint, i)) != NULL; i++)
		(void)json_array_append_new(a, text(bound));
	return a;
}

void
server_put_status(void *arg, struct buf *out)
{
	struct server *s = arg;
	struct endpoint_stats e = endpoint_http_stats(s->endpoint);
	json_t *upstreams = json_array(), *o;
	char *dump;

	for (size_t i = 0; i < gateway_count(s->gateway); i++)
		(void)json_array_append_new(upstreams,
		    status_of_upstream(s->gateway, gateway_upstream(s->gateway, i)));
	o = json_pack("{s:s, s:i, s:o, s:o, s:i, s:b, s:o, s:{s:o, s:o, s:o, s:o}, "
		      "s:{s:o, s:o, s:o}, s:o, s:o}",
	    "version", MCPVISOR_VERSION, "pid", (int)getpid(), "uptime_ms",
	    number(clock_now_ms() - s->started_ms), "conf",
	    text(s->a->conf_file ? s->a->conf_file : s->a->mcp_json), "reloads",
	    (int)s->reloads, "stopping", s->stopping, "listen", status_of_listen(s),
	    "clients", "sessions", number(e.sessions), "connections",
	    number(e.connections), "streams", number(e.streams), "in_flight",
	    number(e.in_flight), "memory", "in_use", number(mem_in_use()), "budget",
	    mem_budget() > 0 ? number(mem_budget()) : json_null(), "resident",
	    number(status_resident()), "upstreams", upstreams, "counters",
	    status_of_counters());
	dump = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
	buf_add_str(out, dump != NULL ? dump : "{}");
	mem_free(dump);
	json_decref(o);
}

/* ---- for people ---- */

static json_int_t
at(const json_t *o, const char *a, const char *b)
{
	const json_t *v = json_object_get(o, a);

	return json_integer_value(b != NULL ? json_object_get(v, b) : v);
}

static const char *
string_at(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s != NULL ? s : "";
}

/* 90 s, 15 min, 2 h, 3 d: two digits are enough to read. */
static void
print_span(char out[32], json_int_t ms)
{
	static const struct {
		json_int_t ms;
		const char *unit;
	} units[] = {
	    {86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
	size_t i = 0;

	while (i < 4 && ms < 2 * units[i].ms)
		i++;
	(void)snprintf(
	    out, 32, "%" JSON_INTEGER_FORMAT " %s", ms / units[i].ms, units[i].unit);
}

static void
print_bytes(char out[32], json_int_t n)
{
	if (n < 10240)
		(void)snprintf(out, 32, "%" JSON_INTEGER_FORMAT " B", n);
	else if (n < (json_int_t)10 * 1024 * 1024)
		(void)snprintf(out, 32, "%" JSON_INTEGER_FORMAT " KiB", n / 1024);
	else
		(void)snprintf(
		    out, 32, "%" JSON_INTEGER_FORMAT " MiB", n / (1024 * 1024));
}

#define NAME_COLUMNS 40
#define NUMBERS	     8 /* columns of a row */
#define ROW_FORMAT   "  %-8s %8s %7s %8s %6s %6s %7s %7s %6s %6s %8s  %s"

/* The first columns of a name, with spaces behind a shorter one; out has room for four
 * bytes a column. */
static size_t
put_name(char *out, const char *s, unsigned columns)
{
	size_t n = 0;

	while (s[n] != '\0' && cli_text_columns(s, n + 1) <= columns)
		n++;
	memcpy(out, s, n);
	for (unsigned k = cli_text_columns(s, n); k < columns; k++)
		out[n++] = ' ';
	out[n] = '\0';
	return n;
}

/* Names and reasons come from elsewhere: a row is one line, whatever is in them. */
static void
print_row(FILE *out, const char *row, unsigned width)
{
	size_t n = strlen(row);

	while (n > 0 && row[n - 1] == ' ')
		n--;
	cli_print_cut(out, row, n, width);
	(void)fputc('\n', out);
}

static void
print_upstream(const json_t *u, FILE *out, unsigned name_width, unsigned width)
{
	const json_t *calls = json_object_get(u, "calls");
	const struct {
		const json_t *of;
		const char *a, *b;
	} numbers[NUMBERS] = {{calls, "total", NULL}, {calls, "transport", "failed"},
	    {calls, "tool", "is_error"}, {calls, "answer", "partial"},
	    {calls, "labels", "suspect"}, {calls, "answer", "null_identity"},
	    {calls, "in_flight", NULL}, {u, "restarts", NULL}};
	char span[32], pid[24] = "-", n[NUMBERS][24], row[2048];
	size_t used = put_name(row, string_at(u, "name"), name_width);

	print_span(span, at(u, "state_ms", NULL));
	if (json_is_integer(json_object_get(u, "pid")))
		(void)snprintf(
		    pid, sizeof(pid), "%" JSON_INTEGER_FORMAT, at(u, "pid", NULL));
	else if (json_is_string(json_object_get(u, "url")))
		(void)snprintf(pid, sizeof(pid), "remote");
	for (size_t i = 0; i < NUMBERS; i++)
		(void)snprintf(n[i], sizeof(n[i]), "%" JSON_INTEGER_FORMAT,
		    at(numbers[i].of, numbers[i].a, numbers[i].b));
	(void)snprintf(row + used, sizeof(row) - used, ROW_FORMAT, string_at(u, "state"),
	    span, pid, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7],
	    string_at(u, "reason"));
	print_row(out, row, width);
}

static void
print_upstreams(const json_t *upstreams, FILE *out, unsigned width)
{
	unsigned name_width = 8;
	char row[512];
	size_t used;

	for (size_t i = 0; i < json_array_size(upstreams); i++) {
		const char *s = string_at(json_array_get(upstreams, i), "name");
		unsigned n = cli_text_columns(s, strlen(s));

		name_width = n > name_width ? n : name_width;
	}
	if (name_width > NAME_COLUMNS)
		name_width = NAME_COLUMNS;
	used = put_name(row, "UPSTREAM", name_width);
	(void)snprintf(row + used, sizeof(row) - used, ROW_FORMAT, "STATE", "SINCE",
	    "PID", "CALLS", "FAILED", "ERRORS", "PARTIAL", "SUSPECT", "NO-ID", "OPEN",
	    "RESTARTS", "REASON");
	print_row(out, row, width);
	for (size_t i = 0; i < json_array_size(upstreams); i++)
		print_upstream(json_array_get(upstreams, i), out, name_width, width);
}

void
status_print(const json_t *status, FILE *out, unsigned width)
{
	const json_t *listen = json_object_get(status, "listen");
	const char *last = "";
	char up[32], use[32], rss[32];

	print_span(up, at(status, "uptime_ms", NULL));
	print_bytes(use, at(status, "memory", "in_use"));
	print_bytes(rss, at(status, "memory", "resident"));
	(void)fprintf(out,
	    "mcpvisor %s, pid %" JSON_INTEGER_FORMAT ", up %s, memory %s in use, %s "
	    "resident\n",
	    string_at(status, "version"), at(status, "pid", NULL), up, use, rss);
	(void)fprintf(out,
	    "clients: %" JSON_INTEGER_FORMAT " sessions, %" JSON_INTEGER_FORMAT
	    " connections, %" JSON_INTEGER_FORMAT " requests in flight\n",
	    at(status, "clients", "sessions"), at(status, "clients", "connections"),
	    at(status, "clients", "in_flight"));
	/* Rows may share an address. */
	for (size_t i = 0; i < json_array_size(listen); i++) {
		const char *now = json_string_value(json_array_get(listen, i));

		if (now != NULL && strcmp(now, last) != 0)
			(void)fprintf(out, "listening: %s\n", now);
		last = now != NULL ? now : last;
	}
	(void)fputc('\n', out);
	print_upstreams(json_object_get(status, "upstreams"), out, width);
}
