# SPDX-License-Identifier: MIT
"""One client of mcpvisor over one fixture of tests/conformance, in any combination of
eras and transports: for bridge_cases.py, which says what has to come of it."""
import json
import subprocess

import mcp
import schema
import served
from mcp import LATEST, META, MODERN, REPO
from upstream import wait_for

CONFORMANCE = REPO / "tests" / "conformance"
REVISION = {"legacy": LATEST, "modern": MODERN}
CAPABILITIES = {"sampling": {}, "elicitation": {"form": {}, "url": {}},
                "roots": {"listChanged": True}}
LISTEN = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
WATCHED = "test://watched-resource"
ACKED = "notifications/subscriptions/acknowledged"
CHANGES = {"notifications/%s" % n for n in (
    "tools/list_changed", "prompts/list_changed", "resources/list_changed",
    "resources/updated", "subscriptions/acknowledged")}
# What mcpvisor sends to an upstream: the definition of each message. Results answer
# what the upstream has asked.
TO_UPSTREAM = {
    "initialize": "InitializeRequest", "server/discover": "DiscoverRequest",
    "ping": "PingRequest", "tools/list": "ListToolsRequest", "tools/call": "CallToolRequest",
    "prompts/list": "ListPromptsRequest", "prompts/get": "GetPromptRequest",
    "resources/list": "ListResourcesRequest", "resources/read": "ReadResourceRequest",
    "resources/templates/list": "ListResourceTemplatesRequest",
    "resources/subscribe": "SubscribeRequest", "resources/unsubscribe": "UnsubscribeRequest",
    "completion/complete": "CompleteRequest", "logging/setLevel": "SetLevelRequest",
    "subscriptions/listen": "SubscriptionsListenRequest",
    "notifications/initialized": "InitializedNotification",
    "notifications/cancelled": "CancelledNotification",
    "notifications/progress": "ProgressNotification",
    "notifications/roots/list_changed": "RootsListChangedNotification",
}
ANSWERS = {"sampling/createMessage": "CreateMessageResult", "roots/list": "ListRootsResult",
           "elicitation/create": "ElicitResult"}


