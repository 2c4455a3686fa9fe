# SPDX-License-Identifier: MIT
"""A scriptable MCP server on stdio: one program for every hostile upstream.

    python3 scripted.py BEHAVIOUR.json

README.md in the folder above lists what a behaviour may say. The program is
started hundreds of times in a run, so it imports little and starts fast.
"""
import json
import os
import select
import sys
import time

import _signal

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from rawjson import Request, as_bytes, dumps  # noqa: E402 (path first)
from steps import Steps  # noqa: E402

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


class Server(Steps):
    def __init__(self, behaviour):
        self.b = behaviour
        self.era = behaviour.get("era", "legacy")
        self.eol = behaviour.get("eol", "\n").encode()
        self.modern_now = self.era == "modern"
        self.listens = {}
        self.waiting = []  # [generator, request, kind, what, deadline]
        self.gates = set()
        self.responses = {}
        self.first = True
        self.replies = 0
        self.record_fd = -1
        if behaviour.get("record"):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self.record_fd = os.open(behaviour["record"], flags, 0o600)
        facts = {"pgid": os.getpgrp(), "ppid": os.getppid(), "argv": sys.argv,
                 "env": dict(os.environ), "cwd": os.getcwd()}
        self.record("B", json.dumps(facts).encode())

    def hooks(self):
        return self.b.get("on", {})

    # -- output ----------------------------------------------------------------

    def record(self, kind, raw=b""):
        if self.record_fd >= 0:
            head = "%s %d %d " % (kind, os.getpid(), time.monotonic_ns())
            os.write(self.record_fd, head.encode() + raw + b"\n")

    def put(self, raw, fd=1):
        view = memoryview(raw)
        while view:
            view = view[os.write(fd, view):]

    def send(self, raw):
        """One message, framed as the behaviour says."""
        self.record("O", raw[:1000].replace(b"\n", b" "))
        if self.b.get("framing") == "lsp":
            self.put(b"Content-Length: %d\r\n\r\n" % len(raw) + raw)
            return
        if self.b.get("drip"):
            for i in range(len(raw)):
                self.put(raw[i:i + 1])
            raw = b""
        cut = self.b.get("cut", 0)
        if cut == "walk":
            self.replies += 1
            cut = self.replies
        if 0 < cut < len(raw):
            self.put(raw[:cut])
            time.sleep(self.b.get("cut_ms", 5) / 1000)
            raw = raw[cut:]
        self.put(raw + self.eol)

    def reply(self, req, raw):
        if self.b.get("before_reply"):
            self.put(as_bytes(self.b["before_reply"]))
        self.send(raw)
        if self.b.get("after_reply"):
            self.put(as_bytes(self.b["after_reply"]))
        if self.b.get("exit_after_reply") and req.msg.get("method") == "tools/call":
            os._exit(0)

    def result(self, req, result):
        if isinstance(result, dict):
            if self.modern_now:
                result = {"resultType": "complete", **result}
            result = dumps(result).encode()
        self.reply(req, b'{"jsonrpc":"2.0","id":' + req.id.encode() + b',"result":'
                   + req.fill(result) + b"}")

    def error(self, req, code, message="scripted", data=None):
        error = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        self.reply(req, b'{"jsonrpc":"2.0","id":' + req.id.encode() + b',"error":'
                   + dumps(error).encode() + b"}")

    def notify(self, method, params=None):
        raw = b'{"jsonrpc":"2.0","method":' + dumps(method).encode()
        if params is not None:
            raw += b',"params":' + params
        self.send(raw + b"}")

    def changed(self, what):
        if not self.listens:
            self.notify("notifications/%s/list_changed" % what)
        for key, want in self.listens.items():
            if want.get(what + "ListChanged"):
                meta = b'{"_meta":{"%ssubscriptionId":%s}}' % (META.encode(), key.encode())
                self.notify("notifications/%s/list_changed" % what, meta)

    def updated(self, uri):
        raw = dumps(uri).encode()
        if not self.listens:
            self.notify("notifications/resources/updated", b'{"uri":' + raw + b"}")
        for key, want in self.listens.items():
            if uri in want.get("resourceSubscriptions", ()):
                self.notify("notifications/resources/updated",
                            b'{"_meta":{"%ssubscriptionId":%s},"uri":%s}'
                            % (META.encode(), key.encode(), raw))

    # -- defaults --------------------------------------------------------------

    def capabilities(self):
        if "capabilities" in self.b:
            return self.b["capabilities"]
        caps = {}
        for key, what in (("tools", "tools"), ("prompts", "prompts")):
            if what in self.b:
                caps[key] = {"listChanged": True}
        if "resources" in self.b or "resourceTemplates" in self.b:
            caps["resources"] = {"listChanged": True, "subscribe": True}
        if "prompts" in self.b or "resourceTemplates" in self.b:
            caps["completions"] = {}
        if self.b.get("logging"):
            caps["logging"] = {}
        return caps

    def definition(self, what, item):
        if isinstance(item, str) and item[:1] in "{[" or not isinstance(item, str):
            return item if isinstance(item, str) else dumps(item)
        if what == "tools":
            return dumps({"name": item, "inputSchema": {"type": "object"}})
        if what == "prompts":
            return dumps({"name": item})
        key = "uriTemplate" if what == "resourceTemplates" else "uri"
        return dumps({key: item, "name": item})

    def listing(self, req, what):
        items = self.b.get(what, [])
        if what not in self.b and not (what.startswith("resource") and "resources"
                                       in self.capabilities()):
            return self.error(req, -32601, "Method not found")
        page = self.b.get("page") or max(len(items), 1)
        cursor = req.msg.get("params", {}).get("cursor")
        at = int(cursor[1:]) if cursor and "cursor" not in self.b else 0
        raw = '"%s":[%s]' % (what, ",".join(self.definition(what, i)
                                            for i in items[at:at + page]))
        if "cursor" in self.b:
            raw += ',"nextCursor":' + dumps(self.b["cursor"])
        elif at + page < len(items):
            raw += ',"nextCursor":"p%d"' % (at + page)
        if self.modern_now:
            raw = '"resultType":"complete","ttlMs":%d,"cacheScope":"%s",%s' % (
                self.b.get("ttl_ms", 600000), self.b.get("scope", "public"), raw)
        return self.result(req, ("{" + raw + "}").encode())

    def default(self, req, method):
        params = req.msg.get("params") or {}
        if method in LISTS:
            self.listing(req, LISTS[method])
        elif method == "initialize" and self.era != "modern":
            self.initialize(req, params)
        elif method == "server/discover" and self.era != "legacy":
            self.discover(req)
        elif method == "ping" and self.era != "modern":
            self.result(req, {})
        elif method == "tools/call" and "tools" in self.b:
            self.call(req, params)
        elif method == "prompts/get" and "prompts" in self.b:
            text = "%s %s" % (params.get("name"), req.args or "-")
            self.result(req, {"messages": [{"role": "user", "content":
                                            {"type": "text", "text": text}}]})
        elif method == "resources/read":
            self.read(req, params.get("uri"))
        elif method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
            self.result(req, {})
        elif method == "completion/complete":
            ref = params.get("ref", {})
            values = [str(ref.get("name", ref.get("uri"))), dumps(params.get("argument"))]
            self.result(req, {"completion": {"values": values}})
        elif method == "subscriptions/listen" and self.era != "legacy":
            self.listens[req.id] = params.get("notifications", {})
            self.notify("notifications/subscriptions/acknowledged",
                        b'{"_meta":{"%ssubscriptionId":%s},"notifications":%s}'
                        % (META.encode(), req.id.encode(),
                           dumps(self.listens[req.id]).encode()))
        elif req.id is not None:
            self.error(req, -32601, "Method not found")

    def initialize(self, req, params):
        self.modern_now = False
        known = self.b.get("versions", ["2024-11-05", "2025-03-26", "2025-06-18",
                                        "2025-11-25"])
        wanted = params.get("protocolVersion")
        result = {"protocolVersion": wanted if wanted in known else known[-1],
                  "capabilities": self.capabilities(),
                  "serverInfo": {"name": self.b.get("name", "scripted"), "version": "1"}}
        if "instructions" in self.b:
            result["instructions"] = self.b["instructions"]
        self.result(req, result)

    def discover(self, req):
        self.modern_now = True
        result = {"supportedVersions": self.b.get("modern_versions", [MODERN]),
                  "capabilities": self.capabilities(), "ttlMs": 600000,
                  "cacheScope": "public",
                  "_meta": {META + "serverInfo": {"name": self.b.get("name", "scripted"),
                                                  "version": "1"}}}
        if "instructions" in self.b:
            result["instructions"] = self.b["instructions"]
        self.result(req, result)

    def call(self, req, params):
        name = params.get("name")
        if name in self.b.get("calls", {}):
            return self.start(self.b["calls"][name], req)
        listed = (json.loads(self.definition("tools", t)) for t in self.b["tools"])
        if not any(isinstance(t, dict) and t.get("name") == name for t in listed):
            return self.error(req, -32602, "Unknown tool: %s" % name)
        args = req.args if req.args is not None else "absent"
        block = '{"content":[{"type":"text","text":%s}]' % dumps(args)
        if req.args is not None and req.args[0] == "{":
            block += ',"structuredContent":' + req.args
        if self.modern_now:
            block += ',"resultType":"complete"'
        return self.result(req, (block + "}").encode("utf-8", "surrogatepass"))

    def read(self, req, uri):
        texts = self.b.get("texts", {})
        if uri not in texts:
            code = -32602 if self.modern_now else -32002
            return self.error(req, code, "Resource not found", {"uri": uri})
        result = {"contents": [{"uri": uri, "text": texts[uri]}]}
        if self.modern_now:
            result.update(ttlMs=0, cacheScope="private")
        return self.result(req, result)

    # -- input -----------------------------------------------------------------

    def line(self, raw):
        self.record("I", raw)
        if self.b.get("framing") == "lsp":
            return
        text = raw.decode("utf-8", "surrogateescape")
        try:
            msg = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(msg, list):
            for one in msg:
                self.message(one, dumps(one))
        elif isinstance(msg, dict):
            self.message(msg, text)

    def message(self, msg, text):
        method = msg.get("method")
        if method is None:
            self.responses[dumps(msg.get("id"))] = msg
            return
        if self.first and self.b.get("initialize_first") and method != "initialize":
            os._exit(1)
        self.first = False
        req = Request(text, msg)
        if method == "notifications/cancelled":
            self.cancelled(msg.get("params", {}).get("requestId"))
        meta = (msg.get("params") or {}).get("_meta") or {}
        if self.era == "modern" and req.id is not None \
                and meta.get(META + "protocolVersion") not in (MODERN,):
            return self.error(req, -32602, "_meta is missing", None)
        if method in self.hooks():
            return self.start(self.hooks()[method], req)
        return self.default(req, method)

    def cancelled(self, key):
        key = dumps(key)
        if key in self.listens:
            del self.listens[key]
        if self.b.get("obey_cancel", True):
            self.waiting = [t for t in self.waiting if t[1].id != key]

    def control(self, raw):
        cmd = json.loads(raw)
        if cmd[0] == "open":
            self.gates.add(cmd[1])
        else:
            self.start(cmd[1], Request())

    def due(self):
        """Goes on with every script whose wait is over."""
        now = time.monotonic()
        ready = [t for t in self.waiting if t[4] <= now
                 or (t[2] == "gate" and t[3] in self.gates)
                 or (t[2] == "response" and t[3] in self.responses)]
        for task in ready:
            if task in self.waiting:
                self.waiting.remove(task)
                self.advance(task)
        return bool(ready)

    def serve(self):
        poll = select.poll()
        poll.register(0, select.POLLIN)
        chunks, ctl, ctl_rest = [], -1, b""
        if self.b.get("control"):
            ctl = os.open(self.b["control"], os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            poll.register(ctl, select.POLLIN)
        if self.b.get("ignore_term"):
            _signal.signal(_signal.SIGTERM, lambda *_: self.record("S", b"TERM"))
        self.start(self.hooks().get("start", []), Request())
        while True:
            while self.due():
                pass
            left = min((t[4] for t in self.waiting), default=None)
            timeout = None if left is None else max(0, left - time.monotonic()) * 1000 + 1
            for fd, _ in poll.poll(timeout):
                data = os.read(fd, 1 << 16)
                if fd == ctl:
                    ctl_rest += data
                    *lines, ctl_rest = ctl_rest.split(b"\n")
                    for one in lines:
                        self.control(one)
                    continue
                if not data:
                    self.record("E")
                    if not self.b.get("ignore_eof"):
                        self.start(self.hooks().get("eof", []), Request())
                        return
                    poll.unregister(0)
                if not chunks and "before_line" in self.b:
                    self.put(as_bytes(self.b["before_line"]))
                chunks.append(data)
                if sum(map(len, chunks)) > self.b.get("exit_at", 1 << 40):
                    os._exit(0)
                if b"\n" in data:
                    *lines, rest = b"".join(chunks).split(b"\n")
                    chunks = [rest] if rest else []
                    for one in lines:
                        self.line(one)
                        while self.due():
                            pass


def main():
    sys.setrecursionlimit(5000)
    with open(sys.argv[1], encoding="utf-8") as f:
        behaviour = json.load(f)
    server = Server(behaviour)
    try:
        server.serve()
    except BrokenPipeError:
        os._exit(4)


if __name__ == "__main__":
    main()
