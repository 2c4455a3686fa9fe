# SPDX-License-Identifier: MIT
"""Fixtures of the interop tests; README.md tells what they are."""

import json
import os
import pathlib
import signal
import subprocess

import pytest

import interop_env as env

DRIVER_S = 120

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


class ClientRun:
    """What one driver said, step by step."""

    def __init__(self, label, era, argv, run):
        self.label = label
        self.era = era
        self.run = run
        config = run.folder / "driver.json"
        config.write_text(json.dumps({
            "command": run.command, "args": run.args, "env": run.env,
            "trace": str(run.trace), "file": str(run.files / "hello.txt"),
        }))
        self.steps, self.status = drive([*argv[:1], str(config), *argv[1:]],
                                        run.folder / "stderr")
        self.left = run.left()

    def __getitem__(self, step):
        if step not in self.steps:
            log = pathlib.Path(self.run.folder / "stderr").read_text(errors="replace")
            raise AssertionError(f"{self.label} never came to {step}; "
                                 f"steps {list(self.steps)}, end of log:\n{log[-3000:]}")
        line = self.steps[step]
        assert line["ok"], line
        return line


def drive(argv, log):
    """Runs a driver; its steps by name, and its exit status."""
    with open(log, "wb") as err:
        process = subprocess.Popen([env.NODE, str(env.HERE / argv[0]), *argv[1:]],
                                   stdout=subprocess.PIPE, stderr=err,
                                   start_new_session=True)
        try:
            out, _ = process.communicate(timeout=DRIVER_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
    lines = [json.loads(line) for line in out.decode().splitlines()]
    return {line["step"]: line for line in lines}, process.returncode


@pytest.fixture(scope="session", params=CLIENTS, ids=[c[0] for c in CLIENTS])
def client(request, make_run):
    label, era, argv = request.param
    return ClientRun(label, era, argv, make_run(label))
