# SPDX-License-Identifier: MIT
"""Every primitive of MCP across the bridge: what is done, and what has to come of it in
each pair of eras. bridge_table makes contrib/doc/bridging.md of it."""
import json
import sys

from bridge import CONFORMANCE, META, WATCHED
from upstream import wait_for

sys.path.insert(0, str(CONFORMANCE))
from fixture_bridge import URL  # noqa: E402 (path first)
from fixture_call import IMAGE, PNG, WAV  # noqa: E402
from fixture_offer import PROMPTS, RESOURCES, TEMPLATES, TOOLS  # noqa: E402

PAIRS = ["ll", "lm", "ml", "mm"]  # client, upstream: legacy, modern
CASES = []
PASSES = "passes"
HINTS = {"ttlMs", "cacheScope", "resultType"}
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
         "tracestate": "vendor=1", "client.example/key": {"deep": [1.0, None, "\u00e9"]}}


class Case:
    def __init__(self, title, expected, fn):
        self.title, self.fn = title, fn
        self.expected = dict(zip(PAIRS, expected if len(expected) == 4 else expected * 4))


def case(title, *expected):
    """expected: one text for all pairs, or one for each of PAIRS. The function returns
    what it saw in the same words, after it has compared the rest exactly."""
    def register(fn):
        CASES.append(Case(title, expected, fn))
        return fn
    return register


def same(got, want):
    assert got == want, "%r is not %r" % (got, want)


# -- what a server offers -------------------------------------------------------------


def fixed(table):
    return [d for d, _ in table.values() if "dynamic" not in d["name"]]


@case("tools/list", PASSES)
def tools_list(b):
    same(b.c.ask("tools/list").result["tools"], fixed(TOOLS))
    return PASSES


@case("prompts/list", PASSES)
def prompts_list(b):
    same(b.c.ask("prompts/list").result["prompts"], fixed(PROMPTS))
    return PASSES


@case("resources/list, resources/templates/list", PASSES)
def resources_list(b):
    same(b.c.ask("resources/list").result["resources"],
         [r for r in RESOURCES if r["name"] != "dynamic"])
    same(b.c.ask("resources/templates/list").result["resourceTemplates"], TEMPLATES)
    return PASSES


@case("ttlMs, cacheScope, resultType", "neither has them", "lists: left out", "added",
      PASSES)
def hints(b):
    seen = set()
    for method in ("tools/list", "prompts/list", "resources/list",
                   "resources/templates/list", "resources/read"):
        params = {"uri": "test://static-text"} if method == "resources/read" else {}
        got = b.c.ask(method, params).result
        if method == "resources/read" and (b.client_era, b.upstream_era) == (
                "legacy", "modern"):
            # Bytes of the upstream, in which an older client may find more members.
            assert HINTS <= set(got)
            continue
        assert not HINTS & set(got) or HINTS <= set(got), (method, got)
        seen.add(HINTS <= set(got))
        if HINTS <= set(got):
            assert got["ttlMs"] >= 0 and got["cacheScope"] in ("public", "private")
            same(got["resultType"], "complete")
    return {(True, True): PASSES, (True, False): "added", (False, True): "lists: left out",
            (False, False): "neither has them"}[seen == {True}, any(
                HINTS <= set(m["result"]) for m in b.up.record("out") if "result" in m)]


# -- calls ----------------------------------------------------------------------------


@case("tools/call: arguments, content, structuredContent", PASSES)
def call(b):
    args = {"n": [1, 2.5, None, {"k": False}], "s": "\u00e9\u4e16 \" \\ \u2028"}
    got = b.c.call("bridge_echo", args).result
    same(json.loads(got["content"][0]["text"]), args)
    same(got["structuredContent"], args)
    same(b.up.record("in", "tools/call")[-1]["params"]["arguments"], args)
    return PASSES


@case("tools/call: image, audio, embedded resource", PASSES)
def content(b):
    same(b.c.call("test_image_content").result["content"], [IMAGE])
    same(b.c.call("test_audio_content").result["content"],
         [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}])
    same(b.c.call("test_embedded_resource").result["content"][0]["resource"], {
        "uri": "test://embedded-resource", "mimeType": "text/plain",
        "text": "This is an embedded resource content."})
    return PASSES


