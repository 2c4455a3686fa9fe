# SPDX-License-Identifier: MIT
"""Fixtures: serve() starts mcpvisor over upstreams and checks its end."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import conf_served  # noqa: E402 (path first)
import mcp  # noqa: E402
import remote_server  # noqa: E402
import schema  # noqa: E402
import served  # noqa: E402
import ways  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: waits for a time limit of its own")


def pytest_report_header(config):
    where = schema.folder()
    return "mcp schemas: %s" % (where or "absent, no schema checks (set MCP_SCHEMA_DIR)")


@pytest.fixture(scope="session")
def binary():
    for path in (os.environ.get("MCPVISOR"), mcp.REPO / "build" / "mcpvisor"):
        if path and os.access(path, os.X_OK):
            return Path(path).resolve()
    pytest.fail("no mcpvisor binary: build it, or name it in $MCPVISOR")


@pytest.fixture
def serve(binary, tmp_path):
    """serve(alpha={behaviour}, ...): a running Mcpvisor, ended and checked after."""
    running = []

    def start(upstreams=None, args=("--log-level", "debug"), env=None, text=None, file=True,
              wrap=(), **named):
        folder = tmp_path / ("run%d" % len(running))
        folder.mkdir()
        both = {**(upstreams or {}), **named}
        running.append(mcp.Mcpvisor(binary, folder, both, args, env, text, file,
                                    wrap))
        return running[-1]

    yield start
    end_all(running)


@pytest.fixture
def serve_http(binary, tmp_path):
    """serve_http(alpha={behaviour}, ...): a running daemon, ended and checked after."""
    running = []

    def start(upstreams=None, listen=("127.0.0.1:0",), args=(), env=None, state=None,
              text=None, **named):
        folder = tmp_path / ("http%d" % len(running))
        folder.mkdir()
        both = {**(upstreams or {}), **named}
        running.append(served.Served(binary, folder, both, listen, args, env, state, text))
        return running[-1]

    yield start
    end_all(running)


@pytest.fixture
def serve_conf(binary, tmp_path):
    """serve_conf(more="...", alpha={behaviour}, ...): a daemon steered by a conf file."""
    running = []

    def start(upstreams=None, **kw):
        folder = tmp_path / ("conf%d" % len(running))
        folder.mkdir()
        own = {k: kw.pop(k) for k in conf_served.OPTIONS if k in kw}
        running.append(conf_served.ConfServed(binary, folder, {**(upstreams or {}), **kw},
                                              **own))
        return running[-1]

    yield start
    end_all(running)


@pytest.fixture
def connect(binary, tmp_path):
    """connect(socket): a stdio client of a running daemon, ended and checked after."""
    running = []

    def start(*socket, env=None):
        folder = tmp_path / ("connect%d" % len(running))
        folder.mkdir()
        running.append(served.Connected(binary, folder, {}, socket, env, file=False))
        return running[-1]

    yield start
    end_all(running)


@pytest.fixture
def check(binary, tmp_path):
    """check(conf, ...): exit status, stdout, stderr; nothing may have been started."""
    marker = tmp_path / "started"
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8",
           **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}}

    def run(conf, *argv, code=None, **more):
        path = tmp_path / "mcpvisor.conf"
        if conf is not None:
            path.write_text(conf)
        done = subprocess.run([binary, "check", "--conf", path, *argv], capture_output=True,
                              text=True, timeout=30 * mcp.PATIENCE, env={**env, **more}, cwd=tmp_path)
        assert code is None or done.returncode == code, done
        assert not marker.exists()
        return done.returncode, done.stdout, done.stderr

    run.folder, run.env = tmp_path, env
    return run


@pytest.fixture
def remote():
    """remote(era, ...): a server beside the test, ended after it."""
    running = []

    def start(*args, **kw):
        running.append(remote_server.RemoteServer(*args, **kw))
        return running[-1]

    yield start
    for s in running:
        s.close()


@pytest.fixture(params=ways.WAYS)
def each(request, serve, serve_http):
    """each(alpha={behaviour}, ...): a client on stdio or HTTP, of either era."""
    def start(upstreams=None, **named):
        return ways.start(request.param, serve, serve_http, upstreams, **named)

    return start


def end_all(running):
    problems = []
    for one in reversed(running):
        try:
            one.check_end()
        except Exception as e:  # every run is ended before the first fault is shown
            problems.append(e)
    if problems:
        raise problems[0]
