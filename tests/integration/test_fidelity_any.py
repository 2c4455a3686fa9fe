# SPDX-License-Identifier: MIT
"""Any JSON that is allowed passes any endpoint, either way, between any two eras, as bytes."""
import itertools
import json
import random
import sys

import pytest

from ways import Way

# Depth at the bound is more than Python parses by default.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 6000))
DEPTH = 1000
CASES = 24
MIB = 1 << 20

NUMBERS = ["0", "-0", "1.0", "1.50", "1e400", "-1E+400", "1e-400", "0.1", "9007199254740993",
           "-9223372036854775808", "18446744073709551616", "1" * 300, "0." + "3" * 300,
           "5E-324", "1E5", "1e05", "-1.0e-05", "2.5e+3"]
TEXTS = ["", "a", "a/b", "a\\/b", "\\u0041", "\\u0000", "\\b\\f\\n\\r\\t\\\\\\\"", "\\ud800",
         "\\udc00\\ud800", "\\ud83d\\ude00", "\\uD83D\\uDE00", "\U0001F600", "é", "e\u0301",
         "\u2028", "\u2029", "\\u2028", "\u0085", "\x7f", "\uffff", "\ufeff", "\U0010FFFF",
         "</script>", "data: x", "event: y", "\\u000a\\u000adata: z", ": c", "${", "$$"]
# Words that mean something, at places where they do not.
KEYS = ["name", "Name", "NAME", "n\\u0061me", "id", "ID", "method", "jsonrpc", "params", "uri",
        "URI", "_meta", "arguments", "Arguments", "progressToken", "cursor", "a", "A", "\\u0061",
        "", "\\ud800", "\u017f", "content", "isError", "error", "result", "code", "data",
        "x\\/y", "é", "\\u00e9", "0", "__proto__", "toString"]
SPACES = ["", "", "", " ", "\t", "  "]


