# SPDX-License-Identifier: MIT
"""Which era an upstream is of: the probe, its answers, its silence."""
import pytest

from mcp import META, MODERN

LEGACY_WORDS = ["initialize", "notifications/initialized"]


def methods(up):
    return [r.msg.get("method") for r in up.inputs()]


def works(mv, name="alpha"):
    assert mv.call(name + "__echo", {"a": 1}).result["structuredContent"] == {"a": 1}


def test_a_modern_upstream_gets_no_handshake(serve):
    mv = serve(alpha={"era": "modern", "tools": ["echo"]})
    mv.legacy()
    works(mv)
    assert methods(mv["alpha"])[0] == "server/discover"
    assert not set(LEGACY_WORDS) & set(methods(mv["alpha"]))
    for r in mv["alpha"].inputs():
        if "id" in r.msg:
            meta = r.msg["params"]["_meta"]
            assert meta[META + "protocolVersion"] == MODERN
            assert META + "clientCapabilities" in meta


def test_of_both_eras_the_modern_one_is_spoken(serve):
    mv = serve(alpha={"era": "dual", "tools": ["echo"]})
    mv.legacy()
    works(mv)
    assert "initialize" not in methods(mv["alpha"])


def test_o_100_any_error_that_is_not_modern_means_legacy(each):
    """Of the record: a child on stdio; one on HTTP is in test_cases_remote."""
    codes = [-32601, -32602, -32600, -32000, -32603, -32700, 1]
    mv = each({"u%d" % i: {"tools": ["echo"], "on": {"server/discover": [["error", code]]}}
               for i, code in enumerate(codes)})
    for i in range(len(codes)):
        up = "u%d" % i
        works(mv, up)
        assert methods(mv[up])[:3] == ["server/discover", *LEGACY_WORDS]
        assert len(mv[up].starts()) == 1


@pytest.mark.parametrize("raw", [
    '{"jsonrpc":"2.0","id":${ID},"error":{"code":"METHOD","message":"no"}}',
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}',
    '{"jsonrpc":"2.0","id":${ID},"result":{}}',
    '{"jsonrpc":"2.0","id":${ID},"result":{"supportedVersions":"2026-07-28"}}',
])
def test_o_100_odd_answers_to_the_probe(each, raw):
    mv = each(alpha={"tools": ["echo"], "on": {"server/discover": [["raw", raw]]},
                      "mcpvisor": {"probe_ms": 100}})
    works(mv)
    assert len(mv["alpha"].starts()) == 1


@pytest.mark.parametrize("offered", [[MODERN], ["2099-01-01", MODERN]])
def test_o_100_an_unsupported_revision_is_retried_once(each, offered):
    data = {"supported": offered, "requested": MODERN}
    mv = each(alpha={"era": "dual", "tools": ["echo"], "on": {"server/discover": [
        ["set", "on", {}], ["error", -32022, "no", data]]}})
    mv.tools()
    assert "initialize" not in methods(mv["alpha"])
    assert methods(mv["alpha"]).count("server/discover") == 2
    works(mv)


@pytest.mark.parametrize("code", [-32022, -32020, -32021])
def test_o_100_modern_errors_never_mean_legacy(each, code):
    mv = each(alpha={"tools": ["echo"], "on": {"server/discover": [
                   ["error", code, "no", {"supported": ["2099-01-01"],
                                          "requested": MODERN}]]},
                      "mcpvisor": {"start_ms": 1000, "restart_base_ms": 60000}},
               beta={"tools": ["echo"]})
    mv.tools()
    works(mv, "beta")
    assert "initialize" not in methods(mv["alpha"])
    assert mv.tools() == ["beta__echo"]


def test_silence_brings_initialize_as_well(serve):
    mv = serve(alpha={"tools": ["echo"], "on": {"server/discover": []},
                      "mcpvisor": {"probe_ms": 100}})
    mv.legacy()
    works(mv)
    assert methods(mv["alpha"])[:2] == ["server/discover", "initialize"]
    assert len(mv["alpha"].starts()) == 1


