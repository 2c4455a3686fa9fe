# SPDX-License-Identifier: MIT
"""Modern clients over HTTP: no session, headers that mirror the body, statuses."""
import json

import pytest

from http_client import SESSION, VERSION, mirror
from mcp import META, MODERN

ECHO = {"tools": ["echo"]}
PV, CAPS, INFO = META + "protocolVersion", META + "clientCapabilities", META + "clientInfo"


def test_discover_and_a_call(serve_http):
    mv = serve_http(alpha={"tools": ["echo"], "prompts": ["p"], "resources": ["m:1"],
                           "texts": {"m:1": "x"}, "instructions": "Be nice."})
    c = mv.modern()
    got = c.send("server/discover")
    assert got.status == 200 and got.header(SESSION) is None
    assert got.result["supportedVersions"] == [MODERN]
    assert "Be nice." in got.result["instructions"]
    assert c.tools() == ["alpha__echo"]
    assert c.call("alpha__echo", {"n": 1}).result["structuredContent"] == {"n": 1}
    assert c.ask("prompts/get", {"name": "alpha__p"}).result["messages"]
    assert c.ask("resources/read", {"uri": "m:1"}).result["contents"][0]["text"] == "x"
    assert c.ask("completion/complete", {"ref": {"type": "ref/prompt", "name": "alpha__p"},
                                         "argument": {"name": "a", "value": "b"}}).result


def test_discover_needs_no_tools_headers_of_others(serve_http):
    """Mcp-Name belongs to three methods; elsewhere it says nothing."""
    c = serve_http(alpha=ECHO).modern()
    assert c.send("server/discover", headers={"Mcp-Name": "whatever"}).result


# -- the order of checks ------------------------------------------------------------------


def broken(c, *faults):
    """A call with faults, and the headers of the sound one."""
    msg = c.build("tools/call", {"name": "alpha__echo", "arguments": {}})
    headers = c.standard(msg)
    meta = msg["params"]["_meta"]
    for fault in faults:
        if fault == "envelope":
            msg["jsonrpc"] = "1.0"
        elif fault == "meta":
            del meta[CAPS]
        elif fault == "header":
            headers["Mcp-Method"] = "tools/list"
        elif fault == "revision":
            headers[VERSION] = meta[PV] = "2099-01-01"
        elif fault == "method":
            msg["method"] = "foo/bar"
            if "header" not in faults:
                headers["Mcp-Method"] = "foo/bar"
        elif fault == "params":
            msg["params"]["name"] = "alpha__nope"
            headers["Mcp-Name"] = "alpha__nope"
    raw = json.dumps(msg).encode()
    return c.post(msg, body=raw[:-1] if "json" in faults else raw, headers=headers)


ORDER = [("json", 400, -32700), ("envelope", 400, -32600), ("meta", 400, -32602),
         ("header", 400, -32020), ("revision", 400, -32022), ("method", 404, -32601),
         ("params", 200, -32602)]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_order_of_checks(serve_http, first):
    mv = serve_http(alpha=ECHO)
    c = mv.modern()
    name, status, code = ORDER[first]
    assert broken(c, name).fault() == (status, code)
    for later in range(first + 1, len(ORDER)):
        assert broken(c, name, ORDER[later][0]).fault() == (status, code), ORDER[later]
    assert broken(c, *[o[0] for o in ORDER[first:]]).fault() == (status, code)
    assert mv["alpha"].inputs("tools/call") == []


@pytest.mark.parametrize("drop, code", [
    ([PV], -32602), ([CAPS], -32602), ([INFO], None), ([PV, CAPS], -32602),
    ([PV, INFO, CAPS], -32602),
])
def test_o_102_missing_meta_is_invalid_params(serve_http, drop, code):
    mv = serve_http(alpha=ECHO)
    c = mv.modern()
    msg = c.build("tools/call", {"name": "alpha__echo", "arguments": {}})
    for key in drop:
        del msg["params"]["_meta"][key]
    answer = c.post(msg)
    if code is None:
        assert answer.result
        return
    assert answer.fault() == (400, code)
    assert any(k in answer.message().error["message"] for k in drop)
    assert mv["alpha"].inputs("tools/call") == []


