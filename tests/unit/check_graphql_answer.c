/* layer: upstream, fakes: tree */
/* SPDX-License-Identifier: MIT */
/* What an answer of a GraphQL endpoint becomes: the rows of status and body, the words
 * about retries, bounds, what never appears. */
#include "upstream_graphql_priv.h"

#include "graphql_rig.h"

#define JSON	    "application/json"
#define RESPONSE    "application/graphql-response+json"
#define HTML	    "text/html"
#define SERVER	    "The server failed; retrying once may succeed."
#define DOUBT	    "The change may or may not have been applied; verify before retrying."
#define UNCHANGED   "Retrying unchanged will fail; change the arguments."
#define E_PLAIN	    "{\"message\":\"broke\"}"
#define E_CODE(c)   "{\"message\":\"no\",\"extensions\":{\"code\":\"" c "\"}}"
#define E_ERRORS(e) "{\"errors\":[" e "]}"

static struct gql_asked asked;
static struct gql_exchange exchange;
static struct gql_answer answer;
static struct buf whole, text;

static void
setup(void)
{
	asked = (struct gql_asked){.upstream = "crm",
	    .host = "api.example.com",
	    .op = GRAPHQL_QUERY,
	    .timeout_ms = 30000,
	    .inflight = 16,
	    .response_max = 4096};
	exchange = (struct gql_exchange){.end = GQL_ANSWERED, .status = 200};
	buf_init(&exchange.body, 1u << 26);
	buf_init(&whole, 1u << 27);
	buf_init(&text, 1u << 27);
	gql_answer_init(&answer);
}

static void
teardown(void)
{
	buf_fini(&exchange.body);
	buf_fini(&whole);
	buf_fini(&text);
	gql_answer_fini(&answer);
}

/* The text of the result; the whole of it is in whole. */
static const char *
make(int status, const char *type, const char *body)
{
	struct json_msg msg;
	struct json_iter it;
	struct jtext block;

	ck_assert_ptr_nonnull(body);
	exchange.status = status;
	(void)snprintf(exchange.type, sizeof(exchange.type), "%s", type);
	buf_reset(&exchange.body);
	buf_add_str(&exchange.body, body);
	gql_answer_fini(&answer);
	gql_answer_init(&answer);
	gql_answer_make(&answer, &asked, &exchange);
	buf_reset(&whole);
	buf_reset(&text);
	if (answer.is_internal)
		return "";
	buf_add(&whole, answer.head.data, answer.head.len);
	buf_add(&whole, answer.structured.p, answer.structured.n);
	if (answer.structured.n != 0)
		buf_add_char(&whole, '}');
	ck_assert_int_eq(json_scan(&msg, whole.data, whole.len, false), MV_OK);
	ck_assert_ptr_null(memchr(whole.data, '\n', whole.len));
	json_iter_init(
	    &it, json_member((struct jtext){whole.data, whole.len}, "content"));
	ck_assert(json_next_element(&it, &block));
	ck_assert(json_string_decode(json_member(block, "text"), &text));
	ck_assert(
	    answer.is_error ==
	    json_is_true(json_member((struct jtext){whole.data, whole.len}, "isError")));
	return buf_cstr(&text);
}

