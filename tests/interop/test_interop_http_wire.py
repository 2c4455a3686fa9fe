# SPDX-License-Identifier: MIT
"""Answers over HTTP against the servers' own, as raw text; and what a lost
connection means in each era."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import interop_env as env
from interop_http import HttpWire, Serve, call_body, until
from interop_stacks import HttpClient
from interop_wire import Wire
from test_interop_wire import (
    CALLS, ERRORS, FAILURES, GAINS, LONG, REQUESTS, ask_marked, ask_tool, check_call,
    members, without,
)


class _Posted:
    """HttpWire in the shape that the comparison of stdio asks: send, then reply."""

    def __init__(self, server, modern):
        self.wire = HttpWire(HttpClient(server.url), modern)
        self.wire.hello()

    def send(self, method, body):
        return self.wire.send(method, body)

    def reply(self, answer):
        return answer.reply()


class Peers:
    """Each server on its own, and one daemon per era over servers of its own: what
    a server remembers is alike."""

    def __init__(self, make_run):
        own, self.legacy_run, self.modern_run = (
            make_run(f"http-wire-{kind}") for kind in ("direct", "legacy", "modern"))
        self.direct = {
            name: Wire([env.NODE, *own.script(name)],
                       {**own.environ(), **own.upstream_env(name)},
                       own.folder / "stderr", modern=name == "modern")
            for name in env.UPSTREAMS}
        for wire in self.direct.values():
            if not wire.modern:
                wire.initialize()
        self.servers = [Serve(self.legacy_run), Serve(self.modern_run)]
        self.legacy = _Posted(self.servers[0], False)
        self.modern = _Posted(self.servers[1], True)

    def close(self):
        for peer in (*self.direct.values(), self.legacy.wire.stack,
                     self.modern.wire.stack):
            peer.close()
        for server in self.servers:
            server.stop()


@pytest.fixture(scope="module")
def peers(make_run):
    p = Peers(make_run)
    yield p
    p.close()


@pytest.mark.parametrize("upstream, tool, arguments", CALLS)
def test_results_are_the_servers_own_bytes(peers, upstream, tool, arguments):
    replies = ask_tool(peers, upstream, tool, arguments)
    assert members(replies[0]["result"]).get("isError", "false") == "false"
    check_call(upstream, replies)


@pytest.mark.parametrize("upstream, tool, arguments", FAILURES)
def test_failures_are_the_servers_own_bytes(peers, upstream, tool, arguments):
    replies = ask_tool(peers, upstream, tool, arguments)
    assert members(replies[0]["result"])["isError"] == "true"
    check_call(upstream, replies)


@pytest.mark.parametrize("upstream, method, params", REQUESTS)
def test_other_results_are_the_servers_own_bytes(peers, upstream, method, params):
    direct, legacy, modern = (
        reply["result"] for reply in ask_marked(peers, upstream, method, params))
    assert legacy == direct
    if upstream == "modern":
        assert without(modern, GAINS[method]) == without(direct, GAINS[method])
    else:
        assert without(modern, GAINS[method]) == list(members(direct).items())


@pytest.mark.parametrize("upstream, method, params", ERRORS)
def test_errors_are_the_servers_own_bytes(peers, upstream, method, params):
    direct, legacy, modern = (
        reply["error"] for reply in ask_marked(peers, upstream, method, params))
    assert legacy == direct
    assert modern == direct


@pytest.mark.parametrize("era", ("legacy", "modern"))
@pytest.mark.parametrize("upstream, tool, arguments", [
    ("everything", LONG, {"duration": 0.2, "steps": 2}), ("modern", "count", {"to": 2})])
def test_a_result_on_a_stream_is_the_servers_own_bytes(peers, era, upstream, tool,
                                                       arguments):
    """A notice came first, so the answer is an event."""
    direct = peers.direct[upstream].result("tools/call", call_body(tool, arguments))
    answer = getattr(peers, era).wire.send(
        "tools/call", call_body(f"{upstream}__{tool}", arguments), '"progressToken":0')
    result = answer.reply()["result"]
    assert answer.streamed
    if era == "modern" and upstream != "modern":
        assert result == '{"resultType":"complete",' + direct[1:]
    else:
        assert result == direct


@pytest.mark.parametrize("era", ("legacy", "modern"))
@pytest.mark.parametrize("ident", ("0", '"x y"', '"\\u0061"', "9007199254740993", '""'))
def test_ids_come_back_as_they_were(peers, era, ident):
    wire = getattr(peers, era).wire
    assert "result" in wire.request(
        "tools/call", call_body("modern__greet", {"name": "x"}), ident=ident)


@pytest.mark.parametrize("era", ("legacy", "modern"))
def test_arguments_reach_the_server_as_they_were_written(peers, era):
    written = '{ "message" :"\\u0061\\/\\ud83c\\udf89", "n":[1.0,1E2, 9007199254740993]}'
    run = getattr(peers, f"{era}_run")
    getattr(peers, era).wire.result("tools/call",
                                    f'"name":"everything__echo","arguments":{written}')
    sent = [line for line in run.tapped("everything") if b'"tools/call"' in line][-1]
    assert members(members(sent.decode())["params"])["arguments"] == written


def cancelled(run):
    return [m["params"]["requestId"] for m in run.told("everything")
            if m.get("method") == "notifications/cancelled"]


def lose(peers, era):
    """A call whose connection breaks; the upstream's own id of it."""
    wire, run = getattr(peers, era).wire, getattr(peers, f"{era}_run")
    answer = wire.send("tools/call", call_body(f"everything__{LONG}",
                                               {"duration": 1, "steps": 10}),
                       '"progressToken":"lost"')
    answer.notice("notifications/progress")
    answer.close()
    return [m["id"] for m in run.told("everything")
            if m.get("method") == "tools/call"][-1]


