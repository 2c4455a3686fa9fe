# SPDX-License-Identifier: MIT
"""The file: the shapes that people have, its errors, its variables."""
import json
import subprocess

import pytest

from mcp import Mcpvisor, wait_for


def listed(mv):
    mv.legacy()
    return mv.tools()


def refused(binary, tmp_path, text, name="servers.json"):
    """Runs it on a file that is no use as a whole; returns what it says."""
    path = tmp_path / name
    path.write_text(text)
    done = subprocess.run([binary, "stdio", "--mcp-json", path], input=b"",
                          capture_output=True, timeout=10)
    assert done.returncode not in (0, -11, -6)
    assert done.stdout == b""
    return done.stderr.decode()


@pytest.mark.parametrize("text,line", [
    ('{\n "mcpServers": {\n  "a": {"command": "x",}\n  "b"\n }\n}\n', "[34]"),
    ('{\n "mcpServers": {\n', "[23]"),
    ("not json\n", "1"),
    ('{\n "mcpServers": []\n}\n', ""),
    ('{\n "other": {}\n}\n', ""),
    ("[]\n", ""),
])
def test_a_file_that_is_no_use_is_refused_with_its_line(binary, tmp_path, text, line):
    import re
    said = refused(binary, tmp_path, text)
    assert "servers.json" in said
    if line:
        assert re.search(r"servers\.json:%s\b" % line, said), said


def test_a_file_that_is_not_there(binary, tmp_path):
    done = subprocess.run([binary, "stdio", "--mcp-json", tmp_path / "none.json"], input=b"",
                          capture_output=True, timeout=10)
    assert done.returncode != 0 and done.stdout == b""
    assert "none.json" in done.stderr.decode() and "No such file" in done.stderr.decode()


def entry_of(serve, tmp_path, **behaviour):
    """The entry of a scripted upstream, for files written by hand."""
    from upstream import Upstream
    folder = tmp_path / "byhand"
    folder.mkdir(exist_ok=True)
    return Upstream(folder, "hand", {"tools": ["echo"], **behaviour})


@pytest.mark.parametrize("shape", ["mcpServers", "servers", "comments"])
def test_the_shapes_that_clients_write(serve, tmp_path, shape):
    up = entry_of(serve, tmp_path)
    servers = {"alpha": {**up.entry(), "type": "stdio"}}
    text = {"mcpServers": json.dumps({"mcpServers": servers}),
            "servers": json.dumps({"inputs": [], "servers": servers}),
            "comments": "// mine\n{ /* all */ \"servers\": %s }\n" % json.dumps(servers),
            }[shape]
    mv = serve(text=text)
    assert listed(mv) == ["alpha__echo"]
    up.close()


def test_o_094_members_that_we_do_not_know_are_named(serve):
    mv = serve(alpha={"tools": ["echo"], "entry": {
        "frobnicate": 1, "alwaysAllow": ["x"], "type": "stdio"}})
    assert listed(mv) == ["alpha__echo"]
    line = next(x for x in mv.log().splitlines() if "frobnicate" in x)
    assert "warning" in line.lower() and "alpha" in line
    assert "alwaysAllow" not in mv.log() or "warning" in mv.log()


def test_o_094_a_disabled_entry_is_not_started(serve):
    mv = serve(alpha={"tools": ["echo"], "entry": {"disabled": True}},
               beta={"tools": ["echo"]})
    assert listed(mv) == ["beta__echo"]
    assert mv["alpha"].starts() == []
    assert "alpha" in mv.log()


def test_o_094_the_same_name_twice_is_refused(binary, tmp_path):
    said = refused(binary, tmp_path, '{"mcpServers":{\n"a":{"command":"x"},\n'
                                     '"a":{"command":"y"}}}')
    assert "servers.json" in said


