# SPDX-License-Identifier: MIT
"""What a conf says of questions: whose folders, and how long a client may think."""
import pytest

from asking import CAPS, MODERN_CAPS, asking, come_back, reply
from mcp import wait_for
from test_questions_http import ACCEPT, legacy, next_request

CALL_MS = 700


def told(mv):
    return [r.msg["params"]["capabilities"] for r in mv["alpha"].inputs("initialize")]


def heard(mv):
    return [r.msg for r in mv["alpha"].inputs() if "method" not in r.msg]


# ---- time ----

@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_time_limits_rest_while_the_client_thinks(serve_conf, era):
    mv = serve_conf(alpha=asking(), per={"alpha": {"call_ms": CALL_MS, "call_max_ms": CALL_MS}})
    if era == "legacy":
        c = legacy(mv)
        answer = c.start_call("alpha__ask", {})
        asked = next_request(answer)
        answer.quiet(2 * CALL_MS)
        reply(c, asked, ACCEPT)
        assert answer.result["structuredContent"]["result"] == ACCEPT
    else:
        c = mv.modern()
        got = c.call("alpha__ask", {}, meta=MODERN_CAPS).result
        c.wire().silent(2 * CALL_MS)
        (key, _), = got["inputRequests"].items()
        done = come_back(c, got, {key: ACCEPT}, args={}).result
        assert done["structuredContent"]["result"] == ACCEPT
    assert mv["alpha"].inputs("notifications/cancelled") == []


def test_time_limits_go_on_behind_it(serve_conf):
    mv = serve_conf(alpha=asking(after=[["gate", "never"]]), per={"alpha": {"call_ms": CALL_MS}})
    c = legacy(mv)
    answer = c.start_call("alpha__ask", {})
    reply(c, next_request(answer), ACCEPT)
    assert answer.message().error["data"]["reason"] == "timeout"


def test_a_legacy_client_that_thinks_too_long(serve_conf):
    mv = serve_conf(alpha=asking(), per={"alpha": {"question_ms": 300}})
    c = legacy(mv)
    answer = c.start_call("alpha__ask", {})
    asked = next_request(answer)
    got = answer.result["structuredContent"]
    assert got["error"]["code"] == -32603
    assert answer.notices[1].msg["method"] == "notifications/cancelled"
    assert answer.notices[1].params["requestId"] == asked.msg["id"]


def test_a_modern_client_that_thinks_too_long(serve_conf):
    mv = serve_conf(alpha=asking(), per={"alpha": {"question_ms": 300}})
    c = mv.modern()
    got = c.call("alpha__ask", {}, meta=MODERN_CAPS).result
    mv["alpha"].wait_input("notifications/cancelled")
    (key, _), = got["inputRequests"].items()
    assert come_back(c, got, {key: ACCEPT}, args={}).result["isError"] is True


# ---- roots ----

LIST = ["file:///srv/a", "file:///srv/b%20c"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_roots_of_the_conf(serve_conf, era):
    mv = serve_conf(alpha=asking("roots/list", "{}"), per={"alpha": {"roots": LIST}})
    c = mv.speak(era)
    got = c.call("alpha__ask", {}).result["structuredContent"]["result"]
    assert [r["uri"] for r in got["roots"]] == LIST
    assert all("roots" in t for t in told(mv))


@pytest.mark.parametrize("roots", ["auto", "none"])
def test_roots_are_of_no_client_where_clients_share(serve_conf, roots):
    mv = serve_conf(alpha=asking("roots/list", "{}"), per={"alpha": {"roots": roots}})
    c = legacy(mv)
    got = c.call("alpha__ask", {}).result["structuredContent"]
    assert got["error"]["code"] == -32601
    assert not any("roots" in t for t in told(mv))


def test_roots_of_each_client(serve_conf):
    mv = serve_conf(alpha=asking("roots/list", "{}"), per={"alpha": {"roots": "client"}})
    a, b = legacy(mv), legacy(mv)
    for n, c in (("a", a), ("b", b)):
        answer = c.start_call("alpha__ask", {})
        mine = {"roots": [{"uri": "file:///" + n}]}
        reply(c, next_request(answer, "roots/list"), mine)
        assert answer.result["structuredContent"]["result"] == mine
    a.notify("notifications/roots/list_changed")
    mv["alpha"].wait_input("notifications/roots/list_changed")
    wait_for(lambda: len(mv["alpha"].inputs("notifications/roots/list_changed")) == 1)
    mv.modern().tools()
    assert len(mv["alpha"].inputs("notifications/roots/list_changed")) == 1
    assert all(set(t) <= set(CAPS) for t in told(mv))