def test_a_lost_connection_cancels_a_modern_call(peers):
    ident = lose(peers, "modern")
    until(lambda: ident in cancelled(peers.modern_run), "the cancellation")


def test_a_lost_connection_does_not_cancel_a_legacy_call(peers):
    ident = lose(peers, "legacy")
    # longer than what is left of the lost one
    peers.legacy.wire.result("tools/call", call_body(f"everything__{LONG}",
                                                     {"duration": 1.2, "steps": 1}))
    assert ident not in cancelled(peers.legacy_run)


def test_a_cancelled_legacy_call_ends_empty(peers):
    """Also when nothing of it had been sent."""
    wire, run = peers.legacy.wire, peers.legacy_run
    other = HttpWire(HttpClient(peers.servers[0].url), False)
    other.session, other.revision = wire.session, wire.revision
    asked = len(run.told("everything"))
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(wire.send, "tools/call", call_body(
            f"everything__{LONG}", {"duration": 30, "steps": 1}), "", '"stop me"')
        until(lambda: len(run.told("everything")) > asked, "the call")
        other.notify("notifications/cancelled", '"requestId":"stop me"')
        answer = answer.result(10)
    assert answer.status == 200 and answer.rest() == []
    other.stack.close()


@pytest.mark.parametrize("revision", ("2024-11-05", "2025-03-26", "2025-06-18"))
def test_older_revisions(peers, revision):
    wire = HttpWire(HttpClient(peers.servers[0].url), False)
    assert wire.initialize(revision)["protocolVersion"] == revision
    if revision < "2025-06-18":
        wire.revision = None  # they have no such header
    assert wire.call("modern__greet", {"name": "x"})["structuredContent"]["letters"] == 1
    if revision == "2025-03-26":
        text = ('[{"jsonrpc":"2.0","id":1,"method":"ping"},'
                '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{%s}}]'
                % call_body("everything__echo", {"message": "b"}))
        exchange = wire.stack.open("POST", wire.headers(), text.encode())
        replies = json.loads(exchange.read())
        assert {r["id"] for r in replies} == {1, 2}
    assert wire.delete() == 204
    wire.stack.close()
