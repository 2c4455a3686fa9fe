# SPDX-License-Identifier: MIT
"""The same request to a server itself and through mcpvisor: the answers are
compared as raw text, never as parsed JSON."""

import json
import time

import pytest

import interop_env as env
from interop_wire import LEGACY, Wire, elements, members, renamed

LONG = "trigger-long-running-operation"


def quoted(value):
    return json.dumps(value)


class Peers:
    """Each server on its own, and one mcpvisor per era of client over them all.

    Every one of the three has servers of its own, which get the same requests
    in the same order: what a server remembers is alike."""

    def __init__(self, make_run):
        own, self.legacy_run, self.modern_run = (
            make_run(f"wire-{kind}") for kind in ("direct", "legacy", "modern"))
        self.direct = {
            name: Wire([env.NODE, *own.script(name)],
                       {**own.environ(), **own.upstream_env(name)},
                       own.folder / "stderr", modern=name == "modern")
            for name in env.UPSTREAMS}
        self.legacy = self._visor(self.legacy_run, False)
        self.modern = self._visor(self.modern_run, True)
        for wire in (*self.direct.values(), self.legacy):
            if not wire.modern:
                wire.initialize()

    @staticmethod
    def _visor(run, modern):
        return Wire([run.command, *run.args], run.environ(), run.folder / "stderr",
                    modern)

    def close(self):
        return [w.close() for w in (*self.direct.values(), self.legacy, self.modern)]


@pytest.fixture(scope="module")
def peers(make_run):
    p = Peers(make_run)
    yield p
    p.close()


# Where the definitions are, and whether their names get a prefix.
LISTS = {
    "tools/list": ("tools", True),
    "prompts/list": ("prompts", True),
    "resources/list": ("resources", False),
    "resources/templates/list": ("resourceTemplates", False),
}
CAPABLE = {
    "tools/list": env.UPSTREAMS,
    "prompts/list": ("everything", "modern"),
    "resources/list": ("everything", "memory", "modern"),
    "resources/templates/list": ("everything", "memory", "modern"),
}


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("era", ("legacy", "modern"))
def test_definitions_are_the_servers_own_bytes(peers, era, method):
    member, prefixed = LISTS[method]
    expected = []
    for name in CAPABLE[method]:
        for definition in peers.direct[name].list(method, member):
            own = json.loads(definition)["name"]
            expected.append(renamed(definition, f"{name}__{own}") if prefixed
                            else definition)
    assert getattr(peers, era).list(method, member) == expected


def test_modern_lists_say_how_long_they_hold(peers):
    page = members(peers.modern.result("tools/list"))
    assert page["resultType"] == '"complete"'
    assert int(page["ttlMs"]) >= 0
    # the modern server's own list is private, so the whole is
    assert page["cacheScope"] == '"private"'


