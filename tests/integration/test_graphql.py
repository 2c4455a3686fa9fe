# SPDX-License-Identifier: MIT
"""A GraphQL endpoint as an upstream: its tools, what is sent, what each answer becomes."""
import gzip
import json
import re
import time

import pytest

from graphql_server import GraphqlServer, reply
from upstream import PATIENCE, wait_for

OPERATIONS = """
# Look up one user.
query GetUser($id: ID!, $note: String) { user(id: $id) { ...Parts } }
query Big($n: BigInt) { big(n: $n) }
mutation Rename($id: ID!, $name: String) { rename(id: $id, name: $name) { id } }
"""
FRAGMENT = '"told" fragment Parts on User { id name }\n'
PLAIN = {"message": "broke"}
SERVER = "The server failed; retrying once may succeed."
DOUBT = "The change may or may not have been applied; verify before retrying."
UNCHANGED = "Retrying unchanged will fail; change the arguments."


@pytest.fixture
def endpoint():
    s = GraphqlServer()
    yield s
    s.close()


@pytest.fixture
def folder(tmp_path):
    at = tmp_path / "operations"
    at.mkdir()
    (at / "users.graphql").write_text(OPERATIONS)
    (at / "parts.graphql").write_text(FRAGMENT)
    return at


@pytest.fixture
def front(serve_conf, endpoint, folder):
    """front(**options): a daemon over the endpoint, and a client of it."""

    def start(client=True, listen=("127.0.0.1:0",), **options):
        own = {"kind": "graphql", "url": endpoint.url,
               "operations": [str(folder / "*.graphql")], "mutations": "explicit",
               "restart_base_ms": 50, "restart_max_ms": 100, **options}
        mv = serve_conf(crm=own, listen=listen)
        return (mv, mv.legacy()) if client else mv

    return start


def definitions(c):
    return {t["name"]: t for t in c.ask("tools/list").result["tools"]}


def text_of(result):
    return result["content"][0]["text"]


def called(c, name="GetUser", args=None):
    args = {"id": "1"} if args is None else args
    return c.call("crm__" + name, args).result


def failed(c, *words, name="GetUser", args=None):
    result = called(c, name, args)
    assert result.get("isError") is True and "structuredContent" not in result, result
    for word in words:
        assert word in text_of(result), text_of(result)
    return text_of(result)


def answers(endpoint, status, body, kind="application/json", **headers):
    endpoint.answer = lambda h, asked: reply(h, status, body, kind, **headers)


# -- tools -------------------------------------------------------------------------------


def test_operations_are_tools(front):
    c = front()[1]
    tools = definitions(c)
    assert sorted(tools) == ["crm__Big", "crm__GetUser", "crm__Rename"]
    user = tools["crm__GetUser"]
    assert user["description"] == "Look up one user."
    assert user["inputSchema"]["required"] == ["id"]
    assert user["inputSchema"]["additionalProperties"] is False
    assert user["inputSchema"]["properties"]["id"]["type"] == "string"
    assert tools["crm__Big"]["inputSchema"]["properties"]["n"]["type"] == "string"
    assert user["annotations"] == {"readOnlyHint": True, "destructiveHint": False,
                                   "idempotentHint": True, "openWorldHint": True}
    assert tools["crm__Rename"]["annotations"] == {
        "readOnlyHint": False, "destructiveHint": True, "idempotentHint": False,
        "openWorldHint": True}


def test_mutations_are_off_unless_asked_for(front):
    mv, c = front(mutations="none", fields=["*"], execute_tool="queries")
    assert sorted(definitions(c)) == ["crm__Big", "crm__GetUser", "crm__big",
                                      "crm__crm_execute", "crm__user", "crm__users"]
    wait_for(lambda: re.search("no tool.*mutations = none", mv.log()), 5, "it is told")


def test_fields_are_tools(front, endpoint):
    c = front(fields=["Query.user", "*.rename"], mutations="all", name_style="snake")[1]
    tools = definitions(c)
    assert {"crm__user", "crm__mutate_rename", "crm__get_user"} <= set(tools)
    assert tools["crm__user"]["description"] == "One user."
    assert called(c, "user", {"id": "7"})["structuredContent"] == {"data": {"ok": True}}
    assert endpoint.seen()[-1].msg["variables"] == {"id": "7"}
    assert re.search(r"\bid\b.*\bname\b", endpoint.seen()[-1].msg["query"], re.S)


