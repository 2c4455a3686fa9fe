# SPDX-License-Identifier: MIT
"""What upstreams ask of one client on stdio, whatever era each of them is of."""
import json

import pytest

from asking import CAPS, MODERN_CAPS, asking, come_back, modern_asking, reply
from mcp import META, wait_for

ACCEPT = {"action": "accept", "content": {"x": 1}}


def answers_of(up):
    return [r.msg for r in up.inputs() if "method" not in r.msg]


# ---- the four pairs ----

def test_legacy_client_legacy_upstream(serve):
    mv = serve(alpha=asking())
    mv.legacy(capabilities=CAPS)
    told = mv["alpha"].inputs("initialize")[0].msg["params"]["capabilities"]
    assert set(told) == {"elicitation", "sampling", "roots"}
    key = mv.start_call("alpha__ask", {"n": 1})
    asked = mv.notice("elicitation/create")
    assert asked.params["_meta"] == {"args": {"n": 1}}
    reply(mv, asked, ACCEPT)
    assert mv.answer(key).result["structuredContent"]["result"] == ACCEPT


def test_modern_client_legacy_upstream(serve):
    mv = serve(alpha=asking())
    mv.modern()
    got = mv.call("alpha__ask", {"n": 1}, meta=MODERN_CAPS).result
    assert got["resultType"] == "input_required"
    (key, request), = got["inputRequests"].items()
    assert request["method"] == "elicitation/create"
    assert request["params"]["_meta"] == {"args": {"n": 1}}
    done = come_back(mv, got, {key: ACCEPT}, args={"n": 1}).result
    assert done["structuredContent"]["result"] == ACCEPT
    assert len(mv["alpha"].inputs("tools/call")) == 1
    assert mv["alpha"].inputs("notifications/cancelled") == []
    again = come_back(mv, got, {key: ACCEPT}, args={"n": 1}).result
    assert again["isError"] is True


def test_legacy_client_modern_upstream(serve):
    mv = serve(alpha=modern_asking())
    mv.legacy(capabilities=CAPS)
    key = mv.start_call("alpha__ask", {"n": 1})
    asked = mv.notice("elicitation/create")
    assert asked.params["message"] == "m"
    reply(mv, asked, ACCEPT)
    sent = mv.answer(key).result["structuredContent"]
    assert sent["inputResponses"] == {"who": ACCEPT} and sent["requestState"] == "s-1"
    assert sent["arguments"] == {"n": 1} and sent["name"] == "ask"
    assert set(sent["_meta"][META + "clientCapabilities"]) == {"elicitation", "sampling",
                                                               "roots"}


def test_modern_client_modern_upstream(serve):
    mv = serve(alpha=modern_asking())
    mv.modern()
    got = mv.call("alpha__ask", {"n": 1}, meta=MODERN_CAPS).result
    assert got["requestState"] == "s-1" and list(got["inputRequests"]) == ["who"]
    sent = come_back(mv, got, {"who": ACCEPT}, args={"n": 1}).result["structuredContent"]
    assert sent["inputResponses"] == {"who": ACCEPT} and sent["requestState"] == "s-1"


# ---- one by one ----

def test_several_questions_of_a_modern_upstream(serve):
    requests = {"b": {"method": "roots/list"}, "a": {"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
        "maxTokens": 5}}}
    mv = serve(alpha=modern_asking(requests, state=None))
    mv.legacy(capabilities=CAPS)
    key = mv.start_call("alpha__ask", {})
    sampling, roots = mv.notice("sampling/createMessage"), mv.notice("roots/list")
    reply(mv, roots, {"roots": []})
    result = {"role": "assistant", "content": {"type": "text", "text": "!"}, "model": "m"}
    reply(mv, sampling, result)
    sent = mv.answer(key).result["structuredContent"]
    assert sent["inputResponses"] == {"a": result, "b": {"roots": []}}
    assert "requestState" not in sent


def test_a_question_outside_of_calls_waits_for_the_client_to_be_ready(serve):
    mv = serve(alpha=asking(on={"notifications/initialized": [
        ["request", "early", "roots/list"], ["expect", "early", 10000]]}))
    mv.legacy(capabilities=CAPS, initialized=False)
    wait_for(lambda: b"roots/list" in b"".join(
        r.raw for r in mv["alpha"].records("O")), 5, "it asks")
    mv.ask("ping")
    assert mv.notices("roots/list") == []
    mv.notify("notifications/initialized")
    reply(mv, mv.notice("roots/list"), {"roots": [{"uri": "file:///x"}]})
    wait_for(lambda: answers_of(mv["alpha"])[-1:] and answers_of(mv["alpha"])[-1]["result"]
             == {"roots": [{"uri": "file:///x"}]})


