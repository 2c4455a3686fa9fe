# SPDX-License-Identifier: MIT
"""A mcpvisor that serves over HTTP, and a client on raw HTTP that never writes JSON
anew: what carries its bytes is one of the stacks of interop_stacks.py."""

import base64
import json
import re
import signal
import subprocess
import time

from interop_wire import LEGACY, META, MODERN, elements, members

START_S = 10
STOP_S = 10
BEATS = 2
_LISTENING = re.compile(r'listening address="127\.0\.0\.1:(\d+)"')


def until(check, what, seconds=10):
    """What CHECK returns, as soon as that is true."""
    end = time.monotonic() + seconds
    while True:
        seen = check()
        if seen:
            return seen
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.01)


class Serve:
    """mcpvisor serve over the upstreams of RUN. A restart keeps port and state."""

    def __init__(self, run, name="visor"):
        self.run = run
        self.port = 0
        self.socket = run.folder / f"{name}.sock"
        self.log = run.folder / f"{name}.log"
        self.process = None
        self.start()

    def start(self):
        size = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.argv() + self.listen_args(),
                env=self.run.environ(), stdin=subprocess.DEVNULL, stderr=log)

        def listening():
            text = self.log.read_bytes()[size:].decode(errors="replace")
            if self.process.poll() is not None:
                raise AssertionError(f"serve ended: {text[-2000:]}")
            return f'"unix:{self.socket}"' in text and _LISTENING.search(text)

        self.port = int(until(listening, "listening", START_S).group(1))

    def argv(self):
        return [self.run.command, "serve", *self.run.files_of]

    def listen_args(self):
        return ["--listen", f"127.0.0.1:{self.port}", "--listen", f"unix:{self.socket}"]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/mcp"

    def stop(self, how=signal.SIGTERM):
        """Exit status, and how long it took."""
        begin = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            status = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = None
        return status, time.monotonic() - begin

    def restart(self, how=signal.SIGTERM):
        self.stop(how)
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()


def header_text(value):
    """VALUE as a header has it: in its Base64 form when it has to be."""
    if (value.isascii() and value.isprintable() and value == value.strip()
            and value and not value.startswith("=?base64?")):
        return value
    return "=?base64?" + base64.b64encode(value.encode()).decode() + "?="


class Answer:
    """One exchange: MESSAGES are raw texts, from a JSON body or from a stream."""

    def __init__(self, exchange):
        self.exchange = exchange
        self.status = exchange.status
        self.headers = exchange.headers
        self.streamed = self.headers.get("content-type", "").startswith(
            "text/event-stream")
        self.seen = []
        self._source = self._events() if self.streamed else self._body()

    def _body(self):
        text = self.exchange.read().decode()
        if text:
            yield text

    def _events(self):
        data, beats = [], 0
        for line in self.exchange.lines():
            if line.startswith(b":"):
                # they keep a stack from losing its patience for us
                beats += 1
                assert beats <= BEATS, f"nothing but heartbeats after {self.seen[-5:]}"
            elif line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" ").decode())
            elif not line and data:
                text, data = "\n".join(data), []
                if text:  # else it has nothing but an id
                    yield text
        assert not data, "an event without its end"

    def next(self):
        """The next raw message; None at the end."""
        text = next(self._source, None)
        if text is not None:
            self.seen.append(text)
        return text

    def rest(self):
        while self.next() is not None:
            pass
        return self.seen

    def until(self, match):
        """Raw members of the next message that MATCH(members) accepts."""
        while True:
            text = self.next()
            assert text is not None, f"the answer ended; seen {self.seen[-5:]}"
            if match(members(text)):
                return members(text)

    def notice(self, method, match=lambda params: True):
        """The params of the next notification METHOD that MATCH accepts."""
        def wanted(message):
            return (message.get("method") == json.dumps(method)
                    and match(json.loads(message.get("params", "{}"))))

        return json.loads(self.until(wanted).get("params", "{}"))

    def reply(self):
        """Raw members of the one response, which is the last message."""
        last = members(self.rest()[-1])
        assert "method" not in last, last
        for text in self.seen[:-1]:
            assert "method" in members(text), text
        return last

    def close(self):
        self.exchange.close()