@case("tools/call: isError", PASSES)
def is_error(b):
    got = b.c.call("test_error_handling").result
    same((got["isError"], got["content"][0]["text"]),
         (True, "This tool intentionally returns an error for testing"))
    return PASSES


@case("_meta: trace context and foreign keys, both ways", PASSES)
def meta(b):
    got = b.c.call("bridge_echo", {"n": 1}, meta=TRACE).result
    same(got["_meta"]["fixture.example/meta"], TRACE)
    return PASSES


@case("prompts/get", PASSES)
def prompts_get(b):
    got = b.c.ask("prompts/get", {"name": "test_prompt_with_arguments",
                                  "arguments": {"arg1": "a", "arg2": "b"}}).result
    same(got["messages"], [{"role": "user", "content": {
        "type": "text", "text": "Prompt with arguments: arg1='a', arg2='b'"}}])
    return PASSES


@case("resources/read: text, blob, by template", PASSES)
def resources_read(b):
    for uri, want in (
            ("test://static-text", {"mimeType": "text/plain",
             "text": "This is the content of the static text resource."}),
            ("test://static-binary", {"mimeType": "image/png", "blob": PNG})):
        same(b.c.ask("resources/read", {"uri": uri}).result["contents"],
             [{"uri": uri, **want}])
    got, = b.c.ask("resources/read", {"uri": "test://template/7/data"}).result["contents"]
    same(json.loads(got["text"])["id"], "7")
    return PASSES


@case("completion/complete", PASSES)
def complete(b):
    got = b.c.ask("completion/complete", {
        "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
        "argument": {"name": "arg1", "value": "par"}}).result
    same(got["completion"], {"values": ["paris", "park", "party"], "total": 3,
                             "hasMore": False})
    return PASSES


# -- while a call runs ----------------------------------------------------------------


@case("progress", PASSES)
def progress(b):
    got = b.c.call("test_tool_with_progress", meta={"progressToken": "mine"})
    same(got.notices("notifications/progress"), [
        {"progressToken": "mine", "progress": n, "total": 100} for n in (0, 50, 100)])
    return PASSES


@case("log messages, at a level", "passes", "level goes into `_meta`",
      "level is set by request", "passes")
def log(b):
    meta, before = None, len(b.up.record("in", "logging/setLevel"))
    if b.client_era == "modern":
        meta = {META + "logLevel": "info"}
    else:
        same(b.c.ask("logging/setLevel", {"level": "info"}).result, {})
    got = b.c.call("test_tool_with_logging", meta=meta)
    same([n["data"] for n in got.notices("notifications/message")],
         ["Tool execution started", "Tool processing data", "Tool execution completed"])
    told = b.up.record("in", "tools/call")[-1]["params"].get("_meta", {})
    by_meta = told.get(META + "logLevel") == "info"
    by_request = len(b.up.record("in", "logging/setLevel")) > before
    assert by_meta != by_request
    if by_meta == (b.client_era == "modern"):
        return "passes"
    return "level goes into `_meta`" if by_meta else "level is set by request"


# -- what changes ---------------------------------------------------------------------


def changed(b, trigger, method, look):
    before = look()
    b.c.call(trigger).result
    got = b.c.heard(method)
    if b.client_era == "modern":
        same(got["_meta"][META + "subscriptionId"], "listen")
    assert look() != before, "the list is the old one"
    b.c.call(trigger).result
    b.c.heard(method)
    same(look(), before)
    b.c.unheard()
    return PASSES


def names(b, method, member, key):
    return lambda: [x[key] for x in b.c.ask(method).result[member]]


@case("tools list_changed", PASSES)
def tools_changed(b):
    b.c.watch()
    return changed(b, "test_trigger_tool_change", "notifications/tools/list_changed",
                   names(b, "tools/list", "tools", "name"))


@case("prompts list_changed", PASSES)
def prompts_changed(b):
    return changed(b, "test_trigger_prompt_change", "notifications/prompts/list_changed",
                   names(b, "prompts/list", "prompts", "name"))


@case("resources list_changed", PASSES)
def resources_changed(b):
    return changed(b, "bridge_trigger_resource_change",
                   "notifications/resources/list_changed",
                   names(b, "resources/list", "resources", "uri"))


@case("resource subscription, resources/updated", PASSES, "becomes a listen",
      "becomes a subscribe", PASSES)
