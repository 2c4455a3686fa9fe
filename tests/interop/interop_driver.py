# SPDX-License-Identifier: MIT
"""Runs the driver of a client once and keeps what it said, step by step."""

import json
import os
import pathlib
import signal
import subprocess

import interop_env as env

DRIVER_S = 120


class ClientRun:
    """What one driver said. TARGET tells it where mcpvisor is: a command or a url."""

    def __init__(self, label, era, argv, run, target, program=env.NODE):
        self.label = label
        self.era = era
        self.run = run
        config = run.folder / "driver.json"
        config.write_text(json.dumps({
            **target, "trace": str(run.trace), "file": str(run.files / "hello.txt"),
        }))
        self.steps, self.status = drive(
            [program, str(env.HERE / argv[0]), str(config), *argv[1:]],
            run.folder / "stderr")

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
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=err,
                                   start_new_session=True)
        try:
            out, _ = process.communicate(timeout=DRIVER_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
    lines = [json.loads(line) for line in out.decode().splitlines()]
    return {line["step"]: line for line in lines}, process.returncode
