# SPDX-License-Identifier: MIT
"""Records of the collected reports that are about upstreams over HTTP."""
import json
import socket
import signal
import struct
import threading
import time

import pytest

import remote_server
from conf_served import setting
from http_client import mirror
from remote_server import LATEST, MODERN, begin_stream, event, result
from test_timeouts import timed_out
from upstream import PATIENCE, wait_for

ERAS = ["legacy", "modern"]
DONE = {"content": [{"type": "text", "text": "{}"}]}
FAST = {"restart_base_ms": 100, "restart_max_ms": 200, "restart_limit": 0}


def over(each, s, **options):
    """A client of one remote, in each of the four ways."""
    return each(alpha={"url": s.url, **({"mcpvisor": options} if options else {})})


def text_of(m):
    return json.loads(m.result["content"][0]["text"])


def works(w, n=1):
    assert text_of(w.call("alpha__echo", {"n": n})) == {"n": n}


def calls_of(name, what):
    """odd(): what(handler, request) answers the calls of one tool."""
    def odd(h, r):
        if r.rpc != "tools/call" or r.params["name"] != name:
            return False
        what(h, r)
        return True

    return odd


def done(r, value=None):
    """The answer to a call, right for both eras."""
    return result(r, {**(value or DONE), "resultType": "complete"})


def say(h, status, kind, body, headers=()):
    """An answer whose every byte is the test's."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    remote_server.reply(h, status, kind, body, headers)


def end(w):
    """The program's end, as each of the fronts has it."""
    if w.is_http:
        w.c.close()
        assert w.mv.stop() == 0
    else:
        assert w.mv.finish() == 0


def answers_to(s, key):
    """Responses of ours to a request of the server."""
    return [r for r in s.seen(http="POST") if r.rpc is None and r.msg
            and (type(r.msg.get("id")), r.msg.get("id")) == (type(key), key)]


# -- time, pings -----------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_o_022_a_call_to_a_remote_ends_at_its_limit(each, remote, era):
    s = remote(era)
    w = over(each, s, call_ms=300)
    works(w)
    start = time.monotonic()
    got = timed_out(w.call("alpha__slow", {"n": 1}))
    took = time.monotonic() - start
    assert 0.25 < took < 2 * PATIENCE and "300" in got.error["message"]
    wait_for(lambda: s.hang_ups == 1, 5, "its stream is closed")
    if era == "legacy":
        asked = s.seen("tools/call")[-1]
        assert s.wait_seen("notifications/cancelled").params["requestId"] == asked.msg["id"]
    else:  # there the close says so
        assert not s.seen("notifications/cancelled")
    works(w, 2)


PING_IDS = [1, "p", 0, 2, "1", -5]


@pytest.mark.parametrize("where", ["GET stream", "POST stream"])
def test_o_023_pings_of_a_remote_are_answered_by_us(each, remote, where):
    def ask(h, r):
        begin_stream(h)
        for key in PING_IDS:
            event(h, {"jsonrpc": "2.0", "id": key, "method": "ping"})
        wait_for(lambda: all(answers_to(s, k) for k in PING_IDS), 5, "all are answered")
        event(h, done(r))

    s = remote(streams=True)
    s.odd = calls_of("slow", ask)
    w = over(each, s)
    works(w)
    if where == "GET stream":
        wait_for(lambda: s.queues, 5, "it is open")
        for key in PING_IDS:
            s.tell({"jsonrpc": "2.0", "id": key, "method": "ping"})
        wait_for(lambda: all(answers_to(s, k) for k in PING_IDS), 5, "all are answered")
    else:
        assert w.call("alpha__slow", {}).result
    for key in PING_IDS:
        answer, = answers_to(s, key)
        assert answer.msg == {"jsonrpc": "2.0", "id": key, "result": {}}
        assert answer.header("Mcp-Session-Id") in s.sessions
        assert answer.header("MCP-Protocol-Version") == LATEST
    works(w, 2)
    assert w.notices() == [] and b'"ping"' not in w.seen()


# -- bodies that are no answer -------------------------------------------------------------

BODIES = [("application/json", b'{"Output":{},"Version":1}'), ("application/json", b"[]"),
          ("application/json", b""), (None, b""), ("text/html", b"<html>" + b"x" * 9000),
          ("application/json", b"<html>" + b"x" * 9000), ("application/json", b'{"jsonrpc":"2.0"'),
          ("application/json", b'{"jsonrpc":"2.0","id":987654,"result":{}}')]


