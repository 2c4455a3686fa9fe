# SPDX-License-Identifier: MIT
"""What an upstream asks of us: pings are answered, the rest has no method."""
import pytest

from mcp import META, MODERN, wait_for


def responses(up):
    return [r.msg for r in up.inputs() if "method" not in r.msg]


@pytest.mark.parametrize("when", ["idle", "in a call"])
def test_o_023_pings_are_answered_by_us(each, when):
    """Of the record: a child on stdio; one on HTTP is of a later version."""
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
def test_o_050_other_requests_have_no_method(serve, serve_http, method):
    """We declare none of them to a child, whatever the client declared to us."""
    ask = [["request", "q", method], ["expect", "q", 2000]]
    alpha = {"tools": ["echo", "ask"], "calls": {"ask": [*ask, ["reply", {"content": []}]]},
             "on": {"notifications/initialized": ask}}
    caps = {"roots": {}, "sampling": {}, "elicitation": {}}
    mv = serve(alpha=alpha)
    mv.legacy(capabilities=caps)
    assert mv.call("alpha__ask", {}).result
    assert mv.pending == []
    over_http = serve_http(alpha=alpha)
    for c in (over_http.legacy(capabilities=caps), over_http.legacy()):
        answer = c.start_call("alpha__ask", {})
        assert answer.result == {"content": []} and answer.notices == []
    assert over_http.modern().call("alpha__ask", {}, meta={
        META + "clientCapabilities": caps}).result
    for up, n in ((mv["alpha"], 2), (over_http["alpha"], 4)):
        got = responses(up)
        assert [(m["id"], m["error"]["code"]) for m in got] == [("q", -32601)] * n
        assert up.records("X") == []


@pytest.mark.parametrize("method", ["notifications/foo", "notifications/initialized",
                                    "notifications/roots/list_changed"])
def test_notifications_that_are_no_servers_go_nowhere(serve, method):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy()
    mv["alpha"].run(["notify", method])
    mv.fence("alpha")
    assert mv.notices() == []


def test_a_client_cannot_talk_to_an_upstream_past_its_capabilities(serve):
    mv = serve(alpha={"tools": ["echo"]}, beta={"era": "modern", "tools": ["echo"]})
    mv.legacy(capabilities={"roots": {"listChanged": True}})
    mv.notify("notifications/roots/list_changed")
    mv.fence("alpha")
    mv.fence("beta")
    for up in ("alpha", "beta"):
        assert mv[up].inputs("notifications/roots/list_changed") == []


def test_a_modern_upstream_is_told_no_capability_of_the_client(serve):
    mv = serve(alpha={"era": "modern", "tools": ["echo"]})
    mv.modern().call("alpha__echo", {}, meta={
        META + "clientCapabilities": {"sampling": {}, "elicitation": {}, "roots": {}}}).result
    sent = mv["alpha"].inputs("tools/call")[0].msg["params"]["_meta"]
    assert not {"roots", "sampling", "elicitation"} & set(sent[META + "clientCapabilities"])


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
