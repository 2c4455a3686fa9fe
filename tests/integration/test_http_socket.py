# SPDX-License-Identifier: MIT
"""Unix sockets: HTTP and lines on one file, and connect, which is stdio in front."""
import json
import os
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

from http_client import Wire
from mcp import META, MODERN, PATIENCE, wait_for

ECHO = {"tools": ["echo"]}
HOLD = {"tools": ["echo", "hold"], "calls": {"hold": [
    ["progress", 1], ["gate", "go"], ["reply", {"content": []}]]}}
PIDS = {"tools": ["echo", "pid"], "calls": {"pid": [
    ["reply", '{"content":[{"type":"text","text":"${PID}"}]}']]}}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "s.sock")


def unix(serve_http, path, *more, **named):
    return serve_http(listen=("unix:" + path, *more), **named)


def line(wire, msg, timeout=10.0):
    """One message out, one line in."""
    wire.send((msg if isinstance(msg, bytes) else json.dumps(msg).encode()) + b"\n")
    return json.loads(wire.until(b"\n", time.monotonic() + timeout * PATIENCE))


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def test_the_file_is_its_owners_and_goes_with_the_daemon(serve_http, path):
    mv = unix(serve_http, path, alpha=ECHO)
    st = os.stat(path)
    assert stat.S_ISSOCK(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o600
    assert mv.stop() == 0
    assert not os.path.exists(path)


def test_a_stale_file_is_replaced_and_a_live_one_is_not(serve_http, binary, path):
    mv = unix(serve_http, path, alpha=ECHO)
    got = subprocess.run([binary, "serve", "--listen", "unix:" + path], env=mv.env,
                         capture_output=True, timeout=20, stdin=subprocess.DEVNULL)
    assert got.returncode == 3 and b"listens there already" in got.stderr
    assert mv.modern().tools() == ["alpha__echo"]
    mv.kill()
    assert os.path.exists(path)
    mv.start()
    assert mv.modern().tools() == ["alpha__echo"]


def test_what_is_no_socket_is_left_alone(binary, tmp_path, path):
    with open(path, "w") as f:
        f.write("mine")
    got = subprocess.run([binary, "serve", "--listen", "unix:" + path], capture_output=True,
                         env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, timeout=20,
                         stdin=subprocess.DEVNULL)
    assert got.returncode == 3
    assert open(path).read() == "mine"


@pytest.mark.parametrize("era", ["2025-03-26", "2025-11-25", "modern"])
def test_http_on_a_unix_socket(serve_http, path, era):
    mv = unix(serve_http, path, alpha=HOLD)
    c = mv.speak(era)
    assert c.tools() == ["alpha__echo", "alpha__hold"]
    answer = c.start_call("alpha__hold", {}, meta={"progressToken": 1})
    assert answer.next().params["progress"] == 1
    mv["alpha"].open("go")
    assert answer.next().result["content"] == []


def test_hosts_are_looked_at_there_too(serve_http, path):
    mv = unix(serve_http, path, alpha=ECHO)
    answer = mv.modern().send("tools/list", headers={"Host": "evil.example"})
    assert answer.status == 403


def test_a_session_belongs_to_whoever_made_it(serve_http, path):
    """Over the socket that is a user, over TCP the session itself."""
    mv = unix(serve_http, path, "127.0.0.1:0", alpha=ECHO)
    mine, other = mv.legacy(), mv.legacy(address=mv.bound[1])
    mine.fixed, other.fixed = mv.bound[1], mv.bound[0]
    assert mine.send("ping").fault() == (404, -32600)
    assert other.send("ping").fault() == (404, -32600)
    mine.fixed = mv.bound[0]
    assert mine.ask("ping").result == {}


# -- lines -----------------------------------------------------------------------------------


def test_lines_of_both_eras_on_one_socket(serve_http, path):
    mv = unix(serve_http, path, alpha=ECHO)
    legacy, modern = Wire("unix:" + path), Wire("unix:" + path)
    got = line(legacy, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"}}})
    assert got["result"]["protocolVersion"] == "2025-06-18"
    assert line(legacy, PING) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
    got = line(modern, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "alpha__echo", "arguments": {"a": 1}, "_meta": meta}})
    assert got["result"]["structuredContent"] == {"a": 1}
    # White space before a message is no HTTP either.
    assert line(Wire("unix:" + path), b"  " + json.dumps(PING).encode())["id"] == 1
    assert line(Wire("unix:" + path), b"7")["error"]["code"] == -32600
    for w in (legacy, modern):
        w.close()


