# SPDX-License-Identifier: MIT
"""How answers come: JSON or a stream, when, with which headers, in which order."""
import json
import time

import pytest

from http_client import ACCEPT, SESSION
from mcp import META, PATIENCE

ECHO = {"tools": ["echo"]}
WORK = {"tools": ["echo", "work", "hold"], "logging": True, "calls": {
    "work": [["progress", 1], ["progress", 2], ["progress", 3], ["reply", {"content": []}]],
    "hold": [["progress", 1], ["gate", "go"], ["progress", 2], ["reply", {"content": []}]]}}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_json_when_the_answer_comes_first(serve_http, era):
    c = serve_http(alpha=ECHO).speak(era)
    answer = c.start_call("alpha__echo", {"a": 1}, meta={"progressToken": 1})
    assert answer.status == 200 and answer.header("Content-Type") == "application/json"
    assert answer.header("Content-Length") == str(len(answer.message().raw))
    assert answer.header("X-Accel-Buffering") is None


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_stream_from_the_first_progress_on(serve_http, era):
    mv = serve_http(alpha=WORK)
    c = mv.speak(era)
    answer = c.start_call("alpha__hold", {}, meta={"progressToken": "t"})
    assert answer.is_stream and answer.status == 200
    assert answer.next().params == {"progressToken": "t", "progress": 1}
    mv["alpha"].open("go")
    assert answer.next().params == {"progressToken": "t", "progress": 2}
    assert answer.next().result["content"] == []
    answer.end()


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_notices_come_before_the_answer_in_order(serve_http, era):
    mv = serve_http(alpha={"tools": ["many"], "calls": {"many": [
        ["repeat", 50, [["progress", 1], ["notify", "notifications/message",
                                          '{"level":"info","data":"x"}']]],
        ["reply", {"content": []}]]}, "logging": True})
    c = mv.speak(era)
    answer = c.start_call("alpha__many", {},
                          meta={"progressToken": 7, META + "logLevel": "debug"})
    assert answer.result["content"] == []
    methods = [m.msg["method"] for m in answer.notices]
    assert methods == ["notifications/progress", "notifications/message"] * 50


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_076_each_notice_is_sent_at_once(serve_http, era):
    """Its headers against buffering and storing are looked at with each event."""
    steps = [s for n in range(5) for s in (["sleep", 60], ["progress", n])]
    mv = serve_http(alpha={"tools": ["slow"], "calls": {"slow": [
        *steps, ["reply", {"content": []}]]}})
    answer = mv.speak(era).start_call("alpha__slow", {}, meta={"progressToken": 1})
    assert answer.result["content"] == []
    sent = [r.at for r in mv["alpha"].records("O") if b"progress" in r.raw]
    seen = [m.at for m in answer.notices]
    assert len(sent) == len(seen) == 5
    assert all(0 < b - a < 100e6 * PATIENCE for a, b in zip(sent, seen))


