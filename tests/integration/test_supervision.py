# SPDX-License-Identifier: MIT
"""Upstreams that die, and mcpvisor that dies: who notices, who is left."""
import os
import re
import signal
import time

import pytest

from mcp import PATIENCE, group_members, wait_for

HOLD = [["gate", "go"], ["reply", {"content": []}]]


def holding(**more):
    return {"tools": ["echo", "hold"], "calls": {"hold": HOLD}, **more}


def failed(got, upstream="alpha"):
    assert got.code == -32603
    data = got.error["data"]
    assert data["upstream"] == upstream
    assert isinstance(data["reason"], str) and data["reason"]
    assert data["retryable"] is True
    return got


def works_again(mv, name="alpha__echo"):
    wait_for(lambda: "result" in mv.call(name, {}).msg, 5, name + " works again")


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_092_kill_fails_exactly_its_calls_at_once(each, upstream):
    up = {**holding(era=upstream), "tools": ["echo", "hold", "die"],
          "calls": {"hold": HOLD, "die": [["gate", "now"], ["kill"]]}}
    mv = each(alpha={**up, "mcpvisor": {"restart_base_ms": 50}}, beta=up)
    mv.ask("tools/list").result
    lost = [mv.start_call("alpha__hold", {"n": n}) for n in range(3)]
    lost.append(mv.start_call("alpha__die", {}))
    kept = mv.start_call("beta__hold", {})
    mv["alpha"].wait_input("tools/call", 4)
    mv["beta"].wait_input("tools/call")
    start = time.monotonic()
    mv["alpha"].open("now")
    for sent in lost:
        failed(mv.answer(sent))
    # All at once; the machine may have other things to do for a while.
    assert time.monotonic() - start < 0.1 + 0.4 * PATIENCE
    # The other one was not disturbed.
    mv["beta"].open("go")
    assert mv.answer(kept).result["content"] == []
    assert len(mv["beta"].starts()) == 1
    assert mv.seen().count(b'"code":-32603') == 4
    works_again(mv)
    assert len(mv["alpha"].starts()) == 2


def test_o_092_death_in_the_middle_of_an_answer(each):
    half = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ha'
    mv = each(alpha=holding(mcpvisor={"restart_base_ms": 50},
                            calls={"hold": [["bytes", {"hex": half.hex()}], ["kill"]]}))
    mv.tools()
    failed(mv.call("alpha__hold", {}))
    works_again(mv)


def test_a_call_to_a_dead_upstream_says_why_and_is_no_unknown_tool(serve):
    mv = serve(alpha={"tools": ["echo"], "mcpvisor": {"restart_base_ms": 60000}})
    mv.legacy()
    mv.tools()
    os.kill(mv["alpha"].starts()[0].pid, signal.SIGKILL)
    mv.wait_log("alpha.*signal")
    start = time.monotonic()
    got = failed(mv.call("alpha__echo", {}))
    assert time.monotonic() - start < 1
    assert "alpha" in got.error["message"]
    # Known but down: it stays listed.
    assert mv.tools() == ["alpha__echo"]


def test_o_093_death_at_start_is_told_with_its_last_words(each):
    trace = "Traceback:\n" + "x" * 100000 + "\nno module \x1b[31mnamed\x1b[0m cheese\n"
    mv = each(alpha={"tools": ["echo"], "mcpvisor": {"restart_base_ms": 60000},
                     "on": {"start": [["stderr", trace], ["exit", 1]]}},
              beta={"tools": ["echo"]})
    start = time.monotonic()
    assert mv.call("beta__echo", {}).result
    got = mv.call("alpha__echo", {})
    assert time.monotonic() - start < 3
    assert got.code == -32603 and got.error["data"]["upstream"] == "alpha"
    assert "status 1" in got.error["message"]
    assert re.search("no module .*named.* cheese", got.error["message"])
    assert "\x1b" not in got.error["message"] and len(got.raw) < 2000
    assert mv.tools() == ["beta__echo"]


