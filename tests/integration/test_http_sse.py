# SPDX-License-Identifier: MIT
"""HTTP+SSE of 2024-11-05, for clients that know nothing else."""
import json
import re

import pytest

from http_client import SESSION, VERSION
from mcp import strict_json, wait_for

ADDRESS = "127.0.0.1:0"
HOLD = [["progress", 1], ["gate", "go"], ["reply", {"content": []}]]
ALPHA = {"tools": ["echo", "hold"], "resources": ["m:1"], "calls": {"hold": HOLD}}
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


class Old:
    """A client of that transport: one stream, and messages to where it says."""

    def __init__(self, mv, path="/sse", headers=None, address=None):
        self.client = mv.client(address)
        self.stream = self.client.http("GET", {"Accept": "text/event-stream",
                                               **(headers or {})}, target=path)
        self.next_id = 0
        if self.stream.status == 200:
            first = self.stream.next_event()
            assert first.type == "endpoint", vars(first)
            self.target = first.data.decode()
            assert self.stream.header(SESSION) is None

    def say(self, msg, headers=None, body=None):
        body = json.dumps(msg).encode() if body is None else body
        answer = self.client.http("POST", {"Content-Type": "application/json",
                                           **(headers or {})}, body, target=self.target)
        if answer.status == 202:
            assert answer.body() == b""
        return answer

    def send(self, method, params=None, id=None):
        self.next_id += 1
        msg = {"jsonrpc": "2.0", "id": self.next_id if id is None else id, "method": method}
        if params is not None:
            msg["params"] = params
        assert self.say(msg).status == 202
        return msg["id"]

    def next(self, timeout=10.0):
        while True:
            event = self.stream.next_event(timeout)
            if event is None:
                return None
            if event.data is not None:
                assert event.type == "message" and event.id is None
                return strict_json(event.data)

    def ask(self, method, params=None):
        key = self.send(method, params)
        got = self.next()
        assert got["id"] == key, got
        return got

    def hello(self, revision="2024-11-05", capabilities=None):
        got = self.ask("initialize", {
            "protocolVersion": revision, "capabilities": capabilities or {},
            "clientInfo": {"name": "old", "version": "1"}})
        assert got["result"]["protocolVersion"] == revision
        assert self.say({"jsonrpc": "2.0",
                         "method": "notifications/initialized"}).status == 202
        return self


@pytest.fixture
def old(serve_conf):
    """old(**options of the daemon): it, with HTTP+SSE at /sse."""
    def start(rows=({"address": ADDRESS, "sse_path": "/sse"},), **kw):
        kw.setdefault("alpha", ALPHA)
        return serve_conf(more={"listen": list(rows), **kw.pop("more", {})}, **kw)
    return start


@pytest.mark.parametrize("revision", REVISIONS)
def test_everything_comes_on_the_stream(old, revision):
    mv = old()
    c = Old(mv).hello(revision)
    assert re.fullmatch(r"/sse\?sessionId=[A-Za-z0-9_-]{32}", c.target)
    assert [t["name"] for t in c.ask("tools/list")["result"]["tools"]] == [
        "alpha__echo", "alpha__hold"]
    assert c.ask("tools/call", {"name": "alpha__echo", "arguments": {}})["result"]
    assert c.ask("tools/call", {"name": "nobody"})["error"]["code"] == -32602
    assert c.ask("made/up")["error"]["code"] == -32601
    assert c.ask("resources/subscribe", {"uri": "m:1"})["result"] == {}
    mv["alpha"].run(["updated", "m:1"], ["set", "tools", ["echo"]], ["changed", "tools"])
    assert sorted(c.next()["method"] for _ in range(2)) == [
        "notifications/resources/updated", "notifications/tools/list_changed"]
    key = c.send("tools/call", {"name": "alpha__echo", "arguments": {},
                                "_meta": {"progressToken": "t"}})
    assert c.next()["id"] == key


def test_progress_and_a_cancel(old):
    mv = old()
    c = Old(mv).hello()
    key = c.send("tools/call", {"name": "alpha__hold", "arguments": {},
                                "_meta": {"progressToken": "t"}}, id="x")
    assert c.next()["params"]["progressToken"] == "t"
    sent = mv["alpha"].wait_input("tools/call").msg
    assert c.say({"jsonrpc": "2.0", "method": "notifications/cancelled",
                  "params": {"requestId": key}}).status == 202
    note = mv["alpha"].wait_input("notifications/cancelled").msg
    assert note["params"]["requestId"] == sent["id"]
    assert c.ask("ping")["result"] == {}


@pytest.mark.parametrize("how", ["close", "reset", "half_close"])
def test_the_end_of_the_stream_is_the_end_of_the_session(old, how):
    mv = old(per={"alpha": {"isolation": "session"}})
    c, other = Old(mv).hello(), Old(mv).hello()
    for one in (c, other):
        one.send("tools/call", {"name": "alpha__hold", "arguments": {}})
    mv["alpha"].wait_input("tools/call", 2)
    groups = {r.pid for r in mv["alpha"].inputs("tools/call")}
    assert len(groups) == 2
    getattr(c.stream.wire, how)()
    mv["alpha"].wait_input("notifications/cancelled")
    wait_for(lambda: c.say({"jsonrpc": "2.0", "id": 9, "method": "ping"}).status == 404, 5,
             "its path is gone")
    wait_for(lambda: mv.status()["clients"]["sessions"] == 1, 5, "its session is gone")
    assert len(mv["alpha"].inputs("notifications/cancelled")) == 1
    assert other.ask("ping")["result"] == {}


