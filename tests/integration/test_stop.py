# SPDX-License-Identifier: MIT
"""The end: of input, by signal, with children that do not want to go."""
import json
import signal
import time

import pytest

from mcp import PATIENCE, group_members, wait_for

HELLO = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {},
    "clientInfo": {"name": "printf", "version": "1"}}})


def lines(*more):
    return "\n".join([HELLO, '{"jsonrpc":"2.0","method":"notifications/initialized"}',
                      *more]).encode() + b"\n"


def call(key, name):
    return '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s",' \
           '"arguments":{}}}' % (key, name)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_printf_into_stdio_gets_its_answers(serve, era):
    mv = serve(alpha={"era": era, "tools": ["echo"]}, beta={"tools": ["echo"]})
    mv.write(lines('{"jsonrpc":"2.0","id":2,"method":"tools/list"}', call(3, "alpha__echo"),
                   call(4, "beta__echo")))
    assert mv.finish() == 0
    assert mv.answer(1).result["protocolVersion"] == "2025-11-25"
    assert [t["name"] for t in mv.answer(2).result["tools"]] == ["alpha__echo", "beta__echo"]
    assert mv.answer(3).result and mv.answer(4).result


def test_printf_of_a_single_modern_call(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.modern()
    mv.start_call("alpha__echo", {"a": 1}, id="only")
    assert mv.finish() == 0
    assert mv.answer("only").result["structuredContent"] == {"a": 1}


def test_a_last_line_without_its_newline(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.write(HELLO.encode() + b'\n{"jsonrpc":"2.0","id":2,"method":"ping"}')
    assert mv.finish() == 0
    assert mv.answer(1).result


def test_calls_may_finish_for_a_moment(serve):
    mv = serve(alpha={"tools": ["work"], "calls": {"work": [
        ["sleep", 400], ["reply", {"content": []}]]}})
    mv.legacy()
    key = mv.start_call("alpha__work", {})
    mv["alpha"].wait_input("tools/call")
    assert mv.finish() == 0
    assert mv.answer(key).result == {"content": []}


def test_calls_that_take_too_long_do_not_hold_the_end(serve):
    mv = serve(alpha={"tools": ["hold"], "calls": {"hold": []}})
    mv.legacy()
    key = mv.start_call("alpha__hold", {})
    mv["alpha"].wait_input("tools/call")
    start = time.monotonic()
    assert mv.finish() == 0
    took = time.monotonic() - start
    assert 0.8 < took < 2 * PATIENCE
    answers = [m for m in mv.messages if m.msg.get("id") == key]
    assert all(m.code == -32603 for m in answers)


@pytest.mark.parametrize("n", [1, 4])
def test_stubborn_children_are_gone_within_two_seconds(serve, n):
    stubborn = {"tools": ["echo"], "ignore_eof": True, "ignore_term": True}
    mv = serve({"s%d" % i: stubborn for i in range(n)})
    mv.legacy()
    mv.tools()
    groups = mv.groups()
    start = time.monotonic()
    assert mv.finish() == 0
    assert time.monotonic() - start < 2 * PATIENCE
    wait_for(lambda: not group_members(groups), 1)


def test_o_087_the_order_is_end_of_input_then_term_then_kill(serve):
    mv = serve(alpha={"tools": ["echo"], "ignore_eof": True, "ignore_term": True})
    mv.legacy()
    mv.tools()
    assert mv.finish() == 0
    eof, term = mv["alpha"].records("E"), mv["alpha"].records("S")
    assert len(eof) == 1 and len(term) >= 1
    assert (term[0].at - eof[0].at) / 1e6 > 100


def test_polite_children_are_not_signalled(serve):
    mv = serve(alpha={"tools": ["echo"], "ignore_term": True},
               beta={"tools": ["echo"], "ignore_term": True})
    mv.legacy()
    mv.tools()
    start = time.monotonic()
    assert mv.finish() == 0
    assert time.monotonic() - start < 1 * PATIENCE
    for up in ("alpha", "beta"):
        assert len(mv[up].records("E")) == 1
        assert mv[up].records("S") == []


def test_o_080_the_whole_group_is_ended(serve):
    mv = serve(alpha={"tools": ["echo"], "on": {"start": [["linger"]]}})
    mv.legacy()
    mv.tools()
    groups = mv.groups()
    assert len(group_members(groups)) >= 2
    assert mv.finish() == 0
    wait_for(lambda: not group_members(groups), 2)


def test_o_080_a_launcher_and_its_server(serve):
    launcher = ["/bin/sh", "-c", 'exec 3<&0; "$@" <&3 3<&- & wait', "sh"]
    mv = serve(alpha={"tools": ["echo"], "ignore_eof": True, "ignore_term": True,
                      "wrap": launcher})
    mv.legacy()
    assert mv.tools() == ["alpha__echo"]
    groups = mv.groups()
    assert len(group_members(groups)) >= 2
    assert mv.finish() == 0
    wait_for(lambda: not group_members(groups), 2)


def test_a_starting_child_does_not_hold_the_end(serve):
    mv = serve(alpha={"tools": ["echo"], "on": {"server/discover": [], "initialize": []},
                      "ignore_eof": True, "ignore_term": True})
    mv["alpha"].wait_input("server/discover")
    start = time.monotonic()
    assert mv.finish() == 0
    assert time.monotonic() - start < 2 * PATIENCE


def test_a_child_in_back_off_does_not_hold_the_end(serve):
    mv = serve(alpha={"command": "/nonexistent", "mcpvisor": {"restart_base_ms": 60000}})
    mv.legacy()
    start = time.monotonic()
    assert mv.finish() == 0
    assert time.monotonic() - start < 1 * PATIENCE


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(serve, sig):
    mv = serve(alpha={"tools": ["echo"]}, beta={"tools": ["echo"], "ignore_eof": True,
                                                "ignore_term": True})
    mv.legacy()
    mv.tools()
    groups = mv.groups()
    start = time.monotonic()
    mv.proc.send_signal(sig)
    assert mv.proc.wait(10) == 0
    assert time.monotonic() - start < 3 * PATIENCE
    wait_for(lambda: not group_members(groups), 2)


def test_a_client_that_stops_reading_and_goes(serve):
    mv = serve(alpha={"tools": ["big"], "calls": {"big": [["reply", {
        "pre": '{"content":[{"type":"text","text":"', "repeat": "x", "n": 1 << 20,
        "post": '"}]}'}]]}})
    mv.legacy()
    mv.call("alpha__big", {}).result
    assert mv.finish() == 0


def test_nothing_but_messages_on_stdout_at_any_log_level(serve):
    for level in ("error", "debug"):
        mv = serve(alpha={"tools": ["echo"]}, args=("--log-level", level))
        mv.legacy()
        mv.tools()
        assert mv.finish() == 0
        assert mv.bad_lines == []
        assert (len(mv.log()) > 0) or level == "error"


def test_deadlines_that_all_pass_at_once(serve):
    mv = serve(alpha={"tools": ["echo"], "ignore_eof": True, "ignore_term": True})
    mv.legacy()
    mv.close_input()
    wait_for(lambda: mv["alpha"].records("E"), what="end of input at the child")
    mv.proc.send_signal(signal.SIGSTOP)
    time.sleep(3)  # longer than the whole ladder
    mv.proc.send_signal(signal.SIGCONT)
    assert mv.finish() == 0