@pytest.mark.parametrize("base,most", [(1, 11)])
def test_o_084_a_crash_loop_is_given_up(serve, tmp_path, base, most):
    # Ten counted deaths, and one excused as a possible death by probe.
    tally = tmp_path / "tally"
    loop = {"command": "/bin/sh", "args": ["-c", "echo x >> %s; exit 1" % tally],
            "mcpvisor": {"restart_base_ms": base}}
    mv = serve(alpha=loop, beta={"tools": ["echo"]})
    mv.legacy()
    assert mv.call("beta__echo", {}).result
    mv.wait_log("child: parked upstream=alpha", timeout=15)
    for _ in range(50):
        assert mv.tools() == ["beta__echo"]
    assert 5 <= len(tally.read_text().split()) <= most


def test_choice_5_an_upstream_that_ends_after_each_reply(serve):
    mv = serve(alpha={"tools": ["echo"], "exit_after_reply": True,
                      "mcpvisor": {"restart_base_ms": 1}})
    mv.legacy()
    mv.tools()
    for n in range(12):
        wait_for(lambda: "result" in mv.call("alpha__echo", {"n": n}).msg, 5, "reply %d" % n)
    assert len(mv["alpha"].starts()) >= 12


def test_o_083_restarts_leak_nothing(serve):
    def fds():
        return len(os.listdir("/proc/%d/fd" % mv.proc.pid))

    mv = serve(alpha={"tools": ["echo"], "exit_after_reply": True,
                      "mcpvisor": {"restart_base_ms": 1}}, beta={"tools": ["echo"]})
    mv.legacy()
    mv.tools()
    before = fds()
    for n in range(15):
        mv.call("alpha__echo", {})
        mv["alpha"].wait_input("tools/list", n + 2)
    wait_for(lambda: abs(fds() - before) <= 2, 3, "as many descriptors as before")
    zombies = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = open("/proc/%s/stat" % pid).read().rpartition(")")[2].split()
        except OSError:
            continue
        if stat[0] == "Z" and int(stat[1]) == mv.proc.pid:
            zombies.append(pid)
    assert len(zombies) <= 1


def test_o_082_the_upstream_leaves_while_we_write(each):
    mv = each(alpha={"tools": ["echo"], "exit_at": 100000,
                     "mcpvisor": {"restart_base_ms": 50}}, beta={"tools": ["echo"]})
    mv.tools()
    failed(mv.call("alpha__echo", {"x": "y" * (1 << 20)}))
    assert mv.call("beta__echo", {}).result
    works_again(mv)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_082_the_client_leaves_before_its_answer(serve_http, era):
    big = {"pre": '{"content":[{"type":"text","text":"', "repeat": "x", "n": 1 << 20,
           "post": '"}]}'}
    mv = serve_http(alpha={"tools": ["echo", "big"], "calls": {
        "big": [["gate", "go"], ["reply", big]]}, "obey_cancel": False})
    clients = [mv.speak(era) for _ in range(5)]
    answers = [c.start_call("alpha__big", {}) for c in clients]
    mv["alpha"].wait_input("tools/call", 5)
    for a in answers[1:]:
        a.wire.reset()
    mv.wait_log("(?s)(to=gone.*){4}")
    mv["alpha"].open("go")
    assert len(answers[0].message().text) == 1 << 20
    mv.fence("alpha")
    assert clients[0].call("alpha__echo", {}).result and len(mv["alpha"].starts()) == 1


def test_an_upstream_that_closes_its_stdout_is_restarted(serve):
    mv = serve(alpha=holding(mcpvisor={"restart_base_ms": 50},
                             calls={"hold": [["close_stdout"], ["block", 60000]]}))
    mv.legacy()
    start = time.monotonic()
    failed(mv.call("alpha__hold", {}))
    assert time.monotonic() - start < 2
    mv["alpha"].wait_input("notifications/initialized", 2, timeout=10)
    works_again(mv)


