# SPDX-License-Identifier: MIT
"""The harness: starts mcpvisor over scripted upstreams and speaks to it."""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import schema

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
sys.path.insert(0, str(HERE / "upstreams"))

import rawjson  # noqa: E402 (path first)
from upstream import PATIENCE, Upstream, group_members, wait_for  # noqa: E402

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST = "2025-11-25"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
AUTO = object()


def strict_json(raw):
    def refuse(text):
        raise ValueError("not JSON: " + text)

    return json.loads(raw.decode("utf-8"), parse_constant=refuse)


class Message:
    """One message from mcpvisor: its bytes and what they mean."""

    def __init__(self, raw, msg, at, methods):
        self.raw, self.msg, self.at = raw, msg, at
        # Of the requests that it answers: one per element of a batch.
        self.methods = methods

    def __repr__(self):
        return "<%s>" % self.raw[:400].decode("utf-8", "replace")

    @property
    def result(self):
        assert "result" in self.msg, self
        return self.msg["result"]

    @property
    def error(self):
        assert "error" in self.msg, self
        return self.msg["error"]

    @property
    def code(self):
        return self.error["code"]

    @property
    def params(self):
        return self.msg.get("params")

    @property
    def text(self):
        return self.result["content"][0]["text"]

    def span(self, *path):
        """The bytes of a nested member, as they came."""
        found = rawjson.span(self.raw.decode("utf-8"), *path)
        return None if found is None else found.encode()