def test_roots_that_change(serve):
    mv = serve(alpha=asking(), beta={"era": "modern", "tools": ["echo"]})
    mv.legacy(capabilities=CAPS)
    mv.notify("notifications/roots/list_changed")
    mv["alpha"].wait_input("notifications/roots/list_changed")
    mv.fence("beta")
    assert mv["beta"].inputs("notifications/roots/list_changed") == []


def test_the_clients_error_is_the_upstreams(serve):
    mv = serve(alpha=asking())
    mv.legacy(capabilities=CAPS)
    key = mv.start_call("alpha__ask", {})
    asked = mv.notice("elicitation/create")
    error = {"code": -1, "message": "User rejected", "data": {"x": 1}}
    mv.line(json.dumps({"jsonrpc": "2.0", "id": asked.msg["id"], "error": error}))
    assert mv.answer(key).result["structuredContent"]["error"] == error


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_client_without_the_capability(serve, era):
    """A legacy one's upstream was never told it; a modern call is refused for its own."""
    mv = serve(alpha=asking())
    if era == "legacy":
        mv.legacy()
        got = mv.call("alpha__ask", {}).result["structuredContent"]
        assert got["error"]["code"] == -32601
    else:
        mv.modern()
        mv.ask("tools/list", meta=MODERN_CAPS)
        got = mv.call("alpha__ask", {})
        assert got.code == -32021
        assert got.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
        mv["alpha"].wait_input("notifications/cancelled")


def test_the_client_cancels_the_call(serve):
    mv = serve(alpha=asking())
    mv.legacy(capabilities=CAPS)
    key = mv.start_call("alpha__ask", {})
    asked = mv.notice("elicitation/create")
    mv.cancel(key)
    got = mv.notice("notifications/cancelled")
    assert got.params["requestId"] == asked.msg["id"]
    assert mv["alpha"].wait_input("notifications/cancelled")
    reply(mv, asked, ACCEPT)  # too late
    mv.fence("alpha")
    assert [m for m in answers_of(mv["alpha"]) if "result" in m] == []


def test_the_upstream_takes_its_question_back(serve):
    back = [["request", "d", "sampling/createMessage",
             '{"messages":[],"maxTokens":1}'], ["gate", "drop"],
            ["notify", "notifications/cancelled", '{"requestId":"d","reason":"r"}'],
            ["reply", {"content": []}]]
    mv = serve(alpha=asking(calls={"echo": back}))
    mv.legacy(capabilities=CAPS)
    key = mv.start_call("alpha__echo", {})
    asked = mv.notice("sampling/createMessage")
    mv["alpha"].open("drop")
    assert mv.notice("notifications/cancelled").params["requestId"] == asked.msg["id"]
    assert mv.answer(key).result == {"content": []}


def test_progress_of_a_question(serve):
    params = '{"messages":[],"maxTokens":1,"_meta":{"progressToken":"tok-${ID}"}}'
    mv = serve(alpha=asking("sampling/createMessage", params))
    mv.legacy(capabilities=CAPS)
    key = mv.start_call("alpha__ask", {})
    asked = mv.notice("sampling/createMessage")
    token = asked.params["_meta"]["progressToken"]
    assert token == asked.msg["id"]
    mv.notify("notifications/progress", {"progressToken": token, "progress": 0.5})
    got = mv["alpha"].wait_input("notifications/progress").msg["params"]
    assert got["progressToken"].startswith("tok-") and got["progress"] == 0.5
    reply(mv, asked, {"role": "assistant", "content": {"type": "text", "text": "!"}, "model": "m"})
    assert mv.answer(key).result


def test_the_upstream_dies_while_its_client_thinks(serve):
    mv = serve(alpha=asking())
    mv.modern()
    got = mv.call("alpha__ask", {}, meta=MODERN_CAPS).result
    mv["alpha"].run(["kill"])
    mv.wait_log("ended|exited|killed")
    done = come_back(mv, got, {}, args={})
    assert done.code == -32603 and done.error["data"]["upstream"] == "alpha"


def test_end_of_input_does_not_wait_for_those_that_are_parked(serve):
    mv = serve(alpha=asking())
    mv.modern()
    assert mv.call("alpha__ask", {}, meta=MODERN_CAPS).result["requestState"]
    mv.close_input()
    assert mv.finish(5) == 0