@pytest.mark.parametrize("entry,word", [
    ({"command": 7}, "command"), ({"args": ["x"], "raw_entry": 1}, "command"),
    ({"command": "x", "args": "y"}, "args"), ({"command": "x", "args": [1]}, "args"),
    ({"command": "x", "env": []}, "env"), ({"type": "ws", "url": "ws://x/mcp"}, "WebSocket"),
    ({"command": "x", "mcpvisor": {"call_ms": "soon"}}, "call_ms"),
    ({"command": "x", "mcpvisor": {"cal_ms": 1}}, "cal_ms"),
])
def test_an_entry_that_cannot_run_fails_alone(serve, entry, word):
    mv = serve(alpha=entry, beta={"tools": ["echo"]})
    assert listed(mv) == ["beta__echo"]
    mv.wait_log("alpha.*%s|%s.*alpha" % (word, word))


ENV = {"SET": "value", "EMPTY": "", "NESTED": "${SET}", "TOKEN_X": "s3cret-token"}


@pytest.mark.parametrize("text,want", [
    ("${SET}", "value"), ("${UNSET:-d}", "d"), ("${EMPTY:-d}", None), ("$$", "$$"),
    ("a${SET}b", "avalueb"), ("${SET}${SET}", "valuevalue"), ("${NESTED}", "${SET}"),
    ("${env:SET}", "value"), ("$SET", "$SET"), ("$HOME", "$HOME"), ("${UNSET:-}", ""),
])
def test_o_088_variables_in_env_and_args(serve, text, want):
    mv = serve(alpha={"tools": ["echo"], "entry": {"env": {"V": text}}}, env=ENV)
    assert listed(mv) == ["alpha__echo"]
    got = mv["alpha"].starts()[0].msg["env"]["V"]
    assert got == want if want is not None else got in ("", "d")
    up = mv["alpha"]
    again = serve({"a": {"tools": ["echo"], "entry": {
        "args": [*up.entry()["args"], text]}}}, env=ENV)
    again.legacy()
    got = up.starts()[1].msg["argv"][-1]
    assert got == want if want is not None else got in ("", "d")


@pytest.mark.parametrize("field", ["env", "args", "command", "cwd"])
@pytest.mark.parametrize("text", ["${UNSET_9}", "${", "${input:UNSET_9}"])
def test_o_088_a_bad_variable_fails_that_upstream_by_name(serve, field, text):
    value = {"env": {"V": text}, "args": ["x", text]}.get(field, text)
    mv = serve(alpha={"tools": ["echo"], "entry": {field: value}},
               beta={"tools": ["echo"]}, env=ENV)
    assert listed(mv) == ["beta__echo"]
    assert mv["alpha"].starts() == []
    line = wait_for(lambda: next((x for x in mv.log().splitlines()
                                  if "alpha" in x and field in x), None))
    assert text in line or "UNSET_9" in line or "input:" in line


def test_o_088_secrets_are_not_printed(serve):
    mv = serve(alpha={"tools": ["echo"], "entry": {"env": {"API_TOKEN": "${TOKEN_X}"}}},
               beta={"command": "/nonexistent", "env": {"API_TOKEN": "${TOKEN_X}"}}, env=ENV)
    listed(mv)
    assert mv["alpha"].starts()[0].msg["env"]["API_TOKEN"] == "s3cret-token"
    mv.finish()
    assert "s3cret-token" not in mv.log()


def test_o_096_arguments_are_exactly_the_list(serve):
    odd = ["-y", "--", "--stdio", "-", "", "a b", "$HOME", "*", '"q"', "é\n", "--mcp-json"]
    mv = serve(alpha={"tools": ["echo"]})
    up = mv["alpha"]
    again = serve({"a": {"tools": ["echo"], "entry": {"args": [*up.entry()["args"], *odd]}}})
    assert listed(again) == ["a__echo"]
    assert wait_for(lambda: [r.msg["argv"][2:] for r in up.starts()
                             if len(r.msg["argv"]) > 2]) == [odd]


def test_the_order_of_the_file_is_the_order_of_the_list(serve):
    names = ["zeta", "alpha", "9", "Beta"]
    mv = serve({n: {"tools": ["t"]} for n in names})
    assert listed(mv) == [n + "__t" for n in names]


def test_a_large_file(serve):
    many = {"s%03d" % i: {"command": "/nonexistent", "mcpvisor": {"restart_base_ms": 60000}}
            for i in range(200)}
    mv = serve({**many, "good": {"tools": ["echo"]}})
    assert listed(mv) == ["good__echo"]
    assert isinstance(mv, Mcpvisor)
