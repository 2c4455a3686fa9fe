# SPDX-License-Identifier: MIT
"""A client of 2026-07-28: every request stands alone."""
import json

import pytest

from mcp import LEGACY, META, MODERN


def test_discover(serve):
    mv = serve(alpha={"tools": ["echo"], "instructions": "Say please."},
               beta={"era": "modern", "prompts": ["p"]})
    got = mv.modern().ask("server/discover").result
    assert MODERN in got["supportedVersions"]
    assert {"tools", "prompts"} <= set(got["capabilities"])
    assert got["_meta"][META + "serverInfo"]["name"] == "mcpvisor"
    assert got["resultType"] == "complete" and got["ttlMs"] >= 0
    assert "Say please." in got["instructions"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_call_without_any_handshake(serve, era):
    mv = serve(alpha={"era": era, "tools": ["echo"]})
    got = mv.modern().call("alpha__echo", {"a": 1.0})
    assert got.result["resultType"] == "complete"
    assert got.text == '{"a": 1.0}'


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
def test_o_102_a_missing_key_is_invalid_params_and_named(serve, missing):
    mv = serve(alpha={"tools": ["echo"]})
    mv.modern()
    meta = mv.meta()
    del meta[META + missing]
    got = mv.ask("tools/list", json.dumps({"_meta": meta}))
    assert got.code == -32602
    assert missing in got.error["message"]


@pytest.mark.parametrize("key,value", [
    ("protocolVersion", 20260728), ("clientCapabilities", []), ("clientInfo", "me"),
    ("logLevel", "loud"), ("logLevel", 3),
])
def test_a_key_of_the_wrong_kind_is_invalid_params(serve, key, value):
    mv = serve(alpha={"tools": ["echo"]})
    got = mv.modern().ask("tools/list", meta={META + key: value})
    assert got.code == -32602
    assert key in got.error["message"]
    assert mv.ask("tools/list").result["tools"]


def test_client_info_is_optional(serve):
    mv = serve(alpha={"tools": ["echo"]})
    meta = mv.modern().meta()
    del meta[META + "clientInfo"]
    assert mv.ask("tools/list", json.dumps({"_meta": meta})).result["tools"]


@pytest.mark.parametrize("revision", ["2099-01-01", "", *LEGACY])
def test_o_102_unsupported_revision(serve, revision):
    mv = serve(alpha={"tools": ["echo"]})
    got = mv.modern().ask("tools/list", meta={META + "protocolVersion": revision})
    assert got.code == -32022
    assert got.error["data"]["requested"] == revision
    assert MODERN in got.error["data"]["supported"]


@pytest.mark.parametrize("method", [
    "initialize", "ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel",
    "foo/bar", "tools/cal", "roots/list", "sampling/createMessage",
])
def test_methods_that_modern_has_not(serve, method):
    mv = serve(alpha={"tools": ["echo"], "logging": True, "resources": ["m:1"]})
    assert mv.modern().ask(method, {"uri": "m:1", "level": "info"}).code == -32601


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen", "foo/bar"])
def test_methods_that_legacy_has_not(serve, method):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy()
    assert mv.ask(method, {"notifications": {}}).code == -32601


def test_o_102_no_modern_sign_means_legacy_rules(serve, serve_http):
    mv = serve(alpha={"tools": ["echo"]})
    assert mv.ask("server/discover").code == -32601
    c = serve_http(alpha={"tools": ["echo"]}).client()
    assert c.send("server/discover").fault() == (200, -32601)
    assert c.send("tools/list").result["tools"]


def test_the_order_of_checks(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.modern()
    # _meta before revision, revision before method, method before params.
    bad = {META + "protocolVersion": "2099-01-01"}
    assert mv.ask("no/such", json.dumps({"_meta": bad})).code == -32602
    bad[META + "clientCapabilities"] = {}
    assert mv.ask("no/such", json.dumps({"_meta": bad})).code == -32022
    assert mv.ask("no/such", {"name": 7}).code == -32601
    assert mv.ask("tools/call", {"name": 7}).code == -32602


def test_both_eras_on_one_pipe(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy("2025-06-18")
    mv.check_schema = False
    mv.era = "modern"
    assert mv.call("alpha__echo", {}).result["resultType"] == "complete"
    mv.era = "legacy"
    assert "resultType" not in mv.call("alpha__echo", {}).result


def test_lists_say_how_long_they_hold(serve):
    mv = serve(alpha={"era": "modern", "tools": ["echo"], "ttl_ms": 50000},
               beta={"era": "modern", "tools": ["echo"], "ttl_ms": 90000,
                     "scope": "private"})
    got = mv.modern().ask("tools/list").result
    assert got["resultType"] == "complete"
    assert 0 <= got["ttlMs"] <= 50000
    assert got["cacheScope"] == "private"


def test_meta_of_a_request_in_the_upstreams_dialect(serve):
    mv = serve(alpha={"era": "modern", "tools": ["echo"]})
    mv.modern().call("alpha__echo", {}, meta={"com.example/k": {"a": [1, 2.50]}})
    sent = mv["alpha"].inputs("tools/call")[0].msg["params"]["_meta"]
    assert sent[META + "protocolVersion"] == MODERN
    assert META + "clientCapabilities" in sent
    assert sent["com.example/k"] == {"a": [1, 2.5]}


def test_legacy_upstream_never_sees_the_envelope_of_modern(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.modern().call("alpha__echo", {})
    meta = mv["alpha"].inputs("tools/call")[0].msg["params"].get("_meta", {})
    assert not [k for k in meta if k.startswith(META)]
