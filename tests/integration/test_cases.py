# SPDX-License-Identifier: MIT
"""Collected reports that fit no other file: counts, limits of the system, many cycles."""
import json
import os
import select
import socket
import time

import pytest

from http_client import request
from mcp import wait_for

ECHO = {"tools": ["echo"]}


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_001_noise_is_counted_under_its_name(serve_conf, upstream):
    noise = 'obsidian ready v1\n{"level":"info","msg":"x"}\n'
    mv = serve_conf(alpha={"era": upstream, "tools": ["echo"],
                           "on": {"start": [["bytes", noise]]}}, beta=ECHO)
    c = mv.legacy()
    assert c.call("beta__echo", {}).result and c.call("alpha__echo", {}).result
    assert mv.upstream_status("alpha")["noise_lines"] == 2
    assert mv.upstream_status("beta")["noise_lines"] == 0
    assert mv.status()["counters"]["mcpvisor_noise_lines_total"] == 2


def test_o_002_nothing_of_the_noise_can_act_on_a_terminal(serve_conf):
    noise = "\x1b[33m[2026-03-18] INFO connect\x1b[0m\x07\x9b2J\n"
    mv = serve_conf(alpha={"tools": ["echo"], "before_reply": noise, "after_reply": noise},
                    beta={"command": "/bin/sh", "args": ["-c", "printf '\\033[31mbad\\007\\n' >&2;"
                                                         "exit 1"]})
    c = mv.legacy()
    for i in range(3):
        assert c.call("alpha__echo", {"i": i}, id=i).msg["id"] == i
    wait_for(lambda: "bad" in (mv.upstream_status("beta")["reason"] or ""), 5, "why")
    for text in (mv.log(), *(mv.control("status", *more)[1] for more in ((), ("--json",)))):
        assert not [ch for ch in text if ord(ch) < 32 and ch != "\n" or 127 <= ord(ch) < 160]


# -- descriptors and processes ---------------------------------------------------------

# A server that starts in a few milliseconds.
QUICK = r"""
while IFS= read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" \
        '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}\n' "$id" \
        '{"name":"t","inputSchema":{"type":"object"}}' ;;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id" ;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    esac
done
"""


def limited(mv, limit, *before):
    """The daemon under a limit of the shell's."""
    argv = mv.argv()
    mv.argv = lambda: [*before, "/bin/sh", "-c", 'ulimit %s; exec "$@"' % limit, "sh", *argv]
    mv.start()


def fds(mv):
    return len(os.listdir("/proc/%d/fd" % mv.proc.pid))


def zombies(mv):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                stat = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        if stat[0] == "Z" and int(stat[1]) == mv.proc.pid:
            found.append(int(pid))
    return found


def cpu_s(mv):
    with open("/proc/%d/stat" % mv.proc.pid) as f:
        stat = f.read().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def test_o_083_five_hundred_restarts_leak_nothing(serve_conf):
    mv = serve_conf(start=False, log_level="notice")
    (mv.folder / "server.sh").write_text(QUICK)
    mv.add("alpha", {"command": "/bin/sh", "args": [str(mv.folder / "server.sh")]}, era="legacy")
    mv.write()
    limited(mv, "-n 256")
    c = mv.modern()
    wire = c.wire()
    assert c.call("alpha__t", {}, wire=wire).result
    control = socket.socket(socket.AF_UNIX)
    control.connect(str(mv.socket))
    answers = control.makefile("rb")

    def ask(**command):
        control.sendall(json.dumps(command).encode() + b"\n")
        return json.loads(answers.readline())

    before = fds(mv)
    for n in range(500):
        assert ask(command="restart", upstream="alpha")["ok"] is True
        if n % 10 == 9:
            assert c.call("alpha__t", {}, wire=wire).result
    assert c.call("alpha__t", {}, wire=wire).result
    wait_for(lambda: abs(fds(mv) - before) <= 2, 10, "as many descriptors as before")
    wait_for(lambda: not zombies(mv), 5, "all are reaped")
    counters = ask(command="status")["counters"]
    assert counters["mcpvisor_child_deaths_total"] == 0
    answers.close()
    control.close()


