# SPDX-License-Identifier: MIT
"""SDK clients on stdio whose mcpvisor is only the way to a running daemon."""

import os
import signal

import pytest

# collected here too, with the client of this module
from interop_common import *  # noqa: F401,F403
from interop_driver import ClientRun
from interop_http import Serve
from interop_wire import Wire
from test_interop_clients import (  # noqa: F401
    test_a_cancel_goes_to_its_owner_alone,
    test_calls_filesystem,
    test_calls_memory,
    test_calls_sequential_thinking,
    test_cancels_a_call_of_the_modern_server,
    test_says_who_it_is,
    test_upstreams_see_what_they_may_ask,
)

CLIENTS = (
    ("sdk1", "legacy", ["driver_sdk1.mjs"]),
    ("client2-auto", "modern", ["driver_client2.mjs", "auto"]),
)


def connect(server):
    return ["connect", str(server.socket)]


@pytest.fixture(scope="module", params=CLIENTS, ids=[c[0] for c in CLIENTS])
def client(request, make_run):
    label, era, argv = request.param
    run = make_run(f"connect-{label}")
    with Serve(run) as server:
        done = ClientRun(label, era, argv, run, {
            "command": run.command, "args": connect(server), "env": run.env})
        done.after = server.process.poll()
        done.stopped = server.stop()
    done.left = run.left()
    return done


def test_the_daemon_outlives_its_clients(client):
    assert client["close"]["ms"] < 2000
    assert client.status == 0
    assert client.after is None
    assert client.stopped[0] == 0
    assert client.left == []


@pytest.fixture
def small(make_run):
    """A daemon over one upstream."""
    run = make_run("connect", tap=False, upstreams=("modern",))
    with Serve(run) as server:
        yield server


def wire_to(server, modern):
    run = server.run
    return Wire([run.command, *connect(server)], run.environ(),
                run.folder / "stderr", modern)


GREET = '"name":"modern__greet","arguments":{"name":"%s"}'


def test_clients_of_both_eras_share_one_fleet(small):
    wires = [wire_to(small, modern) for modern in (False, True, False, True)]
    for wire in wires:
        if not wire.modern:
            wire.initialize()
    idents = [wire.send("tools/call", GREET % n, ident="1")
              for n, wire in enumerate(wires)]
    for n, (wire, ident) in enumerate(zip(wires, idents)):
        assert f"Hello, {n}" in wire.reply(ident)["result"]
    assert [wire.close()[0] for wire in wires] == [0] * 4
    assert small.process.poll() is None


def test_the_end_of_the_daemon_is_the_end_of_its_clients(small):
    wire = wire_to(small, True)
    wire.result("tools/call", GREET % "x")
    os.kill(small.process.pid, signal.SIGKILL)
    assert wire.process.wait(5) == 5
    wire.close()


def test_no_daemon_no_client(small):
    small.stop()
    wire = wire_to(small, True)
    assert wire.process.wait(5) == 5
    wire.close()
    assert b"visor.sock" in (small.run.folder / "stderr").read_bytes()
