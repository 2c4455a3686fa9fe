# SPDX-License-Identifier: MIT
"""The clients' HTTP+SSE of 2024-11-05: what holds on stdio holds here as well."""

import os

import pytest

# collected here too, with the client of this module
from interop_common import *  # noqa: F401,F403
from interop_driver import ClientRun
from interop_env import NODE
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
)
from test_interop_http_clients import test_the_daemon_ends_and_leaves_nothing  # noqa: F401

# label, package of Python's, driver
CLIENTS = (
    ("sdk1", None, "driver_sdk1.mjs"),
    ("python1", "mcp1", "driver_python1.py"),
)


class OldServe(Serve):
    """With HTTP+SSE beside the endpoint, which the command line cannot say."""

    def argv(self):
        conf = self.run.folder / "sse.conf"
        conf.write_text(f'mcp_servers = ["{self.run.mcp_json}"];\nlist_wait_ms = 30000;\n'
                        f'listen = ( {{ address = "127.0.0.1:{self.port}"; '
                        f'sse_path = "/sse"; }}, {{ address = "unix:{self.socket}"; }} );\n')
        return [self.run.command, "serve", "--conf", str(conf), "--socket", ""]

    def listen_args(self):
        return []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/sse"


@pytest.fixture(scope="module", params=CLIENTS, ids=[c[0] for c in CLIENTS])
def client(request, make_run):
    label, package, driver = request.param
    program, reason = python_with(package) if package else (NODE, None)
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    run = make_run(f"sse-{label}")
    with OldServe(run) as server:
        done = ClientRun(label, "legacy", [driver], run, {"url": server.url, "sse": True},
                         program)
        done.stopped = server.stop()
    done.left = run.left()
    return done


def test_resource_not_found(client):
    assert client["read_unknown"]["error"]["code"] == -32002


def test_close_is_quick(client):
    assert client["close"]["ms"] < 2000
    assert client.status == 0