def test_the_request(front, endpoint):
    c = front(headers={"X-Client": "gateway"})[1]
    meta = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "tracestate": "a=b"}
    result = c.ask("tools/call", {"name": "crm__GetUser", "_meta": meta, "arguments": {
        "id": "1"}}).result
    assert result["structuredContent"] == {"data": {"ok": True}}
    assert text_of(result) == '{"data": {"ok": true}}' and "isError" not in result
    asked = endpoint.seen()[-1]
    assert list(asked.msg) == ["query", "operationName", "variables"]
    assert asked.name == "GetUser"
    assert asked.msg["query"].count("fragment") == 1 and "told" not in asked.msg["query"]
    assert "#" not in asked.msg["query"] and "Rename" not in asked.msg["query"]
    assert asked.header("Content-Type") == "application/json"
    assert asked.header("Accept") == \
        "application/graphql-response+json, application/json;q=0.9"
    assert asked.header("User-Agent").startswith("mcpvisor/")
    assert asked.header("X-Client") == "gateway"
    assert asked.header("traceparent") == meta["traceparent"]
    assert asked.header("tracestate") == "a=b"
    assert endpoint.introspections()[0].header("X-Client") == "gateway"
    c.ask("tools/call", {"name": "crm__GetUser", "arguments": {"id": "1"}, "_meta": {
        "traceparent": "00-nonsense\\r\\nX: y"}}).result
    assert endpoint.seen()[-1].header("traceparent") is None


def test_arguments_keep_their_bytes(front, endpoint):
    c = front()[1]
    line = json.dumps({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {
        "name": "crm__Big", "arguments": {"n": "N"}}})
    for raw in (b'"12345678901234567890"', b'"\\u0031"', b"null"):
        c.post(json.loads(line), body=line.replace('"N"', raw.decode()).encode()).result
        assert b'"variables":{"n": ' + raw + b"}" in endpoint.seen()[-1].raw
    called(c, "Big", {})
    assert endpoint.seen()[-1].raw.endswith(b'"variables":{}}')
    called(c, "GetUser", {"id": 12, "note": None})
    assert endpoint.seen()[-1].msg["variables"] == {"id": 12, "note": None}


@pytest.mark.parametrize("name, args, words", [
    ("GetUser", {}, ["Missing required argument 'id'", "GraphQL type ID!"]),
    ("GetUser", {"id": True}, ["'id'", "Retrying unchanged will fail."]),
    ("GetUser", {"id": None}, ["'id'"]),
    ("GetUser", {"id": "1", "Id": "2"}, ["'Id'"]),
    ("GetUser", {"id": "1", "other": 1}, ["'other'"]),
])
def test_arguments_that_are_not_sent(front, endpoint, name, args, words):
    c = front()[1]
    failed(c, *words, name=name, args=args)
    assert endpoint.seen() == []


def test_arguments_that_are_no_object(front):
    c = front()[1]
    assert c.ask("tools/call", {"name": "crm__GetUser", "arguments": [1]}).code == -32602
    assert c.call("crm__Nothing", {}).code == -32602


# -- answers -----------------------------------------------------------------------------

