# SPDX-License-Identifier: MIT
"""What outlives the daemon: sessions and their keys; and how the daemon ends."""
import json
import os
import signal
import stat
import time

import pytest

from http_client import Wire
from mcp import PATIENCE, group_members, wait_for
from served import took

ECHO = {"tools": ["echo"]}
HOLD = {"tools": ["echo", "hold", "work", "never"], "resources": ["m:1"], "calls": {
    "hold": [["gate", "go"], ["reply", {"content": []}]],
    "work": [["sleep", 400], ["reply", {"content": []}]], "never": []}}


def state(mv):
    return mv.folder / "state" / "mcpvisor"


@pytest.mark.parametrize("how", ["restart", "kill"])
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-11-25"])
def test_a_session_outlives_the_daemon(serve_http, revision, how):
    mv = serve_http(alpha=ECHO)
    c = mv.legacy(revision, name="caf\u00e9 \u4e16" * 40)
    assert c.call("alpha__echo", {"n": 1}).result
    if how == "kill":
        mv.kill()
        mv.start()
    else:
        mv.restart()
    answer = c.start_call("alpha__echo", {"n": 2})
    assert answer.status == 200 and answer.result["structuredContent"] == {"n": 2}
    # It is the same session, with the same revision.
    both = c.post([{"jsonrpc": "2.0", "id": 1, "method": "ping"},
                   {"jsonrpc": "2.0", "id": 2, "method": "ping"}])
    assert both.status == (200 if revision == "2025-03-26" else 400)
    stream = c.get()
    assert stream.is_stream
    c.ask("tools/list").result
    mv["alpha"].run(["set", "tools", ["echo", "b"]], ["changed", "tools"])
    assert stream.next().msg["method"] == "notifications/tools/list_changed"


def test_a_restart_under_a_call(serve_http):
    """The call that was running is lost with its answer; the next one is not."""
    mv = serve_http(alpha=HOLD)
    c = mv.legacy()
    call = c.start_call("alpha__never", {})
    mv["alpha"].wait_input("tools/call")
    mv.restart(close=False)
    assert call.code == -32603
    assert c.call("alpha__echo", {}).result


def test_what_cannot_survive_makes_a_session_unknown(serve_http):
    mv = serve_http(alpha=HOLD)
    plain, subscribed, undone = mv.legacy(), mv.legacy(), mv.legacy()
    plain.ask("resources/list").result
    for c in (subscribed, undone):
        assert c.ask("resources/subscribe", {"uri": "m:1"}).result == {}
    assert undone.ask("resources/unsubscribe", {"uri": "m:1"}).result == {}
    # As long as we live nothing is lost.
    assert subscribed.ask("ping").result == {}
    mv.restart()
    assert plain.ask("ping").result == {}
    assert subscribed.send("ping").fault() == (404, -32600)
    assert subscribed.get().status == 404
    subscribed.legacy()
    assert subscribed.ask("resources/subscribe", {"uri": "m:1"}).result == {}


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_deleted_session_stays_deleted(serve_http, how):
    mv = serve_http(alpha=ECHO)
    c, other = mv.legacy(), mv.legacy()
    assert c.delete().status == 204
    if how == "kill":
        mv.kill()
        mv.start()
    else:
        mv.restart()
    assert c.send("ping").fault() == (404, -32600)
    assert other.ask("ping").result == {}
    mv.restart()
    assert c.send("ping").fault() == (404, -32600)


# -- replicas ---------------------------------------------------------------------------------


def test_a_second_replica_serves_the_same_sessions(serve_http, tmp_path):
    a = serve_http(alpha=ECHO, state=tmp_path / "shared")
    b = serve_http(alpha=ECHO, state=tmp_path / "shared")
    c = a.legacy()
    assert c.call("alpha__echo", {"n": 1}).result
    c.fixed = b.address
    assert c.call("alpha__echo", {"n": 2}).result["structuredContent"] == {"n": 2}
    assert len(b["alpha"].inputs("tools/call")) == 1
    # Deleted at one it is unknown to the other, which has used it before.
    assert c.delete().status == 204
    for where in (a, b):
        c.fixed = where.address
        assert c.send("ping").fault() == (404, -32600)


def test_what_one_replica_holds_another_does_not_take_over(serve_http, tmp_path):
    a = serve_http(alpha=HOLD, state=tmp_path / "shared")
    b = serve_http(alpha=HOLD, state=tmp_path / "shared")
    c = a.legacy()
    c.ask("resources/list").result
    assert c.ask("resources/subscribe", {"uri": "m:1"}).result == {}
    c.fixed = b.address
    assert c.send("ping").fault() == (404, -32600)
    c.fixed = a.address
    assert c.ask("ping").result == {}


def test_replicas_that_start_at_once_share_one_key(serve_http, tmp_path):
    every = [serve_http(alpha=ECHO, state=tmp_path / "shared") for _ in range(4)]
    c = every[0].legacy()
    for mv in every:
        c.fixed = mv.address
        assert c.ask("ping").result == {}


# -- the state folder ---------------------------------------------------------------------------


def test_state_is_for_its_owner_alone(serve_http):
    mv = serve_http(alpha=ECHO)
    mv.legacy().delete()
    assert stat.S_IMODE(os.stat(state(mv)).st_mode) == 0o700
    names = os.listdir(state(mv))
    assert "session.key" in names
    for name in names:
        assert stat.S_IMODE(os.stat(state(mv) / name).st_mode) == 0o600


