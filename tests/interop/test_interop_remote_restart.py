# SPDX-License-Identifier: MIT
"""SDK servers over HTTP that forget their sessions, end and come back under their clients."""

import json
import socket

import pytest

import interop_remote as remote
from interop_http import HttpWire, Serve, until
from interop_stacks import HttpClient
from test_interop_http_restart import Driver
from test_interop_remote import argv_or_skip

GREET = '"name":"modern__greet","arguments":{"name":"x"}'
ECHO = '"name":"modern__echo","arguments":{"message":"x"}'
FAST = {"restart_base_ms": 100, "restart_max_ms": 500, "restart_limit": 0}
NODE = ("/v1/stateful", "/v1/json", "/v1/stateless", "/v1/sse", "/v2/modern", "/v2/both",
        "/v2/legacy")
NOTICED = ("/v1/stateful", "/v2/modern")
PYTHON = ("/http", "/sse")


@pytest.fixture
def started(tmp_path):
    """started(argv): a process of servers, ended with the test."""
    running = []

    def start(make, *args):
        running.append(make(*args, tmp_path / f"server{len(running)}"))
        return running[-1]

    yield start
    for one in running:
        one.stop()


def serve(make_run, url):
    return Serve(make_run("remote-restart", tap=False, upstreams=(), extra={
        "modern": {"url": url, "mcpvisor": FAST}}))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.mark.parametrize("path, kind", [("/v1/stateful", "client2-modern"),
                                        ("/v1/json", "sdk1"), ("/v2/legacy", "sdk1")])
def test_a_forgotten_session_is_no_news_to_clients(make_run, started, kind, path):
    node = started(remote.Remote, remote.node_argv())
    with serve(make_run, node.url(path)) as server, Driver(server, kind) as driver:
        assert "before" in driver.said()["result"]["content"][0]["text"]
        for n in (1, 2):
            begun = int(node.ask("/count"))
            node.ask("/forget", "POST")
            assert f"after {n}" in driver.call()["result"]["content"][0]["text"]
            assert int(node.ask("/count")) == begun + 1
        assert driver.end() == 0


def check_comes_back(make_run, one, url, body, quick):
    """quick: it is back before anybody has noticed."""
    with serve(make_run, url) as server:
        client = HttpWire(HttpClient(server.url), False)
        client.initialize()
        assert "content" in json.loads(client.result("tools/call", body))
        one.stop()
        if not quick:
            error = json.loads(until(
                lambda: client.request("tools/call", body).get("error"), "an error"))
            assert error["code"] == -32603
            assert error["data"]["retryable"] is True
            assert error["data"]["upstream"] == "modern"
        one.start()
        until(lambda: "result" in client.request("tools/call", body), "it is back", 20)
        for _ in range(3):
            assert "content" in json.loads(client.result("tools/call", body))
        client.stack.close()


@pytest.mark.parametrize("path", NODE)
def test_a_server_comes_back(make_run, started, path):
    node = started(remote.Remote, remote.node_argv())
    check_comes_back(make_run, node, node.url(path), GREET, path not in NOTICED)


@pytest.mark.parametrize("package", ["mcp1", "mcp2"])
@pytest.mark.parametrize("path", PYTHON)
def test_a_python_server_comes_back(make_run, started, path, package):
    one = started(remote.Remote, argv_or_skip(package))
    check_comes_back(make_run, one, one.url(path), GREET, True)


@pytest.mark.parametrize("quick", [False, True], ids=["noticed", "quick"])
@pytest.mark.parametrize("mode", ["streamableHttp", "sse"])
def test_server_everything_comes_back(make_run, started, mode, quick):
    """It says 400 where the session is unknown to it."""
    one = started(remote.Everything, mode, free_port())
    check_comes_back(make_run, one, one.url, ECHO, quick)
