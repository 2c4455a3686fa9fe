# SPDX-License-Identifier: MIT
"""HTTP stacks that people have, each with its own habits, behind one open().

open(method, headers, body) returns an exchange as soon as the head of its answer is
there: status, headers (names in small letters), lines(), read() and close(), which
gives the answer up."""

import base64
import contextlib
import http.client
import json
import queue
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import interop_env as env

ANSWER_S = 30


def _head(lines):
    """Status and headers of raw head lines."""
    status = int(lines[0].split()[1])
    pairs = (line.split(b":", 1) for line in lines[1:])
    return status, {k.decode().lower(): v.strip().decode() for k, v in pairs}


class _FileExchange:
    """An exchange whose answer is a file that ends with it."""

    def __init__(self, file, status, headers):
        self.file = file
        self.status = status
        self.headers = headers

    def lines(self):
        for line in iter(self.file.readline, b""):
            yield line.rstrip(b"\r\n")

    def read(self):
        return self.file.read()

    def close(self):
        self.file.close()


class _CurlExchange(_FileExchange):
    def __init__(self, process):
        self.process = process
        lines = []
        # a 100 (Continue) comes before the head of the answer
        while not lines or lines[0].split()[1] == b"100":
            lines = list(iter(lambda: process.stdout.readline().rstrip(b"\r\n"), b""))
            if not lines:
                raise AssertionError(f"curl: {process.stderr.read().decode()}")
        super().__init__(process.stdout, *_head(lines))

    def read(self):
        try:
            return super().read()
        finally:
            self.close()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


class Curl:
    """One curl for each request."""

    def __init__(self, url, *options):
        self.url = url
        self.options = options

    def open(self, method, headers, body):
        # -i would hold the head back until the first byte of the body
        argv = ["curl", "-sS", "-D", "-", "-N", "--max-time", str(ANSWER_S),
                *self.options]
        for name, value in headers.items():
            argv += ["-H", f"{name}: {value}"]
        argv += ["-X", method] if body is None else ["--data-binary", "@-"]
        process = subprocess.Popen([*argv, self.url], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(body or b"")
            process.stdin.close()
        return _CurlExchange(process)

    def close(self):
        pass


class _KeptExchange(_FileExchange):
    """Gives its connection back when its answer has been read to the end."""

    def __init__(self, stack, connection, response):
        super().__init__(response, response.status,
                         {k.lower(): v for k, v in response.getheaders()})
        self.stack = stack
        self.connection = connection

    def _done(self):
        if not self.file.will_close:
            self.stack.idle.append(self.connection)

    def lines(self):
        yield from super().lines()
        self._done()

    def read(self):
        body = super().read()
        self._done()
        return body

    def close(self):
        self.connection.close()
        super().close()


class HttpClient:
    """Python's http.client, keeping its connections: head and body in two writes."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.address = (parts.hostname, parts.port)
        self.path = parts.path
        self.idle = []
        self.opened = 0

    def _connection(self):
        if self.idle:
            return self.idle.pop()
        self.opened += 1
        return http.client.HTTPConnection(*self.address, timeout=ANSWER_S)

    def open(self, method, headers, body):
        connection = self._connection()
        connection.request(method, self.path, body=body, headers=headers)
        return _KeptExchange(self, connection, connection.getresponse())

    def close(self):
        for connection in self.idle:
            connection.close()


class Urllib:
    """Python's urllib.request: Connection: close, and names in its own case."""

    def __init__(self, url):
        self.url = url

    def open(self, method, headers, body):
        request = urllib.request.Request(self.url, data=body, headers=headers,
                                         method=method)
        try:
            response = urllib.request.urlopen(request, timeout=ANSWER_S)
        except urllib.error.HTTPError as refusal:
            response = refusal
        return _FileExchange(response, response.status,
                             {k.lower(): v for k, v in response.headers.items()})

    def close(self):
        pass


class _NodeExchange:
    def __init__(self, node, ident):
        self.node = node
        self.ident = ident
        self.pieces = queue.Queue()

    def wait_head(self):
        head = self._get()
        assert head["event"] == "head", head
        self.status = head["status"]
        self.headers = head["headers"]

    def _get(self):
        return self.pieces.get(timeout=ANSWER_S)

    def _chunks(self):
        while True:
            piece = self._get()
            if piece["event"] != "data":
                assert piece["event"] == "end", piece
                return
            yield base64.b64decode(piece["data"])

    def lines(self):
        rest = b""
        for chunk in self._chunks():
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole

    def read(self):
        return b"".join(self._chunks())

    def close(self):
        self.node.tell({"op": "close", "exchange": self.ident})


class Node:
    """A node process that passes requests on to its KIND of stack: fetch, undici
    (a pool), pipeline (one connection, many requests at once), stream (fetch with a
    body of unknown length), socket (a unix socket)."""

    def __init__(self, url, kind, socket=""):
        self.process = subprocess.Popen(
            [env.NODE, str(env.HERE / "http_bridge.mjs"), url, kind, str(socket)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.exchanges = {}
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            piece = json.loads(line)
            self.exchanges[piece["exchange"]].pieces.put(piece)

    def tell(self, order):
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def start(self, method, headers, body):
        exchange = _NodeExchange(self, len(self.exchanges))
        self.exchanges[exchange.ident] = exchange
        self.tell({"op": "open", "exchange": exchange.ident, "method": method,
                   "headers": headers, "body": body and body.decode()})
        return exchange

    def open(self, method, headers, body):
        exchange = self.start(method, headers, body)
        exchange.wait_head()
        return exchange

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


STACKS = {
    "curl": Curl,
    "http.client": HttpClient,
    "urllib": Urllib,
    "fetch": lambda url: Node(url, "fetch"),
    "undici": lambda url: Node(url, "undici"),
}
