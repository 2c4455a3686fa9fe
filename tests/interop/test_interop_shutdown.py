# SPDX-License-Identifier: MIT
"""The end of a session over the real servers: quick, and nothing is left."""

import json
import os
import signal
import subprocess
import time

import pytest

from interop_wire import Wire


def call(tool, **arguments):
    return f'"name":"{tool}","arguments":{json.dumps(arguments)}'


@pytest.fixture
def wire(make_run):
    run = make_run("shutdown", tap=False)
    w = Wire([run.command, *run.args], run.environ(), run.folder / "stderr")
    w.run = run
    w.initialize()
    w.list("tools/list", "tools")
    yield w
    if w.process.poll() is None:
        w.process.kill()
        w.process.wait()


def test_end_of_input_ends_everything(wire):
    assert len(wire.run.left(0)) >= 6
    status, seconds = wire.close()
    assert status == 0
    assert seconds < 2
    assert wire.run.left() == []


def test_end_of_input_with_a_server_that_does_not_want_to_end(wire):
    # its timers keep node alive after the end of its input
    wire.result("tools/call", call("everything__toggle-subscriber-updates"))
    wire.send("tools/call", call("everything__trigger-long-running-operation",
                                 duration=60, steps=2))
    status, seconds = wire.close()
    assert status == 0
    assert seconds < 2.5
    assert wire.run.left() == []


def test_terminate_ends_everything(wire):
    wire.process.send_signal(signal.SIGTERM)
    begin = time.monotonic()
    assert wire.process.wait(10) == 0
    assert time.monotonic() - begin < 2.5
    assert wire.run.left() == []


def test_nothing_outlives_a_killed_mcpvisor(wire):
    os.kill(wire.process.pid, signal.SIGKILL)
    wire.process.wait()
    assert wire.run.left(3) == []


@pytest.mark.parametrize("upstream, name, arguments, expected", [
    ("everything", "echo", {"message": "piped"}, "Echo: piped"),
    ("modern", "greet", {"name": "pipe"}, "Hello, pipe"),
])
def test_a_pipe_gets_its_answers(make_run, upstream, name, arguments, expected):
    run = make_run("pipe", tap=False, upstreams=(upstream,))
    ask = ['{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
           '"2025-11-25","capabilities":{},"clientInfo":{"name":"pipe","version":"1"}}}',
           '{"jsonrpc":"2.0","method":"notifications/initialized"}',
           '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{%s}}'
           % call(f"{upstream}__{name}", **arguments)]
    # node may need longer than the second that calls get after the end of input
    for _ in range(4):
        replies = pipe(run, ask)
        assert replies[1]["result"]["serverInfo"]["name"] == "mcpvisor"
        if "result" in replies[2]:
            break
    assert replies[2]["result"]["content"][0]["text"] == expected


def pipe(run, ask):
    """Replies by id of a mcpvisor that gets all of its input at once."""
    done = subprocess.run([run.command, *run.args], env=run.environ(), timeout=20,
                          input="".join(line + "\n" for line in ask),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert run.left() == []
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    return {m["id"]: m for m in messages if "id" in m}
