# SPDX-License-Identifier: MIT
"""Many clients of both eras at once: each sees its own answers and notices, nothing else."""
import json
import os
import threading

import pytest

from http_client import Answer, request
from mcp import PATIENCE, wait_for

# The result and the notices carry the arguments, so that a swap shows.
WORK = [["raw", '{"jsonrpc":"2.0","method":"notifications/progress","params":'
                '{"progressToken":${TOKEN},"progress":1,"_meta":${ARGS}}}'],
        ["reply", '{"content":[{"type":"text","text":"x"}],"structuredContent":${ARGS}}']]
SLOW = [["gate", "go"], *WORK]
CROWD = {"tools": ["echo", "work", "slow"], "calls": {"work": WORK, "slow": SLOW}}


def one_client(mv, n, calls, problems):
    try:
        c = (mv.legacy, mv.modern)[n % 2]() if n % 10 else mv.legacy("2025-03-26")
        wire = c.wire()
        for k in range(1, calls + 1):
            upstream = ("alpha", "beta")[(n + k) % 2]
            args = {"client": n, "call": k}
            # Everybody has the same ids and the same progress tokens.
            answer = c.start_call(upstream + "__work", args, id=k, wire=wire,
                                  meta={"progressToken": k})
            got = answer.message(60)
            assert got.msg["id"] == k and got.result["structuredContent"] == args, got
            assert [(m.params["progressToken"], m.params["_meta"]) for m in answer.notices] \
                == [(k, args)], answer.notices
        c.close()
    except Exception as e:  # shown by the test's own thread
        problems.append((n, repr(e)[:1000]))


def test_two_hundred_and_forty_clients_of_both_eras(serve_http):
    mv = serve_http(alpha=CROWD, beta={**CROWD, "era": "modern"})
    mv.modern().tools()
    problems = []
    threads = [threading.Thread(target=one_client, args=(mv, n, 5, problems), daemon=True)
               for n in range(240)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120 * PATIENCE)
    assert not problems, problems[:3]
    total = sum(len(mv[u].inputs("tools/call")) for u in ("alpha", "beta"))
    assert total == 240 * 5
    assert len(mv["alpha"].starts()) == len(mv["beta"].starts()) == 1


def test_three_hundred_calls_open_at_once(serve_http):
    """All in flight before the first is answered, answers asked for backwards."""
    mv = serve_http(alpha=CROWD, beta={**CROWD, "era": "modern"})
    clients = [(mv.legacy, mv.modern)[n % 2]() for n in range(300)]
    answers = [c.start_call(("alpha", "beta")[n // 2 % 2] + "__slow", {"n": n}, id="same",
                            meta={"progressToken": "same"}) for n, c in enumerate(clients)]
    for u in ("alpha", "beta"):
        mv[u].wait_input("tools/call", 150, 20)
        ids = [r.msg["id"] for r in mv[u].inputs("tools/call")]
        tokens = [json.dumps(r.msg["params"]["_meta"]["progressToken"])
                  for r in mv[u].inputs("tools/call")]
        assert len(set(map(json.dumps, ids))) == len(set(tokens)) == 150
        mv[u].open("go")
    for n, answer in reversed(list(enumerate(answers))):
        got = answer.message(30)
        assert got.msg["id"] == "same" and got.result["structuredContent"] == {"n": n}
        assert [m.params["_meta"] for m in answer.notices] == [{"n": n}]
        assert answer.notices[0].params["progressToken"] == "same"


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_one_client_with_many_calls_on_many_connections(serve_http, era):
    mv = serve_http(alpha=CROWD)
    c = mv.speak(era)
    answers = [c.start_call("alpha__work", {"n": n}, meta={"progressToken": n})
               for n in range(200)]
    for n, answer in enumerate(answers):
        assert answer.message(30).result["structuredContent"] == {"n": n}
        assert answer.notices[0].params["progressToken"] == n


# -- nothing stays ------------------------------------------------------------------------


def memory_kb(mv):
    with open("/proc/%d/statm" % mv.proc.pid) as f:
        return int(f.read().split()[1]) * 4


def descriptors(mv):
    return len(os.listdir("/proc/%d/fd" % mv.proc.pid))


def cycle(c, wire, n, delete=True):
    """n sessions, pipelined: initialize, initialized, one call, DELETE."""
    def send(raw, **headers):
        return request("POST", "/mcp", {
            "Host": "localhost", "Content-Type": "application/json", "Accept": "*/*",
            "Content-Length": len(raw), **headers}, raw)

    def read(count):
        found = []
        for _ in range(count):
            found.append(Answer(wire))
            found[-1].read_head(60).body(60)
        return found

    hello = json.dumps(c.build("initialize", {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "crowd", "version": "1"}})).encode()
    call = json.dumps(c.build("tools/call", {"name": "alpha__echo", "arguments": {}})).encode()
    ready = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    wire.send(send(hello) * n)
    ids = [a.header("Mcp-Session-Id") for a in read(n)]
    assert len(set(ids)) == n and None not in ids
    for session in ids:
        wire.send(send(ready, **{"Mcp-Session-Id": session})
                  + send(call, **{"Mcp-Session-Id": session}))
    assert [a.status for a in read(2 * n)] == [202, 200] * n
    if delete:
        wire.send(b"".join(request("DELETE", "/mcp", {"Host": "localhost",
                                                      "Mcp-Session-Id": s}) for s in ids))
        assert [a.status for a in read(n)] == [204] * n
    return ids


