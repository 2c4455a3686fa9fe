# SPDX-License-Identifier: MIT
"""The inspector's two command line programs with an http target."""

import json

import pytest

import interop_env as env
from interop_http import Serve
from test_interop_inspector import Inspector, owners


@pytest.fixture(scope="module")
def server(make_run):
    with Serve(make_run("http-inspector", tap=False)) as s:
        s.inspector = Inspector(s.run)
        yield s


def cli(server, *args, era):
    done = server.inspector.program(
        "mcp-inspector", "--cli", server.url, "--transport", "http", "--protocol-era",
        era, "--format", "json", "-q", "--method", *args)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout)


@pytest.mark.parametrize("era", ("legacy", "modern", "auto"))
def test_cli_lists_tools(server, era):
    tools = cli(server, "tools/list", era=era)["result"]["tools"]
    assert owners(t["name"] for t in tools) == set(env.UPSTREAMS)


@pytest.mark.parametrize("era", ("legacy", "modern"))
def test_cli_calls_a_tool(server, era):
    done = cli(server, "tools/call", "--tool-name", "modern__greet", "--tool-args-json",
               '{"name":"Bo"}', era=era)
    assert done["result"]["content"][0]["text"] == "Hello, Bo"


def test_cli_reads_and_gets(server):
    done = cli(server, "resources/read", "--uri", "interop://counter", era="modern")
    assert done["result"]["contents"][0]["text"] == "0"
    done = cli(server, "prompts/get", "--prompt-name", "everything__args-prompt",
               "--prompt-args", "city=Bonn", era="legacy")
    assert "Bonn" in done["result"]["messages"][0]["content"]["text"]


@pytest.fixture(scope="module", params=("legacy", "modern"))
def connection(request, server):
    i = server.inspector
    i.name = f"@{request.param}"
    i.do("connect", server.url, "--transport", "http", "--era", request.param,
         "--connection", request.param)
    yield i
    i.do("disconnect", request.param)
    i.program("mcpdo", "daemon", "stop")


def test_connection_lists(connection):
    tools = connection.do(connection.name, "tools/list")["tools"]
    assert owners(t["name"] for t in tools) == set(env.UPSTREAMS)


@pytest.mark.parametrize("name, args, expected", [
    ("everything__echo", {"message": "hi"}, "Echo: hi"),
    ("filesystem__list_allowed_directories", {}, "Allowed directories"),
    ("memory__read_graph", {}, '"entities": []'),
    ("sequential-thinking__sequentialthinking", {
        "thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1,
        "totalThoughts": 1}, '"thoughtHistoryLength"'),
    ("modern__greet", {"name": "Bo"}, "Hello, Bo"),
])
def test_connection_calls_a_tool_of_each(connection, name, args, expected):
    done = connection.do(connection.name, "tools/call", name, "--tool-args-json",
                         json.dumps(args))
    assert expected in done["content"][0]["text"]


def test_connection_completes(connection):
    done = connection.do(connection.name, "prompts/complete", "--complete-ref-type",
                         "ref/prompt", "--complete-ref", "modern__plan",
                         "--complete-arg-name", "language", "--complete-arg-value", "r")
    assert done["values"] == ["rust"]