/* The rows: what a status, a type and a body become. */
static const struct {
	int row, status;
	const char *type, *body;
	bool is_error;
	const char *has, *has_too; /* in the text */
} rows[] = {
    {1, 200, JSON, "{\"data\":{\"a\":1}}", false, "{\"data\":{\"a\":1}}", ""},
    {1, 200, RESPONSE, "{\"data\":{\"a\":null}}", false, "{\"data\":{\"a\":null}}", ""},
    {1, 200, JSON, "{\"data\":{\"a\":1},\"errors\":[]}", false, "\"a\":1", ""},
    {1, 200, JSON, "{\"data\":{\"a\":1},\"errors\":null}", false, "\"a\":1", ""},
    {1, 200, "", "{\"data\":{}}", false, "{\"data\":{}}", ""},
    {1, 200, JSON, "\xef\xbb\xbf {\"data\":{\"a\":1}}\r\n", false, "{\"data\"", ""},
    {2, 200, JSON, "{\"data\":null,\"errors\":[" E_PLAIN "]}", true,
	"crm: broke. " SERVER, "[{\"message\":\"broke\"}]"},
    {2, 200, JSON,
	"{\"data\":{\"a\":null,\"__typename\":\"Q\"},\"errors\":[" E_PLAIN "]}", true,
	"crm: broke.", ""},
    {2, 294, RESPONSE, "{\"data\":{\"a\":null},\"errors\":[" E_PLAIN "]}", true, "broke",
	""},
    {3, 200, JSON, "{\"data\":{\"a\":1,\"b\":null},\"errors\":[" E_PLAIN "]}", false,
	"{\"data\":{\"a\":1", ""},
    {3, 294, RESPONSE, "{\"errors\":[" E_PLAIN "],\"data\":{\"a\":1}}", false,
	"{\"errors\":[", ""},
    {4, 200, JSON, E_ERRORS(E_PLAIN), true, "crm: broke. " SERVER, ""},
    {4, 200, JSON,
	"{\"errors\":[{\"message\":\"Not authorized.\",\"path\":[\"viewer\",0,\"email\"],"
	"\"extensions\":{\"code\":\"FORBIDDEN\"}}]}",
	true,
	"crm: field viewer.0.email: Not authorized (FORBIDDEN). Not permitted with the "
	"current credentials; retrying will not help.\n[{",
	""},
    {5, 200, JSON, "{}", true, "did not answer with a GraphQL response",
	"neither data nor errors"},
    {5, 200, JSON, "{\"data\":null}", true, "did not answer with a GraphQL response",
	"data is null"},
    {5, 200, JSON, "{\"data\":1}", true, "did not answer with a GraphQL response", ""},
    {5, 200, JSON, "{\"data\":{\"a\":1},\"errors\":\"x\"}", true,
	"did not answer with a GraphQL response", "errors are no array"},
    {5, 200, JSON, "{\"errors\":{\"message\":\"x\"}}", true,
	"did not answer with a GraphQL response", ""},
    {5, 200, JSON, "\"text\"", true, "did not answer with a GraphQL response", ""},
    {6, 200, JSON, "[{\"data\":{\"a\":1}}]", true,
	"did not answer with a GraphQL response", "an array"},
    {7, 200, "multipart/mixed", "--x", true, "incremental delivery is not supported",
	"multipart/mixed"},
    {7, 200, "text/event-stream", "data: x", true,
	"incremental delivery is not supported", ""},
    {8, 200, HTML, "<html>\n\x01hi</html>", true, "HTTP 200 with text/html",
	"\"<html>  hi</html>\""},
    {8, 200, JSON, "{\"data\":{", true, "no GraphQL response: \"{", SERVER},
    {8, 200, JSON, "", true, "answered HTTP 200 without a body", SERVER},
    {8, 204, "", "", true, "answered HTTP 204 without a body", ""},
    {9, 302, HTML, "moved", true, "the endpoint redirects (HTTP 302)", "not help"},
    {9, 308, JSON, "{\"data\":{\"a\":1}}", true, "the endpoint redirects", ""},
    {10, 400, JSON, E_ERRORS(E_PLAIN), true,
	"crm (GraphQL API at api.example.com) answered HTTP 400.\nbroke.\n", UNCHANGED},
    {10, 500, "text/plain", E_ERRORS(E_CODE("NOT_FOUND")), true,
	"HTTP 500. This is a server-side fault.\nno (NOT_FOUND).",
	"The object does not exist or is not visible; check the id."},
    {11, 400, RESPONSE, "{\"data\":{\"a\":1}}", true, "answered HTTP 400.", UNCHANGED},
    {11, 500, JSON, "{\"data\":{\"a\":1},\"errors\":[" E_PLAIN "]}", true, "HTTP 500",
	"broke"},
    {12, 401, JSON, "", true,
	"credentials for crm were refused; retrying will not help until they are renewed",
	"HTTP 401"},
    {12, 403, JSON, "{\"data\":{\"a\":1}}", true, "credentials for crm were refused",
	"HTTP 403"},
    {12, 403, JSON, E_ERRORS(E_PLAIN), true, "credentials for crm were refused", "broke"},
    {14, 404, HTML, "<html>", true,
	"crm (GraphQL API at api.example.com) answered HTTP 404.", UNCHANGED},
    {14, 503, HTML, "<html>", true,
	"crm (GraphQL API at api.example.com) answered HTTP 503. This is a server-side "
	"fault.",
	SERVER},
};

