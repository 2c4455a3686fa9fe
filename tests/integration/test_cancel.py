# SPDX-License-Identifier: MIT
"""Cancelling: to the owner alone, with its own id, at once, without an answer."""
import time

import pytest

from mcp import wait_for

HOLD = [["gate", "go"], ["reply", {"content": []}]]


def holding(era="legacy", **more):
    return {"era": era, "tools": ["echo", "hold"], "calls": {"hold": HOLD}, **more}


@pytest.mark.parametrize("client", ["legacy", "modern"])
@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_020_the_owner_alone_is_told_with_its_own_id(serve, client, upstream):
    mv = serve(alpha=holding(upstream), beta=holding(upstream))
    mv.speak(client)
    for key in (101, "101", 0):
        mv.start_call("alpha__hold", {}, id=key)
        n = len(mv["alpha"].inputs("notifications/cancelled"))
        sent = mv["alpha"].wait_input("tools/call", n + 1).msg
        start = time.monotonic_ns()
        mv.cancel(key, "changed my mind")
        note = mv["alpha"].wait_input("notifications/cancelled", n + 1)
        assert note.at - start < 500e6
        assert note.msg["params"]["requestId"] == sent["id"]
        assert note.msg["params"]["reason"] == "changed my mind"
    mv.fence("alpha")
    assert mv["beta"].inputs("notifications/cancelled") == []
    assert mv.pending == []


def test_an_answer_to_a_cancelled_call_is_dropped(serve):
    mv = serve(alpha=holding(obey_cancel=False))
    mv.legacy()
    key = mv.start_call("alpha__hold", {}, meta={"progressToken": 1})
    mv["alpha"].wait_input("tools/call")
    mv.cancel(key)
    mv["alpha"].wait_input("notifications/cancelled")
    mv["alpha"].open("go")
    mv.fence("alpha")
    assert mv.pending == []
    # The id may be used anew.
    assert mv.call("alpha__echo", {}, id=key).result


def test_a_call_that_the_upstream_never_saw(serve):
    mv = serve(alpha=holding(on={"initialize": [["gate", "up"], ["default"]]}))
    mv.modern()
    key = mv.start_call("alpha__echo", {"n": 1})
    mv["alpha"].wait_input("initialize")
    mv.cancel(key)
    mv["alpha"].open("up")
    assert mv.call("alpha__echo", {"n": 2}).result
    assert len(mv["alpha"].inputs("tools/call")) == 1
    assert mv["alpha"].inputs("notifications/cancelled") == []
    assert mv.pending == []


@pytest.mark.parametrize("params", [
    {"requestId": "unknown"}, {"requestId": 101}, {}, {"requestId": None},
    {"requestId": {"a": 1}}, {"requestId": 1.5}, None,
])
def test_what_cancels_nothing_is_ignored(serve, params):
    mv = serve(alpha=holding())
    mv.legacy()
    key = mv.start_call("alpha__hold", {}, id="101")
    mv["alpha"].wait_input("tools/call")
    mv.notify("notifications/cancelled", params)
    mv.fence("alpha")
    assert mv["alpha"].inputs("notifications/cancelled") == []
    mv["alpha"].open("go")
    assert mv.answer(key).result == {"content": []}
    # A cancel that comes too late.
    mv.cancel(key)
    mv.fence("alpha")
    assert mv["alpha"].inputs("notifications/cancelled") == []
    assert mv.pending == []


def test_initialize_cannot_be_cancelled(serve):
    mv = serve(alpha=holding(on={"initialize": [["gate", "up"], ["default"]]}))
    key = mv.send("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                 "clientInfo": {"name": "a", "version": "1"}})
    mv["alpha"].wait_input("initialize")
    mv.cancel(key)
    mv["alpha"].open("up")
    assert mv.answer(key).result


def test_reads_and_prompts_can_be_cancelled(serve):
    mv = serve(alpha={"tools": ["echo"], "prompts": ["p"], "resources": ["m:1"],
                      "on": {"prompts/get": [], "resources/read": []}})
    mv.legacy()
    for n, (method, params) in enumerate((("prompts/get", {"name": "alpha__p"}),
                                          ("resources/read", {"uri": "m:1"})), 1):
        key = mv.send(method, params)
        sent = mv["alpha"].wait_input(method).msg
        mv.cancel(key)
        note = mv["alpha"].wait_input("notifications/cancelled", n).msg
        assert note["params"]["requestId"] == sent["id"]
    mv.fence("alpha")
    assert mv.pending == []


def test_a_server_that_cancels_our_requests_is_not_obeyed(serve):
    mv = serve(alpha={"tools": ["echo", "odd"], "calls": {"odd": [
        ["notify", "notifications/cancelled", '{"requestId":${ID}}'],
        ["reply", {"content": []}]]}})
    mv.legacy()
    assert mv.call("alpha__odd").result == {"content": []}
    assert mv.notices() == []


def test_many_calls_one_cancel(serve):
    mv = serve(alpha=holding())
    mv.legacy()
    keys = [mv.start_call("alpha__hold", {"k": k}) for k in range(50)]
    wait_for(lambda: len(mv["alpha"].inputs("tools/call")) == 50)
    mv.cancel(keys[20])
    mv["alpha"].wait_input("notifications/cancelled")
    mv["alpha"].open("go")
    for k in keys:
        if k != keys[20]:
            mv.answer(k).result
    mv.fence("alpha")
    assert mv.pending == []
