# SPDX-License-Identifier: MIT
"""Official SDK clients of both eras over all five servers at once."""

import json

import pytest

# A few tools of each server; the raw wire test compares the whole lists.
TOOLS = {
    "everything__echo",
    "everything__get-structured-content",
    "everything__trigger-long-running-operation",
    "filesystem__read_text_file",
    "filesystem__write_file",
    "memory__create_entities",
    "memory__read_graph",
    "sequential-thinking__sequentialthinking",
    "modern__greet",
    "modern__slow",
}


def text_of(result):
    return result["content"][0]["text"]


def names(items):
    return [item["name"] for item in items]


def test_connects(client):
    assert client["connect"]["ok"]


def test_says_who_it_is(client):
    info = client["info"]
    assert info["server"]["name"] == "mcpvisor"
    for capability in ("tools", "prompts", "resources", "completions"):
        assert capability in info["capabilities"], info["capabilities"]
    if client.label.startswith("client2"):
        assert info["era"] == client.era
    if client.era == "modern":
        assert info["revision"] == "2026-07-28"
        assert "2026-07-28" in info["discovered"]["supportedVersions"]


def test_instructions_of_all_servers_are_merged(client):
    instructions = client["info"]["instructions"]
    assert "Server instructions are working!" in instructions
    assert "The modern child counts and greets." in instructions
    assert "everything" in instructions and "modern" in instructions


def test_lists_merged_tools(client):
    listed = names(client["tools"]["tools"])
    assert TOOLS <= set(listed)
    assert len(listed) == len(set(listed))
    # conf order first, so that a list is the same on every day
    owners = list(dict.fromkeys(name.split("__")[0] for name in listed))
    assert owners == ["everything", "filesystem", "memory", "sequential-thinking",
                      "modern"]


def test_lists_merged_prompts(client):
    listed = names(client["prompts"]["prompts"])
    assert {"everything__args-prompt", "everything__completable-prompt",
            "modern__plan"} <= set(listed)


def test_lists_merged_resources(client):
    uris = [r["uri"] for r in client["resources"]["resources"]]
    assert "demo://resource/static/document/features.md" in uris
    assert "memory://knowledge-graph" in uris
    assert "interop://counter" in uris


def test_lists_merged_templates(client):
    uris = [t["uriTemplate"] for t in client["templates"]["resourceTemplates"]]
    assert "demo://resource/dynamic/text/{resourceId}" in uris
    assert "interop://item/{id}" in uris


