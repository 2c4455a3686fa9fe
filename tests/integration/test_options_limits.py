# SPDX-License-Identifier: MIT
"""limits.*, http.* and the times of the whole: what each does, and what meets its bound."""
import base64
import signal
import struct
import time

import pytest

from http_client import ACCEPT, SESSION, Answer, Wire, request
from mcp import PATIENCE, wait_for

ERAS = ["legacy", "modern"]
ECHO = {"tools": ["echo"], "logging": True}
HOLD = {"tools": ["echo", "hold", "slow"], "calls": {
    "hold": [["gate", "go"], ["reply", '{"content":[],"structuredContent":${ARGS}}']],
    "slow": [["sleep", 400], ["reply", {"content": []}]]}}
BODY = b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}'


def head(mv, length=None, **more):
    return request("POST", "/mcp", {"Host": mv.address, "Accept": ACCEPT,
                                    "Content-Type": "application/json",
                                    "Content-Length": length, **more})


def limits(**kw):
    return {"limits": kw}


def http(**kw):
    return {"http": kw}


# -- limits --------------------------------------------------------------------------------


def test_connections_max(serve_conf):
    mv = serve_conf(alpha=ECHO, more=limits(connections_max=3))
    c = mv.modern()
    kept = [c.wire() for _ in range(3)]
    for wire in kept:
        assert c.send("tools/list", wire=wire).result
    answer = c.send("tools/list")
    assert answer.status == 503 and int(answer.header("Retry-After")) >= 1
    answer.wire.close()
    wait_for(lambda: mv.status()["clients"]["connections"] == 3, 5, "three are left")
    # More room by a reload, at once.
    mv.more = limits(connections_max=4)
    mv.reload()
    fourth = c.wire()
    wait_for(lambda: c.send("tools/list", wire=fourth).status == 200, 5, "there is room")
    for wire in kept:
        assert c.send("tools/list", wire=wire).result


@pytest.mark.parametrize("bound", [1, 3])
def test_pipeline_max(serve_conf, bound):
    mv = serve_conf(alpha=HOLD, more=limits(pipeline_max=bound))
    c = mv.modern()
    wire = c.wire()
    answers = [c.start_call("alpha__hold", {"n": n}, wire=wire) for n in range(8)]
    mv["alpha"].wait_input("tools/call", bound)
    mv.fence("alpha")
    calls = [r for r in mv["alpha"].inputs("tools/call") if r.msg["params"]["name"] == "hold"]
    assert len(calls) == bound
    mv["alpha"].open("go")
    assert [a.result["structuredContent"]["n"] for a in answers] == list(range(8))


