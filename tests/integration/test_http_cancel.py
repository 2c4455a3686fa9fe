# SPDX-License-Identifier: MIT
"""Giving up over HTTP: a modern stream's end cancels, a legacy one's does not."""
import pytest

from mcp import wait_for

HOLD = [["gate", "go"], ["reply", {"content": []}]]
START = [["progress", 1], *HOLD]


def holding(era="legacy", **more):
    return {"era": era, "tools": ["echo", "hold", "start"],
            "calls": {"hold": HOLD, "start": START}, **more}


@pytest.mark.parametrize("how", ["close", "reset", "half_close"])
@pytest.mark.parametrize("tool", ["hold", "start"])
@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_020_the_end_of_a_modern_stream_cancels(serve_http, upstream, tool, how):
    mv = serve_http(alpha=holding(upstream), beta=holding(upstream))
    answer = mv.modern().start_call("alpha__" + tool, {}, id=1, meta={"progressToken": 1})
    sent = mv["alpha"].wait_input("tools/call").msg
    if tool == "start":
        assert answer.next().params["progress"] == 1
    getattr(answer.wire, how)()
    note = mv["alpha"].wait_input("notifications/cancelled").msg
    assert note["params"]["requestId"] == sent["id"]
    mv.fence("alpha")
    assert len(mv["alpha"].inputs("notifications/cancelled")) == 1
    assert mv["beta"].inputs("notifications/cancelled") == []
    if how == "half_close":
        # It gets nothing more but the end.
        assert answer.wire.wait_end() in (b"", b"0\r\n\r\n")


@pytest.mark.parametrize("how", ["close", "reset", "half_close"])
@pytest.mark.parametrize("tool", ["hold", "start"])
def test_the_end_of_a_legacy_stream_does_not_cancel(serve_http, tool, how):
    mv = serve_http(alpha=holding())
    c = mv.legacy()
    answer = c.start_call("alpha__" + tool, {}, id="x", meta={"progressToken": 1})
    mv["alpha"].wait_input("tools/call")
    if tool == "start":
        assert answer.next().params["progress"] == 1
    getattr(answer.wire, how)()
    mv.wait_log("to=gone")
    mv.fence("alpha")
    assert mv["alpha"].inputs("notifications/cancelled") == []
    # It is still the session's request: its id is taken, and it can be cancelled.
    assert c.call("alpha__echo", {}, id="x").code == -32600
    c.cancel("x")
    mv["alpha"].wait_input("notifications/cancelled")
    assert c.call("alpha__echo", {}, id="x").result


def test_an_answer_for_a_legacy_client_that_has_gone_is_dropped(serve_http):
    mv = serve_http(alpha=holding())
    c = mv.legacy()
    answers = [c.start_call("alpha__hold", {}) for _ in range(3)]
    mv["alpha"].wait_input("tools/call", 3)
    for a in answers:
        a.wire.reset()
    stream = c.get()
    assert stream.is_stream
    mv["alpha"].open("go")
    mv.fence("alpha")
    # An answer never travels on the stream of notices.
    stream.quiet(60)
    assert c.call("alpha__hold", {}).result == {"content": []}


@pytest.mark.parametrize("tool", ["hold", "start"])
@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_020_cancelled_of_a_session_ends_the_stream_empty(serve_http, upstream, tool):
    mv = serve_http(alpha=holding(upstream), beta=holding(upstream))
    c = mv.legacy()
    answer = c.start_call("alpha__" + tool, {}, id=5, meta={"progressToken": 1})
    other = c.start_call("alpha__hold", {}, id="5")
    sent = mv["alpha"].wait_input("tools/call").msg
    if tool == "start":
        assert answer.next().params["progress"] == 1
    c.cancel(5, "changed my mind")
    note = mv["alpha"].wait_input("notifications/cancelled").msg
    told = {k: note["params"][k] for k in ("requestId", "reason")}
    assert told == {"requestId": sent["id"], "reason": "changed my mind"}
    assert mv["beta"].inputs("notifications/cancelled") == []
    assert answer.is_stream and answer.status == 200
    answer.end()
    mv["alpha"].open("go")
    assert other.result["content"] == []