def test_calls_everything(client):
    result = client["call_everything"]
    assert result["structuredContent"] == {
        "temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}


def test_calls_filesystem(client):
    assert text_of(client["call_filesystem"]) == "hello\nworld\n"


def test_calls_memory(client):
    result = client["call_memory"]
    assert result["structuredContent"]["entities"][0]["name"] == client.label
    assert client.label in client.run.memory.read_text()


def test_calls_sequential_thinking(client):
    assert client["call_thinking"]["structuredContent"]["thoughtHistoryLength"] == 1


def test_calls_modern(client):
    result = client["call_modern"]
    assert result["structuredContent"] == {"greeting": "Hello, Bo", "letters": 2}
    assert result["_meta"]["example.org/mood"] == {"value": 0.1, "words": ["glad"]}
    assert result["content"][0]["annotations"] == {"priority": 0.1, "audience": ["user"]}


def test_a_failed_tool_is_a_result(client):
    assert client["is_error_legacy"]["isError"] is True
    assert "Access denied" in text_of(client["is_error_legacy"])
    assert client["is_error_modern"]["isError"] is True
    assert text_of(client["is_error_modern"]) == "failed: no luck"
    assert client["is_error_modern"]["_meta"]["example.org/retry"] is False


@pytest.mark.parametrize("step, name", [
    ("unknown_tool", "everything__no-such-tool"),
    ("unknown_upstream", "nobody__echo"),
])
def test_unknown_tool_is_32602(client, step, name):
    error = client[step]["error"]
    assert error["code"] == -32602
    assert f"Unknown tool: {name}" in error["message"]


def test_reads_resources(client):
    document = client["read_everything"]["contents"][0]
    assert document["mimeType"] == "text/markdown" and document["text"]
    graph = json.loads(client["read_memory"]["contents"][0]["text"])
    assert names(graph["entities"]) == [client.label]
    assert client["read_modern"]["contents"][0]["text"] == "0"


def test_reads_by_template(client):
    content = client["read_template"]["contents"][0]
    assert content["uri"] == "demo://resource/dynamic/text/7"
    assert content["text"].startswith("Resource 7:")
    content = client["read_modern_template"]["contents"][0]
    assert json.loads(content["text"]) == {"id": "3"}


def test_resource_not_found(client):
    # client 2.x shows either era's code as its own; the raw wire test tells them apart
    error = client["read_unknown"]["error"]
    assert error["code"] == (-32002 if client.label == "sdk1" else -32602)
    if client.era == "modern":
        assert error["data"]["uri"] == "nothing://here"


def test_gets_prompts(client):
    message = client["prompt_everything"]["messages"][0]
    assert message["content"]["text"] == "What's weather in Bonn?"
    message = client["prompt_modern"]["messages"][0]
    assert message["content"]["text"] == "Plan a program in c"


def test_unknown_prompt_is_32602(client):
    assert client["prompt_unknown"]["error"]["code"] == -32602


def test_completes_arguments(client):
    assert client["complete_prompt"]["completion"]["values"] == ["Alice"]
    assert client["complete_template"]["completion"]["values"] == ["12"]
    assert client["complete_modern"]["completion"]["values"] == ["c", "clojure", "cobol"]
    assert client["complete_modern_template"]["completion"]["values"] == ["11", "12"]


def check_progress(seen, total):
    """The SDKs handle a notice one turn after it was read and a reply at once:
    what is read together with the reply gets lost in the client. So here the
    last ones may be missing; the raw wire test counts them."""
    steps = [p["progress"] for p in seen["progress"]]
    assert steps and steps == list(range(1, len(steps) + 1))
    assert {p["total"] for p in seen["progress"]} == {total}


def test_progress_comes_in_order_before_the_result(client):
    check_progress(client["progress_everything"], 4)
    assert "completed" in text_of(client["progress_everything"]["result"])
    seen = client["progress_modern"]
    check_progress(seen, 5)
    assert seen["progress"][0]["message"] == "step 1"
    assert text_of(seen["result"]) == "counted to 5"


def test_progress_of_calls_at_once_is_not_mixed_up(client):
    everything, modern = client["progress_both"]["calls"]
    check_progress(everything, 2)
    check_progress(modern, 3)


def test_cancels_a_call_of_the_modern_server(client):
    step = client["cancel_modern"]
    assert "error" in step and "result" not in step
    assert step["after"]["structuredContent"]["greeting"] == "Hello, again"


def test_cancels_a_call_of_a_legacy_server(client):
    step = client["cancel_everything"]
    assert "error" in step and "result" not in step
    assert text_of(step["after"]) == "Echo: again"


def calls_of(told, name):
    return [m["id"] for m in told
            if m.get("method") == "tools/call" and m["params"]["name"] == name]


def cancels_in(told):
    return [m["params"]["requestId"] for m in told
            if m.get("method") == "notifications/cancelled"]


def test_a_cancel_goes_to_its_owner_alone(client):
    assert client["cancel_everything"] and client["cancel_modern"]
    told = client.run.told("everything")
    assert cancels_in(told) == [calls_of(told, "trigger-long-running-operation")[-1]]
    told = client.run.told("modern")
    assert calls_of(told, "slow")[0] in cancels_in(told)
    for name in ("filesystem", "memory", "sequential-thinking"):
        assert cancels_in(client.run.told(name)) == []


def test_resource_updates(client):
    assert client["watch_everything"]["seen"]
    step = client["watch_modern"]
    assert step["seen"]["params"]["uri"] == "interop://counter"
    assert text_of(step["bumped"]) == "1"


def test_list_changes(client):
    step = client["list_changed"]
    assert step["noticed"] >= 1
    assert "modern__grown" in names(step["tools"])
    assert text_of(step["called"]) == "grown"


def test_ping_and_log_of_legacy_clients(client):
    if client.era != "legacy":
        pytest.skip("the modern revision has neither")
    assert client["ping"]["ok"]
    params = client["log"]["seen"]["params"]
    assert params["level"] in params["data"].lower()


# Of a daemon, before it is known who will ask: what clients may have; never roots.
SHARED = {"elicitation": {"form": {}, "url": {}}, "sampling": {"context": {}, "tools": {}}}


def test_upstreams_see_what_they_may_ask(client):
    """These clients can answer nothing."""
    assert client["connect"]["ok"]
    declared = SHARED if hasattr(client, "stopped") else {}
    for name in ("everything", "filesystem", "memory", "sequential-thinking"):
        told = client.run.told(name)
        first = [m for m in told if m.get("method") == "initialize"]
        assert len(first) == 1
        assert first[0]["params"]["capabilities"] == declared
        done = [m for m in told if m.get("method") == "notifications/initialized"]
        assert len(done) == 1
    for message in client.run.told("modern"):
        meta = message.get("params", {}).get("_meta", {})
        if "io.modelcontextprotocol/clientCapabilities" in meta:
            assert meta["io.modelcontextprotocol/clientCapabilities"] == {}


def test_close_is_quick_and_leaves_nothing(client):
    # at 2 s the SDK would lose its patience and send SIGTERM
    assert client["close"]["ms"] < 2000
    assert client.status == 0
    assert client.left == []
