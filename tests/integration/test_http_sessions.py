# SPDX-License-Identifier: MIT
"""Sessions of legacy clients over HTTP: their ids, their end, their stream of notices."""
import re

import pytest

from http_client import SESSION, VERSION
from mcp import LEGACY, wait_for

ECHO = {"tools": ["echo"]}
PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
HOLD = {"tools": ["echo", "hold"], "calls": {"hold": [["gate", "go"],
                                                      ["reply", {"content": []}]]}}


@pytest.mark.parametrize("revision", LEGACY)
def test_a_session_of_each_revision(serve_http, revision):
    mv = serve_http(alpha=ECHO)
    c = mv.client()
    answer = c.legacy(revision)
    assert answer.status == 200 and answer.header("Content-Type") == "application/json"
    got = answer.message().result
    assert got["protocolVersion"] == revision and got["capabilities"]["tools"]
    assert c.tools() == ["alpha__echo"]
    assert c.call("alpha__echo", {"n": 1}).result["structuredContent"] == {"n": 1}
    assert c.ask("ping").result == {}


@pytest.mark.parametrize("asked", ["2023-01-01", "2026-07-28", "next"])
def test_an_unknown_revision_is_offered_the_latest_legacy_one(serve_http, asked):
    mv = serve_http(alpha=ECHO)
    answer = mv.client().send("initialize", {
        "protocolVersion": asked, "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"}})
    assert answer.result["protocolVersion"] == "2025-11-25"
    assert answer.header(SESSION)


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 7}, {"protocolVersion": ""}])
def test_a_refused_initialize_makes_no_session(serve_http, params):
    mv = serve_http(alpha=ECHO)
    answer = mv.client().send("initialize", params)
    assert answer.code == -32602 and answer.header(SESSION) is None


def test_two_sessions_have_two_ids(serve_http):
    mv = serve_http(alpha=ECHO)
    ids = {mv.legacy(name=name).session for name in ("a", "a", "b" * 500, "\u00e9" * 300)}
    assert len(ids) == 4


def test_a_second_initialize_opens_a_second_session(serve_http):
    mv = serve_http(alpha=ECHO)
    c = mv.legacy()
    again = c.send("initialize", {"protocolVersion": "2025-03-26", "capabilities": {},
                                  "clientInfo": {"name": "a", "version": "1"}})
    assert again.result and again.header(SESSION) != c.session
    assert c.ask("ping").result == {}


@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
def test_o_060_unknown_ids_are_not_found(serve_http, verb):
    mv = serve_http(alpha=ECHO)
    real = mv.legacy().session
    other = serve_http(alpha=ECHO).legacy().session
    middle = len(real) // 2
    wrong = ["made-up", "a", "x" * 600, real[:-1], real + "A", other,
             real[:middle] + ("A" if real[middle] != "A" else "B") + real[middle + 1:],
             real[:-1] + ("A" if real[-1] != "A" else "B"), real.swapcase(), '"' + real + '"']
    c = mv.client()
    for session in wrong:
        c.session = session
        if verb == "POST":
            answer = c.post(PING)
            assert answer.fault() == (404, -32600)
        else:
            answer = c.get() if verb == "GET" else c.delete()
        assert answer.status == 404, session
    # Two of the header are no session, even if both are the same.
    twice = c.http(verb, {**c.base(), SESSION: [real, real],
                          "Content-Type": "application/json"},
                   b'{"jsonrpc":"2.0","id":1,"method":"ping"}' if verb == "POST" else None)
    assert twice.status == 404
    assert mv["alpha"].inputs("tools/call") == []


def test_o_060_a_modern_request_with_a_stray_session_header_is_served(serve_http):
    mv = serve_http(alpha=ECHO)
    c = mv.modern()
    answer = c.start_call("alpha__echo", {"a": 1}, headers={SESSION: "stray"})
    assert answer.result["structuredContent"] == {"a": 1}
    assert answer.header(SESSION) is None


@pytest.mark.parametrize("method, params", [
    ("resources/subscribe", {"uri": "m:1"}), ("resources/unsubscribe", {"uri": "m:1"}),
    ("logging/setLevel", {"level": "debug"}),
])
def test_o_060_what_needs_a_session_is_refused_without_one(serve_http, method, params):
    mv = serve_http(alpha={"tools": ["echo"], "resources": ["m:1"], "logging": True})
    assert mv.client().send(method, params).fault() == (400, -32600)


def test_o_060_requests_that_need_no_session_are_served_as_2025_03_26(serve_http):
    """The record wants 400 for a legacy request without a session; the protocol rules have it
    otherwise, and win: no header and no session is 2025-03-26, and only what needs a session
    is refused."""
    mv = serve_http(alpha=ECHO)
    c = mv.client()
    c.revision = "2025-03-26"
    answer = c.send("tools/list")
    assert answer.status == 200 and answer.header(SESSION) is None
    assert [t["name"] for t in answer.result["tools"]] == ["alpha__echo"]
    assert c.call("alpha__echo", {"n": 2}).result["structuredContent"] == {"n": 2}
    both = c.post([PING, {**PING, "id": 8}])
    assert sorted(m["id"] for m in both.message().msg) == [7, 8]


