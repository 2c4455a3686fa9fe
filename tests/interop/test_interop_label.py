# SPDX-License-Identifier: MIT
"""Labelled results under SDK clients, which hold them against the outputSchema of their tool."""

import json
import sys

import pytest

import interop_env as env
from interop_driver import ClientRun
from interop_http import Serve
from test_interop_remote import CLIENTS, FRONTS, argv_or_skip

sys.path.insert(0, str(env.REPO / "tests" / "integration"))

import label_cases as cases  # noqa: E402 (path first)

SCRIPTED = env.REPO / "tests" / "integration" / "upstreams" / "scripted.py"
ERAS = ("legacy", "modern")
# What no client may take: that one is refused proves that the others were looked at.
WRONG = {"wrong": (cases.CLOSED, cases.result(["x"], '{"data":{},"errors":[],"extra":1}'), None)}
TABLE = {**cases.CASES, **WRONG}


def entry(folder, era):
    behaviour = folder / f"{era}.json"
    behaviour.write_text(json.dumps({**cases.upstream(TABLE, era), "name": era}))
    return {"command": "/usr/bin/python3", "args": [str(SCRIPTED), str(behaviour)]}


@pytest.fixture(scope="module", params=FRONTS, ids=["-".join(f) for f in FRONTS])
def client(request, make_run, tmp_path_factory):
    label, front = request.param
    era, package, argv = CLIENTS[label]
    program = argv_or_skip(package)[0] if package else env.NODE
    folder = tmp_path_factory.mktemp("label")
    run = make_run(f"label-{label}-{front}", tap=False, upstreams=(),
                   extra={e: entry(folder, e) for e in ERAS})
    target = {"calls": [f"{e}__{name}" for e in ERAS for name in TABLE]}
    if front == "stdio":
        target.update(command=run.command, args=run.args, env=run.env)
        return ClientRun(label, era, argv, run, target, program)
    with Serve(run) as server:
        done = ClientRun(label, era, argv, run, {"url": server.url, **target}, program)
        assert server.stop()[0] == 0
    return done


def floats(value):
    """What a client has made of numbers is its own affair."""
    return json.loads(value if isinstance(value, str) else json.dumps(value), parse_int=float)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", cases.CASES)
def test_a_labelled_result_is_accepted(client, name, era):
    got = client[f"{era}__{name}"]
    case = cases.CASES[name]
    want = json.loads(case[1] if case[2] is None else case[2])
    assert [b["text"] for b in got["content"]] == [b["text"] for b in want["content"]]
    assert bool(got.get("isError")) == bool(want.get("isError"))
    ours = cases.OURS + "graphql"
    assert got.get("_meta", {}).get(ours) == want.get("_meta", {}).get(ours)
    if "structuredContent" in want:
        assert floats(got["structuredContent"]) == floats(want["structuredContent"])


@pytest.mark.parametrize("era", ERAS)
def test_what_its_tool_does_not_promise_is_refused(client, era):
    assert client.steps[f"{era}__wrong"]["ok"] is False, client.steps[f"{era}__wrong"]
