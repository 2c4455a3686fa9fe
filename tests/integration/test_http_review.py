# SPDX-License-Identifier: MIT
"""Edges of the HTTP endpoint's life: stops, late instances, damaged state, slow readers."""
import os
import signal
import socket
import subprocess

import pytest

from http_client import VERSION, request
from mcp import PATIENCE
from served import BOUND, took

OWN = {"tools": ["echo"], "mcpvisor": {"isolation": "session"}}


def test_a_call_after_the_fleet_stopped_starts_no_child(serve_http):
    """A body that ends while children end: the daemon must not wait for a new child."""
    mv = serve_http(alpha={**OWN, "ignore_eof": True, "ignore_term": True})
    c = mv.legacy()
    c.tools()
    body = (b'{"jsonrpc":"2.0","id":7,"method":"tools/call",'
            b'"params":{"name":"alpha__echo","arguments":{}}}')
    wire = c.wire()
    wire.send(request("POST", "/mcp", {
        "Host": c.host, "Content-Length": len(body),
        **c.base(Content_Type="application/json")}, body[:20]))
    mv.fence()
    mv.proc.send_signal(signal.SIGTERM)
    mv.wait_log(r"child: state .*from=running to=stop")
    wire.send(body[20:])
    assert took(lambda: mv.wait_exit(8)) < 8 * PATIENCE
    assert len(mv["alpha"].starts()) == 1


def test_a_session_that_got_its_child_late_does_not_survive_either(serve_http, tmp_path):
    """The call waits for the list, so its child starts after the message was dealt with."""
    state = tmp_path / "state"
    first = serve_http(alpha=OWN, state=state)
    known = first.legacy()
    second = serve_http(state=state, alpha={**OWN, "on": {
        "tools/list": [["gate", "go"], ["default"]]}})
    c = second.client()
    c.session = known.session
    call = c.start_call("alpha__echo", {})
    second["alpha"].wait_input("tools/list")
    second["alpha"].open("go")
    assert call.result
    second.kill()
    second.start()
    assert c.send("ping").fault() == (404, -32600)


def test_a_stop_right_after_the_first_word_is_a_clean_one(binary, tmp_path):
    argv = [str(binary), "serve"]
    for i in range(8):
        argv += ["--listen", "127.0.0.%d:0" % (i + 1)]
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    for _ in range(5):
        proc = subprocess.Popen(argv, stderr=subprocess.PIPE, env=env)
        for line in proc.stderr:
            if BOUND.search(line.decode()):
                proc.send_signal(signal.SIGTERM)
                break
        proc.stderr.read()
        assert proc.wait(10 * PATIENCE) == 0


@pytest.mark.parametrize("torn", [b"0123456789", b"\n", b"a" * 33 + b"\n" + b"b" * 40])
def test_a_torn_line_spoils_none_after_it(serve_http, torn):
    mv = serve_http(alpha={"tools": ["echo"]})
    c = mv.legacy()
    with open(mv.folder / "state" / "mcpvisor" / "sessions.gone", "ab") as f:
        f.write(torn)
    assert c.delete().status == 204
    mv.restart()
    assert c.send("ping").fault() == (404, -32600)


def test_connect_hands_on_the_last_words_of_a_daemon_to_a_slow_reader(binary, tmp_path):
    """The client writes and reads late, when nobody is behind any more."""
    path, words = str(tmp_path / "s"), b"x" * 500000 + b"\n"
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    proc = subprocess.Popen([str(binary), "connect", path], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    conn, _ = server.accept()
    conn.sendall(words)
    conn.close()
    server.close()
    proc.stdin.write(b"{}\n")
    proc.stdin.flush()
    got = []
    assert took(lambda: got.append(proc.stdout.read())) < 1.5 * PATIENCE
    assert got[0] == words
    assert proc.wait(5 * PATIENCE) != 0


@pytest.mark.parametrize("version, status", [
    ("2025-11-25", None), (None, None), ("latest", 400), ("2023-01-01", 400), ("", 400),
    (["2025-11-25", "2025-11-25"], 400)])
def test_an_unknown_revision_is_refused_whatever_is_sent(serve_http, version, status):
    c = serve_http(alpha={"tools": ["echo"]}).legacy()
    headers = {VERSION: version}
    note = c.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    assert note.status == (status or 202)
    assert c.http("GET", {**c.base(), **headers}).status == (status or 200)
    assert c.http("DELETE", {**c.base(), **headers}).status == (status or 204)
    if status:
        assert c.ask("ping").result == {}
