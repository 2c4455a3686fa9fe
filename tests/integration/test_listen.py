# SPDX-License-Identifier: MIT
"""subscriptions/listen: the one stream of change notices of a modern client."""
import pytest

from mcp import META, wait_for

SUB = META + "subscriptionId"


def listen(mv, key, **want):
    """Opens a listen; returns the filter that was acknowledged."""
    before = len(mv.messages)
    mv.send("subscriptions/listen", {"notifications": want}, id=key)
    ack = mv.notice("notifications/subscriptions/acknowledged",
                    want=lambda m: m.params["_meta"][SUB] == key)
    assert type(ack.params["_meta"][SUB]) is type(key)
    first = next(m for m in mv.messages[before:] if m.msg.get("params", {}).get("_meta", {})
                 .get(SUB) == key)
    assert first is ack
    return ack.params["notifications"]


def end(mv, key):
    mv.cancel(key)
    mv.fence()


@pytest.mark.parametrize("key", ["L1", 7, 0, "7"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_list_changed_carries_the_id_of_the_listen(serve, era, key):
    mv = serve(alpha={"era": era, "tools": ["echo"]})
    mv.modern().ask("tools/list").result
    assert listen(mv, key, toolsListChanged=True) == {"toolsListChanged": True}
    mv["alpha"].run(["set", "tools", ["echo", "more"]], ["changed", "tools"])
    got = mv.notice("notifications/tools/list_changed").params["_meta"][SUB]
    assert got == key and type(got) is type(key)
    assert mv.tools() == ["alpha__echo", "alpha__more"]


def test_only_what_was_asked_for_comes(serve):
    mv = serve(alpha={"tools": ["echo"], "prompts": ["p"], "resources": ["m:1"]})
    for method in ("tools/list", "prompts/list", "resources/list"):
        mv.modern().ask(method).result
    assert listen(mv, "L", promptsListChanged=True) == {"promptsListChanged": True}
    mv["alpha"].run(["set", "tools", ["echo", "b"]], ["set", "prompts", ["p", "q"]],
                    ["changed", "tools"], ["updated", "m:1"], ["changed", "prompts"])
    mv.notice("notifications/prompts/list_changed")
    mv.nothing()


def test_o_104_the_acknowledged_subset(serve):
    mv = serve(alpha={"tools": ["echo"], "resources": ["a:1"], "texts": {"a:1": "x"}},
               beta={"tools": ["echo"], "resources": ["b:1"],
                     "capabilities": {"tools": {}, "resources": {}}})
    mv.modern().ask("resources/list").result
    got = listen(mv, "L1", toolsListChanged=True,
                 resourceSubscriptions=["a:1", "b:1", "nobody:1"])
    assert got["toolsListChanged"] is True
    # beta's upstream has no subscriptions, nobody:1 has no upstream.
    assert got["resourceSubscriptions"] == ["a:1"]
    mv["alpha"].wait_input("resources/subscribe")
    assert mv["beta"].inputs("resources/subscribe") == []
    mv["alpha"].run(["updated", "a:1"])
    note = mv.notice("notifications/resources/updated")
    assert note.params["uri"] == "a:1" and note.params["_meta"][SUB] == "L1"
    end(mv, "L1")
    mv["alpha"].wait_input("resources/unsubscribe")


def test_an_empty_filter_is_acknowledged(serve):
    mv = serve(alpha={"tools": ["echo"]})
    assert listen(mv.modern(), "L") == {}


@pytest.mark.parametrize("params", [
    {}, {"notifications": 7}, {"notifications": {"toolsListChanged": "yes"}},
    {"notifications": {"resourceSubscriptions": "m:1"}},
    {"notifications": {"resourceSubscriptions": [7]}},
])
def test_a_malformed_filter_is_invalid_params(serve, params):
    mv = serve(alpha={"tools": ["echo"]})
    assert mv.modern().ask("subscriptions/listen", params).code == -32602


def test_two_listens_each_get_their_own_notice(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.modern().ask("tools/list").result
    listen(mv, "A", toolsListChanged=True)
    listen(mv, 2, toolsListChanged=True)
    mv["alpha"].run(["set", "tools", ["echo", "b"]], ["changed", "tools"])
    got = [mv.notice("notifications/tools/list_changed").params["_meta"][SUB]
           for _ in range(2)]
    assert sorted(map(str, got)) == ["2", "A"]


def test_a_cancelled_listen_gets_nothing_more(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.modern().ask("tools/list").result
    listen(mv, "A", toolsListChanged=True)
    end(mv, "A")
    mv["alpha"].run(["set", "tools", ["echo", "b"]], ["changed", "tools"])
    mv["alpha"].wait_input("tools/list", 2)
    mv.nothing()
    # The id is free again.
    assert listen(mv, "A", toolsListChanged=True)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_upstream_subscriptions_are_counted(serve, era):
    mv = serve(alpha={"era": era, "tools": ["echo"], "resources": ["m:1", "m:2"],
                      "texts": {"m:1": "x"}})
    mv.modern().ask("resources/list").result
    listen(mv, "A", resourceSubscriptions=["m:1"])
    listen(mv, "B", resourceSubscriptions=["m:1"])
    mv["alpha"].run(["updated", "m:1"])
    for _ in range(2):
        mv.notice("notifications/resources/updated")
    end(mv, "A")
    mv["alpha"].run(["updated", "m:1"])
    note = mv.notice("notifications/resources/updated")
    assert note.params["_meta"][SUB] == "B"
    if era == "legacy":
        assert len(mv["alpha"].inputs("resources/subscribe")) == 1
        assert mv["alpha"].inputs("resources/unsubscribe") == []
        end(mv, "B")
        mv["alpha"].wait_input("resources/unsubscribe")
    mv.nothing("notifications/resources/updated")


def test_a_grown_set_at_a_modern_upstream_loses_and_doubles_nothing(serve):
    mv = serve(alpha={"era": "modern", "tools": ["echo"], "resources": ["m:1", "m:2"]})
    mv.modern().ask("resources/list").result
    listen(mv, "A", resourceSubscriptions=["m:1"])
    listen(mv, "B", resourceSubscriptions=["m:2"])
    mv["alpha"].run(["updated", "m:1"], ["updated", "m:2"])
    got = sorted((mv.notice("notifications/resources/updated").params["_meta"][SUB])
                 for _ in range(2))
    assert got == ["A", "B"]
    mv.nothing("notifications/resources/updated")


def test_end_of_input_ends_a_listen_with_grace(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.modern().ask("tools/list").result
    listen(mv, "L9", toolsListChanged=True)
    assert mv.finish() == 0
    answer = mv.answer("L9")
    assert answer.result["resultType"] == "complete"
    assert answer.result["_meta"][SUB] == "L9"
    note = mv.notice("notifications/cancelled")
    assert note.params["requestId"] == "L9"
    assert mv.messages.index(answer) < mv.messages.index(note)


def test_a_listen_outlives_the_upstream(serve):
    mv = serve(alpha={"era": "modern", "tools": ["echo"], "resources": ["m:1"],
                      "calls": {"die": [["kill"]]}, "mcpvisor": {"restart_base_ms": 20}})
    mv.modern().ask("resources/list").result
    listen(mv, "L", resourceSubscriptions=["m:1"])
    first = mv["alpha"].wait_input("subscriptions/listen").pid
    mv.fence("alpha")
    mv["alpha"].run(["kill"])

    def again():
        return [r for r in mv["alpha"].inputs("subscriptions/listen") if r.pid != first
                and r.msg["params"]["notifications"].get("resourceSubscriptions")]

    wait_for(again, what="a new listen")
    mv["alpha"].run(["updated", "m:1"])
    assert mv.notice("notifications/resources/updated").params["_meta"][SUB] == "L"


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("uris, changed", [
    (["m:1", "m:1"], "m:1"), (["m:/a", "m:/a/b"], "m:/a/b")])
def test_a_listen_hears_once_of_an_update_that_fits_it_twice(serve, era, uris, changed):
    up = {"era": era, "tools": ["echo"], "resources": sorted(set(uris))}
    mv = serve(alpha=up)
    mv.modern().ask("resources/list").result
    listen(mv, "A", resourceSubscriptions=uris)
    mv["alpha"].run(["updated", changed])
    assert mv.notice("notifications/resources/updated").params["uri"] == changed
    mv.fence("alpha")
    assert mv.notices() == []


def test_a_listen_may_come_before_the_lists_are_in(serve):
    mv = serve(alpha={"tools": ["echo"], "resources": ["m:1"],
                      "on": {"initialize": [["gate", "up"], ["default"]]}})
    mv.modern().send("subscriptions/listen", {
        "notifications": {"resourceSubscriptions": ["m:1"]}}, id="L")
    mv["alpha"].wait_input("initialize")
    mv["alpha"].open("up")
    ack = mv.notice("notifications/subscriptions/acknowledged")
    assert ack.params["notifications"] == {"resourceSubscriptions": ["m:1"]}


def test_the_bound_on_subscriptions_is_for_all_listens_together(serve):
    uris = ["m:%d" % i for i in range(2500)]
    mv = serve(alpha={"era": "modern", "tools": ["echo"], "resources": uris})
    mv.modern().ask("resources/list").result
    assert len(listen(mv, "A", resourceSubscriptions=uris)["resourceSubscriptions"]) == 2500
    mv.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}}, id="B")
    assert mv.answer("B").code == -32603
    end(mv, "A")
    listen(mv, "C", resourceSubscriptions=uris)