@pytest.mark.parametrize("accept, status, type_", [
    (ACCEPT, 200, "application/json"),
    ("*/*", 200, "application/json"),
    (None, 200, "application/json"),
    ("application/json", 200, "application/json"),
    ("application/*;q=0.5", 200, "application/json"),
    ("APPLICATION/JSON , Text/Event-Stream", 200, "application/json"),
    (["application/json", "text/event-stream"], 200, "application/json"),
    ("text/event-stream", 200, "text/event-stream"),
    ("text/*", 200, "text/event-stream"),
    ("text/html", 406, None), ("image/png, application/xml", 406, None),
])
def test_o_067_what_clients_accept(serve_http, accept, status, type_):
    mv = serve_http(alpha=ECHO)
    answer = mv.client().send("initialize", {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"}}, headers={"Accept": accept})
    assert answer.status == status
    if status == 200:
        assert answer.header("Content-Type") == type_
        assert answer.result["protocolVersion"] == "2025-11-25"
        assert answer.header(SESSION)
    else:
        assert answer.header(SESSION) is None
    modern = mv.modern().start_call("alpha__echo", {}, headers={"Accept": accept})
    assert modern.status == status
    if status == 200:
        assert modern.header("Content-Type") == type_ and modern.result


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_client_that_takes_only_json_gets_no_notices(serve_http, era):
    mv = serve_http(alpha=WORK)
    answer = mv.speak(era).start_call("alpha__work", {}, meta={"progressToken": "t"},
                                      headers={"Accept": "application/json"})
    assert answer.header("Content-Type") == "application/json"
    assert answer.result["content"] == []


def test_an_error_has_its_status_whatever_is_accepted(serve_http):
    c = serve_http(alpha=ECHO).modern()
    answer = c.send("foo/bar", headers={"Accept": "text/event-stream"})
    assert answer.fault() == (404, -32601)
    assert answer.header("Content-Type") == "application/json"


@pytest.mark.parametrize("type_, status", [
    ("application/json", 200), ("application/json; charset=utf-8", 200),
    ("Application/JSON", 200), ('application/json ;charset="UTF-8"', 200),
    ("text/plain", 415), (None, 415), ("application/json-patch+json", 415),
    ("application/x-www-form-urlencoded", 415), ("multipart/form-data; boundary=x", 415),
    ("text/plain; application/json", 415),
])
def test_o_068_content_types(serve_http, type_, status):
    """The rule for an absent one: refused, since a page could send such a request unasked."""
    mv = serve_http(alpha=ECHO)
    for c in (mv.legacy(), mv.modern()):
        answer = c.start_call("alpha__echo", {}, headers={"Content-Type": type_})
        assert answer.status == status
    if status == 415:
        assert mv["alpha"].inputs("tools/call") == []


@pytest.mark.parametrize("verb, target, status", [
    ("PUT", "/mcp", 405), ("HEAD", "/mcp", 405), ("PATCH", "/mcp", 405), ("GET", "/", 404),
    ("POST", "/mcp/", 404), ("POST", "/MCP", 404), ("POST", "/", 404), ("GET", "/sse", 404),
    ("DELETE", "/other", 404), ("POST", "/mcp?x=1", 200), ("POST", "/%6dcp", 404),
])
def test_methods_and_paths(serve_http, verb, target, status):
    c = serve_http(alpha=ECHO).legacy()
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    answer = c.http(verb, {**c.base(), "Content-Type": "application/json"},
                    None if verb in ("GET", "HEAD", "DELETE") else body, target=target)
    assert answer.status == status
    if status == 405:
        assert answer.header("Allow") == "POST, GET, DELETE, OPTIONS"


@pytest.mark.parametrize("raw, code", [
    (b"", -32700), (b"nonsense", -32700), (b'{"jsonrpc":"2.0"', -32700),
    (b'{"a":"\xff"}', -32700), (b"7", -32600), (b'"text"', -32600), (b"null", -32600),
    (b"{}", -32600), (b'{"jsonrpc":"2.0","id":1}', -32600), (b"[" * 5000, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"a":1}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"a":1}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"a\nb"}}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"a\rb"}}', -32700),
])
def test_bodies_that_are_no_message(serve_http, raw, code):
    c = serve_http(alpha=ECHO).legacy()
    wire = c.wire()
    answer = c.post(None, body=raw, wire=wire)
    assert answer.status == 400
    assert answer.code == code if code else answer.code in (-32600, -32700)
    assert c.send("ping", wire=wire).result == {}


@pytest.mark.parametrize("raw", [
    b' \r\n{"jsonrpc": "2.0",\r\n "id": 1,\n\t"method": "ping"}\r\n ',
    b'{"jsonrpc":"2.0","id":1,"method":"pi\\u006eg"}\n',
])
def test_a_body_may_have_line_breaks(serve_http, raw):
    c = serve_http(alpha=ECHO).legacy()
    assert c.post(None, body=raw).result == {}


def test_line_breaks_do_not_reach_an_upstream(serve_http):
    mv = serve_http(alpha=ECHO)
    msg = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
           "params": {"name": "alpha__echo", "arguments": {"a": "b\nc", "d": [1, 2]}}}
    got = mv.legacy().post(None, body=json.dumps(msg, indent=2).encode())
    assert got.result["structuredContent"] == {"a": "b\nc", "d": [1, 2]}


# -- HTTP habits of clients ----------------------------------------------------------------

INIT = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {},
    "clientInfo": {"name": "a", "version": "1"}}}).encode()


def chunked(body, size, extension=b"", trailer=b""):
    out = b"".join(b"%x%s\r\n%s\r\n" % (len(body[i:i + size]), extension, body[i:i + size])
                   for i in range(0, len(body), size))
    return out + b"0\r\n" + trailer + b"\r\n"


CHUNKS = [(10000,), (1,), (50, b';name="value"', b"X-Trailer: 1\r\n")]


@pytest.mark.parametrize("how", CHUNKS)
def test_o_073_chunked_bodies_of_modern_clients(serve_http, how):
    c = serve_http(alpha=ECHO).modern()
    wire = c.wire()
    for n in range(2):
        msg = c.build("tools/call", {"name": "alpha__echo", "arguments": {"n": n}})
        answer = c.post(msg, body=chunked(json.dumps(msg).encode(), *how), wire=wire, headers={
            "Content-Length": None, "Transfer-Encoding": "chunked"})
        assert answer.result["structuredContent"] == {"n": n}


