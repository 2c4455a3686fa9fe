# SPDX-License-Identifier: MIT
"""Bytes pass through: definitions, arguments and results are not rebuilt."""
import pytest

ODD = (b'{ "type" : "object","properties":{"n":{"type":"number","default":1.0,'
       b'"maximum":9007199254740993,"minimum":-1E400,"examples":[1e400,-0,0.10,1.50]},'
       b'"\\u0061\\/":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":["string","null"]}},'
       b'"required":["n"],"additionalProperties":false,"x-vendor":{"b":1,"a":2,"b":3},'
       b'"patternProperties":{"^x\\\\d+$":{}},"if":{},"then":{},"title":"\\ud83d\\ude00"}')
RESULTS = [
    b'{"content":[{"type":"text","text":"x"}],"isError":true}',
    b'{"isError":true,"content":[]}',
    b'{"content":[]}',
    b'{"content":[],"isError":false}',
    b'{ "content" : [ ] , "structuredContent":{"a":1.0,"b":9007199254740993,"c":1e400,'
    b'"d":-0.0,"e":0.1,"f":12345678901234567890,"a":2} }',
    b'{"content":[{"type":"text","text":"\\u00e9\\/\\ud800 \xc3\xa9 \xf0\x9f\x98\x80"}]}',
    b'{"content":[{"type":"text","text":"t","annotations":{"audience":["user"]}},'
    b'{"type":"image","data":"AA==","mimeType":"image/png","annotations":{"priority":0.50}},'
    b'{"type":"audio","data":"AA==","mimeType":"audio/wav"},'
    b'{"type":"resource","resource":{"uri":"m:1","text":"r","_meta":{"k":1.0}}},'
    b'{"type":"resource_link","uri":"m:2","name":"two"},'
    b'{"type":"x-future","extra":{"deep":[1,2.50]}}]}',
    b'{"_meta":{"com.example/k":{"a":[1,2.50]}},"content":[{"type":"text","text":"m",'
    b'"_meta":{"com.example/k":{"a":[1,2.50]}}}],"unknown":[null,true]}',
    b'{"content":[],"structuredContent":[1,2]}',
    b'{"content":[],"structuredContent":null}',
]


TAIL = ',"resultType":"complete"}'


def answering(raws, era="legacy", **more):
    """Tools r0, r1, ... that answer those bytes."""
    return {"era": era, "tools": ["echo", *("r%d" % i for i in range(len(raws)))],
            "calls": {"r%d" % i: [["reply", {"hex": raw.hex()}]] for i, raw in enumerate(raws)},
            **more}


def as_seen(mv, raw):
    """A modern client of a legacy upstream gets one insertion, at the front."""
    return b'{"resultType":"complete",' + raw[1:] if mv.is_modern else raw


def test_o_037_results_come_back_byte_for_byte(each):
    mv = each(alpha=answering(RESULTS)).unchecked()
    for i, raw in enumerate(RESULTS):
        assert mv.call("alpha__r%d" % i, {}).span("result") == as_seen(mv, raw)


def test_o_037_results_of_a_modern_upstream_come_untouched(each):
    raws = [raw[:-1].rstrip() + TAIL.encode() for raw in RESULTS]
    mv = each(alpha=answering(raws, "modern")).unchecked()
    for i, raw in enumerate(raws):
        assert mv.call("alpha__r%d" % i, {}).span("result") == raw


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_038_an_error_result_is_a_result(each, upstream):
    tail = TAIL if upstream == "modern" else "}"
    raw = '{"content":[{"type":"text","text":"it broke"}],"isError":true' + tail
    mv = each(alpha=answering([raw.encode()], upstream))
    got = mv.call("alpha__r0", {})
    assert "error" not in got.msg and got.text == "it broke" and got.result["isError"] is True


def test_o_039_error_results_are_not_held_against_the_output_schema(each):
    raws = [b'{"content":[{"type":"text","text":"x"}],"isError":true' + extra + b"}"
            for extra in (b"", b',"structuredContent":{"error":"x"}')]
    tools = ['{"name":"r%d","inputSchema":{"type":"object"},"outputSchema":{"type":"object",'
             '"required":["n"],"properties":{"n":{"type":"number"}}}}' % i for i in range(2)]
    mv = each(alpha=answering(raws, tools=["echo", *tools]))
    assert len(mv.tools()) == 3
    for i, raw in enumerate(raws):
        assert mv.call("alpha__r%d" % i, {}).span("result") == as_seen(mv, raw)


@pytest.mark.parametrize("error", [
    b'{"code":-32000,"message":"mine","data":{"n":1.0,"n":2}}',
    b'{"message":"caf\\u00e9","code":-32603}',
    b'{"code":-32602,"message":"bad arguments","data":null,"more":[1e400]}',
    b'{"code":12345,"message":""}',
])
def test_errors_of_an_upstream_pass_byte_for_byte(serve, error):
    text = b'{"jsonrpc":"2.0","id":${ID},"error":' + error + b"}"
    mv = serve(alpha={"tools": ["echo", "odd"],
                      "calls": {"odd": [["raw", {"hex": text.hex()}]]}})
    mv.legacy()
    mv.check_schema = False
    assert mv.call("alpha__odd", {}).span("error") == error


