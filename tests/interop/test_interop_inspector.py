# SPDX-License-Identifier: MIT
"""The inspector's two command line programs: `mcp-inspector --cli`, which starts
mcpvisor for each command, and `mcpdo`, which holds one connection."""

import json
import os
import secrets
import subprocess

import pytest

import interop_env as env

COMMAND_S = 60
BIN = env.HERE / "node_modules" / ".bin"


class Inspector:
    def __init__(self, run):
        self.run = run
        self.config = run.folder / "inspector.json"
        self.config.write_text(json.dumps({"mcpServers": {"visor": {
            "command": run.command, "args": run.args, "env": run.env}}}))
        daemon = run.folder / "daemon"
        daemon.mkdir(mode=0o700)
        self.environ = {
            **os.environ,
            "HOME": str(run.folder),
            "MCP_INSPECTOR_DAEMON_DIR": str(daemon),
            "MCP_INSPECTOR_DAEMON_TOKEN": secrets.token_hex(16),
            "MCP_INSPECTOR_SECRET_STORE": "memory",
        }

    def program(self, name, *args):
        return subprocess.run([str(BIN / name), *args], env=self.environ,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=COMMAND_S)

    def cli(self, *args, era="legacy", status=0):
        done = self.program("mcp-inspector", "--cli", "--config", str(self.config),
                            "--server", "visor", "--protocol-era", era,
                            "--format", "json", "-q", "--method", *args)
        assert done.returncode == status, (done.stdout, done.stderr)
        return json.loads(done.stdout if status == 0 else done.stderr)

    def do(self, *args, status=0):
        done = self.program("mcpdo", "--format", "json", *args)
        assert done.returncode == status, (done.stdout, done.stderr)
        return json.loads(done.stdout if status == 0 else done.stderr.splitlines()[-1])


@pytest.fixture(scope="module")
def inspector(make_run):
    return Inspector(make_run("inspector"))


ERAS = pytest.mark.parametrize("era", ("legacy", "modern"))


def owners(names):
    return {name.split("__")[0] for name in names}


@ERAS
def test_cli_lists_tools(inspector, era):
    tools = inspector.cli("tools/list", era=era)["result"]["tools"]
    assert owners(t["name"] for t in tools) == set(env.UPSTREAMS)
    assert inspector.run.left() == []


@ERAS
def test_cli_calls_a_tool(inspector, era):
    name = "everything__get-sum" if era == "legacy" else "modern__greet"
    args = {"a": 2, "b": 3} if era == "legacy" else {"name": "Bo"}
    done = inspector.cli("tools/call", "--tool-name", name, "--tool-args-json",
                         json.dumps(args), era=era)
    expected = "The sum of 2 and 3 is 5." if era == "legacy" else "Hello, Bo"
    assert done["result"]["content"][0]["text"] == expected
    assert inspector.run.left() == []


def test_cli_reads_a_resource(inspector):
    done = inspector.cli("resources/read", "--uri", "interop://counter")
    assert done["result"]["contents"][0]["text"] == "0"


def test_cli_gets_a_prompt(inspector):
    done = inspector.cli("prompts/get", "--prompt-name", "everything__args-prompt",
                         "--prompt-args", "city=Bonn")
    assert "Bonn" in done["result"]["messages"][0]["content"]["text"]


@pytest.fixture(scope="module", params=("legacy", "modern"))
def connection(request, make_run):
    i = Inspector(make_run(f"mcpdo-{request.param}"))
    i.era = request.param
    i.do("connect", "--config", str(i.config), "--server", "visor", "--era", i.era)
    yield i
    i.do("disconnect", "visor")
    i.program("mcpdo", "daemon", "stop")
    assert i.run.left(3) == []


def test_connection_has_its_era(connection):
    assert connection.era in json.dumps(connection.do("connections/show", "@visor"))


def test_connection_lists(connection):
    tools = connection.do("@visor", "tools/list")["tools"]
    assert owners(t["name"] for t in tools) == set(env.UPSTREAMS)
    prompts = connection.do("@visor", "prompts/list")["prompts"]
    assert owners(p["name"] for p in prompts) == {"everything", "modern"}
    resources = connection.do("@visor", "resources/list")["resources"]
    assert "memory://knowledge-graph" in {r["uri"] for r in resources}
    templates = connection.do("@visor", "resources/templates/list")["resourceTemplates"]
    assert "interop://item/{id}" in {t["uriTemplate"] for t in templates}


@pytest.mark.parametrize("name, args, expected", [
    ("everything__echo", {"message": "hi"}, "Echo: hi"),
    ("filesystem__list_allowed_directories", {}, "Allowed directories"),
    ("memory__read_graph", {}, '"entities": []'),
    ("sequential-thinking__sequentialthinking", {
        "thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1,
        "totalThoughts": 1}, '"thoughtHistoryLength": 1'),
    ("modern__greet", {"name": "Bo"}, "Hello, Bo"),
])
def test_connection_calls_a_tool_of_each(connection, name, args, expected):
    done = connection.do("@visor", "tools/call", name, "--tool-args-json",
                         json.dumps(args))
    assert expected in done["content"][0]["text"]


def test_connection_reads_gets_and_completes(connection):
    done = connection.do("@visor", "resources/read", "memory://knowledge-graph")
    assert json.loads(done["contents"][0]["text"]) == {"entities": [], "relations": []}
    done = connection.do("@visor", "prompts/get", "modern__plan",
                         "--prompt-args", "language=c")
    assert done["messages"][0]["content"]["text"] == "Plan a program in c"
    done = connection.do("@visor", "prompts/complete", "--complete-ref-type",
                         "ref/prompt", "--complete-ref", "modern__plan", "--complete-arg-name",
                         "language", "--complete-arg-value", "r")
    assert done["values"] == ["rust"]
