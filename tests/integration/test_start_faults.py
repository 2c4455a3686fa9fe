# SPDX-License-Identifier: MIT
"""Starts that go wrong, by the conf: whose business that is, and what is told of it."""
import os
import signal
import time

import pytest

from mcp import group_members, wait_for

ERAS = ["legacy", "modern"]
FULL = {"tools": ["echo"], "prompts": ["ask"], "resources": ["m:1"], "texts": {"m:1": "one"},
        "resourceTemplates": ["t:{x}"]}


def changes(c):
    """A stream that tells of new tools."""
    if c.era == "legacy":
        stream = c.get()
        assert stream.is_stream
        return stream
    stream = c.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    stream.next()
    return stream


@pytest.mark.parametrize("era", ERAS)
def test_o_052_one_that_is_broken_is_nobody_elses_business(serve_conf, tmp_path, era):
    missing = tmp_path / "bin"
    mv = serve_conf(alpha=FULL, beta={"command": "/nonexistent"}, gamma=FULL,
                    delta={"command": "/bin/sleep", "args": ["600"]},
                    epsilon={"command": "/bin/cat", "args": ["/nonexistent"]},
                    more="list_wait_ms = 600;\n",
                    per={"beta": {"restart_base_ms": 60000}, "gamma": {
                        "command": str(missing), "restart_base_ms": 100, "restart_max_ms": 100,
                        "restart_limit": 0}, "delta": {"probe_ms": 50, "start_ms": 60000},
                        "epsilon": {"restart_base_ms": 60000, "term_ms": 1}})
    start = time.monotonic()
    c = mv.speak(era)
    assert c.call("alpha__echo", {}).result
    assert time.monotonic() - start < 2
    assert c.tools() == ["alpha__echo"]
    assert time.monotonic() - start < 5
    for name, word in (("beta", "/nonexistent"), ("gamma", str(missing)),
                       ("epsilon", "/nonexistent")):
        # There is none while the next try is under way.
        reason = wait_for(lambda: mv.upstream_status(name)["reason"], 5, "why")
        assert word in reason and "No such file" in reason
    assert mv.upstream_status("delta")["state"] in ("probe", "both")
    assert c.call("beta__echo", {}).error["data"]["upstream"] == "beta"
    # One that gets well joins, and that is told.
    stream = changes(c)
    missing.symlink_to("/usr/bin/python3")
    assert stream.next().msg["method"] == "notifications/tools/list_changed"
    assert c.tools() == ["alpha__echo", "gamma__echo"]


def test_o_053_a_slow_first_start_is_waited_for_and_joins(serve_conf):
    slow = [["repeat", 5, [["stderr", "downloading\n"], ["sleep", 200]]], ["default"]]
    mv = serve_conf(alpha={**FULL, "on": {"server/discover": [], "initialize": slow}}, beta=FULL,
                    more="list_wait_ms = 200;\n",
                    per={"alpha": {"probe_ms": 50, "start_ms": 10000}})
    start = time.monotonic()
    c = mv.modern()
    assert c.call("beta__echo", {}).result
    assert c.tools() == ["beta__echo"]
    assert time.monotonic() - start < 1
    stream = changes(c)
    assert stream.next().msg["method"] == "notifications/tools/list_changed"
    assert time.monotonic() - start > 1
    assert c.tools() == ["alpha__echo", "beta__echo"] and len(mv["alpha"].starts()) == 1
    assert "downloading" in mv.log()


def test_o_054_a_declared_list_that_is_no_method(serve_conf):
    none = [["error", -32601, "Method not found"]]
    mv = serve_conf(alpha={"tools": ["echo"], "capabilities": {"tools": {}, "resources": {}},
                           "on": {m: none for m in ("resources/list",
                                                    "resources/templates/list")}}, beta=FULL)

    def look(times):
        for c in (mv.legacy(), mv.modern(), mv.legacy()):
            assert c.tools() == ["alpha__echo", "beta__echo"]
            assert [r["uri"] for r in c.ask("resources/list").result["resources"]] == ["m:1"]
            assert c.ask("resources/templates/list").result["resourceTemplates"]
            assert c.call("alpha__echo", {}).result
        for method in none_of:
            assert len(mv["alpha"].inputs(method)) == times, method

    none_of = ("resources/list", "resources/templates/list")
    look(1)
    mv.control("restart", "alpha")
    mv["alpha"].wait_input("resources/templates/list", 2)
    look(2)
    assert mv["alpha"].inputs("prompts/list") == []


def spawns(mv):
    return mv.status()["counters"]["mcpvisor_child_spawns_total"]


def test_o_084_a_crash_loop_is_single_flight_with_growing_delay(serve_conf):
    mv = serve_conf(alpha={"command": "/bin/sh", "args": ["-c", "exit 1"]}, beta=FULL,
                    per={"alpha": {"restart_base_ms": 50}})
    clients = [mv.modern() for _ in range(50)]
    end, rounds = time.monotonic() + 1.5, 0
    while time.monotonic() < end:
        wires = [c.wires[-1] if c.wires else c.wire() for c in clients]
        answers = [c.send("tools/list", wire=w) for c, w in zip(clients, wires)]
        assert all([t["name"] for t in a.result["tools"]] == ["beta__echo"] for a in answers)
        refused = clients[0].call("alpha__x", {}, wire=wires[0])
        assert refused.code == -32603 and refused.error["data"]["upstream"] == "alpha"
        rounds += 1
    # 50, 100, 200, 400, 800 and so on, less a quarter at most; one start was excused.
    assert spawns(mv) <= 1 + 8 and rounds > 2
    assert mv.upstream_status("alpha")["next_start_ms"] is not None


