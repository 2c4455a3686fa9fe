# SPDX-License-Identifier: MIT
"""What an upstream asks of us and is told of our client: the plain cases."""
import pytest

from mcp import META, MODERN, wait_for


def responses(up):
    return [r.msg for r in up.inputs() if "method" not in r.msg]


@pytest.mark.parametrize("when", ["idle", "in a call"])
def test_o_023_pings_are_answered_by_us(each, when):
    """Of the record: a child on stdio; one on HTTP is in test_cases_remote."""
    pings = []
    for key in (1, "p", 0, 2, "1", -5):
        pings += [["request", key, "ping"], ["expect", key, 2000]]
    mv = each(alpha={"tools": ["echo", "ask"], "calls": {"ask": [
        *pings, ["reply", {"content": []}]]}})
    if when == "idle":
        mv["alpha"].run(*pings)
    else:
        assert mv.call("alpha__ask", {}).result
    wait_for(lambda: len(responses(mv["alpha"])) == 6)
    assert [m["id"] for m in responses(mv["alpha"])] == [1, "p", 0, 2, "1", -5]
    assert all(m["result"] == {} for m in responses(mv["alpha"]))
    assert mv["alpha"].records("X") == []
    mv.fence("alpha")
    assert mv.notices() == [] and b'"ping"' not in mv.seen()


def test_o_023_their_ids_do_not_meet_ours(serve):
    keys = list(range(12))
    steps = [["request", k, "ping"] for k in keys] + [["expect", k, 2000] for k in keys]
    mv = serve(alpha={"tools": ["echo", "ask"],
                      "calls": {"ask": [*steps, ["reply", {"content": []}]]}})
    mv.legacy()
    for _ in range(3):
        assert mv.call("alpha__ask", {}).result


def test_pings_before_initialize_is_answered(serve):
    mv = serve(alpha={"tools": ["echo"], "on": {"initialize": [
        ["request", "early", "ping"], ["expect", "early", 2000], ["default"]]}})
    mv.legacy()
    assert mv.tools() == ["alpha__echo"]


@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage",
                                    "elicitation/create", "tools/list", "made/up"])
def test_o_050_who_can_be_asked_nothing_is_not_asked(serve, serve_http, method):
    """At once, in a call and outside of one; who can be asked is in test_questions_*."""
    ask = [["request", "q", method], ["expect", "q", 2000]]
    alpha = {"tools": ["echo", "ask"], "calls": {"ask": [*ask, ["reply", {"content": []}]]},
             "on": {"notifications/initialized": ask}}
    mv = serve(alpha=alpha)
    mv.legacy()
    assert mv.call("alpha__ask", {}).result
    assert mv.pending == []
    assert [(m["id"], m["error"]["code"]) for m in responses(mv["alpha"])] == [
        ("q", -32601)] * 2
    over_http = serve_http(alpha=alpha)
    # One that asks what everybody was offered gets a successor that was offered nothing.
    starts = 2 if method in ("sampling/createMessage", "elicitation/create") else 1
    wait_for(lambda: len(responses(over_http["alpha"])) == starts)
    answer = over_http.legacy().start_call("alpha__ask", {})
    assert answer.result == {"content": []} and answer.notices == []
    fresh = serve_http(alpha={"tools": ["echo", "ask"], "calls": alpha["calls"]})
    got = fresh.modern().call("alpha__ask", {})
    # A modern client is told what it would have to be able to do, but for what no
    # instance for all declares.
    if starts == 2:
        assert got.code == -32021 and got.error["data"]["requiredCapabilities"]
    else:
        assert got.result
    wait_for(lambda: len(responses(fresh["alpha"])) >= 1)
    for m in responses(over_http["alpha"]) + responses(fresh["alpha"]):
        assert m["id"] == "q" and m["error"]["code"] in (-32601, -32603)
    for up in (mv["alpha"], over_http["alpha"], fresh["alpha"]):
        assert up.records("X") == []


@pytest.mark.parametrize("method", ["notifications/foo", "notifications/initialized",
                                    "notifications/roots/list_changed"])
def test_notifications_that_are_no_servers_go_nowhere(serve, method):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy()
    mv["alpha"].run(["notify", method])
    mv.fence("alpha")
    assert mv.notices() == []


@pytest.mark.parametrize("roots, told", [({"listChanged": True}, 1), ({}, 0), (None, 0)])
def test_changed_roots_are_told_to_whom_they_were_declared(serve, roots, told):
    mv = serve(alpha={"tools": ["echo"]}, beta={"era": "modern", "tools": ["echo"]})
    mv.legacy(capabilities={} if roots is None else {"roots": roots})
    mv.notify("notifications/roots/list_changed")
    mv.fence("alpha")
    mv.fence("beta")
    assert len(mv["alpha"].inputs("notifications/roots/list_changed")) == told
    assert mv["beta"].inputs("notifications/roots/list_changed") == []


def test_a_modern_upstream_is_told_what_the_client_of_each_call_can_do(serve):
    mv = serve(alpha={"era": "modern", "tools": ["echo"]})
    every = [{"sampling": {}, "elicitation": {"url": {}}, "roots": {}},
             {}, {"extensions": {"a/b": {"c": 1.0}}, "sampling": {"tools": {}}}]
    for caps in every:
        assert mv.modern().call("alpha__echo", {}, meta={
            META + "clientCapabilities": caps}).result
    sent = mv["alpha"].inputs("tools/call")
    assert [m.msg["params"]["_meta"][META + "clientCapabilities"] for m in sent] == every


def test_an_unsupported_revision_in_a_call_is_ours_to_repair(serve):
    data = {"supported": [MODERN], "requested": MODERN}
    mv = serve(alpha={"era": "modern", "tools": ["echo", "odd", "never"], "calls": {
        "odd": [["set", "calls", {}], ["error", -32022, "no", data]],
        "never": [["error", -32022, "no", {"supported": ["2099-01-01"],
                                           "requested": MODERN}]]}})
    mv.legacy()
    got = mv.call("alpha__never", {})
    assert got.code == -32603 and got.error["data"]["upstream"] == "alpha"
    got = mv.call("alpha__odd", {})
    assert "result" in got.msg or got.code == -32603
