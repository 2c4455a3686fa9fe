# SPDX-License-Identifier: MIT
"""The clients of the soak, each a thread: every request ends once and by its own nonce."""
import json
import random
import select
import socket
import threading
import time
from collections import Counter

import mcp
import roles
from http_client import Answer, Client, Gone
from mcp import PATIENCE

MARGIN_S = 10 * PATIENCE
LISTED = ("plain_l__echo", "plain_m__echo", "lies_l__twice", "flood_m__noise")


class Tally:
    """What every request came to; faults are what must never happen."""

    def __init__(self):
        self.lock = threading.Lock()
        self.open, self.ended, self.faults, self.serial = {}, Counter(), [], 0
        self.slowest = Counter()

    def fault(self, text):
        with self.lock:
            self.faults.append(text)
            if len(self.faults) <= 20:
                print("FAULT", text, flush=True)

    def begin(self, who, role, tool):
        with self.lock:
            self.serial += 1
            call = Call("%s-%d" % (who, self.serial), role, tool)
            self.open[call.nonce] = call
        return call

    def end(self, call, what):
        with self.lock:
            if self.open.pop(call.nonce, None) is None:
                what, doubled = "doubled", True
            else:
                doubled = False
            self.ended[call.role.name, call.tool, what] += 1
        took = time.monotonic() - call.at
        key = call.role.name
        self.slowest[key] = max(self.slowest[key], round(took, 2))
        if doubled:
            self.fault("%s ended twice" % call.nonce)
        elif what not in ("dropped", "cancelled") and took > call.limit_s + MARGIN_S:
            self.fault("%s (%s) took %.1f s" % (call.nonce, call.name, took))

    def lost(self):
        """Calls that nothing has come of within their limit."""
        now = time.monotonic()
        with self.lock:
            return [c for c in self.open.values()
                    if now - c.at > c.limit_s + 2 * MARGIN_S]


class Call:
    def __init__(self, nonce, role, tool):
        self.nonce, self.role, self.tool = nonce, role, tool
        self.name, self.at = "%s__%s" % (role.name, tool), time.monotonic()
        self.limit_s, self.cancelled = role.limit_s(tool), False

    def args(self, rng):
        return {"nonce": self.nonce, "pad": "p" * rng.choice((0, 10, 100, 5000, 70000))}

    def judge(self, msg):
        """(how it ended, fault or None)."""
        want = self.role.tools[self.tool][1]
        if "result" in msg:
            got = msg["result"].get("structuredContent", {}).get("nonce")
            if got != self.nonce:
                return "swapped", "got the answer of %r" % (got,)
            if self.tool == "big" and len(msg["result"]["content"][0]["text"]) != roles.BIG:
                return "cut", "got a part of its answer"
            if want == roles.NEVER:
                return "result", "got an answer that nobody gave"
            return "result", None
        error = msg.get("error", {})
        data = error.get("data") or {}
        reason = data.get("reason")
        if error.get("code") == -32602 and getattr(self.role, "may_be_unknown", False):
            return "unknown", None
        if want == roles.ALWAYS or error.get("code") != -32603 \
                or reason not in self.role.reasons or data.get("upstream") != self.role.name \
                or not isinstance(data.get("retryable"), bool):
            return "error", "got %s" % json.dumps(error)[:300]
        return reason, None


class Player(threading.Thread):
    """A client: rounds of calls until it is told to stop."""

    def __init__(self, soak, name, era):
        super().__init__(name=name, daemon=True)
        self.soak, self.tally, self.era = soak, soak.tally, era
        self.rng = random.Random("%s/%s" % (soak.seed, name))

    def run(self):
        try:
            self.open()
            while not self.soak.resting.is_set():
                self.play()
        except Exception as e:  # whatever it is, the soak has to say it
            self.tally.fault("%s: %r" % (self.name, e))
            raise
        finally:
            self.leave()

    def open(self):
        """Before the first round."""

    def leave(self):
        """After the last."""

    def begin(self):
        every = self.soak.roles
        role = self.rng.choices(every, [r.weight for r in every])[0]
        return self.tally.begin(self.name, role, role.pick(self.rng))

    def take(self, call, msg):
        if "result" not in msg and "error" not in msg:
            self.tally.fault("%s: no answer: %s" % (call.nonce, json.dumps(msg)[:200]))
        how, fault = call.judge(msg)
        if fault:
            self.tally.fault("%s (%s) after %.2f s %s" % (
                call.nonce, call.name, time.monotonic() - call.at, fault))
        self.tally.end(call, how)

    def check_list(self, msg):
        names = {t["name"] for t in msg["result"]["tools"]}
        if not names.issuperset(LISTED):
            self.tally.fault("%s: a list lacks %s" % (self.name, set(LISTED) - names))
        self.soak.tally.ended["-", "tools/list", "result"] += 1