@pytest.mark.parametrize("meta", [None, {}, "absent"])
def test_o_102_no_meta_under_a_modern_header(serve_http, meta):
    c = serve_http(alpha=ECHO).modern()
    msg = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    if meta == "absent":
        msg.pop("params")
    assert c.post(msg, headers={VERSION: MODERN}).fault() == (400, -32602)


@pytest.mark.parametrize("key, value", [
    (PV, 7), (PV, None), (CAPS, []), (CAPS, "x"), (INFO, "x"), (META + "logLevel", "loud"),
])
def test_meta_of_a_wrong_type(serve_http, key, value):
    c = serve_http(alpha=ECHO).modern()
    answer = c.send("tools/list", meta={key: value}, headers={VERSION: MODERN})
    assert answer.fault() == (400, -32602)


@pytest.mark.parametrize("version", ["2099-01-01", "2025-11-25", "2024-11-05", "x"])
def test_o_102_an_unsupported_revision(serve_http, version):
    c = serve_http(alpha=ECHO).modern()
    answer = c.send("tools/list", meta={PV: version})
    assert answer.fault() == (400, -32022)
    data = answer.message().error["data"]
    assert data == {"supported": [MODERN], "requested": version}


@pytest.mark.parametrize("header", ["2025-11-25", "2099-01-01", None, "", [MODERN, MODERN]])
def test_o_102_header_and_meta_differ(serve_http, header):
    c = serve_http(alpha=ECHO).modern()
    answer = c.send("tools/list", headers={VERSION: header})
    code = -32600 if isinstance(header, list) else -32020
    assert answer.fault() == (400, code)


# -- methods --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [
    "foo/bar", "tools/cal", "", "initialize", "ping", "logging/setLevel",
    "resources/subscribe", "resources/unsubscribe", "notifications/initialized",
])
def test_o_043_methods_that_are_not_of_this_revision(serve_http, method):
    c = serve_http(alpha={**ECHO, "resources": ["m:1"], "logging": True}).modern()
    answer = c.send(method, {"uri": "m:1", "level": "info"},
                    headers={"Mcp-Method": mirror(method) if method else None})
    if method == "":
        assert answer.status == 400  # a header cannot say it
    else:
        assert answer.fault() == (404, -32601)


@pytest.mark.parametrize("method", ["foo/bar", "server/discover", "subscriptions/listen"])
def test_o_043_methods_that_no_legacy_session_has(serve_http, method):
    c = serve_http(alpha=ECHO).legacy()
    assert c.send(method, {"notifications": {}}).fault() == (200, -32601)
    assert c.http("POST", {**c.base(), "Content-Type": "application/json"},
                  b'{"jsonrpc":"2.0","method":"notifications/foo"}').status == 202


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("name", ["alpha__nope", "nope", "__", "alpha__", "", 7, None])
def test_o_042_unknown_tools(serve_http, era, name):
    mv = serve_http(alpha=ECHO)
    c = mv.speak(era)
    params = {} if name is None else {"name": name}
    answer = c.send("tools/call", {**params, "arguments": {}})
    if era == "modern" and name == "":
        assert answer.fault() in ((400, -32020), (200, -32602))
    elif era == "modern" and name == 7:
        assert answer.status == 400 and answer.code in (-32020, -32602)
    else:
        assert answer.code == -32602 and answer.status in (200, 400)
    assert mv["alpha"].inputs("tools/call") == []


def test_a_batch_is_refused(serve_http):
    c = serve_http(alpha=ECHO).modern()
    both = [c.build("tools/list"), c.build("tools/list")]
    for version in (MODERN, "2099-01-01", "2025-11-25", "2025-06-18", "2024-11-05"):
        assert c.post(both, headers={VERSION: version}).fault() == (400, -32600)
    assert c.post([], headers={VERSION: MODERN}).fault() == (400, -32600)
    # Modern elements have no batch to be in, whatever is around them.
    inside = c.post(both, headers={VERSION: "2025-03-26"}).message().msg
    assert [one["error"]["code"] for one in inside] == [-32600, -32600]


