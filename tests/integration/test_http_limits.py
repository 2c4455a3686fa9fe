# SPDX-License-Identifier: MIT
"""Bounds of the HTTP endpoint, each with an answer of its own."""
import json
import resource
import time

import pytest

from http_client import ACCEPT, Answer, Gone, Wire, request
from mcp import PATIENCE, wait_for

ECHO = {"tools": ["echo"]}
HOLD = {"tools": ["echo", "hold"], "calls": {"hold": []}}
MESSAGE = 64 << 20
TYPE = {"Content-Type": "application/json", "Accept": ACCEPT}


@pytest.fixture
def many_descriptors():
    """Room for thousands of connections, in this process and in what it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip("no more than %d descriptors" % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# -- one request ------------------------------------------------------------------------


@pytest.mark.parametrize("length", [MESSAGE + 1, 1 << 40, 10 ** 18])
def test_a_body_that_is_too_large_is_refused_by_its_length(serve_http, length):
    mv = serve_http(alpha=ECHO)
    answer = mv.client().http("POST", {**TYPE, "Content-Length": str(length)}, b"")
    assert answer.status == 413 and answer.header("Connection") == "close"
    assert mv.modern().tools()


def test_chunks_that_grow_too_large_are_refused(serve_http):
    mv = serve_http(alpha=ECHO)
    wire = Wire(mv.address)
    wire.send(request("POST", "/mcp", {"Host": "localhost", **TYPE,
                                       "Transfer-Encoding": "chunked"}))
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    try:
        for _ in range(66):
            wire.send(chunk)
    except OSError:
        pass  # it stopped reading, as it may
    try:
        assert Answer(wire).status == 413
    except Gone:
        pass  # our unread bytes may take the answer with them
    assert mv.modern().tools()


def test_a_large_body_is_taken(serve_http):
    mv = serve_http(alpha=ECHO)
    text = "x" * (16 << 20)
    answer = mv.modern().start_call("alpha__echo", {"t": text})
    assert len(answer.message(60).result["structuredContent"]["t"]) == len(text)


@pytest.mark.parametrize("raw, status", [
    (b"POST /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
    (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40000 + b"\r\n\r\n", 431),
    (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 8000 + b"\r\n", 431),
    (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 150 + b"\r\n", 431),
    (b"X" * 70000, 414),
], ids=["line", "header", "lines", "count", "endless"])
def test_heads_that_are_too_large(serve_http, raw, status):
    mv = serve_http(alpha=ECHO)
    wire = Wire(mv.address)
    wire.send(raw)
    answer = Answer(wire)
    assert answer.status in (status, 400) and answer.header("Connection") == "close"
    answer.body()
    assert wire.wait_end() == b""
    assert mv.modern().tools()


@pytest.mark.slow
def test_slow_heads_and_bodies_have_their_time(serve_http):
    """10 s for a head, 30 s without a byte of a body; others are served meanwhile."""
    mv = serve_http(alpha=ECHO)
    head, trickle = Wire(mv.address), Wire(mv.address)
    start = time.monotonic()
    head.send(b"POST /mcp HTTP/1.1\r\nHost: ")
    trickle.send(b"POST")
    for n in range(30):
        time.sleep(0.3)
        trickle.send(b"X")
        assert n % 10 or mv.modern().tools()
    for wire in (head, trickle):
        answer = Answer(wire)
        assert answer.status == 408
        assert 9 < time.monotonic() - start < 13 * PATIENCE
        answer.body()


# -- many ---------------------------------------------------------------------------------


def test_one_connection_too_many(serve_http, many_descriptors):
    mv = serve_http(alpha=ECHO)
    first = mv.modern()
    kept = first.wire()
    assert first.send("tools/list", wire=kept).result
    wires = [Wire(mv.address) for _ in range(999)]
    extra = Wire(mv.address)
    answer = first.send("tools/list", wire=extra)
    assert answer.status == 503 and int(answer.header("Retry-After")) >= 1
    assert answer.header("Connection") == "close"
    # Who is in is served, and room is made by who leaves.
    assert first.send("tools/list", wire=kept).result
    for w in wires[:10]:
        w.close()
    extra.close()

    def served():
        c = mv.modern()
        return c.send("tools/list").status == 200

    wait_for(served, 5, "there is room again")
    for w in wires[10:]:
        w.close()


def test_one_client_of_lines_too_many(serve_http, tmp_path, many_descriptors):
    path = "unix:" + str(tmp_path / "s.sock")
    mv = serve_http(listen=(path, "127.0.0.1:0"), alpha=ECHO)
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    wires = [Wire(path) for _ in range(1001)]
    for wire in wires[:1000]:
        wire.send(ping)
    assert all(w.until(b"\n", time.monotonic() + 10) for w in wires[:1000])
    assert wires[1000].wait_end() == b""
    assert mv.modern(mv.bound[1]).tools()
    for wire in wires[:1000]:
        wire.close()

    def served():
        wire = Wire(path)
        try:
            wire.send(ping)
            return wire.more(5)
        except OSError:
            return False

    wait_for(served, 5, "there is room again")


def test_more_calls_than_an_upstream_takes(serve_http, many_descriptors):
    """4096 wait at one upstream; one more is told at once, and others go on."""
    mv = serve_http(alpha=HOLD, beta=ECHO)
    c = mv.modern()
    c.tools()
    wires = [c.wire() for _ in range(64)]
    raw = [json.dumps(c.build("tools/call", {"name": "alpha__hold", "arguments": {}})).encode()
           for _ in range(64)]
    headers = {"Host": "localhost", **TYPE, "MCP-Protocol-Version": "2026-07-28",
               "Mcp-Method": "tools/call", "Mcp-Name": "alpha__hold"}
    for wire in wires:
        wire.send(b"".join(request("POST", "/mcp", {**headers, "Content-Length": len(r)}, r)
                           for r in raw))
    mv["alpha"].wait_input("tools/call", 4096, 30)
    got = c.start_call("alpha__hold", {})
    assert got.code == -32603
    assert got.message().error["data"] == {"upstream": "alpha", "reason": "busy",
                                           "retryable": True}
    assert c.call("beta__echo", {"a": 1}).result["structuredContent"] == {"a": 1}
    for wire in wires:
        wire.close()
    wait_for(lambda: len(mv["alpha"].inputs("notifications/cancelled")) == 4096, 30)
    assert mv.modern().call("alpha__echo", {}).result


def test_pipelining_has_a_bound_and_nothing_is_lost(serve_http):
    """64 requests of a connection are open at once, the others wait in its buffer."""
    mv = serve_http(alpha={"tools": ["hold", "echo"], "calls": {"hold": [
        ["gate", "go"], ["reply", '{"content":[],"structuredContent":${ARGS}}']]}})
    c = mv.modern()
    wire = c.wire()
    answers = [c.start_call("alpha__hold", {"n": n}, wire=wire) for n in range(200)]
    mv["alpha"].wait_input("tools/call", 64, 10)
    mv.fence("alpha")
    held = [r for r in mv["alpha"].inputs("tools/call")
            if r.msg["params"]["name"] == "hold"]
    assert len(held) == 64
    mv["alpha"].open("go")
    assert [a.result["structuredContent"]["n"] for a in answers] == list(range(200))


def test_a_reader_that_does_not_read_harms_nobody(serve_http):
    """10 results of 8 MB that nobody takes: the daemon goes on and gets its memory back."""
    big = {"pre": '{"content":[{"type":"text","text":"', "repeat": "x", "n": 8 << 20,
           "post": '"}]}'}
    mv = serve_http(alpha={"tools": ["big"], "calls": {"big": [["reply", big]]}}, beta=ECHO)
    c = mv.modern()
    slow = [c.start_call("alpha__big", {}) for _ in range(10)]
    for answer in slow:
        assert answer.status == 200
    assert c.call("beta__echo", {}).result
    for answer in slow[:5]:
        answer.wire.reset()
    for answer in slow[5:]:
        assert len(answer.message(60).text) == 8 << 20
