# SPDX-License-Identifier: MIT
"""Ids: the client's own come back exactly, an upstream's are ours."""
import pytest

from mcp import wait_for

IDS = ['"init-1"', '"7"', "7", "0", "-1", '""', "9007199254740993", "-9223372036854775808",
       "123456789012345678901234567890", '"' + "x" * 200 + '"', '"\\u00e9\\/\\n"', '"é"']


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_015_ids_come_back_with_value_and_type(serve, era):
    mv = serve(alpha={"tools": ["echo"]})
    mv.check_schema = False
    mv.speak(era)
    import json
    meta = json.dumps(mv.meta()) if era == "modern" else "{}"
    for method, params in (("tools/list", '{"_meta":%s}' % meta),
                           ("tools/call", '{"name":"alpha__echo","_meta":%s}' % meta),
                           ("no/such", '{"_meta":%s}' % meta)):
        for key in IDS:
            before = len(mv.messages)
            mv.line('{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}'
                    % (key, method, params))
            wait_for(lambda: len(mv.messages) > before)
            assert mv.messages[before].span("id").decode() == key


def test_o_015_the_handshake_keeps_its_id_too(serve):
    mv = serve(alpha={"tools": ["echo"]})
    got = mv.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                "clientInfo": {"name": "a", "version": "1"}}, id="init-1")
    assert got.result["protocolVersion"] == "2025-06-18"


@pytest.mark.parametrize("key", ["null", "true", "{}", "1.5", "[1]", "1e3"])
@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
def test_o_016_an_id_that_is_none(serve, key, method):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy()
    before = len(mv["alpha"].inputs())
    mv.line('{"jsonrpc":"2.0","id":%s,"method":"%s","params":{"name":"alpha__echo"}}'
            % (key, method))
    got = mv.take(lambda m: "error" in m.msg)
    assert got.code == -32600 and got.msg.get("id") is None
    assert len(mv["alpha"].inputs()) == before


def test_o_014_equal_looking_ids_are_kept_apart(serve):
    mv = serve(alpha={"tools": ["echo", "hold"],
                      "calls": {"hold": [["gate", "go"], ["reply", '{"content":[{"type":'
                                         '"text","text":"x"}],"structuredContent":${ARGS}}']]}})
    mv.legacy()
    for key in (0, "0", 1, "1", -1):
        mv.start_call("alpha__hold", {"k": key}, id=key)
    mv["alpha"].wait_input("tools/call", 5)
    seen = [r.msg["id"] for r in mv["alpha"].inputs("tools/call")]
    assert len(set(map(repr, seen))) == 5
    mv["alpha"].open("go")
    for key in (0, "0", 1, "1", -1):
        assert mv.answer(key).result["structuredContent"] == {"k": key}


def test_an_id_in_flight_twice_is_refused(serve):
    mv = serve(alpha={"tools": ["echo", "hold"],
                      "calls": {"hold": [["gate", "go"], ["reply", {"content": []}]]}})
    mv.legacy()
    mv.start_call("alpha__hold", {"n": 1}, id=5)
    mv["alpha"].wait_input("tools/call")
    assert mv.call("alpha__echo", {"n": 2}, id=5).code == -32600
    mv["alpha"].open("go")
    assert mv.answer(5).result == {"content": []}
    assert len(mv["alpha"].inputs("tools/call")) == 1
    assert mv.call("alpha__echo", {"n": 3}, id=5).result["structuredContent"] == {"n": 3}


def test_answers_are_matched_by_id_not_by_order(serve):
    mv = serve(alpha={"tools": ["echo", "one", "two"],
                      "calls": {n: [["gate", n], ["reply", {"content": [], "_meta": {n: 1}}]]
                                for n in ("one", "two")}})
    mv.legacy()
    first, second = mv.start_call("alpha__one"), mv.start_call("alpha__two")
    mv["alpha"].open("two")
    assert mv.answer(second).result["_meta"] == {"two": 1}
    mv["alpha"].open("one")
    assert mv.answer(first).result["_meta"] == {"one": 1}


@pytest.mark.parametrize("wrong", ['"none"', "999999", "null", "1.5", "-7", '{"a":1}'])
def test_an_answer_with_a_wrong_id_is_dropped(serve, wrong):
    mv = serve(alpha={"tools": ["echo", "odd"],
                      "calls": {"odd": [["raw", '{"jsonrpc":"2.0","id":%s,"result":{}}' % wrong],
                                        ["reply", {"content": []}]]}})
    mv.legacy()
    assert mv.call("alpha__odd").result == {"content": []}
    assert mv.pending == []


def test_a_double_answer_is_dropped(serve):
    mv = serve(alpha={"tools": ["echo", "twice"],
                      "calls": {"twice": [["reply", {"content": [], "n": 1}],
                                          ["reply", {"content": [], "n": 2}]]}})
    mv.legacy()
    assert mv.call("alpha__twice").result["n"] == 1
    mv.fence("alpha")
    assert mv.pending == []


def test_an_answer_with_the_id_as_a_string_is_not_ours(serve):
    mv = serve(alpha={"tools": ["echo", "odd"], "mcpvisor": {"call_ms": 200},
                      "calls": {"odd": [["raw", '{"jsonrpc":"2.0","id":"${ID}x",'
                                                '"result":{"content":[]}}']]}})
    mv.legacy()
    assert mv.call("alpha__odd").error["data"]["reason"] == "timeout"