@pytest.mark.parametrize("key", ["null", "true", "{}", "1.5", "[1]"])
@pytest.mark.parametrize("era", ["legacy", "modern", "nobody"])
def test_o_016_ids_that_are_none(serve_http, era, key):
    mv = serve_http(alpha=ECHO)
    c = mv.client() if era == "nobody" else mv.speak(era)
    msg = c.build("tools/call", {"name": "alpha__echo", "arguments": {}}, id="ID")
    raw = json.dumps(msg).replace('"ID"', key).encode()
    assert c.post(msg, body=raw).fault() == (400, -32600)
    assert mv["alpha"].inputs("tools/call") == []


def test_a_missing_capability_has_a_status(serve_http):
    mv = serve_http(alpha={"tools": ["ask"], "calls": {"ask": [["error", -32042, "look", {
        "elicitations": [{"mode": "url", "elicitationId": "1", "url": "https://a.example/",
                          "message": "m"}]}]]}})
    c = mv.modern()
    answer = c.start_call("alpha__ask", {})
    assert answer.fault() == (400, -32021)
    assert answer.message().error["data"]["requiredCapabilities"]
    got = c.start_call("alpha__ask", {}, meta={CAPS: {"elicitation": {"url": {}}}})
    assert got.status == 200 and got.result["resultType"] == "input_required"


# -- Mcp-Method and Mcp-Name ------------------------------------------------------------------


@pytest.mark.parametrize("headers, status", [
    ({}, 200),
    ({"Mcp-Method": None}, 400),
    ({"Mcp-Method": "tools/list"}, 400),
    ({"Mcp-Method": "Tools/Call"}, 400),
    ({"Mcp-Method": ["tools/call", "tools/call"]}, 400),
    ({"Mcp-Method": "=?base64?dG9vbHMvY2FsbA==?="}, 400),
    ({"Mcp-Method": None, "mcp-method": "tools/call"}, 200),
    ({"Mcp-Name": None}, 400),
    ({"Mcp-Name": "alpha__nope"}, 400),
    ({"Mcp-Name": "ALPHA__ECHO"}, 400),
    ({"Mcp-Name": ["alpha__echo", "alpha__echo"]}, 400),
    ({"Mcp-Name": "=?base64?YWxwaGFfX2VjaG8=?="}, 200),
    ({"Mcp-Name": "=?BASE64?YWxwaGFfX2VjaG8=?="}, 400),
    ({"Mcp-Name": "=?base64?YWxwaGFfX2VjaG8?="}, 400),
    ({"Mcp-Name": "=?base64?!!!?="}, 400),
    ({"Mcp-Name": "=?base64??="}, 400),
    ({"Mcp-Name": "=?base64?bm9wZQ==?="}, 400),
    ({"Mcp-Name": None, "MCP-NAME": "alpha__echo"}, 200),
    ({"Mcp-Name": "  alpha__echo  "}, 200),
])
def test_the_standard_headers(serve_http, headers, status):
    mv = serve_http(alpha=ECHO)
    answer = mv.modern().start_call("alpha__echo", {"a": 1}, headers=headers)
    assert answer.status == status
    if status == 200:
        assert answer.result["structuredContent"] == {"a": 1}
    else:
        assert answer.code == -32020
        name = next(iter(headers))
        assert name.lower() in answer.message().error["message"].lower()
        assert mv["alpha"].inputs("tools/call") == []


@pytest.mark.parametrize("uri", [
    "file:///a b.txt", "m:\u00e9\u4e16\u754c", " m:padded ", "=?base64?literal?=", "m:1",
    "m:tab\there",
])
def test_a_uri_in_mcp_name(serve_http, uri):
    mv = serve_http(alpha={"tools": ["echo"], "resources": [uri], "texts": {uri: "here"}})
    c = mv.modern()
    c.ask("resources/list").result
    got = c.send("resources/read", {"uri": uri})
    assert got.result["contents"][0]["text"] == "here"
    wrong = c.send("resources/read", {"uri": uri}, headers={"Mcp-Name": mirror(uri + "x")})
    assert wrong.fault() == (400, -32020)


