# SPDX-License-Identifier: MIT
"""isolation = session: a child of its own for each session of an entry that wants it."""
import json

from http_client import Wire
from mcp import group_members, wait_for

PID = [["reply", '{"content":[{"type":"text","text":"${PID}"}]}']]


def own(**more):
    return {"tools": ["echo", "pid"], "calls": {"pid": PID, **more.pop("calls", {})},
            "resources": ["m:1"], "mcpvisor": {"isolation": "session"}, **more}


def pid(c, **kw):
    return int(c.call("alpha__pid", {}, **kw).text)


def lives(mv, number):
    return [r for r in mv["alpha"].starts() if r.pid == number
            and number in group_members({json.loads(r.raw)["pgid"]})]


def test_each_session_has_its_own_child(serve_http):
    mv = serve_http(alpha=own(), beta={"tools": ["echo", "pid"], "calls": {"pid": PID}})
    a, b, modern = mv.legacy(), mv.legacy(), mv.modern()
    assert a.tools() == b.tools() == modern.tools()
    assert len(mv["alpha"].starts()) == 1
    pids = [pid(a), pid(b), pid(modern), pid(mv.modern())]
    assert len(set(pids)) == 3 and pids[2] == pids[3]
    assert [pid(a), pid(b)] == pids[:2]
    shared = {c.call("beta__pid", {}).text for c in (a, b, modern)}
    assert len(shared) == 1 and len(mv["beta"].starts()) == 1


def test_delete_ends_its_child_and_no_other(serve_http):
    mv = serve_http(alpha=own())
    a, b = mv.legacy(), mv.legacy()
    mine, other = pid(a), pid(b)
    assert a.delete().status == 204
    wait_for(lambda: not lives(mv, mine), 5, "the child ends")
    assert lives(mv, other) and pid(b) == other


def test_a_session_with_a_child_of_its_own_does_not_survive_a_restart(serve_http):
    mv = serve_http(alpha=own())
    a, b = mv.legacy(), mv.legacy()
    pid(a)
    b.tools()
    mv.restart()
    assert a.send("ping").fault() == (404, -32600)
    assert b.ask("ping").result == {} and pid(b)


def test_what_a_child_of_ones_own_says_is_its_sessions_alone(serve_http):
    mv = serve_http(alpha=own(calls={"say": [
        ["notify", "notifications/message", '{"level":"error","data":${ARGS}}'],
        ["notify", "notifications/resources/updated", '{"uri":"m:1"}'],
        ["reply", {"content": []}]]}, tools=["echo", "pid", "say"], logging=True))
    a, b = mv.legacy(), mv.legacy()
    a.ask("resources/list").result
    for c in (a, b):
        assert c.ask("resources/subscribe", {"uri": "m:1"}).result == {}
    streams = [c.get() for c in (a, b)]
    assert all(s.is_stream for s in streams)
    answer = a.start_call("alpha__say", {"who": "a"})
    assert answer.result == {"content": []}
    assert [m.params["data"] for m in answer.notices] == [{"who": "a"}]
    assert streams[0].next().params == {"uri": "m:1"}
    streams[1].quiet(100)


def test_the_death_of_one_child_is_no_business_of_others(serve_http):
    mv = serve_http(alpha=own(calls={"die": [["kill"]]}, tools=["echo", "pid", "die"]))
    a, b = mv.legacy(), mv.legacy()
    first, other = pid(a), pid(b)
    assert a.call("alpha__die", {}).code == -32603
    wait_for(lambda: "result" in a.call("alpha__echo", {}).msg, 5, "it is started again")
    assert pid(a) != first and pid(b) == other


def test_clients_on_stdio_and_lines_have_their_own_too(serve_http, connect, tmp_path):
    path = str(tmp_path / "s.sock")
    mv = serve_http(alpha=own(), listen=("unix:" + path,))
    a, b = connect(path).speak("legacy"), connect(path).speak("modern")
    pids = [int(c.call("alpha__pid", {}).text) for c in (a, b)]
    pids.append(pid(mv.legacy()))
    assert len(set(pids)) == 3
    assert a.finish() == 0
    wait_for(lambda: not lives(mv, pids[0]), 5, "the child goes with its client")
    assert lives(mv, pids[1])


def test_children_end_with_the_daemon(serve_http):
    mv = serve_http(alpha=own(ignore_eof=True, ignore_term=True))
    for _ in range(4):
        pid(mv.legacy())
    assert len(mv["alpha"].starts()) == 5
    groups = mv.groups()
    assert mv.stop() == 0
    assert not group_members(groups)


def test_a_client_that_leaves_while_its_child_starts(serve_http, tmp_path):
    path = str(tmp_path / "s.sock")
    mv = serve_http(alpha=own(), listen=("unix:" + path,))
    mv.modern().tools()
    before = len(group_members(mv.groups()))
    for _ in range(5):
        wire = Wire("unix:" + path)
        wire.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
                  b'{"name":"alpha__pid","arguments":{}}}\n')
        wire.close()
    wait_for(lambda: len(group_members(mv.groups())) == before, 10, "only the shared one is left")
    assert pid(mv.modern())
