# SPDX-License-Identifier: MIT
"""What is not one well-formed message of its kind is refused, and harms no other."""
import json

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


def whole(mv, params, method="tools/call"):
    """A message with those params, and what a modern client has to add to them.

    "@META@" stands for the _meta of a client of its era."""
    params = params.replace('"@META@"', json.dumps(mv.meta()))
    if mv.is_modern and '"_meta"' not in params:
        params = '{"_meta":%s%s' % (json.dumps(mv.meta()), params[1:] if params == "{}"
                                    else "," + params[1:])
    return '{"jsonrpc":"2.0","id":5,"method":"%s","params":%s}' % (method, params)


def refused_each(mv, raw, *codes, method="tools/call", **params):
    """Refused with one of the codes, 400 over HTTP; nothing went anywhere, and it serves on."""
    status, got = mv.refusal(raw, method, **params)
    assert got.code in codes and status in (None, 400), (raw, status, got)
    assert mv["alpha"].inputs("tools/call") == [] == mv["alpha"].inputs("resources/read")
    return got


NAMES_TWICE = [
    '{"name":"alpha__echo","name":"alpha__b","arguments":{}}',
    '{"name":"alpha__echo","n\\u0061me":"alpha__b"}', '{"name":"alpha__echo","NAME":"alpha__b"}',
    '{"name":"alpha__echo","_meta":"@META@","_meta":"@META@"}',
]
URIS_TWICE = ['{"uri":"a","uri":"b"}', '{"uri":"a","URI":"b"}']
ENVELOPES_TWICE = [
    '{"jsonrpc":"2.0","id":5,"id":6,"method":"tools/list","params":%s}',
    '{"jsonrpc":"2.0","id":5,"method":"tools/list","method":"tools/call","params":%s}',
    '{"jsonrpc":"2.0","id":5,"method":"tools/list","params":%s,"params":{}}',
    '{"jsonrpc":"2.0","id":5,"method":"tools/list","Method":"tools/list","params":%s}',
    '{"json\u017fpc":"2.0","jsonrpc":"2.0","id":5,"method":"x","m\u0065thod":"y","params":%s}',
]


def test_o_010_what_decides_the_route_must_be_there_once(each):
    mv = each(alpha={"tools": ["echo", "b"], "resources": ["a"]})
    mv.tools()
    for params in NAMES_TWICE:
        refused_each(mv, whole(mv, params), -32600, -32602, name="alpha__echo")
    for params in URIS_TWICE:
        refused_each(mv, whole(mv, params, "resources/read"), -32600, -32602,
                     method="resources/read", uri="a")
    for line in ENVELOPES_TWICE:
        refused_each(mv, line % json.dumps({"_meta": mv.meta()} if mv.is_modern else {}),
                     -32600, method="tools/list")
    assert mv.call("alpha__echo", {}).result


def test_escaped_keys_are_the_same_keys(mv):
    got = mv.ask("tools/call", '{"n\\u0061me":"alpha__\\u0065cho","argum\\u0065nts":{"a":1}}')
    assert got.result["content"]


def test_o_010_nan_is_not_json(each):
    mv = each(alpha={"tools": ["echo"]})
    mv.tools()
    for bad in ("NaN", "Infinity", "-Infinity", "+1", ".5", "1."):
        raw = whole(mv, '{"name":"alpha__echo","arguments":{"x":%s}}' % bad)
        refused_each(mv, raw, -32700, name="alpha__echo")


def test_o_010_doubles_deep_in_arguments_pass_as_bytes(each):
    mv = each(alpha={"tools": ["echo"]}).unchecked()
    args = '{"o":{"k":1,"k":2},"K":1,"k":2}'
    got = mv.ask("tools/call", '{"name":"alpha__echo","arguments":%s}' % args)
    assert got.text == args
    assert '"arguments":' + args in mv["alpha"].wait_input("tools/call").raw.decode()


def test_o_011_a_lone_surrogate_in_a_key(each):
    mv = each(alpha={"tools": ["echo"]})
    got = mv.ask("tools/call", '{"name":"nope","arguments":{"\\ud800":1}}')
    assert got.code == -32602
    got.raw.decode("utf-8")
    if not (mv.is_http and mv.is_modern):  # whose header could not name it
        got = mv.ask("tools/call", '{"name":"\\ud800","arguments":{}}')
        assert got.code == -32602
    assert b"\xed\xa0\x80" not in mv.seen()
    mv.ping()


def test_o_012_depth(each):
    mv = each(alpha={"tools": ["echo"]})
    for depth in (100, 900, 5000, 100000, 1000000):
        params = '{"x":%s0%s}' % ("[" * depth, "]" * depth)
        if depth < 1000:
            assert mv.ask("tools/list", {"x": json.loads(params)["x"]}).result["tools"]
        else:
            refused_each(mv, whole(mv, params, "tools/list"), -32600, -32700,
                         method="tools/list")
        assert mv.call("alpha__echo", {"d": depth}).result
        mv["alpha"].record.write_bytes(b"")


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_004_rubbish_before_initialize(serve, era):
    mv = serve(alpha={"tools": ["echo"]})
    mv.line("not json")
    got = mv.take(lambda m: "error" in m.msg)
    assert got.code == -32700 and got.msg.get("id") is None
    assert mv.speak(era).tools() == ["alpha__echo"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_004_rubbish_first_on_a_connection(serve_http, era):
    mv = serve_http(alpha={"tools": ["echo"]})
    c = mv.client()
    wire = c.wire()
    answer = c.post(None, body=b"not json\n", wire=wire)
    assert answer.fault() == (400, -32700) and answer.message().msg.get("id") is None
    c.era = era
    if era == "legacy":
        assert c.send("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                     "clientInfo": {"name": "a", "version": "1"}},
                      wire=wire).result["protocolVersion"] == "2025-11-25"
    assert c.send("tools/list", wire=wire).result["tools"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_003_lines_that_end_in_cr_lf(serve, era):
    mv = serve(alpha={"tools": ["echo"]})
    if era == "legacy":
        mv.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
                 b'"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\r\n')
        assert mv.answer(1).result
        mv.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\r\n\r\n\n')
    else:
        mv.modern()
    for key, end in ((2, b"\r\n"), (3, b"\r\r\n"), (4, b" \r\n\r\n\n")):
        params = {"name": "alpha__echo", "arguments": {"k": key}}
        if era == "modern":
            params["_meta"] = mv.meta()
        mv.write(json.dumps({"jsonrpc": "2.0", "id": key, "method": "tools/call",
                             "params": params}).encode() + end)
        assert mv.answer(key).result["structuredContent"] == {"k": key}
    assert not [r for r in mv["alpha"].inputs() if b"\r" in r.raw]


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
