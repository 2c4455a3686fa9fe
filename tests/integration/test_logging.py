# SPDX-License-Identifier: MIT
"""Log messages of upstreams: to whom they belong, at the level that was asked for."""
import json

import pytest

from mcp import META

NOTE = "notifications/message"


def message(level, data="x"):
    return ["notify", NOTE, json.dumps({"level": level, "logger": "l", "data": data})]


TALK = [message("debug"), message("info"), message("error"), ["reply", {"content": []}]]


def talker(era="legacy", **more):
    return {"era": era, "tools": ["echo", "talk"], "calls": {"talk": TALK}, "logging": True,
            **more}


def test_messages_reach_a_legacy_client(serve):
    mv = serve(alpha=talker(), beta={"tools": ["echo"]})
    assert "logging" in mv.legacy().result["capabilities"]
    assert mv.ask("logging/setLevel", {"level": "info"}).result == {}
    assert mv["alpha"].wait_input("logging/setLevel").msg["params"]["level"] == "info"
    mv.call("alpha__talk", {}).result
    mv.fence("alpha")
    assert [n.params["level"] for n in mv.notices(NOTE)] == ["info", "error"]
    assert mv["beta"].inputs("logging/setLevel") == []


def test_messages_keep_their_bytes(serve):
    raw = '{"level":"error","data":{"n":1.0,"t":"\\u00e9"},"logger":"l","x":[1e2]}'
    mv = serve(alpha=talker(calls={"talk": [["notify", NOTE, raw],
                                            ["reply", {"content": []}]]}))
    mv.legacy()
    mv.ask("logging/setLevel", {"level": "debug"}).result
    mv.call("alpha__talk", {}).result
    assert mv.notice(NOTE).span("params").decode() == raw


def test_messages_outside_any_call_reach_the_only_session(serve):
    mv = serve(alpha=talker())
    mv.legacy()
    mv.ask("logging/setLevel", {"level": "debug"}).result
    mv["alpha"].run(message("warning", "idle"))
    assert mv.notice(NOTE).params["data"] == "idle"


@pytest.mark.parametrize("each", ["stdio-legacy", "http-legacy"], indirect=True)
def test_o_051_an_upstream_that_declares_logging_and_has_no_method(each):
    mv = each(alpha=talker(on={"logging/setLevel": [["error", -32601]]}),
              beta={"tools": ["echo"]})
    sent = mv.send("logging/setLevel", {"level": "warning"})
    if mv.is_http:
        assert sent.status == 200
    assert mv.answer(sent).result == {}
    mv["alpha"].wait_input("logging/setLevel")
    assert mv["beta"].inputs("logging/setLevel") == []
    # What comes all the same is held to the level by us.
    mv.call("alpha__talk", {}).result
    mv.fence("alpha")
    assert [n.params["level"] for n in mv.notices(NOTE)] == ["error"]


@pytest.mark.parametrize("params", [{"level": "loud"}, {"level": 3}, {}])
def test_a_level_that_is_none(serve, params):
    mv = serve(alpha=talker())
    mv.legacy()
    assert mv.ask("logging/setLevel", params).code == -32602
    assert mv["alpha"].inputs("logging/setLevel") == []


@pytest.mark.parametrize("each", ["stdio-modern", "http-modern"], indirect=True)
def test_o_051_modern_has_no_set_level(each):
    mv = each(alpha=talker())
    assert mv.ask("logging/setLevel", {"level": "info"}).code == -32601
    assert mv["alpha"].inputs("logging/setLevel") == []


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_a_modern_request_names_its_level(serve, upstream):
    mv = serve(alpha=talker(upstream))
    mv.modern().ask("tools/list").result
    key = mv.start_call("alpha__talk", {}, meta={META + "logLevel": "info"})
    answer = mv.answer(key)
    notes = mv.notices(NOTE)
    assert [n.params["level"] for n in notes] == ["info", "error"]
    assert all(mv.messages.index(n) < mv.messages.index(answer) for n in notes)


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_a_modern_request_without_a_level_gets_none(serve, upstream):
    mv = serve(alpha=talker(upstream))
    mv.modern().ask("tools/list").result
    mv.call("alpha__talk", {}).result
    mv.fence("alpha")
    assert mv.notices(NOTE) == []


def test_the_level_is_passed_to_a_modern_upstream(serve):
    mv = serve(alpha=talker("modern"))
    mv.modern().call("alpha__talk", {}, meta={META + "logLevel": "warning"}).result
    sent = mv["alpha"].inputs("tools/call")[0].msg["params"]["_meta"]
    assert sent[META + "logLevel"] == "warning"


def test_a_restarted_upstream_is_told_the_level_again(serve):
    mv = serve(alpha=talker(mcpvisor={"restart_base_ms": 20}))
    mv.legacy()
    mv.ask("logging/setLevel", {"level": "notice"}).result
    mv["alpha"].wait_input("logging/setLevel")
    mv["alpha"].run(["kill"])
    again = mv["alpha"].wait_input("logging/setLevel", 2)
    assert again.msg["params"]["level"] == "notice"


def test_the_level_of_a_modern_request_is_told_to_a_legacy_upstream(serve):
    mv = serve(alpha=talker())
    mv.modern().ask("tools/list").result
    for level in ("warning", "debug", "error"):
        mv.call("alpha__talk", {}, meta={META + "logLevel": level}).result
    told = [r.msg["params"]["level"] for r in mv["alpha"].inputs("logging/setLevel")]
    # The most verbose one that was wanted: there is no word for having enough.
    assert told == ["warning", "debug"]
    order = [r.msg["method"] for r in mv["alpha"].inputs() if r.msg.get("method") in (
        "logging/setLevel", "tools/call")]
    assert order[:2] == ["logging/setLevel", "tools/call"]