@pytest.mark.parametrize("era", ERAS)
def test_o_044_a_body_that_is_no_answer(each, remote, era):
    left = list(BODIES)
    s = remote(era)
    s.odd = calls_of("slow", lambda h, r: say(h, 200, left[0][0], left.pop(0)[1]))
    w = over(each, s)
    for n in range(len(BODIES)):
        got = w.call("alpha__slow", {})  # its id is looked at there
        assert got.code == -32603 and len(got.raw) < 1000, got
        assert got.error["data"]["upstream"] == "alpha"
        assert got.error["data"]["reason"] == "protocol", (n, got)
        works(w, n)
    assert left == [] and len(s.seen("initialize")) == (era == "legacy")
    assert not s.seen(http="DELETE")


# -- a bad one among good ones -----------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("front", ["stdio", "http"])
def test_o_052_a_closed_port_and_a_silent_one(serve, serve_conf, remote, tmp_path, front, era):
    s, silent = remote(), remote()
    s.close()
    silent.odd = lambda h, r: silent.gate.wait(30) and False
    more = "list_wait_ms = 600;\n"
    urls = {"gamma": {"url": s.url, **FAST}, "delta": {"url": silent.url}}
    start = time.monotonic()
    if front == "http":
        mv = serve_conf(alpha={"tools": ["echo"]}, beta={"command": "/nonexistent"},
                        more=more, **urls)
    else:
        conf = tmp_path / "remote.conf"
        conf.write_text(more + "upstream : {\n%s};\n" % "".join(
            setting(n, e) for n, e in urls.items()))
        mv = serve(alpha={"tools": ["echo"]}, beta={"command": "/nonexistent"},
                   args=("--conf", str(conf), "--log-level", "debug"))
    c = mv.speak(era)
    assert c.tools() == ["alpha__echo"]
    assert time.monotonic() - start < 4 * PATIENCE
    assert c.call("alpha__echo", {}).result
    if front == "http":
        reason = wait_for(lambda: mv.upstream_status("gamma")["reason"], 5, "why")
        assert "127.0.0.1:%d" % s.port in reason and "cannot be reached" in reason
        assert mv.upstream_status("delta")["state"] != "ready"
    got = c.call("gamma__echo", {})
    assert got.code == -32603 and got.error["data"]["upstream"] == "gamma"
    # Those that get well join.
    s.reopen()
    silent.gate.set()
    wait_for(lambda: set(c.tools()) >= {"alpha__echo", "gamma__echo", "delta__echo"}, 15,
             "all are there")


def test_o_052_one_that_gets_well_is_told_of(each, remote):
    s = remote()
    s.close()
    w = each(alpha={"url": s.url, "mcpvisor": FAST}, beta={"tools": ["echo"]})
    assert w.tools() == ["beta__echo"]
    watch = w.watch(tools=True)
    s.reopen()
    watch.next("notifications/tools/list_changed")
    assert "alpha__echo" in w.tools()


# -- the handshake -------------------------------------------------------------------------


def test_o_057_the_negotiated_revision_is_sent(each, remote):
    """In an older revision than 2025-06-18 there is no such header: none is sent."""
    def strict(h, r):
        if r.rpc in ("initialize", "server/discover") or \
                r.header("MCP-Protocol-Version") == "2025-06-18":
            return False
        say(h, 400, "text/plain", b"Unsupported protocol version")
        return True

    s = remote(revision="2025-06-18", streams=True)
    s.odd = strict
    w = over(each, s)
    works(w)
    wait_for(lambda: s.queues, 5, "its own stream is open")
    end(w)
    assert s.seen(http="DELETE") and not s.sessions
    first = s.seen("initialize")[0]
    assert first.params["protocolVersion"] == LATEST
    after = s.seen()[s.seen().index(first) + 1:]
    assert {r.header("MCP-Protocol-Version") for r in after} == {"2025-06-18"}


def test_o_058_initialized_comes_before_all_others_at_a_remote(each, remote):
    def strict(h, r):
        if r.rpc in ("initialize", "server/discover"):
            return False
        if r.rpc == "notifications/initialized" and r.header("Mcp-Session-Id") in s.sessions:
            ready.append(True)
        if not ready:
            say(h, 400, "text/plain", b"not initialized")
        return not ready

    ready = []
    s = remote(streams=True)
    s.odd = strict
    w = over(each, s)
    works(w)
    words = [r.rpc for r in s.seen(http="POST") if r.rpc != "server/discover"]
    assert words[:2] == ["initialize", "notifications/initialized"]
    assert words.count("initialize") == words.count("notifications/initialized") == 1


