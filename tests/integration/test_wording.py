# SPDX-License-Identifier: MIT
"""Every error that mcpvisor writes itself: provoked, and held against one form."""
import json
import re

import pytest

from http_client import SESSION, VERSION
from mcp import META, MODERN
from ways import WAYS, start

HOLD = [["gate", "never"]]
LONG = "y" * 5000
EVIL = "a\x1b[31m\n\u0000\u0085" + LONG

# What tells whether, or how, to try again.
RETRY = re.compile(
    r"(; a retry (may|will not) help|\. Retrying unchanged will fail\.|check before a retry"
    r"|and a retry will not help|before a retry|Add it and call again\.|use another one"
    r"|send initialize first|send the request again( without it)?|initialize anew"
    r"|open a new stream|send one of data\.supported|to be asked"
    r"|Call the tool again without it\.)$")
# As the protocol has them: they name what there is not, and that is all.
PROTOCOLS = re.compile(r"^(Unknown (tool|prompt|resource|reference): |Resource not found: )")
CODES = {-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022, -32002}


def check_sentence(text, names=(), hides=()):
    """The one form: what failed, the constraint, the value, whether to try again."""
    assert text and len(text.encode()) <= 600, text
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", text), repr(text)
    assert not re.search(r"(?:^|[\s\"'(=:])/[a-z]+/|Traceback|\bat \w+ \(", text), text
    assert "(null)" not in text and "yyyy" * 17 not in text, text
    assert RETRY.search(text) or PROTOCOLS.match(text), text
    for name in names:
        assert name in text, (name, text)
    for secret in hides:
        assert secret not in text, text
    return text


def check(answer, names=(), hides=(), code=None):
    """An error, or a result that stands for one."""
    if "result" in answer.msg:
        assert answer.result["isError"] is True
        return check_sentence(answer.text, names, hides)
    error = answer.error
    assert error["code"] in CODES and code in (None, error["code"]), error
    data = error.get("data", {})
    if "reason" in data:
        assert isinstance(data["retryable"], bool), error
        assert data["retryable"] != bool(re.search("will (not help|fail)", error["message"]))
    return check_sentence(error["message"], names, hides)


# ---- what a client asks wrongly ----

# (method, params as text, what the sentence names); of every era.
WRONG = [
    ("nope/x", "{}", ["nope/x"]),
    ("no\\u001b[2J" + LONG, "{}", ["no"]),
    ("tools/call", '{"name":"nope"}', ["nope"]),
    ("tools/call", '{"name":%s}' % json.dumps(EVIL), ["a"]),
    ("tools/call", '{"name":7}', ["params.name", "a string"]),
    ("tools/call", "{}", ["params.name"]),
    ("prompts/get", '{"name":"nope"}', ["nope"]),
    ("prompts/get", '{"name":[]}', ["params.name"]),
    ("resources/read", '{"uri":"x:/%s"}' % LONG, ["x:/"]),
    ("resources/read", '{"uri":{}}', ["params.uri"]),
    ("completion/complete", '{"ref":{"type":"ref/prompt","name":"nope"}}', ["nope"]),
    ("completion/complete", '{"ref":7}', ["params.ref"]),
    ("tools/list", '{"cursor":"%s"}' % LONG, ["cursor"]),
    ("prompts/list", '{"cursor":7}', ["cursor", "7"]),
]
LEGACY = [
    ("logging/setLevel", '{"level":"%s"}' % LONG, ["level", "emergency"]),
    ("resources/subscribe", '{"uri":7}', ["uri", "7"]),
    ("resources/subscribe", '{"uri":"x:/"}', ["x:/"]),
    ("resources/unsubscribe", '{"uri":null}', ["uri"]),
    ("server/discover", "{}", ["server/discover"]),
    ("subscriptions/listen", '{"notifications":{}}', ["subscriptions/listen"]),
    ("tasks/get", '{"taskId":"x"}', ["tasks"]),
]
LISTENS = ["7", '{"toolsListChanged":7}', '{"resourceSubscriptions":"x"}',
           '{"resourceSubscriptions":["x",7]}']


def wrong(way, *requests):
    for method, params, names in requests:
        # Its header could not say what is no visible ASCII.
        if way.is_http and way.is_modern and ("\\u00" in method or "\\u00" in params):
            continue
        got = way.ask(method, params)
        # What is no string could not be mirrored either.
        check(got, [] if got.code == -32020 else names)