def updated(b):
    b.c.call("bridge_update").result
    got = b.c.heard("notifications/resources/updated")
    same(got["uri"], WATCHED)
    asked = {m["params"]["uri"] for m in b.up.record("in", "resources/subscribe")}
    listened = {u for m in b.up.record("in", "subscriptions/listen")
                for u in m["params"]["notifications"].get("resourceSubscriptions", [])}
    same(asked | listened, {WATCHED})
    assert not (asked and listened)
    if bool(asked) == (b.client_era == "legacy"):
        return PASSES
    return "becomes a listen" if listened else "becomes a subscribe"


@case("unsubscribing", PASSES, "ends the listen", "becomes an unsubscribe", PASSES)
def unsubscribe(b):
    listens = [m["id"] for m in b.up.record("in", "subscriptions/listen")]
    if b.client_era == "legacy":
        same(b.c.ask("resources/unsubscribe", {"uri": WATCHED}).result, {})
    elif b.front == "http":
        b.c.stream.wire.close()
    else:
        b.c.conn.cancel("listen")
    if b.upstream_era == "legacy":
        same(b.up.wait("in", "resources/unsubscribe")["params"]["uri"], WATCHED)
    else:
        # The one that had the URI ends; another one may have begun for what is left.
        wait_for(lambda: listens[-1] in ended(b), 5, "the listen ends")
    if b.client_era == "legacy":
        b.c.call("bridge_update").result
        b.c.unheard()
    if (b.client_era == "legacy") == (b.upstream_era == "legacy"):
        return PASSES
    return "ends the listen" if listens else "becomes an unsubscribe"


def ended(b):
    """Ids of what the upstream was told to give up, or has seen hung up."""
    return [m["params"]["requestId"] for m in b.up.record("in", "notifications/cancelled")] + [
        m["id"] for m in b.up.record("given up")]


# -- what a server asks ---------------------------------------------------------------

QUESTION = ("passes", "input_required becomes a request", "request becomes input_required",
            "passes")


def way_of(b, reply, n=1):
    """How the questions came to the client, and how the upstream had put them."""
    ways = {q[0] for q in reply.questions}
    assert len(reply.questions) == n and len(ways) == 1, reply.questions
    way = ways.pop()
    sent = [m["result"].get("resultType") == "input_required"
            for m in b.up.record("out") if "result" in m]
    put = "input_required" if any(sent) else "request"
    return "passes" if way == put else "%s becomes %s" % (
        put, "a request" if way == "request" else way)


def form(message, properties, *required):
    return {"mode": "form", "message": message, "requestedSchema": {
        "type": "object", "properties": properties, "required": list(required)}}


def accept(**content):
    return lambda _: {"action": "accept", "content": content}


@case("sampling/createMessage", *QUESTION)
def sampling(b):
    b.c.answers["sampling/createMessage"] = lambda _: {
        "role": "assistant", "model": "m-1", "stopReason": "endTurn",
        "content": {"type": "text", "text": "It is 42"}}
    got = b.c.call("test_sampling", {"prompt": "What is it?"})
    same(got.questions[0][1:], ("sampling/createMessage", {
        "messages": [{"role": "user", "content": {"type": "text", "text": "What is it?"}}],
        "maxTokens": 100}))
    same(got.text, "LLM response: It is 42")
    return way_of(b, got)


