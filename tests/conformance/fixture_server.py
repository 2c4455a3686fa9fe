# SPDX-License-Identifier: MIT
"""What both fixtures do alike: read requests from stdin, answer on stdout."""

import json
import sys
import threading

from fixture_call import NO_METHOD, PARAMS, RpcError
from fixture_offer import (COMPLETIONS, DYNAMIC, PROMPTS, RESOURCES, TEMPLATES, TOOLS,
                           resource)


class Server:
    """An era adds admit, new_call, dress and on_list_changed."""

    def __init__(self):
        self.lock = threading.Lock()
        self.calls = {}  # id of a request in flight -> Event, set when it is given up
        self.extra = {"tools": False, "prompts": False}

    def send(self, msg):
        line = json.dumps({"jsonrpc": "2.0", **msg}, ensure_ascii=False)
        with self.lock:
            sys.stdout.buffer.write(line.encode() + b"\n")
            sys.stdout.buffer.flush()

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def toggle(self, kind):
        self.extra[kind] = not self.extra[kind]
        self.on_list_changed(kind)

    def offered(self, kind):
        table = TOOLS if kind == "tools" else PROMPTS
        return {n: t for n, t in table.items() if n not in DYNAMIC or self.extra[kind]}

    def listed(self, kind):
        return {kind: [definition for definition, _ in self.offered(kind).values()]}

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

    def resources_read(self, _, params):
        found = resource(params.get("uri"))
        if found is None:
            raise RpcError(self.NOT_FOUND, "Resource not found", {"uri": params.get("uri")})
        return {"contents": [found]}

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
        "resources/list": lambda s, c, p: {"resources": RESOURCES},
        "resources/templates/list": lambda s, c, p: {"resourceTemplates": TEMPLATES},
        "resources/read": resources_read,
        "completion/complete": complete,
    }
    SLOW = {"tools/call", "prompts/get"}

    def answer(self, request, given_up):
        method, params = request["method"], request.get("params") or {}
        try:
            self.admit(method, params)
            if method not in self.METHODS:
                raise RpcError(NO_METHOD, "Method not found: " + method)
            call = self.new_call(params, given_up)
            reply = {"result": self.dress(method, self.METHODS[method](self, call, params))}
        except RpcError as e:
            reply = {"error": e.body}
        except Exception as e:  # whatever it is, the client must not wait for ever
            reply = {"error": {"code": -32603, "message": repr(e)}}
        self.calls.pop(json.dumps(request["id"]), None)
        if not given_up.is_set():
            self.send({"id": request["id"], **reply})

    def on_request(self, request):
        given_up = threading.Event()
        self.calls[json.dumps(request["id"])] = given_up
        if request["method"] in self.SLOW:
            threading.Thread(target=self.answer, args=(request, given_up),
                             daemon=True).start()
        else:
            self.answer(request, given_up)

    def on_cancelled(self, params):
        given_up = self.calls.get(json.dumps(params.get("requestId")))
        if given_up:
            given_up.set()

    def on_notification(self, msg):
        if msg["method"] == "notifications/cancelled":
            self.on_cancelled(msg.get("params") or {})

    def on_response(self, msg):
        pass

    def run(self):
        for line in sys.stdin.buffer:
            msg = json.loads(line)
            if "method" not in msg:
                self.on_response(msg)
            elif "id" in msg:
                self.on_request(msg)
            else:
                self.on_notification(msg)