@pytest.mark.parametrize("way", WAYS)
def test_requests_that_are_wrong(serve, serve_http, way):
    alpha = {"era": "legacy", "tools": ["echo"], "prompts": ["p"],
             "resources": ["m:1"]}
    c = start(way, serve, serve_http, alpha=alpha).unchecked()
    c.ask("tools/list").result
    wrong(c, *WRONG)
    if not c.is_modern:
        wrong(c, *LEGACY)
        return
    wrong(c, ("initialize", "{}", ["initialize"]), ("ping", "{}", ["ping"]),
          ("logging/setLevel", "{}", ["logging/setLevel"]))
    for filter_ in LISTENS:
        check(c.ask("subscriptions/listen", '{"notifications":%s}' % filter_))
    check(c.ask("tools/call", '{"name":"alpha__echo","requestState":"x"}'), ["requestState"])


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_arguments_of_a_shape(serve_conf, era):
    mv = serve_conf(alpha={"tools": ["echo"]}, per={"alpha": {
        "tool": [{"tool": "echo", "fixed": {"owner": "secret"}}]}})
    mv.check_schema = False
    c = mv.speak(era)
    c.ask("tools/list").result
    for arguments, names in (([], ["arguments", "[]"]), ({"OWNER": 1}, ["OWNER"]),
                             (LONG, ["arguments"])):
        check(c.ask("tools/call", {"name": "alpha__echo", "arguments": arguments}), names,
              ["secret"], -32602)


META_WRONG = [
    ({META + "clientCapabilities": {}}, "protocolVersion"),
    ({META + "protocolVersion": MODERN}, "clientCapabilities"),
    ({META + "protocolVersion": 7, META + "clientCapabilities": {}}, "protocolVersion"),
    ({META + "protocolVersion": MODERN, META + "clientCapabilities": []}, "clientCap"),
    ({META + "protocolVersion": MODERN, META + "clientCapabilities": {},
      META + "clientInfo": "me"}, "clientInfo"),
    ({META + "protocolVersion": MODERN, META + "clientCapabilities": {},
      META + "logLevel": LONG}, "logLevel"),
    ({META + "protocolVersion": MODERN, META + "clientCapabilities": {},
      "progressToken": {}}, "progressToken"),
    ({META + "protocolVersion": "2099-01-01", META + "clientCapabilities": {}},
     "2099-01-01"),
]


def test_meta_and_bytes_that_are_wrong(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.check_schema = False
    for n, (meta, name) in enumerate(META_WRONG):
        mv.line(json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/list",
                            "params": {"_meta": meta}}))
        check(mv.answer(n), [name])
    for n, version in enumerate(['7', '""', "null"], 50):
        mv.line('{"jsonrpc":"2.0","id":%d,"method":"initialize","params":'
                '{"protocolVersion":%s}}' % (n, version))
        check(mv.answer(n), ["protocolVersion"])
    for raw in (b"{", b"7", b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b"[]",
                b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
                b'{"jsonrpc":"2.0","id":2,"method":"ping","id":3}',
                b"[" * 3000 + b"]" * 3000):
        mv.line(raw)
        check(mv.take(lambda m: "error" in m.msg))


def test_an_id_that_is_in_flight(serve):
    mv = serve(alpha={"tools": ["hold"], "calls": {"hold": HOLD}})
    mv.legacy()
    mv.call_id = mv.start_call("alpha__hold", id=9)
    mv["alpha"].wait_input("tools/call")
    mv.asked.setdefault("9", []).append("ping")
    mv.line('{"jsonrpc":"2.0","id":9,"method":"ping"}')
    check(mv.take(lambda m: "error" in m.msg), ["id"], code=-32600)
    mv.cancel(9)