@pytest.mark.parametrize("how", CHUNKS)
def test_o_073_chunked_bodies(serve_http, how):
    body = chunked(INIT, *how)
    c = serve_http(alpha=ECHO).client()
    wire = c.wire()
    for _ in range(2):
        answer = c.http("POST", {"Content-Type": "application/json", "Accept": ACCEPT,
                                 "Content-Length": None, "Transfer-Encoding": "chunked"},
                        body, wire=wire)
        assert answer.result["protocolVersion"] == "2025-11-25"


def test_o_073_both_lengths_are_refused(serve_http):
    c = serve_http(alpha=ECHO).client()
    answer = c.http("POST", {"Content-Type": "application/json", "Content-Length": len(INIT),
                             "Transfer-Encoding": "chunked"}, chunked(INIT, 100))
    assert answer.status == 400 and answer.header("Connection") == "close"
    answer.body()
    assert answer.wire.wait_end() == b""


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_078_http_1_0(serve_http, era):
    mv = serve_http(alpha=WORK)
    c = mv.speak(era)
    answer = c.start_call("alpha__work", {}, meta={"progressToken": "t"}, version="HTTP/1.0")
    assert answer.is_stream and answer.header("Transfer-Encoding") is None
    assert [answer.next().params["progress"] for _ in range(3)] == [1, 2, 3]
    assert answer.next().result["content"] == []
    assert answer.next() is None and answer.wire.ended
    wire = c.wire()
    for _ in range(2):
        kept = c.start_call("alpha__echo", {"a": 1}, version="HTTP/1.0", wire=wire,
                            headers={"Connection": "keep-alive"})
        assert kept.result["structuredContent"] == {"a": 1}
        assert kept.header("Connection") == "keep-alive"
    last = c.start_call("alpha__echo", {}, version="HTTP/1.0", wire=wire)
    assert last.result and wire.wait_end() == b""


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_078_a_hundred_requests_on_one_connection(serve_http, era):
    c = serve_http(alpha=ECHO).speak(era)
    wire = c.wire()
    for n in range(100):
        assert c.call("alpha__echo", {"n": n}, wire=wire).result["structuredContent"]["n"] == n


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_078_pipelined_answers_come_in_order(serve_http, era):
    mv = serve_http(alpha={**WORK, "calls": {
        "work": WORK["calls"]["work"], "hold": [["gate", "go"], ["reply", {"content": []}]]}})
    c = mv.speak(era)
    wire = c.wire()
    first = c.start_call("alpha__hold", {}, wire=wire)
    rest = [c.start_call("alpha__echo", {"n": n}, wire=wire) for n in range(20)]
    work = c.start_call("alpha__work", {}, meta={"progressToken": 1}, wire=wire)
    mv["alpha"].wait_input("tools/call", 22)
    wire.silent(50)
    mv["alpha"].open("go")
    assert first.result["content"] == []
    assert [a.result["structuredContent"]["n"] for a in rest] == list(range(20))
    assert work.result["content"] == [] and len(work.notices) == 3


def test_a_big_result_and_a_slow_reader(serve_http):
    big = {"pre": '{"content":[{"type":"text","text":"', "repeat": "x", "n": 8000000,
           "post": '"}]}'}
    mv = serve_http(alpha={"tools": ["big", "echo"], "calls": {"big": [["reply", big]]}})
    slow = mv.modern().start_call("alpha__big", {})
    assert slow.status == 200
    # Others do not wait for it.
    start = time.monotonic()
    assert mv.legacy().call("alpha__echo", {}).result
    assert time.monotonic() - start < 2 * PATIENCE
    assert len(slow.message(30).text) == 8000000


# -- time ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_o_024_a_long_answer_becomes_a_stream_that_never_falls_silent(serve_http):
    """10 s to the stream, 15 s more to its first comment."""
    mv = serve_http(alpha={"tools": ["echo", "hold"], "calls": {"hold": [
        ["gate", "go"], ["reply", {"content": []}]]}})
    legacy, modern = mv.legacy(), mv.modern()
    start = time.monotonic()
    calls = [c.start_call("alpha__hold", {}) for c in (legacy, modern)]
    json_only = modern.start_call("alpha__hold", {}, headers={"Accept": "application/json"})
    get = legacy.get()
    listen = modern.send("subscriptions/listen", {"notifications": {}})
    assert get.is_stream and listen.next()
    for answer in calls:
        answer.wire.more(15 * PATIENCE)
        assert answer.is_stream and answer.status == 200
        assert 9.5 < time.monotonic() - start < 12 * PATIENCE
    for answer in (get, listen, *calls):
        answer.next_beat(20)
        assert 14 < time.monotonic() - start < 28 * PATIENCE
    assert not json_only.has_started()
    mv["alpha"].open("go")
    for answer in (*calls, json_only):
        assert answer.result["content"] == []
    assert json_only.header("Content-Type") == "application/json"
