# SPDX-License-Identifier: MIT
"""Ids: the client's own come back exactly, an upstream's are ours."""
import json

import pytest

IDS = ['"init-1"', '"7"', "7", "0", "-1", '""', "9007199254740993", "-9223372036854775808",
       "123456789012345678901234567890", '"' + "x" * 200 + '"', '"\\u00e9\\/\\n"', '"é"']


def test_o_015_ids_come_back_with_value_and_type(each):
    mv = each(alpha={"tools": ["echo"]}).unchecked()
    for method, params in (("tools/list", "{}"), ("tools/call", '{"name":"alpha__echo"}'),
                           ("no/such", "{}")):
        for key in IDS:
            sent = mv.send_raw(method, params, key=key)
            assert mv.answer(sent).span("id").decode() == key


@pytest.mark.parametrize("key", ["init-1", 0, "7", 9007199254740993])
def test_o_015_the_handshake_keeps_its_id_too(serve, serve_http, key):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {},
             "clientInfo": {"name": "a", "version": "1"}}
    mv = serve(alpha={"tools": ["echo"]})
    got = mv.ask("initialize", hello, id=key)
    assert got.result["protocolVersion"] == "2025-06-18"
    got = serve_http(alpha={"tools": ["echo"]}).client().ask("initialize", hello, id=key)
    assert got.result and got.msg["id"] == key and type(got.msg["id"]) is type(key)


def test_o_016_an_id_that_is_none(each):
    mv = each(alpha={"tools": ["echo"]})
    mv.tools()
    before = len(mv["alpha"].inputs())
    for key in ("null", "true", "{}", "1.5", "[1]", "1e3"):
        for method in ("tools/list", "tools/call"):
            raw = json.dumps({"jsonrpc": "2.0", "id": "KEY", "method": method, "params": {
                "name": "alpha__echo", **({"_meta": mv.meta()} if mv.is_modern else {})}})
            status, got = mv.refusal(raw.replace('"KEY"', key), method, name="alpha__echo")
            assert got.code == -32600 and got.msg.get("id") is None and status in (None, 400)
    assert len(mv["alpha"].inputs()) == before


HELD = {"tools": ["echo", "hold"], "calls": {"hold": [
    ["gate", "go"], ["reply", '{"content":[{"type":"text","text":"x"}],'
                              '"structuredContent":${ARGS}}']]}}


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_014_equal_looking_ids_are_kept_apart(serve, era, upstream):
    mv = serve(alpha={**HELD, "era": upstream})
    mv.check_schema = upstream == era
    mv.speak(era)
    for key in (0, "0", 1, "1", -1):
        mv.start_call("alpha__hold", {"k": key}, id=key)
    mv["alpha"].wait_input("tools/call", 5)
    seen = [r.msg["id"] for r in mv["alpha"].inputs("tools/call")]
    assert len(set(map(repr, seen))) == 5
    mv["alpha"].open("go")
    for key in (0, "0", 1, "1", -1):
        assert mv.answer(key).result["structuredContent"] == {"k": key}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_014_two_clients_with_the_same_id(serve_http, connect, tmp_path, era):
    """Clients of each transport, all with the id 0 at once; each sees its own answer."""
    path = str(tmp_path / "s.sock")
    mv = serve_http(alpha=HELD, listen=("127.0.0.1:0", "unix:" + path))
    over_http = [mv.speak(era) for _ in range(2)]
    over_lines = [connect(path).speak(era) for _ in range(2)]
    held = [c.start_call("alpha__hold", {"tag": n}, id=0)
            for n, c in enumerate((over_http[0], over_lines[0]))]
    mv["alpha"].wait_input("tools/call", 2)
    # The second of each is answered first.
    assert over_http[1].call("alpha__echo", {"tag": 2}, id=0).result["structuredContent"] == {
        "tag": 2}
    assert over_lines[1].call("alpha__echo", {"tag": 3}, id=0).result["structuredContent"] == {
        "tag": 3}
    mv["alpha"].open("go")
    for n, got in enumerate((held[0].message(), over_lines[0].answer(held[1]))):
        assert got.result["structuredContent"] == {"tag": n} and got.msg["id"] == 0
    assert len({repr(r.msg["id"]) for r in mv["alpha"].inputs("tools/call")}) == 4


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
