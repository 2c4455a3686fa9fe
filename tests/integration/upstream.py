# SPDX-License-Identifier: MIT
"""A scripted upstream as a test sees it, and waiting for what it does."""
import json
import os
import re
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
# Upper bounds of time are multiplied by this: for valgrind and loaded machines.
PATIENCE = float(os.environ.get("MCPVISOR_TEST_PATIENCE", "1"))


def wait_for(condition, timeout=5.0, what=""):
    """Polls until condition() is true and returns its value."""
    end = time.monotonic() + timeout * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("not within %g s: %s" % (timeout, what or condition))
        time.sleep(0.005)


def group_members(groups):
    """Pids of processes, zombies aside, that belong to one of the groups."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name) as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) in groups and fields[0] not in "ZX":
            found.append(int(name))
    return found


class Record:
    def __init__(self, line):
        kind, pid, at, self.raw = line.split(b" ", 3)
        self.kind, self.pid, self.at = kind.decode(), int(pid), int(at)

    @property
    def msg(self):
        return json.loads(self.raw)


class Upstream:
    """A scripted upstream: its entry in the file, its record, its control."""

    def __init__(self, folder, name, behaviour):
        slug = re.sub(r"\W", "_", name)[:40] + "-%d" % len(list(folder.iterdir()))
        self.name = name
        self.path = folder / (slug + ".json")
        self.record = folder / (slug + ".rec")
        self.fifo = folder / (slug + ".ctl")
        behaviour = dict(behaviour)
        self.options = behaviour.pop("mcpvisor", {})
        self.extra = behaviour.pop("entry", {})
        self.wrap = behaviour.pop("wrap", [])
        os.mkfifo(self.fifo)
        self.fifo_fd = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.record.touch()
        behaviour.setdefault("name", name)
        behaviour.update(record=str(self.record), control=str(self.fifo))
        self.path.write_text(json.dumps(behaviour))

    def entry(self):
        code = "import sys;sys.path[0:0]=[%r];import scripted;scripted.main()" % str(
            HERE / "upstreams")
        argv = [*self.wrap, PYTHON, "-ISc", code, str(self.path)]
        entry = {"command": argv[0], "args": argv[1:]}
        if self.options:
            entry["mcpvisor"] = self.options
        entry.update(self.extra)
        return entry

    def records(self, kind=None):
        lines = self.record.read_bytes().split(b"\n")[:-1]
        return [r for r in map(Record, lines) if kind in (None, r.kind)]

    def inputs(self, method=None):
        """Messages that mcpvisor sent to it, parsed; raw is in .raw."""
        found = self.records("I")
        return [r for r in found if method is None or r.msg.get("method") == method]

    def wait_input(self, method, n=1, timeout=5.0):
        """The n-th message of that method that it received."""
        wait_for(lambda: len(self.inputs(method)) >= n, timeout,
                 "%s gets %s number %d" % (self.name, method, n))
        return self.inputs(method)[n - 1]

    def starts(self):
        return self.records("B")

    def command(self, *cmd):
        os.write(self.fifo_fd, json.dumps(cmd).encode() + b"\n")

    def open(self, gate):
        self.command("open", gate)

    def run(self, *steps):
        self.command("run", steps)

    def become(self, **members):
        """Its next process behaves otherwise; None takes a member away."""
        behaviour = {**json.loads(self.path.read_text()), **members}
        kept = {k: v for k, v in behaviour.items() if v is not None}
        self.path.write_text(json.dumps(kept))

    def close(self):
        os.close(self.fifo_fd)
