# SPDX-License-Identifier: MIT
"""Streams of legacy sessions that break and are taken up again by Last-Event-ID."""
import pytest

from http_client import SESSION
from mcp import LATEST, wait_for

HOLD = [["gate", "go"], ["reply", {"content": []}]]
START = [["progress", 1], *HOLD]
WAYS = ["close", "reset", "half_close"]


def holding(**more):
    return {"tools": ["echo", "hold", "start"], "resources": ["m:1"],
            "calls": {"hold": HOLD, "start": START}, **more}


def start(c, n=1, tool="start", **kw):
    answer = c.start_call("alpha__" + tool, {}, meta={"progressToken": n}, **kw)
    assert answer.next().params["progress"] == 1
    return answer


def cut(mv, answer, how="close"):
    """Its connection is gone, and the daemon knows."""
    before = mv.log().count("to=gone")
    getattr(answer.wire, how)()
    wait_for(lambda: mv.log().count("to=gone") > before, 5, "the connection is gone")


def resume(c, key, **kw):
    return c.get(Last_Event_ID=key, **kw)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_the_answer_of_a_broken_call_waits(serve_http, how, when):
    mv = serve_http(alpha=holding())
    c = mv.legacy()
    answer = start(c, id="x")
    cut(mv, answer, how)
    if when == "before":
        mv["alpha"].open("go")
        mv.fence("alpha")
        again = resume(c, answer.last_id)
    else:
        again = resume(c, answer.last_id)
        assert again.status == 200 and again.is_stream
        again.quiet(60)
        mv["alpha"].open("go")
    got = again.message()
    assert got.msg["id"] == "x" and got.result == {"content": []}
    assert again.notices == []
    assert again.header(SESSION) == c.session
    # Its id is free, and the session goes on.
    assert c.call("alpha__echo", {}, id="x").result


def test_notices_come_again_from_where_the_client_was(serve_http):
    steps = [["progress", n] for n in range(1, 6)]
    mv = serve_http(alpha=holding(calls={"start": [*steps, *HOLD]}))
    c = mv.legacy()
    answer = start(c)
    seen = [answer.last_id]
    for n in range(2, 6):
        assert answer.next().params["progress"] == n
        seen.append(answer.last_id)
    assert len(set(seen)) == 5
    first = answer.events[0]
    assert first.data == b"" and first.id not in seen  # the priming event
    cut(mv, answer)
    for key, rest in [(first.id, [1, 2, 3, 4, 5]), (seen[1], [3, 4, 5])]:
        again = resume(c, key)
        assert again.next_event().data == b""
        assert [again.next().params["progress"] for _ in rest] == rest
        assert again.last_id == seen[-1]
        cut(mv, again)
    # What came before that id is not wanted any more; what came after it is still there.
    again = resume(c, seen[3])
    mv["alpha"].open("go")
    again.message()
    assert [m.params["progress"] for m in again.notices] == [5]


def test_a_stream_has_one_line_at_a_time(serve_http):
    mv = serve_http(alpha=holding())
    c = mv.legacy()
    answer = start(c)
    again = resume(c, answer.last_id)
    assert again.status == 200
    # Its client knows better than the daemon that the old one is dead.
    answer.end()
    mv["alpha"].open("go")
    assert again.message().result == {"content": []}


def test_each_stream_gives_its_own(serve_http):
    mv = serve_http(alpha=holding())
    c = mv.legacy()
    answers = [start(c, n, id="call %d" % n) for n in range(5)]
    stream = c.get()
    assert stream.is_stream
    keys = [a.last_id for a in answers]
    for a in answers:
        cut(mv, a)
    mv["alpha"].open("go")
    mv.fence("alpha")
    again = {n: resume(c, keys[n]) for n in (3, 0, 4)}
    for n, a in again.items():
        assert a.message().msg["id"] == "call %d" % n
    # Never on the stream of notices.
    stream.quiet(60)
    every = [e.id for a in [*answers, *again.values(), stream] for e in a.events if e.data]
    assert len(every) == len(set(every)) and all(every)