class HttpWire:
    """A client of one era on STACK. Legacy ones have a session after initialize."""

    def __init__(self, stack, modern):
        self.stack = stack
        self.modern = modern
        self.session = None
        self.revision = None
        self._next = 0

    def headers(self, method=None, name=None):
        found = {"Content-Type": "application/json",
                 "Accept": "application/json, text/event-stream"}
        if self.modern:
            found["MCP-Protocol-Version"] = MODERN
            found["Mcp-Method"] = method
            if name is not None:
                found["Mcp-Name"] = header_text(name)
        else:
            if self.session is not None:
                found["Mcp-Session-Id"] = self.session
            if self.revision is not None:
                found["MCP-Protocol-Version"] = self.revision
        return found

    def params(self, body="", meta=""):
        if self.modern:
            meta = META[:-1] + ("," + meta if meta else "") + "}"
        elif meta:
            meta = "{" + meta + "}"
        if meta:
            body += ("," if body else "") + '"_meta":' + meta
        return "{" + body + "}"

    def send(self, method, body="", meta="", ident=None, headers=None):
        """The answer to a request, as soon as its head is there."""
        if ident is None:
            self._next += 1
            ident = str(self._next)
        fields = json.loads("{" + body + "}")
        name = fields.get("name", fields.get("uri")) if method in (
            "tools/call", "prompts/get", "resources/read") else None
        text = '{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}' % (
            ident, method, self.params(body, meta))
        answer = Answer(self.stack.open(
            "POST", {**self.headers(method, name), **(headers or {})}, text.encode()))
        answer.ident = ident
        return answer

    def request(self, method, body="", meta="", ident=None):
        """Raw members of the reply."""
        answer = self.send(method, body, meta, ident)
        reply = answer.reply()
        assert reply["id"] == answer.ident
        return reply

    def result(self, method, body="", meta=""):
        reply = self.request(method, body, meta)
        assert "result" in reply, reply
        return reply["result"]

    def error(self, method, body=""):
        return json.loads(self.request(method, body)["error"])

    def call(self, tool, arguments, meta=""):
        """The parsed result of a tool."""
        return json.loads(self.result("tools/call", call_body(tool, arguments), meta))

    def notify(self, method, body=""):
        text = '{"jsonrpc":"2.0","method":"%s","params":%s}' % (method, self.params(body))
        answer = Answer(self.stack.open("POST", self.headers(method), text.encode()))
        assert answer.status == 202, answer.rest()
        assert answer.rest() == []

    def initialize(self, revision=LEGACY):
        answer = self.send("initialize", '"protocolVersion":"%s","capabilities":{},'
                           '"clientInfo":{"name":"interop-http","version":"1"}'
                           % revision)
        result = json.loads(answer.reply()["result"])
        self.session = answer.headers["mcp-session-id"]
        self.revision = result["protocolVersion"]
        self.notify("notifications/initialized")
        return result

    def hello(self):
        return (json.loads(self.result("server/discover")) if self.modern
                else self.initialize())

    def listen(self, uris=(), tools=False):
        """A stream of notices: that of the session, or one of its own."""
        if not self.modern:
            stream = self.get()
            for uri in uris:
                self.result("resources/subscribe", '"uri":' + json.dumps(uri))
            return stream
        wanted = {"resourceSubscriptions": list(uris), "toolsListChanged": tools}
        stream = self.send("subscriptions/listen",
                           '"notifications":' + json.dumps(wanted))
        stream.notice("notifications/subscriptions/acknowledged")
        return stream

    def get(self):
        answer = Answer(self.stack.open("GET", {
            **self.headers(), "Accept": "text/event-stream"}, None))
        assert answer.status == 200 and answer.streamed, answer.status
        return answer

    def delete(self):
        """Status of the end of the session."""
        answer = Answer(self.stack.open("DELETE", self.headers(), None))
        answer.rest()
        return answer.status

    def list(self, method, member):
        items, cursor = [], None
        while True:
            page = members(self.result(method, '"cursor":' + cursor if cursor else ""))
            items += elements(page[member])
            cursor = page.get("nextCursor")
            if cursor is None:
                return items


def call_body(tool, arguments):
    return f'"name":{json.dumps(tool)},"arguments":{json.dumps(arguments)}'