# -- sessions --------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [False, True], ids=["json", "streams"])
def test_o_059_a_session_that_is_forgotten_is_renewed(each, remote, streams):
    s = remote(streams=streams)
    w = over(each, s)
    works(w, 1)
    old = s.seen("tools/call")[0].header("Mcp-Session-Id")
    s.forget_sessions()
    works(w, 2)
    works(w, 3)
    inits = s.seen("initialize")
    assert len(inits) == 2 and inits[1].header("Mcp-Session-Id") is None
    used = [r.header("Mcp-Session-Id") for r in s.seen("tools/call")]
    new, = s.sessions
    assert used == [old, old, new, new]
    sent = [(r.params["arguments"], r.params["name"]) for r in s.seen("tools/call")]
    assert sent[1] == sent[2] == ({"n": 2}, "echo")


def test_o_059_calls_at_once_share_the_new_session(each, remote):
    s = remote()
    w = over(each, s)
    works(w)
    s.forget_sessions()
    calls = [w.start_call("alpha__echo", {"n": n}) for n in range(8)]
    assert [text_of(w.answer(c)) for c in calls] == [{"n": n} for n in range(8)]
    assert len(s.seen("initialize")) == 2 and len(s.sessions) == 1


def test_o_062_idling_costs_the_server_nothing(each, remote):
    """There is no health check: one session all the time, and it is ended."""
    s = remote()
    w = over(each, s)
    works(w)
    n = len(s.seen())
    time.sleep(1)  # of no traffic: only the absence is looked at
    assert len(s.seen()) == n and len(s.sessions) == 1
    end(w)
    assert len(s.seen("initialize")) == len(s.seen(http="DELETE")) == 1 and not s.sessions


def asleep(mv):
    return mv.upstream_status("alpha")["state"] not in ("ready", "probe", "both", "init")


def test_o_062_each_session_that_was_opened_is_ended(serve_conf, remote):
    s = remote()
    mv = serve_conf(alpha={"url": s.url, "idle_stop_ms": 50, "start": "on_use"})
    c = mv.legacy()
    for n in range(20):
        assert text_of(c.call("alpha__echo", {"n": n})) == {"n": n}
        if n % 2:
            mv.control("restart", "alpha")
        wait_for(lambda: not s.sessions and asleep(mv), 5, "it sleeps")
    c.close()
    assert mv.stop() == 0
    assert not s.sessions
    assert len(s.seen("initialize")) == len(s.seen(http="DELETE")) >= 10


@pytest.mark.parametrize("how", ["restart", "stop"])
def test_o_062_one_that_is_being_opened_is_ended(serve_conf, remote, how):
    """Nobody knows how to end it before its initialize is answered."""
    s = remote()
    may_answer = threading.Event()

    def odd(h, r):
        if b'"initialize"' in r.raw:
            may_answer.wait(10)
        return False

    s.odd = odd
    mv = serve_conf(alpha={"url": s.url, "era": "legacy"})
    wait_for(lambda: s.seen("initialize"), 5, "initialize comes")
    if how == "restart":
        mv.control("restart", "alpha")
        wait_for(lambda: len(s.seen("initialize")) == 2, 5, "another comes")
        may_answer.set()
        wait_for(lambda: mv.upstream_status("alpha")["state"] == "ready", 5, "it is ready")
        wait_for(lambda: len(s.sessions) == 1, 5, "the first one's is ended")
        assert mv.stop() == 0
    else:
        mv.proc.send_signal(signal.SIGTERM)
        wait_for(lambda: "stopping" in mv.log(), 5, "it stops")
        may_answer.set()
        assert mv.stop() == 0
    assert not s.sessions


# -- redirects, connections, notices at once ------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("status", [307, 308])
def test_o_072_redirections_at_home_are_followed(each, remote, era, status):
    """The whole endpoint has moved; streams and the end of the session too."""
    def moved(h, r):
        if r.path == "/mcp":
            say(h, status, "text/plain", b"there", [("Location", "/mcp/")])
        return r.path == "/mcp"

    s = remote(era, streams=True, token="T")
    s.odd = moved
    w = each(alpha={"url": s.url, "headers": {"Authorization": "Bearer T"}})
    works(w)
    sent, again = s.seen("tools/call")
    assert (sent.path, again.path) == ("/mcp", "/mcp/") and sent.raw == again.raw
    assert sent.headers.items() == again.headers.items()
    end(w)
    if era == "legacy":
        wait_for(lambda: not s.sessions, 5, "its session is ended")


@pytest.mark.parametrize("status, place", [(301, "/mcp/"), (302, "/mcp/"), (303, "/mcp/"),
                                           (307, "/mcp"), (308, ""), (307, None),
                                           (307, "elsewhere"), (308, "elsewhere"),
                                           (307, "file:///etc/passwd"), (307, "//x y/")])
