# SPDX-License-Identifier: MIT
"""Resources: whose URI it is, and word of its changes in every pair of eras."""
import json

import pytest

from mcp import META, wait_for
from ways import Way

SUB = META + "subscriptionId"
UPDATED = "notifications/resources/updated"


def having(*uris, era="legacy", name="", **more):
    return {"era": era, "tools": ["echo"], "resources": list(uris),
            "texts": {u: name + u for u in uris}, **more}


def read(mv, uri):
    return mv.ask("resources/read", {"uri": uri})


def text(mv, uri):
    return read(mv, uri).result["contents"][0]["text"]


def test_reads_go_to_the_owner(serve):
    mv = serve(alpha=having("a:1", "a:2"), beta=having("b:1", era="modern"))
    mv.legacy()
    assert [text(mv, u) for u in ("b:1", "a:1", "a:2")] == ["b:1", "a:1", "a:2"]
    assert len(mv["beta"].inputs("resources/read")) == 1


def test_o_045_a_uri_offered_twice_goes_to_the_first(each):
    """The rule: the first in the file; a uri_prefix makes the other one reachable too."""
    up = {n: having("file:///readme", n + ":1", name=n + " ") for n in ("alpha", "beta")}
    mv = each(up)
    listed = [r["uri"] for r in mv.ask("resources/list").result["resources"]]
    assert listed == ["file:///readme", "alpha:1", "beta:1"]
    assert text(mv, "file:///readme") == "alpha file:///readme"
    assert mv["beta"].inputs("resources/read") == []
    mv.wait_log("file:///readme")
    up["beta"] = {**up["beta"], "mcpvisor": {"uri_prefix": "beta+"}}
    mv = each(up)
    listed = [r["uri"] for r in mv.ask("resources/list").result["resources"]]
    assert listed == ["file:///readme", "alpha:1", "beta+file:///readme", "beta+beta:1"]
    assert text(mv, "file:///readme") == "alpha file:///readme"
    assert text(mv, "beta+file:///readme") == "beta file:///readme"
    assert len(mv["beta"].inputs("resources/read")) == 1


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_045_a_uri_that_nobody_has(each, upstream):
    mv = each(alpha=having("a:1", era=upstream))
    mv.ask("resources/list").result
    got = read(mv, "nobody:1")
    assert got.code == (-32602 if mv.is_modern else -32002)
    assert got.error["data"]["uri"] == "nobody:1"
    assert mv["alpha"].inputs("resources/read") == []


@pytest.mark.parametrize("client,code", [("legacy", -32002), ("modern", -32602)])
@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_not_found_in_the_clients_words_whichever_the_upstream_used(serve, client, code,
                                                                   upstream):
    up = having("a:1", era=upstream)
    up["texts"] = {}
    mv = serve(alpha=up)
    mv.speak(client)
    mv.ask("resources/list").result
    got = read(mv, "a:1")
    assert got.code == code
    if client == "modern":
        assert got.error["data"]["uri"] == "a:1"


@pytest.mark.parametrize("params", ['{}', '{"uri":7}', '{"uri":null}', '{"uri":["a:1"]}'])
def test_a_uri_of_the_wrong_kind_is_invalid_params(serve, params):
    mv = serve(alpha=having("a:1"))
    mv.legacy()
    assert mv.ask("resources/read", params).code == -32602
    assert mv["alpha"].inputs("resources/read") == []


def test_templates_catch_what_is_not_listed(serve):
    mv = serve(alpha={**having("a:1"), "resourceTemplates": ["file:///{+path}"],
                      "texts": {"file:///x/y": "by alpha", "file:///logs/1": "no"}},
               beta={**having("b:1"), "resourceTemplates": ["file:///logs/{id}"],
                     "texts": {"file:///logs/1": "by beta"}})
    mv.legacy()
    mv.ask("resources/templates/list").result
    assert text(mv, "file:///x/y") == "by alpha"
    # The longest literal part wins.
    assert text(mv, "file:///logs/1") == "by beta"
    assert read(mv, "ftp://x").code == -32002


