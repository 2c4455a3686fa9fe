# SPDX-License-Identifier: MIT
"""The scripted upstream against itself: a tiny client, without mcpvisor."""
import json
import subprocess

import pytest

import schema
from mcp import LEGACY, META, MODERN
from upstream import Upstream


@pytest.fixture
def talk(tmp_path):
    def run(behaviour, *requests):
        up = Upstream(tmp_path, "alpha", behaviour)
        entry = up.entry()
        text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in requests)
        done = subprocess.run([entry["command"], *entry["args"]], input=text.encode(),
                              capture_output=True, timeout=10)
        up.close()
        return up, done

    return run


def ask(key, method, **params):
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


def test_legacy(talk):
    up, done = talk({"tools": ["echo"]}, ask(1, "initialize", protocolVersion="2025-03-26"),
                    ask("2", "tools/list"), ask(3, "server/discover"),
                    '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":'
                    '{"name":"echo","arguments":{ "n":1.0}}}')
    out = [json.loads(x) for x in done.stdout.splitlines()]
    assert out[0]["result"]["protocolVersion"] == "2025-03-26"
    assert out[1] == {"jsonrpc": "2.0", "id": "2", "result": {"tools": [
        {"name": "echo", "inputSchema": {"type": "object"}}]}}
    assert out[2]["error"]["code"] == -32601
    assert b'"structuredContent":{ "n":1.0}' in done.stdout
    assert [r.kind for r in up.records() if r.kind != "O"] == ["B", "I", "I", "I", "I", "E"]
    assert b'"arguments":{ "n":1.0}' in up.inputs("tools/call")[0].raw


def test_modern(talk):
    meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
    _, done = talk({"era": "modern", "tools": ["echo"]}, ask(1, "initialize"),
                   ask(2, "server/discover", _meta=meta),
                   ask("L", "subscriptions/listen", _meta=meta,
                       notifications={"toolsListChanged": True}))
    out = [json.loads(x) for x in done.stdout.splitlines()]
    assert out[0]["error"]["code"] == -32602
    assert out[1]["result"]["supportedVersions"] == [MODERN]
    assert out[2]["params"]["_meta"] == {META + "subscriptionId": "L"}


def test_noise_ends_and_exits(talk):
    _, done = talk({"tools": ["t"], "before_reply": "noise\n", "eol": "\r\n",
                    "calls": {"t": [["progress", 1], ["exit", 7]]}},
                   ask(1, "ping"), ask(2, "tools/call", name="t", _meta={"progressToken": "a"}))
    assert done.returncode == 7
    assert done.stdout.startswith(b"noise\n") and done.stdout.count(b"\r\n") == 2
    assert b'"progressToken":"a"' in done.stdout


def test_initialize_first(talk):
    _, done = talk({"initialize_first": True}, ask(1, "server/discover"))
    assert done.returncode == 1 and done.stdout == b""


@pytest.mark.parametrize("revision", [*LEGACY, MODERN])
def test_the_schema_check_would_notice(revision):
    if schema.document(revision) is None:
        pytest.skip("no schemas")
    good = {"jsonrpc": "2.0", "id": 1, "result": {
        "tools": [{"name": "a", "inputSchema": {"type": "object"}}], "resultType": "complete",
        "ttlMs": 0, "cacheScope": "private"}}
    assert schema.check(revision, "tools/list", good) == []
    assert schema.check(revision, "tools/list", {**good, "result": {"tools": [{}]}})
    assert schema.check(revision, None, {"jsonrpc": "2.0", "method": "notifications/progress"})
    assert schema.check(revision, None, {"jsonrpc": "2.0", "method": "made/up"})
    assert schema.check(revision, "ping", {"jsonrpc": "2.0", "id": 1, "error": {"code": "x"}})