def test_tools_with_unusable_headers_are_there_for_lines(serve_http, path):
    bad = {"name": "bad", "inputSchema": {"type": "object", "properties": {
        "a": {"type": "string", "x-mcp-header": ""}}}}
    mv = unix(serve_http, path, alpha={"tools": ["echo", bad]})
    meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
    got = line(Wire("unix:" + path), {"jsonrpc": "2.0", "id": 1, "method": "tools/list",
                                      "params": {"_meta": meta}})
    assert [t["name"] for t in got["result"]["tools"]] == ["alpha__echo", "alpha__bad"]
    assert mv.modern().tools() == ["alpha__echo"]


def test_a_line_client_that_leaves_with_a_call_open(serve_http, path):
    mv = unix(serve_http, path, alpha=HOLD)
    wire = Wire("unix:" + path)
    wire.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "alpha__hold", "arguments": {}}}).encode() + b"\n")
    mv["alpha"].wait_input("tools/call")
    wire.close()
    mv["alpha"].wait_input("notifications/cancelled")
    assert mv.modern().tools()


def test_a_connection_that_says_nothing_holds_nothing(serve_http, path):
    mv = unix(serve_http, path, alpha=ECHO)
    silent = [Wire("unix:" + path) for _ in range(20)]
    assert mv.modern().tools()
    assert mv.stop() == 0
    for w in silent:
        assert w.wait_end() == b""


# -- connect ---------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25",
                                 "modern"])
def test_connect_is_a_stdio_server(serve_http, connect, path, era):
    mv = unix(serve_http, path, alpha=HOLD, beta={"era": "modern", "tools": ["echo"]})
    c = connect(path).speak(era)
    assert c.tools() == ["alpha__echo", "alpha__hold", "beta__echo"]
    assert c.call("beta__echo", {"n": 1}).result["structuredContent"] == {"n": 1}
    key = c.start_call("alpha__hold", {}, meta={"progressToken": "t"})
    assert c.notice("notifications/progress").params["progressToken"] == "t"
    mv["alpha"].open("go")
    assert c.answer(key).result["content"] == []
    if era == "2025-03-26":
        c.line(json.dumps([PING, {**PING, "id": 2}]))
        batch = c.take(lambda m: isinstance(m.msg, list))
        assert [one["result"] for one in batch.msg] == [{}, {}]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_connect_cancels_and_hears_of_changes(serve_http, connect, path, era):
    mv = unix(serve_http, path, alpha={**HOLD, "resources": ["m:1"]})
    c = connect(path).speak(era)
    c.tools(), c.ask("resources/list")
    if era == "modern":
        c.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="L")
        c.notice("notifications/subscriptions/acknowledged")
    mv["alpha"].run(["set", "tools", ["echo", "hold", "more"]], ["changed", "tools"])
    c.notice("notifications/tools/list_changed")
    key = c.start_call("alpha__hold", {})
    sent = mv["alpha"].wait_input("tools/call").msg
    c.cancel(key)
    note = mv["alpha"].wait_input("notifications/cancelled").msg
    assert note["params"]["requestId"] == sent["id"]
    c.fence()


def test_desktop_clients_share_one_fleet(serve_http, connect, path):
    mv = unix(serve_http, path, "127.0.0.1:0", alpha=PIDS)
    clients = [connect(path).speak(era) for era in ("legacy", "modern", "2025-03-26")]
    pids = {c.call("alpha__pid", {}, id=1).text for c in clients}
    pids.add(mv.modern(mv.bound[1]).call("alpha__pid", {}).text)
    assert len(pids) == 1
    assert len(mv["alpha"].starts()) == 1
    # One that leaves takes nothing with it.
    assert clients[0].finish() == 0
    assert clients[1].call("alpha__pid", {}, id=2).text in pids
    assert len(mv["alpha"].starts()) == 1


