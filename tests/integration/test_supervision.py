# SPDX-License-Identifier: MIT
"""Upstreams that die, and mcpvisor that dies: who notices, who is left."""
import os
import signal
import time

import pytest

from mcp import group_members, wait_for

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


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_092_kill_fails_exactly_its_calls_at_once(serve, era):
    mv = serve(alpha=holding(era=era, mcpvisor={"restart_base_ms": 50}), beta=holding())
    mv.speak(era)
    mv.ask("tools/list").result
    lost = [mv.start_call("alpha__hold", {"n": n}) for n in range(4)]
    kept = mv.start_call("beta__hold", {})
    mv["alpha"].wait_input("tools/call", 4)
    start = time.monotonic()
    os.kill(mv["alpha"].starts()[0].pid, signal.SIGKILL)
    for key in lost:
        failed(mv.answer(key))
    assert time.monotonic() - start < 1
    # The other one was not disturbed.
    mv["beta"].open("go")
    assert mv.answer(kept).result["content"] == []
    assert len(mv["beta"].starts()) == 1
    works_again(mv)
    assert len(mv["alpha"].starts()) == 2
    mv.fence("alpha")
    assert [m for m in mv.pending if m.msg.get("method") != "notifications/tools/list_changed"
            ] == []


def test_o_092_death_in_the_middle_of_an_answer(serve):
    half = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ha'
    mv = serve(alpha=holding(mcpvisor={"restart_base_ms": 50},
                             calls={"hold": [["bytes", {"hex": half.hex()}], ["kill"]]}))
    mv.legacy()
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


def test_o_093_death_at_start_is_told_with_its_last_words(serve):
    mv = serve(alpha={"tools": ["echo"], "mcpvisor": {"restart_base_ms": 60000},
                      "on": {"start": [["stderr", "Traceback:\nno module named cheese\n"],
                                       ["exit", 1]]}},
               beta={"tools": ["echo"]})
    start = time.monotonic()
    mv.legacy()
    assert time.monotonic() - start < 2
    got = mv.call("alpha__echo", {})
    assert got.code == -32603
    assert "status 1" in got.error["message"]
    assert "no module named cheese" in got.error["message"]
    assert mv.call("beta__echo", {}).result


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


def test_o_082_the_upstream_leaves_while_we_write(serve):
    mv = serve(alpha={"tools": ["echo"], "exit_at": 100000,
                      "mcpvisor": {"restart_base_ms": 50}}, beta={"tools": ["echo"]})
    mv.legacy()
    mv.tools()
    failed(mv.call("alpha__echo", {"x": "y" * (1 << 20)}))
    assert mv.call("beta__echo", {}).result
    works_again(mv)


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
def test_o_080_after_kill_9_of_mcpvisor_nobody_is_left(serve, how):
    alpha = {"tools": ["echo"]}
    if how == "stubborn":
        alpha.update(ignore_eof=True, ignore_term=True)
    if how == "launcher":
        alpha["wrap"] = ["/bin/sh", "-c", 'exec 3<&0; "$@" <&3 3<&- & wait', "sh"]
    if how == "linger":
        alpha["on"] = {"start": [["linger"]]}
    mv = serve(alpha=alpha, beta={"tools": ["echo"], "ignore_eof": True})
    mv.legacy()
    mv.tools()
    groups = mv.groups()
    assert group_members(groups)
    mv.kill()
    wait_for(lambda: not group_members(groups), 3, "nobody is left of %s" % groups)


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
