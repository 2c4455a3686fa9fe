# SPDX-License-Identifier: MIT
"""SDK servers of both generations, over every transport that they have, under SDK clients of
both generations: what each server can do reaches each client."""

import os

import pytest

import interop_env as env
import interop_remote as remote
from interop_driver import ClientRun
from interop_http import Serve
from interop_python import python_with

# label, era, package of Python's, driver and its arguments
CLIENTS = {
    "sdk1": ("legacy", None, ["driver_sdk1.mjs"]),
    "client2-legacy": ("legacy", None, ["driver_client2.mjs", "legacy"]),
    "client2-auto": ("modern", None, ["driver_client2.mjs", "auto"]),
    "client2-modern": ("modern", None, ["driver_client2.mjs", "modern"]),
    "python1": ("legacy", "mcp1", ["driver_python1.py"]),
    "python2-legacy": ("legacy", "mcp2", ["driver_python2.py", "legacy"]),
    "python2-modern": ("modern", "mcp2", ["driver_python2.py", "modern"]),
}
FRONTS = (("sdk1", "stdio"), ("sdk1", "http"), ("client2-legacy", "stdio"),
          ("client2-auto", "http"), ("client2-modern", "stdio"), ("python1", "http"),
          ("python2-legacy", "http"), ("python2-modern", "http"))
# Over HTTP an instance that all share has no roots; these are told to be each client's own.
ROOTS = ("v2-legacy", "python1-http")
OPTIONS = {
    **{(name, "http"): {"mcpvisor": {"roots": "client"}} for name in ROOTS},
    # one that starts late is asked both, and is legacy then: a matter of luck
    ("v2-stdio", "http"): {"mcpvisor": {"era": "modern"}},
}
# They cannot say which call a question is about, so that over HTTP whoever can answer has one
# to himself; and what such a one offers is what the first of its kind offered.
OWN = ("v1-sse", "v1-stdio", "python1-sse", "python1-stdio", "python2-sse", *ROOTS)
SERVERS = {**remote.NODE, **remote.PYTHON1, **remote.PYTHON2}
WANTED = {**{name: steps for name, (_, steps) in SERVERS.items()}, **remote.STDIO}


def argv_or_skip(package):
    argv, reason = remote.python_argv(package)
    if argv is None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return argv


@pytest.fixture(scope="module")
def entries(able, tmp_path_factory):
    """The mcpServers entries of all of them, as they run."""
    folder = tmp_path_factory.mktemp("remotes")
    python = {p: argv_or_skip(p) for p in ("mcp1", "mcp2")}
    started = [remote.Remote(remote.node_argv(), folder / "node"),
               remote.Remote(python["mcp1"], folder / "mcp1"),
               remote.Remote(python["mcp2"], folder / "mcp2")]
    found = {}
    for one, table in zip(started, (remote.NODE, remote.PYTHON1, remote.PYTHON2)):
        found.update(remote.entries_of(one, table))
    node = remote.node_argv()
    found["v1-stdio"] = {"command": node[0], "args": [node[1], "stdio1"]}
    found["v2-stdio"] = {"command": node[0], "args": [node[1], "stdio2"]}
    for n, argv in enumerate(python.values(), 1):
        found[f"python{n}-stdio"] = {"command": argv[0], "args": [argv[1], "stdio"]}
    yield found
    for one in started:
        one.stop()


def left_out(label, era, front, name):
    left = set()
    if era == "modern":
        left.add("chat")  # there is no level to be set
    if label == "python1":
        left.add("slow")  # it cannot give up one call among others
    if front == "http" and name == "v1-stateful":
        left.add("ask_roots")
    if front == "http" and name in OWN:
        left.add("grow")
        if era == "modern":
            # nothing says that two requests are of one client, so they may be two instances'
            left.update(("watch", "slow"))
    return left


def wanted_of(label, era, front):
    return {name: [s for s in steps if s not in left_out(label, era, front, name)]
            for name, steps in WANTED.items()}


@pytest.fixture(scope="module", params=FRONTS, ids=["-".join(f) for f in FRONTS])
def client(request, make_run, entries):
    label, front = request.param
    era, package, argv = CLIENTS[label]
    program = python_with(package)[0] if package else env.NODE
    run = make_run(f"remote-{label}-{front}", tap=False, upstreams=(), extra={
        name: {**entry, **OPTIONS.get((name, front), {})}
        for name, entry in entries.items()})
    target = {"servers": wanted_of(label, era, front)}
    if front == "stdio":
        target.update(command=run.command, args=run.args, env=run.env)
        done = ClientRun(label, era, argv, run, target, program)
    else:
        with Serve(run) as server:
            done = ClientRun(label, era, argv, run, {"url": server.url, **target}, program)
            assert server.stop()[0] == 0
    done.front = front
    return done


def text_of(result):
    return result["content"][0]["text"]


def check_greet(client, server, got):
    assert text_of(got) == f"{server}: {client.label}"


def check_again(client, server, got):
    assert text_of(got) == f"{server}: again"


def check_fail(client, server, got):
    assert got["isError"] is True and text_of(got) == "no luck"


def check_count(client, server, got):
    steps = [p["progress"] for p in got["progress"]]
    # what is read together with the answer gets lost in some clients
    assert steps and steps == list(range(1, len(steps) + 1))
    assert text_of(got["result"]) == "counted to 6"


def check_prompt(client, server, got):
    assert got["messages"][0]["content"]["text"] == "Plan a program in c"


def check_complete(client, server, got):
    assert got["completion"]["values"] == ["c", "clojure", "cobol"]


def check_read(client, server, got):
    assert got["contents"][0]["text"].isdigit()


def check_chat(client, server, got):
    assert got["seen"]["params"]["data"] == f"{client.label} {server}"


def check_ask_form(client, server, got):
    assert not got.get("isError") and text_of(got) == f"form: {client.label} {server}"


def check_ask_model(client, server, got):
    assert not got.get("isError") and text_of(got) == f"model: {client.label} {server}"


def check_ask_url(client, server, got):
    assert not got.get("isError") and text_of(got) == "accept"


def check_ask_roots(client, server, got):
    assert not got.get("isError") and text_of(got) == "file:///srv/interop"


def check_watch(client, server, got):
    assert got["updated"]["params"]["uri"] == f"interop-{server}://counter"
    assert text_of(got["bumped"]).isdigit()


def check_grow(client, server, got):
    assert text_of(got).startswith("grown ")


def check_slow(client, server, got):
    assert "error" in got and got["given"] != "0"


@pytest.mark.parametrize("server", WANTED)
def test_all_that_a_server_can_do(client, server):
    wrong = []
    for step in wanted_of(client.label, client.era, client.front)[server]:
        try:
            globals()[f"check_{step}"](client, server, client[f"{server}.{step}"])
        except (AssertionError, KeyError) as error:
            wrong.append((step, repr(error)[:600]))
    assert not wrong


def test_its_end(client):
    assert client["close"]["ms"] < 2000
    assert client.status == 0
    assert client.run.left() == []