def test_a_uri_that_a_result_named_is_its_upstreams(serve):
    link = '{"content":[{"type":"resource_link","uri":"made:up\\/1","name":"n"},' \
           '{"type":"resource","resource":{"uri":"made:2","text":"t"}}]}'
    mv = serve(alpha=having("a:1"),
               beta={"tools": ["echo", "make"], "calls": {"make": [["reply", link]]},
                     "resources": ["b:1"], "texts": {"made:up/1": "one", "made:2": "two"}})
    mv.legacy()
    assert read(mv, "made:up/1").code == -32002
    mv.call("beta__make", {}).result
    assert text(mv, "made:up/1") == "one"
    assert text(mv, "made:2") == "two"


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_046_updates_come_to_whoever_subscribed(each, upstream):
    """With the URI that was subscribed to, also where the upstream has another for it."""
    mv = each(alpha={**having("a:1", "a:2", era=upstream), "mcpvisor": {"uri_prefix": "al+"}})
    assert [r["uri"] for r in mv.ask("resources/list").result["resources"]] == [
        "al+a:1", "al+a:2"]
    mv["alpha"].run(["updated", "a:1"])
    mv.fence("alpha")
    other = None
    if mv.is_http:  # a second client, which hears of another resource alone
        other = Way(mv.mv, mv.mv.speak(mv.era), "http-" + mv.era).watch("al+a:2")
    watch = mv.watch("al+a:1")
    if upstream == "legacy":
        wait_for(lambda: "a:1" in [r.msg["params"]["uri"] for r in
                                   mv["alpha"].inputs("resources/subscribe")])
    else:
        wait_for(lambda: any("a:1" in r.msg["params"]["notifications"].get(
            "resourceSubscriptions", []) for r in mv["alpha"].inputs("subscriptions/listen")))
        mv.fence("alpha")
    mv["alpha"].run(["updated", "a:2"], ["updated", "a:1"])
    note = watch.next(UPDATED)
    assert note.params["uri"] == "al+a:1"
    assert note.params.get("_meta", {}).get(SUB) == ("W" if mv.is_modern else None)
    if other:
        assert other.next(UPDATED).params["uri"] == "al+a:2"
        other.quiet(50)
    watch.close()
    if upstream == "legacy":
        assert mv["alpha"].wait_input("resources/unsubscribe").msg["params"]["uri"] == "a:1"
    else:
        wait_for(lambda: "a:1" not in mv["alpha"].inputs("subscriptions/listen")[-1].msg[
            "params"]["notifications"].get("resourceSubscriptions", [])
            or mv["alpha"].inputs("notifications/cancelled"))
    mv.fence("alpha")
    mv["alpha"].run(["updated", "a:1"])
    mv.fence("alpha")
    assert mv.notices(UPDATED) == []


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("way", ["http", "lines"])
def test_o_046_whoever_leaves_is_unsubscribed(serve_http, connect, tmp_path, way, era):
    path = str(tmp_path / "s.sock")
    mv = serve_http(alpha=having("a:1"), listen=("127.0.0.1:0", "unix:" + path))
    if way == "lines":
        client = Way(mv, connect(path).speak(era), "stdio-" + era)
    else:
        client = Way(mv, mv.speak(era), "http-" + era)
    client.ask("resources/list").result
    watch = client.watch("a:1")
    mv["alpha"].wait_input("resources/subscribe")
    if way == "lines":
        assert client.c.finish() == 0
    elif era == "legacy":
        assert client.c.delete().status == 204
    else:
        watch.stream.wire.reset()
    mv["alpha"].wait_input("resources/unsubscribe")


def test_subscribing_twice_is_once(serve):
    mv = serve(alpha=having("a:1"))
    mv.legacy()
    for _ in range(2):
        assert mv.ask("resources/subscribe", {"uri": "a:1"}).result == {}
    mv["alpha"].run(["updated", "a:1"])
    mv.notice(UPDATED)
    mv.nothing(UPDATED)
    assert len(mv["alpha"].inputs("resources/subscribe")) == 1


def test_subscribing_to_what_nobody_has(serve):
    mv = serve(alpha=having("a:1"))
    mv.legacy()
    assert mv.ask("resources/subscribe", {"uri": "nobody:1"}).code == -32002
    assert mv.ask("resources/subscribe", {}).code == -32602
    # Nothing was subscribed: ending it is no fault.
    got = mv.ask("resources/unsubscribe", {"uri": "a:1"})
    assert "result" in got.msg or got.code in (-32602, -32002)
    assert mv["alpha"].inputs("resources/subscribe") == []


def test_subscriptions_survive_a_restart_of_the_upstream(serve):
    mv = serve(alpha={**having("a:1"), "mcpvisor": {"restart_base_ms": 20}})
    mv.legacy()
    mv.ask("resources/subscribe", {"uri": "a:1"}).result
    mv["alpha"].run(["kill"])
    mv["alpha"].wait_input("resources/subscribe", 2)
    mv["alpha"].run(["updated", "a:1"])
    assert mv.notice(UPDATED).params["uri"] == "a:1"


def test_an_update_that_names_a_part_is_passed(serve):
    mv = serve(alpha=having("dir:/", "dir:/x"))
    mv.legacy()
    mv.ask("resources/subscribe", {"uri": "dir:/"}).result
    mv["alpha"].run(["updated", "other:1"], ["updated", "dir:/"])
    assert mv.notice(UPDATED).params["uri"] == "dir:/"
    mv.nothing(UPDATED)