def has_more(stream, wait_s):
    """Whether a stream has an event, or the beginning of one."""
    return b"\n\n" in stream.text or stream.wire.rest or select.select(
        [stream.wire.sock], [], [], wait_s)[0]


class Lines(Player):
    """Lines on the unix socket: several calls in flight, cancels, lost connections."""

    WINDOW = 6

    def open(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.soak.unix)
        self.parts, self.calls, self.n, self.special = [], {}, 0, {}
        if self.era == "legacy":
            self.send({"id": "hello", "method": "initialize", "params": {
                "protocolVersion": self.rng.choice(("2024-11-05", "2025-06-18", mcp.LATEST)),
                "capabilities": {}, "clientInfo": {"name": self.name, "version": "1"}}})
            self.special["hello"] = lambda m: m["result"]["protocolVersion"]
            self.read_until(lambda: not self.special)
            self.send({"method": "notifications/initialized"})
        else:
            self.send({"id": "listen", "method": "subscriptions/listen", "params": {
                "_meta": self.meta(), "notifications": {"toolsListChanged": True}}})

    def meta(self):
        return {mcp.META + "protocolVersion": mcp.MODERN,
                mcp.META + "clientInfo": {"name": self.name, "version": "1"},
                mcp.META + "clientCapabilities": {}}

    def send(self, msg):
        self.sock.sendall(json.dumps({"jsonrpc": "2.0", **msg}).encode() + b"\n")

    def start_call(self):
        call = self.begin()
        self.n += 1
        key = self.rng.choice((self.n, "k%d" % self.n, call.nonce))
        params = {"name": call.name, "arguments": call.args(self.rng)}
        meta = self.meta() if self.era == "modern" else {}
        if self.rng.random() < 0.5:
            meta["progressToken"] = key
        if meta:
            params["_meta"] = meta
        self.calls[key] = call
        self.send({"id": key, "method": "tools/call", "params": params})

    def play(self):
        while len(self.live()) < self.WINDOW:
            self.start_call()
        chance = self.rng.random()
        if chance < 0.03:
            key = self.rng.choice(list(self.live()))
            self.calls[key].cancelled = True
            self.tally.end(self.calls[key], "cancelled")
            self.send({"method": "notifications/cancelled", "params": {"requestId": key}})
        elif chance < 0.035:
            self.drop()
            return self.open()
        elif chance < 0.05 and "list" not in self.special:
            self.special["list"] = self.check_list
            params = {"params": {"_meta": self.meta()}} if self.era == "modern" else {}
            self.send({"id": "list", "method": "tools/list", **params})
        before = len(self.live())
        self.read_until(lambda: len(self.live()) < before)

    def live(self):
        return {k: c for k, c in self.calls.items() if not c.cancelled}

    def read_until(self, done):
        while not done():
            if not select.select([self.sock], [], [], 5)[0]:
                if self.soak.over.is_set() or self.tally.lost():
                    raise AssertionError("nothing comes for %s" % list(self.live()))
                continue
            data = self.sock.recv(1 << 18)
            if not data:
                raise AssertionError("the connection ended")
            # A result of 1 MB comes in pieces, which are not looked through again.
            self.parts.append(data)
            if b"\n" not in data:
                continue
            *lines, rest = b"".join(self.parts).split(b"\n")
            self.parts = [rest]
            for line in lines:
                self.line(mcp.strict_json(line))

    def line(self, msg):
        if "method" in msg:
            return self.notice(msg)
        key = msg["id"]
        if key in self.special:
            self.special.pop(key)(msg)
        elif key in self.calls:
            call = self.calls.pop(key)
            if not call.cancelled:
                self.take(call, msg)
        else:
            self.tally.fault("%s: an answer to nothing: %s" % (self.name,
                                                               json.dumps(msg)[:300]))

    def notice(self, msg):
        if msg["method"] == "notifications/progress":
            token = msg["params"]["progressToken"]
            if token not in self.calls:
                self.tally.fault("%s: progress of %r" % (self.name, token))

    def drop(self):
        for call in self.live().values():
            self.tally.end(call, "dropped")
        self.sock.close()

    def leave(self):
        try:
            self.read_until(lambda: not self.live())
        finally:
            self.drop()