def test_o_061_sessions_that_come_and_go_leave_nothing(serve_conf):
    mv = serve_conf(alpha={**CROWD, "record": None}, log_level="info")
    c = mv.client()
    wire = c.wire()
    for _ in range(5):
        cycle(c, wire, 40)
    before, fds = memory_kb(mv), descriptors(mv)
    for _ in range(50):
        cycle(c, wire, 40)
    grown = memory_kb(mv) - before
    assert descriptors(mv) == fds
    assert mv.status()["clients"]["sessions"] == 0
    if not any(k.endswith("SAN_OPTIONS") for k in os.environ):
        assert grown < max(200, before * 0.05), (before, grown)


def test_o_061_sessions_that_are_left_expire(serve_conf):
    """2,000 times without DELETE; what a session holds goes when it is idle too long."""
    mv = serve_conf(alpha={**CROWD, "record": None}, log_level="info",
                    more="http : { session_idle_ms = 1000; };\n")
    c = mv.client()
    wire = c.wire()
    for _ in range(50):
        cycle(c, wire, 40, delete=False)
    wait_for(lambda: mv.status()["clients"]["sessions"] == 0, 10, "they expire")
    assert mv.legacy().tools()


def test_o_061_sessions_that_are_only_left_are_small(serve_http):
    mv = serve_http(alpha=CROWD)
    c = mv.client()
    wire = c.wire()
    cycle(c, wire, 40)
    before, fds = memory_kb(mv), descriptors(mv)
    ids = [s for _ in range(20) for s in cycle(c, wire, 40, delete=False)]
    grown = memory_kb(mv) - before
    assert descriptors(mv) == fds
    if not any(k.endswith("SAN_OPTIONS") for k in os.environ):
        assert grown < 5 * len(ids), (before, grown)
    c.session = ids[0]
    assert c.ask("ping").result == {}


@pytest.mark.slow
def test_ten_thousand_sessions(serve_http):
    """Those of which nothing is kept but the id make room; the others are the bound."""
    mv = serve_http(alpha={**CROWD, "logging": True})
    c = mv.client()
    wire = c.wire()
    ids = [s for _ in range(102) for s in cycle(c, wire, 100, delete=False)]
    c.session = ids[0]
    assert c.ask("ping").result == {}
    level = json.dumps(c.build("logging/setLevel", {"level": "error"})).encode()
    for at in range(0, 10000, 50):
        answers = [c.http("POST", {**c.base(), "Content-Type": "application/json",
                                   "Mcp-Session-Id": s}, level, wire=wire)
                   for s in ids[at:at + 50]]
        assert [a.read_head().body() and a.status for a in answers] == [200] * 50
    hello = {"protocolVersion": "2025-11-25", "capabilities": {},
             "clientInfo": {"name": "a", "version": "1"}}
    late = mv.client().send("initialize", hello)
    assert late.fault() == (503, -32603) and late.header("Retry-After")
    assert late.header("Mcp-Session-Id") is None
    assert c.ask("ping").result == {} and mv.modern().tools()
    assert c.delete().status == 204
    assert mv.client().send("initialize", hello).result


def test_connections_that_come_and_go_leave_nothing(serve_http):
    mv = serve_http(alpha=CROWD)
    legacy, modern = mv.legacy(), mv.modern()
    legacy.close(), modern.close()
    wait_for(lambda: mv.log().count("to=gone") >= len(legacy.wires) + len(modern.wires))
    fds = descriptors(mv)
    for n in range(100):
        c = (legacy, modern)[n % 2]
        answer = c.start_call("alpha__work", {"n": n}, meta={"progressToken": 1})
        if n % 3:
            assert answer.result
        answer.wire.reset() if n % 5 else answer.wire.close()
    wait_for(lambda: descriptors(mv) == fds, 5, "all descriptors are closed")