def test_nobody_else_can_take_it_up(serve_http):
    mv = serve_http(alpha=holding())
    c, other = mv.legacy(), mv.legacy()
    answer = start(c)
    cut(mv, answer)
    foreign = resume(other, answer.last_id)
    assert foreign.status == 405
    assert resume(mv.client(), answer.last_id).status == 405  # no session
    mv["alpha"].open("go")
    assert resume(c, answer.last_id).message().result == {"content": []}


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", LATEST])
def test_ids_belong_to_revisions(serve_http, revision):
    mv = serve_http(alpha=holding())
    c = mv.legacy(revision)
    answer = start(c)
    has_ids = revision >= "2025-03-26"
    assert bool(answer.last_id) == has_ids
    assert (answer.events[0].data == b"") == (revision == LATEST)
    stream = c.get()
    assert stream.is_stream
    if revision == LATEST:
        assert stream.next_event().data == b"" and stream.last_id
    mv["alpha"].run(["set", "tools", ["echo"]], ["changed", "tools"])
    assert stream.next().msg["method"] == "notifications/tools/list_changed"
    assert bool(stream.last_id) == has_ids
    mv["alpha"].open("go")
    assert answer.message().result == {"content": []}


def test_modern_and_sessionless_streams_have_no_ids(serve_http):
    mv = serve_http(alpha=holding())
    answer = start(mv.modern())
    mv["alpha"].open("go")
    answer.message()
    assert answer.last_id is None
    c = mv.client()
    c.era, c.revision = "legacy", "2025-03-26"
    answer = c.start_call("alpha__start", {}, meta={"progressToken": 1})
    answer.message()
    assert answer.last_id is None


@pytest.mark.parametrize("key", ["1", "x", "r", "n00000000-1-1", "n12345678-1-99", "é".encode()
                                 .decode("latin-1"), "r00000000-1", "999999999999999999999"])
def test_an_id_that_says_nothing_opens_a_stream_of_its_own(serve_http, key):
    mv = serve_http(alpha=holding())
    c = mv.legacy()
    stream = resume(c, key)
    if any(ord(x) > 127 for x in key):
        assert stream.status in (200, 400)
        return
    assert stream.status == 200 and stream.is_stream
    mv["alpha"].run(["set", "tools", ["echo"]], ["changed", "tools"])
    assert stream.next().msg["method"] == "notifications/tools/list_changed"


def test_what_is_over_has_no_stream(serve_http):
    mv = serve_http(alpha=holding(calls={"start": START, "fail": [
        ["progress", 1], ["error", -32000, "no"]]}, tools=["echo", "start", "fail"]))
    c = mv.legacy()
    answer = start(c)
    mv["alpha"].open("go")
    answer.message()
    # Whoever has it all is not given a stream to wait on for ever.
    assert resume(c, answer.last_id).status == 405
    failed = start(c, tool="fail")
    assert failed.message().error["code"] == -32000
    assert resume(c, failed.last_id).status == 405
    # Whoever lost the end of it gets that once more.
    assert resume(c, answer.events[0].id).message().result == {"content": []}
    assert resume(c, "r00000000-1-1").status == 405


def test_a_cancelled_call_is_over(serve_http):
    mv = serve_http(alpha=holding())
    c = mv.legacy()
    answer = start(c, id=5)
    cut(mv, answer)
    c.cancel(5)
    mv["alpha"].wait_input("notifications/cancelled")
    assert resume(c, answer.last_id).status == 405


def test_two_ids_at_once_are_refused(serve_http):
    mv = serve_http(alpha=holding())
    assert mv.legacy().get(Last_Event_ID=["1", "2"]).fault() == (400, -32600)


