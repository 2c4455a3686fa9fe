# SPDX-License-Identifier: MIT
"""-32042 of a legacy upstream: a modern client must see it in its own terms."""
from mcp import META

ASK = {"elicitations": [{"mode": "url", "elicitationId": "e-1", "message": "Log in",
                         "url": "https://example.com/in?a=1"}]}
CAPS = {META + "clientCapabilities": {"elicitation": {"url": {}}}}


def asking(data):
    # The first call asks, the second one answers.
    return {"era": "legacy", "tools": ["echo"],
            "calls": {"echo": [["set", "calls", {}], ["error", -32042, "log in first", data]]}}


def test_a_legacy_client_gets_it_as_it_is(serve):
    mv = serve(alpha=asking(ASK))
    mv.legacy()
    got = mv.call("alpha__echo", {})
    assert got.code == -32042 and got.error["data"] == ASK


def test_a_modern_client_gets_input_required_and_calls_again(serve):
    mv = serve(alpha=asking(ASK))
    got = mv.modern().call("alpha__echo", {}, meta=CAPS).result
    assert got["resultType"] == "input_required"
    (key, request), = got["inputRequests"].items()
    assert request["method"] == "elicitation/create"
    # The id is of the older revision; the rest are the upstream's words.
    assert request["params"] == {k: v for k, v in ASK["elicitations"][0].items()
                                 if k != "elicitationId"}
    again = mv.ask("tools/call", {"name": "alpha__echo", "arguments": {"n": 2},
                                  "inputResponses": {key: {"action": "accept"}}},
                   meta=CAPS).result
    assert again["structuredContent"] == {"n": 2}
    # What only the newer revision knows stays out of the upstream's params.
    assert set(mv["alpha"].inputs("tools/call")[1].msg["params"]) <= {"name", "arguments", "_meta"}


def test_a_modern_client_that_cannot_open_urls_is_told_what_is_needed(serve):
    mv = serve(alpha=asking(ASK))
    got = mv.modern().call("alpha__echo", {})
    assert got.code == -32021
    assert got.error["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}


def test_one_that_names_no_url_is_the_upstreams_fault(serve):
    mv = serve(alpha=asking({"elicitations": []}))
    got = mv.modern().call("alpha__echo", {}, meta=CAPS)
    assert got.code == -32603 and got.error["data"]["upstream"] == "alpha"