def test_delete_ends_a_session(serve_http):
    mv = serve_http(alpha=ECHO)
    c = mv.legacy()
    stream = c.get()
    assert stream.is_stream
    gone = c.delete()
    assert gone.status == 204 and gone.body() == b""
    stream.end()
    assert c.post(PING).fault() == (404, -32600)
    assert c.get().status == 404 and c.delete().status == 404
    assert c.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 404
    # Only that one.
    assert mv.legacy().ask("ping").result == {}


def test_delete_without_a_session_is_refused(serve_http):
    mv = serve_http(alpha=ECHO)
    assert mv.client().delete().status == 400


def test_delete_while_a_call_runs(serve_http):
    mv = serve_http(alpha=HOLD)
    c = mv.legacy()
    call, lost = c.start_call("alpha__hold", {}), c.start_call("alpha__hold", {})
    mv["alpha"].wait_input("tools/call", 2)
    lost.wire.close()
    assert c.delete().status == 204
    mv["alpha"].open("go")
    assert call.status == 200
    assert mv.legacy().ask("ping").result == {}


@pytest.mark.parametrize("ended", ["before", "with-delete"])
def test_initialize_of_a_client_that_leaves_before_its_answer(serve_http, ended):
    mv = serve_http(alpha={**ECHO, "on": {"initialize": [["gate", "up"], ["default"]]}})
    c = mv.client()
    answer = c.send("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                   "clientInfo": {"name": "a", "version": "1"}})
    mv.wait_log("session revision=")
    answer.wire.reset() if ended == "before" else answer.wire.half_close()
    mv["alpha"].wait_input("initialize")
    mv["alpha"].open("up")
    assert mv.legacy().tools() == ["alpha__echo"]


def test_an_id_in_flight_twice(serve_http):
    mv = serve_http(alpha=HOLD)
    c = mv.legacy()
    first = c.start_call("alpha__hold", {}, id="x")
    mv["alpha"].wait_input("tools/call")
    assert c.start_call("alpha__hold", {}, id="x").fault() == (400, -32600)
    # Other sessions, and clients without one, have their own ids.
    assert mv.legacy().call("alpha__echo", {}, id="x").result
    assert mv.modern().call("alpha__echo", {}, id="x").result
    mv["alpha"].open("go")
    assert first.result == {"content": []}
    assert c.call("alpha__echo", {}, id="x").result


@pytest.mark.parametrize("header, status", [
    (None, 200), ("2025-11-25", 200), ("2025-03-26", 200), ("2024-11-05", 200),
    ("2023-01-01", 400), ("2026-07-28", 400), ("", 400), ("latest", 400),
    (["2025-11-25", "2025-11-25"], 400),
])
def test_the_version_header_of_a_session(serve_http, header, status):
    mv = serve_http(alpha=ECHO)
    c = mv.legacy()
    assert c.send("tools/list", headers={VERSION: header}).status == status


# -- notifications and responses -------------------------------------------------------


@pytest.mark.parametrize("message", [
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
    {"jsonrpc": "2.0", "method": "notifications/foo"},
    {"jsonrpc": "2.0", "id": 5, "result": {}},
    {"jsonrpc": "2.0", "id": 5, "error": {"code": -1, "message": "no"}},
])
@pytest.mark.parametrize("who", ["session", "nobody", "modern"])
def test_o_074_what_has_no_answer_is_accepted_at_once(serve_http, message, who):
    mv = serve_http(alpha=ECHO)
    c = {"session": mv.legacy, "nobody": mv.client, "modern": mv.modern}[who]()
    wire = c.wire()
    for _ in range(3):
        answer = c.post(message, wire=wire)
        assert answer.status == 202 and answer.body() == b""
        assert answer.header("Content-Type") is None
        assert answer.header("Content-Length") == "0"
    # The connection is good for more.
    assert c.send("tools/list", wire=wire).result


# -- batches -----------------------------------------------------------------------------


@pytest.mark.parametrize("revision", LEGACY)
def test_o_017_batches_are_of_2025_03_26_alone(serve_http, revision):
    mv = serve_http(alpha=ECHO)
    c = mv.legacy(revision)
    answer = c.post([PING, {**PING, "id": "8"}])
    if revision == "2025-03-26":
        assert answer.status == 200
        assert sorted(str(m["id"]) for m in answer.message().msg) == ["7", "8"]
        assert all(m["result"] == {} for m in answer.message().msg)
    else:
        assert answer.fault() == (400, -32600)
    assert c.post([]).fault() == (400, -32600)


def test_o_017_a_batch_of_notifications_is_accepted(serve_http):
    c = serve_http(alpha=ECHO).legacy("2025-03-26")
    answer = c.post([{"jsonrpc": "2.0", "method": "notifications/initialized"},
                     {"jsonrpc": "2.0", "id": 1, "result": {}}])
    assert answer.status == 202 and answer.body() == b""


def test_a_batch_with_progress_becomes_a_stream(serve_http):
    mv = serve_http(alpha={"tools": ["echo", "work"], "calls": {"work": [
        ["progress", 1], ["reply", {"content": []}]]}})
    c = mv.legacy("2025-03-26")
    answer = c.post([PING, c.build("tools/call", {"name": "alpha__work"}, id="w",
                                   meta={"progressToken": "t"}),
                     {"jsonrpc": "2.0", "id": 2, "method": "nope"}])
    assert answer.is_stream
    got = {m["id"]: m for m in answer.message().msg}
    assert got[7]["result"] == {} and got["w"]["result"] == {"content": []}
    assert got[2]["error"]["code"] == -32601
    assert [m.params["progressToken"] for m in answer.notices] == ["t"]


def test_initialize_is_no_part_of_a_batch(serve_http):
    c = serve_http(alpha=ECHO).client()
    c.revision = "2025-03-26"
    answer = c.post([c.build("initialize", {"protocolVersion": "2025-03-26",
                                            "capabilities": {}, "clientInfo": {
                                                "name": "a", "version": "1"}}), PING])
    assert answer.header(SESSION) is None
    codes = [m.get("error", {}).get("code") for m in answer.message().msg]
    assert codes == [-32600, None]


# -- the stream of notices ---------------------------------------------------------------


def test_get_brings_list_changes_and_updates(serve_http):
    mv = serve_http(alpha={"tools": ["echo"], "resources": ["m:1", "m:2"]})
    c = mv.legacy()
    c.ask("tools/list"), c.ask("resources/list")
    stream = c.get()
    assert stream.status == 200 and stream.is_stream
    mv["alpha"].run(["set", "tools", ["echo", "more"]], ["changed", "tools"])
    assert stream.next().msg == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert c.tools() == ["alpha__echo", "alpha__more"]
    assert c.ask("resources/subscribe", {"uri": "m:1"}).result == {}
    mv["alpha"].run(["updated", "m:2"], ["updated", "m:1"])
    note = stream.next()
    assert note.msg["method"] == "notifications/resources/updated"
    assert note.params == {"uri": "m:1"}
    assert c.ask("resources/unsubscribe", {"uri": "m:1"}).result == {}
    mv["alpha"].run(["updated", "m:1"])
    mv.fence("alpha")
    stream.quiet()


def test_a_change_without_a_stream_is_said_on_the_next_one(serve_http):
    mv = serve_http(alpha=ECHO)
    c = mv.legacy()
    c.ask("tools/list")
    mv["alpha"].run(["set", "tools", ["echo", "more"]], ["changed", "tools"])
    wait_for(lambda: len(mv.modern().tools()) == 2, 5, "the list is in")
    assert c.get().next().msg["method"] == "notifications/tools/list_changed"


def test_notices_go_to_the_newest_stream_alone(serve_http):
    mv = serve_http(alpha={"tools": ["echo"], "resources": ["m:1"]})
    c = mv.legacy()
    c.ask("resources/list")
    c.ask("resources/subscribe", {"uri": "m:1"}).result
    old = c.get()
    assert old.is_stream
    new = c.get()
    assert new.is_stream
    mv["alpha"].run(["updated", "m:1"])
    assert new.next().params == {"uri": "m:1"}
    old.quiet()
    # When that one goes, the one before is the newest.
    new.wire.close()
    mv.wait_log(r"to=gone reason=gone(?s:.)*$")
    mv["alpha"].run(["updated", "m:1"])
    assert old.next().params == {"uri": "m:1"}


def test_each_session_hears_of_its_own_subscriptions_alone(serve_http):
    mv = serve_http(alpha={"tools": ["echo"], "resources": ["m:1", "m:2"]})
    a, b = mv.legacy(), mv.legacy()
    a.ask("resources/list")
    streams = [x.get() for x in (a, b)]
    assert all(s.is_stream for s in streams)
    a.ask("resources/subscribe", {"uri": "m:1"}).result
    b.ask("resources/subscribe", {"uri": "m:2"}).result
    mv["alpha"].run(["updated", "m:2"], ["updated", "m:1"])
    for stream, uri in zip(streams, ("m:1", "m:2")):
        assert stream.next().params == {"uri": uri}
        stream.quiet(100)


def test_o_079_get_without_a_session_is_not_allowed(serve_http):
    mv = serve_http(alpha=ECHO)
    for headers in ({}, {VERSION: "2026-07-28"}, {VERSION: "2025-11-25"}):
        answer = mv.client().http("GET", {"Accept": "text/event-stream", **headers})
        assert answer.status == 405
        assert re.search(r"\bPOST\b", answer.header("Allow"))
        assert "GET" not in answer.header("Allow")


def test_get_needs_to_accept_a_stream(serve_http):
    c = serve_http(alpha=ECHO).legacy()
    assert c.get(Accept="application/json").status == 406
    assert c.get(Accept="*/*").is_stream


def test_a_pings_answer_never_takes_the_get_stream(serve_http):
    c = serve_http(alpha=ECHO).legacy()
    stream = c.get()
    assert stream.is_stream
    assert c.ask("ping").result == {}
    stream.quiet(100)