@pytest.mark.slow
def test_o_084_the_default_delays(serve_conf):
    mv = serve_conf(alpha={"command": "/bin/sh", "args": ["-c", "exit 1"]}, beta=FULL)
    clients = [mv.modern() for _ in range(50)]
    wires = [c.wire() for c in clients]
    # One that is excused, then after 0.5, 1 and 2 s: at that rate the minute has ten at
    # most, with all that is taken off so that not all come at once.
    while spawns(mv) < 1 + 5:
        answers = [c.send("tools/list", wire=w) for c, w in zip(clients, wires)]
        assert all(len(a.result["tools"]) == 1 for a in answers)
        assert mv.status()["uptime_ms"] < 20000
    assert mv.status()["uptime_ms"] > 2500
    assert wait_for(lambda: mv.upstream_status("alpha")["next_start_ms"], 5) > 2500


def test_o_085_what_cannot_be_started_fails_alone_and_is_tried_again(serve_conf, tmp_path):
    plain, late = tmp_path / "plain", tmp_path / "late"
    plain.write_text("no program")
    mv = serve_conf(alpha=FULL, beta={"command": str(plain)}, gamma=FULL, per={
        "beta": {"restart_base_ms": 60000},
        "gamma": {"cwd": str(late), "restart_base_ms": 100, "restart_max_ms": 100,
                  "restart_limit": 0}})
    c = mv.legacy()
    assert c.tools() == ["alpha__echo"] and c.call("alpha__echo", {}).result
    for name, words in (("beta", "Permission denied"), ("gamma", "No such file")):
        # There is none while the next try is under way.
        reason = wait_for(lambda: mv.upstream_status(name)["reason"], 5, "why")
        assert words in reason and str(plain if name == "beta" else late) in reason
    late.mkdir()
    wait_for(lambda: c.tools() == ["alpha__echo", "gamma__echo"], 5, "it is tried again")
    assert c.call("gamma__echo", {}).result


def test_o_085_no_more_descriptors(serve_conf):
    mv = serve_conf({"u%02d" % i: FULL for i in range(30)}, start=False, per={
        "u%02d" % i: {"restart_base_ms": 60000} for i in range(30)})
    argv = mv.argv()
    mv.argv = lambda: ["/bin/sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *argv]
    mv.start()
    c = mv.legacy()
    wire = c.wire()
    names = [t["name"] for t in c.send("tools/list", wire=wire).result["tools"]]
    assert 0 < len(names) < 30
    mv.wait_log("Too many open files")
    for name in names:
        assert c.call(name, {}, wire=wire).result


DOCKER = """#!/bin/sh
# run [-i] ... -- COMMAND: the server is in a session of its own, as in a container.
case " $* " in *" -i "*) ;; *) exec 0</dev/null ;; esac
while [ "$1" != -- ]; do shift; done
shift
exec 3<&0
setsid "$@" <&3 3<&- &
echo $! > "$CONTAINER"
exec 3<&- 0<&-
wait
"""


def docker(mv, tmp_path, name, *options):
    script = tmp_path / "docker"
    script.write_text(DOCKER)
    script.chmod(0o755)
    entry = mv.entries[name]
    entry["args"] = ["run", *options, "--rm", "--", entry["command"], *entry["args"]]
    entry["command"] = "docker"
    mv.per.setdefault(name, {})["env"] = {"PATH": "%s:/usr/bin:/bin" % tmp_path,
                                          "CONTAINER": str(tmp_path / name)}


@pytest.mark.parametrize("polite", [True, False])
def test_o_087_end_of_input_comes_first_and_what_is_left_over_is_told(serve_conf, tmp_path,
                                                                      polite):
    mv = serve_conf(alpha={**FULL, "ignore_eof": not polite}, start=False,
                    per={"alpha": {"term_ms": 2000 if polite else 100, "kill_ms": 100}})
    docker(mv, tmp_path, "alpha", "-i")
    mv.write()
    mv.start()
    c = mv.legacy()
    assert c.call("alpha__echo", {"n": 1}).result["structuredContent"] == {"n": 1}
    inside = int((tmp_path / "alpha").read_text())
    assert os.getsid(inside) == inside
    mv.control("restart", "alpha")
    mv["alpha"].wait_input("tools/list", 2)
    assert mv["alpha"].records("E")[0].pid == inside
    try:
        if polite:
            # It had the time to go by itself: nobody was signalled.
            wait_for(lambda: not os.path.exists("/proc/%d" % inside), 5, "it is gone")
            assert "child: signal" not in mv.log() and "left running" not in mv.log()
        else:
            mv.wait_log('spawn: left running pid=%d after="alpha"' % inside)
        assert c.call("alpha__echo", {"n": 2}).result
        c.close()
        assert mv.stop() == 0
        second = mv["alpha"].starts()[1].pid
        assert ("left running pid=%d" % second in mv.log()) == (not polite)
    finally:
        for one in group_members(mv.groups()):
            os.kill(one, signal.SIGKILL)


def test_o_087_without_i_the_hint_is_given(serve_conf, tmp_path):
    mv = serve_conf(alpha=FULL, beta=FULL, start=False,
                    per={"alpha": {"restart_base_ms": 10, "restart_limit": 3}})
    docker(mv, tmp_path, "alpha")
    mv.write()
    mv.start()
    c = mv.legacy()
    assert c.tools() == ["beta__echo"]
    wait_for(lambda: mv.upstream_status("alpha")["state"] == "parked", 8, "it is given up")
    reason = mv.upstream_status("alpha")["reason"]
    assert "docker run needs -i" in reason
    assert "docker run needs -i" in c.call("alpha__echo", {}).error["message"]
