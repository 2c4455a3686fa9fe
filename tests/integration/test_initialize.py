# SPDX-License-Identifier: MIT
"""The handshake of a legacy client, and what an upstream sees of its own."""
import json

import pytest

from mcp import LEGACY, META, MODERN


@pytest.mark.parametrize("revision", LEGACY)
def test_every_legacy_revision_is_spoken(serve, revision):
    mv = serve(alpha={"tools": ["echo"]})
    hello = mv.legacy(revision).result
    assert hello["protocolVersion"] == revision
    assert hello["serverInfo"]["name"] == "mcpvisor"
    assert hello["serverInfo"]["version"]
    assert mv.call("alpha__echo", {"a": 1}).result["structuredContent"] == {"a": 1}


@pytest.mark.parametrize("wanted", ["1900-01-01", "2099-01-01", MODERN, "2025-11-2", *LEGACY])
def test_o_055_a_revision_that_we_speak_or_the_latest_legacy_one(serve, serve_http, wanted):
    want = wanted if wanted in LEGACY else "2025-11-25"
    mv = serve(alpha={"tools": ["echo"]})
    assert mv.legacy(wanted).result["protocolVersion"] == want
    mv.revision = want
    assert mv.tools() == ["alpha__echo"]
    c = serve_http(alpha={"tools": ["echo"]}).client()
    answer = c.send("initialize", {"protocolVersion": wanted, "capabilities": {},
                                   "clientInfo": {"name": "a", "version": "1"}})
    assert answer.status == 200 and answer.result["protocolVersion"] == want
    c.session, c.revision = answer.header("Mcp-Session-Id"), want
    assert c.tools() == ["alpha__echo"]


@pytest.mark.parametrize("version", ["20251125", '""', "null", "[]", None])
def test_o_055_malformed_revision_is_invalid_params(serve, serve_http, version):
    params = '{%s"capabilities":{},"clientInfo":{"name":"a","version":"1"}}' % (
        "" if version is None else '"protocolVersion":%s,' % version)
    mv = serve(alpha={"tools": ["echo"]})
    assert mv.ask("initialize", params).code == -32602
    assert mv.legacy().result["protocolVersion"] == "2025-11-25"
    answer = serve_http(alpha={"tools": ["echo"]}).client().send("initialize",
                                                                 json.loads(params))
    assert answer.code == -32602 and answer.header("Mcp-Session-Id") is None


