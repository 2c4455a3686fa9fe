# SPDX-License-Identifier: MIT
"""Servers on the official SDKs that are reached over HTTP, as processes of their own, and
what each of them can do."""

import os
import subprocess
import urllib.request

import interop_env as env
from interop_http import until
from interop_python import python_with

START_S = 20
PLAIN = ("greet", "fail", "prompt", "complete", "read")
ASKS = ("ask_form", "ask_url", "ask_model", "ask_roots")
WATCH = ("watch", "grow")
EVERY = (*PLAIN, "count", "chat", *ASKS, *WATCH, "slow", "again")
PYTHON = ("greet", "count", "chat", "prompt", "read", "ask_form", "ask_model", "ask_roots",
          "slow", "again")

# Path, and what is asked of it. Without streams there is nothing before an answer; without
# sessions nobody that a question could be answered to.
NODE = {
    "v1-stateful": ("/v1/stateful", EVERY),
    "v1-json": ("/v1/json", (*PLAIN, *WATCH, "again")),
    "v1-stateless": ("/v1/stateless", (*PLAIN, "count", "chat", "again")),
    "v1-sse": ("/v1/sse", EVERY),
    "v2-modern": ("/v2/modern", EVERY),
    "v2-streams": ("/v2/streams", EVERY),
    "v2-both": ("/v2/both", EVERY),
    "v2-legacy": ("/v2/legacy", EVERY),
}
PYTHON1 = {
    "python1-http": ("/http", (*PYTHON, "ask_url")),
    "python1-json": ("/json", ("greet", "prompt", "read", "again")),
    "python1-stateless": ("/stateless", ("greet", "prompt", "read", "count", "again")),
    "python1-sse": ("/sse", (*PYTHON, "ask_url")),
}
PYTHON2 = {
    "python2-http": ("/http", PYTHON),
    "python2-json": ("/json", ("greet", "prompt", "read", "again")),
    "python2-stateless": ("/stateless", ("greet", "prompt", "read", "count", "again")),
    "python2-sse": ("/sse", PYTHON),
}
STDIO = {"v1-stdio": EVERY, "v2-stdio": EVERY, "python1-stdio": (*PYTHON, "ask_url"),
         "python2-stdio": PYTHON}


class Remote:
    """One process that prints its port as soon as it listens; a restart keeps that."""

    def __init__(self, argv, log):
        self.argv, self.log, self.port = argv, log, 0
        self.process = None
        self.begin()
        self.wait()

    def begin(self):
        self.process = subprocess.Popen(
            [*self.argv, str(self.port)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=open(self.log, "ab"))

    def wait(self):
        line = self.process.stdout.readline()
        assert line, self.log.read_text()[-3000:]
        self.port = int(line)

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def ask(self, path, method="GET"):
        request = urllib.request.Request(self.url(path), method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read().decode()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def start(self):
        self.begin()
        self.wait()


class Everything:
    """server-everything over HTTP, which says only in its log that it listens."""

    def __init__(self, mode, port, log):
        self.mode, self.port, self.log = mode, port, log
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [env.NODE, str(env.PACKAGES / "server-everything" / "dist" / "index.js"),
             self.mode], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(self.log, "wb"), env={**os.environ, "PORT": str(self.port)})
        until(lambda: "listening on port" in self.log.read_text()
              or "running on port" in self.log.read_text(), "server-everything", START_S)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/{'sse' if self.mode == 'sse' else 'mcp'}"

    def stop(self):
        self.process.kill()
        self.process.wait()


def node_argv():
    return [env.NODE, str(env.HERE / "remote_servers.mjs")]


def python_argv(package):
    """None, and why, where the package cannot be had."""
    python, reason = python_with(package)
    return (python and [python, str(env.HERE / "remote_servers.py")]), reason


def entries_of(remote, table):
    return {name: {"url": remote.url(path)} for name, (path, _) in table.items()}
