# SPDX-License-Identifier: MIT
"""Many calls at once, and lines that nobody would write on purpose."""
import json
import os
import random

import pytest

from mcp import wait_for

ECHO = {"tools": ["echo"]}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_thousand_calls_at_once_each_get_their_own_answer(serve, era):
    mv = serve(alpha=ECHO, beta={"era": "modern", "tools": ["echo"]})
    mv.speak(era)
    mv.ask("tools/list").result
    keys = {mv.start_call(("alpha", "beta")[n % 2] + "__echo", {"n": n},
                          id=n if n % 3 else "s%d" % n): n for n in range(1000)}
    wait_for(lambda: len(mv.pending) == 1000, 30)
    got = {m.msg["id"]: m.result["structuredContent"]["n"] for m in mv.pending}
    assert got == keys


def test_sixteen_upstreams(serve):
    mv = serve({"u%02d" % i: {"era": ("legacy", "modern")[i % 2], "tools": ["echo"]}
                for i in range(16)})
    mv.legacy()
    assert mv.tools() == ["u%02d__echo" % i for i in range(16)]
    for i in range(16):
        assert mv.call("u%02d__echo" % i, {"i": i}).result["structuredContent"] == {"i": i}


SEEDS = [
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"alpha__echo",'
    b'"arguments":{"a":[1,2,{"b":"\\u00e9"}]},"_meta":{"progressToken":5}}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"m:1"}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{"notifications":'
    b'{"resourceSubscriptions":["m:1"]},"_meta":{"io.modelcontextprotocol/protocolVersion":'
    b'"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"completion/complete","params":{"ref":{"type":'
    b'"ref/prompt","name":"alpha__p"},"argument":{"name":"a","value":"b"}}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}',
    b'[{"jsonrpc":"2.0","id":%d,"method":"ping"},{"jsonrpc":"2.0","id":-1,"method":"x"}]',
]


def mutate(rng, raw):
    raw = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(raw))
        how = rng.randrange(5)
        if how == 0:
            raw[at] = rng.randrange(256)
        elif how == 1:
            del raw[at:at + rng.randint(1, 8)]
        elif how == 2:
            raw[at:at] = raw[at:at + rng.randint(1, 30)]
        elif how == 3:
            raw[at:at] = rng.choice([b'"', b"{", b"]", b"\\", b"null", b"1e999", b"\x00", b"\xff"])
        else:
            other = rng.choice(SEEDS) % 1
            raw[at:] = other[rng.randrange(len(other)):]
        raw = raw or bytearray(b"{")
    return bytes(raw).replace(b"\n", b" ")


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
@pytest.mark.parametrize("seed", range(4))
def test_mutated_lines_of_a_client(serve, seed, revision):
    rng = random.Random(seed)
    mv = serve(alpha={"tools": ["echo"], "prompts": ["p"], "resources": ["m:1"],
                      "texts": {"m:1": "x"}})
    mv.check_schema = False
    mv.legacy(revision)
    for n in range(300):
        mv.line(mutate(rng, rng.choice(SEEDS) % (1000 + n)))
    assert mv.ask("ping", id="still there", timeout=20).result == {}
    mv.era = "legacy"
    assert mv.call("alpha__echo", {"a": 1}, id="and works").result["structuredContent"] == {"a": 1}
    assert len(mv["alpha"].starts()) == 1
    # Nothing but whole messages ever reached the upstream.
    for r in mv["alpha"].inputs():
        assert json.loads(r.raw)["jsonrpc"] == "2.0"


REPLIES = [
    b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\\u00e9"}]}}',
    b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"m","data":[1]}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"ping"}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,'
    b'"progress":1}}',
    b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"x":%d}}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"roots/list","params":{}}',
]


@pytest.mark.parametrize("seed", range(4))
def test_mutated_lines_of_an_upstream(serve, seed):
    rng = random.Random(seed)
    lines = b"".join(mutate(rng, rng.choice(REPLIES) % rng.randrange(30)) + b"\n"
                     for _ in range(300))
    mv = serve(alpha={"tools": ["echo", "spew"], "calls": {"spew": [
        ["bytes", {"hex": lines.hex()}], ["bytes", "\n"], ["reply", {"content": []}]]}},
               beta=ECHO)
    mv.check_schema = False
    mv.legacy()
    mv.call("alpha__spew", {}, timeout=20)
    assert mv.call("beta__echo", {"b": 1}).result["structuredContent"] == {"b": 1}
    wait_for(lambda: mv.call("alpha__echo", {"a": 1}).msg.get("result", {}).get(
        "structuredContent") == {"a": 1}, 10)
    assert len(mv["alpha"].starts()) == 1
    assert os.path.exists("/proc/%d" % mv.proc.pid)
