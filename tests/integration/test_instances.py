# SPDX-License-Identifier: MIT
"""isolation and max_instances: who shares a process, and how many there may be."""
import json
import os

import pytest

from mcp import group_members, wait_for

ERAS = ["legacy", "modern"]
PID = [["reply", '{"content":[{"type":"text","text":"${PID}"}]}']]
# A file, as several processes wait for it.
HELD = [["file", "go"], *PID]
ALPHA = {"tools": ["echo", "pid", "hold", "die"], "resources": ["m:1"],
         "calls": {"pid": PID, "hold": HELD, "die": [["kill"]]}}
BUSY = {"upstream": "alpha", "reason": "busy", "retryable": True}


def per(isolation, **more):
    return {"alpha": {"isolation": isolation, **more}}


def pid(c, **kw):
    return int(c.call("alpha__pid", {}, **kw).text)


def held(mv, c):
    """A call that waits in its process."""
    n = len(mv["alpha"].inputs("tools/call"))
    answer = c.start_call("alpha__hold", {})
    mv["alpha"].wait_input("tools/call", n + 1)
    return answer


def let_go(mv):
    (mv.folder / "go").touch()


def instances(mv):
    return mv.upstream_status("alpha")["instances"]


def gone(number):
    return not os.path.exists("/proc/%d" % number)


def is_busy(answer):
    message = answer.message()
    return "error" in message.msg and (message.code, message.error["data"]) == (-32603, BUSY)


# -- shared, session -----------------------------------------------------------------


@pytest.mark.parametrize("isolation", ["auto", "shared"])
def test_shared_is_one_for_all(serve_conf, isolation):
    mv = serve_conf(alpha=ALPHA, per=per(isolation))
    assert len({pid(c) for c in (mv.legacy(), mv.legacy(), mv.modern())}) == 1
    assert len(mv["alpha"].starts()) == 1 and instances(mv) == 0


def test_session_is_bounded_and_over_the_bound_busy(serve_conf):
    mv = serve_conf(alpha=ALPHA, beta={"tools": ["echo"]}, per=per("session", max_instances=2))
    a, b, c = mv.legacy(), mv.legacy(), mv.legacy()
    first, second = pid(a), pid(b)
    assert first != second and instances(mv) == 2
    refused = c.start_call("alpha__pid", {})
    assert is_busy(refused)
    # Only that: who has one goes on, other upstreams too, and lists are for everybody.
    assert (pid(a), pid(b)) == (first, second)
    assert c.call("beta__echo", {}).result and "alpha__pid" in c.tools()
    assert mv.upstream_status("alpha")["calls"]["transport"]["busy"] == 1
    # What it refused was no place taken: there is one when another session ends.
    assert a.delete().status == 204
    wait_for(lambda: gone(first), 5, "its process ends")
    third = wait_for(lambda: (lambda m: "result" in m.msg and int(m.text))(
        c.call("alpha__pid", {})), 5, "there is room")
    assert third not in (first, second)


def test_a_reload_sets_the_bound(serve_conf):
    mv = serve_conf(alpha=ALPHA, per=per("session", max_instances=1))
    a, b = mv.legacy(), mv.legacy()
    first = pid(a)
    assert is_busy(b.start_call("alpha__pid", {}))
    mv.per["alpha"]["max_instances"] = 2
    assert "upstream.alpha.max_instances" in mv.reload()
    assert pid(b) != first and pid(a) == first


@pytest.mark.parametrize("era", ERAS)
def test_a_subscription_is_at_ones_own_process(serve_conf, era):
    mv = serve_conf(alpha=ALPHA, per=per("session"))
    a = mv.speak(era)
    assert a.ask("resources/list").result
    mine = pid(a)
    if era == "legacy":
        assert a.ask("resources/subscribe", {"uri": "m:1"}).result == {}
    else:
        stream = a.send("subscriptions/listen",
                        {"notifications": {"resourceSubscriptions": ["m:1"]}})
        assert stream.next().params["notifications"] == {"resourceSubscriptions": ["m:1"]}
    asked = [r.pid for r in mv["alpha"].inputs("resources/subscribe")]
    assert asked == [mine]


# -- call ----------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_calls_at_a_time_run_in_processes_of_their_own(serve_conf, era):
    mv = serve_conf(alpha=ALPHA, per=per("call"))
    clients = [mv.speak(era) for _ in range(2)]
    assert clients[0].tools()
    # Two of one client and two of another.
    answers = [held(mv, c) for c in clients * 2]
    assert len({r.pid for r in mv["alpha"].inputs("tools/call")}) == 4 and instances(mv) == 4
    let_go(mv)
    assert len({a.message().text for a in answers}) == 4


