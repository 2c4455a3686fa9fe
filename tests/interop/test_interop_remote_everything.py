# SPDX-License-Identifier: MIT
"""server-everything over HTTP among servers on stdio: what holds for it as a child holds."""

import pytest

# collected here too, with the client of this module
from interop_common import *  # noqa: F401,F403
import interop_remote as remote
from interop_driver import ClientRun
from interop_http import Serve
from test_interop_clients import (  # noqa: F401
    test_instructions_of_all_servers_are_merged,
    test_progress_of_calls_at_once_is_not_mixed_up,
    test_resource_not_found,
    test_unknown_prompt_is_32602,
)
from test_interop_remote_restart import free_port

# label, era, driver and its arguments, front, mode
CLIENTS = (
    ("sdk1", "legacy", ["driver_sdk1.mjs"], "stdio", "streamableHttp"),
    ("client2-modern", "modern", ["driver_client2.mjs", "modern"], "http", "sse"),
)
NEAR = ("filesystem", "memory", "sequential-thinking", "modern")


@pytest.fixture(scope="module", params=CLIENTS, ids=["-".join((c[0], *c[3:])) for c in CLIENTS])
def client(request, make_run, tmp_path_factory):
    label, era, argv, front, mode = request.param
    server = remote.Everything(mode, free_port(), tmp_path_factory.mktemp("log") / "server")
    run = make_run(f"everything-{mode}", tap=False, upstreams=NEAR,
                   extra={"everything": {"url": server.url}})
    try:
        if front == "stdio":
            return ClientRun(label, era, argv, run, {
                "command": run.command, "args": run.args, "env": run.env})
        with Serve(run) as daemon:
            return ClientRun(label, era, argv, run, {"url": daemon.url})
    finally:
        server.stop()