GQL = "application/graphql-response+json"
ROWS = [
    (2, 200, {"data": None, "errors": [PLAIN]}, {}, ["crm: broke. " + SERVER]),
    (2, 294, {"data": {"user": None}, "errors": [PLAIN]}, {"kind": GQL}, ["crm: broke."]),
    (4, 200, {"errors": [{"message": "no", "path": ["user", "name"],
                          "extensions": {"code": "FORBIDDEN", "stacktrace": ["S1"]}}]}, {},
     ["crm: field user.name: no (FORBIDDEN). Not permitted with the current credentials"]),
    (5, 200, {"ok": 1}, {}, ["did not answer with a GraphQL response"]),
    (5, 200, {"data": None}, {}, ["did not answer with a GraphQL response"]),
    (5, 200, {"errors": "x"}, {}, ["did not answer with a GraphQL response"]),
    (6, 200, [{"data": {"a": 1}}], {}, ["an array"]),
    (7, 200, b"--x", {"kind": 'multipart/mixed; boundary="x"'},
     ["incremental delivery is not supported"]),
    (8, 200, b"<html>\x00hi", {"kind": "text/html"}, ['with text/html', '"<html> hi"']),
    (8, 200, b"", {}, ["without a body"]),
    (8, 204, b"", {"kind": None}, ["HTTP 204 without a body"]),
    (9, 302, b"", {"Location": "/secret-place"}, ["endpoint redirects"]),
    (10, 400, {"errors": [PLAIN]}, {"kind": GQL}, ["HTTP 400", "broke.", UNCHANGED]),
    (10, 500, {"errors": [PLAIN]}, {"kind": "text/plain"}, ["HTTP 500", "broke.", SERVER]),
    (11, 400, {"data": {"a": 1}}, {"kind": GQL}, ["HTTP 400"]),
    (12, 401, b"", {}, ["credentials for crm were refused; retrying will not help until"]),
    (12, 403, {"data": {"a": 1}}, {}, ["credentials for crm were refused"]),
    (13, 429, b"", {"Retry-After": "7"}, ["HTTP 429", "retry after 7 s"]),
    (13, 503, b"", {"Retry-After": "20"},
     ["answered HTTP 503. This is a server-side fault; retry after 20 s may succeed."]),
    (14, 502, b"<html>", {"kind": "text/html"},
     ["crm (GraphQL API at 127.0.0.1:", "answered HTTP 502. This is a server-side fault."]),
]


@pytest.fixture
def rows_front(front, endpoint):
    endpoint.mv, c = front()
    return c


def test_answers_that_are_errors(rows_front, endpoint):
    for row, status, body, more, words in ROWS:
        headers = dict(more)
        answers(endpoint, status, body, headers.pop("kind", "application/json"), **headers)
        said = failed(rows_front, *words)
        assert "S1" not in said and "secret-place" not in said, row
        if row in (2, 10):
            said = failed(rows_front, name="Rename", args={"id": "1"})
            assert "may succeed" not in said and DOUBT in said
    wait_for(lambda: "location=\"/secret-place\"" in endpoint.mv.log(), 5, "it is told")
    assert endpoint.mv.upstream_status("crm")["state"] == "ready"


def test_partial_data_is_labelled(front, endpoint):
    c = front()[1]
    answers(endpoint, 200, {"data": {"user": {"id": "1", "name": None}},
                            "errors": [{"message": "no", "path": ["user", "name"]}]})
    result = called(c)
    assert "isError" not in result or result["isError"] is False
    assert list(result["structuredContent"]) == ["_warning", "data", "errors"]
    assert json.loads(text_of(result)) == result["structuredContent"]
    assert result["_meta"]["io.github.mcpvisor/graphql"]["outcome"] == "partial"


GOOD = b'{"data":{"n":12345678901234567890,"s":"\\u00e9"}}'


@pytest.mark.parametrize("body, headers", [
    (GOOD, {}),
    (b"\xef\xbb\xbf" + GOOD + b"\r\n\r\n", {}),
    (GOOD, {"kind": GQL + "; charset=utf-8"}),
    (GOOD, {"kind": None}),
    (gzip.compress(GOOD, mtime=0), {"Content_Encoding": "gzip"}),
])
def test_good_bodies_keep_their_bytes(front, endpoint, body, headers):
    c = front()[1]
    answers(endpoint, 200, body, **headers)
    answer = c.call("crm__GetUser", {"id": "1"})
    assert text_of(answer.result).encode() == GOOD
    assert b'"structuredContent":' + GOOD in answer.raw


def test_breaks_between_tokens(front, endpoint):
    c = front()[1]
    answers(endpoint, 200, b'{\n "data": {\r\n  "a": "x\\n" }\n}\n')
    result = called(c)
    assert text_of(result) == '{\n "data": {\r\n  "a": "x\\n" }\n}'
    assert result["structuredContent"] == {"data": {"a": "x\n"}}