class Http(Player):
    """Requests over HTTP, several at a time on connections that are kept."""

    def open(self):
        at = self.soak.unix_address if self.rng.random() < 0.3 else self.soak.mv.address
        self.client = Client(self.soak.mv, at)
        self.idle = []
        self.hello()

    def hello(self):
        self.client.era, self.client.revision = "modern", mcp.MODERN

    def wire(self):
        if self.idle and self.rng.random() < 0.8:
            return self.idle.pop(self.rng.randrange(len(self.idle)))
        wire = self.client.wire()
        self.client.wires.clear()
        return wire

    def start_call(self, wire):
        call = self.begin()
        meta = {"progressToken": call.nonce} if self.rng.random() < 0.5 else {}
        call.key = self.rng.choice((call.nonce, None))
        call.answer = self.client.start_call(call.name, call.args(self.rng), wire=wire,
                                             id=call.key, meta=meta)
        call.key = call.key or self.client.next_id
        return call

    def play(self):
        calls = [self.start_call(self.wire()) for _ in range(self.rng.randint(1, 6))]
        chance = self.rng.random()
        if chance < 0.1:
            self.give_up(self.rng.choice(calls))
        for call in calls:
            if not call.cancelled:
                self.finish(call)
                self.keep(call.answer.wire, call.answer)
        if chance > 0.97:
            wire = self.wire()
            self.check_list(self.client.ask("tools/list", wire=wire).msg)
            self.keep(wire)

    def give_up(self, call):
        call.cancelled = True
        self.tally.end(call, "cancelled")
        if self.rng.random() < 0.5:
            call.answer.wire.reset()
        else:
            call.answer.wire.close()

    def finish(self, call):
        answer = call.answer
        msg = answer.message(call.limit_s + 2 * MARGIN_S).msg
        if msg["id"] != call.key:
            self.tally.fault("%s has the answer of %r" % (call.nonce, msg["id"]))
        for notice in answer.notices:
            if notice.msg["method"] == "notifications/progress" \
                    and notice.params["progressToken"] != call.nonce:
                self.tally.fault("%s: foreign progress %s" % (call.nonce, notice.raw[:200]))
        self.take(call, msg)

    def keep(self, wire, answer=None):
        if wire.ended or len(self.idle) > 8 or wire.rest or (
                answer and answer.header("Connection") == "close"):
            wire.close()
        else:
            self.idle.append(wire)

    def leave(self):
        for wire in self.idle:
            wire.close()


class Session(Http):
    """A legacy session with its stream; ended, or left to itself, and opened anew."""

    def hello(self):
        self.stream = None
        self.renew()

    def renew(self):
        if self.stream is not None:
            self.stream.wire.close()
            if self.rng.random() < 0.5:
                assert self.client.delete().status == 204
        self.client.legacy(self.rng.choice(("2025-03-26", "2025-06-18", mcp.LATEST)))
        self.stream = self.client.get()
        assert self.stream.status == 200, self.stream.head
        for wire in self.client.wires:
            if wire is not self.stream.wire:
                wire.close()
        self.client.wires.clear()

    def play(self):
        super().play()
        while has_more(self.stream, 0):
            event = self.stream.next_event()
            if event is None or b"notifications/progress" in (event.data or b""):
                self.tally.fault("%s: its stream says %s" % (self.name, event and event.data))
                break
        if self.rng.random() < 0.01:
            self.renew()

    def give_up(self, call):
        call.cancelled = True
        self.tally.end(call, "cancelled")
        if self.rng.random() < 0.3:
            return call.answer.wire.close()
        wire = self.wire()
        self.client.notify("notifications/cancelled", {"requestId": call.key}, wire=wire)
        self.keep(wire)
        try:
            # It was too late if there is an answer; else the stream ends empty.
            call.answer.message(call.limit_s + 2 * MARGIN_S)
        except Gone:
            pass
        call.answer.wire.close()

    def leave(self):
        super().leave()
        if self.stream is not None:
            self.stream.wire.close()


class Pipeline(Http):
    """Many requests on one connection before the first answer is read."""

    def play(self):
        wire = self.wire()
        calls = [self.start_call(wire) for _ in range(self.rng.randint(2, 12))]
        if self.rng.random() < 0.05:
            for call in calls:
                call.cancelled = True
                self.tally.end(call, "dropped")
            return wire.reset()
        for call in calls:
            self.finish(call)
        self.keep(wire)


class Listener(Http):
    """subscriptions/listen, given up and asked for again."""

    def play(self):
        answer = self.client.send("subscriptions/listen", {
            "notifications": {"toolsListChanged": True, "promptsListChanged": True}})
        self.client.wires.clear()
        assert answer.next().msg["method"] == "notifications/subscriptions/acknowledged"
        end = time.monotonic() + self.rng.uniform(0.2, 5)
        while time.monotonic() < end and not self.soak.resting.is_set():
            if has_more(answer, 0.1):
                event = answer.next_event()
                if event is None:
                    self.tally.fault("%s: the listen ended" % self.name)
                    break
                if event.data is not None:
                    self.soak.tally.ended["-", "list_changed", "heard"] += 1
        answer.wire.close()


def every(soak):
    made = []
    for i in range(3):
        for era in ("legacy", "modern"):
            made.append(Lines(soak, "lines-%s-%d" % (era, i), era))
        made += [Session(soak, "session-%d" % i, "legacy"), Http(soak, "http-%d" % i, "modern"),
                 Pipeline(soak, "pipe-%d" % i, "modern")]
    return [*made, Listener(soak, "listen-0", "modern"), Listener(soak, "listen-1", "modern")]
