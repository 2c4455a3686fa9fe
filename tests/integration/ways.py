# SPDX-License-Identifier: MIT
"""One client, four ways: the same test over pipes and HTTP, as a client of either era."""
import json

from mcp import Message

WAYS = ["stdio-legacy", "stdio-modern", "http-legacy", "http-modern"]
ACKED = "notifications/subscriptions/acknowledged"


class Way:
    """A client of mv; what start_call returns is for answer() alone."""

    def __init__(self, mv, client, way):
        self.mv, self.c = mv, client
        self.transport, self.era = way.split("-")
        self.answers = []

    def __getitem__(self, name):
        return self.mv[name]

    @property
    def is_http(self):
        return self.transport == "http"

    @property
    def is_modern(self):
        return self.era == "modern"

    def unchecked(self):
        """The test makes somebody break the schema on purpose."""
        self.mv.check_schema = False
        return self

    # -- asking ------------------------------------------------------------------

    def meta(self, **more):
        return {**(self.c.meta() if self.is_modern else {}), **more}

    def send(self, method, params=None, meta=None, **kw):
        """params is a dict, or the raw text of one without _meta."""
        if isinstance(params, str):
            return self.send_raw(method, params, meta, **kw)
        sent = self.c.send(method, params, meta=meta, **kw)
        if self.is_http:
            self.answers.append(sent)
        return sent

    def send_raw(self, method, params, meta=None, key=None):
        """The text of params as it is, but for the _meta that a modern client adds."""
        self.c.next_id += 1
        key = json.dumps(self.c.next_id) if key is None else key
        shadow = {"method": method, "id": 0, "params": {"_meta": self.meta(**(meta or {}))}}
        if self.is_modern or meta:
            body = params.rstrip()[:-1]
            params = "%s%s\"_meta\":%s}" % (body, "" if body.strip() == "{" else ",",
                                            json.dumps(shadow["params"]["_meta"]))
        raw = '{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}' % (
            key, json.dumps(method), params)
        if not self.is_http:
            self.c.line(raw.encode("utf-8", "surrogatepass"))
            return json.loads(key)
        named = json.loads(params)
        shadow["params"].update({k: named[k] for k in ("name", "uri") if k in named})
        sent = self.c.post(shadow, body=raw.encode("utf-8", "surrogatepass"))
        self.answers.append(sent)
        return sent

    def start_call(self, name, args=None, **kw):
        params = {"name": name}
        if args is not None:
            params["arguments"] = args
        return self.send("tools/call", params, **kw)

    def answer(self, sent, timeout=10.0):
        return sent.message(timeout) if self.is_http else self.c.answer(sent, timeout)

    def ask(self, method, params=None, timeout=10.0, **kw):
        return self.answer(self.send(method, params, **kw), timeout)

    def call(self, name, args=None, timeout=10.0, **kw):
        return self.answer(self.start_call(name, args, **kw), timeout)

    def tools(self):
        return [t["name"] for t in self.ask("tools/list").result["tools"]]

    def refusal(self, raw, method="tools/call", **params):
        """What comes back for a message that is refused; over HTTP its status too."""
        raw = raw if isinstance(raw, bytes) else raw.encode("utf-8", "surrogatepass")
        if not self.is_http:
            self.c.line(raw)
            return None, self.c.take(lambda m: isinstance(m.msg, dict) and "error" in m.msg,
                                     what="a refusal")
        shadow = {"method": method, "params": {"_meta": self.meta(), **params}}
        answer = self.c.post(shadow, body=raw)
        return answer.status, answer.message()

    # -- what comes unasked --------------------------------------------------------

    def notices(self, method=None):
        """What came with answers, or at all on stdio, and nobody took."""
        if not self.is_http:
            return self.c.notices(method)
        return [m for a in self.answers for m in a.notices if method in (None, m.msg["method"])]

    def seen(self):
        """All that the client was sent."""
        if not self.is_http:
            return b"".join(self.c.lines)
        return b"\n".join(m.raw for _, _, m in self.mv.noted)

    def watch(self, *uris, tools=False):
        return Watch(self, uris, tools)

    # -- the program ---------------------------------------------------------------

    def ping(self):
        """It still serves: the smallest request that the era has."""
        return self.ask("server/discover" if self.is_modern else "ping").result

    def fence(self, name=None):
        """All that the upstream wrote before has been dealt with after this."""
        self.call(name + "__echo", {"fence": 1}).result if name else self.ping()

    def log(self):
        return self.mv.log()

    def wait_log(self, pattern, timeout=5.0):
        return self.mv.wait_log(pattern, timeout)

    @property
    def pid(self):
        return self.mv.proc.pid


class Watch:
    """Notices of change, by whatever an era and a transport have for them."""

    def __init__(self, way, uris, tools):
        self.way, self.uris, self.stream, self.key = way, uris, None, "W"
        if way.is_modern:
            want = {"toolsListChanged": True} if tools else {}
            if uris:
                want["resourceSubscriptions"] = list(uris)
            sent = way.c.send("subscriptions/listen", {"notifications": want}, id=self.key)
            if way.is_http:
                self.stream = sent
            self.next(ACKED)
            return
        for uri in uris:
            assert way.ask("resources/subscribe", {"uri": uri}).result == {}
        if way.is_http:
            self.stream = way.c.get()
            assert self.stream.is_stream

    def next(self, method, timeout=10.0) -> Message:
        if self.stream is None:
            return self.way.c.notice(method, timeout)
        got = self.stream.next(timeout)
        assert got is not None and got.msg["method"] == method, got
        return got

    def quiet(self, for_ms=100):
        if self.stream is None:
            self.way.c.nothing(for_ms=for_ms)
        else:
            self.stream.quiet(for_ms)

    def close(self):
        """Ends it in the polite way."""
        if not self.way.is_modern:
            for uri in self.uris:
                assert self.way.ask("resources/unsubscribe", {"uri": uri}).result == {}
        elif self.stream is None:
            self.way.c.cancel(self.key)
        else:
            self.stream.wire.close()


def start(way, serve, serve_http, upstreams=None, **named):
    """A running program and a client of it that is ready to ask."""
    transport, era = way.split("-")
    mv = (serve if transport == "stdio" else serve_http)(upstreams, **named)
    return Way(mv, mv.speak(era), way)
