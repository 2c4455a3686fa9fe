# SPDX-License-Identifier: MIT
"""Plain HTTP stacks as clients of both eras: the whole scenario on one daemon."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import interop_env as env
from interop_http import HttpWire, Serve, call_body, until
from interop_stacks import STACKS
from test_interop_clients import TOOLS

LONG = "everything__trigger-long-running-operation"
UPDATED = "notifications/resources/updated"
PROGRESS = "notifications/progress"


@pytest.fixture(scope="module")
def server(make_run):
    with Serve(make_run("http-stacks")) as s:
        yield s


@pytest.fixture(scope="module", params=[
    (stack, modern) for stack in STACKS for modern in (False, True)],
    ids=lambda p: f"{p[0]}-{'modern' if p[1] else 'legacy'}")
def wire(request, server):
    stack, modern = request.param
    w = HttpWire(STACKS[stack](server.url), modern)
    w.run = server.run
    w.tag = f"{stack}-{modern}"
    w.greeting = w.hello()
    yield w
    if not modern:
        assert w.delete() == 204
        assert w.send("ping").status == 404
    w.stack.close()


def text_of(result):
    return result["content"][0]["text"]


def test_hello(wire):
    if wire.modern:
        assert "2026-07-28" in wire.greeting["supportedVersions"]
    else:
        assert wire.greeting["protocolVersion"] == "2025-11-25"
        assert 0 < len(wire.session) <= 512
        assert wire.session.isascii() and wire.session.isprintable()


def test_lists(wire):
    tools = [json.loads(t)["name"] for t in wire.list("tools/list", "tools")]
    assert TOOLS <= set(tools)
    assert {name.split("__")[0] for name in tools} == set(env.UPSTREAMS)
    prompts = [json.loads(p)["name"] for p in wire.list("prompts/list", "prompts")]
    assert {"everything__args-prompt", "modern__plan"} <= set(prompts)
    uris = [json.loads(r)["uri"] for r in wire.list("resources/list", "resources")]
    assert {"memory://knowledge-graph", "interop://counter"} <= set(uris)
    templates = wire.list("resources/templates/list", "resourceTemplates")
    assert "interop://item/{id}" in [json.loads(t)["uriTemplate"] for t in templates]


def test_calls_a_tool_of_each(wire):
    assert text_of(wire.call("everything__echo", {"message": "ü"})) == "Echo: ü"
    path = str(wire.run.files / "hello.txt")
    result = wire.call("filesystem__read_text_file", {"path": path})
    assert text_of(result) == "hello\nworld\n"
    result = wire.call("memory__create_entities", {"entities": [
        {"name": wire.tag, "entityType": "client", "observations": []}]})
    assert result["structuredContent"]["entities"][0]["name"] == wire.tag
    result = wire.call("sequential-thinking__sequentialthinking", {
        "thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1,
        "totalThoughts": 1})
    assert result["structuredContent"]["thoughtHistoryLength"] >= 1
    result = wire.call("modern__greet", {"name": "Bo"})
    assert result["structuredContent"]["letters"] == 2
    assert wire.call("modern__fail", {"why": "x"})["isError"] is True


def test_what_is_not_there(wire):
    for name in ("everything__none", "nobody__echo", "bücher__lesen"):
        error = wire.error("tools/call", call_body(name, {}))
        assert error["code"] == -32602
        assert error["message"] == f"Unknown tool: {name}"
    error = wire.error("resources/read", '"uri":"nothing://here"')
    assert error["code"] == (-32602 if wire.modern else -32002)
    answer = wire.send("none/such")
    assert json.loads(answer.reply()["error"])["code"] == -32601
    assert answer.status == (404 if wire.modern else 200)


def test_reads_gets_and_completes(wire):
    read = json.loads(wire.result("resources/read", '"uri":"interop://item/3"'))
    assert json.loads(read["contents"][0]["text"]) == {"id": "3"}
    read = json.loads(wire.result("resources/read", '"uri":"memory://knowledge-graph"'))
    assert "entities" in json.loads(read["contents"][0]["text"])
    got = json.loads(wire.result("prompts/get", '"name":"everything__args-prompt",'
                                 '"arguments":{"city":"Bonn"}'))
    assert "Bonn" in got["messages"][0]["content"]["text"]
    done = json.loads(wire.result(
        "completion/complete", '"ref":{"type":"ref/prompt","name":"modern__plan"},'
        '"argument":{"name":"language","value":"c"}'))
    assert done["completion"]["values"] == ["c", "clojure", "cobol"]


@pytest.mark.parametrize("tool, arguments", [
    (LONG, {"duration": 0.3, "steps": 3}), ("modern__count", {"to": 3})])
@pytest.mark.parametrize("token", ("0", '"p"'))
def test_progress_comes_on_the_stream_of_its_call(wire, tool, arguments, token):
    answer = wire.send("tools/call", call_body(tool, arguments),
                       f'"progressToken":{token}')
    assert answer.status == 200 and answer.streamed
    assert "result" in answer.reply()
    seen = [json.loads(m)["params"] for m in answer.seen[:-1]]
    assert [p["progress"] for p in seen] == [1, 2, 3]
    assert {json.dumps(p["progressToken"]) for p in seen} == {token}


def test_a_quick_answer_is_plain_json(wire):
    answer = wire.send("tools/call", call_body("modern__greet", {"name": "x"}))
    assert answer.status == 200 and not answer.streamed
    assert answer.headers["content-type"] == "application/json"
    assert "transfer-encoding" not in answer.headers
    assert "content-encoding" not in answer.headers
    assert "result" in answer.reply()


def started(wire, tool, arguments):
    """A call that is known to run."""
    answer = wire.send("tools/call", call_body(tool, arguments),
                       f'"progressToken":"{wire.tag}"')
    answer.notice(PROGRESS, lambda p: p["progressToken"] == wire.tag)
    return answer


def give_up(wire, answer):
    if wire.modern:
        answer.close()
    else:
        wire.notify("notifications/cancelled", f'"requestId":{answer.ident}')
        assert all(json.loads(m)["method"] == PROGRESS for m in answer.rest()[1:])


def test_a_given_up_call_ends_at_a_modern_server(wire):
    trace = wire.run.trace
    answer = started(wire, "modern__slow", {"tag": wire.tag})
    assert f"started {wire.tag}" in trace.read_text().splitlines()
    give_up(wire, answer)
    until(lambda: f"cancelled {wire.tag}" in trace.read_text().splitlines(), "the end")


def test_a_given_up_call_ends_at_a_legacy_server(wire):
    answer = started(wire, LONG, {"duration": 30, "steps": 300})
    asked = [m for m in wire.run.told("everything")
             if m.get("method") == "tools/call"][-1]
    give_up(wire, answer)
    until(lambda: [m for m in wire.run.told("everything")
                   if m.get("method") == "notifications/cancelled"
                   and m["params"]["requestId"] == asked["id"]], "the cancellation")
    assert text_of(wire.call("everything__echo", {"message": "on"})) == "Echo: on"


def test_resource_updates(wire):
    uri = "interop://counter"
    stream = wire.listen([uri, "memory://knowledge-graph"])
    wire.call("modern__bump", {})
    assert stream.notice(UPDATED)["uri"] == uri
    wire.call("memory__create_entities", {"entities": [
        {"name": f"{wire.tag} again", "entityType": "client", "observations": []}]})
    assert stream.notice(UPDATED, lambda p: p["uri"] != uri)["uri"].startswith("memory:")
    if wire.modern:
        stream.close()
        return
    for uri in (uri, "memory://knowledge-graph"):
        wire.result("resources/unsubscribe", '"uri":' + json.dumps(uri))
    stream.close()


def test_an_answer_that_takes_its_time_becomes_a_stream(server):
    """All stacks and eras at once, for it takes ten seconds."""
    def long_call(stack, modern):
        wire = HttpWire(STACKS[stack](server.url), modern)
        wire.hello()
        begin = time.monotonic()
        answer = wire.send("tools/call", call_body(LONG, {"duration": 11, "steps": 1}))
        head = time.monotonic() - begin
        assert answer.status == 200 and answer.streamed
        assert "completed" in answer.reply()["result"]
        assert len(answer.seen) == 1
        assert 9 < head < 10.9, stack
        wire.stack.close()

    with ThreadPoolExecutor(2 * len(STACKS)) as pool:
        calls = [pool.submit(long_call, stack, modern)
                 for stack in STACKS for modern in (False, True)]
    for call in calls:
        call.result()


def test_notices_of_a_session_go_to_its_newest_stream(server):
    wire = HttpWire(STACKS["http.client"](server.url), False)
    wire.hello()
    older = wire.get()
    newer = wire.listen(["interop://counter"])
    wire.call("modern__bump", {})
    assert newer.notice(UPDATED)["uri"] == "interop://counter"
    assert wire.delete() == 204
    assert newer.next() is None
    assert older.rest() == []


def test_list_changes_reach_clients_of_both_eras(server):
    wires = [HttpWire(STACKS["http.client"](server.url), modern)
             for modern in (False, True)]
    for wire in wires:
        wire.hello()
    streams = [wire.listen(tools=True) for wire in wires]
    wires[0].call("modern__grow", {})
    for wire, stream in zip(wires, streams):
        stream.notice("notifications/tools/list_changed")
        names = [json.loads(t)["name"] for t in wire.list("tools/list", "tools")]
        assert "modern__grown" in names
        stream.close()
    assert wires[0].delete() == 204
