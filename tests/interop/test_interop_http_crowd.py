# SPDX-License-Identifier: MIT
"""200 clients of both eras at once, with equal ids and equal progress tokens: each
sees its own answers, progress and updates, and nothing else."""

import json
import os
import subprocess

import pytest

import interop_env as env
from interop_http import HttpWire, Serve, until
from interop_stacks import Urllib

CLIENTS = 200
CROWD_S = 100
ID = 7
TOKEN = "same"


def open_files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def settle(server):
    """All upstreams are there, and no connection of ours is."""
    stack = Urllib(server.url)
    HttpWire(stack, True).list("tools/list", "tools")


def urls(run, what):
    return {m["params"]["uri"] for m in run.told("everything")
            if m.get("method") == f"resources/{what}"}


@pytest.fixture(scope="module")
def crowd(make_run):
    run = make_run("crowd", upstreams=("everything", "modern"))
    with Serve(run) as server:
        settle(server)
        before = open_files(server)
        done = subprocess.run(
            [env.NODE, str(env.HERE / "driver_crowd.mjs"), server.url, str(CLIENTS)],
            capture_output=True, text=True, timeout=CROWD_S)
        # nobody is waited for: what they had goes with them
        until(lambda: open_files(server) <= before, "the end of connections")
        until(lambda: urls(run, "unsubscribe") == urls(run, "subscribe"), "unsubscribes")
        assert server.stop()[0] == 0
    assert done.returncode == 0, done.stderr[-3000:]
    assert run.left() == []
    members = [json.loads(line) for line in done.stdout.splitlines()]
    assert [m["index"] for m in members] == list(range(CLIENTS))
    return members


def reply_of(member, step):
    """The one response of a step; everything before it is a notice."""
    *notices, reply = member["seen"][step]
    assert reply["id"] == ID
    assert all("method" in n and "id" not in n for n in notices)
    return reply, notices


def text_of(reply):
    return reply["result"]["content"][0]["text"]


def test_half_of_them_have_a_session_of_their_own(crowd):
    sessions = [m["session"] for m in crowd if not m["modern"]]
    assert len(sessions) == len(set(sessions)) == CLIENTS // 2
    assert not any(m.get("session") for m in crowd if m["modern"])


def test_nothing_was_refused(crowd):
    for member in crowd:
        assert set(member["statuses"]) <= {200, 202, 204}, member["statuses"]


@pytest.mark.parametrize("step, text", [
    ("greet", "Hello, member {}"), ("echo", "Echo: member {}")])
def test_answers(crowd, step, text):
    for member in crowd:
        reply, notices = reply_of(member, step)
        assert text_of(reply) == text.format(member["index"])
        assert notices == []


def test_errors(crowd):
    for member in crowd:
        reply, _ = reply_of(member, "unknown")
        assert reply["error"]["code"] == -32602
        name = f"nobody__tool-{member['index']}"
        assert reply["error"]["message"] == f"Unknown tool: {name}"


def test_resources(crowd):
    for member in crowd:
        reply, _ = reply_of(member, "read")
        content = reply["result"]["contents"][0]
        assert json.loads(content["text"]) == {"id": str(member["index"])}


@pytest.mark.parametrize("step, steps, text", [
    ("count", lambda i: 1 + i % 8, "counted to {}"),
    ("long", lambda i: 1 + i, "Steps: {}"),
])
def test_progress(crowd, step, steps, text):
    for member in crowd:
        own = steps(member["index"])
        reply, notices = reply_of(member, step)
        assert text.format(own) in text_of(reply)
        assert {n["method"] for n in notices} == {"notifications/progress"}
        seen = [n["params"] for n in notices]
        assert [p["progress"] for p in seen] == list(range(1, own + 1))
        assert {p["total"] for p in seen} == {own}
        assert {p["progressToken"] for p in seen} == {TOKEN}


def test_updates(crowd):
    for member in crowd:
        uri = f"demo://resource/dynamic/text/{member['index'] + 1}"
        updates = [m["params"]["uri"] for m in member["seen"]["watch"]
                   if m["method"] == "notifications/resources/updated"]
        assert updates == [uri]
