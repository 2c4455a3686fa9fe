# SPDX-License-Identifier: MIT
"""What is not one well-formed message of its kind is refused, and harms no other."""
import pytest


@pytest.fixture
def mv(serve):
    mv = serve(alpha={"tools": ["echo", "b"]})
    mv.legacy()
    mv.tools()
    return mv


def refused(mv, line, *codes):
    mv.line(line)
    got = mv.take(lambda m: "error" in m.msg, what="a refusal")
    assert got.code in codes, got
    assert mv.ask("ping").result == {}
    assert mv["alpha"].inputs("tools/call") == []
    return got


def call(params):
    return '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":%s}' % params


@pytest.mark.parametrize("line", [
    "not json", "{", '{"jsonrpc":"2.0","id":5,"method":"ping"', '"', "nul",
    '{"jsonrpc":"2.0","id":5,"method":"ping"} x', "{'a':1}", '{"jsonrpc":"2.0",}',
    b'{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"a":"\xff"}}',
    b'{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"a":"\xed\xa0\x80"}}',
    b'{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"a":"\x01"}}',
    b'{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"a":"\x00"}}',
    '{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"a":01}}',
    '{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"a":"\\x"}}',
])
def test_what_is_not_json_is_a_parse_error(mv, line):
    refused(mv, line, -32700)


@pytest.mark.parametrize("line", [
    "7", '"ping"', "null", "{}", '{"id":5,"method":"ping"}',
    '{"jsonrpc":"1.0","id":5,"method":"ping"}', '{"jsonrpc":2.0,"id":5,"method":"ping"}',
    '{"jsonrpc":"2.0","id":5}', '{"jsonrpc":"2.0","id":5,"method":7}',
    '{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}',
    '{"jsonrpc":"2.0","id":5,"method":"ping","params":7}',
    '{"jsonrpc":"2.0","id":5,"method":"ping","result":{}}',
])
def test_what_is_no_envelope_is_an_invalid_request(mv, line):
    refused(mv, line, -32600)


def test_o_010_a_name_twice(mv):
    refused(mv, call('{"name":"alpha__echo","name":"alpha__b","arguments":{}}'),
            -32600, -32602)


@pytest.mark.parametrize("line", [
    '{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}',
    '{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/list"}',
    '{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{},"params":{}}',
    '{"jsonrpc":"2.0","id":5,"method":"ping","Method":"tools/list"}',
    call('{"name":"alpha__echo","n\\u0061me":"alpha__b"}'),
    call('{"name":"alpha__echo","NAME":"alpha__b"}'),
    call('{"name":"alpha__echo","_meta":{},"_meta":{}}'),
    '{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"a","uri":"b"}}',
    '{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"a","URI":"b"}}',
    '{"json\u017fpc":"2.0","jsonrpc":"2.0","id":5,"method":"x","m\u0065thod":"y"}',
])
def test_o_010_what_decides_the_route_must_be_there_once(mv, line):
    refused(mv, line, -32600)


def test_escaped_keys_are_the_same_keys(mv):
    got = mv.ask("tools/call", '{"n\\u0061me":"alpha__\\u0065cho","argum\\u0065nts":{"a":1}}')
    assert got.result["content"]


def test_o_010_nan_is_not_json(mv):
    for bad in ("NaN", "Infinity", "-Infinity", "+1", ".5", "1."):
        mv.line(call('{"name":"alpha__echo","arguments":{"x":%s}}' % bad))
        assert mv.take(lambda m: "error" in m.msg).code == -32700
    assert mv["alpha"].inputs("tools/call") == []


def test_o_010_doubles_deep_in_arguments_pass_as_bytes(mv):
    mv.line(call('{"name":"alpha__echo","arguments":{"o":{"k":1,"k":2}}}'))
    assert '{"o":{"k":1,"k":2}}' in mv.answer(5).text


def test_o_011_a_lone_surrogate_in_a_key(mv):
    mv.line(call('{"name":"nope","arguments":{"\\ud800":1}}'))
    got = mv.answer(5)
    assert got.code == -32602
    got.raw.decode("utf-8")
    mv.line(call('{"name":"\\ud800","arguments":{}}').replace('"id":5', '"id":6'))
    got = mv.answer(6)
    assert got.code == -32602
    assert b"\xed\xa0\x80" not in got.raw
    assert mv.ask("ping").result == {}


@pytest.mark.parametrize("depth", [100, 5000, 100000, 1000000])
def test_o_012_depth(mv, depth):
    mv.line('{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"x":%s0%s}}'
            % ("[" * depth, "]" * depth))
    got = mv.take(lambda m: m.msg.get("id") in (5, None) and "method" not in m.msg)
    if depth <= 100:
        assert got.result["tools"]
    else:
        assert got.code in (-32600, -32700)
    assert mv.call("alpha__echo", {}).result


def test_o_004_rubbish_before_initialize(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.line("not json")
    got = mv.take(lambda m: "error" in m.msg)
    assert got.code == -32700 and got.msg.get("id") is None
    assert mv.legacy().result
    assert mv.tools() == ["alpha__echo"]


def test_o_003_lines_that_end_in_cr_lf(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
             b'"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\r\n')
    assert mv.answer(1).result
    mv.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\r\n\r\n\n')
    mv.write(b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\r\n')
    assert mv.answer(2).result["tools"]


def test_a_response_that_nobody_asked_for_is_ignored(mv):
    mv.line('{"jsonrpc":"2.0","id":77,"result":{}}')
    mv.line('{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}')
    assert mv.ask("ping").result == {}
    assert mv.pending == []


@pytest.mark.parametrize("line", [
    '{"jsonrpc":"2.0","id":77,"result":7}', '{"jsonrpc":"2.0","id":77,"error":7}',
    '{"jsonrpc":"2.0","id":77,"result":{},"error":{"code":1,"message":"m"}}'])
def test_a_broken_response_is_not_answered(mv, line):
    # The answer could be taken for that of the client's own request 77.
    mv.line(line)
    mv.fence()
    assert mv.pending == []