def test_a_late_discover_result_still_counts(serve):
    mv = serve(alpha={"era": "dual", "tools": ["echo"], "mcpvisor": {"probe_ms": 50},
                      "on": {"server/discover": [["gate", "d"], ["default"]],
                             "initialize": []}})
    mv["alpha"].wait_input("server/discover")
    # A server is initialised when it is known what its client can do.
    mv.send("ping")
    key = mv.send("tools/list")
    mv["alpha"].wait_input("initialize")
    mv["alpha"].open("d")
    assert mv.answer(key).result["tools"]
    works(mv)
    sent = mv["alpha"].inputs("tools/call")[0].msg
    assert sent["params"]["_meta"][META + "protocolVersion"] == MODERN
    assert len(mv["alpha"].starts()) == 1


def test_a_process_that_takes_both_is_legacy(serve):
    """Servers of both eras settle on what they were asked last."""
    mv = serve(alpha={"era": "dual", "tools": ["echo"], "mcpvisor": {"probe_ms": 50},
                      "on": {"server/discover": [["gate", "d"], ["default"]]}})
    mv["alpha"].wait_input("server/discover")
    mv.send("ping")
    key = mv.send("tools/list")
    mv["alpha"].wait_input("initialize")
    mv["alpha"].open("d")
    assert mv.answer(key).result["tools"]
    works(mv)
    assert "notifications/initialized" in methods(mv["alpha"])
    assert "_meta" not in mv["alpha"].inputs("tools/call")[0].msg["params"]
    assert len(mv["alpha"].starts()) == 1


def test_a_late_error_to_the_probe_changes_nothing(serve):
    mv = serve(alpha={"tools": ["echo"], "mcpvisor": {"probe_ms": 50},
                      "on": {"server/discover": [["gate", "d"], ["error", -32601]]}})
    mv.legacy()
    works(mv)
    mv["alpha"].open("d")
    works(mv)
    assert methods(mv["alpha"]).count("initialize") == 1


def test_o_099_death_by_probe_is_no_crash(each):
    # The delay of a counted crash would exceed every bound of this test.
    mv = each(alpha={"tools": ["echo"], "initialize_first": True,
                      "mcpvisor": {"restart_base_ms": 60000}})
    works(mv)
    first, second = mv["alpha"].starts()
    seen = [r.msg["method"] for r in mv["alpha"].inputs() if r.pid == second.pid]
    assert seen[:2] == LEGACY_WORDS


def test_o_099_the_era_is_remembered_for_the_next_start(each):
    mv = each(alpha={"tools": ["echo"], "initialize_first": True,
                      "mcpvisor": {"restart_base_ms": 20}})
    works(mv)
    mv["alpha"].run(["kill"])
    mv["alpha"].wait_input("notifications/initialized", 2)
    assert len(mv["alpha"].starts()) == 3


@pytest.mark.parametrize("era,first", [("legacy", "initialize"),
                                       ("modern", "server/discover")])
def test_a_pinned_era_is_not_probed(serve, era, first):
    mv = serve(alpha={"era": era, "tools": ["echo"], "mcpvisor": {"era": era}})
    mv.legacy()
    works(mv)
    seen = methods(mv["alpha"])
    assert seen[0] == first
    assert ("server/discover" if era == "legacy" else "initialize") not in seen


def test_a_wrong_pin_fails_that_upstream_alone(serve):
    options = {"era": "modern", "start_ms": 300, "restart_base_ms": 60000}
    mv = serve(alpha={"era": "legacy", "tools": ["echo"], "mcpvisor": options},
               beta={"tools": ["echo"]})
    mv.legacy()
    assert mv.tools() == ["beta__echo"]
    assert "initialize" not in methods(mv["alpha"])