@pytest.mark.parametrize("damage", ["short", "empty", "foreign", "open", "folder", "gone"])
def test_an_unusable_key_is_made_anew(serve_http, damage):
    mv = serve_http(alpha=ECHO)
    c = mv.legacy()
    c.close()
    assert mv.stop() == 0
    key = state(mv) / "session.key"
    if damage == "open":
        key.chmod(0o644)
    elif damage in ("folder", "gone"):
        key.unlink()
        if damage == "folder":
            key.mkdir()
    else:
        key.write_bytes({"short": key.read_bytes()[:-1], "empty": b"",
                         "foreign": b"x" * 55}[damage])
        key.chmod(0o600)
    mv.start()
    assert c.send("ping").fault() == (404, -32600)
    c.legacy()
    assert c.ask("ping").result == {}
    if damage != "folder":
        mv.restart()
        assert c.ask("ping").result == {}


@pytest.mark.parametrize("junk", [b"junk\n" * 100, b"\0" * 1000, b"0" * 33 + b"\n", b"x"])
def test_a_damaged_list_of_ended_sessions_is_harmless(serve_http, junk):
    mv = serve_http(alpha=ECHO)
    c = mv.legacy()
    gone = mv.legacy()
    c.close(), gone.close()
    assert mv.stop() == 0
    (state(mv) / "sessions.gone").write_bytes(junk)
    mv.start()
    assert c.ask("ping").result == {}
    assert gone.delete().status == 204
    assert gone.send("ping").status == 404


def test_without_a_folder_sessions_live_as_long_as_the_process(serve_http, tmp_path):
    (tmp_path / "file").write_text("no folder")
    mv = serve_http(alpha=ECHO, state=tmp_path / "file")
    c = mv.legacy()
    assert c.ask("ping").result == {}
    mv.wait_log("kept in memory only")
    gone = mv.legacy()
    assert gone.delete().status == 204 and gone.send("ping").status == 404
    mv.restart()
    assert c.send("ping").fault() == (404, -32600)


# -- the end ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_calls_in_flight_may_finish(serve_http, era, sig):
    mv = serve_http(alpha=HOLD)
    c = mv.speak(era)
    call = c.start_call("alpha__work", {})
    mv["alpha"].wait_input("tools/call")
    kept = c.wire()
    assert c.send("tools/list", wire=kept).result
    mv.proc.send_signal(sig)
    mv.wait_log("notice serve: stopping")
    # Nobody new gets in, and who is in is told to come back.
    with pytest.raises(OSError):
        Wire(mv.address)
    late = c.send("tools/list", wire=kept)
    assert late.status == 503 and late.header("Retry-After")
    assert call.result["content"] == []
    assert mv.wait_exit() == 0


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_calls_that_take_too_long_are_told(serve_http, era):
    mv = serve_http(alpha=HOLD)
    c = mv.speak(era)
    call = c.start_call("alpha__never", {})
    mv["alpha"].wait_input("tools/call")
    assert 0.9 < took(mv.stop) < 4 * PATIENCE
    assert call.code == -32603
    assert call.message().error["data"]["retryable"] is True


def test_a_second_signal_waits_for_nobody(serve_http):
    mv = serve_http(alpha=HOLD)
    call = mv.modern().start_call("alpha__never", {})
    mv["alpha"].wait_input("tools/call")
    mv.proc.send_signal(signal.SIGTERM)
    mv.wait_log("notice serve: stopping")
    mv.proc.send_signal(signal.SIGTERM)
    assert call.code == -32603
    call.wire.close()
    assert mv.wait_exit() == 0


def test_an_idle_daemon_ends_at_once(serve_http):
    mv = serve_http(alpha=ECHO, beta={"era": "modern", "tools": ["echo"]})
    c = mv.legacy()
    c.close()
    assert took(mv.stop) < 0.8 * PATIENCE


def test_idle_connections_and_half_requests_do_not_hold_the_end(serve_http):
    mv = serve_http(alpha=ECHO)
    wires = [Wire(mv.address) for _ in range(6)]
    for n, w in enumerate(wires):
        w.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n"[:n * 12])
    c = mv.legacy()
    stream = c.get()
    assert stream.is_stream
    assert took(mv.stop) < 4 * PATIENCE
    stream.end()


def test_a_stubborn_child_does_not_outlive_the_daemon(serve_http):
    stubborn = {"tools": ["echo"], "ignore_eof": True, "ignore_term": True}
    mv = serve_http(alpha=stubborn, beta=stubborn)
    mv.modern().tools()
    assert took(mv.stop) < 5 * PATIENCE
    assert not group_members(mv.groups())


@pytest.mark.parametrize("stubborn", [False, True])
def test_kill_leaves_no_child(serve_http, stubborn):
    mv = serve_http(alpha={**HOLD, "ignore_eof": stubborn, "ignore_term": stubborn},
                    beta={"tools": ["echo"], "on": {"start": [["linger"]]}})
    mv.modern().start_call("alpha__never", {})
    mv["alpha"].wait_input("tools/call")
    groups = mv.groups()
    assert len(group_members(groups)) >= 2
    mv.kill()
    wait_for(lambda: not group_members(groups), 5, "no child is left")


def test_a_stop_while_upstreams_start(serve_http):
    mv = serve_http(alpha={"tools": ["echo"], "on": {"initialize": [["gate", "never"]]}})
    call = mv.modern().start_call("alpha__echo", {})
    mv["alpha"].wait_input("initialize")
    assert took(mv.stop) < 4 * PATIENCE
    assert call.code == -32603 and json.dumps(call.message().msg)


def test_time_does_not_stand_still_for_a_stopped_daemon(serve_http):
    """SIGSTOP and SIGCONT: whoever waited gets an answer."""
    mv = serve_http(alpha=HOLD)
    call = mv.modern().start_call("alpha__work", {})
    mv["alpha"].wait_input("tools/call")
    mv.proc.send_signal(signal.SIGSTOP)
    time.sleep(0.6)
    mv.proc.send_signal(signal.SIGCONT)
    assert call.result["content"] == []