def test_a_question_to_its_client(old):
    ask = [["request", 7, "sampling/createMessage", '{"messages":[],"maxTokens":1}'],
           ["expect", 7, 5000], ["reply", {"content": []}]]
    mv = old(alpha={"tools": ["hold"], "calls": {"hold": ask}})
    c = Old(mv).hello(capabilities={"sampling": {}})
    key = c.send("tools/call", {"name": "alpha__hold", "arguments": {}})
    asked = c.next()
    assert asked["method"] == "sampling/createMessage"
    assert c.say({"jsonrpc": "2.0", "id": asked["id"], "result": {
        "role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}}
        ).status == 202
    assert c.next() == {"jsonrpc": "2.0", "id": key, "result": {"content": []}}


def test_what_newer_clients_find_there(old):
    mv = old()
    c = mv.client()
    hello = c.build("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                   "clientInfo": {"name": "x", "version": "1"}})
    # So that they go on to the GET, as backwards compatibility has it.
    assert c.post(hello, target="/sse").status == 405
    refused = c.http("DELETE", {}, target="/sse")
    assert refused.status == 405
    told = c.http("OPTIONS", {}, target="/sse")
    assert told.header("Access-Control-Allow-Methods") == told.header("Allow") == (
        refused.header("Allow"))
    # And those of old at the newer endpoint.
    assert c.http("GET", {"Accept": "text/event-stream"}).status == 405
    assert mv.legacy().tools() == ["alpha__echo", "alpha__hold"]


def test_the_guards_hold_there_too(old):
    mv = old()
    bad = {"Origin": "http://evil.example"}
    assert Old(mv, headers=bad).stream.status == 403
    assert Old(mv, headers={"Host": "evil.example"}).stream.status == 403
    c = Old(mv).hello()
    assert c.say({"jsonrpc": "2.0", "id": 1, "method": "ping"}, bad).status == 403
    assert c.say(None, {"Content-Type": "text/plain"}, b"{}").status == 415
    assert c.say(None, body=b"{").fault() == (400, -32700)
    assert c.say({"jsonrpc": "2.0", "id": 1, "method": "ping"},
                 {VERSION: "1999-01-01"}).status == 400
    c.target = "/sse?sessionId=" + "A" * 32
    assert c.say({"jsonrpc": "2.0", "id": 1, "method": "ping"}).fault() == (404, -32600)


def test_names_are_not_those_of_sessions(old):
    mv = old()
    c, legacy = Old(mv).hello(), mv.legacy()
    name = c.target.partition("=")[2]
    assert legacy.ask("ping", headers={SESSION: name}).code == -32600
    c.target = "/sse?sessionId=" + legacy.session
    assert c.say({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 404


def test_on_a_stop_what_is_open_is_answered(old):
    mv = old(more={"drain_ms": 100})
    c = Old(mv).hello()
    key = c.send("tools/call", {"name": "alpha__hold", "arguments": {}})
    mv["alpha"].wait_input("tools/call")
    assert mv.stop() == 0
    got = c.next()
    assert got["id"] == key and got["error"]["data"]["reason"] == "stopping"
    assert c.next() is None


def test_a_reload_takes_the_path_away(old):
    mv = old()
    c = Old(mv).hello()
    address = mv.address
    mv.more["listen"] = [{"address": address}]
    mv.reload()
    assert c.next() is None
    assert c.say({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 404
    mv.more["listen"] = [{"address": address, "sse_path": "/old"}]
    mv.reload()
    assert Old(mv, "/old").hello().ask("ping")["result"] == {}


@pytest.mark.parametrize("rows", [
    [{"sse_path": "/mcp"}],
    [{"sse_path": "/b"}, {"path": "/b"}],
    [{"path": "/a", "sse_path": "/b"}, {"path": "/c", "sse_path": "/b"}],
])
def test_a_path_is_there_once(old, rows):
    mv = old(rows=[{"address": "127.0.0.1:4711", **r} for r in rows], start=False)
    rc, out, err = mv.run("check", "--conf", mv.file)
    assert rc == 1 and "path" in out + err, (rc, out, err)


def test_over_a_unix_socket(old, tmp_path):
    address = "unix:%s" % (tmp_path / "s")
    mv = old(rows=[{"address": address, "sse_path": "/sse"}])
    c = Old(mv, address=address).hello()
    assert c.ask("ping")["result"] == {}


def test_mcpvisor_behind_mcpvisor(old, serve_conf):
    mv = old()
    front = serve_conf(beta={"url": "http://%s/sse" % mv.address})
    c = front.legacy()
    assert c.tools() == ["beta__alpha__echo", "beta__alpha__hold"]
    assert c.call("beta__alpha__echo", {}).result
    answer = c.start_call("beta__alpha__hold", {}, meta={"progressToken": 1})
    assert answer.next().params["progress"] == 1
    mv["alpha"].open("go")
    assert answer.message().result == {"content": []}
    assert front.stop() == 0
    wait_for(lambda: mv.status()["clients"]["sessions"] == 0, 5, "its session is gone")
