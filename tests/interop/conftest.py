# SPDX-License-Identifier: MIT
"""Fixtures of the interop tests; README.md tells what they are."""

import os

import pytest

import interop_env as env
from interop_driver import ClientRun

# label, era, driver and its arguments
CLIENTS = (
    ("sdk1", "legacy", ["driver_sdk1.mjs"]),
    ("client2-legacy", "legacy", ["driver_client2.mjs", "legacy"]),
    ("client2-auto", "modern", ["driver_client2.mjs", "auto"]),
    ("client2-modern", "modern", ["driver_client2.mjs", "modern"]),
)


@pytest.fixture(scope="session", autouse=True)
def able():
    reason = env.why_unable()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    if not os.access(env.MCPVISOR, os.X_OK):
        pytest.fail(f"{env.MCPVISOR} is not there; build it, or name it in MCPVISOR")


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The folder that the filesystem server may show."""
    folder = tmp_path_factory.mktemp("files").resolve()
    (folder / "hello.txt").write_text("hello\nworld\n")
    (folder / "odd.txt").write_text('tab\there "quote" \\ ü 🎉 \u2028 end\n')
    (folder / "sub").mkdir()
    (folder / "sub" / "data.bin").write_bytes(bytes(range(256)))
    return folder


@pytest.fixture(scope="session")
def make_run(able, files, tmp_path_factory):
    def make(label, **options):
        return env.Run(tmp_path_factory.mktemp(label), files, **options)

    return make


@pytest.fixture(scope="session", params=CLIENTS, ids=[c[0] for c in CLIENTS])
def client(request, make_run):
    label, era, argv = request.param
    run = make_run(label)
    done = ClientRun(label, era, argv, run,
                     {"command": run.command, "args": run.args, "env": run.env})
    done.left = run.left()
    return done