def test_batches_that_are_wrong(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.check_schema = False
    mv.legacy("2025-03-26")
    mv.line('[{"jsonrpc":"2.0","id":"b","method":"initialize","params":{}}]')
    got = mv.take(lambda m: isinstance(m.msg, list)).msg[0]
    check_sentence(got["error"]["message"], ["initialize"])
    mv.line('[{"jsonrpc":"2.0","id":"c","method":"tools/list","params":{"_meta":%s}}]'
            % json.dumps(mv.meta()))
    got = mv.take(lambda m: isinstance(m.msg, list)).msg[0]
    check_sentence(got["error"]["message"], [MODERN])


# ---- what HTTP refuses ----

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HEADERS = [
    ({"Host": "evil.example"}, 403, "Host"),
    ({"Origin": "http://evil.example"}, 403, "Origin"),
    ({"Accept": "text/html"}, 406, "Accept"),
    ({"Content-Type": "text/plain"}, 415, "Content-Type"),
    ({VERSION: ["2025-11-25", "2025-11-25"]}, 400, VERSION),
    ({SESSION: "nope-secret"}, 404, "session"),
]


def test_http_refusals(serve_http):
    mv = serve_http(alpha={"tools": ["echo"]})
    mv.check_schema = False
    c = mv.legacy()
    for headers, status, name in HEADERS:
        got = c.post(PING, headers=headers)
        text = got.body().decode()
        assert got.status == status, text
        message = json.loads(text)["error"]["message"]
        check_sentence(message, hides=["evil.example", "nope-secret"])
        assert name.lower() in message.lower()
    got = c.post(PING, body=b"{")
    assert json.loads(got.body())["error"]["data"]["reason"] == "syntax"
    for body in (b"{", b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b"[]"):
        got = c.post(PING, body=body)
        check_sentence(json.loads(got.body())["error"]["message"])


def test_http_headers_that_do_not_mirror(serve_http):
    mv = serve_http(alpha={"tools": ["echo", "pick"], "defs": {"pick": {
        "inputSchema": {"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"}}}}}})
    mv.check_schema = False
    c = mv.modern()
    for headers, name in (({"Mcp-Method": "secret/head"}, "Mcp-Method"),
                          ({"Mcp-Method": None}, "Mcp-Method"),
                          ({VERSION: "2025-11-25"}, VERSION),
                          ({"Mcp-Name": "secret-name"}, "Mcp-Name"),
                          ({"Mcp-Name": None}, "Mcp-Name"),
                          ({"Mcp-Name": ["alpha__echo", "alpha__echo"]}, "Mcp-Name")):
        got = c.call("alpha__echo", {}, headers=headers)
        check(got, [name], hides=["secret"], code=-32020)


# ---- upstreams that do not answer ----

STDERR = 'Traceback: File "/home/me/server.py", line 1, password=hunter2\n'
SECRETS = ["hunter2", "/home", "Traceback", "server.py"]


@pytest.mark.parametrize("read_only", [False, True])
def test_upstreams_that_do_not_answer(each, read_only):
    hint = {"annotations": {"readOnlyHint": read_only}}
    defs = {n: dict(hint, inputSchema={"type": "object"}) for n in ("hold", "die", "odd")}
    c = each(alpha={
        "tools": [dict(name=n, **d) for n, d in defs.items()],
        "calls": {"hold": HOLD, "odd": [["raw", '{"jsonrpc":"2.0","id":${ID}}']],
                  "die": [["stderr", STDERR], ["exit", 3]]},
        "mcpvisor": {"call_ms": 300, "restart_base_ms": 60000}})
    c.unchecked()
    c.ask("tools/list").result
    for name in ("alpha__hold", "alpha__odd", "alpha__die"):
        text = check(c.call(name, {}), ["alpha"], SECRETS, -32603)
        assert ("may have had effects" in text) == (not read_only), text
    # It waits for its restart now: nothing is sent.
    text = check(c.call("alpha__hold", {}), ["alpha", "exited with status 3"], SECRETS)
    assert "effects" not in text


def test_commands_that_cannot_start(each):
    c = each(alpha={"command": "/nowhere/secret-folder/server", "args": ["--key=hunter2"],
                    "mcpvisor": {"start": "eager", "restart_limit": 1}},
             beta={"command": "no-such-command-anywhere"})
    c.ask("tools/list").result
    check(c.call("alpha__x", {}), hides=["nowhere", "hunter2", "PATH"])
    check(c.call("beta__x", {}), hides=["PATH", "/usr"])


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_remotes_that_fail(serve, remote, era):
    far = remote("modern", tools=["echo"])
    mv = serve(alpha={"url": far.url, "mcpvisor": {"connect_ms": 500}})
    mv.speak(era)
    mv.ask("tools/list").result
    far.odd = lambda h, r: far_fails(h)
    check(mv.call("alpha__echo", {}), ["alpha"])
    far.close()
    check(mv.call("alpha__echo", {}), ["alpha"])


def far_fails(h):
    h.send_response(503)
    h.send_header("Content-Length", "0")
    h.end_headers()
    return True


# ---- errors of upstreams ----

def test_a_tool_that_its_upstream_does_not_know(each):
    """-32601 would say that there is no tools/call; and its list may have changed."""
    c = each(alpha={"tools": ["bare", "full", "echo"], "calls": {
        "bare": [["error", -32601, "what is bare?"]],
        "full": [["error", -32601, "what is full?", {"mine": [1]}]]},
        "mcpvisor": {}})
    c.unchecked()
    c.ask("tools/list").result
    got = c.call("alpha__bare", {}).error
    assert got == {"code": -32602, "message": "what is bare?",
                   "data": {"upstreamCode": -32601}}
    got = c.call("alpha__full", {}).error
    assert got == {"code": -32602, "message": "what is full?", "data": {"mine": [1]}}
