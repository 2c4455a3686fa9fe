# SPDX-License-Identifier: MIT
"""HTTP as a test needs it: exact bytes out, exact parsing in, nothing forgiven."""
import base64
import json
import re
import select
import socket
import struct
import time

from mcp import LATEST, META, MODERN, Message, strict_json
from upstream import PATIENCE

ACCEPT = "application/json, text/event-stream"
SESSION = "Mcp-Session-Id"
VERSION = "MCP-Protocol-Version"


class Gone(AssertionError):
    """The connection ended where more was to come."""


class Wire:
    """One connection."""

    def __init__(self, address):
        self.rest, self.ended, self.at = b"", False, 0
        if address.startswith("unix:"):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(address[5:])
        else:
            host, _, port = address.rpartition(":")
            self.sock = socket.create_connection((host.strip("[]"), int(port)))
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, raw):
        self.sock.sendall(raw)

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def more(self, timeout=10.0):
        """Reads once. False at the end of input, an AssertionError if nothing comes."""
        if self.ended:
            return False
        if not select.select([self.sock], [], [], max(0, timeout))[0]:
            raise AssertionError("nothing within %g s; unread: %r" % (timeout, self.rest[-500:]))
        try:
            got = self.sock.recv(1 << 18)
        except ConnectionResetError:
            got = b""
        self.at = time.monotonic_ns()
        self.rest += got
        self.ended = not got
        return bool(got)

    def until(self, mark, end):
        while mark not in self.rest:
            if not self.more(end - time.monotonic()):
                raise Gone("connection ended within %r" % self.rest[-500:])
        head, _, self.rest = self.rest.partition(mark)
        return head

    def exactly(self, n, end):
        parts, have = [self.rest], len(self.rest)
        while have < n:
            self.rest = b""
            if not self.more(end - time.monotonic()):
                raise Gone("connection ended %d bytes early" % (n - have))
            parts.append(self.rest)
            have += len(self.rest)
        whole = b"".join(parts)
        self.rest = whole[n:]
        return whole[:n]

    def wait_end(self, timeout=10.0):
        """The other side closes; returns what came before."""
        end = time.monotonic() + timeout * PATIENCE
        while self.more(end - time.monotonic()):
            pass
        return self.rest

    def silent(self, for_ms=250):
        """Nothing comes within a window: for proving an absence."""
        assert not self.rest and not select.select([self.sock], [], [], for_ms / 1000)[0], \
            self.rest or self.sock.recv(500)


class Event:
    def __init__(self, at):
        self.data, self.id, self.type, self.at = None, None, None, at
        self.fields, self.comments = [], []


