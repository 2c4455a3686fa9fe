# SPDX-License-Identifier: MIT
"""A server that remembers, told to be there once for each session."""

import json

import pytest

import interop_env as env
from interop_http import HttpWire, Serve, until
from interop_stacks import HttpClient

NAME = "sequential-thinking"


@pytest.fixture
def server(make_run):
    run = make_run("isolation", tap=False, upstreams=(NAME, "modern"))
    conf = json.loads(run.mcp_json.read_text())
    conf["mcpServers"][NAME]["mcpvisor"] = {"isolation": "session"}
    run.mcp_json.write_text(json.dumps(conf))
    with Serve(run) as s:
        yield s
    assert run.left() == []


def session(server):
    wire = HttpWire(HttpClient(server.url), False)
    wire.initialize()
    return wire


def think(wire):
    result = wire.call(f"{NAME}__sequentialthinking", {
        "thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1,
        "totalThoughts": 1})
    return result["structuredContent"]["thoughtHistoryLength"]


def thinkers(server):
    script = server.run.script(NAME)[0]
    return len([pid for pid, command in env.processes(server.run.mark)
                if script in command])


def test_each_session_has_its_own_history(server):
    one, other = session(server), session(server)
    assert [think(one), think(one), think(one)] == [1, 2, 3]
    assert think(other) == 1
    assert think(one) == 4
    assert one.call("modern__greet", {"name": "x"})["structuredContent"]["letters"] == 1


def test_its_process_goes_with_the_session(server):
    wires = [session(server) for _ in range(3)]
    for wire in wires:
        think(wire)
    many = thinkers(server)
    assert many >= 3
    for wire in wires:
        assert wire.delete() == 204
    until(lambda: thinkers(server) <= many - 3, "the end of their processes")


def test_it_does_not_come_back_after_a_restart(server):
    """Its history is gone, and its client has to know."""
    wire = session(server)
    think(wire)
    server.restart()
    again = HttpWire(HttpClient(server.url), False)
    again.session, again.revision = wire.session, wire.revision
    assert again.send("tools/list").status == 404
    again.session = again.revision = None
    again.initialize()
    assert think(again) == 1
