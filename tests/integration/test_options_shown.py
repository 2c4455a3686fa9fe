# SPDX-License-Identifier: MIT
"""What is shown of an upstream, by its filters and prefixes; defaults; bounds."""
import json
import time

import pytest

from mcp import wait_for

ERAS = ["legacy", "modern"]
ECHO = {"tools": ["echo"]}
NEVER = {"calls": {"never": []}, "tools": ["never", "hidden"]}

ANY = {"inputSchema": {"type": "object"}}
OFFER = {
    "tools": [{"name": "look", "annotations": {"readOnlyHint": True}, **ANY},
              {"name": "write", "annotations": {"destructiveHint": False}, **ANY},
              {"name": "same", "annotations": {"idempotentHint": True}, **ANY},
              {"name": "near", "annotations": {"openWorldHint": False}, **ANY},
              {"name": "plain", **ANY}],
    "prompts": ["ask", "tell"], "resources": ["m:1", "m:2", "n:1"],
    "resourceTemplates": ["m:{x}", "n:{x}"], "texts": {"m:1": "1", "m:2": "2", "n:1": "3"}}


def own_tools(c):
    return [n.partition("__")[2] for n in c.tools()]


@pytest.mark.parametrize("options,want", [
    ({"allow": ["@read_only"]}, ["look"]),
    ({"deny": ["@destructive"]}, ["look", "write"]),
    ({"allow": ["@idempotent", "plain"]}, ["same", "plain"]),
    ({"deny": ["@open_world"]}, ["near"]),
    ({"allow": ["*"], "deny": ["l*", "?ame"]}, ["write", "near", "plain"]),
    ({"allow": []}, []),
])
def test_tools_allow_and_deny(serve_conf, options, want):
    mv = serve_conf(alpha=OFFER, per={"alpha": {"tools": options}})
    c = mv.legacy()
    assert own_tools(c) == want
    for tool in ("look", "write", "same", "near", "plain"):
        answer = c.call("alpha__" + tool, {})
        assert ("result" in answer.msg) == (tool in want)
        if tool not in want:
            assert answer.code == -32602
    assert [r.msg["params"]["name"] for r in mv["alpha"].inputs("tools/call")] == [
        t for t in ("look", "write", "same", "near", "plain") if t in want]


def test_prompts_and_resources_allow_and_deny(serve_conf):
    mv = serve_conf(alpha=OFFER, beta=OFFER, per={
        "alpha": {"prompts": {"deny": ["t*"]}, "resources": {"deny": ["n:*"]}},
        "beta": {"prompts": {"allow": ["tell"]}, "resources": {"allow": ["m:2", "n:*"],
                                                               "deny": ["n:{*"]}}})
    c = mv.modern()
    assert [p["name"] for p in c.ask("prompts/list").result["prompts"]] == [
        "alpha__ask", "beta__tell"]
    assert [r["uri"] for r in c.ask("resources/list").result["resources"]] == [
        "m:1", "m:2", "n:1"]
    assert [t["uriTemplate"] for t in c.ask("resources/templates/list").result[
        "resourceTemplates"]] == ["m:{x}"]
    assert c.ask("prompts/get", {"name": "alpha__tell"}).code == -32602
    assert c.ask("prompts/get", {"name": "beta__ask"}).code == -32602
    assert c.ask("resources/read", {"uri": "n:1"}).result["contents"][0]["text"] == "3"
    # What alpha hides is beta's to answer.
    assert [r.msg["params"]["uri"] for r in mv["beta"].inputs("resources/read")] == ["n:1"]
    assert not mv["alpha"].inputs("resources/read")


def test_profile_prompts_deny_and_resources_allow(serve_conf):
    mv = serve_conf(alpha=OFFER, more='''profile : { default : {
        tools : { allow = ["alpha__*"]; deny = ["@destructive"]; };
        prompts : { deny = ["*__tell"]; }; resources : { allow = ["m:*"]; }; }; };
''')
    c = mv.modern()
    assert own_tools(c) == ["look", "write"]
    assert [p["name"] for p in c.ask("prompts/list").result["prompts"]] == ["alpha__ask"]
    assert [r["uri"] for r in c.ask("resources/list").result["resources"]] == ["m:1", "m:2"]
    assert c.ask("resources/read", {"uri": "n:1"}).code == -32602
    assert c.ask("prompts/get", {"name": "alpha__tell"}).code == -32602


def test_prefix_of_names_and_its_bound(serve_conf):
    mv = serve_conf(alpha=OFFER, beta=ECHO, per={"alpha": {"prefix": "p" * 24}})
    c = mv.legacy()
    names = c.tools()
    assert names[0] == "p" * 24 + "look" and names[-1] == "beta__echo"
    assert c.ask("prompts/get", {"name": "p" * 24 + "ask"}).result
    mv.per["alpha"]["prefix"] = "p" * 25
    mv.write()
    assert "prefix" in mv.control("reload", check=3)[2]
    mv.per["alpha"]["prefix"] = ""
    assert "upstream.alpha.prefix" in mv.reload()
    wait_for(lambda: c.tools()[0] == "look", 5, "its names are bare now")
    assert c.call("look", {}).result and len(mv["alpha"].starts()) == 1
    assert c.call("p" * 24 + "look", {}).code == -32602