@case("elicitation/create, form", *QUESTION)
def elicitation(b):
    b.c.answers["elicitation/create"] = accept(username="u\u00e9", email="e@x")
    got = b.c.call("test_elicitation", {"message": "Who?"})
    same(got.questions[0][1:], ("elicitation/create", form("Who?", {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"}},
        "username", "email")))
    same(got.text, "User response: action=accept, content=%s" % json.dumps(
        {"username": "u\u00e9", "email": "e@x"}))
    return way_of(b, got)


@case("elicitation, declined", *QUESTION)
def declined(b):
    b.c.answers["elicitation/create"] = lambda _: {"action": "decline"}
    got = b.c.call("test_elicitation", {"message": "Who?"})
    same(got.text, "User response: action=decline, content={}")
    return way_of(b, got)


def without_id(params):
    return {k: v for k, v in params.items() if k != "elicitationId"}


@case("elicitation/create, URL", *QUESTION)
def elicitation_url(b):
    b.c.answers["elicitation/create"] = lambda _: {"action": "accept"}
    got = b.c.call("bridge_elicit_url")
    how, method, params = got.questions[0]
    same((method, without_id(params)), ("elicitation/create", {
        "mode": "url", "message": "Please visit", "url": URL}))
    # Only the older revision has the id, and there it is demanded.
    assert ("elicitationId" in params) == (b.client_era == "legacy"), params
    same(got.text, "Visited: action=accept, content={}")
    return way_of(b, got)


@case("notifications/elicitation/complete", PASSES, "the upstream's era has none",
      "the client's era has none", "neither era has it")
def elicitation_complete(b):
    got = b.c.call("bridge_elicit_url")
    sent = b.up.record("out", "notifications/elicitation/complete")
    came = got.notices("notifications/elicitation/complete")
    if b.client_era == "legacy" and sent:
        # One child of several calls does not say which of them it belongs to.
        while b.front == "http" and came != [sent[-1]["params"]]:
            came = [b.c.heard("notifications/elicitation/complete")]
        same(came, [sent[-1]["params"]])
        same(came[0]["elicitationId"], got.questions[0][2]["elicitationId"])
        return PASSES
    same(came, [])
    if b.client_era == "legacy":
        return "the upstream's era has none"
    return "the client's era has none" if sent else "neither era has it"


@case("-32042, a URL has to be visited first", PASSES, "input_required becomes a request",
      "becomes input_required", "input_required passes")
def need_url(b):
    b.c.answers["elicitation/create"] = lambda _: {"action": "accept"}
    first = b.c.call("bridge_need_url")
    if "error" in first.msg:
        same((first.error["code"], first.error["data"]), (-32042, {"elicitations": [{
            "mode": "url", "message": "Please log in", "url": URL,
            "elicitationId": "visit-1"}]}))
        same(b.c.call("bridge_need_url").text, "Thank you for the visit")
        return PASSES
    (how, method, params), = first.questions
    same((method, without_id(params)), ("elicitation/create", {
        "mode": "url", "message": "Please log in", "url": URL}))
    same(first.text, "Thank you for the visit")
    if b.upstream_era == "legacy":
        return "becomes " + how
    return "input_required " + ("becomes a request" if how == "request" else "passes")


@case("roots/list", *QUESTION)
def roots(b):
    b = b.with_roots()
    b.c.answers["roots/list"] = lambda _: {"roots": [
        {"uri": "file:///a%20b", "name": "a b"}, {"uri": "file:///c"}]}
    got = b.c.call("test_input_required_result_list_roots")
    same(got.questions[0][1], "roots/list")
    same(got.text, "Roots: file:///a%20b, file:///c")
    return way_of(b, got)


@case("three questions at once", *QUESTION)
def three(b):
    b = b.with_roots()
    b.c.answers["elicitation/create"] = accept(name="N")
    b.c.answers["sampling/createMessage"] = lambda _: {
        "role": "assistant", "model": "m-1", "content": {"type": "text", "text": "Hi"}}
    b.c.answers["roots/list"] = lambda _: {"roots": [{"uri": "file:///c"}]}
    got = b.c.call("test_input_required_result_multiple_inputs")
    same([c["text"] for c in got.result["content"]], ["Hello, N!", "Hi", "1 roots"])
    same({q[1] for q in got.questions},
         {"elicitation/create", "sampling/createMessage", "roots/list"})
    return way_of(b, got, 3)


@case("two questions, one after the other", *QUESTION)
def two(b):
    b.c.answers["elicitation/create"] = lambda p: {"action": "accept", "content": {
        k: k + "!" for k in p["requestedSchema"]["properties"]}}
    got = b.c.call("test_input_required_result_multi_round")
    same(got.text, 'First: action=accept, content={"name": "name!"}. '
                   'Second: action=accept, content={"color": "color!"}.')
    return way_of(b, got, 2)


@case("a question in prompts/get", *QUESTION)
def asking_prompt(b):
    b.c.answers["elicitation/create"] = accept(context="C")
    got = b.c.ask("prompts/get", {"name": "test_input_required_result_prompt"})
    same(got.result["messages"][0]["content"]["text"],
         'With action=accept, content={"context": "C"}')
    return way_of(b, got)


@case("a question in resources/read", *QUESTION)
def asking_resource(b):
    b.c.answers["elicitation/create"] = accept(name="R")
    got = b.c.ask("resources/read", {"uri": "test://asking"})
    same(got.result["contents"], [{
        "uri": "test://asking", "mimeType": "text/plain",
        "text": 'Read by action=accept, content={"name": "R"}'}])
    return way_of(b, got)


@case("roots list_changed", PASSES, "the upstream's era has none",
      "the client's era has none", "neither era has it")
def roots_changed(b):
    b = b.with_roots()
    if b.client_era == "modern":
        # Not even when it is sent.
        assert not b.up.record("in", "notifications/roots/list_changed")
        return ("the client's era has none" if b.upstream_era == "legacy"
                else "neither era has it")
    b.c.say({"method": "notifications/roots/list_changed"})
    if b.upstream_era == "legacy":
        b.up.wait("in", "notifications/roots/list_changed")
        return PASSES
    b.c.call("bridge_echo").result
    assert not b.up.record("in", "notifications/roots/list_changed")
    return "the upstream's era has none"


# -- errors ---------------------------------------------------------------------------


@case("an unknown tool", "-32602 from mcpvisor")
def unknown_tool(b):
    before = len(b.up.record("in", "tools/call"))
    got = b.c.call("no_such_tool").error
    same((got["code"], got["message"]), (-32602, "Unknown tool: no_such_tool"))
    same(len(b.up.record("in", "tools/call")), before)
    return "%d from mcpvisor" % got["code"]


@case("a resource that is not there", "-32002", "-32602 becomes -32002",
      "-32002 becomes -32602", "-32602")
def not_found(b):
    uri = "test://template/no/such/data"
    got = b.c.ask("resources/read", {"uri": uri}).error
    same(got["data"], {"uri": uri})
    sent = [m["error"]["code"] for m in b.up.record("out")
            if m.get("error", {}).get("data") == {"uri": uri}]
    if not sent:
        return str(got["code"]) + " from mcpvisor"
    same(len(sent), 1)
    return str(got["code"]) if sent[0] == got["code"] else "%d becomes %d" % (
        sent[0], got["code"])


@case("any other error: code, message, data", PASSES)
def other_error(b):
    got = b.c.call("test_x_mcp_header", {}).error
    same((got["code"], got["message"]), (-32602, "argument region must be a string"))
    return PASSES


@case("a capability that the client lacks", "the upstream's own error",
      "the upstream's own error", "-32021", "the upstream's own error")
def lacks(b):
    bare = b.without_capabilities()
    got = bare.c.call("test_sampling", {"prompt": "What is it?"})
    same(got.questions, [])
    if (b.client_era, b.upstream_era) != ("modern", "legacy"):
        same(got.error, [m["error"] for m in bare.up.record("out") if "error" in m][-1])
        return "the upstream's own error"
    same(got.error["data"], {"requiredCapabilities": {"sampling": {}}})
    return str(got.error["code"])


@case("an unknown method", "-32601 from mcpvisor")
def unknown_method(b):
    got = b.c.ask("no/such").error
    same(b.up.record("in", "no/such"), [])
    return "%d from mcpvisor" % got["code"]


@case("ping", "answered by mcpvisor", "answered by mcpvisor", "-32601", "-32601")
def ping(b):
    got = b.c.ask("ping")
    same(b.up.record("in", "ping"), [])
    if "error" in got.msg:
        return str(got.error["code"])
    same(got.result, {})
    return "answered by mcpvisor"


@case("cancelling", PASSES)
def cancel(b):
    sent = b.c.begin("tools/call", {"name": "bridge_wait", "arguments": {}},
                     meta={"progressToken": 1})
    same(b.c.next(sent)["method"], "notifications/progress")
    if b.front == "http" and b.client_era == "modern":
        sent.wire.close()
    elif b.front == "http":
        b.c.conn.cancel(b.c.conn.next_id)
        same(sent.next(), None)
    else:
        b.c.conn.cancel(sent)
    asked, = [m["id"] for m in b.up.record("in", "tools/call")
              if m["params"]["name"] == "bridge_wait"]
    wait_for(lambda: asked in ended(b), 5, "the upstream is told")
    return PASSES