class Mcpvisor:
    """One run of the program with one client on its stdin and stdout."""

    command = ("stdio",)

    def __init__(self, binary, folder, upstreams, args=(), env=None, text=None, file=True,
                 wrap=()):
        self.folder, self.upstreams = folder, {}
        self.era, self.revision, self.next_id = "legacy", LATEST, 0
        self.asked, self.messages, self.pending = {}, [], []
        self.lines, self.log_lines, self.bad_lines = [], [], []
        self.check_schema, self.want_rc = True, 0
        self.cond = threading.Condition(threading.RLock())
        servers = {}
        for name, what in upstreams.items():
            if "command" in what or "url" in what or what.get("raw_entry"):
                servers[name] = {k: v for k, v in what.items() if k != "raw_entry"}
            else:
                self.upstreams[name] = Upstream(folder, name, what)
                servers[name] = self.upstreams[name].entry()
        self.file = folder / "servers.json"
        self.file.write_text(text if text is not None
                             else json.dumps({"mcpServers": servers}, indent=1))
        self.env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(folder),
                    "XDG_STATE_HOME": str(folder / "state"), "LANG": "C.UTF-8",
                    **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")},
                    **(env or {})}
        argv = [*wrap, str(binary), *self.command, *args]
        if file:
            argv += ["--mcp-json", str(self.file)]
        self.started = time.monotonic()
        self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, env=self.env, process_group=0,
                                     cwd=folder)
        self.threads = [threading.Thread(target=f, daemon=True)
                        for f in (self.read_out, self.read_err)]
        for t in self.threads:
            t.start()

    def __getitem__(self, name):
        return self.upstreams[name]

    # -- reading -----------------------------------------------------------------

    def read_out(self):
        for raw in self.proc.stdout:
            at = time.monotonic_ns()
            with self.cond:
                self.lines.append(raw)
                try:
                    assert raw.endswith(b"\n") and b"\r" not in raw, "not one \\n line"
                    msg = strict_json(raw)
                    for one in msg if isinstance(msg, list) else [msg]:
                        assert one["jsonrpc"] == "2.0"
                    message = Message(raw[:-1], msg, at, self.methods(msg))
                    self.messages.append(message)
                    self.pending.append(message)
                except (ValueError, AssertionError, LookupError, TypeError,
                        RecursionError) as e:
                    self.bad_lines.append((raw[:500], repr(e)))
                self.cond.notify_all()
        with self.cond:
            self.cond.notify_all()

    def methods(self, msg):
        """The methods of the requests that a message answers, None for others."""
        found = []
        for one in msg if isinstance(msg, list) else [msg]:
            asked = self.asked.get(json.dumps(one.get("id"))) if "method" not in one else None
            found.append(asked.pop(0) if asked else None)
        return found

    def read_err(self):
        for raw in self.proc.stderr:
            self.log_lines.append(raw)

    def take(self, want, timeout=10.0, what="a message"):
        """Removes and returns the first message not taken yet that want() accepts."""
        end = time.monotonic() + timeout * PATIENCE
        with self.cond:
            while True:
                for m in self.pending:
                    if want(m):
                        self.pending.remove(m)
                        return m
                left = end - time.monotonic()
                if left <= 0 or (self.proc.poll() is not None
                                 and not self.threads[0].is_alive()):
                    raise AssertionError("no %s within %g s; unread: %r; log ends: %s" % (
                        what, timeout, self.pending[-5:], self.log()[-2000:]))
                self.cond.wait(min(left, 0.2))

    def answer(self, key, timeout=10.0):
        return self.take(lambda m: isinstance(m.msg, dict) and "method" not in m.msg
                         and same(m.msg.get("id"), key), timeout, "answer to %r" % (key,))

    def notice(self, method, timeout=10.0, want=lambda m: True):
        return self.take(lambda m: isinstance(m.msg, dict) and m.msg.get("method") == method
                         and want(m), timeout, method)

    def notices(self, method=None):
        """Notifications that came and nobody took."""
        with self.cond:
            return [m for m in self.pending if isinstance(m.msg, dict)
                    and "method" in m.msg and method in (None, m.msg["method"])]

    # -- writing -----------------------------------------------------------------

    def write(self, raw):
        self.proc.stdin.write(raw)
        self.proc.stdin.flush()

    def line(self, text):
        self.write((text if isinstance(text, bytes) else text.encode()) + b"\n")

    def meta(self, **more):
        meta = {META + "protocolVersion": MODERN,
                META + "clientInfo": {"name": "harness", "version": "1"},
                META + "clientCapabilities": {}}
        return {**meta, **more}

    def send(self, method, params=None, id=AUTO, meta=None):
        """Sends a request; params is a dict or the raw text of one. Returns its id."""
        if id is AUTO:
            self.next_id += 1
            id = self.next_id
        self.asked.setdefault(json.dumps(id), []).append(method)
        msg = {"jsonrpc": "2.0", "id": id, "method": method}
        if isinstance(params, str):
            self.line(json.dumps(msg)[:-1] + ',"params":' + params + "}")
            return id
        params = dict(params or {})
        if self.era == "modern":
            params["_meta"] = {**self.meta(), **params.get("_meta", {}), **(meta or {})}
        elif meta:
            params["_meta"] = meta
        if params or method not in ("ping", "tools/list"):
            msg["params"] = params
        self.line(json.dumps(msg))
        return id

    def ask(self, method, params=None, timeout=10.0, **kw):
        return self.answer(self.send(method, params, **kw), timeout)

    def notify(self, method, params=None):
        msg = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            msg["params"] = params
        self.line(json.dumps(msg))

    def legacy(self, revision=LATEST, capabilities=None, initialized=True):
        """The handshake of a legacy client; returns the initialize answer."""
        self.era, self.revision = "legacy", revision
        got = self.ask("initialize", {
            "protocolVersion": revision, "capabilities": capabilities or {},
            "clientInfo": {"name": "harness", "version": "1"}})
        if initialized:
            self.notify("notifications/initialized")
        return got

    def modern(self):
        self.era, self.revision = "modern", MODERN
        return self

    def speak(self, era):
        """Ready to ask, as a client of that era or legacy revision."""
        if era == "modern":
            self.modern()
        else:
            self.legacy(LATEST if era == "legacy" else era)
        return self

    def start_call(self, name, args=None, **kw):
        params = {"name": name}
        if args is not None:
            params["arguments"] = args
        return self.send("tools/call", params, **kw)

    def call(self, name, args=None, timeout=10.0, **kw):
        return self.answer(self.start_call(name, args, **kw), timeout)

    def cancel(self, key, reason="enough"):
        self.notify("notifications/cancelled", {"requestId": key, "reason": reason})

    def tools(self):
        return [t["name"] for t in self.ask("tools/list").result["tools"]]

    def fence(self, name=None):
        """All that the upstream wrote before has been dealt with after this."""
        if name is None:
            self.ask("server/discover" if self.era == "modern" else "ping").result
        else:
            self.call(name + "__echo", {"fence": 1}).result

    def nothing(self, method=None, for_ms=250):
        """No such notification comes within a window: for proving an absence."""
        end = time.monotonic() + for_ms / 1000
        with self.cond:
            while time.monotonic() < end and not self.notices(method):
                self.cond.wait(end - time.monotonic())
        assert not self.notices(method), self.notices(method)[:3]

    # -- the log -----------------------------------------------------------------

    def log(self):
        return b"".join(list(self.log_lines)).decode("utf-8", "replace")

    def wait_log(self, pattern, timeout=5.0):
        return wait_for(lambda: re.search(pattern, self.log()), timeout,
                        "log has %s; it is: %s" % (pattern, self.log()[-3000:]))

    # -- the end -----------------------------------------------------------------

    def groups(self):
        return {json.loads(r.raw)["pgid"] for u in self.upstreams.values()
                for r in u.starts()}

    def kill(self):
        self.proc.send_signal(signal.SIGKILL)
        self.want_rc = -signal.SIGKILL
        self.proc.wait(5)

    def close_input(self):
        if not self.proc.stdin.closed:
            try:
                self.proc.stdin.close()
            except BrokenPipeError:
                pass

    def finish(self, timeout=10.0):
        """End of input, then the exit status."""
        self.close_input()
        rc = self.proc.wait(timeout * PATIENCE)
        for t in self.threads:
            t.join(5)
        return rc

    def check_end(self):
        """Ends it and checks what must hold after every run."""
        groups = self.groups()
        try:
            rc = self.finish()
            assert rc == self.want_rc, "exit %d: %s" % (rc, self.log()[-3000:])
            assert not self.bad_lines, self.bad_lines[:5]
            wait_for(lambda: not group_members(groups), 3, "the children's groups end")
            for word in ("Sanitizer", "runtime error:"):
                assert word not in self.log(), self.log()[-6000:]
            if self.check_schema:
                self.check_schemas()
        finally:
            self.destroy(groups)

    def check_schemas(self):
        wrong = []
        for m in self.messages:
            if len(m.raw) > 200000:
                continue
            every = m.msg if isinstance(m.msg, list) else [m.msg]
            for one, method in zip(every, m.methods):
                wrong += schema.check(self.revision, method, one)
        assert not wrong, wrong[:5]

    def destroy(self, groups):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait(5)
        for pid in group_members(groups | self.groups()):
            os.kill(pid, signal.SIGKILL)
        for u in self.upstreams.values():
            u.close()
        for pipe in (self.proc.stdin, self.proc.stdout, self.proc.stderr):
            try:
                pipe.close()
            except (OSError, ValueError):
                pass


def same(a, b):
    """JSON equality of ids: 1 is not "1", nor true."""
    return type(a) is type(b) and a == b