def test_rename_and_its_collisions(serve_conf):
    mv = serve_conf(alpha=OFFER, per={"alpha": {"tools": {
        "rename": {"look": "see", "write": "plain"}, "deny": ["same", "near"]}}})
    c = mv.legacy()
    names = c.tools()
    assert names[0] == "alpha__see" and len(set(names)) == 3
    for name in names:
        assert c.call(name, {}).result
    assert sorted(r.msg["params"]["name"] for r in mv["alpha"].inputs("tools/call")) == [
        "look", "plain", "write"]
    # Filters go by its own names.
    mv.per["alpha"]["tools"] = {"rename": {"look": "see"}, "allow": ["see"]}
    mv.reload()
    assert c.tools() == []
    mv.per["alpha"]["tools"] = {"rename": {"look": "see"}, "allow": ["look"]}
    mv.reload()
    assert c.tools() == ["alpha__see"]


@pytest.mark.parametrize("era", ERAS)
def test_uri_prefix_in_every_place_that_has_a_uri(serve_conf, era):
    mv = serve_conf(alpha=OFFER, per={"alpha": {"uri_prefix": "a+"}})
    c = mv.speak(era)
    assert [r["uri"] for r in c.ask("resources/list").result["resources"]] == [
        "a+m:1", "a+m:2", "a+n:1"]
    assert [t["uriTemplate"] for t in c.ask("resources/templates/list").result[
        "resourceTemplates"]] == ["a+m:{x}", "a+n:{x}"]
    assert c.ask("resources/read", {"uri": "a+m:2"}).result["contents"][0]["text"] == "2"
    assert mv["alpha"].inputs("resources/read")[0].msg["params"]["uri"] == "m:2"
    if era == "legacy":
        assert c.ask("resources/subscribe", {"uri": "a+m:1"}).result == {}
        stream = c.get()
        assert stream.is_stream
    else:
        stream = c.send("subscriptions/listen",
                        {"notifications": {"resourceSubscriptions": ["a+m:1"]}})
        assert stream.next().params["notifications"] == {"resourceSubscriptions": ["a+m:1"]}
    assert mv["alpha"].wait_input("resources/subscribe").msg["params"]["uri"] == "m:1"
    mv["alpha"].run(["updated", "m:1"])
    assert stream.next().params["uri"] == "a+m:1"
    answer = c.ask("completion/complete", {
        "ref": {"type": "ref/resource", "uri": "a+m:{x}"},
        "argument": {"name": "x", "value": ""}})
    assert answer.result["completion"]["values"][0] == "m:{x}"


# -- defaults ------------------------------------------------------------------------


def test_defaults_are_for_all_that_do_not_say_otherwise(serve_conf):
    mv = serve_conf(alpha=NEVER, beta=NEVER, more='''
defaults : { call_ms = 150; tools : { deny = ["hid*"]; }; upstream_failure = "tool_error"; };
''', per={"beta": {"upstream_failure": "error", "tools": {"deny": ["x"]}, "call_ms": 200}})
    (mv.folder / "servers.json").write_text(json.dumps({"mcpServers": {
        "gamma": {**mv.entries["alpha"], "mcpvisor": {"call_ms": 170}}}}))
    mv.more += 'mcp_servers = ["servers.json"];\n'
    mv.reload()
    c = mv.legacy()
    # Lists are replaced, not added to.
    wait_for(lambda: c.tools() == ["alpha__never", "beta__never", "beta__hidden",
                                   "gamma__never"], 5, "gamma joins")
    assert c.call("alpha__never", {}).result["isError"] is True
    assert c.call("beta__never", {}).error["data"]["reason"] == "timeout"
    start = time.monotonic()
    assert c.call("gamma__never", {}).result["isError"] is True
    assert time.monotonic() - start >= 0.16


@pytest.mark.parametrize("option", ["command", "args", "enabled", "uri_prefix", "name", "tool"])
def test_defaults_refuse_what_only_one_can_have(serve_conf, option):
    value = {"enabled": "true", "args": "[]", "tool": "()"}.get(option, '"x"')
    mv = serve_conf(alpha=ECHO)
    mv.more = "defaults : { %s = %s; };\n" % (option, value)
    mv.write()
    _, _, err = mv.control("reload", check=3)
    assert "defaults" in err and option in err


# -- bounds --------------------------------------------------------------------------

BOUNDS = [("max_instances", 1, 256), ("probe_ms", 1, 600000), ("start_ms", 1, 3600000),
          ("call_ms", 1, 86400000), ("call_max_ms", 1, 604800000), ("queue_calls", 1, 65536),
          ("queue_bytes", 1, 1 << 30), ("restart_base_ms", 1, 60000),
          ("restart_max_ms", 1, 3600000), ("restart_limit", 0, 1000000),
          ("stable_ms", 1, 86400000), ("term_ms", 0, 600000), ("kill_ms", 0, 600000),
          ("idle_stop_ms", 0, 604800000)]


def test_every_number_has_its_bounds(serve_conf):
    mv = serve_conf({"u%02d" % i: {"command": "/bin/false"} for i in range(len(BOUNDS))},
                    start=False)
    for at in (1, 2):
        mv.per = {"u%02d" % i: {b[0]: b[at]} for i, b in enumerate(BOUNDS)}
        mv.write()
        assert mv.run("check", "--conf", mv.file)[0] == 0
    for low, beyond in ((True, -1), (False, 1)):
        mv.per = {"u%02d" % i: {n: (least if low else most) + beyond}
                  for i, (n, least, most) in enumerate(BOUNDS)}
        mv.write()
        _, _, err = mv.run("check", "--conf", mv.file, check=1)
        for name, _, _ in BOUNDS:
            assert "." + name in err, (name, err)
