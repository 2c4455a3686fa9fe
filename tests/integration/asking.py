# SPDX-License-Identifier: MIT
"""Upstreams that ask their client, of either era, and clients that answer."""
from mcp import META

CAPS = {"elicitation": {"form": {}, "url": {}}, "sampling": {},
        "roots": {"listChanged": True}}
MODERN_CAPS = {META + "clientCapabilities": {"elicitation": {"form": {}, "url": {}},
                                             "sampling": {}, "roots": {}}}
HEARD = ["reply", '{"content":[],"structuredContent":${HEARD}}']


def asking(method="elicitation/create", params=None, before=(), after=(), **more):
    """A legacy upstream: its tool `ask` asks, with the raw arguments in the message, and its
    result is the response that it got."""
    if params is None:
        params = '{"message":"m","requestedSchema":{"type":"object","properties":{}},' \
                 '"_meta":{"args":${ARGS}}}'
    ask = [["request", "q-${ID}", method, params], ["expect", "q-${ID}", 20000]]
    return {"tools": ["echo", "ask", "log"], "logging": True, "calls": {
        "ask": [*before, *ask, *after, HEARD],
        "log": [["notify", "notifications/message", '{"level":"error","data":${ARGS}}'],
                ["reply", {"content": []}]], **more.pop("calls", {})}, **more}


def modern_asking(requests=None, state="s-1"):
    """A modern upstream whose first answer asks and whose second one echoes what came."""
    if requests is None:
        requests = {"who": {"method": "elicitation/create", "params": {
            "mode": "form", "message": "m",
            "requestedSchema": {"type": "object", "properties": {}}}}}
    asked = {"resultType": "input_required", "inputRequests": requests}
    if state is not None:
        asked["requestState"] = state
    return {"era": "modern", "tools": ["echo", "ask"], "calls": {"ask": [
        ["set", "calls", {"ask": [
            ["reply", '{"resultType":"complete","content":[],"structuredContent":${PARAMS}}']]}],
        ["reply", asked]]}}


def reply(c, asked, result):
    """The client's response to a request of its server."""
    msg = {"jsonrpc": "2.0", "id": asked.msg["id"], "result": result}
    if hasattr(c, "post"):
        assert c.post(msg).status == 202
    else:
        import json
        c.line(json.dumps(msg))


def come_back(c, got, responses, name="alpha__ask", args=None, **kw):
    """The retry of a call that was answered by input_required."""
    params = {"name": name, "inputResponses": responses}
    if args is not None:
        params["arguments"] = args
    if "requestState" in got:
        params["requestState"] = got["requestState"]
    return c.ask("tools/call", params, meta=MODERN_CAPS, **kw)