def test_text_alone(front):
    assert "structuredContent" not in called(front(structured=False)[1])


def test_output_schema(front):
    schema = definitions(front(output_schema=True)[1])["crm__GetUser"]["outputSchema"]
    assert set(schema) == {"type", "properties"} and "data" in schema["properties"]


def test_a_long_answer(front, endpoint):
    c = front(response_max=1 << 20)[1]
    answers(endpoint, 200, {"data": {"a": "x" * (1 << 19)}})
    assert len(text_of(called(c))) > 1 << 19
    answers(endpoint, 200, {"data": {"a": "x" * (1 << 20)}})
    failed(c, "longer than 1048576 bytes (response_max)", "smaller page")


def test_four_megabytes(front, endpoint):
    c = front()[1]
    answers(endpoint, 200, b'{"data":{"a":"%s"}}' % (b"x" * ((4 << 20) - 17)))
    assert len(text_of(called(c))) == 4 << 20
    answers(endpoint, 200, b'{"data":{"a":"%s"}}' % (b"x" * ((4 << 20) - 16)))
    failed(c, "longer than 4194304 bytes (response_max)")


# -- time --------------------------------------------------------------------------------


def test_a_slow_endpoint(front, endpoint):
    c = front(request_ms=300)[1]

    def slow(h, asked):
        h.send_response(200)
        h.send_header("Content-Type", "application/json")
        h.send_header("Content-Length", "100")
        h.end_headers()
        h.wfile.write(b'{"data":')
        h.wfile.flush()
        endpoint.gate.wait(20 * PATIENCE)

    endpoint.answer = slow
    start = time.monotonic()
    failed(c, "no complete answer within 300 ms", "may succeed if repeated")
    failed(c, "the change could not be confirmed within 300 ms",
           "may already have been applied; check before repeating", name="Rename")
    assert 0.5 < time.monotonic() - start < 10 * PATIENCE


def test_a_connection_that_breaks(front, endpoint):
    c = front()[1]

    def cut(h, asked):
        h.send_response(200)
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        h.wfile.write(b'40\r\n{"data":{"a"')
        h.wfile.flush()
        h.close_connection = True

    endpoint.answer = cut
    failed(c, "broke the connection before its answer was complete",
           "may succeed if repeated")
    failed(c, "may already have been applied", name="Rename")
    assert len(endpoint.seen("Rename")) == 1


def test_what_is_cancelled_hangs_up(front, endpoint):
    mv, c = front()
    left = []

    def wait(h, asked):
        h.connection.settimeout(20 * PATIENCE)
        left.append(h.connection.recv(1))  # b"": it has hung up
        h.close_connection = True

    endpoint.answer = wait
    c.start_call("crm__GetUser", {"id": "1"}, id="x")
    endpoint.wait_seen()
    c.cancel("x")
    wait_for(lambda: left == [b""], 5, "the connection is closed")
    answers(endpoint, 200, GOOD)
    assert text_of(called(c)).encode() == GOOD


def test_so_many_at_a_time(front, endpoint):
    c = front(max_inflight=2)[1]

    def wait(h, asked):
        endpoint.gate.wait(20 * PATIENCE)
        reply(h, 200, {"data": {"id": asked.msg["variables"]["id"]}})

    endpoint.answer = wait
    calls = [c.send("tools/call", {"name": "crm__GetUser", "arguments": {"id": str(i)}})
             for i in range(5)]
    endpoint.wait_seen(2)
    c.call("crm__GetUser", {}).result  # answered without a place: by then no third came
    assert len(endpoint.seen()) == 2
    endpoint.gate.set()
    assert [a.result["structuredContent"]["data"]["id"] for a in calls] == list("01234")


def test_fixed_variables(front, endpoint):
    c = front(tool=[{"tool": "GetUser", "name": "me", "fixed": '{"id": "42"}'}])[1]
    assert "id" not in definitions(c)["crm__me"]["inputSchema"]["properties"]
    called(c, "me", {"note": "x"})
    assert endpoint.seen()[-1].msg["variables"] == {"id": "42", "note": "x"}
    n = len(endpoint.seen())
    for args in ({"id": "1"}, {"\u0069d": "42"}):
        error = c.call("crm__me", args).error
        assert error["code"] == -32602 and "is fixed by the operator" in error["message"]
    assert len(endpoint.seen()) == n