class Answer:
    """The answer to one request: read as far as a test asks for it."""

    def __init__(self, wire, method="POST", note=None):
        self.wire, self.method, self.note = wire, method, note
        self.head, self.events, self.notices, self.comments = None, [], [], []
        self.text, self.over, self.rpc, self.last_id = b"", False, None, None

    def read_head(self, timeout=10.0):
        end = time.monotonic() + timeout * PATIENCE
        while self.head is None:
            first, *lines = self.wire.until(b"\r\n\r\n", end).decode("ascii").split("\r\n")
            found = re.fullmatch(r"HTTP/1\.1 ([1-5]\d\d) ([ -~]+)", first)
            assert found, first
            headers = []
            for line in lines:
                pair = re.fullmatch(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([!-~](?:[ -~]*[!-~])?)",
                                    line)
                assert pair, line
                headers.append((pair[1], pair[2]))
            if found[1][0] != "1":
                self.head = int(found[1]), headers
                self.check_head()
        return self

    def check_head(self):
        status, headers = self.head
        names = [n.lower() for n, _ in headers]
        assert len(set(names)) == len(names), names
        assert "date" in names or status == 503, names
        if status == 204:
            assert "content-length" not in names
        else:
            assert ("content-length" in names) + ("transfer-encoding" in names) < 2, names
        if status == 202:
            assert self.header("Content-Length") == "0" and "content-type" not in names

    @property
    def status(self):
        return self.read_head().head[0]

    def header(self, name):
        self.read_head()
        return next((v for n, v in self.head[1] if n.lower() == name.lower()), None)

    @property
    def is_stream(self):
        return self.header("Content-Type") == "text/event-stream"

    def has_started(self, for_ms=0):
        """Whether the head is there, or comes within a window."""
        if self.head is None and not self.wire.rest:
            return bool(select.select([self.wire.sock], [], [], for_ms / 1000)[0])
        return True

    def body(self, timeout=10.0):
        """All of it; also proves that the coding ends where it must."""
        end = time.monotonic() + timeout * PATIENCE
        self.read_head(timeout)
        length = self.header("Content-Length")
        if self.status == 204 or self.method == "HEAD":
            return b""
        if length is not None:
            return self.wire.exactly(int(length), end)
        return b"".join(iter(lambda: self.piece(end), None))

    def next_event(self, timeout=10.0):
        """The next event, or None at the stream's end. A comment alone is one too."""
        assert self.is_stream, (self.head, self.wire.rest[:500])
        assert self.header("X-Accel-Buffering") == "no"
        assert self.header("Cache-Control") == "no-cache, no-store"
        end = time.monotonic() + timeout * PATIENCE
        if self.over:
            return None
        while b"\n\n" not in self.text:
            piece = self.piece(end)
            if piece is None:
                assert not self.text, "the stream ends within an event: %r" % self.text
                self.over = True
                return None
            self.text += piece
        block, _, self.text = self.text.partition(b"\n\n")
        event = Event(self.wire.at)
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            value = value[1:] if value[:1] == b" " else value
            if name == b"":
                event.comments.append(value)
            elif name == b"data":
                assert event.data is None, block
                event.data = value
            elif name == b"event":
                assert event.type is None and event.data is None, block
                event.type = value.decode()
            elif name == b"id":
                # Before the data, so that who has the data has the id.
                assert event.id is None and event.data is None and value, block
                event.id = self.last_id = value.decode("ascii")
            else:
                assert name == b"retry" and value.isdigit(), block
                event.fields.append((name, value))
        self.events.append(event)
        return event

    def next_beat(self, timeout=10.0):
        """What comes when there is nothing to say; the event at the front is passed over."""
        event = self.next_event(timeout)
        if event.data == b"" and event is self.events[0]:
            event = self.next_event(timeout)
        assert event.data is None and event.comments == [b""], vars(event)
        return event

    def piece(self, end):
        """One chunk, or None at the end; nothing is lost by a time-out."""
        if self.header("Transfer-Encoding") is None:
            if self.wire.rest or self.wire.more(end - time.monotonic()):
                data, self.wire.rest = self.wire.rest, b""
                return data
            return None
        assert self.header("Transfer-Encoding") == "chunked"
        while b"\r\n" not in self.wire.rest:
            if not self.wire.more(end - time.monotonic()):
                raise Gone("the stream was cut")
        size, _, rest = self.wire.rest.partition(b"\r\n")
        assert re.fullmatch(rb"[0-9a-f]+", size), size
        n = int(size, 16)
        while len(rest) < n + 2:
            if not self.wire.more(end - time.monotonic()):
                raise Gone("the stream was cut within a chunk")
            rest = self.wire.rest.partition(b"\r\n")[2]
        assert rest[n:n + 2] == b"\r\n"
        self.wire.rest = rest[n + 2:]
        return rest[:n] if n else None

    def next(self, timeout=10.0):
        """The next message of a stream, or None at its end."""
        end = time.monotonic() + timeout * PATIENCE
        while True:
            event = self.next_event((end - time.monotonic()) / PATIENCE)
            if event is None:
                return None
            if event.data is None:
                self.comments += [event.at] * len(event.comments)
                continue
            if not event.data:
                assert event.id is not None  # what a stream begins with
                continue
            return self.take(event.data, event.at)

    def take(self, raw, at):
        msg = strict_json(raw)
        for one in msg if isinstance(msg, list) else [msg]:
            assert one["jsonrpc"] == "2.0"
        message = Message(raw, msg, at, [])
        if self.note:
            self.note(message)
        if isinstance(msg, dict) and "method" in msg:
            self.notices.append(message)
        return message

    def message(self, timeout=10.0):
        """The JSON-RPC answer in whichever form it comes; notices are kept aside."""
        if self.rpc is not None:
            return self.rpc
        if not self.read_head(timeout).is_stream:
            assert self.header("Content-Type") == "application/json", (self.head, self.body())
            self.rpc = self.take(self.body(timeout), self.wire.at)
            return self.rpc
        while True:
            m = self.next(timeout)
            if m is None:
                raise Gone("the stream ended without an answer: %r" % self.notices)
            if isinstance(m.msg, list) or "method" not in m.msg:
                self.rpc = m
                assert self.next(timeout) is None, "more after the answer"
                return m

    @property
    def result(self):
        return self.message().result

    @property
    def code(self):
        return self.message().code

    def fault(self):
        """(status, code) of a refusal."""
        return self.status, self.code

    def end(self, timeout=10.0):
        """The stream ends with nothing more but comments."""
        m = self.next(timeout)
        assert m is None, m

    def quiet(self, for_ms=250):
        """No message comes within a window, nor perhaps a head."""
        end = time.monotonic() + for_ms / 1000
        if not self.has_started(for_ms):
            return
        while time.monotonic() < end:
            try:
                event = self.next_event((end - time.monotonic()) / PATIENCE)
            except AssertionError as e:
                assert str(e).startswith("nothing within"), e
                return
            assert event is not None and not event.data, event and event.data


def mirror(value):
    """A value as a header has it: plain where that is safe, else its Base64 form."""
    text = value if isinstance(value, str) else json.dumps(value)
    if re.fullmatch(r"[!-~]([ -~]*[!-~])?", text) and not re.fullmatch(
            r"=\?base64\?.*\?=", text):
        return text
    return "=?base64?%s?=" % base64.b64encode(text.encode()).decode()


