# SPDX-License-Identifier: MIT
"""Without a file: the two built-in servers, and the commands of a shell."""
import json
import subprocess

import pytest

from mcp import LEGACY


@pytest.fixture
def run(binary, tmp_path):
    def command(*args, **kw):
        return subprocess.run([binary, *map(str, args)], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=20, cwd=tmp_path, **kw)

    return command


@pytest.mark.parametrize("era", [*LEGACY, "modern"])
def test_the_demo_serves_both_eras(serve, era):
    mv = serve(file=False)
    mv.speak(era)
    names = mv.tools()
    assert {"legacy__echo", "legacy__add", "modern__reverse"} <= set(names)
    assert mv.call("legacy__echo", {"text": "é"}).text == "é"
    assert mv.call("modern__reverse", {"text": "abc"}).text == "cba"
    assert mv.call("legacy__fail", {}).result["isError"] is True
    assert mv.call("legacy__nope", {}).code == -32602
    for prompt in mv.ask("prompts/list").result["prompts"]:
        args = {a["name"]: "x" for a in prompt.get("arguments", [])}
        assert mv.ask("prompts/get", {"name": prompt["name"], "arguments": args}
                      ).result["messages"]
    for resource in mv.ask("resources/list").result["resources"]:
        assert mv.ask("resources/read", {"uri": resource["uri"]}).result["contents"]


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_the_demo_reports_progress(serve, upstream):
    mv = serve(file=False)
    mv.legacy()
    mv.call(upstream + "__slow", {"ms": 50}, meta={"progressToken": "p"}).result
    assert mv.notice("notifications/progress").params["progressToken"] == "p"


def servers(tmp_path, entries):
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": entries}))
    return path


def test_tools_prints_a_table_or_json(run):
    table = run("tools")
    assert table.returncode == 0 and "legacy__echo" in table.stdout
    listed = run("tools", "--json")
    tools = json.loads(listed.stdout)
    assert listed.returncode == 0
    assert [t["name"] for t in tools][:1] == ["legacy__echo"]


def test_call_prints_what_the_tool_said(run):
    done = run("call", "legacy__echo", "text=hello")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    done = run("call", "legacy__add", "--json", '{"a":2,"b":3.5}')
    assert done.returncode == 0 and "5.5" in done.stdout
    done = run("call", "--output", "json", "legacy__echo", "text=7")
    assert json.loads(done.stdout)["content"][0]["text"] == "7"


@pytest.mark.parametrize("args,status", [
    (("call", "legacy__fail"), 1),
    ((), 2), (("bogus",), 2), (("call",), 2), (("stdio", "--log-level", "loud"), 2),
    (("stdio", "--bogus"), 2), (("tools", "--mcp-json"), 2),
    (("tools", "--mcp-json", "none.json"), 3),
    (("demo", "nope"), 2), (("call", "legacy__nope"), 4), (("call", "legacy__echo", "--json", "[1]"), 4),
])
def test_exit_codes(run, args, status):
    done = run(*args)
    if args[-1:] == ("[1]",):
        assert done.returncode in (2, 4)
    else:
        assert done.returncode == status, done.stderr
    if status != 1:
        assert done.stdout == "" and done.stderr


def test_exit_codes_of_broken_servers(run, tmp_path):
    path = servers(tmp_path, {"alpha": {"command": "/nonexistent"}})
    done = run("tools", "--mcp-json", path)
    assert done.returncode == 6 and "alpha" in done.stderr
    done = run("call", "--mcp-json", path, "alpha__x")
    assert done.returncode in (4, 5) and "alpha" in done.stderr


def test_help_and_version_are_for_stdout(run):
    for args, word in ((("help",), "usage"), (("--help",), "usage"), (("version",), "mcpvisor")):
        done = run(*args)
        assert done.returncode == 0 and word in done.stdout and done.stderr == ""
