# SPDX-License-Identifier: MIT
"""Time limits of a call, and what becomes of an answer that comes too late."""
import time

import pytest

HOLD = [["gate", "go"], ["reply", {"content": []}]]


def timed_out(got, upstream="alpha"):
    assert got.code == -32603
    assert got.error["data"]["upstream"] == upstream
    assert got.error["data"]["reason"] == "timeout"
    assert isinstance(got.error["data"]["retryable"], bool)
    return got


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_022_a_call_without_an_answer_ends_at_its_limit(each, upstream):
    """Of the record: a child on stdio; one on HTTP is in test_cases_remote."""
    mv = each(alpha={"era": upstream, "tools": ["echo", "hold"],
                     "calls": {"hold": HOLD}, "mcpvisor": {"call_ms": 300}})
    mv.ask("tools/list").result
    start = time.monotonic()
    got = timed_out(mv.call("alpha__hold", {}))
    took = time.monotonic() - start
    assert 0.25 < took < 2
    assert "300" in got.error["message"] or "0.3" in got.error["message"]
    sent = mv["alpha"].wait_input("tools/call").msg
    note = mv["alpha"].wait_input("notifications/cancelled").msg
    assert note["params"]["requestId"] == sent["id"]
    assert mv.call("alpha__echo", {}).result


@pytest.mark.parametrize("token", [1, None])
def test_o_021_a_late_answer_is_dropped(each, token):
    mv = each(alpha={"tools": ["echo", "hold"], "calls": {"hold": HOLD},
                     "obey_cancel": False, "mcpvisor": {"call_ms": 200}})
    meta = {"progressToken": token} if token else None
    timed_out(mv.call("alpha__hold", {}, meta=meta))
    second = mv.start_call("alpha__echo", {"n": 2})
    mv["alpha"].open("go")
    assert mv.answer(second).result["structuredContent"] == {"n": 2}
    mv.fence("alpha")
    assert mv.notices() == [] and mv.seen().count(b"timeout") == 1
    assert len(mv["alpha"].starts()) == 1


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_021_a_late_answer_is_counted(serve_conf, era):
    mv = serve_conf(alpha={"tools": ["echo", "hold"], "calls": {"hold": HOLD},
                           "obey_cancel": False}, per={"alpha": {"call_ms": 100}})
    c = mv.speak(era)
    timed_out(c.call("alpha__hold", {}))
    before = mv.status()["counters"]["mcpvisor_replies_late_total"]
    mv["alpha"].open("go")
    assert c.call("alpha__echo", {}).result
    assert mv.status()["counters"]["mcpvisor_replies_late_total"] == before + 1
    assert mv.upstream_status("alpha")["state"] == "ready"


def test_progress_renews_the_limit(serve):
    steps = [["repeat", 5, [["sleep", 150], ["progress", 1]]], ["reply", {"content": []}]]
    mv = serve(alpha={"tools": ["work"], "calls": {"work": steps},
                      "mcpvisor": {"call_ms": 500}})
    mv.legacy()
    assert mv.call("alpha__work", {}, meta={"progressToken": 1}).result
    assert len(mv.notices()) == 5


def test_progress_does_not_renew_it_for_ever(serve):
    steps = [["forever", [["sleep", 50], ["progress", 1]]]]
    mv = serve(alpha={"tools": ["work"], "calls": {"work": steps},
                      "mcpvisor": {"call_ms": 300, "call_max_ms": 600}})
    mv.legacy()
    start = time.monotonic()
    timed_out(mv.call("alpha__work", {}, meta={"progressToken": 1}))
    assert 0.5 < time.monotonic() - start < 3
    mv["alpha"].wait_input("notifications/cancelled")


def test_limits_are_each_upstreams_own(serve):
    both = {"tools": ["hold"], "calls": {"hold": HOLD}}
    mv = serve(alpha={**both, "mcpvisor": {"call_ms": 150}}, beta=both)
    mv.legacy()
    patient = mv.start_call("beta__hold", {})
    timed_out(mv.call("alpha__hold", {}))
    mv["beta"].open("go")
    assert mv.answer(patient).result


def test_reads_and_prompts_have_the_limit_too(serve):
    mv = serve(alpha={"prompts": ["p"], "resources": ["m:1"],
                      "on": {"prompts/get": [], "resources/read": []},
                      "mcpvisor": {"call_ms": 150}})
    mv.legacy()
    timed_out(mv.ask("prompts/get", {"name": "alpha__p"}))
    timed_out(mv.ask("resources/read", {"uri": "m:1"}))


def test_a_call_held_for_an_upstream_that_never_gets_ready(serve):
    mv = serve(alpha={"tools": ["echo"], "on": {"initialize": []},
                      "mcpvisor": {"start_ms": 400, "restart_base_ms": 60000}})
    mv.modern()
    start = time.monotonic()
    got = mv.call("alpha__echo", {})
    assert got.code in (-32603, -32602)
    assert time.monotonic() - start < 7


def test_o_090_a_slow_call_holds_up_nobody(each):
    mv = each(alpha={"tools": ["echo", "hold"], "calls": {"hold": HOLD}},
              beta={"tools": ["echo"]})
    mv.tools()
    slow = mv.start_call("alpha__hold", {"n": 1})
    mv["alpha"].wait_input("tools/call")
    start = time.monotonic()
    mv.ping()
    mv.tools()
    mv.call("alpha__echo", {}).result
    mv.call("beta__echo", {}).result
    if mv.is_http:  # and others, who are there already or come only now
        for era in ("legacy", "modern"):
            other = mv.mv.speak(era)
            assert other.tools() and other.call("alpha__echo", {"era": era}).result
    assert time.monotonic() - start < 1
    # It is answered last although it was asked first.
    mv["alpha"].open("go")
    assert mv.answer(slow).result["content"] == []