ARGS = [
    '{"id":9223372036854775807,"n":-9007199254740993}',
    '{ "a" : 1.0 , "b":[1e400,-0,0.10] }',
    '{"\\u006eame":"n\\/a","\\ud800":1}',
    '{"x":{"deep":{"k":1,"k":2}}}',
    '{"name":"alpha__other","uri":"u","_meta":{"progressToken":1},"id":5,"method":"x"}',
    '{"t":"\u00e9 \U0001F600 \\u0000"}',
]


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_009_arguments_reach_the_upstream_as_written(each, upstream):
    mv = each(alpha={"era": upstream, "tools": ["echo"]}).unchecked()
    for n, args in enumerate(ARGS, 1):
        got = mv.ask("tools/call", '{"name":"alpha__echo","arguments":%s}' % args)
        assert got.span("result", "structuredContent").decode() == args
        raw = mv["alpha"].wait_input("tools/call", n).raw.decode()
        assert '"arguments":' + args in raw


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_013_absent_arguments_stay_absent(each, upstream):
    mv = each(alpha={"era": upstream, "tools": ["echo"]}).unchecked()
    for n, args in enumerate(("", ',"arguments":{}', ',"arguments":null'), 1):
        mv.ask("tools/call", '{"name":"alpha__echo"%s}' % args)
        raw = mv["alpha"].wait_input("tools/call", n).raw.decode()
        assert ("arguments" in raw) == bool(args)
        assert args in raw


def test_members_of_params_that_we_do_not_know_pass(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy()
    mv.ask("tools/call", '{"future":[1.0],"name":"alpha__echo","arguments":{},"_meta":'
                         '{"com.example/a":{"b":2.50}}}').result
    raw = mv["alpha"].inputs("tools/call")[0].raw.decode()
    assert '"future":[1.0]' in raw and '"com.example/a":{"b":2.50}' in raw


DEFINITIONS = {
    "tools": b'{"title":"T \\u00e9","name":"odd","inputSchema":' + ODD + b',"icons":[{"src":'
             b'"https://e.org/i.png"}],"annotations":{"readOnlyHint":true,"x":1.0},"_meta":'
             b'{"com.example/k":{"a":[1,2.50]}},"execution":{"taskSupport":"optional"},'
             b'"future":{"z":1,"a":2}}',
    "prompts": b'{"name":"odd","arguments":[{"name":"a","required":true,"x":1.0}],"_meta":'
               b'{"k":2.50},"title":"\\ud83d\\ude00"}',
    "resources": b'{"uri":"m:\\u00e91","name":"r","size":1.0,"annotations":{"priority":0.50},'
                 b'"_meta":{"k":[1e2]},"future":null}',
    "resourceTemplates": b'{"uriTemplate":"t:{x}","name":"t","mimeType":"a\\/b","_meta":{}}',
}


LIST_OF = {"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list",
           "resourceTemplates": "resources/templates/list"}


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_035_definitions_come_as_their_upstream_wrote_them(each, upstream):
    mv = each(alpha={"era": upstream, **{w: [raw.decode()] for w, raw in DEFINITIONS.items()}})
    mv.unchecked()
    for what, raw in DEFINITIONS.items():
        got = mv.ask(LIST_OF[what])
        want = raw.decode().replace('"name":"odd"', '"name":"alpha__odd"')
        assert got.span("result", what).decode() == "[" + want + "]"


def test_o_041_what_we_do_not_own_is_all_there(each):
    result = RESULTS[7]
    mv = each(alpha=answering([result], tools=["r0", DEFINITIONS["tools"].decode()]))
    tool = mv.unchecked().ask("tools/list").result["tools"][1]
    assert tool["_meta"] == {"com.example/k": {"a": [1, 2.5]}}
    assert {"title", "icons", "annotations", "execution", "future"} <= set(tool)
    got = mv.call("alpha__r0", {})
    assert got.span("result", "_meta") == b'{"com.example/k":{"a":[1,2.50]}}'
    assert got.span("result", "unknown") == b"[null,true]"
    assert got.result["content"][0]["_meta"] == {"com.example/k": {"a": [1, 2.5]}}


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_040_blocks_of_every_kind_stay_as_they_are(each, upstream):
    block = RESULTS[6][:-1] + (TAIL.encode() if upstream == "modern" else b"}")
    mv = each(alpha=answering([block], upstream)).unchecked()
    got = mv.call("alpha__r0", {})
    assert got.span("result", "content") in RESULTS[6]
    assert [b["type"] for b in got.result["content"]] == [
        "text", "image", "audio", "resource", "resource_link", "x-future"]


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_040_prompts_and_resources_keep_their_bytes(each, upstream):
    tail = ',"resultType":"complete"' if upstream == "modern" else ""
    prompt = '{"messages":[{"role":"user","content":{"type":"text","text":"\\u00e9"},' \
             '"x":1.0}],"description":"d"%s}' % tail
    if upstream == "modern":
        tail += ',"ttlMs":5,"cacheScope":"private"'
    read = '{"contents":[{"uri":"m:1","text":"a\\/b","_meta":{"n":1.50}}]%s}' % tail
    mv = each(alpha={"era": upstream, "prompts": ["p"], "resources": ["m:1"],
                     "on": {"prompts/get": [["reply", prompt]],
                            "resources/read": [["reply", read]]}})
    mv.ask("prompts/list").result
    got = mv.ask("prompts/get", {"name": "alpha__p"})
    assert got.raw.decode().count(prompt[1:]) == 1
    got = mv.ask("resources/read", {"uri": "m:1"})
    assert got.raw.decode().count(read[1:-1]) == 1
    if mv.is_modern:
        assert got.result["resultType"] == "complete"
        assert got.result["ttlMs"] >= 0
        assert got.result["cacheScope"] == "private"
    else:
        assert got.span("result").decode() == read


def test_input_required_is_a_word_like_any_other_in_a_legacy_result(serve):
    raw = '{"jsonrpc":"2.0","id":${ID},"result":{"content":[],"resultType":"input_required"}}'
    mv = serve(alpha={"tools": ["t"], "calls": {"t": [["raw", raw]]}})
    mv.legacy()
    assert mv.call("alpha__t").result == {"content": [], "resultType": "input_required"}