def test_a_process_is_used_again_and_never_for_two_at_once(serve_conf):
    mv = serve_conf(alpha=ALPHA, per=per("call", max_instances=3))
    c = mv.modern()
    assert len({pid(c) for _ in range(5)}) == 1
    answers = [mv.modern().start_call("alpha__pid", {}) for _ in range(40)]
    ended = [a.message() for a in answers]
    assert all("result" in m.msg or m.error["data"] == BUSY for m in ended)
    used = {int(m.text) for m in ended if "result" in m.msg}
    assert 0 < len(used) <= 3 and instances(mv) <= 3
    # In each process a call is answered before the next one comes.
    for one in used:
        kinds = [r.kind for r in mv["alpha"].records() if r.pid == one and (
            r.kind == "I" and b"tools/call" in r.raw or r.kind == "O" and b'"text"' in r.raw)]
        assert kinds == ["I", "O"] * (len(kinds) // 2)


@pytest.mark.parametrize("era", ERAS)
def test_call_is_bounded_and_over_the_bound_busy(serve_conf, era):
    mv = serve_conf(alpha=ALPHA, beta={"tools": ["echo"]}, per=per("call", max_instances=2))
    c = mv.speak(era)
    assert c.tools()
    answers = [held(mv, c) for _ in range(2)]
    assert is_busy(c.start_call("alpha__pid", {}))
    assert c.call("beta__echo", {}).result
    let_go(mv)
    found = {int(a.message().text) for a in answers}
    assert len(found) == 2 and pid(c) in found


def test_a_cancelled_call_takes_its_process_along(serve_conf):
    """That may be at work on it still, and ask or log for it while the next one runs."""
    mv = serve_conf(alpha=ALPHA, per=per("call", max_instances=1))
    c = mv.modern()
    assert c.tools()
    answer = held(mv, c)
    used = mv["alpha"].inputs("tools/call")[-1].pid
    assert is_busy(c.start_call("alpha__pid", {}))
    answer.wire.close()
    mv["alpha"].wait_input("notifications/cancelled")

    def next_one():
        got = c.call("alpha__pid", {})
        return "result" in got.msg and got.text

    assert int(wait_for(next_one, 5, "there is room for another one")) != used


def test_a_death_is_that_calls_alone(serve_conf):
    mv = serve_conf(alpha=ALPHA, per=per("call", restart_base_ms=1))
    c = mv.modern()
    assert c.tools()
    answer = held(mv, c)
    dead = c.call("alpha__die", {})
    assert dead.code == -32603 and dead.error["data"]["reason"] == "died"
    let_go(mv)
    assert answer.message().text
    assert wait_for(lambda: "result" in c.call("alpha__pid", {}).msg, 5, "another one runs")


def test_processes_of_calls_go_when_they_are_idle(serve_conf):
    mv = serve_conf(alpha=ALPHA, per=per("call", idle_stop_ms=100))
    c = mv.modern()
    used = pid(c)
    wait_for(lambda: gone(used) and instances(mv) == 0, 5, "it ends")
    assert pid(c) != used


def test_a_subscription_is_at_the_shared_one(serve_conf):
    mv = serve_conf(alpha=ALPHA, per=per("call"))
    c = mv.legacy()
    assert c.ask("resources/list").result
    used = pid(c)
    shared = mv.upstream_status("alpha")["pid"]
    assert c.ask("resources/subscribe", {"uri": "m:1"}).result == {}
    assert [r.pid for r in mv["alpha"].inputs("resources/subscribe")] == [shared]
    assert used != shared


def test_processes_of_calls_end_with_the_daemon(serve_conf):
    mv = serve_conf(alpha=ALPHA, per=per("call"), more="drain_ms = 1;\n")
    c = mv.modern()
    assert c.tools()
    for _ in range(3):
        held(mv, c)
    groups = mv.groups()
    assert len(groups) == 4
    assert mv.stop() == 0
    assert not group_members(groups)


def test_a_reload_of_isolation_is_a_new_process(serve_conf):
    mv = serve_conf(alpha=ALPHA, beta={"tools": ["echo", "pid"], "calls": {"pid": PID}},
                    per=per("shared"))
    c = mv.legacy()
    shared, other = pid(c), c.call("beta__pid", {}).text
    mv.per["alpha"]["isolation"] = "session"
    mv.reload()
    wait_for(lambda: gone(shared), 8, "the old one ends")
    assert pid(c) != mv.upstream_status("alpha")["pid"] and instances(mv) == 1
    assert c.call("beta__pid", {}).text == other


def test_stdio_by_a_conf_has_the_process_of_its_call(serve_conf):
    mv = serve_conf(alpha=ALPHA, per=per("call"))
    code, out, _ = mv.run("call", "--conf", mv.file, "alpha__pid")
    assert code == 0 and int(out) not in {
        mv.upstream_status("alpha")["pid"], mv["alpha"].starts()[0].pid}
    mine = [r.pid for r in mv["alpha"].inputs("tools/call")]
    lists = {r.pid for r in mv["alpha"].inputs("tools/list")}
    assert mine == [int(out)] and json.loads(mv["alpha"].records("B")[-1].raw)["pgid"]
    assert len(lists) >= 2


def test_a_stream_keeps_the_process_of_its_session(serve_conf):
    """Who waits for notices uses its own process; without a stream it may go."""
    mv = serve_conf(alpha={"tools": ["echo"]},
                    per={"alpha": {"isolation": "session", "idle_stop_ms": 300}})
    c, other = mv.legacy(), mv.legacy()
    stream = c.get()
    stream.read_head()
    for one in (c, other):
        assert one.call("alpha__echo", {"n": 1}).result
    own, others = [json.loads(r.raw)["pgid"] for r in mv["alpha"].starts()[-2:]]
    wait_for(lambda: not group_members({others}), 10, "the process of the other one sleeps")
    assert group_members({own})
    stream.wire.close()
    wait_for(lambda: not group_members({own}), 10, "without a stream it sleeps as well")
    assert c.call("alpha__echo", {"n": 2}).result["structuredContent"] == {"n": 2}
