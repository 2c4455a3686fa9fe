# SPDX-License-Identifier: MIT
"""Labels of results that come after a question, and what has to do with tasks."""
import json

import pytest

import label_cases as cases
from asking import CAPS, MODERN_CAPS, come_back, reply
from label_cases import CASES, P, PLAIN, from_upstream, partial, result, warned
from test_tasks import RELATED, core, make

ERAS = ["legacy", "modern"]
ANSWER = {"q": {"action": "accept", "content": {}}}
# Its words look like an answer, and it is none.
QUESTION = {"method": "elicitation/create", "params": {
    "mode": "form", "message": P, "requestedSchema": {"type": "object", "properties": {}}}}
FORM = json.dumps({k: v for k, v in QUESTION["params"].items() if k != "mode"})


def asking(era):
    """A tool whose answer comes after a question."""
    last = ["reply", {"hex": from_upstream(CASES["both"][1], era).encode().hex()}]
    if era == "modern":
        asked = {"resultType": "input_required", "inputRequests": {"q": QUESTION},
                 "requestState": "s", "content": [{"type": "text", "text": P}]}
        steps = [["set", "calls", {"ask": [last]}], ["reply", asked]]
    else:
        steps = [["request", "q-${ID}", "elicitation/create", FORM],
                 ["expect", "q-${ID}", 20000], last]
    return {"era": era, "tools": ["echo", {"name": "ask", **CASES["both"][0]}],
            "calls": {"ask": steps}}


@pytest.mark.parametrize("upstream", ERAS)
@pytest.mark.parametrize("client", ERAS)
def test_after_a_question(serve, client, upstream):
    mv = serve(alpha=asking(upstream))
    mv.check_schema = False  # the question has content, which is none of its members
    if client == "legacy":
        mv.legacy(capabilities=CAPS)
        key = mv.start_call("alpha__ask", {})
        asked = mv.notice("elicitation/create")
        assert asked.params["message"] == P
        reply(mv, asked, ANSWER["q"])
        got = mv.answer(key)
    else:
        mv.modern()
        asked = mv.call("alpha__ask", {}, meta=MODERN_CAPS)
        assert asked.result["resultType"] == "input_required"
        assert b"_warning" not in asked.raw and b"io.github.mcpvisor/graphql" not in asked.raw
        names = asked.result["inputRequests"]
        got = come_back(mv, asked.result, {n: ANSWER["q"] for n in names}, args={})
    assert got.span("result") == cases.seen(CASES["both"], upstream, client == "modern")


def test_results_of_tasks_pass_as_they_are(serve):
    raw = result([P], None, '"_meta":{"%s":{"taskId":"t-1"}},' % RELATED)
    mv = serve(alpha=core(on={"tasks/result": [["reply", {"hex": raw.encode().hex()}]]}))
    mv.legacy()
    key = make(mv)
    got = mv.ask("tasks/result", {"taskId": key}).span("result")
    assert got == raw.replace('"t-1"', '"%s"' % key).encode()


def test_a_result_that_names_its_task_is_labelled_too(serve):
    raw = result([P], None, '"_meta":{"%s":{"taskId":"t-1"}},' % RELATED)
    ours = '"_meta":{%s"%s":{"taskId":"t-1"}},' % (cases.OUT % (cases.OURS, "partial"), RELATED)
    mv = serve(alpha=core(tools=["echo", {"name": "t", **PLAIN}, "slow"], calls={
        "t": [["reply", {"hex": raw.encode().hex()}]],
        "slow": [["reply", {"task": {"taskId": "t-1", "status": "working", "ttl": 60000,
                                     "createdAt": "2026-01-01T00:00:00Z",
                                     "lastUpdatedAt": "2026-01-01T00:00:00Z"}}]]}))
    mv.legacy()
    key = make(mv)
    got = mv.call("alpha__t", {}).span("result").decode()
    assert got in (result([warned(P)], None, ours),
                   result([warned(P)], None, ours.replace('"t-1"', '"%s"' % key)))


def test_prompts_resources_and_logs_are_not_looked_at(each):
    blocks = '"content":{"type":"text","text":%s}' % cases.quoted(P)
    prompt = '{"messages":[{"role":"user",%s}]}' % blocks
    note = '{"level":"error","data":%s}' % P
    w = each(alpha={"tools": ["echo", {"name": "t", **PLAIN}], "prompts": ["p"], "logging": True,
                    "resources": ["m:1"], "texts": {"m:1": P}, "mcpvisor": {"graphql": "on"},
                    "on": {"prompts/get": [["reply", prompt]]},
                    "calls": {"t": [["notify", "notifications/message", note],
                                    ["reply", {"hex": result([P]).encode().hex()}]]}})
    level = {"io.modelcontextprotocol/logLevel": "debug"} if w.is_modern else {}
    got = w.ask("prompts/get", {"name": "alpha__p"}).span("result").decode()
    assert got == (from_upstream(prompt, "modern") if w.is_modern else prompt)
    assert w.ask("resources/read", {"uri": "m:1"}).result["contents"][0]["text"] == P
    got = w.call("alpha__t", {}, meta={**level, "progressToken": 1}).span("result")
    assert got == cases.seen((PLAIN, result([P]), partial(result([warned(P)]))), "legacy",
                             w.is_modern)
    notes = w.notices("notifications/message")
    assert [m.span("params") for m in notes] == [note.encode()]