class Fixture:
    """The upstream, and the record of what came to it and went."""

    def __init__(self, folder, era, transport, options):
        self.era, self.file, self.process = era, folder / "fixture.record", None
        self.file.touch()
        argv = [str(CONFORMANCE / (era + "_fixture")), "--record", str(self.file)]
        self.entry = {"command": argv[0], "args": argv[1:]}
        if transport == "http":
            self.process = subprocess.Popen([*argv, "--http", "0"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE)
            self.entry = {"url": self.process.stdout.readline().decode().strip()}
        self.entry["mcpvisor"] = {"prefix": "", **options}

    def close(self):
        if self.process:
            # It ends with its input.
            self.process.stdin.close()
            self.process.stdout.close()
            assert self.process.wait(10) == 0

    def lines(self):
        """Those of all its processes, which share the file."""
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def record(self, way, method=None):
        return [r["msg"] for r in self.lines() if r["way"] == way
                and method in (None, r["msg"].get("method"))]

    def wait(self, way, method, n=1):
        wait_for(lambda: len(self.record(way, method)) >= n, 5,
                 "%s number %d is %s" % (method, n, way))
        return self.record(way, method)[n - 1]

    def faults(self):
        """What mcpvisor sent that the upstream's revision does not allow."""
        revision, found = REVISION[self.era], []
        asked = {(r["pid"], r["msg"].get("id")): r["msg"].get("method")
                 for r in self.lines() if r["way"] == "out" and "method" in r["msg"]}
        for r in self.lines():
            m = r["msg"]
            if r["way"] != "in":
                continue
            if "method" in m:
                name = TO_UPSTREAM[m["method"]]
                # An older upstream is asked whether it is one.
                if m["method"] == "server/discover":
                    found += schema.complaints(MODERN, name, m)
                elif schema.document(revision) and not schema.validator(revision, name):
                    found.append("%s has no %s" % (revision, m["method"]))
                else:
                    found += schema.complaints(revision, name, m)
            elif "result" in m:
                found += schema.complaints(revision, ANSWERS[asked[r["pid"], m["id"]]],
                                           m["result"])
        return found


class Reply:
    """What came of one request: notices and questions in the order they had."""

    def __init__(self):
        self.msg, self.before, self.rounds = None, [], []

    @property
    def result(self):
        assert "result" in self.msg, self.msg
        return self.msg["result"]

    @property
    def error(self):
        assert "error" in self.msg, self.msg
        return self.msg["error"]

    @property
    def text(self):
        return self.result["content"][0]["text"]

    def notices(self, method):
        return [m["params"] for m in self.before if m.get("method") == method]

    @property
    def questions(self):
        """(how, method, params) of each that the client was asked."""
        asked = [("request", m["method"], m.get("params")) for m in self.before
                 if "method" in m and "id" in m]
        return asked + [("input_required", q["method"], q.get("params"))
                        for r in self.rounds for q in r["inputRequests"].values()]


class Client:
    """A client of either era and transport, that answers what it is asked."""

    def __init__(self, mv, conn, era, transport, capabilities):
        self.mv, self.conn, self.era, self.transport = mv, conn, era, transport
        self.capabilities, self.answers, self.stream = capabilities, {}, None

    @property
    def is_modern(self):
        return self.era == "modern"

    @property
    def is_http(self):
        return self.transport == "http"

    def begin(self, method, params=None, meta=None):
        meta = dict(meta or {})
        if self.is_modern:
            meta.setdefault(META + "clientCapabilities", self.capabilities)
        return self.conn.send(method, params, meta=meta or None)

    def next(self, sent):
        """The next message that belongs to a request; on stdio, that may do so."""
        if not self.is_http:
            return self.conn.take(lambda m: m.msg.get("method") not in CHANGES).msg
        m = sent.next() if sent.is_stream else sent.message()
        assert m is not None, "the stream ended without an answer"
        return m.msg

    def answer(self, method, params):
        return self.answers.get(method, lambda _: {"made": "up"})(params)

    def once(self, method, params, meta, reply):
        sent = self.begin(method, params, meta)
        while True:
            m = self.next(sent)
            if "method" not in m:
                # Only one at a time is under way.
                reply.msg = m
                return
            reply.before.append(m)
            if "id" in m:
                assert not self.is_modern, "no server of that era has requests: %r" % m
                self.say({"id": m["id"], "result": self.answer(m["method"],
                                                                m.get("params"))})

    def say(self, msg):
        msg = {"jsonrpc": "2.0", **msg}
        if not self.is_http:
            self.conn.line(json.dumps(msg))
            return
        answer = self.conn.post(msg)
        assert answer.status == 202 and answer.body() == b"", answer.head

    def ask(self, method, params=None, meta=None):
        """Until there is no more to answer."""
        reply, more = Reply(), {}
        while True:
            self.once(method, {**(params or {}), **more}, meta, reply)
            result = reply.msg.get("result", {})
            if result.get("resultType") != "input_required":
                return reply
            assert self.is_modern and len(reply.rounds) < 5
            reply.rounds.append(result)
            more = {"inputResponses": {k: self.answer(q["method"], q.get("params"))
                                       for k, q in result["inputRequests"].items()}}
            if "requestState" in result:
                more["requestState"] = result["requestState"]

    def call(self, name, args=None, **kw):
        return self.ask("tools/call", {"name": name, "arguments": args or {}}, **kw)

    # -- what comes unasked ----------------------------------------------------------

    def watch(self):
        """Whatever the era has for hearing of all lists and of one resource."""
        if self.is_modern:
            self.stream = self.conn.send(
                "subscriptions/listen", {"notifications": {
                    **LISTEN, "resourceSubscriptions": [WATCHED]}}, id="listen",
                meta={META + "clientCapabilities": self.capabilities})
            got = self.heard(ACKED)
            assert got["notifications"] == {**LISTEN, "resourceSubscriptions": [WATCHED]}
            return
        if self.is_http:
            self.stream = self.conn.get()
            assert self.stream.is_stream
        assert self.ask("resources/subscribe", {"uri": WATCHED}).result == {}

    def heard(self, method):
        """The params of the next notice of that kind that nobody waited for."""
        if not self.is_http:
            return self.conn.notice(method).msg.get("params", {})
        got = self.stream.next()
        assert got is not None and got.msg["method"] == method, got
        return got.msg.get("params", {})

    def unheard(self):
        if not self.is_http:
            return self.conn.nothing()
        return self.stream.quiet()


class Bridge:
    """A fixture, mcpvisor, and its client."""

    def __init__(self, binary, folder, client, upstream, front, back,
                 capabilities=None, **options):
        self.more = lambda name, *rest, **more: self.others.setdefault(name, Bridge(
            binary, folder / name, client, upstream, front, back, *rest, **more))
        folder.mkdir(exist_ok=True)
        self.client_era, self.upstream_era = client, upstream
        self.front, self.back, self.others = front, back, {}
        self.up = Fixture(folder, upstream, back, options)
        text = json.dumps({"mcpServers": {"fixture": self.up.entry}})
        start = served.Served if front == "http" else mcp.Mcpvisor
        self.mv = start(binary, folder, {}, text=text,
                        args=() if front == "http" else ("--log-level", "debug"))
        self.c = self.client(CAPABILITIES if capabilities is None else capabilities)

    def client(self, capabilities):
        conn = self.mv if self.front == "stdio" else self.mv.client()
        if self.client_era == "modern":
            conn.era, conn.revision = "modern", MODERN
        else:
            conn.legacy(LATEST, capabilities)
        return Client(self.mv, conn, self.client_era, self.front, capabilities)

    def without_capabilities(self):
        """The same once more, for a client that can be asked nothing."""
        return self.others.get("bare") or self.more("bare", {})

    def with_roots(self):
        """The same once more. A child for all is told of no roots, so who has roots to
        give says so in the conf."""
        return self.others.get("roots") or self.more("roots", roots="client")

    def end(self):
        for other in self.others.values():
            other.end()
        try:
            self.mv.check_end()
        finally:
            self.up.close()
        faults = self.up.faults()
        assert not faults, faults[:5]
