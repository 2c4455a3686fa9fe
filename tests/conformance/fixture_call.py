# SPDX-License-Identifier: MIT
"""One call as a tool or prompt of the fixtures sees it, the content it may return, and
the questions it may ask. How those go over the wire is the era's."""

import base64
import json
import struct
import zlib

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
CAPABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling",
              "roots/list": "roots"}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}

PARAMS, NO_METHOD, NEEDS_CAPABILITY = -32602, -32601, -32021


class RpcError(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.body = {"code": code, "message": message}
        if data is not None:
            self.body["data"] = data


# Content


def png():
    """One red pixel."""
    def chunk(kind, data):
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) +
            chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b""))


def wav():
    """Eight samples of silence."""
    data = b"\x80" * 8
    form = struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8)
    return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVE" +
            b"fmt " + struct.pack("<I", len(form)) + form +
            b"data" + struct.pack("<I", len(data)) + data)


PNG = base64.b64encode(png()).decode()
WAV = base64.b64encode(wav()).decode()
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}


def text(s):
    return {"type": "text", "text": s}


def embedded(uri, mime, s):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": s}}


def message(block):
    return {"role": "user", "content": block}


def schema(properties=None, required=()):
    s = {"type": "object", "properties": properties or {}}
    if required:
        s["required"] = list(required)
    return s


# Questions


def elicit(msg, properties, required=()):
    return {"method": "elicitation/create", "params": {
        "mode": "form", "message": msg, "requestedSchema": schema(properties, required)}}


def elicit_strings(msg, *names):
    return elicit(msg, {n: {"type": "string"} for n in names}, names)


def sample(prompt, tokens):
    return {"method": "sampling/createMessage", "params": {
        "messages": [message(text(prompt))], "maxTokens": tokens}}


ROOTS = {"method": "roots/list", "params": {}}


def fits(schema_, value):
    kinds = {"string": str, "boolean": bool, "integer": int, "number": (int, float),
             "array": list}
    kind = kinds.get(schema_.get("type"), object)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def is_answer(question, answer):
    """Whether a client's answer has the shape that the question asks for."""
    if not isinstance(answer, dict):
        return False
    if question["method"] == "sampling/createMessage":
        return isinstance(answer.get("content"), (dict, list)) and "model" in answer
    if question["method"] == "roots/list":
        return isinstance(answer.get("roots"), list)
    if answer.get("action") != "accept":
        return answer.get("action") in ("decline", "cancel")
    if question["params"].get("mode") == "url":
        return "content" not in answer
    want = question["params"]["requestedSchema"]
    content = answer.get("content")
    return isinstance(content, dict) and all(
        n in content and fits(want["properties"][n], content[n])
        for n in want.get("required", ()))


def sampled(answer):
    content = answer["content"]
    return content.get("text", "") if isinstance(content, dict) else json.dumps(content)


class Call:
    """One tools/call, prompts/get or resources/read. An era adds may_log, ask, ask_url and
    need_url."""

    def __init__(self, server, params, exchange):
        self.server, self.exchange = server, exchange
        self.meta = params.get("_meta", {})
        self.args = params.get("arguments") or {}
        self.token = self.meta.get("progressToken")
        self.capabilities = {}

    def notify(self, method, params):
        self.exchange.notify(method, params)

    def progress(self, done, total):
        if self.token is not None:
            self.notify("notifications/progress", {
                "progressToken": self.token, "progress": done, "total": total})

    def log(self, s):
        if self.may_log("info"):
            self.notify("notifications/message", {
                "level": "info", "logger": "fixture", "data": s})

    def string(self, name):
        value = self.args.get(name)
        if not isinstance(value, str):
            raise RpcError(PARAMS, "argument %s must be a string" % name)
        return value

    def require(self, *names):
        missing = {n: {} for n in names if n not in self.capabilities}
        if missing:
            raise RpcError(NEEDS_CAPABILITY, "the client has not declared: " +
                           ", ".join(missing), {"requiredCapabilities": missing})

    def ask_one(self, key, question, state=False):
        return self.ask({key: question}, state)[key]
