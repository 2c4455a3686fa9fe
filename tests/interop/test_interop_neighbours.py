# SPDX-License-Identifier: MIT
"""Upstreams that are missing, silent or killed beside real ones that are well."""

import json
import os
import signal
import time

import pytest

import interop_env as env
from interop_wire import Wire

BAD = {
    "missing": {"command": "/nonexistent/server"},
    "silent": {"command": "/bin/sleep", "args": ["600"]},
    "quitter": {"command": "/bin/false"},
}
WELL = ("everything", "modern")
GREET = '"name":"modern__greet","arguments":{"name":"x"}'
LONG = ('"name":"everything__trigger-long-running-operation",'
        '"arguments":{"duration":60,"steps":600}')


def start(run, modern):
    return Wire([run.command, *run.args], run.environ(), run.folder / "stderr", modern)


@pytest.fixture
def bad_run(make_run):
    return make_run("neighbours", tap=False, upstreams=WELL, extra=BAD)


def test_bad_upstreams_do_not_hold_up_a_call(bad_run):
    begin = time.monotonic()
    wire = start(bad_run, modern=True)
    listed = wire.send("tools/list")
    called = wire.send("tools/call", GREET)
    assert "result" in wire.reply(called)
    # lists may wait 5 s for those that are starting, calls of others may not
    assert time.monotonic() - begin < 4
    names = [t["name"] for t in json.loads(wire.reply(listed)["result"])["tools"]]
    assert {name.split("__")[0] for name in names} == set(WELL)
    assert time.monotonic() - begin < 8
    assert wire.close()[0] == 0
    assert bad_run.left() == []


def test_a_call_of_a_bad_upstream_is_not_an_unknown_tool(bad_run):
    """What cannot be asked now may well have that tool."""
    wire = start(bad_run, modern=False)
    wire.initialize()
    for name in BAD:
        reply = wire.request("tools/call", f'"name":"{name}__tool","arguments":{{}}')
        error = json.loads(reply["error"])
        assert error["code"] == -32603
        assert error["data"]["upstream"] == name
        assert error["data"]["reason"]
        assert isinstance(error["data"]["retryable"], bool)
    assert wire.close()[0] == 0


def node_of(run, upstream):
    return next(pid for pid, command in env.processes(run.mark)
                if run.script(upstream)[0] in command)


def test_a_killed_server_fails_its_calls_alone_and_comes_back(make_run):
    run = make_run("kill", tap=False, upstreams=WELL)
    wire = start(run, modern=False)
    wire.initialize()
    wire.list("tools/list", "tools")
    doomed = [wire.send("tools/call", LONG, '"progressToken":%d' % n) for n in range(2)]
    wire.wait(lambda m: m.get("method") == '"notifications/progress"', "progress")
    safe = wire.send("tools/call", '"name":"modern__count","arguments":{"to":20}')
    os.kill(node_of(run, "everything"), signal.SIGKILL)
    killed = time.monotonic()
    for ident in doomed:
        error = json.loads(wire.reply(ident)["error"])
        assert error["code"] == -32603
        assert error["data"]["upstream"] == "everything"
        assert error["data"]["reason"]
    assert time.monotonic() - killed < 1
    assert "counted to 20" in wire.reply(safe)["result"]
    reply = wire.request("tools/call", '"name":"everything__echo",'
                         '"arguments":{"message":"back"}')
    while "error" in reply and time.monotonic() - killed < 10:
        assert json.loads(reply["error"])["code"] == -32603
        time.sleep(0.1)
        reply = wire.request("tools/call", '"name":"everything__echo",'
                             '"arguments":{"message":"back"}')
    assert "Echo: back" in reply["result"]
    assert wire.close()[0] == 0
    assert run.left() == []