def test_initialize_without_params_is_invalid_params(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.line('{"jsonrpc":"2.0","id":1,"method":"initialize"}')
    assert mv.answer(1).code == -32602


def test_ping_comes_before_everything(serve):
    mv = serve(alpha={"tools": ["echo"], "on": {"initialize": []}})
    assert mv.ask("ping", id="early").result == {}


def test_initialize_with_modern_meta_is_no_method(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.modern()
    got = mv.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": {"name": "a", "version": "1"}})
    assert got.code == -32601
    for key in ("clientInfo", "clientCapabilities"):
        mv.era = "legacy"
        got = mv.ask("initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "a", "version": "1"},
            "_meta": {META + key: {}}})
        # Modern by its meta, of which a required member is missing.
        assert got.code in (-32602, -32601)


def test_o_056_the_upstream_sees_one_handshake(serve_http, connect, tmp_path):
    """Many clients of one shared child, which refuses a second handshake and dies of a third."""
    path = str(tmp_path / "s.sock")
    once = [["set", "on", {"initialize": [["set", "on", {"initialize": [["kill"]]}],
                                          ["error", -32600, "again?"]]}], ["default"]]
    mv = serve_http(alpha={"tools": ["echo"], "on": {"initialize": once}},
                    listen=("127.0.0.1:0", "unix:" + path))
    clients = [mv.legacy(), connect(path).speak("2024-11-05"), mv.legacy("2025-06-18"),
               mv.modern(), connect(path).speak("modern"), mv.legacy("2025-03-26")]
    for n, c in enumerate(clients):
        assert c.tools() == ["alpha__echo"]
        assert c.call("alpha__echo", {"n": n}).result["structuredContent"] == {"n": n}
    assert len(mv["alpha"].inputs("initialize")) == 1
    assert len(mv["alpha"].inputs("notifications/initialized")) == 1
    assert len(mv["alpha"].starts()) == 1
    # One more for the next process.
    mv["alpha"].run(["kill"])
    mv["alpha"].wait_input("notifications/initialized", 2)
    assert clients[0].legacy().message().result
    assert len(mv["alpha"].inputs("initialize")) == 2


def test_o_058_initialized_comes_before_other_requests(each):
    """Of the record: a child on stdio; one on HTTP is in test_cases_remote."""
    strict = [["set", "on", {}], ["default"]]
    early = {m: [["error", -32002, "not initialized"]] for m in
             ("tools/list", "prompts/list", "resources/list", "resources/templates/list",
              "tools/call", "ping")}
    mv = each(alpha={"tools": ["echo"], "prompts": ["p"], "resources": ["r:1"],
                     "on": {**early, "notifications/initialized": strict}})
    assert mv.call("alpha__echo", {}).result and mv.tools() == ["alpha__echo"]
    methods = [r.msg.get("method") for r in mv["alpha"].inputs()]
    assert methods[:3] == ["server/discover", "initialize", "notifications/initialized"]
    assert methods.index("notifications/initialized") < methods.index("tools/list")


def test_what_we_tell_a_legacy_upstream(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy("2024-11-05", capabilities={"roots": {"listChanged": True}, "sampling": {}})
    params = mv["alpha"].inputs("initialize")[0].msg["params"]
    assert params["protocolVersion"] == "2025-11-25"
    # Its questions are passed on, so those that this client takes are invited.
    assert params["capabilities"] == {"roots": {"listChanged": True}, "sampling": {}}
    assert params["clientInfo"]["name"] and params["clientInfo"]["version"]


@pytest.mark.parametrize("revision", LEGACY)
def test_upstreams_of_every_legacy_revision(serve, revision):
    mv = serve(alpha={"tools": ["echo"], "versions": [revision]})
    mv.legacy("2025-06-18")
    assert mv.call("alpha__echo", {"v": 1}).result["structuredContent"] == {"v": 1}


def test_upstream_with_a_revision_we_do_not_speak(serve):
    mv = serve(alpha={"tools": ["echo"], "versions": ["1999-01-01"],
                      "mcpvisor": {"restart_base_ms": 60000}},
               beta={"tools": ["echo"]})
    mv.legacy()
    assert mv.tools() == ["beta__echo"]
    mv.wait_log("alpha.*1999-01-01|1999-01-01.*alpha")


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_048_capabilities_are_the_union(each, upstream):
    mv = each(alpha={"era": upstream, "prompts": ["greet"]},
              beta={"era": upstream, "tools": ["echo"]},
              gamma={"resources": ["mem:1"], "texts": {"mem:1": "one"}})
    if mv.is_modern:
        caps = mv.ask("server/discover").result["capabilities"]
    else:
        caps = (mv.c.legacy().message() if mv.is_http else mv.c.legacy()).result["capabilities"]
        assert caps["resources"].get("subscribe") is True
    assert {"prompts", "tools", "resources"} <= set(caps)
    assert mv.tools() == ["beta__echo"]
    assert [p["name"] for p in mv.ask("prompts/list").result["prompts"]] == ["alpha__greet"]
    assert [r["uri"] for r in mv.ask("resources/list").result["resources"]] == ["mem:1"]
    assert mv.ask("prompts/get", {"name": "alpha__greet"}).result["messages"]
    assert mv.ask("resources/read", {"uri": "mem:1"}).result["contents"][0]["text"] == "one"


def test_instructions_are_merged_under_their_upstreams_names(serve):
    mv = serve(alpha={"tools": ["echo"], "instructions": "Say please."},
               beta={"tools": ["echo"]},
               gamma={"era": "modern", "tools": ["echo"], "instructions": "Be \"brief\"."})
    text = mv.legacy().result["instructions"]
    assert text.index("alpha") < text.index("Say please.") < text.index("gamma") \
        < text.index('Be "brief".')
    assert "beta" not in text


def test_no_upstream_has_instructions(serve):
    mv = serve(alpha={"tools": ["echo"]})
    assert "instructions" not in mv.legacy().result