def test_a_grandchild_that_keeps_the_pipes_does_not_hold_the_calls(serve):
    mv = serve(alpha=holding(mcpvisor={"restart_base_ms": 50},
                             calls={"hold": [["linger"], ["kill"]]}))
    mv.legacy()
    mv.tools()
    start = time.monotonic()
    failed(mv.call("alpha__hold", {}))
    assert time.monotonic() - start < 3
    wait_for(lambda: "result" in mv.call("alpha__echo", {}).msg, 8)
    first = mv["alpha"].starts()[0].msg["pgid"]
    wait_for(lambda: not group_members({first}), 5, "the first group is gone")


@pytest.mark.parametrize("how", ["plain", "stubborn", "linger", "launcher"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_o_080_after_kill_9_of_mcpvisor_nobody_is_left(serve, serve_http, transport, how):
    alpha = {"tools": ["echo"]}
    if how == "stubborn":
        alpha.update(ignore_eof=True, ignore_term=True)
    if how == "launcher":
        alpha.update(wrap=["/bin/sh", "-c", 'exec 3<&0; "$@" <&3 3<&- & wait', "sh"],
                     ignore_term=True)
    if how == "linger":
        alpha["on"] = {"start": [["linger"]]}
    mv = (serve if transport == "stdio" else serve_http)(
        alpha=alpha, beta={"tools": ["echo"], "ignore_eof": True})
    assert mv.speak("legacy").tools()
    groups = mv.groups()
    assert group_members(groups)
    mv.kill()
    wait_for(lambda: not group_members(groups), 3, "nobody is left of %s" % groups)


def test_o_080_one_child_is_stopped_with_all_that_it_started(serve_conf):
    mv = serve_conf(alpha={"tools": ["echo"], "ignore_eof": True, "ignore_term": True, "wrap": [
        "/bin/sh", "-c", 'exec 3<&0; "$@" <&3 3<&- & wait', "sh"]}, beta={"tools": ["echo"]},
        per={"alpha": {"term_ms": 50, "kill_ms": 50}})
    c = mv.legacy()
    assert c.tools() == ["alpha__echo", "beta__echo"]
    group = {mv["alpha"].starts()[0].msg["pgid"]}
    assert len(group_members(group)) >= 2
    mv.control("restart", "alpha")
    wait_for(lambda: not group_members(group), 5, "the old group is gone")
    assert c.call("alpha__echo", {}).result and len(mv["alpha"].starts()) == 2
    mv.remove("alpha")
    mv.reload()
    wait_for(lambda: not group_members({mv["alpha"].starts()[1].msg["pgid"]}), 5, "it too")
    assert c.tools() == ["beta__echo"] and len(mv["beta"].starts()) == 1


def test_a_death_by_probe_only_happens_once(serve):
    mv = serve(alpha={"tools": ["echo"], "mcpvisor": {"restart_base_ms": 60000},
                      "on": {"server/discover": [["exit", 1]],
                             "initialize": [["exit", 1]]}}, beta={"tools": ["echo"]})
    mv.legacy()
    assert mv.tools() == ["beta__echo"]
    assert len(mv["alpha"].starts()) == 2


def test_the_end_of_an_old_output_does_not_end_the_next_process(serve):
    # A helper of the launcher keeps the output open for longer than the server, which
    # dies of the probe, lives.
    launch = ["/bin/sh", "-c", "sleep 0.4 & exec \"$@\"", "sh"]
    mv = serve(alpha={"tools": ["echo"], "initialize_first": True, "wrap": launch,
                      "on": {"start": [["block", 150]]},
                      "mcpvisor": {"restart_base_ms": 60000}})
    mv.legacy()
    assert mv.tools() == ["alpha__echo"]
    assert len(mv["alpha"].starts()) == 2