def test_an_update_that_fits_two_subscriptions_is_told_once(serve):
    mv = serve(alpha=having("m:/a", "m:/a/b"))
    mv.legacy()
    for uri in ("m:/a", "m:/a/b"):
        mv.ask("resources/subscribe", {"uri": uri}).result
    mv["alpha"].run(["updated", "m:/a/b"])
    mv.notice(UPDATED)
    mv.fence("alpha")
    assert mv.notices(UPDATED) == []


def test_a_subscribe_may_come_before_the_lists_are_in(serve):
    mv = serve(alpha=having("m:1"))
    mv.send("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                           "clientInfo": {"name": "x", "version": "1"}})
    mv.notify("notifications/initialized")
    assert mv.ask("resources/subscribe", {"uri": "m:1"}).result == {}


@pytest.mark.parametrize("refused", [True, False])
def test_a_second_subscribe_waits_for_the_same_answer(serve, refused):
    answer = ["error", -32000, "no"] if refused else ["reply", {}]
    mv = serve(alpha=having("m:1", on={"resources/subscribe": [["gate", "go"], answer]}))
    mv.legacy()
    keys = [mv.send("resources/subscribe", {"uri": "m:1"}) for _ in range(3)]
    mv.cancel(keys[0])
    mv.fence("alpha")
    assert not [m for m in mv.pending if m.msg.get("id") in keys]
    mv["alpha"].open("go")
    for key in keys[1:]:
        assert "error" in mv.answer(key).msg if refused else mv.answer(key).result == {}
    assert len(mv["alpha"].inputs("resources/subscribe")) == 1


def test_a_subscribe_at_an_upstream_that_is_down_names_it(serve):
    mv = serve(alpha=having("m:1", mcpvisor={"restart_base_ms": 60000}))
    mv.legacy()
    mv["alpha"].run(["kill"])
    mv.wait_log("ended upstream=alpha")
    data = mv.ask("resources/subscribe", {"uri": "m:1"}).error["data"]
    assert data["upstream"] == "alpha" and data["retryable"] is True


@pytest.mark.parametrize("era, method", [
    ("legacy", "resources/subscribe"), ("modern", "subscriptions/listen")])
def test_a_pending_subscribe_fails_when_its_upstream_is_given_up(serve, era, method):
    mv = serve(alpha=having("m:1", era=era, mcpvisor={"restart_base_ms": 1}))
    mv.legacy()
    mv["alpha"].run(["set", "on", {method: [["kill"]]}])
    mv.fence("alpha")
    behaviour = json.loads(mv["alpha"].path.read_text())
    mv["alpha"].path.write_text(json.dumps({**behaviour, "on": {"start": [["kill"]]}}))
    got = mv.ask("resources/subscribe", {"uri": "m:1"}, timeout=20)
    assert got.error["data"]["reason"] == "parked"


def test_a_listen_that_the_upstream_ends_at_once_is_a_refusal(serve):
    mv = serve(alpha=having("m:1", era="modern",
                            on={"subscriptions/listen": [["reply", {}]]}))
    mv.legacy()
    assert mv.ask("resources/subscribe", {"uri": "m:1"}).code == -32603


@pytest.mark.parametrize("first,second", [("legacy", "legacy"), ("legacy", "modern"),
                                          ("modern", "legacy"), ("modern", "modern")])
def test_a_subscription_follows_a_uri_to_its_new_owner(serve, first, second):
    mv = serve(alpha=having("a:1", era=second), beta=having("m:1", era=first))
    mv.legacy()
    assert mv.ask("resources/subscribe", {"uri": "m:1"}).result == {}
    mv.ask("resources/list").result
    # alpha comes first in the file: what it offers is its own from now on.
    mv["alpha"].run(["set", "resources", ["a:1", "m:1"]], ["changed", "resources"])
    if second == "legacy":
        mv["alpha"].wait_input("resources/subscribe")
    else:
        wait_for(lambda: any("m:1" in r.msg["params"]["notifications"].get(
            "resourceSubscriptions", []) for r in mv["alpha"].inputs("subscriptions/listen")))
    if first == "legacy":
        mv["beta"].wait_input("resources/unsubscribe")
    mv.fence("alpha")
    mv["beta"].run(["updated", "m:1"])
    mv.fence("beta")
    mv["alpha"].run(["updated", "m:1"])
    assert mv.notice(UPDATED).params["uri"] == "m:1"
    mv.fence("alpha")
    assert mv.notices(UPDATED) == []