START_TEST(rows_of_status_and_body)
{
	const char *s = make(rows[_i].status, rows[_i].type, rows[_i].body);

	ck_assert_msg(
	    answer.is_error == rows[_i].is_error, "row %d: %s", rows[_i].row, s);
	ck_assert_msg(strstr(s, rows[_i].has) != NULL, "row %d: %s", rows[_i].row, s);
	ck_assert_msg(strstr(s, rows[_i].has_too) != NULL, "row %d: %s", rows[_i].row, s);
	ck_assert(answer.is_refused == (rows[_i].row == 12));
	ck_assert_ptr_null(strstr(s, "<html></html>"));
	ck_assert(answer.is_error == (answer.structured.n == 0));
}
END_TEST

/* What a mutation hears is never that it may be repeated. */
START_TEST(mutations_doubt)
{
	const char *s;

	asked.op = GRAPHQL_MUTATION;
	s = make(rows[_i].status, rows[_i].type, rows[_i].body);
	ck_assert_ptr_null(strstr(s, "retrying once may succeed"));
	ck_assert_ptr_null(strstr(s, "may succeed if repeated"));
	if (rows[_i].row == 2 && strstr(rows[_i].body, "code") == NULL)
		ck_assert_ptr_nonnull(strstr(s, DOUBT));
}
END_TEST

static const struct {
	enum gql_end end;
	enum graphql_op op;
	const char *why, *has;
} ends[] = {
    {GQL_TIMEOUT, GRAPHQL_QUERY, "",
	"crm: there was no complete answer within 30 s. It may succeed if repeated."},
    {GQL_TIMEOUT, GRAPHQL_MUTATION, "",
	"crm: the change could not be confirmed within 30 s. It may already have been "
	"applied; check before repeating."},
    {GQL_UNREACHABLE, GRAPHQL_MUTATION, "no name",
	"crm (GraphQL API at api.example.com) cannot be reached: no name. Nothing was "
	"sent; "
	"retrying later may succeed."},
    {GQL_BROKEN, GRAPHQL_QUERY, "reset",
	"broke the connection before its answer was complete: reset. It may succeed if "
	"repeated."},
    {GQL_BROKEN, GRAPHQL_MUTATION, "", "It may already have been applied"},
    {GQL_TOO_LARGE, GRAPHQL_QUERY, "",
	"crm: the answer is longer than 4096 bytes (response_max). Ask for fewer fields "
	"or "
	"for a smaller page."},
    {GQL_TOO_LARGE, GRAPHQL_MUTATION, "", "It may already have been applied"},
    {GQL_NO_HEADERS, GRAPHQL_QUERY, "/run/secrets/x is missing",
	"its credentials cannot be read by the gateway now"},
    {GQL_NOT_READY, GRAPHQL_QUERY, "introspection is disabled there",
	"is not ready: introspection is disabled there. Nothing was sent"},
    {GQL_BUSY, GRAPHQL_QUERY, "",
	"crm: 16 requests are under way (max_inflight) and as many wait as may. Nothing "
	"was sent; retrying later may succeed."},
};

START_TEST(ends_without_an_answer)
{
	const char *s;

	exchange.end = ends[_i].end;
	asked.op = ends[_i].op;
	(void)snprintf(exchange.why, sizeof(exchange.why), "%s", ends[_i].why);
	s = make(0, "", "");
	ck_assert(answer.is_error);
	ck_assert_msg(strstr(s, ends[_i].has) != NULL, "%s", s);
	ck_assert_ptr_null(strstr(s, "/run/"));
}
END_TEST

START_TEST(no_memory_is_internal)
{
	exchange.end = GQL_NO_MEMORY;
	(void)make(0, "", "");
	ck_assert(answer.is_internal);
}
END_TEST

