# SPDX-License-Identifier: MIT
"""One bad upstream never delays or spoils the others."""
import os
import signal
import time

import pytest


@pytest.fixture
def quick():
    start = time.monotonic()
    yield
    assert time.monotonic() - start < 5


def good(mv):
    if hasattr(mv, "legacy"):
        assert mv.legacy().result["capabilities"]
    assert "beta__echo" in mv.tools()
    assert mv.call("beta__echo", {"a": 1}).result["structuredContent"] == {"a": 1}


def test_o_052_a_command_that_is_not_there(each, quick):
    """Remote ones that are closed or silent are in test_cases_remote."""
    mv = each(alpha={"command": "/nonexistent"}, beta={"tools": ["echo"]},
              gamma={"command": "/bin/false"})
    good(mv)
    mv.wait_log("alpha.*/nonexistent.*No such file|/nonexistent.*No such file.*alpha")
    assert mv.tools() == ["beta__echo"]
    for name in ("alpha", "gamma"):
        got = mv.call(name + "__x", {})
        assert got.code == -32603 and got.error["data"]["upstream"] == name


def test_o_085_a_command_that_may_not_run(each, tmp_path, quick):
    path = tmp_path / "plain"
    path.write_text("not a program")
    mv = each(alpha={"command": str(path)}, beta={"tools": ["echo"]})
    good(mv)
    mv.wait_log("alpha.*Permission denied")


def test_o_085_a_directory_that_is_not_there(each, quick):
    mv = each(alpha={"tools": ["echo"], "entry": {"cwd": "/nonexistent/dir"}},
               beta={"tools": ["echo"]})
    good(mv)
    mv.wait_log("alpha.*/nonexistent/dir|/nonexistent/dir.*alpha")
    assert mv["alpha"].starts() == []


def test_o_085_no_more_descriptors(serve):
    mv = serve({"u%02d" % i: {"tools": ["echo"], "mcpvisor": {"restart_base_ms": 60000}}
                for i in range(20)},
               wrap=["/bin/sh", "-c", 'ulimit -n 48; exec "$@"', "sh"])
    mv.legacy()
    served = mv.tools()
    assert 0 < len(served) < 20
    mv.wait_log("Too many open files")
    for name in served:
        assert mv.call(name, {}).result


@pytest.mark.parametrize("what", ["silent", "spewing", "bytes"])
def test_one_that_never_speaks_sense(serve, what):
    options = {"probe_ms": 50, "start_ms": 400, "restart_base_ms": 60000}
    start = {"silent": [], "bytes": [["bytes", {"hex": "00ff0a" * 100}]],
             "spewing": [["forever", [["bytes", {"repeat": "spam ", "n": 2000, "post": "\n"}],
                                      ["sleep", 1]]]]}[what]
    mv = serve(alpha={"tools": ["echo"], "mcpvisor": options,
                      "on": {"start": start, "server/discover": [], "initialize": []}},
               beta={"tools": ["echo"]})
    began = time.monotonic()
    good(mv)
    assert time.monotonic() - began < 5
    mv.wait_log("alpha")
    assert len(mv.log()) < 2000000


def test_endless_output_without_a_newline(serve):
    mv = serve(alpha={"tools": ["echo"], "mcpvisor": {"restart_base_ms": 60000},
                      "on": {"start": [["bytes", {"repeat": "x", "n": 80 << 20}]]}},
               beta={"tools": ["echo"]})
    mv.modern()
    assert mv.call("beta__echo", {}, timeout=20).result


def test_a_failed_upstream_joins_when_it_is_well(serve, tmp_path):
    flag = tmp_path / "well"
    mv = serve(alpha={"tools": ["echo"], "mcpvisor": {"restart_base_ms": 50},
                      "wrap": ["/bin/sh", "-c", "test -e %s && exec \"$@\"" % flag, "sh"]},
               beta={"tools": ["echo"]})
    good(mv)
    assert mv.tools() == ["beta__echo"]
    flag.touch()
    mv.notice("notifications/tools/list_changed", timeout=15)
    assert mv.tools() == ["alpha__echo", "beta__echo"]
    assert mv.call("alpha__echo", {}).result


