# SPDX-License-Identifier: MIT
"""The clients of Python's mcp package over Streamable HTTP."""

import os

import pytest

# collected here too, with the client of this module
from interop_common import *  # noqa: F401,F403
from interop_driver import ClientRun
from interop_http import Serve
from interop_python import python_with
from test_interop_clients import (  # noqa: F401
    test_a_cancel_goes_to_its_owner_alone,
    test_calls_filesystem,
    test_calls_memory,
    test_calls_sequential_thinking,
    test_cancels_a_call_of_the_modern_server,
    test_progress_of_calls_at_once_is_not_mixed_up,
    test_unknown_prompt_is_32602,
    test_upstreams_see_what_they_may_ask,
)
from test_interop_http_clients import (  # noqa: F401
    test_close_is_quick,
    test_the_daemon_ends_and_leaves_nothing,
    test_the_session_ends_when_its_client_says_so,
)

# label, era, package, driver and its arguments
CLIENTS = (
    ("python1", "legacy", "mcp1", ["driver_python1.py"]),
    ("python2-legacy", "legacy", "mcp2", ["driver_python2.py", "legacy"]),
    ("python2-auto", "modern", "mcp2", ["driver_python2.py", "auto"]),
    ("python2-modern", "modern", "mcp2", ["driver_python2.py", "modern"]),
)


@pytest.fixture(scope="module", params=CLIENTS, ids=[c[0] for c in CLIENTS])
def client(request, make_run):
    label, era, package, argv = request.param
    python, reason = python_with(package)
    if python is None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    run = make_run(f"http-{label}")
    with Serve(run) as server:
        done = ClientRun(label, era, argv, run, {"url": server.url}, python)
        done.stopped = server.stop()
    done.left = run.left()
    return done


def test_says_who_it_is(client):
    info = client["info"]
    assert info["revision"] == ("2026-07-28" if client.era == "modern" else "2025-11-25")
    if client.label == "python2-modern":
        return  # it takes the revision for granted and never asks
    assert info["server"]["name"] == "mcpvisor"
    assert {"tools", "prompts", "resources", "completions"} <= set(info["capabilities"])
    assert "Server instructions are working!" in info["instructions"]
    assert "The modern child counts and greets." in info["instructions"]


def test_resource_not_found(client):
    error = client["read_unknown"]["error"]
    assert error["code"] == (-32002 if client.era == "legacy" else -32602)
    if client.era == "modern":
        assert error["data"]["uri"] == "nothing://here"
