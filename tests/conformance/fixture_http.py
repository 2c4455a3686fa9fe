# SPDX-License-Identifier: MIT
"""Streamable HTTP as both fixtures need it: strict about what comes, chunked streams."""

import json
import select
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fixture_server import RECORD, Exchange

JSON, SSE = "application/json", "text/event-stream"


class Refused(Exception):
    """With an HTTP status, and a JSON-RPC error or None."""

    def __init__(self, status, error=None, rid=None):
        super().__init__(status)
        self.status, self.error, self.rid = status, error, rid


class Stream:
    """The answer to one HTTP request: one JSON body, or events from the first message
    that is not the answer."""

    def __init__(self, handler):
        self.handler, self.lock = handler, threading.Lock()
        self.began, self.ended = False, False

    def begin(self, headers=()):
        self.began = True
        self.handler.head(200, [("Content-Type", SSE), ("Cache-Control", "no-cache"),
                                ("Transfer-Encoding", "chunked"), *headers])

    def chunk(self, data):
        self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.handler.wfile.flush()

    def event(self, msg):
        self.chunk(b"event: message\ndata: " + json.dumps(msg).encode() + b"\n\n")

    def send(self, msg):
        with self.lock:
            if self.ended:
                return
            if not self.began and "method" not in msg:
                self.ended = True
                self.handler.answer(msg)
                return
            if not self.began:
                self.begin()
            self.event(msg)
            if "method" not in msg:
                self.end()

    def end(self):
        """With nothing, if nothing was sent."""
        if not self.ended:
            if not self.began:
                self.begin()
            self.ended = True
            self.chunk(b"")


class HttpExchange(Exchange):
    def is_over(self):
        """A client that has hung up waits for nothing any more."""
        return super().is_over() or (self.out.handler.CLOSE_CANCELS and
                                     self.out.handler.is_gone())


class Queue:
    """The way for what belongs to no request: whoever has the GET stream gets it."""

    def __init__(self):
        self.wake, self.msgs, self.closed = threading.Condition(), [], False

    def send(self, msg):
        with self.wake:
            self.msgs.append(msg)
            self.wake.notify_all()

    def take(self, timeout):
        with self.wake:
            self.wake.wait_for(lambda: self.msgs or self.closed, timeout)
            msgs, self.msgs = self.msgs, []
            return msgs

    def close(self):
        with self.wake:
            self.closed = True
            self.wake.notify_all()


class Handler(BaseHTTPRequestHandler):
    """An era adds post, and may add get and delete."""

    protocol_version = "HTTP/1.1"
    CLOSE_CANCELS = False

    def log_message(self, *_):
        pass

    def head(self, status, headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def reply(self, status, body=b"", headers=()):
        self.head(status, [*headers, ("Content-Length", str(len(body)))])
        self.wfile.write(body)

    def reply_json(self, status, msg, headers=()):
        self.reply(status, json.dumps(msg).encode(), [("Content-Type", JSON), *headers])

    def answer(self, msg):
        """The one message of an answer that is no stream."""
        self.reply_json(self.status_of(msg), msg)

    def status_of(self, msg):
        return 200

    def is_gone(self):
        return bool(select.select([self.connection], [], [], 0)[0]) and \
            not self.connection.recv(1, socket.MSG_PEEK)

    def accepts(self, *kinds):
        have = [a.split(";")[0].strip() for a in self.headers.get("Accept", "").split(",")]
        if not all(k in have or "*/*" in have for k in kinds):
            raise Refused(406)

    def message(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.accepts(JSON, SSE)
        if self.headers.get("Content-Type", "").split(";")[0] != JSON:
            raise Refused(415)
        try:
            msg = json.loads(raw)
        except ValueError as e:
            raise Refused(400, {"code": -32700, "message": str(e)}) from e
        RECORD.note("in", msg, headers={k.lower(): v for k, v in self.headers.items()})
        return msg

    def serve(self, path):
        try:
            if self.path != "/mcp":
                raise Refused(404)
            if path is None:
                raise Refused(405)
            path()
        except Refused as e:
            if e.error:
                self.reply_json(e.status, {"jsonrpc": "2.0", "id": e.rid, "error": e.error})
            else:
                self.reply(e.status)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_POST(self):
        self.serve(self.post)

    def do_GET(self):
        self.serve(getattr(self, "get", None))

    def do_DELETE(self):
        self.serve(getattr(self, "delete", None))


class HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        """Whoever went away was no fault."""


def serve_http(handler, port):
    server = HttpServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    print("http://127.0.0.1:%d/mcp" % server.server_address[1], flush=True)
    sys.stdin.buffer.read()
