# SPDX-License-Identifier: MIT
"""A GraphQL endpoint that does as it is told: answers by operation, of any status and form."""
import contextlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from upstream import wait_for

JSON = "application/json"


def scalar(name):
    return {"kind": "SCALAR", "name": name, "ofType": None}


def required(of):
    return {"kind": "NON_NULL", "name": None, "ofType": of}


def listed(of):
    return {"kind": "LIST", "name": None, "ofType": of}


def named(kind, name):
    return {"kind": kind, "name": name, "ofType": None}


def argument(name, of, default=None):
    return {"name": name, "description": None, "type": of, "defaultValue": default,
            "isDeprecated": False, "deprecationReason": None}


def field(name, of, *args, description=None):
    return {"name": name, "description": description, "args": list(args), "type": of,
            "isDeprecated": False, "deprecationReason": None}


def a_type(kind, name, **more):
    return {"kind": kind, "name": name, "description": None, "fields": None,
            "inputFields": None, "interfaces": [], "enumValues": None, "possibleTypes": None,
            **more}


USER = named("OBJECT", "User")
TYPES = [
    a_type("OBJECT", "Query", fields=[
        field("user", USER, argument("id", required(scalar("ID"))), description="One user."),
        field("users", listed(USER), argument("first", scalar("Int"), "10")),
        field("big", scalar("BigInt"), argument("n", scalar("BigInt")))]),
    a_type("OBJECT", "Mutation", fields=[
        field("rename", USER, argument("id", required(scalar("ID"))),
              argument("name", scalar("String")))]),
    a_type("OBJECT", "User", fields=[
        field("id", required(scalar("ID"))), field("name", scalar("String"))]),
    *(a_type("SCALAR", n) for n in ("ID", "String", "Int", "Boolean", "BigInt")),
]
SCHEMA = {"__schema": {"queryType": {"name": "Query"}, "mutationType": {"name": "Mutation"},
                       "subscriptionType": None, "types": TYPES, "directives": []}}


class Asked:
    """One request as it came."""

    def __init__(self, path, headers, raw):
        self.path, self.headers, self.raw = path, headers, raw
        self.msg = json.loads(raw)

    @property
    def name(self):
        return self.msg.get("operationName")

    @property
    def is_introspection(self):
        return "__schema" in self.msg["query"]

    def header(self, name):
        return self.headers.get(name)


class GraphqlServer:
    """schema: what introspection answers, or a function of its query that gives status and
    body. answer(handler, asked): answers an operation; reply() is for it."""

    def __init__(self, port=0):
        self.schema = {"data": SCHEMA}
        self.answer = lambda h, asked: reply(h, 200, {"data": {"ok": True}})
        self.requests, self.lock, self.port = [], threading.Lock(), port
        self.hang_ups = 0  # who left before the answer
        self.gate = threading.Event()  # what answers wait for
        self.server, self.connections = None, []
        self.open()

    def open(self):
        me = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # head and body go out apart

            def log_message(self, *args):
                pass

            def setup(self):
                super().setup()
                me.connections.append(self.connection)

            def do_POST(self):
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                asked = Asked(self.path, self.headers, raw)
                with me.lock:
                    me.requests.append(asked)
                if asked.is_introspection:
                    me.introspect(self, asked)
                else:
                    me.answer(self, asked)

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 512

            def handle_error(self, request, client_address):
                with me.lock:
                    me.hang_ups += 1

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.gate.set()
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            for c in self.connections:
                with contextlib.suppress(OSError):
                    c.shutdown(socket.SHUT_RDWR)
        self.server, self.connections = None, []

    @property
    def url(self):
        return "http://127.0.0.1:%d/graphql" % self.port

    def introspect(self, handler, asked):
        status, body = 200, self.schema
        if callable(self.schema):
            status, body = self.schema(asked.msg["query"])
        reply(handler, status, body)

    def seen(self, name=None):
        """Operations that came, in order; introspection is none."""
        with self.lock:
            return [r for r in self.requests if not r.is_introspection
                    and (name is None or r.name == name)]

    def introspections(self):
        with self.lock:
            return [r for r in self.requests if r.is_introspection]

    def wait_seen(self, n=1, timeout=5):
        wait_for(lambda: len(self.seen()) >= n, timeout, "%d operations came" % n)
        return self.seen()


def reply(handler, status, body=b"", kind=JSON, **headers):
    """body: bytes as they are, or what JSON is made of."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    handler.send_response(status)
    if kind:
        handler.send_header("Content-Type", kind)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    if status != 204:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if status != 204:
        handler.wfile.write(body)