def test_sessions_max(serve_conf):
    """Those that can come back make room; those that cannot keep their place."""
    mv = serve_conf(alpha=ECHO, more={**limits(sessions_max=2),
                                      **http(session_state_idle_ms=600000)})
    first = mv.legacy()
    for _ in range(4):
        mv.legacy()
    assert mv.status()["clients"]["sessions"] <= 2
    assert first.ask("ping").result == {}  # out of memory, and back
    keep = [first, mv.legacy()]
    for c in keep:
        assert c.ask("logging/setLevel", {"level": "info"}).result == {}
    late = mv.client()
    answer = late.send("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                      "clientInfo": {"name": "x", "version": "1"}})
    assert answer.status == 503 and int(answer.header("Retry-After")) >= 1
    assert answer.header(SESSION) is None
    # One that would have to be revived: it is told to wait, not that it is unknown.
    gone = mv.clients[2]
    answer = gone.send("ping")
    assert answer.status == 503 and int(answer.header("Retry-After")) >= 1
    assert mv.status()["clients"]["sessions"] == 2
    # Modern clients need none.
    assert mv.modern().tools() and keep[0].tools()
    assert keep[1].delete().status == 204
    wait_for(lambda: gone.send("ping").status == 200, 5, "there is a place again")


@pytest.mark.parametrize("era", ERAS)
def test_name_bytes(serve_conf, era):
    long = "a" * 30 + "_" + "b" * 30
    mv = serve_conf(alpha={"tools": ["echo", long]}, more=limits(name_bytes=24))
    c = mv.speak(era)

    def names():
        return [n for n in c.tools() if n != "alpha__echo"]

    (short,) = names()
    assert len(short) == 24
    assert c.call(short, {"a": 1}).result["structuredContent"] == {"a": 1}
    assert mv["alpha"].inputs("tools/call")[-1].msg["params"]["name"] == long
    mv.more = limits(name_bytes=128)
    mv.reload()
    assert names() == ["alpha__" + long]
    assert c.call(names()[0], {"a": 2}).result["structuredContent"] == {"a": 2}
    mv.more = ""
    mv.reload()
    assert [len(n) for n in names()] == [48]


# -- http ----------------------------------------------------------------------------------


def test_head_ms(serve_conf):
    mv = serve_conf(alpha=ECHO, more=http(head_ms=400, idle_ms=60000))
    idle, slow, trickle = Wire(mv.address), Wire(mv.address), Wire(mv.address)
    start = time.monotonic()
    slow.send(b"POST /mcp HTTP/1.1\r\nHost: ")
    for _ in range(3):
        trickle.send(b"X")
        time.sleep(0.05)
    for wire in (slow, trickle):
        answer = Answer(wire)
        assert answer.status == 408 and answer.header("Connection") == "close"
        assert 0.35 < time.monotonic() - start < 0.4 + 3 * PATIENCE
    idle.silent(0)  # its first byte starts the time
    for wire in (idle, slow, trickle):
        wire.close()


def test_body_ms(serve_conf):
    mv = serve_conf(alpha=ECHO, more=http(body_ms=300))
    silent, trickle = Wire(mv.address), Wire(mv.address)
    start = time.monotonic()
    silent.send(head(mv, len(BODY)) + BODY[:5])
    trickle.send(head(mv, len(BODY)))
    for i in range(5):  # longer in all, never silent for so long
        time.sleep(0.1)
        trickle.send(BODY[i * 9:i * 9 + 9])
    trickle.send(BODY[45:])
    assert Answer(trickle).status == 200
    answer = Answer(silent)
    assert answer.status == 408 and time.monotonic() - start > 0.25
    silent.close()
    trickle.close()


def test_idle_ms(serve_conf):
    mv = serve_conf(alpha=HOLD, more=http(idle_ms=300))
    c = mv.modern()
    fresh, used, busy = c.wire(), c.wire(), c.wire()
    answer = c.start_call("alpha__hold", {"n": 1}, wire=busy)
    start = time.monotonic()
    assert c.send("tools/list", wire=used).result
    for wire in (fresh, used):
        assert wire.wait_end(3) in (b"", wire.rest) and time.monotonic() - start > 0.25
    # A request that takes longer is not idle.
    mv["alpha"].open("go")
    assert answer.result["structuredContent"] == {"n": 1}


@pytest.mark.parametrize("era", ERAS)
def test_heartbeat_ms_and_commit_ms(serve_conf, era):
    mv = serve_conf(alpha=HOLD, more=http(heartbeat_ms=100, commit_ms=150))
    c = mv.speak(era)
    c.tools()
    start = time.monotonic()
    answer = c.start_call("alpha__hold", {"n": 1})
    assert answer.is_stream and time.monotonic() - start > 0.1
    beats = 0
    while beats < 3:
        answer.next_beat(5)
        beats += 1
    assert time.monotonic() - start > 0.25
    mv["alpha"].open("go")
    assert answer.result["structuredContent"] == {"n": 1}
    # What is quicker stays JSON.
    assert not c.start_call("alpha__echo", {}).is_stream
    # A reload moves both for what comes.
    mv.more = http(heartbeat_ms=60000, commit_ms=60000)
    mv.reload()
    late = c.start_call("alpha__slow", {})
    assert not late.is_stream and late.result


def test_heartbeats_of_the_stream_of_a_session(serve_conf):
    mv = serve_conf(alpha=HOLD, more=http(heartbeat_ms=100))
    stream = mv.legacy().get()
    start = time.monotonic()
    for _ in range(4):
        stream.next_beat(5)
    assert time.monotonic() - start > 0.25


@pytest.mark.parametrize("seconds", [60, 86400])
def test_session_s(serve_conf, seconds):
    """The id says until when it is valid; the shortest life is too long to wait for."""
    mv = serve_conf(alpha=ECHO, more=http(session_s=seconds))
    now = time.time()
    text = mv.legacy().session
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    begin, end = struct.unpack(">QQ", raw[9:25])
    assert end - begin == seconds and abs(begin - now) < 5


def test_session_idle_ms(serve_conf):
    """The memory goes, the session comes back."""
    mv = serve_conf(alpha=ECHO, more=http(session_idle_ms=200))
    c, with_stream = mv.legacy(), mv.legacy()
    stream = with_stream.get()
    assert stream.status == 200
    assert mv.status()["clients"]["sessions"] == 2
    wait_for(lambda: mv.status()["clients"]["sessions"] == 1, 5, "its memory is given back")
    assert c.call("alpha__echo", {"n": 1}).result["structuredContent"] == {"n": 1}
    # One with a stream is in use.
    mv["alpha"].run(["set", "tools", ["echo", "more"]], ["changed", "tools"])
    assert stream.next().msg["method"] == "notifications/tools/list_changed"


def test_session_state_idle_ms(serve_conf):
    """What cannot come back has its own time, and ends for good."""
    mv = serve_conf(alpha=ECHO, more=http(session_idle_ms=100, session_state_idle_ms=1500))
    c, plain = mv.legacy(), mv.legacy()
    assert c.ask("logging/setLevel", {"level": "info"}).result == {}
    start = time.monotonic()
    wait_for(lambda: mv.status()["clients"]["sessions"] == 1, 5, "the plain one goes first")
    wait_for(lambda: mv.status()["clients"]["sessions"] == 0, 8, "its own time is over")
    assert time.monotonic() - start > 1.2
    assert c.send("ping").fault() == (404, -32600)
    assert plain.ask("ping").result == {}


# -- the whole -----------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("wait_ms, waits", [(0, False), (300, False), (30000, True)])
def test_list_wait_ms(serve_conf, era, wait_ms, waits):
    slow = {"tools": ["echo"], "on": {"tools/list": [["gate", "go"], ["default"]]}}
    mv = serve_conf(alpha=ECHO, beta=slow, more={"list_wait_ms": wait_ms})
    wait_for(lambda: mv.upstream_status("alpha")["lists"]["tools"] is not None, 5, "one is known")
    mv["beta"].wait_input("tools/list")
    c = mv.client()
    if era == "legacy":
        # What is declared comes from the same lists, so it waits as well.
        answer = c.send("initialize", {"protocolVersion": c.revision, "capabilities": {},
                                       "clientInfo": {"name": "x", "version": "1"}})
    else:
        c.era, c.revision = "modern", "2026-07-28"
        answer = c.send("tools/list")
    if waits:
        assert not answer.has_started(150)
        mv["beta"].open("go")
    result = answer.message(5).result
    if era == "legacy":
        c.session = answer.header(SESSION)
        result = c.ask("tools/list").result
    names = [t["name"] for t in result["tools"]]
    assert names == ["alpha__echo"] + ["beta__echo"] * waits
    mv["beta"].open("go")


@pytest.mark.parametrize("drain_ms", [0, 300, 20000])
def test_drain_ms(serve_conf, drain_ms):
    mv = serve_conf(alpha=HOLD, more={"drain_ms": drain_ms})
    c = mv.modern()
    answer = c.start_call("alpha__hold", {"n": 1})
    mv["alpha"].wait_input("tools/call")
    start = time.monotonic()
    mv.proc.send_signal(signal.SIGTERM)
    if drain_ms > 1000:
        mv.wait_log("serve: stopping")
        mv["alpha"].open("go")
        assert answer.result["structuredContent"] == {"n": 1}
    else:
        assert answer.message().error["data"]["reason"] == "stopping"
        assert drain_ms / 1000 - 0.05 < time.monotonic() - start < drain_ms / 1000 + 3 * PATIENCE
    assert mv.wait_exit() == 0
    assert time.monotonic() - start < 8 * PATIENCE


@pytest.mark.parametrize("ms", [100, 20000])
def test_reload_drain_ms(serve_conf, tmp_path, ms):
    """The old process has that time for its calls; both are there meanwhile."""
    gate = tmp_path / "go"
    held = {"tools": ["echo", "hold"], "calls": {"hold": [
        ["file", str(gate)], ["reply", '{"content":[],"structuredContent":${ARGS}}']]}}
    mv = serve_conf(alpha=held, more={"reload_drain_ms": ms, "drain_ms": 0},
                    per={"alpha": {"env": {"MARK": "1"}}})
    c = mv.modern()
    answer = c.start_call("alpha__hold", {"n": 1})
    mv["alpha"].wait_input("tools/call")
    mv.per["alpha"]["env"] = {"MARK": "2"}
    mv.reload()
    wait_for(lambda: len(mv["alpha"].starts()) == 2, 5, "the new process")
    if ms > 1000:
        gate.touch()
        assert answer.result["structuredContent"] == {"n": 1}
    else:
        assert answer.message().error["data"]["upstream"] == "alpha"
    assert c.call("alpha__echo", {"n": 2}).result["structuredContent"] == {"n": 2}
