# SPDX-License-Identifier: MIT
"""subscriptions/listen over HTTP: a stream of its own from the acknowledgement to its end."""
import pytest

from http_client import SESSION
from mcp import META, wait_for

SUB = META + "subscriptionId"
FULL = {"tools": ["echo"], "prompts": ["p"], "resources": ["m:1", "m:2"],
        "texts": {"m:1": "x"}}


def listen(c, key, **want):
    """An open stream of notices and the filter that was acknowledged."""
    answer = c.send("subscriptions/listen", {"notifications": want}, id=key)
    assert answer.status == 200 and answer.is_stream and answer.header(SESSION) is None
    ack = answer.next()
    assert ack.msg["method"] == "notifications/subscriptions/acknowledged"
    assert ack.params["_meta"][SUB] == key
    assert type(ack.params["_meta"][SUB]) is type(key)
    return answer, ack.params["notifications"]


@pytest.mark.parametrize("key", ["L1", 7, 0, "7"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_events_carry_the_id_of_the_listen(serve_http, era, key):
    mv = serve_http(alpha={**FULL, "era": era})
    c = mv.modern()
    c.ask("tools/list").result
    stream, honoured = listen(c, key, toolsListChanged=True, resourceSubscriptions=["m:1"])
    assert honoured == {"toolsListChanged": True, "resourceSubscriptions": ["m:1"]}
    mv["alpha"].run(["updated", "m:2"], ["updated", "m:1"],
                    ["set", "tools", ["echo", "more"]], ["changed", "tools"])
    first, second = stream.next(), stream.next()
    assert first.msg["method"] == "notifications/resources/updated"
    assert first.params["uri"] == "m:1" and first.params["_meta"][SUB] == key
    assert second.msg["method"] == "notifications/tools/list_changed"
    assert second.params["_meta"][SUB] == key
    assert c.tools() == ["alpha__echo", "alpha__more"]


def test_o_104_the_acknowledged_subset_and_the_clean_up(serve_http):
    mv = serve_http(alpha={"tools": ["echo"], "resources": ["a:1"]},
                    beta={"tools": ["echo"], "resources": ["b:1"],
                          "capabilities": {"tools": {}, "resources": {}}})
    c = mv.modern()
    c.ask("resources/list").result
    stream, got = listen(c, "L1", toolsListChanged=True,
                         resourceSubscriptions=["a:1", "b:1", "nobody:1"])
    assert got == {"toolsListChanged": True, "resourceSubscriptions": ["a:1"]}
    mv["alpha"].wait_input("resources/subscribe")
    mv["alpha"].run(["updated", "a:1"])
    assert stream.next().params["uri"] == "a:1"
    stream.wire.close()
    mv["alpha"].wait_input("resources/unsubscribe")
    assert mv["beta"].inputs("resources/subscribe") == []


def test_o_104_on_our_shutdown_a_result_and_the_end(serve_http):
    mv = serve_http(alpha=FULL)
    streams = [listen(mv.modern(), key, toolsListChanged=True)[0] for key in ("L1", 2)]
    legacy = mv.legacy().get()
    assert legacy.is_stream
    assert mv.stop() == 0
    for stream, key in zip(streams, ("L1", 2)):
        last = stream.next()
        assert last.msg["id"] == key
        assert last.result["resultType"] == "complete" and last.result["_meta"][SUB] == key
        stream.end()
    legacy.end()


@pytest.mark.parametrize("how", ["close", "reset", "half_close"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_end_of_the_stream_ends_the_listen(serve_http, era, how):
    mv = serve_http(alpha={**FULL, "era": era})
    c = mv.modern()
    c.ask("resources/list").result
    stream, _ = listen(c, "L", resourceSubscriptions=["m:1"])
    getattr(stream.wire, how)()
    if era == "legacy":
        mv["alpha"].wait_input("resources/unsubscribe")
    else:
        wait_for(lambda: len(mv["alpha"].inputs("notifications/cancelled")) > 0
                 or "resourceSubscriptions" not in mv["alpha"].inputs(
                     "subscriptions/listen")[-1].msg["params"]["notifications"])
    if how == "half_close":
        assert stream.wire.wait_end() in (b"", b"0\r\n\r\n")


@pytest.mark.parametrize("params", [
    {}, {"notifications": 7}, {"notifications": {"toolsListChanged": "yes"}},
    {"notifications": {"resourceSubscriptions": [7]}},
])
def test_a_malformed_filter_is_refused_as_json(serve_http, params):
    c = serve_http(alpha=FULL).modern()
    answer = c.send("subscriptions/listen", params)
    assert answer.header("Content-Type") == "application/json" and answer.code == -32602


def test_equal_ids_of_many_clients(serve_http):
    mv = serve_http(alpha=FULL)
    mv.modern().ask("resources/list").result
    wants = [{"toolsListChanged": True}, {"promptsListChanged": True},
             {"resourceSubscriptions": ["m:1"]}, {"resourceSubscriptions": ["m:2"]}]
    streams = [listen(mv.modern(), 1, **want)[0] for want in wants]
    mv["alpha"].run(["set", "tools", ["echo", "b"]], ["set", "prompts", ["p", "q"]],
                    ["changed", "tools"], ["changed", "prompts"], ["updated", "m:1"],
                    ["updated", "m:2"])
    got = [s.next() for s in streams]
    assert [m.msg["method"] for m in got] == [
        "notifications/tools/list_changed", "notifications/prompts/list_changed",
        "notifications/resources/updated", "notifications/resources/updated"]
    assert [m.params.get("uri") for m in got] == [None, None, "m:1", "m:2"]
    for s in streams:
        s.quiet(60)


def test_one_event_reaches_each_listen_of_one_connection_once(serve_http):
    """Two listens may even be pipelined: the second waits for the first to end."""
    mv = serve_http(alpha=FULL)
    c = mv.modern()
    c.ask("resources/list").result
    a, _ = listen(c, "A", resourceSubscriptions=["m:1"])
    b, _ = listen(c, "B", resourceSubscriptions=["m:1"])
    mv["alpha"].run(["updated", "m:1"])
    for stream, key in ((a, "A"), (b, "B")):
        assert stream.next().params["_meta"][SUB] == key
        stream.quiet(60)
    assert len(mv["alpha"].inputs("resources/subscribe")) == 1


def test_more_listens_than_one_client_could_have(serve_http):
    """The bound of one stdio client is no bound for all clients of HTTP together."""
    mv = serve_http(alpha=FULL)
    mv.modern().ask("tools/list").result
    streams = [listen(mv.modern(), 1, toolsListChanged=True)[0] for _ in range(300)]
    mv["alpha"].run(["set", "tools", ["echo", "b"]], ["changed", "tools"])
    for s in streams:
        assert s.next().msg["method"] == "notifications/tools/list_changed"


def test_a_listen_carries_nothing_of_calls(serve_http):
    mv = serve_http(alpha={"tools": ["work"], "logging": True, "calls": {"work": [
        ["progress", 1], ["notify", "notifications/message", '{"level":"info","data":"x"}'],
        ["reply", {"content": []}]]}})
    stream, _ = listen(mv.modern(), 1, toolsListChanged=True)
    answer = mv.modern().start_call("alpha__work", {}, meta={
        "progressToken": 1, META + "logLevel": "debug"})
    assert answer.result and len(answer.notices) == 2
    stream.quiet(60)
