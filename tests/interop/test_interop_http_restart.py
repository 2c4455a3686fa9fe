# SPDX-License-Identifier: MIT
"""A daemon that is started anew in the middle of its clients' sessions."""

import json
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import interop_env as env
from interop_http import HttpWire, Serve, call_body, until
from interop_stacks import HttpClient

GREET = call_body("modern__greet", {"name": "x"})


@pytest.fixture
def server(make_run):
    run = make_run("restart", tap=False, upstreams=("modern",))
    with Serve(run) as s:
        yield s
    assert run.left() == []


class Driver:
    """One SDK client; it goes at the latest with its block."""

    def __init__(self, server, kind):
        self.log = server.run.folder / "stderr"
        self.process = subprocess.Popen(
            [env.NODE, str(env.HERE / "driver_restart.mjs"), server.url, kind],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(self.log, "wb"))

    def said(self):
        line = self.process.stdout.readline()
        assert line, self.log.read_text()[-2000:]
        return json.loads(line)

    def call(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return self.said()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(10)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def greeted(said):
    return said["result"]["structuredContent"]["greeting"]


@pytest.mark.parametrize("kind", ("sdk1", "client2-legacy", "client2-modern"))
def test_the_next_call_of_an_sdk_client_works(server, kind):
    with Driver(server, kind) as driver:
        first = driver.said()
        assert greeted(first) == "Hello, before"
        # killed as well, so that nothing is left to a clean end
        for n, how in enumerate((signal.SIGTERM, signal.SIGKILL), 1):
            server.restart(how)
            said = driver.call()
            assert greeted(said) == f"Hello, after {n}"
            assert "modern__greet" in [t["name"] for t in said["listed"]["tools"]]
            assert said.get("session") == first.get("session")
        assert driver.end() == 0


@pytest.mark.parametrize("kind", ("sdk1", "client2-legacy"))
def test_notices_reach_an_sdk_client_again(server, kind):
    """It opens its stream again by itself."""
    with Driver(server, kind) as driver:
        driver.said()
        until(lambda: driver.call()["streams"] == 1, "its stream")
        server.restart()
        until(lambda: driver.call()["streams"] == 2, "its stream again")
        HttpWire(HttpClient(server.url), True).call("modern__grow", {})
        until(lambda: driver.call()["changes"] > 0, "list_changed")
        assert driver.end() == 0


@pytest.fixture
def wire(server):
    w = HttpWire(HttpClient(server.url), False)
    w.initialize()
    yield w
    w.stack.close()


def renewed(wire, server):
    """The same client with connections of its own, over another daemon."""
    fresh = HttpWire(HttpClient(server.url), False)
    fresh.session, fresh.revision = wire.session, wire.revision
    return fresh


@pytest.mark.parametrize("how", (signal.SIGTERM, signal.SIGKILL), ids=["term", "kill"])
def test_a_session_with_a_subscription_starts_anew(server, wire, how):
    """The client would wait for updates that nobody sends any more."""
    wire.result("resources/subscribe", '"uri":"interop://counter"')
    server.restart(how)
    again = renewed(wire, server)
    assert again.send("tools/call", GREET).status == 404
    again.session = again.revision = None
    again.initialize()
    assert "Hello, x" in again.result("tools/call", GREET)


@pytest.mark.parametrize("modern", (False, True), ids=["legacy", "modern"])
@pytest.mark.parametrize("meta", ("", '"progressToken":1'), ids=["json", "stream"])
def test_calls_in_flight_are_answered_at_the_end(server, modern, meta):
    client = HttpWire(HttpClient(server.url), modern)
    client.hello()
    with ThreadPoolExecutor() as pool:
        reply = pool.submit(client.request, "tools/call",
                            call_body("modern__slow", {"tag": "end"}), meta)
        until(lambda: server.run.trace.exists()
              and "started end" in server.run.trace.read_text(), "the call")
        assert server.stop()[0] == 0
        error = json.loads(reply.result(10)["error"])
    assert error["code"] == -32603
    assert error["data"]["reason"]
    client.stack.close()


def test_an_ended_session_stays_ended(server, wire):
    assert wire.delete() == 204
    server.restart()
    assert renewed(wire, server).send("tools/call", GREET).status == 404


def test_a_stream_of_notices_is_opened_again(server, wire):
    stream = wire.get()
    server.restart()
    assert stream.next() is None
    again = renewed(wire, server)
    stream = again.get()
    again.call("modern__grow", {})
    stream.notice("notifications/tools/list_changed")
    stream.close()


def test_a_second_daemon_with_the_same_state_serves_the_session(server, wire):
    with Serve(server.run, "other") as other:
        again = renewed(wire, other)
        assert "Hello, x" in again.result("tools/call", GREET)
        assert "Hello, x" in wire.result("tools/call", GREET)
        assert again.delete() == 204
        assert renewed(wire, server).send("tools/call", GREET).status == 404


def test_a_daemon_with_another_key_does_not(server, wire, make_run):
    other_run = make_run("other", tap=False, upstreams=("modern",))
    with Serve(other_run) as other:
        assert renewed(wire, other).send("tools/call", GREET).status == 404