def test_o_083_five_thousand_connections_and_no_descriptor_left(serve_conf):
    mv = serve_conf(alpha=ECHO, start=False, log_level="notice")
    limited(mv, "-n 256")
    c = mv.modern()
    wire = c.wire()
    assert c.call("alpha__echo", {}, wire=wire).result
    before = fds(mv)
    host, _, port = mv.address.rpartition(":")
    hello = request("POST", "/mcp", {"Host": mv.address, "Content-Type": "application/json",
                                     "Content-Length": 46}, b"x" * 46)
    for n in range(5000):
        with socket.create_connection((host, int(port))) as one:
            if n % 50 == 0:
                one.sendall(hello)
                one.recv(1)
    wait_for(lambda: abs(fds(mv) - before) <= 2, 10, "all are closed")
    # More than it may have open: those that fit are served, it does not spin.
    held = [socket.create_connection((host, int(port))) for _ in range(300)]
    mv.wait_log("Too many open files|cannot accept")
    used = cpu_s(mv)
    assert not select.select(held[:100], [], [], 0.3)[0]
    assert cpu_s(mv) - used < 0.15
    assert c.call("alpha__echo", {"n": 1}, wire=wire).result["structuredContent"] == {"n": 1}
    for one in held:
        one.close()
    wait_for(lambda: abs(fds(mv) - before) <= 2, 10, "all are closed")
    assert mv.modern().call("alpha__echo", {}).result


@pytest.mark.skipif(os.geteuid() != 0, reason="takes another user's id")
def test_o_085_no_more_processes(serve_conf):
    """A user who may have few processes; root has no such limit."""
    mv = serve_conf({"u%d" % i: ECHO for i in range(8)}, start=False, more={"list_wait_ms": 2000},
                    per={"u%d" % i: {"restart_base_ms": 200, "restart_limit": 0}
                         for i in range(8)})
    keep = "-all,+dac_override,+kill"
    limited(mv, "-p 7", "setpriv", "--reuid", "64117", "--inh-caps=" + keep,
            "--ambient-caps=" + keep, "--bounding-set=" + keep)
    c = mv.legacy()
    names = c.tools()
    assert 0 < len(names) < 8
    for name in names:
        assert c.call(name, {}).result
    failed = [u for u in mv.status()["upstreams"] if u["state"] != "ready"]
    assert failed and "Resource temporarily unavailable" in mv.log()
    for u in failed:
        got = c.call(u["name"] + "__echo", {})
        assert got.code == -32603 and got.error["data"]["upstream"] == u["name"]
    # It is tried again: room for one more comes when one that runs is done away with.
    mv.remove(names[0][:2])
    mv.reload()
    wait_for(lambda: len(set(c.tools()) - set(names)) >= 1, 10, "another has its turn")


# -- the optional stream ------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25",
                                      "2026-07-28"])
def test_o_079_get_and_the_version_that_it_names(serve_http, revision):
    """Of the record: our side. 405 where no stream is offered, 404 for a session that is none."""
    mv = serve_http(alpha=ECHO)
    c = mv.client()
    accept = {"Accept": "text/event-stream", "MCP-Protocol-Version": revision}
    none = c.http("GET", accept)
    assert none.status == 405 and "POST" in none.header("Allow")
    for verb in ("GET", "DELETE"):  # a modern client has no session, whatever it sends along
        gone = c.http(verb, {**accept, "Mcp-Session-Id": "made-up"})
        assert gone.status == (405 if revision == "2026-07-28" else 404)
        assert (gone.header("Allow") == "POST, OPTIONS") == (revision == "2026-07-28")
    start = time.monotonic()
    assert c.http("POST", {"Content-Type": "application/json"},
                  b'{"jsonrpc":"2.0","id":1,"method":"ping"}').result == {}
    assert time.monotonic() - start < 2