def test_hints_of_a_tool(front):
    c = front(tool=[{"tool": "Rename", "destructive": False}])[1]
    assert definitions(c)["crm__Rename"]["annotations"]["destructiveHint"] is False


# -- the schema --------------------------------------------------------------------------


def test_an_endpoint_that_is_down(front, endpoint):
    endpoint.close()
    mv, c = front()
    assert sorted(definitions(c)) == ["crm__Big", "crm__GetUser", "crm__Rename"]
    failed(c, "crm (GraphQL API at 127.0.0.1:", "is not ready: it cannot be reached",
           "Nothing was sent; a retry can help only once that has changed.")
    endpoint.gate.clear()
    endpoint.open()

    def is_good():
        return "isError" not in called(c)

    wait_for(is_good, 10, "it is asked again")
    wait_for(lambda: definitions(c)["crm__Big"]["inputSchema"]["properties"]["n"].get(
        "type") == "string", 5, "types are known")
    endpoint.close()
    failed(c, "cannot be reached", "Nothing was sent")
    assert mv.upstream_status("crm")["state"] == "ready"


def test_the_last_good_schema_is_kept(front, endpoint, tmp_path):
    cache = tmp_path / "crm.schema.json"
    mv, c = front(schema_cache=str(cache))
    before = definitions(c)
    assert json.loads(cache.read_text())["data"]["__schema"]["queryType"]
    endpoint.close()
    mv.restart()
    c = mv.legacy()
    assert definitions(c) == before
    failed(c, "cannot be reached")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["answered", "answered late", "stopped"])
def test_calls_wait_for_the_first_schema(front, endpoint, how):
    schema = endpoint.schema

    def slow(query):
        endpoint.gate.wait(20 * PATIENCE)
        return 200, schema

    endpoint.schema = slow
    mv = front(client=False)
    c = mv.modern()
    wait_for(endpoint.introspections, 5, "it is asked")
    call = c.start_call("crm__GetUser", {"id": "1"})
    if how == "answered late":  # beyond the time that a server has for its first answer
        mv.wait_log("to=both", 10)
    if how == "stopped":
        assert mv.stop() == 0
        return
    endpoint.gate.set()
    assert call.result["structuredContent"] == {"data": {"ok": True}}


def test_too_many_calls(front, connect, endpoint, tmp_path):
    path = str(tmp_path / "s.sock")
    front(client=False, max_inflight=1, listen=("unix:" + path,))
    c = connect(path)
    c.legacy()
    endpoint.answer = lambda h, asked: (endpoint.gate.wait(20 * PATIENCE),
                                        reply(h, 200, {"data": {"ok": True}}))
    keys = [c.start_call("crm__GetUser", {"id": "1"}) for _ in range(259)]
    full = [c.answer(k) for k in keys[-2:]]  # one runs, 256 wait
    for answer in full:
        assert answer.result["isError"] is True
        assert "crm: 1 requests are under way (max_inflight)" in answer.text
    endpoint.gate.set()
    assert "isError" not in c.answer(keys[-3], 60).result


def test_introspection_is_disabled(front, endpoint):
    endpoint.schema = {"errors": [{"message": "GraphQL introspection is not allowed"}]}
    mv, c = front()
    failed(c, "introspection is disabled there", "'schema'")
    wait_for(lambda: "introspection is disabled there" in mv.log(), 5, "it is told")


def test_introspection_in_fewer_words(front, endpoint):
    def old(query):
        if "isOneOf" in query:
            return 400, {"errors": [{
                "message": 'Cannot query field "isOneOf" on type "__Type".'}]}
        if query.count("ofType") > 4:
            return 400, {"errors": [{"message": "Query is too deep: 13 levels, max 8"}]}
        return 200, schema

    schema, endpoint.schema = endpoint.schema, old
    c = front()[1]
    assert definitions(c)["crm__Big"]["inputSchema"]["properties"]["n"]["type"] == \
        "string"
    assert len(endpoint.introspections()) == 3