static const struct {
	const char *code, *query, *mutation;
} codes[] = {
    {"GRAPHQL_PARSE_FAILED", "a fault in the gateway's operation", NULL},
    {"GRAPHQL_VALIDATION_FAILED", "not in the arguments; retrying will not help.", NULL},
    {"OPERATION_RESOLUTION_FAILURE", "a fault in the gateway's operation", NULL},
    {"BAD_USER_INPUT", UNCHANGED, NULL},
    {"BAD_REQUEST", UNCHANGED, NULL},
    {"ARGUMENT_VALIDATION", UNCHANGED, NULL},
    {"validation-failed", UNCHANGED, NULL},
    {"UNAUTHENTICATED", "Not permitted with the current credentials", NULL},
    {"Unauthorized", "Not permitted with the current credentials", NULL},
    {"invalid-jwt", "Not permitted with the current credentials", NULL},
    {"FORBIDDEN", "Not permitted with the current credentials", NULL},
    {"ACCESS_DENIED", "Not permitted with the current credentials", NULL},
    {"access-denied", "Not permitted with the current credentials", NULL},
    {"THROTTLED", "Rate limited; retry later.", NULL},
    {"RATE_LIMITED", "Rate limited; retry later.", NULL},
    {"TOO_MANY_REQUESTS", "Rate limited; retry later.", NULL},
    {"NOT_FOUND", "The object does not exist or is not visible; check the id.", NULL},
    {"INTERNAL_SERVER_ERROR", SERVER, DOUBT},
    {"DOWNSTREAM_SERVICE_ERROR", SERVER, DOUBT},
    {"TIMEOUT", SERVER, DOUBT},
    {"SOMETHING_ELSE", SERVER, DOUBT},
};

/* Each code where it may stand. */
START_TEST(codes_and_retries)
{
	static const char *const forms[][2] = {
	    {"{\"errors\":[{\"message\":\"no\",\"extensions\":{\"code\":\"", "\"}}]}"},
	    {"{\"data\":null,\"errors\":[{\"message\":\"no\",\"errorType\":\"", "\"}]}"},
	    {"{\"errors\":[{\"type\":\"", "\",\"message\":\"no\"}]}"},
	};
	char body[256];

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		(void)snprintf(body, sizeof(body), "%s%s%s", forms[i][0], codes[_i].code,
		    forms[i][1]);
		asked.op = GRAPHQL_QUERY;
		ck_assert_ptr_nonnull(strstr(make(200, JSON, body), codes[_i].query));
		ck_assert_ptr_nonnull(strstr(text.data, codes[_i].code));
		asked.op = GRAPHQL_MUTATION;
		ck_assert_ptr_nonnull(strstr(make(200, JSON, body),
		    codes[_i].mutation != NULL ? codes[_i].mutation : codes[_i].query));
	}
}
END_TEST

START_TEST(retry_after)
{
	exchange.retry_after_s = 20;
	ck_assert_ptr_nonnull(
	    strstr(make(503, HTML, ""), "crm (GraphQL API at api.example.com) answered "
					"HTTP 503. This is a server-side "
					"fault; retry after 20 s may succeed."));
	ck_assert_ptr_nonnull(
	    strstr(make(429, JSON, ""), "Rate limited; retry after 20 s."));
	ck_assert_ptr_nonnull(strstr(make(200, JSON, E_ERRORS(E_CODE("THROTTLED"))),
	    "Rate limited; retry after 20 s."));
	exchange.retry_after_s = 0;
	ck_assert_ptr_nonnull(strstr(make(429, JSON, ""), "Rate limited; retry later."));
}
END_TEST

START_TEST(execute_hears_of_its_query)
{
	asked.is_execute = true;
	ck_assert_ptr_nonnull(
	    strstr(make(200, JSON, E_ERRORS(E_CODE("GRAPHQL_VALIDATION_FAILED"))),
		"Change the query."));
}
END_TEST

