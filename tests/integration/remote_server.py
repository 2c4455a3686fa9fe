# SPDX-License-Identifier: MIT
"""An MCP server over HTTP that a test runs beside itself, of any era and transport."""
import json
import select
import socket
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from upstream import wait_for

LATEST, MODERN, META = "2025-11-25", "2026-07-28", "io.modelcontextprotocol/"
ERAS = ("legacy", "modern", "sse")


class Request:
    """One request as it came."""

    def __init__(self, method, path, headers, raw):
        self.http, self.path, self.headers, self.raw = method, path, headers, raw
        self.at = time.monotonic()
        try:
            self.msg = json.loads(raw) if raw else None
        except ValueError:
            self.msg = None

    @property
    def rpc(self):
        return (self.msg or {}).get("method")

    @property
    def params(self):
        return (self.msg or {}).get("params") or {}

    def header(self, name):
        return self.headers.get(name)

    def __repr__(self):
        return "<%s %s %s>" % (self.http, self.path, self.raw[:200])


class RemoteServer:
    """era: one of ERAS. Members can be changed while it runs."""

    def __init__(self, era="legacy", streams=False, revision=LATEST, session=True, tools=(),
                 token=None, port=0):
        self.era, self.streams, self.revision = era, streams, revision
        self.with_session, self.tools, self.token = session, list(tools), token
        self.requests, self.sessions, self.queues = [], set(), []
        self.lock, self.gate = threading.Condition(), threading.Event()
        self.hang_ups = 0  # clients that left a call before its answer
        self.fail_next = []  # [(rpc method, status, body)]: answers in place of ours
        self.odd = None  # odd(handler, request): true if it has answered in our place
        self.port = port
        self.open()

    # -- its life ------------------------------------------------------------------

    def open(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            remote = server

            def log_message(self, *args):
                pass

            def do_POST(self):
                serve(self, "POST")

            def do_GET(self):
                serve(self, "GET")

            def do_DELETE(self):
                serve(self, "DELETE")

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            conns = set()

            def get_request(self):
                got = super().get_request()
                self.conns.add(got[0])
                return got

        self.closing = False
        self.httpd = Server(("127.0.0.1", self.port), Handler)
        self.httpd.conns = set()
        self.port = self.httpd.server_address[1]
        self.thread = threading.Thread(target=self.httpd.serve_forever, args=(0.02,),
                                       daemon=True)
        self.thread.start()

    def close(self):
        """Nobody listens any more, and whoever was connected is not."""
        self.closing = True
        self.gate.set()
        self.httpd.shutdown()
        self.httpd.server_close()
        for c in list(self.httpd.conns):
            try:
                c.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        with self.lock:
            self.lock.notify_all()
            # Streams that outlived this would take the answers of the next life.
            self.lock.wait_for(lambda: not self.queues, 5)
        self.thread.join(5)

    def reopen(self):
        self.gate.clear()
        self.sessions.clear()
        self.open()

    # -- what a test does with it ----------------------------------------------------

    @property
    def url(self):
        return "http://127.0.0.1:%d/%s" % (self.port, "sse" if self.era == "sse" else "mcp")

    def seen(self, rpc=None, http=None):
        with self.lock:
            return [r for r in self.requests if (rpc is None or r.rpc == rpc)
                    and (http is None or r.http == http)]

    def wait_seen(self, rpc=None, http=None, n=1):
        wait_for(lambda: len(self.seen(rpc, http)) >= n, 5, "%s is seen" % (rpc or http))
        return self.seen(rpc, http)[-1]

    def tell(self, msg):
        """A notification on every stream that is nobody's."""
        with self.lock:
            for q in self.queues:
                q.append(msg)
            self.lock.notify_all()

    def forget_sessions(self):
        with self.lock:
            self.sessions.clear()

    def definitions(self):
        names = self.tools or ["echo", "slow", "fail", "cut"]
        return [t if isinstance(t, dict) else {"name": t, "inputSchema": {"type": "object"}}
                for t in names]


# -- one request --------------------------------------------------------------------------


def serve(h, http):
    s = h.remote
    raw = h.rfile.read(int(h.headers.get("Content-Length") or 0))
    r = Request(http, h.path, h.headers, raw)
    with s.lock:
        s.requests.append(r)
        s.lock.notify_all()
    try:
        if s.token and h.headers.get("Authorization") != "Bearer " + s.token:
            reply(h, 401, "text/plain", b"who are you", [(
                "WWW-Authenticate", 'Bearer realm="tools", scope="read", '
                'resource_metadata="https://tools.example/.well-known/x"')])
        elif refuse_as_told(h, r) or (s.odd and s.odd(h, r)):
            pass
        elif s.era == "sse":
            serve_sse(h, r)
        elif http == "POST":
            (serve_modern if s.era == "modern" else serve_legacy)(h, r)
        elif http == "GET" and s.era == "legacy" and s.streams:
            stream_of_nobody(h, r)
        elif http == "DELETE" and s.era == "legacy" and s.with_session:
            with s.lock:
                s.sessions.discard(r.header("Mcp-Session-Id"))
            reply(h, 204)
        else:
            reply(h, 405, "text/plain", b"Method Not Allowed")
    except (BrokenPipeError, ConnectionResetError):
        h.close_connection = True


def refuse_as_told(h, r):
    with h.remote.lock:
        for one in h.remote.fail_next:
            if one[0] == r.rpc:
                h.remote.fail_next.remove(one)
                break
        else:
            return False
    body = one[2]
    if isinstance(body, dict):
        body = json.dumps({"jsonrpc": "2.0", "id": r.msg["id"], "error": body}).encode()
        reply(h, one[1], "application/json", body)
    else:
        reply(h, one[1], "text/plain", body)
    return True


def reply(h, status, kind=None, body=b"", headers=()):
    h.send_response(status)
    for name, value in headers:
        h.send_header(name, value)
    if kind:
        h.send_header("Content-Type", kind)
    h.send_header("Content-Length", str(len(body)))
    h.end_headers()
    h.wfile.write(body)


def begin_stream(h, headers=()):
    h.send_response(200)
    h.send_header("Content-Type", "text/event-stream")
    h.send_header("Cache-Control", "no-store")
    for name, value in headers:
        h.send_header(name, value)
    h.send_header("Connection", "close")
    h.end_headers()
    h.close_connection = True


def event(h, msg, kind=None):
    data = msg if isinstance(msg, str) else json.dumps(msg)
    h.wfile.write((("event: %s\n" % kind if kind else "") + "data: %s\n\n" % data).encode())
    h.wfile.flush()


def result(r, value):
    return {"jsonrpc": "2.0", "id": r.msg["id"], "result": value}


def error(r, code, text, data=None):
    e = {"code": code, "message": text}
    if data is not None:
        e["data"] = data
    return {"jsonrpc": "2.0", "id": r.msg["id"], "error": e}


def answer(h, r, msg, notices=(), headers=()):
    """JSON, or an event stream with notices in front."""
    if not h.remote.streams and not notices:
        reply(h, 200, "application/json", json.dumps(msg).encode(), headers)
        return
    begin_stream(h, headers)
    for n in notices:
        event(h, n)
    event(h, msg)


# -- what all eras have in common ----------------------------------------------------------


def do_call(h, r, say, put=answer):
    """say(notification) sends one before the answer."""
    s, name, args = h.remote, r.params["name"], r.params.get("arguments") or {}
    if name == "slow":
        token = r.params.get("_meta", {}).get("progressToken")
        if token is not None:
            say({"jsonrpc": "2.0", "method": "notifications/progress",
                 "params": {"progressToken": token, "progress": 1}})
        say({"jsonrpc": "2.0", "method": "notifications/message",
             "params": {"level": "error", "data": "from slow %s" % args.get("n")}})
        wait_or_hang_up(h, s)
    elif name == "ask":
        args = asked(h, r, say, args)
    elif name == "fail":
        reply(h, 500, "text/plain", b"it broke")
        return None
    elif name == "cut":
        h.send_response(200)
        h.send_header("Content-Type", "application/json")
        h.send_header("Content-Length", "1000")
        h.end_headers()
        h.wfile.write(b'{"jsonrpc"')
        h.close_connection = True
        return None
    return {"content": [{"type": "text", "text": json.dumps(args)}]}


def asked(h, r, say, args):
    """What its client answers to a question on this call's stream."""
    s, key = h.remote, "q-%s" % r.msg["id"]
    say({"jsonrpc": "2.0", "id": key, "method": "elicitation/create", "params": {
        "message": json.dumps(args),
        "requestedSchema": {"type": "object", "properties": {}}}})

    def answers():
        return [x.msg for x in s.seen(http="POST") if x.rpc is None and x.msg.get("id") == key]

    wait_for(lambda: s.closing or answers(), 10, "an answer")
    return answers()[0]


def wait_or_hang_up(h, s, seconds=20):
    """Until the test opens the gate, or whoever asked is gone."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not s.gate.wait(0.02):
        if select.select([h.connection], [], [], 0)[0] and \
                not h.connection.recv(1, socket.MSG_PEEK):
            s.hang_ups += 1
            raise ConnectionResetError


def listed(s, modern):
    more = {"resultType": "complete", "ttlMs": 60000, "cacheScope": "public"} if modern else {}
    return {"tools": s.definitions(), **more}


def with_stream(h, r, modern):
    """A call whose notices go before its answer, on its own stream."""
    began = []

    def say(msg):
        if not began:
            begin_stream(h)
            began.append(True)
        event(h, msg)

    got = do_call(h, r, say)
    if got is None:
        return
    if modern:
        got["resultType"] = "complete"
    if began:
        event(h, result(r, got))
    else:
        answer(h, r, result(r, got))


# -- 2025-03-26 to 2025-11-25 ---------------------------------------------------------------


def serve_legacy(h, r):
    s = h.remote
    session = r.header("Mcp-Session-Id")
    if r.rpc == "initialize":
        got = str(uuid.uuid4())
        with s.lock:
            s.sessions.add(got)
        answer(h, r, result(r, {"protocolVersion": s.revision,
                                "capabilities": {"tools": {"listChanged": True},
                                                 "logging": {}},
                                "serverInfo": {"name": "remote", "version": "1"}}),
               headers=[("Mcp-Session-Id", got)] if s.with_session else [])
    elif s.with_session and session is None:
        reply(h, 400, "application/json", json.dumps(
            {"jsonrpc": "2.0", "id": None, "error": {
                "code": -32000, "message": "Bad Request: No valid session ID"}}).encode())
    elif s.with_session and session not in s.sessions:
        reply(h, 404, "text/plain", b"no such session")
    elif "id" not in r.msg or r.rpc is None:
        reply(h, 202)
    elif r.rpc == "tools/list":
        answer(h, r, result(r, listed(s, False)))
    elif r.rpc == "tools/call":
        with_stream(h, r, False)
    elif r.rpc in ("ping", "logging/setLevel"):
        answer(h, r, result(r, {}))
    else:
        answer(h, r, error(r, -32601, "Method not found"))


def stream_of_nobody(h, r):
    if h.remote.with_session and r.header("Mcp-Session-Id") not in h.remote.sessions:
        reply(h, 404, "text/plain", b"no such session")
        return
    begin_stream(h)
    drain_queue(h)


def drain_queue(h, kind=None, endpoint=None):
    s, q = h.remote, []
    with s.lock:
        s.queues.append(q)
    try:
        if endpoint:  # from then on there are answers
            event(h, endpoint, "endpoint")
        while not s.closing:
            with s.lock:
                s.lock.wait_for(lambda: q or s.closing, 0.2)
                msgs, q[:] = list(q), []
            for msg in msgs:
                event(h, msg, kind)
            if not msgs:
                h.wfile.write(b":\n\n")
                h.wfile.flush()
    finally:
        with s.lock:
            s.queues.remove(q)
            s.lock.notify_all()


# -- 2026-07-28 ----------------------------------------------------------------------------


def mirror_fault(s, r):
    """What a header says otherwise than the body, None if all agree."""
    meta = r.params.get("_meta", {})
    if r.header("MCP-Protocol-Version") != meta.get(META + "protocolVersion"):
        return "MCP-Protocol-Version"
    if r.header("Mcp-Method") != r.rpc:
        return "Mcp-Method"
    if r.rpc == "tools/call" and r.header("Mcp-Name") != r.params.get("name"):
        return "Mcp-Name"
    for t in s.definitions() if r.rpc == "tools/call" else ():
        if t["name"] != r.params["name"]:
            continue
        for key, p in t["inputSchema"].get("properties", {}).items():
            have = r.params.get("arguments", {}).get(key)
            if "x-mcp-header" in p and r.header("Mcp-Param-" + p["x-mcp-header"]) != have:
                return "Mcp-Param-" + p["x-mcp-header"]
    return None


def serve_modern(h, r):
    s = h.remote
    meta = r.params.get("_meta", {})

    def fail(status, code, text, data=None):
        reply(h, status, "application/json", json.dumps(error(r, code, text, data)).encode())

    if r.rpc is None or META + "protocolVersion" not in meta:
        fail(400, -32022, "unsupported", {"supported": [MODERN], "requested": "?"})
        return
    fault = mirror_fault(s, r)
    if fault:
        fail(400, -32020, "Header mismatch: " + fault)
    elif r.rpc == "server/discover":
        answer(h, r, result(r, {
            "supportedVersions": [MODERN], "capabilities": {"tools": {"listChanged": True},
                                                            "logging": {}},
            "serverInfo": {"name": "remote", "version": "1"}, "resultType": "complete",
            "ttlMs": 1000, "cacheScope": "public"}))
    elif r.rpc == "tools/list":
        answer(h, r, result(r, listed(s, True)))
    elif r.rpc == "tools/call":
        with_stream(h, r, True)
    elif r.rpc == "subscriptions/listen":
        begin_stream(h)
        event(h, {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                  "params": {"_meta": {META + "subscriptionId": r.msg["id"]},
                             "notifications": r.params.get("notifications", {})}})
        drain_queue(h)
    else:
        fail(404, -32601, "Method not found")


# -- HTTP with SSE, 2024-11-05 ---------------------------------------------------------------


def serve_sse(h, r):
    s = h.remote
    if r.http == "GET" and r.path == "/sse":
        begin_stream(h)
        drain_queue(h, "message", "/messages?session=1")
    elif r.http == "POST" and r.path.startswith("/messages"):
        reply(h, 202, "text/plain", b"Accepted")
        if "id" in r.msg:
            s.tell(answer_sse(h, r))
    else:
        reply(h, 405, "text/plain", b"Method Not Allowed")


def answer_sse(h, r):
    if r.rpc == "initialize":
        return result(r, {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                          "serverInfo": {"name": "remote", "version": "1"}})
    if r.rpc == "tools/list":
        return result(r, listed(h.remote, False))
    if r.rpc == "tools/call":
        return result(r, do_call(h, r, h.remote.tell))
    return error(r, -32601, "Method not found")
