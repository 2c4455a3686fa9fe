# SPDX-License-Identifier: MIT
"""A thousand times connect, call, crash, restart: nothing is held that was not before."""
import json
import os
import signal
import uuid

from http_client import Gone, Wire
from leaks import Control, held, marked
from mcp import LATEST, META, MODERN, strict_json, wait_for

CYCLES, WARM_UP = 1000, 100
# A process with a sanitizer takes 20 times as long to fork.
SANITIZED = 100
# Signed ids that were ended are remembered until they would have expired.
MARGIN_IN_USE = 128 << 10
FAST = {"restart_base_ms": 1, "restart_max_ms": 1, "restart_limit": 0}
ERAS = ("legacy", "modern")
# The demo servers' tools that give back what they are given, and how.
ECHO = {"legacy": ("legacy__echo", lambda t: t), "modern": ("modern__reverse", lambda t: t[::-1])}


class Line:
    """A client on the unix socket, one line each way at a time."""

    def __init__(self, address, era):
        self.wire, self.era, self.n = Wire(address), era, 0
        if era == "legacy":
            assert self.ask("initialize", {"protocolVersion": LATEST, "capabilities": {},
                                           "clientInfo": {"name": "x", "version": "1"}})
            self.send({"method": "notifications/initialized"})

    def send(self, msg):
        self.wire.send(json.dumps({"jsonrpc": "2.0", **msg}).encode() + b"\n")

    def start(self, method, params):
        self.n += 1
        if self.era == "modern":
            params = {**params, "_meta": {
                META + "protocolVersion": MODERN, META + "clientCapabilities": {},
                META + "clientInfo": {"name": "x", "version": "1"}}}
        self.send({"id": self.n, "method": method, "params": params})

    def answer(self):
        while b"\n" not in self.wire.rest:
            if not self.wire.more():
                raise Gone("the connection ended")
        line, _, self.wire.rest = self.wire.rest.partition(b"\n")
        msg = strict_json(line)
        return self.answer() if "method" in msg else msg

    def ask(self, method, params):
        self.start(method, params)
        return self.answer()


class Cycle:
    def __init__(self, mv, control, unix):
        self.mv, self.control, self.unix = mv, control, unix

    def over_lines(self, era, name, n):
        """Crashes while it has a call of ours."""
        c = Line(self.unix, era)
        tool, turned = ECHO[name]
        got = c.ask("tools/call", {"name": tool, "arguments": {"text": "cycle %d" % n}})
        assert got["result"]["content"][0]["text"] == turned("cycle %d" % n), got
        c.start("tools/call", {"name": name + "__slow", "arguments": {"ms": 60000}})
        wait_for(lambda: self.control.upstream(name)["calls"]["in_flight"] == 1, 10, "the call")
        self.crash(name)
        got = c.answer()
        assert got["id"] == c.n and got["error"]["data"]["upstream"] == name, got
        c.wire.close()

    def over_http(self, era, name, n):
        """Crashes while nobody asks; the session is ended, or left to itself."""
        c = self.mv.legacy() if era == "legacy" else self.mv.modern()
        tool, turned = ECHO[name]
        assert c.call(tool, {"text": "cycle %d" % n}).text == turned("cycle %d" % n)
        self.crash(name)
        if era == "legacy" and n % 3 == 0:
            assert c.delete().status == 204
        c.close()
        self.mv.clients.clear()
        self.mv.noted.clear()

    def crash(self, name):
        self.pid = self.control.upstream(name)["pid"]
        os.kill(self.pid, signal.SIGKILL)

    def run(self, n):
        era, name = ERAS[n % 2], ("legacy", "modern")[n // 2 % 2]
        (self.over_lines if n // 4 % 2 else self.over_http)(era, name, n)
        wait_for(lambda: self.is_back(name), 10, name + " is back")

    def is_back(self, name):
        now = self.control.upstream(name)
        return now["state"] == "ready" and now["pid"] != self.pid


def at_rest(control):
    status = control.status()
    return not any(status["clients"].values()) and all(
        u["state"] == "ready" and not u["calls"]["in_flight"] for u in status["upstreams"])


def test_a_thousand_cycles_leave_nothing_behind(serve_conf, binary, tmp_path):
    mark = uuid.uuid4().hex
    unix = "unix:%s" % (tmp_path / "s.sock")
    mv = serve_conf(
        upstreams={e: {"command": str(binary), "args": ["demo", e]} for e in ERAS},
        per={e: {**FAST, "env": {"MARK": mark}} for e in ERAS}, env={"MARK": mark},
        log_level="notice", listen=("127.0.0.1:0", unix),
        more={"http": {"session_idle_ms": 100, "session_state_idle_ms": 100}})
    mv.check_schema = False
    control = Control(mv.socket)
    cycle = Cycle(mv, control, unix)

    def measure():
        wait_for(lambda: at_rest(control), 20, "it rests")
        # A child, its guard, and the daemon.
        wait_for(lambda: len(marked("MARK", mark)) == 5, 10, "only the children are left")
        return held(control, mv.proc.pid, "MARK", mark)

    wait_for(lambda: at_rest(control), 10, "it is ready")
    for n in range(WARM_UP):
        cycle.run(n)
    before = measure()
    cycles = SANITIZED if b"__asan_init" in binary.read_bytes() else CYCLES
    for n in range(cycles):
        cycle.run(n)
    after = measure()
    assert after["descriptors"] == before["descriptors"], (before, after)
    assert after["in_use"] <= before["in_use"] + MARGIN_IN_USE, (before, after)
    deaths = control.status()["counters"]["mcpvisor_child_deaths_total"]
    assert deaths == WARM_UP + cycles
    control.close()