def test_a_prompt_in_mcp_name(serve_http):
    c = serve_http(alpha={"tools": ["echo"], "prompts": ["p"]}).modern()
    assert c.send("prompts/get", {"name": "alpha__p"}).result
    assert c.send("prompts/get", {"name": "alpha__p"},
                  headers={"Mcp-Name": None}).fault() == (400, -32020)


# -- Mcp-Param --------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {
    "region": {"type": "string", "x-mcp-header": "Region"},
    "n": {"type": "integer", "x-mcp-header": "N"},
    "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
    "in": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}},
    "free": {"type": "string"}}}
QUERY = {"tools": ["echo", {"name": "query", "inputSchema": SCHEMA}]}


@pytest.mark.parametrize("args, params, status", [
    ({}, {}, 200),
    ({"region": "us"}, {"Region": "us"}, 200),
    ({"region": "us"}, {"REGION": "us"}, 200),
    ({"region": "us"}, {}, 400),
    ({"region": "us"}, {"Region": "eu"}, 400),
    ({"region": "us"}, {"Region": "US"}, 400),
    ({"region": "us"}, {"Region": ["us", "us"]}, 400),
    ({}, {"Region": "us"}, 400),
    ({"region": None}, {}, 200),
    ({"region": None}, {"Region": "null"}, 400),
    ({"region": ""}, {"Region": ""}, 200),
    ({"region": ""}, {}, 400),
    ({"region": "Hello, \u4e16\u754c"}, {"Region": "=?base64?SGVsbG8sIOS4lueVjA==?="}, 200),
    ({"region": " padded "}, {"Region": "=?base64?IHBhZGRlZCA=?="}, 200),
    ({"region": "line1\nline2"}, {"Region": "=?base64?bGluZTEKbGluZTI=?="}, 200),
    ({"region": "=?base64?literal?="},
     {"Region": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}, 200),
    ({"region": "=?base64?literal?="}, {"Region": "=?base64?literal?="}, 400),
    ({"region": "us"}, {"Region": "=?base64?dXM=?="}, 200),
    ({"region": "us"}, {"Region": "=?base64?dXM?="}, 400),
    ({"region": "us"}, {"Region": "\u00fcs"}, 400),
    ({"n": 42}, {"N": "42"}, 200),
    ({"n": 42}, {"N": "42.0"}, 200),
    ({"n": 42}, {"N": "43"}, 400),
    ({"n": 42}, {"N": "0x2a"}, 400),
    ({"n": -7}, {"N": "-7"}, 200),
    ({"dry": True}, {"Dry-Run": "true"}, 200),
    ({"dry": True}, {"Dry-Run": "True"}, 400),
    ({"dry": False}, {"Dry-Run": "true"}, 400),
    ({"in": {"a": "x"}}, {"A": "x"}, 200),
    ({"in": {"a": "x"}}, {}, 400),
    ({"in": {}}, {}, 200),
    ({"in": "text"}, {}, 200),
    ({"free": "x"}, {"Free": "y", "Other": "z"}, 200),
    ({"region": "us", "n": 1, "dry": False, "in": {"a": "b"}},
     {"Region": "us", "N": "1", "Dry-Run": "false", "A": "b"}, 200),
])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_parameters_in_headers(serve_http, era, args, params, status):
    mv = serve_http(alpha={**QUERY, "era": era})
    c = mv.modern()
    c.ask("tools/list").result
    answer = c.start_call("alpha__query", args,
                          headers={"Mcp-Param-" + k: v for k, v in params.items()})
    assert answer.status == status, answer.message()
    if status == 200:
        assert answer.result["structuredContent"] == args
    else:
        assert answer.code == -32020
        assert mv["alpha"].inputs("tools/call") == []