@pytest.mark.parametrize("era", ERAS)
def test_o_072_other_redirections_are_an_error(serve_conf, remote, era, status, place):
    s, other = remote(era, token="T"), remote(era)
    where = other.url if place == "elsewhere" else place
    s.odd = calls_of("slow", lambda h, r: say(
        h, status, "text/plain", b"", [("Location", where)] if where is not None else []))
    mv = serve_conf(alpha={"url": s.url, "headers": {"Authorization": "Bearer T"}})
    c = mv.legacy()
    got = c.call("alpha__slow", {})
    assert got.code == -32603 and got.error["data"]["upstream"] == "alpha"
    assert str(status) in got.error["message"] + json.dumps(got.error["data"])
    assert "redirect" in got.error["message"]
    assert not other.seen() and 1 <= len(s.seen("tools/call")) <= 10
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_o_075_a_connection_that_has_ended_is_not_used_again(each, remote, how):
    s = remote()
    w = over(each, s)
    for n in range(5):
        works(w, n)
        for conn in list(s.httpd.conns):  # all that idle, behind the client's back
            hang_up(conn, how)
        s.httpd.conns.clear()
    assert [r.params["arguments"]["n"] for r in s.seen("tools/call")] == list(range(5))


def hang_up(conn, how):
    try:
        if how == "reset":
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            conn.close()
        else:
            conn.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("how", ["closed", "reset"])
def test_o_075_a_request_that_may_have_been_run_is_not_repeated(each, remote, era, how):
    """Its connection had been used before, and ends without a byte of an answer."""
    def leave(h, r):
        h.close_connection = True
        hang_up(h.connection, how)

    s = remote(era)
    s.odd = calls_of("slow", leave)
    w = over(each, s)
    for n in range(1, 4):
        works(w, n)
        start = time.monotonic()
        got = w.call("alpha__slow", {"n": n})
        assert time.monotonic() - start < 2 * PATIENCE
        assert got.code == -32603 and got.error["data"]["reason"] in ("closed", "died"), got
        assert [r.params["arguments"] for r in s.seen("tools/call")][-1] == {"n": n}
        assert len([r for r in s.seen("tools/call") if r.params["name"] == "slow"]) == n
    works(w)


@pytest.mark.slow
def test_o_075_a_connection_that_idled_is_not_trusted(each, remote):
    """Nobody is told that its other end is deaf: after some seconds there is a new one."""
    def odd(h, r):
        ports.add(h.client_address)
        if h.client_address in deaf:
            h.remote.gate.wait(30)
        return False

    ports, deaf = set(), set()
    both = {era: remote(era) for era in ERAS}
    for s in both.values():
        s.odd = odd
    w = each({era: {"url": s.url} for era, s in both.items()})
    for era in ERAS:
        assert text_of(w.call(era + "__echo", {"n": 1})) == {"n": 1}
    deaf |= ports
    time.sleep(6)  # longer than a connection may idle
    for era in ERAS:
        start = time.monotonic()
        assert text_of(w.call(era + "__echo", {"n": 2})) == {"n": 2}
        assert time.monotonic() - start < 2 * PATIENCE


