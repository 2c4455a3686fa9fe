# SPDX-License-Identifier: MIT
"""Raw JSON text: finding members without rebuilding anything."""
import json
import os

DECODER = json.JSONDecoder()
WHITE = " \t\r\n"


def members(text, at=0):
    """Yields (key, raw value) of the object that starts at text[at]."""
    at = skip(text, at) + 1
    at = skip(text, at)
    while text[at] != "}":
        key, at = DECODER.raw_decode(text, at)
        at = skip(text, skip(text, at) + 1)
        _, end = DECODER.raw_decode(text, at)
        yield key, text[at:end]
        at = skip(text, end)
        if text[at] == ",":
            at = skip(text, at + 1)


def skip(text, at):
    while text[at] in WHITE:
        at += 1
    return at


def span(text, *path):
    """The raw text of a nested member, or None."""
    for key in path:
        if text is None or text[skip(text, 0)] != "{":
            return None
        text = next((v for k, v in members(text) if k == key), None)
    return text


def as_bytes(t):
    """A text of a behaviour: a string, or {pre, repeat, n, post}, or {hex}."""
    if isinstance(t, str):
        return t.encode("utf-8", "surrogatepass")
    if "hex" in t:
        return bytes.fromhex(t["hex"])
    body = t.get("repeat", "") * t.get("n", 1)
    return (t.get("pre", "") + body + t.get("post", "")).encode()


def dumps(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Request:
    """What a running script knows: the raw pieces of the message it answers."""

    def __init__(self, line="", msg=None):
        self.msg = msg or {}
        self.id = span(line, "id") if line else None
        params = span(line, "params") if line else None
        self.params = params
        self.name = span(params, "name") if params else None
        self.args = span(params, "arguments") if params else None
        self.token = span(params, "_meta", "progressToken") if params else None
        self.heard = None  # the last response that was expected

    def fill(self, raw):
        for key in ("id", "params", "name", "args", "token", "heard"):
            mark = b"${" + key.upper().encode() + b"}"
            if mark in raw:
                value = getattr(self, key)
                raw = raw.replace(mark, (value or "null").encode("utf-8", "surrogateescape"))
        if b"${PID}" in raw:
            raw = raw.replace(b"${PID}", b"%d" % os.getpid())
        return raw
