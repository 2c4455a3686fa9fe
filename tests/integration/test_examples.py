# SPDX-License-Identifier: MIT
"""The examples of contrib/examples do what they say, and the page of kinds is no other."""
import base64
import json
import os
import re
import subprocess

import pytest

from graphql_server import GraphqlServer, reply
from mcp import REPO

EXAMPLES = REPO / "contrib" / "examples"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.fixture
def example(serve):
    def start(name, **env):
        mv = serve(file=False, env=env, args=(
            "--log-level", "debug", "--conf", str(EXAMPLES / name / "mcpvisor.conf")))
        mv.modern()
        return mv

    return start


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repo"
    folder.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        env["GIT_%s_NAME" % who] = "Ann"
        env["GIT_%s_EMAIL" % who] = "ann@example.org"

    def git(*argv):
        subprocess.run(["/usr/bin/git", *argv], cwd=folder, env=env, check=True,
                       capture_output=True)

    git("init")
    (folder / "p.png").write_bytes(PICTURE)
    git("add", "p.png")
    for n, name in enumerate(("a", "b", "-c")):
        (folder / name).write_text("line of %s\n--option\n" % name)
        git("add", "--", name)
        git("commit", "-m", "commit %d" % n)
    return folder


@pytest.mark.skipif(not os.path.exists("/usr/bin/git"), reason="needs git")
def test_exec(example, repository):
    mv = example("exec", REPO=str(repository))
    assert sorted(mv.tools()) == [
        "repo__count", "repo__git_log", "repo__grep", "repo__picture"]
    log = mv.call("repo__git_log", {"limit": 2}).text.split("\n")
    assert [line.split(": ")[1] for line in log] == ["commit 2", "commit 1"]
    assert "commit 0" in mv.call("repo__git_log", {"paths": ["a"]}).text
    assert mv.call("repo__git_log", {"author": "nobody"}).text == ""
    assert mv.call("repo__git_log", {"paths": ["-c"]}).text.endswith("commit 2")
    refused = mv.call("repo__git_log", {"paths": ["../repo/a", "/etc/passwd"]})
    assert refused.result["isError"] is True and "'paths'" in refused.text
    assert mv.call("repo__grep", {"text": "--option", "paths": ["a"]}).text == "a:2:--option"
    nothing = mv.call("repo__grep", {"text": "no such text"})
    assert nothing.text == "" and "isError" not in nothing.result
    counted = mv.call("repo__count", {"text": "a b\nc\n"})
    assert counted.result["structuredContent"] == {"lines": 2, "words": 3, "bytes": 6}
    picture = mv.call("repo__picture", {"file": "p.png"}).result["content"][0]
    assert (picture["type"], picture["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(picture["data"]) == PICTURE
    assert "'file'" in mv.call("repo__picture", {"file": "a"}).text
    assert mv.call("repo__picture", {"file": "b.png"}).result["isError"] is True
    hints = [t["annotations"] for t in mv.ask("tools/list").result["tools"]]
    assert all(h["readOnlyHint"] and not h["destructiveHint"] for h in hints)


def test_graphql(example, tmp_path):
    endpoint = GraphqlServer()
    try:
        endpoint.answer = lambda h, asked: reply(
            h, 200, {"data": {"asked": [asked.name, asked.msg["variables"]]}})
        mv = example("graphql", CRM_URL=endpoint.url, CRM_TOKEN="t0",
                     CRM_CACHE=str(tmp_path / "crm.json"))
        assert sorted(mv.tools()) == ["crm__get_user", "crm__rename_user", "crm__users"]
        got = mv.call("crm__get_user", {"id": "7"}).result["structuredContent"]
        assert got == {"data": {"asked": ["GetUser", {"id": "7"}]}}
        assert endpoint.requests[-1].header("Authorization") == "Bearer t0"
        listed = {t["name"]: t for t in mv.ask("tools/list").result["tools"]}
        assert listed["crm__get_user"]["description"] == "Looks up one user by id."
        assert listed["crm__rename_user"]["annotations"] == {
            "readOnlyHint": False, "destructiveHint": False, "idempotentHint": True,
            "openWorldHint": True}
        assert (tmp_path / "crm.json").exists()
    finally:
        endpoint.close()


def test_shell(example):
    mv = example("shell")
    assert sorted(mv.tools()) == [
        "movies__book_ticket", "movies__get_movies", "movies__get_time"]
    assert re.fullmatch(r"[0-9]{2}:[0-9]{2}", mv.call("movies__get_time").text)
    assert "Metropolis" in mv.call("movies__get_movies", {}).text
    assert mv.call("movies__book_ticket", {"movie": 2, "count": 3}).text == (
        "Booked: 3 for movie 2")
    refused = mv.call("movies__book_ticket", {"movie": "2; id", "count": 3})
    assert refused.result["isError"] is True and "'movie'" in refused.text
    tools = json.loads((EXAMPLES / "shell" / "movies_tools.json").read_text())["tools"]
    listed = {t["name"]: t for t in mv.ask("tools/list").result["tools"]}
    for tool in tools:
        assert listed["movies__" + tool["name"]] == {**tool, "name": "movies__" + tool["name"]}


def test_the_page_of_kinds(binary, tmp_path):
    page = (REPO / "contrib" / "doc" / "kinds.md").read_text(encoding="utf-8")
    assert "(contrib/doc/kinds.md)" in (REPO / "README.md").read_text(encoding="utf-8")
    header = (REPO / "include/mcpvisor/upstream_conf.h").read_text(encoding="utf-8")
    kinds = re.search(r"enum upstream_kind \{(.*?)\}", header)[1]
    kinds = re.findall(r"KIND_(\w+)", kinds.lower().replace("kind_", "KIND_"))
    assert re.findall(r"^\| `(\w+)` \| .* \| .* \|$", page.split("\n## ")[0], re.M) == kinds
    blocks = re.findall(r"^```conf\n(.*?)^```$", page, re.M | re.S)
    by = {"command": "stdio", "url": "http"}
    assert [by.get(key, word) for key, word in (
        re.search(r'\b(kind|command|url) = "(\w+)', b).groups() for b in blocks)] == kinds
    for block in blocks:
        conf = tmp_path / "page.conf"
        conf.write_text(block, encoding="utf-8")
        done = subprocess.run([binary, "check", "--conf", conf], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, block + done.stdout + done.stderr
        assert done.stdout.startswith("ok: 1 upstreams")