def test_o_053_a_slow_start_is_waited_for_and_joins(serve):
    slow = [["repeat", 6, [["stderr", "downloading\n"], ["sleep", 1000]]], ["default"]]
    mv = serve(alpha={"tools": ["echo"], "on": {"server/discover": [], "initialize": slow},
                      "mcpvisor": {"probe_ms": 100, "start_ms": 60000}},
               beta={"tools": ["echo"]})
    mv.modern()
    start = time.monotonic()
    # Others are served at once, a list waits 5 s at most and says that it is a part.
    assert mv.call("beta__echo", {}).result
    assert time.monotonic() - start < 2
    mv.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="L")
    mv.notice("notifications/subscriptions/acknowledged")
    part = mv.ask("tools/list").result
    assert [t["name"] for t in part["tools"]] == ["beta__echo"]
    assert part["ttlMs"] == 0
    assert time.monotonic() - start < 6
    mv.notice("notifications/tools/list_changed")
    assert mv.tools() == ["alpha__echo", "beta__echo"]
    assert len(mv["alpha"].starts()) == 1


def test_everything_is_broken(serve):
    mv = serve(alpha={"command": "/nonexistent"}, beta={"command": ""})
    mv.legacy()
    assert mv.tools() == []
    assert mv.call("alpha__x", {}).code in (-32602, -32603)


def test_no_upstream_at_all(serve):
    mv = serve({})
    mv.legacy()
    assert mv.tools() == []


def test_a_full_queue_of_one_is_that_ones_alone(serve):
    mv = serve(alpha={"tools": ["t"], "calls": {"t": [["reply", {"content": []}]]}},
               beta={"tools": ["echo"]})
    mv.legacy()
    mv.tools()
    pid = mv["alpha"].starts()[0].pid
    os.kill(pid, signal.SIGSTOP)
    keys = [mv.start_call("alpha__t", {"x": "y" * (4 << 20)}) for _ in range(30)]
    # 120 MB do not fit; what is over the bound is refused at once, and only that.
    busy = mv.take(lambda m: "error" in m.msg)
    assert busy.code == -32603
    assert busy.error["data"] == {**busy.error["data"], "upstream": "alpha",
                                  "reason": "busy", "retryable": True}
    assert mv.call("beta__echo", {}).result
    os.kill(pid, signal.SIGCONT)
    keys.remove(busy.msg["id"])
    answers = [mv.answer(k, timeout=60) for k in keys]
    good = [a for a in answers if "result" in a.msg]
    assert len(good) > len(keys) // 2
    assert all(a.error["data"]["reason"] == "busy" for a in answers if a not in good)


def test_descriptors_do_not_reach_the_children(serve, tmp_path):
    out = tmp_path / "fds"
    mv = serve(alpha={"tools": ["echo"]},
               beta={"command": "/bin/sh", "args": ["-c", "ls -l /proc/self/fd > %s; cat" % out],
                     "mcpvisor": {"start_ms": 300, "probe_ms": 50}})
    mv.legacy()
    lines = [x for x in out.read_text().splitlines() if "->" in x]
    beyond = [x for x in lines if int(x.split("->")[0].split()[-1]) > 2
              and "/proc" not in x.split("->")[1] and str(os.getpid()) not in x]
    assert beyond == []


def test_calls_that_wait_for_lists_are_bounded_in_bytes(serve):
    mv = serve(alpha={"tools": ["echo"], "on": {"initialize": [["gate", "up"], ["default"]]}})
    mv.modern()
    keys = [mv.start_call("nobody", {"a": "x" * 30_000_000}) for _ in range(4)]
    busy = mv.answer(keys[3], 20)
    assert busy.code == -32603 and busy.error["data"]["reason"] == "busy"
    mv["alpha"].open("up")
    for key in keys[:3]:
        assert mv.answer(key, 20).code == -32602


def test_what_a_client_says_of_itself_is_bounded(serve):
    mv = serve(alpha={"era": "modern", "tools": ["echo"]})
    mv.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                          "clientInfo": {"name": "x" * 70000, "version": "1"}}).result
    mv.fence("alpha")
    meta = mv["alpha"].wait_input("tools/call").msg["params"]["_meta"]
    assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "mcpvisor"
