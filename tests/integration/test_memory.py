# SPDX-License-Identifier: MIT
"""limits.memory_max: one budget over everything, kept by pausing and giving up, not dying."""
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

from http_client import ACCEPT, Answer, Gone, Wire, request
from mcp import PATIENCE, wait_for

MB = 1 << 20
BUDGET = 64 * MB
# Over the budget an eighth more is used before anything is given up; buffers double.
MARGIN = BUDGET // 8 + 24 * MB
ECHO = {"tools": ["echo"]}
BIG = {"pre": '{"content":[{"type":"text","text":"', "repeat": "x", "n": 4 * MB, "post": '"}]}'}


def start(serve_conf, tmp_path, **kw):
    """A daemon with that budget, on a port and on a unix socket."""
    what = {"alpha": ECHO, **kw.pop("upstreams", {})}
    return serve_conf(upstreams=what, log_level="info", **kw, listen=[
        "127.0.0.1:0", "unix:%s" % (tmp_path / "s.sock")], more={
            "limits": {"memory_max": "64M"}, "drain_ms": 0})


class Watch:
    """The most that was in use, as the daemon says it, while a test goes on."""

    def __init__(self, mv):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(mv.socket))
        self.file, self.most, self.over = self.sock.makefile("rb"), 0, False
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        while not self.over:
            self.sock.sendall(b'{"command":"status"}\n')
            found = json.loads(self.file.readline())["memory"]
            self.most = max(self.most, found["in_use"])
            time.sleep(0.01)

    def stop(self):
        self.over = True
        self.thread.join(10)
        self.file.close()
        self.sock.close()
        return self.most


def healthy(mv):
    """Nothing is left of it: it serves, and the memory is back."""
    def served():
        answer = mv.modern().send("tools/call", {"name": "alpha__echo", "arguments": {}})
        return answer.status == 200 and "result" in answer.message().msg

    wait_for(served, 10, "it serves again")
    wait_for(lambda: mv.status()["memory"]["in_use"] < 8 * MB, 10, "the memory is back")
    assert mv.status()["memory"]["budget"] == BUDGET


def pump(wire, data, sent):
    """Writes as far as the other side takes it."""
    try:
        view = memoryview(data)
        while view:
            n = wire.sock.send(view[:1 << 16])
            sent[0] += n
            view = view[n:]
    except OSError:
        pass  # it was given up


def test_half_sent_bodies(serve_conf, tmp_path):
    """400 MB of halves: the largest are given up, the whole stays within its budget."""
    mv = start(serve_conf, tmp_path)
    watch = Watch(mv)
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":"' + b"y" * (20 * MB)
    wires = [Wire(mv.address) for _ in range(20)]
    counts = [[0] for _ in wires]
    threads = []
    for wire, count in zip(wires, counts):
        wire.sock.settimeout(20 * PATIENCE)
        wire.send(request("POST", "/mcp", {
            "Host": mv.address, "Accept": ACCEPT, "Content-Type": "application/json",
            "Content-Length": len(body) + 100}))
        threads.append(threading.Thread(target=pump, args=(wire, body, count)))
        threads[-1].start()

    def settled():
        """All have been sent, refused, or are not read from any more."""
        before = [c[0] for c in counts]
        time.sleep(0.2)
        return before == [c[0] for c in counts]

    wait_for(settled, 20, "nothing moves any more")
    counters = mv.status()["counters"]
    assert counters["mcpvisor_memory_short_total"] >= 1
    assert counters["mcpvisor_sources_paused_total"] >= 1
    # The control socket answers throughout; so do other clients, with 503 at the worst.
    assert mv.modern().send("tools/list").status in (200, 503)
    refused = 0
    for wire in wires:
        try:
            refused += Answer(wire).read_head(0.05).head[0] in (503, 408, 413)
        except (AssertionError, Gone, OSError):
            refused += wire.ended
    assert refused >= 10, refused
    for wire in wires:
        wire.reset()
    for t in threads:
        t.join(30)
    healthy(mv)
    most = watch.stop()
    assert BUDGET // 2 < most < BUDGET + MARGIN, most


@pytest.mark.parametrize("how", ["unix", "http"])
def test_answers_that_nobody_reads(serve_conf, tmp_path, how):
    """Clients that ask for 200 MB and read none of it, until they leave."""
    mv = start(serve_conf, tmp_path, upstreams={
        "beta": {"tools": ["big"], "calls": {"big": [["reply", BIG]]}}})
    watch = Watch(mv)
    c = mv.modern()
    ask = c.build("tools/call", {"name": "beta__big", "arguments": {}})
    greedy = []
    for n in range(50):
        ask["id"] = n
        if how == "http":
            greedy.append(c.post(ask).wire)
        else:
            wire = Wire(mv.bound[1])
            greedy.append(wire)
            wire.send(json.dumps(ask).encode() + b"\n")
    wait_for(lambda: mv.status()["counters"]["mcpvisor_sources_paused_total"] > 0, 20,
             "somebody has to wait")
    for wire in greedy:
        wire.reset() if how == "http" else wire.close()
    healthy(mv)
    assert watch.stop() < BUDGET + MARGIN


