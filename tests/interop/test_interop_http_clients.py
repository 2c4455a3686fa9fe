# SPDX-License-Identifier: MIT
"""The SDK clients over Streamable HTTP: what holds on stdio holds here as well."""

import pytest

# collected here too, with the client of this module
from interop_common import *  # noqa: F401,F403
from interop_driver import ClientRun
from interop_http import Serve
from test_interop_clients import (  # noqa: F401
    test_a_cancel_goes_to_its_owner_alone,
    test_calls_filesystem,
    test_calls_memory,
    test_calls_sequential_thinking,
    test_cancels_a_call_of_the_modern_server,
    test_instructions_of_all_servers_are_merged,
    test_progress_of_calls_at_once_is_not_mixed_up,
    test_resource_not_found,
    test_says_who_it_is,
    test_unknown_prompt_is_32602,
    test_upstreams_see_what_they_may_ask,
)

CLIENTS = (
    ("sdk1", "legacy", ["driver_sdk1.mjs"]),
    ("client2-legacy", "legacy", ["driver_client2.mjs", "legacy"]),
    ("client2-auto", "modern", ["driver_client2.mjs", "auto"]),
    ("client2-modern", "modern", ["driver_client2.mjs", "modern"]),
)


@pytest.fixture(scope="module", params=CLIENTS, ids=[c[0] for c in CLIENTS])
def client(request, make_run):
    label, era, argv = request.param
    run = make_run(f"http-{label}")
    with Serve(run) as server:
        done = ClientRun(label, era, argv, run, {"url": server.url})
        done.stopped = server.stop()
    done.left = run.left()
    return done


def test_the_session_ends_when_its_client_says_so(client):
    step = client["terminate"]
    if client.era == "modern":
        assert step["session"] is None
    else:
        assert 0 < len(step["session"]) <= 512
        assert step["status"] == 404


def test_close_is_quick(client):
    assert client["close"]["ms"] < 2000
    assert client.status == 0


def test_the_daemon_ends_and_leaves_nothing(client):
    status, seconds = client.stopped
    assert status == 0
    assert seconds < 4
    assert client.left == []