def test_connect_finds_the_socket_by_itself(serve_http, connect, tmp_path):
    mv = unix(serve_http, str(tmp_path / "mcpvisor.sock"), alpha=ECHO)
    c = connect(env={"XDG_RUNTIME_DIR": str(tmp_path)})
    assert c.modern().tools() == ["alpha__echo"]
    assert mv.modern().tools() == ["alpha__echo"]


def test_printf_into_connect_gets_its_answers(serve_http, connect, path):
    mv = unix(serve_http, path, alpha={"tools": ["work"], "calls": {"work": [
        ["sleep", 300], ["reply", {"content": []}]]}})
    c = connect(path)
    c.modern()
    key = c.start_call("alpha__work", {})
    assert c.finish() == 0
    assert c.answer(key).result["content"] == []
    assert mv.modern().tools()


def test_connect_ends_in_time_with_a_call_that_does_not(serve_http, connect, path):
    mv = unix(serve_http, path, alpha={"tools": ["never"], "calls": {"never": []}})
    c = connect(path).modern()
    c.start_call("alpha__never", {})
    mv["alpha"].wait_input("tools/call")
    start = time.monotonic()
    assert c.finish() == 0
    assert time.monotonic() - start < 2.5 * PATIENCE
    mv["alpha"].wait_input("notifications/cancelled")


def test_connect_without_a_daemon(connect, path):
    c = connect(path)
    c.want_rc = 5
    start = time.monotonic()
    assert c.proc.wait(5) == 5
    assert time.monotonic() - start < 2 * PATIENCE
    c.wait_log("is mcpvisor serve running")


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_connect_ends_with_the_daemon(serve_http, connect, path, end):
    mv = unix(serve_http, path, alpha=ECHO)
    c = connect(path).speak("legacy")
    assert c.tools()
    c.want_rc = 5
    getattr(mv, end)()
    assert c.proc.wait(5 * PATIENCE) == 5
    c.wait_log("the daemon has gone")


def test_connect_is_told_of_the_stop_before(serve_http, connect, path):
    mv = unix(serve_http, path, alpha={"tools": ["never"], "calls": {"never": []}})
    c = connect(path).modern()
    key = c.start_call("alpha__never", {})
    mv["alpha"].wait_input("tools/call")
    c.send("subscriptions/listen", {"notifications": {}}, id="L")
    c.notice("notifications/subscriptions/acknowledged")
    c.want_rc = 5
    assert mv.stop() == 0
    assert c.answer(key).code == -32603
    assert c.answer("L").result["resultType"] == "complete"
    assert c.notice("notifications/cancelled").params["requestId"] == "L"


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_connect_dies_of_signals_and_the_daemon_goes_on(serve_http, connect, path, sig):
    mv = unix(serve_http, path, alpha=ECHO)
    c = connect(path).speak("legacy")
    c.proc.send_signal(sig)
    c.want_rc = c.proc.wait(5)
    assert c.want_rc in (0, -sig)
    assert mv.modern().tools()


def test_a_daemon_that_never_answers_does_not_hold_connect(connect, path):
    """A socket that takes the connection and nothing else."""
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(5)
    taken = []
    threading.Thread(target=lambda: taken.append(s.accept()), daemon=True).start()
    c = connect(path)
    wait_for(lambda: taken)
    c.line(json.dumps(PING))
    start = time.monotonic()
    c.close_input()
    c.want_rc = c.proc.wait(10)
    assert time.monotonic() - start < 4 * PATIENCE
    assert c.want_rc == 5
    s.close()


def test_a_big_message_goes_through_connect(serve_http, connect, path):
    unix(serve_http, path, alpha=ECHO)
    c = connect(path).modern()
    text = "x" * 5000000
    assert c.call("alpha__echo", {"t": text}, timeout=30).result["structuredContent"] == {
        "t": text}