@pytest.mark.parametrize("how", ["unix", "http"])
def test_those_who_do_not_read_are_ended(serve_conf, tmp_path, how):
    """They stay, and so would what they hold: who reads is served all the same."""
    mv = start(serve_conf, tmp_path, upstreams={
        "beta": {"tools": ["big"], "calls": {"big": [["reply", BIG]]}}})
    mv.more["http"] = {"idle_ms": 500}
    mv.reload()
    c = mv.modern()
    ask = c.build("tools/call", {"name": "beta__big", "arguments": {}})
    greedy = []
    for n in range(25):
        ask["id"] = n
        greedy.append(Wire(mv.bound[1]) if how == "unix" else c.wire())
        if how == "unix":
            greedy[-1].send(json.dumps(ask).encode() + b"\n")
        else:
            c.post(ask, wire=greedy[-1])
    if how == "unix":  # HTTP has a time for all that do not go on, short of memory or not
        wait_for(lambda: mv.status()["counters"]["mcpvisor_memory_short_total"] > 0, 20,
                 "the budget is passed")

    def served():
        try:
            answer = mv.modern().send("tools/call", {"name": "alpha__echo", "arguments": {}})
            return answer.read_head(1).head[0] == 200 and "result" in answer.message().msg
        except (AssertionError, Gone):
            return False

    wait_for(served, 10, "it serves again")
    if how == "unix":
        mv.wait_log("socket: ended, memory is short and it does not read")
    for wire in greedy:
        wire.close()
    healthy(mv)


def flood(n, size):
    pad = "z" * size
    return [json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {
        "name": "alpha__slow", "arguments": {"n": i, "pad": pad},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                  "io.modelcontextprotocol/clientInfo": {"name": "f", "version": "1"},
                  "io.modelcontextprotocol/clientCapabilities": {}}}}).encode() + b"\n"
            for i in range(n)]


SLOW = {"tools": ["slow"], "calls": {"slow": [["reply", '{"content":[],"structuredContent":{"id":'
                                                        '${ID}}}']]}}


def test_a_flood_on_a_socket_pauses_and_goes_on(serve_conf, tmp_path):
    """150 MB of calls faster than they are served: none is lost."""
    mv = start(serve_conf, tmp_path, upstreams={"alpha": {**SLOW, "tools": ["slow", "echo"]}})
    watch = Watch(mv)
    wire = Wire(mv.bound[1])
    lines = flood(150, MB)
    writer = threading.Thread(target=lambda: [wire.send(x) for x in lines])
    writer.start()
    seen = set()
    end = time.monotonic() + 60 * PATIENCE
    while len(seen) < len(lines):
        msg = json.loads(wire.until(b"\n", end))
        assert "result" in msg, msg
        seen.add(msg["id"])
    writer.join(10)
    assert mv.status()["counters"]["mcpvisor_sources_paused_total"] > 0
    assert seen == set(range(150))
    wire.close()
    healthy(mv)
    assert watch.stop() < BUDGET + MARGIN


def test_a_flood_on_stdio_pauses_and_goes_on(serve_conf, binary):
    mv = serve_conf(alpha={**SLOW, "tools": ["slow", "echo"]}, start=False, listen=[],
                    more={"limits": {"memory_max": "32M"}})
    proc = subprocess.Popen([str(binary), "stdio", "--conf", str(mv.file)], env=mv.env,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, cwd=mv.folder)
    lines = flood(80, MB)
    log = []
    err = threading.Thread(target=lambda: log.extend(proc.stderr))
    writer = threading.Thread(target=lambda: [proc.stdin.write(x) for x in lines])
    err.start()
    writer.start()
    try:
        seen = [json.loads(proc.stdout.readline()) for _ in lines]
        assert {m["id"] for m in seen} == set(range(80)) and all("result" in m for m in seen)
        with open("/proc/%d/status" % proc.pid) as f:
            peak = next(int(x.split()[1]) for x in f if x.startswith("VmHWM"))
        if not [k for k in os.environ if k.endswith("SAN_OPTIONS")]:
            assert peak < (32 + 4 + 24 + 16) * 1024, peak
    finally:
        writer.join(20 * PATIENCE)
        proc.stdin.close()
        proc.send_signal(signal.SIGTERM)
        assert proc.wait(10 * PATIENCE) == 0
        err.join(5)
        proc.stdout.close()
        proc.stderr.close()


def test_the_budget_changes_by_a_reload(serve_conf, tmp_path):
    """One that is too small for anything is no trap: the operator still has a word."""
    mv = start(serve_conf, tmp_path)
    assert mv.status()["memory"]["budget"] == BUDGET
    mv.more = ""
    mv.reload()
    assert mv.status()["memory"]["budget"] is None
    mv.more = {"limits": {"memory_max": "1k"}}  # less than there is already
    mv.reload()
    with pytest.raises(AssertionError):
        Answer(mv.modern().wire()).read_head(0.2)
    assert mv.status()["memory"]["budget"] == 1024
    mv.more = ""
    mv.reload()
    assert mv.modern().tools()
