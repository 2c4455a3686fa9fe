# SPDX-License-Identifier: MIT
"""Where things are, the mcpServers file of a run, and which processes are left."""

import json
import os
import pathlib
import shutil
import subprocess
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
PACKAGES = HERE / "node_modules" / "@modelcontextprotocol"
NODE = shutil.which("node")
MCPVISOR = os.environ.get("MCPVISOR", str(REPO / "build" / "mcpvisor"))

UPSTREAMS = ("everything", "filesystem", "memory", "sequential-thinking", "modern")
MARK = "MCPVISOR_INTEROP_RUN"

# Copies what the server is told to a file, so that a test can say what really
# reached it. Three processes to one server also shows that whole groups end.
TAP = 'tee "$1" | "$2" "$3" "$4"'


def why_unable():
    """The reason why nothing of this can run here, or None."""
    if NODE is None:
        return "node is not installed"
    version = subprocess.run([NODE, "--version"], capture_output=True, text=True).stdout
    if int(version.lstrip("v").split(".")[0] or 0) < 20:
        return f"node {version.strip()} is older than 20"
    if shutil.which("curl") is None:
        return "curl is not installed"
    if not PACKAGES.is_dir():
        return "npm packages are missing: run npm ci in tests/interop"
    return None


class Run:
    """The files of one mcpvisor with its five upstreams, or some of them, and
    EXTRA entries of the mcpServers file that come first."""

    def __init__(self, folder, files, tap=True, upstreams=UPSTREAMS, extra=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.files = pathlib.Path(files)
        self.mark = uuid.uuid4().hex
        self.trace = self.folder / "trace"
        self.memory = self.folder / "memory.jsonl"
        self.tap = tap
        self.mcp_json = self.folder / "mcp.json"
        self.mcp_json.write_text(json.dumps(
            {"mcpServers": {**(extra or {}), **{n: self._entry(n) for n in upstreams}}},
            indent=2))
        self.command = MCPVISOR
        # Node may take its time to start on a busy machine; where one of the servers never
        # will be ready the wait is the product's own.
        self.conf = self.folder / "patient.conf"
        self.conf.write_text("list_wait_ms = 30000;\n")
        self.files_of = ["--mcp-json", str(self.mcp_json)]
        if extra is None:
            self.files_of += ["--conf", str(self.conf)]
        self.args = ["stdio", *self.files_of]
        self.env = {MARK: self.mark, "XDG_STATE_HOME": str(self.folder / "state")}

    def script(self, name):
        if name == "modern":
            return [str(HERE / "modern_child.mjs")]
        path = str(PACKAGES / f"server-{name}" / "dist" / "index.js")
        return [path, str(self.files)] if name == "filesystem" else [path]

    def upstream_env(self, name):
        env = {MARK: self.mark}
        if name == "memory":
            env["MEMORY_FILE_PATH"] = str(self.memory)
        elif name == "modern":
            env["INTEROP_TRACE"] = str(self.trace)
        return env

    def _entry(self, name):
        command, args = NODE, self.script(name)
        if self.tap:
            command = "/bin/sh"
            args = ["-c", TAP, "sh", str(self.tap_file(name)), NODE, *args]
        return {"command": command, "args": args, "env": self.upstream_env(name)}

    def tap_file(self, name):
        return self.folder / f"tap-{name}"

    def tapped(self, name):
        """The lines that upstream NAME was sent, as bytes."""
        return self.tap_file(name).read_bytes().splitlines()

    def told(self, name):
        return [json.loads(line) for line in self.tapped(name)]

    def environ(self):
        return {**os.environ, **self.env}

    def left(self, within=1.0):
        """Processes of this run that are still there after WITHIN seconds."""
        end = time.monotonic() + within
        while True:
            found = processes(self.mark)
            if not found or time.monotonic() > end:
                return found
            time.sleep(0.02)


def processes(mark):
    """pid and command line of every process with MARK in its environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for proc in pathlib.Path("/proc").iterdir():
        if not proc.name.isdigit():
            continue
        try:
            if wanted not in (proc / "environ").read_bytes().split(b"\0"):
                continue
            command = (proc / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if command:
            found.append((int(proc.name), command.strip()))
    return found
