# SPDX-License-Identifier: MIT
"""A GraphQL endpoint that means harm, and models that would change what they must not."""
import gzip
import json

import pytest

from graphql_server import SCHEMA, reply
from test_graphql import (GOOD, answers, called, definitions, endpoint,  # noqa: F401
                          failed, folder, front, text_of)
from upstream import wait_for

TOKEN = "sk-abc/def+0123456789"
SECRET = {"Authorization": "Bearer " + TOKEN}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD


def sends(endpoint, data):
    def answer(handler, asked):
        handler.wfile.write(data)
        handler.wfile.flush()
        handler.close_connection = True

    endpoint.answer = answer


# -- mutations that must not run ---------------------------------------------------------

MUTATIONS = [
    {"query": "mutation A {m} query A {a}", "operationName": "A"},
    {"query": "query A {a} mutation A {m}", "operationName": "A"},
    {"query": "mutation M {m} query A {a}", "operationName": "A"},
    {"query": "{a} mutation M {m}"},
    {"query": "{a} # x\rmutation M {m}"},
    {"query": "\ufeff\ufeffmutation M {m}"},
    {"query": '{a(s:"""x"""")} mutation M {m} #"'},
    {"query": "{a}\x00mutation M {m}"},
    '{"query":"{a}","query":"mutation {m}"}',
    '{"query":"{a}","qu\\u0065ry":"mutation {m}"}',
    '{"query":"query A{a} query B{b}","operationName":"A","operation\\u004eame":"B"}',
    '{"query":"{a}","Query":"mutation {m}"}',
]


@pytest.mark.parametrize("mutations, execute", [("none", "all"), ("all", "queries")])
def test_no_mutation_gets_through(front, endpoint, mutations, execute):
    c = front(mutations=mutations, execute_tool=execute)[1]
    line = json.dumps({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {
        "name": "crm__crm_execute", "arguments": "HERE"}})
    for args in MUTATIONS:
        raw = args if isinstance(args, str) else json.dumps(args)
        result = c.post(json.loads(line), body=line.replace('"HERE"', raw).encode()).result
        assert result["isError"] is True, raw
    assert endpoint.seen() == []


# -- answers -----------------------------------------------------------------------------


def test_our_headers_are_in_no_error(front, endpoint):
    mv, c = front(headers=SECRET)
    error = {"message": "bad token " + SECRET["Authorization"], "extensions": {"got": TOKEN}}
    for status, body, kind in ((200, {"errors": [error]}, "application/json"),
                               (500, {"errors": [error]}, "text/html"),
                               (401, {"errors": [error]}, "application/json"),
                               (200, TOKEN.encode(), "text/" + TOKEN)):
        answers(endpoint, status, body, kind)
        assert "sk-abc" not in failed(c, "****" if status != 401 else "refused")
    answers(endpoint, 302, b"", Location="/?token=" + TOKEN)
    failed(c, "redirects")
    mv.wait_log("redirect not followed.*token=\\*{21}")
    answers(endpoint, 200, {"data": {"token": TOKEN}})
    assert called(c)["structuredContent"] == {"data": {"token": TOKEN}}
    assert "sk-abc" not in mv.log()


def test_our_headers_are_in_no_word_about_the_schema(front, endpoint):
    endpoint.introspect = lambda h, asked: reply(h, 400, {"errors": [
        {"message": "bad token " + asked.header("Authorization")}]})
    mv, c = front(headers=SECRET)
    said = failed(c, "it refused introspection: bad token ****")
    assert "sk-abc" not in said + mv.log() and ".." not in said


def test_a_bomb(front, endpoint):
    c = front()[1]
    bomb = gzip.compress(b'{"data":{"a":"' + b"x" * (100 << 20) + b'"}}')
    assert len(bomb) < 1 << 17
    answers(endpoint, 200, bomb, Content_Encoding="gzip")
    failed(c, "longer than 4194304 bytes (response_max)")


def test_lengths_that_lie(front, endpoint):
    c = front()[1]
    for data in (HEAD + b"Content-Length: 5\r\n\r\n" + GOOD,
                 HEAD + b"Content-Length: -5\r\n\r\n" + GOOD,
                 HEAD + b"Content-Length: 500\r\n\r\n" + GOOD,
                 HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n" + GOOD,
                 GOOD, b"\0\xff\r\n\r\n", HEAD + b"X: " + b"y" * 400000 + b"\r\n\r\n" + GOOD):
        sends(endpoint, data)
        failed(c)
    sends(endpoint, WHOLE)
    assert text_of(called(c)).encode() == GOOD


def test_a_cut_at_each_byte(front, endpoint):
    mv, c = front()
    for i in range(0, len(WHOLE), 3):
        sends(endpoint, WHOLE[:i])
        failed(c, "broke the connection before its answer was complete")
    assert mv.upstream_status("crm")["calls"]["in_flight"] == 0


def test_a_body_as_deep_as_may_be(front, endpoint):
    c = front()[1]
    for depth in (985, 998):
        body = b'{"data":{"a":' + b"[" * depth + b"]" * depth + b"}}"
        answers(endpoint, 200, body)
        raw = c.start_call("crm__GetUser", {"id": "1"}).body(10)
        assert b'"isError"' not in raw and b'"error"' not in raw
        assert (b'"structuredContent":' in raw) == (depth == 985)


# -- the schema --------------------------------------------------------------------------


def most_memory(pid):
    """In KiB, the most that it ever had."""
    with open("/proc/%d/status" % pid) as f:
        return int(next(line for line in f if line.startswith("VmHWM")).split()[1])


def test_a_schema_of_nothing(front, endpoint):
    """What of an answer is no schema takes no memory of its own."""
    body = json.dumps({"data": SCHEMA})[:-1] + ',"pad":[' + "{}," * (3 << 20) + "1]}"
    mv = front(client=False, schema="none")
    before = most_memory(mv.proc.pid)
    endpoint.introspect = lambda h, asked: reply(h, 200, body.encode())
    mv, c = front(fields=["Query.*"])
    assert "crm__users" in definitions(c)
    assert most_memory(mv.proc.pid) - before < 200 << 10


def test_a_schema_of_too_many_fields(front, endpoint):
    schema = json.loads(json.dumps({"data": SCHEMA}))
    one = schema["data"]["__schema"]["types"][0]["fields"][0]
    schema["data"]["__schema"]["types"][0]["fields"] = [
        {**one, "name": "f%d" % i} for i in range(20000)]
    endpoint.schema = schema
    mv = front(client=False, fields=["*"])
    wait_for(lambda: "it has 20003 tools, and max_tools is 64" in json.dumps(mv.status()),
             20, "status says so")


@pytest.mark.parametrize("text", [b'{"data":{"__schema"', b'{"a":1}', b"\xff\0", b""])
def test_a_saved_schema_that_is_none(front, endpoint, tmp_path, text):
    cache = tmp_path / "crm.schema.json"
    cache.write_bytes(text)
    endpoint.close()
    mv, c = front(schema_cache=str(cache))
    mv.wait_log("saved schema not read")
    failed(c, "is not ready")
    endpoint.gate.clear()
    endpoint.open()
    wait_for(lambda: "isError" not in called(c), 10, "it is asked again")
    assert json.loads(cache.read_text())["data"]["__schema"]["queryType"]


def test_a_stop_while_calls_wait(front, endpoint):
    mv, c = front(max_inflight=1)
    endpoint.answer = lambda h, asked: endpoint.gate.wait(20)
    for i in range(5):
        c.start_call("crm__GetUser", {"id": "1"}, id="q%d" % i)
    endpoint.wait_seen()
    assert mv.stop() == 0
