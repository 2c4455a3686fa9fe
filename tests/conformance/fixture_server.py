# SPDX-License-Identifier: MIT
"""What both fixtures do alike: answer requests, on stdio or over HTTP.

usage: FIXTURE [--http PORT] [--record FILE]

With --http it serves http://127.0.0.1:PORT/mcp until its input ends, and says that URL
on its output; PORT 0 is a free one. --record appends every message, one a line.
"""

import argparse
import json
import os
import sys
import threading

from fixture_call import NO_METHOD, PARAMS, RpcError
import fixture_bridge
from fixture_offer import (COMPLETIONS, DYNAMIC, PROMPTS, RESOURCES, TEMPLATES, TOOLS,
                           resource)

fixture_bridge.register()


class Record:
    """All that came and went, for whoever runs the fixture."""

    def __init__(self):
        self.lock, self.file = threading.Lock(), None

    def note(self, way, msg, **more):
        if self.file:
            with self.lock:
                self.file.write(json.dumps({"way": way, "msg": msg, "pid": os.getpid(),
                                            **more}) + "\n")
                self.file.flush()


RECORD = Record()


class Lines:
    """The way to a client on stdio."""

    def __init__(self):
        self.lock = threading.Lock()

    def send(self, msg):
        line = json.dumps(msg, ensure_ascii=False)
        with self.lock:
            sys.stdout.buffer.write(line.encode() + b"\n")
            sys.stdout.buffer.flush()


class Exchange:
    """One request and all that belongs to it. Over HTTP, out is its own stream."""

    def __init__(self, out):
        self.out, self.given_up = out, threading.Event()

    def send(self, msg):
        msg = {"jsonrpc": "2.0", **msg}
        RECORD.note("out", msg)
        self.out.send(msg)

    def notify(self, method, params=None):
        self.send({"method": method} if params is None else
                  {"method": method, "params": params})

    def is_over(self):
        return self.given_up.is_set()


class World:
    """What all clients of one process share."""

    def __init__(self):
        self.extra = {"tools": False, "prompts": False, "resources": False}
        self.peers = []

    def toggle(self, kind):
        self.extra[kind] = not self.extra[kind]
        for peer in list(self.peers):
            peer.on_list_changed(kind)

    def update(self, uri):
        for peer in list(self.peers):
            peer.on_updated(uri)


class Server:
    """As one client sees it. An era adds admit, new_call, dress, on_list_changed and
    on_updated. out is the way for what belongs to no request."""

    def __init__(self, world, out):
        self.world, self.out = world, Exchange(out)
        self.calls = {}  # id of a request in flight, as JSON -> its Exchange
        world.peers.append(self)

    def offered(self, kind):
        table = TOOLS if kind == "tools" else PROMPTS
        return {n: t for n, t in table.items() if n not in DYNAMIC or self.world.extra[kind]}

    def listed(self, kind):
        return {kind: [definition for definition, _ in self.offered(kind).values()]}

    def resources_list(self, _, params):
        return {"resources": [r for r in RESOURCES
                              if r["uri"] not in DYNAMIC or self.world.extra["resources"]]}

    def find(self, kind, params):
        name, offered = params.get("name"), self.offered(kind)
        if not isinstance(name, str) or name not in offered:
            raise RpcError(PARAMS, "Unknown %s: %s" % (kind[:-1], name))
        return offered[name][1]

    def tools_call(self, call, params):
        found = self.find("tools", params)(call)
        return found if isinstance(found, dict) else {"content": found}

    def prompts_get(self, call, params):
        return {"messages": self.find("prompts", params)(call)}

    def resources_read(self, call, params):
        found = resource(params.get("uri"))
        if found is None:
            raise RpcError(self.NOT_FOUND, "Resource not found", {"uri": params.get("uri")})
        if callable(found):
            found = found(call)
        return {"contents": [{"uri": params["uri"], **found}]}

    def complete(self, _, params):
        argument = params.get("argument", {})
        known = COMPLETIONS.get((params.get("ref", {}).get("name"), argument.get("name")), [])
        values = [v for v in known if v.startswith(argument.get("value", ""))]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}

    # Methods of both eras; those that may take a while get a thread.
    METHODS = {
        "tools/list": lambda s, c, p: s.listed("tools"),
        "tools/call": tools_call,
        "prompts/list": lambda s, c, p: s.listed("prompts"),
        "prompts/get": prompts_get,
        "resources/list": resources_list,
        "resources/templates/list": lambda s, c, p: {"resourceTemplates": TEMPLATES},
        "resources/read": resources_read,
        "completion/complete": complete,
    }
    SLOW = {"tools/call", "prompts/get", "resources/read"}

    def answer(self, request, exchange):
        method, params = request["method"], request.get("params") or {}
        key = json.dumps(request["id"])
        self.calls[key] = exchange
        try:
            self.admit(method, params)
            if method not in self.METHODS:
                raise RpcError(NO_METHOD, "Method not found: " + method)
            call = self.new_call(params, exchange)
            reply = {"result": self.dress(method, self.METHODS[method](self, call, params))}
        except RpcError as e:
            reply = {"error": e.body}
        except Exception as e:  # whatever it is, the client must not wait for ever
            reply = {"error": {"code": -32603, "message": repr(e)}}
        self.calls.pop(key, None)
        if exchange.is_over():
            RECORD.note("given up", request)
        else:
            exchange.send({"id": request["id"], **reply})

    def on_request(self, request, exchange):
        if request["method"] in self.SLOW:
            threading.Thread(target=self.answer, args=(request, exchange),
                             daemon=True).start()
        else:
            self.answer(request, exchange)

    def on_cancelled(self, params):
        exchange = self.calls.get(json.dumps(params.get("requestId")))
        if exchange:
            exchange.given_up.set()

    def on_notification(self, msg):
        if msg["method"] == "notifications/cancelled":
            self.on_cancelled(msg.get("params") or {})

    def on_response(self, msg):
        pass

    def on_message(self, msg, exchange):
        if "method" not in msg:
            self.on_response(msg)
        elif "id" in msg:
            self.on_request(msg, exchange)
        else:
            self.on_notification(msg)


def run_stdio(era):
    out = Lines()
    server = era(World(), out)
    for line in sys.stdin.buffer:
        msg = json.loads(line)
        RECORD.note("in", msg)
        server.on_message(msg, Exchange(out))


def run(era, serve_http):
    options = argparse.ArgumentParser(description=__doc__, add_help=False)
    options.add_argument("--http", type=int)
    options.add_argument("--record")
    args = options.parse_args()
    if args.record:
        RECORD.file = open(args.record, "a", buffering=1)
    if args.http is None:
        run_stdio(era)
    else:
        serve_http(args.http)