def test_o_010_arguments_that_headers_mirror_must_be_there_once(serve_http):
    mv = serve_http(alpha=QUERY)
    c = mv.modern()
    c.ask("tools/list").result
    msg = c.build("tools/call", {"name": "alpha__query", "arguments": {"region": "us"}}, id=5)
    raw = json.dumps(msg)
    for twice in (raw[:-2] + ', "arguments": {"region": "eu"}}}',
                  raw.replace('"us"', '"us", "region": "eu"')):
        answer = c.post(msg, body=twice.encode(), headers={"Mcp-Param-Region": "us"})
        assert answer.fault() == (400, -32020), twice
    assert mv["alpha"].inputs("tools/call") == []


def test_parameters_in_headers_are_nothing_to_legacy_clients(serve_http):
    mv = serve_http(alpha=QUERY)
    c = mv.legacy()
    assert c.call("alpha__query", {"region": "us"}).result
    assert c.start_call("alpha__query", {"region": "us"},
                        headers={"Mcp-Param-Region": "eu"}).result


BAD = {"empty": {"type": "string", "x-mcp-header": ""},
       "space": {"type": "string", "x-mcp-header": "Bad Name"},
       "crlf": {"type": "string", "x-mcp-header": "X\r\nEvil: 1"},
       "number": {"type": "number", "x-mcp-header": "N"},
       "text": {"type": "string", "x-mcp-header": 7},
       "items": {"type": "array", "items": {"type": "string", "x-mcp-header": "I"}}}


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_105_tools_with_unusable_headers_are_left_out_for_modern_http_alone(serve_http,
                                                                              upstream):
    """Of the record: what our own endpoint shows of a child's tools."""
    tools = [{"name": k, "inputSchema": {"type": "object", "properties": {"a": v}}}
             for k, v in BAD.items()]
    tools.append({"name": "twice", "inputSchema": {"type": "object", "properties": {
        "a": {"type": "string", "x-mcp-header": "A"},
        "b": {"type": "string", "x-mcp-header": "a"}}}})
    mv = serve_http(alpha={"era": upstream, "tools": ["echo", *tools, QUERY["tools"][1]]})
    every = ["alpha__echo", *("alpha__" + t["name"] for t in tools), "alpha__query"]
    c = mv.modern()
    got = c.ask("tools/list").result
    assert [t["name"] for t in got["tools"]] == ["alpha__echo", "alpha__query"]
    assert mv.legacy().tools() == every
    for name in every[1:-1]:
        mv.wait_log("tool left out name=.*%s" % name[7:])
    answer = c.start_call("alpha__query", {"region": "us"}, headers={"Mcp-Param-Region": "us"})
    assert answer.result["structuredContent"] == {"region": "us"}
    assert "Evil" not in "".join(n for n, _ in answer.head[1])


def test_cancelled_of_a_modern_client_is_accepted_and_means_nothing(serve_http):
    """Its way to cancel is to close the stream; ids of others may be the same."""
    mv = serve_http(alpha={"tools": ["hold"], "calls": {"hold": [
        ["gate", "go"], ["reply", {"content": []}]]}})
    a, b = mv.modern(), mv.modern()
    answer = a.start_call("alpha__hold", {}, id=1)
    mv["alpha"].wait_input("tools/call")
    b.cancel(1)
    mv.fence()
    mv["alpha"].open("go")
    assert answer.result["content"] == []
    assert mv["alpha"].inputs("notifications/cancelled") == []


def test_the_same_id_twice_at_once(serve_http):
    mv = serve_http(alpha={"tools": ["hold"], "calls": {"hold": [
        ["gate", "go"], ["reply", '{"content":[{"type":"text","text":${NAME}}],'
                                  '"structuredContent":${ARGS}}']]}})
    c = mv.modern()
    answers = [c.start_call("alpha__hold", {"n": n}, id="same") for n in range(5)]
    mv["alpha"].wait_input("tools/call", 5)
    mv["alpha"].open("go")
    assert [a.result["structuredContent"]["n"] for a in answers] == list(range(5))