def test_a_schema_of_a_file_and_none(front, endpoint, tmp_path):
    at = tmp_path / "schema.json"
    at.write_text(json.dumps(endpoint.schema))
    c = front(schema=str(at))[1]
    assert definitions(c)["crm__Big"]["inputSchema"]["properties"]["n"]["type"] == \
        "string"
    assert "isError" not in called(c)
    c = front(schema="none")[1]
    assert "type" not in definitions(c)["crm__Big"]["inputSchema"]["properties"]["n"]
    assert "isError" not in called(c)
    assert endpoint.introspections() == []


def test_a_schema_that_changes(front, endpoint):
    mv, c = front(schema_refresh_ms=100, fields=["Query.*"])
    stream = c.get()
    assert "crm__users" in definitions(c)
    schema = json.loads(json.dumps(endpoint.schema))
    schema["data"]["__schema"]["types"][0]["fields"][1]["name"] = "people"
    endpoint.schema = schema
    assert stream.next(15).msg["method"] == "notifications/tools/list_changed"
    wait_for(lambda: "crm__people" in definitions(c), 5, "people are listed")
    endpoint.schema = {"errors": [PLAIN]}  # what is good stays
    n = len(endpoint.introspections())
    wait_for(lambda: len(endpoint.introspections()) > n + 1, 10, "it is asked again")
    assert "crm__people" in definitions(c) and "isError" not in called(c)
    stream.quiet()


# -- files -------------------------------------------------------------------------------


def test_a_reload_looks_at_the_files(front, folder):
    mv, c = front()
    stream = c.get()
    assert len(definitions(c)) == 3
    mv.reload()
    stream.quiet()
    (folder / "more.graphql").write_text("query More { users { id } }")
    mv.reload()
    assert stream.next().msg["method"] == "notifications/tools/list_changed"
    wait_for(lambda: "crm__More" in definitions(c), 5, "it is listed")
    (folder / "more.graphql").write_text("query More {\n users {")
    mv.reload()
    mv.wait_log(r"operation file refused.*more\.graphql.*line=2")
    assert "crm__More" in definitions(c)
    (folder / "more.graphql").unlink()
    mv.reload()
    assert stream.next().msg["method"] == "notifications/tools/list_changed"
    wait_for(lambda: "crm__More" not in definitions(c), 5, "it is gone")


def test_two_of_one_name(front, folder):
    (folder / "z.graphql").write_text("query GetUser { users { id } }")
    mv = front(client=False)
    wait_for(lambda: "two tools would be called GetUser" in json.dumps(mv.status()), 5,
             "status says so")


def test_too_many_tools(front):
    mv = front(client=False, max_tools=2)
    wait_for(lambda: "it has 3 tools, and max_tools is 2" in json.dumps(mv.status()), 5,
             "status says so")


# -- what the model writes ---------------------------------------------------------------


def test_execute(front, endpoint):
    c = front(execute_tool="queries")[1]
    result = called(c, "crm_execute", {
        "query": "query A($n: Int) { a(n: $n) }", "variables": {"n": 1}})
    assert result["structuredContent"] == {"data": {"ok": True}}
    assert endpoint.seen()[-1].msg == {
        "query": "query A($n: Int) { a(n: $n) }", "variables": {"n": 1}}
    n = len(endpoint.seen())
    for query, word in (("mutation { a }", "got a mutation"),
                        ("subscription { a }", "got a subscription"),
                        ("{ a", "must be a GraphQL document"),
                        ("{a" * 16 + "}" * 16, "at most 15 levels")):
        failed(c, word, "Retrying unchanged will fail.", name="crm_execute",
               args={"query": query})
    assert len(endpoint.seen()) == n
    answers(endpoint, 400, {"errors": [{"message": "x", "extensions": {
        "code": "GRAPHQL_VALIDATION_FAILED"}}]})
    failed(c, "Change the query.", name="crm_execute", args={"query": "{ nothing }"})
    failed(c, "a fault in the gateway's operation")