def test_cancelled_for_a_client_that_takes_no_stream(serve_http):
    mv = serve_http(alpha=holding())
    c = mv.legacy()
    answer = c.start_call("alpha__hold", {}, id=5, headers={"Accept": "application/json"})
    mv["alpha"].wait_input("tools/call")
    c.cancel(5, "changed my mind")
    # There is no answer, and nothing of a kind that it did not ask for.
    assert answer.status == 202 and not answer.is_stream and answer.body() == b""


def test_cancelled_of_one_session_is_nothing_to_another(serve_http):
    mv = serve_http(alpha=holding())
    a, b = mv.legacy(), mv.legacy()
    answers = [x.start_call("alpha__hold", {}, id=1) for x in (a, b)]
    mv["alpha"].wait_input("tools/call", 2)
    mv.client().cancel(1)
    mv.fence("alpha")
    assert mv["alpha"].inputs("notifications/cancelled") == []
    a.cancel(1)
    answers[0].end()
    mv["alpha"].open("go")
    assert answers[1].result == {"content": []}
    assert len(mv["alpha"].inputs("notifications/cancelled")) == 1


def test_a_closed_pipelined_connection_ends_each_of_its_calls_by_its_rules(serve_http):
    mv = serve_http(alpha=holding())
    modern, legacy = mv.modern(), mv.legacy()
    wire = modern.wire()
    for n in range(6):
        (modern, legacy)[n % 2].start_call("alpha__hold", {"n": n}, wire=wire)
    mv["alpha"].wait_input("tools/call", 6)
    sent = {r.msg["params"]["arguments"]["n"]: r.msg["id"]
            for r in mv["alpha"].inputs("tools/call")}
    wire.close()
    mv["alpha"].wait_input("notifications/cancelled", 3)
    mv.fence("alpha")
    gone = [r.msg["params"]["requestId"] for r in mv["alpha"].inputs("notifications/cancelled")]
    assert sorted(gone) == sorted(sent[n] for n in (0, 2, 4))


def test_calls_that_were_answered_are_not_cancelled(serve_http):
    mv = serve_http(alpha=holding())
    c = mv.modern()
    wire = c.wire()
    assert c.call("alpha__echo", {}, wire=wire).result
    held = c.start_call("alpha__hold", {}, wire=wire)
    mv["alpha"].wait_input("tools/call", 2)
    held.wire.close()
    mv["alpha"].wait_input("notifications/cancelled")
    mv.fence("alpha")
    assert len(mv["alpha"].inputs("notifications/cancelled")) == 1


def test_reads_and_prompts_are_cancelled_too(serve_http):
    mv = serve_http(alpha={"tools": ["echo"], "prompts": ["p"], "resources": ["m:1"],
                           "on": {"prompts/get": [], "resources/read": []}})
    c = mv.modern()
    c.ask("resources/list").result
    for n, (method, params) in enumerate((("prompts/get", {"name": "alpha__p"}),
                                          ("resources/read", {"uri": "m:1"})), 1):
        answer = c.send(method, params)
        sent = mv["alpha"].wait_input(method).msg
        answer.wire.close()
        note = mv["alpha"].wait_input("notifications/cancelled", n).msg
        assert note["params"]["requestId"] == sent["id"]


def test_a_call_that_waits_for_a_starting_upstream_is_forgotten(serve_http):
    mv = serve_http(alpha=holding(on={"initialize": [["gate", "up"], ["default"]]}))
    c = mv.modern()
    answer = c.start_call("alpha__echo", {"n": 1})
    mv["alpha"].wait_input("initialize")
    answer.wire.close()
    mv.wait_log("to=gone")
    mv["alpha"].open("up")
    assert c.call("alpha__echo", {"n": 2}).result
    assert [r.msg["params"]["arguments"] for r in mv["alpha"].inputs("tools/call")] == [{"n": 2}]


def test_a_hundred_clients_leave_at_once(serve_http):
    mv = serve_http(alpha=holding())
    answers = [mv.modern().start_call("alpha__hold", {}) for _ in range(100)]
    mv["alpha"].wait_input("tools/call", 100, 20)
    for a in answers:
        a.wire.reset()
    wait_for(lambda: len(mv["alpha"].inputs("notifications/cancelled")) == 100, 10)
    told = {r.msg["params"]["requestId"] for r in mv["alpha"].inputs("notifications/cancelled")}
    assert len(told) == 100