START_TEST(insides_are_left_out)
{
	const char *s = make(200, JSON,
	    "{\"errors\":[{\"message\":\"x\\n    at /srv/app/a.js:1\",\"debugMessage\":"
	    "\"D1\",\"extensions\":{\"code\":\"C\",\"exception\":{\"stacktrace\":[\"D2\"]"
	    "},"
	    "\"stacktrace\":[\"D3\"],\"deep\":[{\"trace\":\"D4\",\"kept\": true}],"
	    "\"tr\\u0061ce\":\"D5\",\"originalError\":{\"message\":\"y\\n at "
	    "D6\",\"stack\":\"D7\"}}}]}");

	ck_assert_ptr_null(strstr(s, "D1"));
	ck_assert_ptr_null(strstr(s, "D2"));
	ck_assert_ptr_null(strstr(s, "D3"));
	ck_assert_ptr_null(strstr(s, "D4"));
	ck_assert_ptr_null(strstr(s, "D5"));
	ck_assert_ptr_null(strstr(s, "D6"));
	ck_assert_ptr_null(strstr(s, "D7"));
	ck_assert_ptr_null(strstr(s, "/srv/app"));
	ck_assert_ptr_nonnull(strstr(s, "crm: x (C)."));
	ck_assert_ptr_nonnull(strstr(s, "[{\"message\":\"x\",\"extensions\":{\"code\":"
					"\"C\",\"deep\":[{\"kept\":true}],"
					"\"originalError\":{\"message\":\"y\"}}}]"));
}
END_TEST

START_TEST(bounds)
{
	struct buf body;
	const char *s;

	buf_init(&body, 1u << 24);
	buf_add_str(&body, "{\"errors\":[");
	for (int i = 0; i < 2000; i++)
		buf_addf(
		    &body, "%s{\"message\":\"number %d of them\"}", i > 0 ? "," : "", i);
	buf_add_str(&body, "]}");
	s = make(200, JSON, buf_cstr(&body));
	ck_assert_uint_le(strlen(s), GQL_ERROR_BYTES);
	ck_assert_uint_gt(strlen(s), GQL_ERROR_BYTES / 2);
	ck_assert_ptr_nonnull(strstr(s, "number 4 of them."));
	ck_assert_ptr_null(strstr(s, "number 5 of them."));
	ck_assert_ptr_nonnull(strstr(s, "\nand 1995 more.\n" SERVER));
	ck_assert_int_eq(s[strlen(s) - 1], ']');
	buf_reset(&body);
	buf_add_str(&body, "{\"errors\":[{\"message\":\"");
	for (int i = 0; i < 20000; i++)
		buf_add_str(&body, "\xc3\xa9");
	buf_add_str(&body, "\"}]}");
	s = make(200, JSON, buf_cstr(&body));
	ck_assert_uint_lt(strlen(s), 600); /* none of its JSON fits */
	ck_assert_ptr_nonnull(strstr(s, "\xc3\xa9..."));
	buf_fini(&body);
}
END_TEST

/* Bytes stay: order, white space, digits; breaks between tokens alone become blanks. */
START_TEST(bytes_of_a_good_body)
{
	static const char body[] =
	    "{ \"data\":\r\n\t{\"n\":12345678901234567890,\"s\":\"\\u00e9\\n\"}}";

	ck_assert_str_eq(make(200, JSON, body), body);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&whole),
	    "\"structuredContent\":{ \"data\":  \t{\"n\":12345678901234567890,\"s\":"
	    "\"\\u00e9\\n\"}}}"));
	asked.is_plain = true;
	ck_assert_str_eq(make(200, JSON, body), body);
	ck_assert_ptr_null(strstr(buf_cstr(&whole), "structuredContent"));
}
END_TEST

/* Whoever reads such an answer may take either. */
static const char *const twice[] = {
    "{\"data\":{\"a\":1},\"errors\":[],\"errors\":[" E_PLAIN "]}",
    "{\"data\":{\"a\":1},\"errors\":[" E_PLAIN "],\"errors\":[]}",
    "{\"data\":{\"a\":1},\"data\":null,\"errors\":[" E_PLAIN "]}",
    "{\"data\":{\"a\":1},\"d\\u0061ta\":null}",
};

START_TEST(members_that_are_twice)
{
	const char *s = make(200, JSON, twice[_i]);

	ck_assert(answer.is_error);
	ck_assert_ptr_nonnull(strstr(s, "did not answer with a GraphQL response: its "
					"data or its errors are there twice."));
}
END_TEST

