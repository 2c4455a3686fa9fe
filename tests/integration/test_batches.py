# SPDX-License-Identifier: MIT
"""Arrays of messages: part of 2025-03-26 and of no other revision."""
import json

import pytest

PINGS = '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"1","method":"ping"}]'


def take_array(mv):
    return mv.take(lambda m: isinstance(m.msg, list), what="an array").msg


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_o_017_no_batches_in_other_revisions(serve, revision):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy(revision)
    mv.line(PINGS)
    got = mv.take(lambda m: "error" in m.msg)
    assert got.code == -32600 and got.msg.get("id") is None
    assert mv.ask("ping").result == {}


def modern_batch(c):
    return [c.build("tools/list") if hasattr(c, "build") else
            {"jsonrpc": "2.0", "id": k, "method": "tools/list", "params": {"_meta": c.meta()}}
            for k in (1, 2)]


def test_o_017_no_batches_for_modern_clients_on_stdio(serve):
    """A pipe that said no revision is of 2025-03-26: the array is one, its elements are not."""
    mv = serve(alpha={"tools": ["echo"]})
    mv.modern().tools()
    before = len(mv["alpha"].inputs())
    mv.line(json.dumps(modern_batch(mv)))
    got = take_array(mv)
    assert [(m["id"], m["error"]["code"]) for m in got] == [(1, -32600), (2, -32600)]
    mv.line("[]")
    assert mv.take(lambda m: isinstance(m.msg, dict) and "error" in m.msg).code == -32600
    assert len(mv["alpha"].inputs()) == before and mv.tools() == ["alpha__echo"]


def test_o_017_no_batches_for_modern_clients_over_http(serve_http):
    mv = serve_http(alpha={"tools": ["echo"]})
    c = mv.modern()
    for batch in (modern_batch(c), []):
        answer = c.post(batch, headers={"MCP-Protocol-Version": "2026-07-28"})
        assert answer.fault() == (400, -32600) and answer.message().msg.get("id") is None
    assert c.tools() == ["alpha__echo"]


def test_o_017_a_batch_is_answered_by_an_array(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy("2025-03-26")
    mv.line(PINGS)
    got = take_array(mv)
    assert {repr(m["id"]) for m in got} == {"1", "'1'"}
    assert all(m["result"] == {} for m in got)


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
def test_o_017_the_empty_batch_is_refused(serve, revision):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy(revision)
    mv.line("[]")
    assert mv.take(lambda m: isinstance(m.msg, dict) and "error" in m.msg).code == -32600
    assert mv.ask("ping").result == {}


def test_a_batch_of_calls_notices_and_rubbish(serve):
    mv = serve(alpha={"tools": ["echo"]}, beta={"tools": ["echo"]})
    mv.legacy("2025-03-26")
    mv.line('[{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"alpha__echo",'
            '"arguments":{"a":1.0}}},{"jsonrpc":"2.0","method":"notifications/foo"},7,'
            '{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"beta__echo",'
            '"arguments":{"b":2}}},{"jsonrpc":"2.0","id":13,"method":"no/such"}]')
    got = {m.get("id"): m for m in take_array(mv)}
    assert set(got) == {11, 12, 13, None}
    assert got[11]["result"]["content"][0]["text"] == '{"a":1.0}'
    assert got[12]["result"]["structuredContent"] == {"b": 2}
    assert got[13]["error"]["code"] == -32601
    assert got[None]["error"]["code"] == -32600


def test_a_batch_of_notifications_has_no_answer(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy("2025-03-26")
    mv.line('[{"jsonrpc":"2.0","method":"notifications/foo"},'
            '{"jsonrpc":"2.0","method":"notifications/initialized"}]')
    mv.fence()
    assert mv.pending == []


def test_a_cancelled_member_is_left_out(serve):
    mv = serve(alpha={"tools": ["echo", "hold"], "calls": {"hold": [["gate", "go"]]}})
    mv.legacy("2025-03-26")
    mv.line('[{"jsonrpc":"2.0","id":21,"method":"tools/call","params":{"name":"alpha__hold"}},'
            '{"jsonrpc":"2.0","id":22,"method":"ping"}]')
    mv["alpha"].wait_input("tools/call")
    mv.cancel(21)
    assert [m["id"] for m in take_array(mv)] == [22]


def test_an_upstream_of_2025_03_26_may_answer_in_a_batch(serve):
    noisy = '{"jsonrpc":"2.0","method":"notifications/message","params":' \
            '{"level":"error","data":"x"}}'
    mv = serve(alpha={
        "versions": ["2025-03-26"], "tools": ["echo", "array"],
        "calls": {"array": [["raw", "[" + noisy + ',{"jsonrpc":"2.0","id":${ID},"result":'
                                    '{"content":[]}}]']]}})
    mv.legacy()
    assert mv.call("alpha__array").result == {"content": []}


def test_an_array_from_a_newer_upstream_is_noise(serve):
    mv = serve(alpha={
        "tools": ["echo", "array"], "mcpvisor": {"call_ms": 300},
        "calls": {"array": [["raw", '[{"jsonrpc":"2.0","id":${ID},"result":{}}]']]}})
    mv.legacy()
    assert mv.call("alpha__array").code == -32603
    assert mv.call("alpha__echo", {}).result


def test_answers_that_are_too_much_for_one_array_are_errors_in_it(serve):
    big = {"pre": '{"jsonrpc":"2.0","id":${ID},"result":{"content":[{"type":"text","text":"',
           "repeat": "x", "n": 60_000_000, "post": '"}]}}'}
    mv = serve(alpha={"tools": ["big"], "calls": {"big": [["raw", big]]}})
    mv.legacy("2025-03-26")
    mv.line("[%s]" % ",".join(
        '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"alpha__big"}}' % i
        for i in (101, 102)))
    array = mv.take(lambda m: isinstance(m.msg, list), 30).msg
    assert sorted(one["id"] for one in array) == [101, 102]
    assert sorted("error" in one for one in array) == [False, True]
