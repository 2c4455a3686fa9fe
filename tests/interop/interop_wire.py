# SPDX-License-Identifier: MIT
"""A client on the raw wire: keeps every line as it came, and cuts members out
of it without ever writing JSON anew."""

import json
import subprocess
import threading
import time

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = json.dumps({
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "interop-wire", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
})
REPLY_S = 15

_SCANNER = json.JSONDecoder()
_SPACE = " \t\r\n"


def _skip(text, at):
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def spans(text):
    """[(key, start, end)] of the members of the object TEXT, values only."""
    found = []
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        key, at = _SCANNER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, at = _SCANNER.raw_decode(text, start)
        found.append((key, start, at))
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def members(text):
    """{key: raw text of its value}, in order; nothing for a batch."""
    if text.startswith("["):
        return {}
    return {key: text[start:end] for key, start, end in spans(text)}


def elements(text):
    """Raw texts of the elements of the array TEXT."""
    found = []
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "]":
        _, end = _SCANNER.raw_decode(text, at)
        found.append(text[at:end])
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def renamed(definition, name):
    """The definition with only the value of its name replaced."""
    for key, start, end in spans(definition):
        if key == "name":
            return definition[:start] + json.dumps(name) + definition[end:]
    raise AssertionError(f"no name in {definition}")


class Wire:
    """One stdio peer, spoken to line by line. MODERN: requests carry _meta."""

    def __init__(self, argv, env, log, modern=False):
        self.modern = modern
        self.lines = []
        self._next = 1000
        self._more = threading.Condition()
        self._eof = False
        self._log = open(log, "ab")
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self._log)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with self._more:
                self.lines.append(line.rstrip(b"\n").decode())
                self._more.notify_all()
        with self._more:
            self._eof = True
            self._more.notify_all()

    def wait(self, match, what, seconds=REPLY_S, start=0):
        """Index of the first line from START on that MATCH(members) accepts."""
        end = time.monotonic() + seconds
        with self._more:
            while True:
                for at in range(start, len(self.lines)):
                    if match(members(self.lines[at])):
                        return at
                start = len(self.lines)
                left = end - time.monotonic()
                if left <= 0 or self._eof:
                    raise AssertionError(
                        f"{what} did not come; end of output: {self._eof}")
                self._more.wait(left)

    def write(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def params(self, body="", meta=""):
        """The text of params: members BODY, and _meta with members META."""
        if self.modern:
            meta = META[:-1] + ("," + meta if meta else "") + "}"
        elif meta:
            meta = "{" + meta + "}"
        if meta:
            body += ("," if body else "") + '"_meta":' + meta
        return "{" + body + "}"

    def send(self, method, body="", meta="", ident=None):
        if ident is None:
            self._next += 1
            ident = str(self._next)
        self.write('{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}'
                   % (ident, method, self.params(body, meta)))
        return ident

    def notify(self, method, body=""):
        self.write('{"jsonrpc":"2.0","method":"%s","params":%s}'
                   % (method, self.params(body)))

    def reply_at(self, ident, seconds=REPLY_S):
        return self.wait(lambda m: "method" not in m and m.get("id") == ident,
                         f"reply {ident}", seconds)

    def reply(self, ident):
        """Members of the reply to IDENT, raw."""
        return members(self.lines[self.reply_at(ident)])

    def request(self, method, body="", meta="", ident=None):
        return self.reply(self.send(method, body, meta, ident))

    def result(self, method, body="", meta=""):
        reply = self.request(method, body, meta)
        assert "result" in reply, reply
        return reply["result"]

    def initialize(self, revision=LEGACY):
        result = self.result("initialize", '"protocolVersion":"%s","capabilities":{},'
                             '"clientInfo":{"name":"interop-wire","version":"1"}'
                             % revision)
        self.notify("notifications/initialized")
        return json.loads(result)

    def list(self, method, member):
        """Raw definitions of all pages."""
        items, cursor = [], None
        while True:
            page = members(self.result(method, '"cursor":' + cursor if cursor else ""))
            items += elements(page[member])
            cursor = page.get("nextCursor")
            if cursor is None:
                return items

    def notices(self, method, start=0, end=None):
        """Raw params of the notifications METHOD among lines START to END."""
        wanted = json.dumps(method)
        return [m["params"] for m in map(members, self.lines[start:end])
                if m.get("method") == wanted]

    def close(self, seconds=10):
        """Ends the input; exit status and how long the end took."""
        begin = time.monotonic()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = None
        self._log.close()
        return status, time.monotonic() - begin
