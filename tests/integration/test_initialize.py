# SPDX-License-Identifier: MIT
"""The handshake of a legacy client, and what an upstream sees of its own."""
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


@pytest.mark.parametrize("wanted", ["1900-01-01", "2099-01-01", MODERN, "2025-11-2"])
def test_o_055_unknown_revision_gets_the_latest_legacy_one(serve, wanted):
    mv = serve(alpha={"tools": ["echo"]})
    assert mv.legacy(wanted).result["protocolVersion"] == "2025-11-25"
    mv.revision = "2025-11-25"
    assert mv.tools() == ["alpha__echo"]


@pytest.mark.parametrize("params", [
    '{"protocolVersion":20251125,"capabilities":{},"clientInfo":{"name":"a","version":"1"}}',
    '{"protocolVersion":"","capabilities":{},"clientInfo":{"name":"a","version":"1"}}',
    '{"protocolVersion":null,"capabilities":{},"clientInfo":{"name":"a","version":"1"}}',
    '{"capabilities":{},"clientInfo":{"name":"a","version":"1"}}',
])
def test_o_055_malformed_revision_is_invalid_params(serve, params):
    mv = serve(alpha={"tools": ["echo"]})
    assert mv.ask("initialize", params).code == -32602
    assert mv.legacy().result["protocolVersion"] == "2025-11-25"


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


def test_o_056_the_upstream_sees_one_handshake(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy()
    mv.tools()
    mv.call("alpha__echo", {})
    assert len(mv["alpha"].inputs("initialize")) == 1
    assert len(mv["alpha"].inputs("notifications/initialized")) == 1
    assert len(mv["alpha"].starts()) == 1


def test_o_058_initialized_comes_before_other_requests(serve):
    mv = serve(alpha={"tools": ["echo"], "prompts": ["p"], "resources": ["r:1"]})
    mv.legacy()
    mv.call("alpha__echo", {})
    methods = [r.msg.get("method") for r in mv["alpha"].inputs()]
    methods = methods[methods.index("initialize"):]
    assert methods[:2] == ["initialize", "notifications/initialized"]
    assert methods.index("notifications/initialized") < methods.index("tools/list")


def test_what_we_tell_a_legacy_upstream(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy("2024-11-05", capabilities={"roots": {"listChanged": True}, "sampling": {}})
    params = mv["alpha"].inputs("initialize")[0].msg["params"]
    assert params["protocolVersion"] == "2025-11-25"
    # No question of an upstream is passed on, so none is invited.
    assert not {"roots", "sampling", "elicitation"} & set(params["capabilities"])
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


def test_o_048_capabilities_are_the_union(serve):
    mv = serve(alpha={"prompts": ["greet"]}, beta={"tools": ["echo"]},
               gamma={"resources": ["mem:1"], "texts": {"mem:1": "one"}})
    caps = mv.legacy().result["capabilities"]
    assert {"prompts", "tools", "resources"} <= set(caps)
    assert caps["resources"].get("subscribe") is True
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