# upstream, tool, arguments; {files} stands for the folder of the run
CALLS = [
    ("everything", "echo", {"message": "plain"}),
    ("everything", "echo", {"message": "\"q\" \\ / \t\n\r\b\f \u0000 \u001f \u007f"}),
    ("everything", "echo", {"message": "ü 🎉 \u2028 \ud800 é e\u0301 \ufeff"}),
    ("everything", "echo", {"message": "long " * 60000}),
    ("everything", "get-sum", {"a": 0.1, "b": 0.2}),
    ("everything", "get-sum", {"a": 1e300, "b": -5e-324}),
    ("everything", "get-tiny-image", {}),
    ("everything", "get-annotated-message",
     {"messageType": "error", "includeImage": True}),
    ("everything", "get-structured-content", {"location": "New York"}),
    ("everything", "get-resource-links", {"count": 4}),
    ("everything", "gzip-file-as-resource",
     {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"}),
    ("everything", "gzip-file-as-resource",
     {"name": "b.gz", "data": "data:text/plain,hello", "outputType": "resource"}),
    ("everything", LONG, {"duration": 0.1, "steps": 2}),
    ("filesystem", "read_text_file", {"path": "{files}/odd.txt"}),
    ("filesystem", "read_media_file", {"path": "{files}/sub/data.bin"}),
    ("filesystem", "read_multiple_files",
     {"paths": ["{files}/hello.txt", "{files}/none"]}),
    ("filesystem", "list_directory", {"path": "{files}"}),
    ("filesystem", "list_directory_with_sizes", {"path": "{files}"}),
    ("filesystem", "directory_tree", {"path": "{files}"}),
    ("filesystem", "search_files", {"path": "{files}", "pattern": "**/*.txt"}),
    ("filesystem", "edit_file", {"path": "{files}/hello.txt", "dryRun": True, "edits": [
        {"oldText": "world", "newText": "moon"}]}),
    ("filesystem", "write_file",
     {"path": "{files}/written.txt", "content": "x\u0000y ü"}),
    ("filesystem", "list_allowed_directories", {}),
    ("memory", "create_entities", {"entities": [
        {"name": "Ada", "entityType": "person", "observations": ["counts", "\u2028"]}]}),
    ("memory", "create_relations", {"relations": [
        {"from": "Ada", "to": "Ada", "relationType": "knows"}]}),
    ("memory", "add_observations", {"observations": [
        {"entityName": "Ada", "contents": ["writes"]}]}),
    ("memory", "read_graph", {}),
    ("memory", "search_nodes", {"query": "ada"}),
    ("memory", "delete_relations", {"relations": []}),
    ("sequential-thinking", "sequentialthinking", {
        "thought": "one", "nextThoughtNeeded": True, "thoughtNumber": 1,
        "totalThoughts": 2}),
    ("sequential-thinking", "sequentialthinking", {
        "thought": "two", "nextThoughtNeeded": "false", "thoughtNumber": "2",
        "totalThoughts": 2, "branchFromThought": 1, "branchId": "b"}),
    ("modern", "greet", {"name": "Bo \u2028 \"x\""}),
    ("modern", "count", {"to": 2}),
    ("modern", "bump", {}),
]

FAILURES = [
    ("everything", "echo", {}),
    ("everything", "echo", {"message": 7}),
    ("everything", "get-structured-content", {"location": "Atlantis"}),
    ("everything", "gzip-file-as-resource",
     {"name": "c.gz", "data": "file:///etc/passwd"}),
    ("filesystem", "read_text_file", {"path": "/etc/passwd"}),
    ("filesystem", "read_text_file", {"path": "{files}/none"}),
    ("filesystem", "read_text_file", {"path": "{files}/hello.txt", "head": 1, "tail": 1}),
    ("filesystem", "read_multiple_files", {"paths": []}),
    ("memory", "add_observations", {"observations": [
        {"entityName": "Nobody", "contents": ["x"]}]}),
    ("memory", "create_entities", {"entities": [{"name": "half"}]}),
    ("sequential-thinking", "sequentialthinking", {"thought": "no more"}),
    ("sequential-thinking", "sequentialthinking", {
        "thought": "x", "nextThoughtNeeded": "maybe", "thoughtNumber": 1,
        "totalThoughts": 1}),
    ("modern", "fail", {"why": "ü\u2028"}),
    ("modern", "fail", {}),
]


def call_body(peers, name, arguments):
    text = json.dumps(arguments).replace("{files}", str(peers.legacy_run.files))
    return f'"name":{quoted(name)},"arguments":{text}'


def ask(peers, upstream, method, own, through):
    """Raw reply members of the server itself, and by era through mcpvisor."""
    idents = [(wire, wire.send(method, body)) for wire, body in (
        (peers.direct[upstream], own), (peers.legacy, through), (peers.modern, through))]
    return [wire.reply(ident) for wire, ident in idents]


def ask_tool(peers, upstream, tool, arguments):
    return ask(peers, upstream, "tools/call", call_body(peers, tool, arguments),
               call_body(peers, f"{upstream}__{tool}", arguments))


def check_call(upstream, replies):
    direct, legacy, modern = (reply["result"] for reply in replies)
    for key in ("content", "structuredContent", "isError", "_meta"):
        own = members(direct).get(key)
        assert members(legacy).get(key) == own, key
        assert members(modern).get(key) == own, key
    # nothing else is touched either; a legacy server's result gets its one word
    assert legacy == direct
    if upstream == "modern":
        assert modern == direct
    else:
        assert modern == '{"resultType":"complete",' + direct[1:]


@pytest.mark.parametrize("upstream, tool, arguments", CALLS)
def test_results_are_the_servers_own_bytes(peers, upstream, tool, arguments):
    replies = ask_tool(peers, upstream, tool, arguments)
    assert members(replies[0]["result"]).get("isError", "false") == "false"
    check_call(upstream, replies)


@pytest.mark.parametrize("upstream, tool, arguments", FAILURES)
def test_failures_are_the_servers_own_bytes(peers, upstream, tool, arguments):
    replies = ask_tool(peers, upstream, tool, arguments)
    assert members(replies[0]["result"])["isError"] == "true"
    check_call(upstream, replies)


def without(result, keys):
    return [(key, text) for key, text in members(result).items() if key not in keys]


# What a legacy server's result may gain for a modern client, by method.
GAINS = {
    "prompts/get": {"resultType"},
    "completion/complete": {"resultType"},
    "resources/read": {"resultType", "ttlMs", "cacheScope"},
}

# upstream, method, params; a name or ref that gets the prefix is marked by @
REQUESTS = [
    ("everything", "prompts/get", {"name": "@simple-prompt"}),
    ("everything", "prompts/get",
     {"name": "@args-prompt", "arguments": {"city": "Köln \u2028"}}),
    ("modern", "prompts/get", {"name": "@plan", "arguments": {"language": "c"}}),
    ("everything", "resources/read",
     {"uri": "demo://resource/static/document/features.md"}),
    ("everything", "resources/read", {"uri": "demo://resource/session/a.gz"}),
    ("memory", "resources/read", {"uri": "memory://knowledge-graph"}),
    ("modern", "resources/read", {"uri": "interop://counter"}),
    ("modern", "resources/read", {"uri": "interop://item/%C3%BC"}),
    ("everything", "completion/complete", {
        "ref": {"type": "ref/prompt", "name": "@completable-prompt"},
        "argument": {"name": "department", "value": "S"}}),
    ("everything", "completion/complete", {
        "ref": {"type": "ref/resource",
                "uri": "demo://resource/dynamic/blob/{resourceId}"},
        "argument": {"name": "resourceId", "value": "3"}}),
    ("modern", "completion/complete", {
        "ref": {"type": "ref/prompt", "name": "@plan"},
        "argument": {"name": "language", "value": "c"}}),
    ("modern", "completion/complete", {
        "ref": {"type": "ref/resource", "uri": "interop://item/{id}"},
        "argument": {"name": "id", "value": "2"}}),
]

ERRORS = [
    ("everything", "prompts/get", {"name": "@args-prompt", "arguments": {}}),
    ("everything", "prompts/get", {"name": "@resource-prompt", "arguments": {
        "resourceType": "Stone", "resourceId": "1"}}),
    ("everything", "resources/read", {"uri": "demo://resource/dynamic/text/zero"}),
    ("modern", "prompts/get", {"name": "@plan", "arguments": {}}),
]


def ask_marked(peers, upstream, method, params):
    own, through = (json.dumps(params).replace('"@', f'"{prefix}')[1:-1]
                    for prefix in ("", f"{upstream}__"))
    return ask(peers, upstream, method, own, through)


@pytest.mark.parametrize("upstream, method, params", REQUESTS)
def test_other_results_are_the_servers_own_bytes(peers, upstream, method, params):
    direct, legacy, modern = (
        reply["result"] for reply in ask_marked(peers, upstream, method, params))
    assert legacy == direct
    if upstream == "modern":
        assert without(modern, GAINS[method]) == without(direct, GAINS[method])
    else:
        assert without(modern, GAINS[method]) == list(members(direct).items())
    assert GAINS[method] <= set(members(modern))


@pytest.mark.parametrize("upstream, method, params", ERRORS)
def test_errors_are_the_servers_own_bytes(peers, upstream, method, params):
    direct, legacy, modern = (
        reply["error"] for reply in ask_marked(peers, upstream, method, params))
    assert legacy == direct
    assert modern == direct


@pytest.mark.parametrize("era", ("legacy", "modern"))
@pytest.mark.parametrize("name", ("everything__none", "none", "modern__none"))
def test_unknown_tool(peers, era, name):
    error = json.loads(getattr(peers, era).request(
        "tools/call", f'"name":{quoted(name)},"arguments":{{}}')["error"])
    assert error["code"] == -32602
    assert error["message"] == f"Unknown tool: {name}"


@pytest.mark.parametrize("uri", ("nothing://here", "interop://item/gone"))
def test_resource_not_found(peers, uri):
    """Each era has its own code, whoever found out and whatever it used."""
    body = f'"uri":{quoted(uri)}'
    error = json.loads(peers.legacy.request("resources/read", body)["error"])
    assert error["code"] == -32002
    error = json.loads(peers.modern.request("resources/read", body)["error"])
    assert error["code"] == -32602
    assert error["data"]["uri"] == uri


@pytest.mark.parametrize("era", ("legacy", "modern"))
@pytest.mark.parametrize("ident", ("0", '"x y"', '"\\u0061"', "9007199254740993", '""'))
def test_ids_come_back_as_they_were(peers, era, ident):
    result = getattr(peers, era).request(
        "tools/call", call_body(peers, "modern__greet", {"name": "x"}), ident=ident)
    assert "result" in result


@pytest.mark.parametrize("era", ("legacy", "modern"))
@pytest.mark.parametrize("tool, arguments, steps", [
    (f"everything__{LONG}", {"duration": 0.2, "steps": 4}, 4),
    ("modern__count", {"to": 4}, 4),
])
@pytest.mark.parametrize("token", ("0", '"p \\u0061"', '""', "77"))
def test_progress_before_the_result_under_its_token(peers, era, tool, arguments, steps,
                                                    token):
    wire = getattr(peers, era)
    start = len(wire.lines)
    ident = wire.send("tools/call", call_body(peers, tool, arguments),
                      f'"progressToken":{token}')
    end = wire.reply_at(ident)
    seen = [members(p) for p in wire.notices("notifications/progress", start, end)]
    assert [p["progress"] for p in seen] == [str(i + 1) for i in range(steps)]
    assert {p["progressToken"] for p in seen} == {token}
    assert {p["total"] for p in seen} == {str(steps)}


@pytest.mark.parametrize("era", ("legacy", "modern"))
@pytest.mark.parametrize("upstream, tool, arguments", [
    ("everything", LONG, {"duration": 2, "steps": 20}),
    ("modern", "slow", {"tag": "wire"}),
])
def test_a_cancelled_call_is_never_answered(peers, era, upstream, tool, arguments):
    wire, run = getattr(peers, era), getattr(peers, f"{era}_run")
    token = f"stop {upstream}"
    ident = wire.send("tools/call", call_body(peers, f"{upstream}__{tool}", arguments),
                      f'"progressToken":"{token}"')
    at = wire.wait(lambda m: token in m.get("params", ""), "progress")
    wire.notify("notifications/cancelled", f'"requestId":{ident},"reason":"enough"')
    # whatever was on its way when the cancellation was read comes before this
    wire.request("tools/call", call_body(peers, "memory__read_graph", {}))
    quiet = len(wire.lines)
    asked = [m for m in run.told(upstream)
             if m.get("method") == "tools/call" and m["params"]["name"] == tool][-1]
    wait_told(run, upstream, "notifications/cancelled",
              lambda params: params["requestId"] == asked["id"])
    wire.request("tools/call", call_body(peers, f"everything__{LONG}",
                                         {"duration": 0.3, "steps": 1}))
    assert not [line for line in wire.lines[quiet:] if token in line]
    assert not [line for line in wire.lines[at:] if members(line).get("id") == ident]


def wait_told(run, upstream, method, match=lambda params: True, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for message in run.told(upstream):
            if message.get("method") == method and match(message["params"]):
                return message
        time.sleep(0.02)
    raise AssertionError(f"{upstream} was never told {method}")


@pytest.mark.parametrize("era", ("legacy", "modern"))
def test_arguments_reach_the_server_as_they_were_written(peers, era):
    written = '{ "message" :"\\u0061\\/\\ud83c\\udf89", "n":[1.0,1E2, 9007199254740993]}'
    wire, run = getattr(peers, era), getattr(peers, f"{era}_run")
    wire.result("tools/call", f'"name":"everything__echo","arguments":{written}')
    sent = [line for line in run.tapped("everything") if b'"tools/call"' in line][-1]
    params = members(members(sent.decode())["params"])
    assert params["arguments"] == written
    assert params["name"] == '"echo"'


def test_a_tool_result_keeps_its_place_in_the_reply(peers):
    """Every line is one JSON-RPC 2.0 message and nothing but that."""
    for wire in (peers.legacy, peers.modern):
        for line in wire.lines:
            message = members(line)
            assert message["jsonrpc"] == '"2.0"'
            assert set(message) <= {"jsonrpc", "id", "method", "params", "result",
                                    "error"}
            assert ("method" in message) != ("result" in message or "error" in message)


def test_listen_ends_with_its_result(peers):
    wire = peers.modern
    start = len(wire.lines)
    ident = wire.send("subscriptions/listen", '"notifications":{"toolsListChanged":true,'
                      '"resourceSubscriptions":["interop://counter",'
                      '"memory://knowledge-graph"]}')
    at = wire.wait(lambda m: m.get("method") ==
                   '"notifications/subscriptions/acknowledged"', "acknowledgement",
                   start=start)
    params = json.loads(members(wire.lines[at])["params"])
    assert str(params["_meta"]["io.modelcontextprotocol/subscriptionId"]) == ident
    assert params["notifications"] == {
        "toolsListChanged": True,
        "resourceSubscriptions": ["interop://counter", "memory://knowledge-graph"]}

    def updated(uri):
        return lambda m: (m.get("method") == '"notifications/resources/updated"'
                          and json.loads(m["params"])["uri"] == uri)

    wire.result("tools/call", call_body(peers, "modern__bump", {}))
    at = wire.wait(updated("interop://counter"), "update of the modern server", start=at)
    meta = json.loads(members(wire.lines[at])["params"])["_meta"]
    assert str(meta["io.modelcontextprotocol/subscriptionId"]) == ident
    wire.result("tools/call", call_body(peers, "memory__create_entities", {"entities": [
        {"name": "late", "entityType": "x", "observations": []}]}))
    wire.wait(updated("memory://knowledge-graph"), "update of the legacy server",
              start=at)
    wire.notify("notifications/cancelled", f'"requestId":{ident}')
    wait_told(peers.modern_run, "memory", "resources/unsubscribe")


@pytest.mark.parametrize("revision", ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY))
def test_every_legacy_revision_over_real_servers(make_run, revision):
    run = make_run(f"wire-{revision}")
    wire = Wire([run.command, *run.args], run.environ(), run.folder / "stderr")
    try:
        assert wire.initialize(revision)["protocolVersion"] == revision
        owners = {json.loads(t)["name"].split("__")[0]
                  for t in wire.list("tools/list", "tools")}
        assert owners == set(env.UPSTREAMS)
        result = wire.result("tools/call",
                             call_body_plain("modern__greet", {"name": "x"}))
        assert json.loads(result)["structuredContent"]["letters"] == 1
        if revision == "2025-03-26":
            wire.write('[{"jsonrpc":"2.0","id":1,"method":"ping"},'
                       '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{'
                       '"name":"everything__echo","arguments":{"message":"b"}}}]')
            at = wire_wait_array(wire)
            assert {members(e)["id"] for e in elements(wire.lines[at])} == {"1", "2"}
    finally:
        status, _ = wire.close()
    assert status == 0
    assert run.left() == []


def call_body_plain(name, arguments):
    return f'"name":{quoted(name)},"arguments":{json.dumps(arguments)}'


def wire_wait_array(wire, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for at, line in enumerate(wire.lines):
            if line.startswith("["):
                return at
        time.sleep(0.01)
    raise AssertionError("no array came back for a batch")