class Maker:
    """Texts of JSON, the same ones in every run."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def gap(self):
        return self.r.choice(SPACES)

    def text(self):
        return '"%s"' % "".join(self.r.choice(TEXTS) for _ in range(self.r.randrange(4)))

    def value(self, depth):
        kind = self.r.randrange(10 if depth > 0 else 6)
        if kind < 2:
            return self.r.choice(NUMBERS)
        if kind < 4:
            return self.text()
        if kind < 6:
            return self.r.choice(["true", "false", "null", "{}", "[]", "{ }", "[ ]"])
        if kind < 8:
            return "[%s]" % ",".join(self.gap() + self.value(depth - 1) + self.gap()
                                     for _ in range(self.r.randrange(4)))
        return self.object(depth)

    def member(self, key, depth):
        return '%s"%s"%s:%s%s%s' % (self.gap(), key, self.gap(), self.gap(),
                                    self.value(depth - 1), self.gap())

    def object(self, depth, *fixed):
        """Keys of the pool, doubled ones too, around the members that are given."""
        parts = [self.member(self.r.choice(KEYS), depth) for _ in range(self.r.randrange(6))]
        for one in fixed:
            parts.insert(self.r.randrange(len(parts) + 1), one)
        return "{%s}" % ",".join(parts)


COMPLETE = '"resultType":"complete"'
NOTE = '{"x":${ARGS},"progressToken":${TOKEN},"progress":1}'


def upstream(era, **more):
    """It answers with what it was given: as a result, as an error, after a notice of it."""
    return {"era": era, "tools": ["echo", "whole", "stream", "fail"], "prompts": ["p"], "calls": {
        "whole": [["reply", "${ARGS}"]],
        "stream": [["notify", "notifications/progress", NOTE], ["reply", "${ARGS}"]],
        "fail": [["raw", '{"jsonrpc":"2.0","id":${ID},"error":${ARGS}}']]},
        "on": {"prompts/get": [["reply", "${ARGS}"]]}, **more}


BOTH = {"old": upstream("legacy"), "new": upstream("modern")}
EVERY = ["stdio-legacy", "stdio-modern", "http-legacy", "http-modern", "lines-legacy",
         "lines-modern"]


@pytest.fixture
def to(serve, serve_http, connect, tmp_path):
    """to(way, upstreams): a client, also one of lines on a unix socket."""
    count = itertools.count()

    def start(way, upstreams):
        transport, era = way.split("-")
        if transport == "stdio":
            mv = serve(upstreams)
            client = mv.speak(era)
        else:
            path = str(tmp_path / ("s%d.sock" % next(count)))
            mv = serve_http(upstreams, listen=("127.0.0.1:0", "unix:" + path))
            client = mv.speak(era) if transport == "http" else connect(path).speak(era)
            client.check_schema = False
        return Way(mv, client, way).unchecked()

    return start


def expected(mv, up, raw):
    """The one insertion there is: a modern client of a legacy upstream."""
    if mv.is_modern and up == "old":
        return "{" + COMPLETE + ("," if raw[1:-1].strip() else "") + raw[1:]
    return raw


def received(mv, up, method="tools/call"):
    """The last request of that method, as text."""
    mark = b'"method":"%s"' % method.encode()
    return next(r.raw for r in reversed(mv[up].records("I")) if mark in r.raw[:200]).decode()


def check_one(mv, up, tool, raw):
    """One text there and back."""
    before = len(mv.notices())
    if tool == "p":
        got = mv.ask("prompts/get", '{"name":"%s__p","arguments":%s}' % (up, raw), timeout=60)
        sent = received(mv, up, "prompts/get")
    else:
        meta = {"progressToken": "t"} if tool == "stream" else None
        got = mv.ask("tools/call", '{"arguments":%s,"name":"%s__%s"}' % (raw, up, tool),
                     meta=meta, timeout=60)
        sent = received(mv, up)
    assert '"arguments":' + raw in sent, raw[:2000]
    if tool == "fail":
        assert got.span("error").decode() == raw, raw[:2000]
        return
    assert got.span("result").decode() == expected(mv, up, raw), raw[:2000]
    if tool == "stream":
        (note,) = mv.notices()[before:]
        assert note.span("params").decode() == (
            '{"x":%s,"progressToken":"t","progress":1}' % raw), raw[:2000]
        if mv.is_http:
            assert mv.answers[-1].is_stream
        else:
            mv.c.take(lambda m: m is note)
    elif mv.is_http:
        assert mv.answers[-1].header("Content-Type") == "application/json"


@pytest.mark.parametrize("way", EVERY)
def test_any_arguments_and_any_result(to, way):
    """144 calls each way: results whole and after notices, results of prompts, errors."""
    mv = to(way, BOTH)
    make = Maker("seed 1 " + way)
    for up in ("old", "new"):
        done = [COMPLETE] if up == "new" else []
        for n in range(CASES):
            for tool in ("whole", "stream", "p"):
                check_one(mv, up, tool, make.object(4, *done))
            error = make.object(3, '"code":%d' % make.r.choice([-32000, -32603, 1, 12345678]),
                                '"message":' + make.text()) if n % 2 else \
                '{"message":%s,"code":-32099}' % make.text()
            if error.count('"code"') == 1:  # one that is written otherwise is noise
                check_one(mv, up, "fail", error)


@pytest.mark.parametrize("way", EVERY)
def test_what_is_large_and_what_is_deep(to, way):
    mv = to(way, BOTH)
    for up in ("old", "new"):
        tail = "," + COMPLETE + "}" if up == "new" else "}"
        # The message, params and arguments are three of the levels, the object is another.
        deep = DEPTH - 3
        check_one(mv, up, "stream", '{"d":%s%s%s' % ("[" * deep, "]" * deep, tail))
        check_one(mv, up, "whole", '{"d":%s1%s%s' % ('{"k":' * deep, "}" * deep, tail))
        got = mv.refusal('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":'
                         '"old__whole","arguments":{"d":%s%s}}}' % (
                             "[" * (deep + 1), "]" * (deep + 1)), name="old__whole")[1]
        assert got.code in (-32600, -32700)
    big = ("x" * MIB + "é\\u2028\\ud800") * 16
    tool, up = ("stream", "old") if way == "http-modern" else ("whole", "new")
    check_one(mv, up, tool, '{"s":"%s"%s' % (big, "," + COMPLETE + "}" if up == "new" else "}"))


@pytest.mark.parametrize("way", EVERY)
def test_one_byte_a_write(to, way):
    """Of the client's and of the upstream's."""
    mv = to(way, {k: {**v, "drip": True} for k, v in BOTH.items()})
    make = Maker("seed 2 " + way)
    wire = mv.c.wire() if mv.is_http else None
    write, send = getattr(mv.c, "write", None), getattr(wire, "send", None)

    def drip(raw):
        for i in range(len(raw)):
            (send or write)(raw[i:i + 1])

    if mv.is_http:
        wire.send = drip
        mv.c.wire = lambda: wire
    else:
        mv.c.write = drip
    for up in ("old", "new"):
        for tool in ("whole", "stream", "p"):
            check_one(mv, up, tool, make.object(4, *([COMPLETE] if up == "new" else [])))


LISTS = {"tools": ("tools/list", '"name":"%s"', '"inputSchema":{"type":"object"}'),
         "prompts": ("prompts/list", '"name":"%s"'),
         "resources": ("resources/list", '"uri":"m:%s"', '"name":"r"'),
         "resourceTemplates": ("resources/templates/list", '"uriTemplate":"t:%s/{x}"',
                               '"name":"r"')}
# Where a second one would route, or be read as the first.
NOT_IN_DEFINITIONS = ("name", "Name", "NAME", "n\\u0061me", "uri", "URI")


def definitions(make, what, era):
    found = []
    for n in range(25):
        fixed = [t % ("%s%02d" % (era, n)) if "%s" in t else t for t in LISTS[what][1:]]
        inner = make.member("x-%d" % n, 4)
        parts = [inner, *fixed, *(make.member(make.r.choice(
            [k for k in KEYS if k not in NOT_IN_DEFINITIONS]), 3) for _ in range(4))]
        make.r.shuffle(parts)
        found.append("{%s}" % ",".join(parts))
    return found


def test_any_definition(to):
    """The same hundred of each upstream through each endpoint."""
    make = Maker("seed 3")
    ups = {name: {"era": era, **{what: definitions(make, what, era) for what in LISTS}}
           for name, era in (("old", "legacy"), ("new", "modern"))}
    ups["old"]["page"] = 7
    for way in EVERY:
        mv = to(way, ups)
        for what, (method, *_) in LISTS.items():
            got = mv.ask(method).span("result", what).decode()
            parts = [one.replace('"name":"%s' % up["era"], '"name":"%s__%s' % (name, up["era"]))
                     if what in ("tools", "prompts") else one
                     for name, up in ups.items() for one in up[what]]
            assert got == "[%s]" % ",".join(parts), (way, what)


def test_definitions_of_the_pool_are_json():
    """Of the generator: what it makes is JSON, and has what it is said to have."""
    make = Maker("seed 4")
    texts = [make.object(4) for _ in range(500)]
    for one in texts:
        json.loads(one)
    every = "".join(texts)
    for part in (*NUMBERS, *TEXTS, *('"%s"' % k for k in KEYS)):
        assert part in every, part