@pytest.mark.parametrize("fresh", [False, True])
def test_notices_wait_for_their_stream(serve_http, fresh):
    mv = serve_http(alpha=holding())
    c = mv.legacy()
    c.ask("resources/subscribe", {"uri": "m:1"}).result
    stream = c.get()
    assert stream.is_stream
    mv["alpha"].run(["updated", "m:1"])
    assert stream.next().params["uri"] == "m:1"
    key = stream.last_id
    cut(mv, stream)
    mv["alpha"].run(["updated", "m:1"], ["set", "tools", ["echo"]], ["changed", "tools"])
    wait_for(lambda: c.tools() == ["alpha__echo"], 5, "the list has changed")
    again = c.get() if fresh else resume(c, key)
    assert sorted(again.next().msg["method"] for _ in range(2)) == [
        "notifications/resources/updated", "notifications/tools/list_changed"]
    # Each of them once.
    cut(mv, again)
    other = c.get()
    assert other.is_stream
    other.quiet(60)
    mv["alpha"].run(["updated", "m:1"])
    assert other.next().params["uri"] == "m:1"


def test_a_stream_that_was_lost_with_its_memory(serve_http):
    """After a restart ids of before name nothing."""
    mv = serve_http(alpha=holding())
    c = mv.legacy()
    stream, answer = c.get(), start(c)
    assert stream.next_event().data == b""
    old, call = stream.last_id, answer.last_id
    mv.restart(close=False)
    # The client is told when to look again.
    assert stream.next() is None
    assert [f for e in stream.events for f in e.fields] == [(b"retry", b"1000")]
    again = resume(c, old)
    assert again.status == 200 and again.next_event().data == b""
    assert again.last_id != old
    assert resume(c, call).status == 405


def test_questions_come_again(serve_http):
    ask = [["progress", 1], ["request", 7, "elicitation/create",
                             '{"message":"?","requestedSchema":{"type":"object","properties":{}}}'],
           ["expect", 7, 5000], ["reply", {"content": []}]]
    mv = serve_http(alpha=holding(calls={"start": ask}))
    mv.check_schema = False  # it knows no requests of ours
    c = mv.legacy(capabilities={"elicitation": {}})
    answer = c.start_call("alpha__start", {}, meta={"progressToken": 1})
    assert answer.next().params["progress"] == 1
    key = answer.last_id
    asked = answer.next()
    assert asked.msg.get("method") == "elicitation/create", asked.msg
    cut(mv, answer)
    again = resume(c, key)
    second = again.next()
    assert second.msg == asked.msg
    reply = c.post({"jsonrpc": "2.0", "id": second.msg["id"],
                    "result": {"action": "decline"}})
    assert reply.status == 202
    assert again.message().result == {"content": []}


def lost(mv):
    return mv.status()["counters"]["mcpvisor_replies_lost_total"]


def test_how_long_an_answer_waits(serve_conf):
    mv = serve_conf(alpha=holding(), more={"http": {"replay_ms": 300}})
    c = mv.legacy()
    one, two = start(c), start(c)
    cut(mv, one)
    cut(mv, two)
    again = resume(c, one.last_id)
    assert again.is_stream  # nothing is over before its call
    cut(mv, again)
    mv["alpha"].open("go")
    wait_for(lambda: lost(mv) == 2, 5, "they have waited long enough")
    for answer in (one, two):
        assert resume(c, answer.last_id).status == 405


def test_an_answer_that_is_too_large_to_be_kept(serve_conf):
    big = [["progress", 1], ["gate", "go"],
           ["reply", {"content": [{"type": "text", "text": "x" * 5000}]}]]
    mv = serve_conf(alpha=holding(calls={"start": big}),
                    more={"http": {"replay_bytes": 4096}})
    c = mv.legacy()
    answer, other = start(c), start(c)
    cut(mv, answer)
    mv["alpha"].open("go")
    # Whoever is there gets it.
    assert len(other.result["content"][0]["text"]) == 5000
    error = resume(c, answer.last_id).message().error
    assert error["code"] == -32603
    assert error["data"] == {"reason": "not_kept", "retryable": False}


def test_no_ids_by_the_conf(serve_conf):
    mv = serve_conf(alpha=holding(), more={"http": {"replay_bytes": 0}})
    answer = start(mv.legacy())
    mv["alpha"].open("go")
    assert answer.message().result == {"content": []} and answer.last_id is None