def request(method, target, headers, body=None, version="HTTP/1.1"):
    """The bytes of a request; a header that is None is left out, a list is repeated."""
    lines = ["%s %s %s" % (method, target, version)]
    for name, value in headers.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                lines.append("%s: %s" % (name, one))
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8") + (body or b"")


class Client:
    """An MCP client over HTTP, each request on a connection of its own unless told."""

    def __init__(self, served, address=None):
        self.served, self.fixed, self.wires, self.path = served, address, [], "/mcp"
        self.era, self.revision, self.session, self.next_id = "legacy", LATEST, None, 0

    @property
    def address(self):
        return self.fixed or self.served.address

    def wire(self):
        self.wires.append(Wire(self.address))
        return self.wires[-1]

    def close(self):
        for w in self.wires:
            w.close()

    @property
    def host(self):
        return "localhost" if self.address.startswith("unix:") else self.address

    def http(self, method, headers=None, body=None, target=None, wire=None,
             version="HTTP/1.1", note=None):
        """Sends one request as it is said; nothing is added but Host and the length."""
        every = {"Host": self.host}
        if body is not None:
            every["Content-Length"] = str(len(body))
        every.update(headers or {})
        wire = wire or self.wire()
        wire.send(request(method, target or self.path, every, body, version))
        return Answer(wire, method, note)

    def base(self, **more):
        every = {"Accept": ACCEPT}
        if self.session and self.era != "modern":
            every[SESSION] = self.session
            if self.revision >= "2025-06-18":
                every[VERSION] = self.revision
        return {**every, **{k.replace("_", "-"): v for k, v in more.items()}}

    def standard(self, msg):
        """The headers that a conforming client derives from a message."""
        every = self.base(Content_Type="application/json")
        if self.era == "modern" and isinstance(msg, dict) and "method" in msg:
            params = msg.get("params") or {}
            every[VERSION] = (params.get("_meta") or {}).get(META + "protocolVersion", MODERN)
            every["Mcp-Method"] = msg["method"]
            name = params.get("uri" if msg["method"] == "resources/read" else "name")
            if msg["method"] in ("tools/call", "prompts/get", "resources/read") \
                    and isinstance(name, str):
                every["Mcp-Name"] = mirror(name)
        return every

    def post(self, msg, headers=None, body=None, **kw):
        """A message with the headers that belong to it; headers change some of them."""
        if body is None:
            body = json.dumps(msg).encode()
        methods = [one.get("method") for one in (msg if isinstance(msg, list) else [msg])
                   if isinstance(one, dict) and "id" in one] if msg is not None else []

        def note(m):
            self.served.note(self.revision, methods, m)

        return self.http("POST", {**self.standard(msg), **(headers or {})}, body, note=note,
                         **kw)

    def meta(self, **more):
        return {META + "protocolVersion": MODERN,
                META + "clientInfo": {"name": "harness", "version": "1"},
                META + "clientCapabilities": {}, **more}

    def build(self, method, params=None, id=None, meta=None):
        self.next_id += 1
        params = dict(params or {})
        if self.era == "modern":
            params["_meta"] = {**self.meta(), **params.get("_meta", {}), **(meta or {})}
        elif meta:
            params["_meta"] = meta
        msg = {"jsonrpc": "2.0", "id": self.next_id if id is None else id, "method": method}
        if params or method not in ("ping", "tools/list"):
            msg["params"] = params
        return msg

    def send(self, method, params=None, id=None, meta=None, **kw):
        return self.post(self.build(method, params, id, meta), **kw)

    def ask(self, method, params=None, **kw):
        return self.send(method, params, **kw).message()

    def start_call(self, name, args=None, **kw):
        params = {"name": name}
        if args is not None:
            params["arguments"] = args
        return self.send("tools/call", params, **kw)

    def call(self, name, args=None, **kw):
        return self.start_call(name, args, **kw).message()

    def tools(self):
        return [t["name"] for t in self.ask("tools/list").result["tools"]]

    def notify(self, method, params=None, **kw):
        msg = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            msg["params"] = params
        answer = self.post(msg, **kw)
        assert answer.status == 202 and answer.body() == b"", answer.head
        return answer

    def cancel(self, key, reason="enough"):
        return self.notify("notifications/cancelled", {"requestId": key, "reason": reason})

    def legacy(self, revision=LATEST, capabilities=None, initialized=True, name="harness"):
        """The handshake of a legacy client; returns the answer to initialize."""
        self.era, self.revision, self.session = "legacy", revision, None
        answer = self.send("initialize", {
            "protocolVersion": revision, "capabilities": capabilities or {},
            "clientInfo": {"name": name, "version": "1"}})
        assert answer.message().result["protocolVersion"] == revision
        self.session = answer.header(SESSION)
        assert re.fullmatch(r"[!-~]{1,512}", self.session), self.session
        if initialized:
            self.notify("notifications/initialized")
        return answer

    def get(self, **headers):
        """The stream of notices of a session."""
        def note(m):
            self.served.note(self.revision, [], m)

        return self.http("GET", self.base(**headers), note=note)

    def delete(self, **headers):
        return self.http("DELETE", self.base(**headers))