@pytest.mark.parametrize("era", ERAS)
def test_o_076_notices_of_a_remote_are_passed_on_at_once(each, remote, era):
    sent = []

    def slowly(h, r):
        begin_stream(h)
        for n in range(5):
            time.sleep(0.1)
            sent.append(time.monotonic_ns())
            event(h, {"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                "progressToken": r.params["_meta"]["progressToken"], "progress": n}})
        event(h, done(r))

    s = remote(era)
    s.odd = calls_of("slow", slowly)
    w = over(each, s)
    assert w.call("alpha__slow", {}, meta={"progressToken": 1}).result
    seen = [m.at for m in w.notices("notifications/progress")]
    assert len(sent) == len(seen) == 5
    assert all(0 < b - a < 100e6 * PATIENCE for a, b in zip(sent, seen))


@pytest.mark.parametrize("status", [400, 404, 405, 406, 501])
def test_o_079_a_remote_without_a_stream_of_its_own(each, remote, status):
    def none(h, r):
        if r.http == "GET":
            say(h, status, "text/plain", b"no stream here")
        return r.http == "GET"

    s = remote(streams=True)
    s.odd = none
    w = over(each, s)
    works(w, 1)
    s.wait_seen(http="GET")
    works(w, 2)
    assert len(s.seen("initialize")) == 1 and not w.notices()
    assert len(s.seen(http="GET")) <= 2 and "session lost" not in w.log()


# -- eras --------------------------------------------------------------------------------------

REFUSALS = {
    "200 and -32601": (200, "application/json", {"code": -32601, "message": "no"}),
    "200 and -32602": (200, "application/json", {"code": -32602, "message": "no"}),
    "200 and a string": (200, "application/json", {"code": "METHOD", "message": "no"}),
    "400, empty": (400, None, b""), "400, HTML": (400, "text/html", b"<html>bad</html>"),
    "400, -32000": (400, "application/json", {"code": -32000, "message": "no session"}),
    "404": (404, "text/plain", b"not found"), "405": (405, "text/plain", b"not allowed"),
    "500": (500, "text/html", b"<html>oops</html>"),
}


def refuse_discover(status, kind, body):
    def odd(h, r):
        if r.rpc != "server/discover":
            return False
        said = body
        if isinstance(body, dict):
            said = {"jsonrpc": "2.0", "id": r.msg["id"], "error": body}
        say(h, status, kind, said)
        return True

    return odd


@pytest.mark.parametrize("what", list(REFUSALS))
def test_o_100_a_remote_that_refuses_the_probe_is_legacy(each, remote, what):
    s = remote()
    s.odd = refuse_discover(*REFUSALS[what])
    w = over(each, s)
    works(w)
    assert len(s.seen("server/discover")) == len(s.seen("initialize")) == 1


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
@pytest.mark.parametrize("status", [200, 400])
def test_o_100_a_modern_error_of_a_remote_never_means_legacy(each, remote, code, status):
    s = remote()
    s.odd = refuse_discover(status, "application/json", {
        "code": code, "message": "no", "data": {"supported": ["2099-01-01"],
                                                "requested": MODERN}})
    w = each(alpha={"url": s.url, "mcpvisor": {"start_ms": 1000, "restart_base_ms": 60000}},
             beta={"tools": ["echo"]})
    assert w.tools() == ["beta__echo"]
    s.wait_seen("server/discover")
    w.wait_log("alpha")
    assert w.call("beta__echo", {}).result and not s.seen("initialize")


# -- names and headers ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["get_weather", "get weather", "wetter_für_ä",
                                  "=?base64?eA==?="])
def test_o_101_headers_are_of_what_is_sent(each, remote, name):
    s = remote("modern", tools=[name])
    s.odd = calls_of(name, lambda h, r: say(h, 200, "application/json", done(r)))
    w = over(each, s)
    shown, = w.tools()
    assert shown.startswith("alpha__")
    assert w.call(shown, {}).result
    sent, = s.seen("tools/call")
    assert sent.params["name"] == name
    assert sent.header("Mcp-Name") == mirror(name)
    assert sent.header("Mcp-Method") == "tools/call"
    assert sent.header("MCP-Protocol-Version") == MODERN
    assert all(len(sent.headers.get_all(h)) == 1 for h in (
        "Mcp-Name", "Mcp-Method", "MCP-Protocol-Version", "Content-Type", "Accept"))


def bad_tools():
    def tool(name, **properties):
        return {"name": name, "inputSchema": {"type": "object", "properties": properties}}

    def text(header, kind="string"):
        return {"type": kind, "x-mcp-header": header}

    return [tool("empty", a=text("")), tool("space", a=text("Bad Name")),
            tool("crlf", a=text("X\r\nEvil: 1")), tool("twice", a=text("A"), b=text("a")),
            tool("number", a=text("N", "number")),
            tool("items", a={"type": "array", "items": text("I")}), tool("fine", a=text("Fine"))]


def test_o_105_tools_of_a_remote_with_unusable_headers_are_withheld(each, remote):
    tools = bad_tools()
    s = remote("modern", tools=tools)
    w = over(each, s)
    assert w.tools() == ["alpha__fine"]
    got, = w.ask("tools/list").result["tools"]
    assert got["inputSchema"] == tools[-1]["inputSchema"]
    for t in tools[:-1]:
        w.wait_log("tool left out .*%s" % t["name"])
        refused = w.call("alpha__" + t["name"], {"a": "x"})
        assert refused.code == -32602
    if w.is_http and w.is_modern:
        got = w.call("alpha__fine", {"a": "x"}, headers={"Mcp-Param-Fine": "x"})
    else:
        got = w.call("alpha__fine", {"a": "x"})
    assert text_of(got) == {"a": "x"}
    sent, = s.seen("tools/call")
    assert sent.header("Mcp-Param-Fine") == "x"
    assert all(r.header("Evil") is None for r in s.seen())