/* The message around it must not become deeper than a message may be. */
START_TEST(depth_of_a_good_body)
{
	static const unsigned depths[] = {900, 985, 995, 997, 998};
	struct buf body;

	buf_init(&body, 1u << 16);
	buf_add_str(&body, "{\"data\":{\"a\":");
	for (unsigned i = 0; i < depths[_i]; i++)
		buf_add_char(&body, '[');
	for (unsigned i = 0; i < depths[_i]; i++)
		buf_add_char(&body, ']');
	buf_add_str(&body, "}}");
	ck_assert_str_eq(make(200, JSON, buf_cstr(&body)), buf_cstr(&body));
	ck_assert(!answer.is_error);
	ck_assert_int_eq(answer.structured.n != 0, depths[_i] <= 985);
	buf_fini(&body);
}
END_TEST

/* As text it is twice as long, and more than a message may be. */
START_TEST(a_body_of_quotes)
{
	static char quotes[1u << 20];
	struct buf body;
	const char *s;

	asked.is_plain = true;
	memset(quotes, '\\', sizeof(quotes));
	for (size_t i = 1; i < sizeof(quotes); i += 2)
		quotes[i] = '"';
	buf_init(&body, CAP_MESSAGE_BYTES);
	buf_add_str(&body, "{\"data\":{\"a\":\"");
	while (body.len < CAP_MESSAGE_BYTES * 3 / 5 && body.err == MV_OK)
		buf_add(&body, quotes, sizeof(quotes));
	buf_add_str(&body, "\"}}");
	s = make(200, JSON, buf_cstr(&body));
	ck_assert(answer.is_error && !answer.is_internal);
	ck_assert_ptr_nonnull(strstr(s, "response_max"));
	buf_fini(&body);
}
END_TEST

#define TOKEN	"sk-abc/def+0123456789"
#define TOKEN_J "sk-abc\\/def+0123456789"
static const struct {
	int status;
	const char *type, *body;
} repeated[] = {
    {200, JSON, "{\"errors\":[{\"message\":\"bad 'Bearer " TOKEN "'\"}]}"},
    {200, JSON,
	"{\"errors\":[{\"message\":\"bad '" TOKEN_J
	"'\",\"extensions\":{\"got\":\"" TOKEN_J "\"}}]}"},
    {500, JSON, "{\"errors\":[{\"message\":\"m\",\"path\":[\"" TOKEN "\"]}]}"},
    {401, JSON,
	"{\"errors\":[{\"message\":\"m\",\"extensions\":{\"code\":\"" TOKEN "\"}}]}"},
    {200, HTML, "<html>Authorization: Bearer " TOKEN},
    {200, TOKEN, "<html>"},
};

START_TEST(our_headers_are_taken_out)
{
	static const char lines[] = "X-Key: tenant-7\0Authorization: Bearer " TOKEN;
	const char *s;

	buf_init(&exchange.headers, sizeof(lines));
	buf_add(&exchange.headers, lines, sizeof(lines));
	s = make(repeated[_i].status, repeated[_i].type, repeated[_i].body);
	ck_assert(answer.is_error);
	ck_assert_ptr_null(strstr(s, "sk-abc"));
	ck_assert_ptr_null(strstr(s, "0123456789"));
	ck_assert_msg(_i == 0 || strstr(s, "****") != NULL, "%s", s);
	/* What is good is the endpoint's own affair. */
	make(200, JSON, "{\"data\":{\"a\":\"" TOKEN "\"}}");
	ck_assert_ptr_nonnull(strstr(buf_cstr(&whole), TOKEN));
	buf_fini(&exchange.headers);
}
END_TEST

int
main(void)
{
	const struct rig_test tests[] = {
	    {rows_of_status_and_body, COUNT(rows)},
	    {mutations_doubt, COUNT(rows)},
	    {ends_without_an_answer, COUNT(ends)},
	    {no_memory_is_internal, 1},
	    {codes_and_retries, COUNT(codes)},
	    {retry_after, 1},
	    {execute_hears_of_its_query, 1},
	    {insides_are_left_out, 1},
	    {bounds, 1},
	    {bytes_of_a_good_body, 1},
	    {members_that_are_twice, COUNT(twice)},
	    {depth_of_a_good_body, 5},
	    {a_body_of_quotes, 1},
	    {our_headers_are_taken_out, COUNT(repeated)},
	};

	return rig_run("graphql_answer", setup, teardown, tests, COUNT(tests));
}
