# SPDX-License-Identifier: MIT
"""What a profile shows, under which path, and that what it hides is unknown."""
import json

import pytest

from mcp import wait_for

ERAS = ["legacy", "modern"]
ANY = {"inputSchema": {"type": "object"}}
FULL = {
    "tools": [{"name": "look", "annotations": {"readOnlyHint": True}, **ANY},
              {"name": "write", "annotations": {"destructiveHint": False}, **ANY},
              {"name": "wipe", **ANY}],
    "prompts": ["p1", "p2"], "resources": ["m:1", "m:2", "secret:1"],
    "resourceTemplates": ["t:{x}", "secret:{x}"], "texts": {"m:1": "one", "secret:1": "no"}}
PROFILES = """
profile : {
  ro : { tools : { allow = ["@read_only"]; }; };
  dev : { upstreams = ["a*"]; tools : { deny = ["*wipe", "@read_only"]; };
          prompts : { allow = ["*__p1"]; }; resources : { deny = ["secret:*"]; }; };
  none : { upstreams = ["nobody"]; };
};
listen = (
  { address = "127.0.0.1:0"; },
  { address = "127.0.0.1:0"; path = "/mcp/dev"; profile = "dev"; },
  { address = "127.0.0.1:0"; path = "/mcp/ro"; profile = "ro"; },
  { address = "127.0.0.1:0"; path = "/none"; profile = "none"; } );
"""


@pytest.fixture
def mv(serve_conf):
    return serve_conf(alpha=FULL, beta=FULL, more=PROFILES, listen=[""])


def at(mv, era, path):
    c = mv.client()
    c.path = path
    if era == "modern":
        c.era, c.revision = "modern", "2026-07-28"
    else:
        c.legacy()
    return c


def tools(c):
    return sorted(t["name"] for t in c.ask("tools/list").result["tools"])


@pytest.mark.parametrize("era", ERAS)
def test_each_path_shows_its_profile(mv, era):
    whole = at(mv, era, "/mcp")
    assert tools(whole) == sorted("%s__%s" % (u, t) for u in ("alpha", "beta")
                                  for t in ("look", "write", "wipe"))
    ro = at(mv, era, "/mcp/ro")
    assert tools(ro) == ["alpha__look", "beta__look"]
    dev = at(mv, era, "/mcp/dev")
    assert tools(dev) == ["alpha__write"]
    assert [p["name"] for p in dev.ask("prompts/list").result["prompts"]] == ["alpha__p1"]
    assert sorted(r["uri"] for r in dev.ask("resources/list").result["resources"]) == [
        "m:1", "m:2"]
    found = dev.ask("resources/templates/list").result["resourceTemplates"]
    assert [t["uriTemplate"] for t in found] == ["t:{x}"]
    none = at(mv, era, "/none")
    assert tools(none) == []


@pytest.mark.parametrize("era", ERAS)
def test_what_is_hidden_is_unknown(mv, era):
    dev = at(mv, era, "/mcp/dev")
    tools(dev)
    before = len(mv["alpha"].inputs("tools/call"))
    for name in ("alpha__wipe", "alpha__look", "beta__write", "nothing__there"):
        answer = dev.call(name, {})
        assert answer.code == -32602 and answer.error["message"] == "Unknown tool: " + name
    assert dev.ask("prompts/get", {"name": "alpha__p2"}).code == -32602
    wanted = -32002 if era == "legacy" else -32602
    for uri in ("secret:1", "secret:2"):
        assert dev.ask("resources/read", {"uri": uri}).code == wanted
    assert dev.ask("completion/complete", {
        "ref": {"type": "ref/prompt", "name": "alpha__p2"},
        "argument": {"name": "a", "value": ""}}).code == -32602
    assert len(mv["alpha"].inputs("tools/call")) == before
    assert not mv["alpha"].inputs("resources/read")
    assert dev.call("alpha__write", {}).result
    assert dev.ask("resources/read", {"uri": "m:1"}).result


def test_a_session_belongs_to_its_profile(mv):
    dev = at(mv, "legacy", "/mcp/dev")
    stolen = at(mv, "legacy", "/mcp")
    stolen.session = dev.session
    assert stolen.send("tools/list").status == 404
    # And over a restart, when the id is all there is.
    mv.restart()
    assert tools(dev) == ["alpha__write"]
    assert stolen.send("tools/list").status == 404


def test_a_profile_hears_of_its_own_changes_only(mv):
    dev, ro = at(mv, "legacy", "/mcp/dev"), at(mv, "legacy", "/mcp/ro")
    assert tools(dev) and tools(ro)
    s_dev, s_ro = dev.get(), ro.get()
    mv["alpha"].run(["set", "tools", [{"name": "write", **ANY}]], ["changed", "tools"])
    assert s_ro.next().msg["method"] == "notifications/tools/list_changed"
    wait_for(lambda: tools(ro) == ["beta__look"], 5, "ro has lost one")
    assert tools(dev) == ["alpha__write"]
    mv["beta"].run(["set", "tools", []], ["changed", "tools"])
    assert s_ro.next().msg["method"] == "notifications/tools/list_changed"
    mv["alpha"].run(["set", "prompts", ["p1", "p3"]], ["changed", "prompts"])
    wait_for(lambda: "alpha__p3" in json.dumps(ro.ask("prompts/list").result), 5, "p3")
    # dev was told nothing of all that: the first thing it hears is of its own.
    mv["alpha"].run(["set", "prompts", ["p3"]], ["changed", "prompts"])
    found = s_dev.next().msg["method"]
    assert found in ("notifications/prompts/list_changed", "notifications/tools/list_changed")


def test_reload_changes_a_profile(mv):
    dev = at(mv, "legacy", "/mcp/dev")
    assert tools(dev) == ["alpha__write"]
    mv.more = PROFILES.replace('"*wipe", ', "")
    mv.reload()
    assert tools(dev) == ["alpha__wipe", "alpha__write"]
    mv.more = PROFILES.replace("profile = \"dev\"", "profile = \"ro\"")
    mv.reload()
    assert dev.send("tools/list").status == 404


def test_the_command_line_shows_a_profile(mv):
    _, out, _ = mv.control("tools", "--json", "--profile", "dev")
    assert [t["name"] for t in json.loads(out)] == ["alpha__write"]
    mv.control("call", "--profile", "dev", "alpha__wipe", check=4)
    mv.control("call", "--profile", "dev", "alpha__write", check=0)
    _, _, err = mv.control("tools", "--profile", "nobody", check=3)
    assert "nobody" in err


def test_stdio_shows_a_profile(mv):
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}}}
    lines = [hello, {"jsonrpc": "2.0", "method": "notifications/initialized"},
             {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
             {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
              "params": {"name": "alpha__wipe", "arguments": {}}}]
    text = "".join(json.dumps(m) + "\n" for m in lines).encode()
    _, out, _ = mv.run("stdio", "--conf", mv.file, "--profile", "dev", check=0, stdin=text)
    answers = {m["id"]: m for m in map(json.loads, out.splitlines()) if "id" in m}
    assert [t["name"] for t in answers[1]["result"]["tools"]] == ["alpha__write"]
    assert answers[2]["error"]["code"] == -32602
