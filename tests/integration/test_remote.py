# SPDX-License-Identifier: MIT
"""Remote upstreams over real sockets: every era and transport, and what goes wrong."""
import json
import re

import pytest

from conf_served import setting
from remote_server import MODERN
from upstream import wait_for

FRONTS = ["stdio", "http"]


@pytest.fixture
def front(request, serve, serve_conf, tmp_path):
    """front(kind, server, option=value, ...): (daemon, legacy client) over one remote."""
    def start(kind, server, **options):
        entry = {"url": server.url, **options}
        if kind == "http":
            mv = serve_conf(alpha=entry)
            return mv, mv.legacy()
        path = tmp_path / "remote.conf"
        path.write_text("upstream : {\n%s};\n" % setting("alpha", entry))
        mv = serve(file=False, args=("--conf", str(path), "--log-level", "debug"))
        mv.legacy()
        return mv, mv

    return start


def text_of(m):
    return json.loads(m.result["content"][0]["text"])


# -- every era ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FRONTS)
@pytest.mark.parametrize("era", ["legacy", "modern", "sse"])
@pytest.mark.parametrize("streams", [False, True], ids=["json", "sse-answers"])
def test_calls(front, remote, kind, era, streams):
    s = remote(era, streams=streams)
    mv, c = front(kind, s)
    assert c.tools() == ["alpha__echo", "alpha__slow", "alpha__fail", "alpha__cut"]
    for n in range(3):
        assert text_of(c.call("alpha__echo", {"n": n})) == {"n": n}
    call = s.seen("tools/call")[0]
    if era == "modern":
        assert call.header("Mcp-Method") == "tools/call"
        assert call.header("Mcp-Name") == "echo"
        assert call.header("MCP-Protocol-Version") == MODERN
        assert not s.seen("initialize")
    else:
        assert call.header("Mcp-Method") is None
        assert [r.rpc for r in s.seen()].index("notifications/initialized") < \
            [r.rpc for r in s.seen()].index("tools/list")
    if era == "legacy":
        assert call.header("Mcp-Session-Id") in s.sessions
        assert call.header("MCP-Protocol-Version") == s.revision


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
def test_older_revisions(front, remote, revision):
    s = remote(revision=revision)
    mv, c = front("http", s)
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}
    header = s.seen("tools/call")[0].header("MCP-Protocol-Version")
    assert header == (None if revision == "2025-03-26" else revision)


def test_a_server_without_sessions(front, remote):
    s = remote(session=False)
    mv, c = front("http", s)
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}
    assert s.seen("tools/call")[0].header("Mcp-Session-Id") is None


def test_stop_ends_the_session(front, remote):
    s = remote()
    mv, c = front("http", s)
    c.call("alpha__echo")
    session = s.seen("tools/call")[0].header("Mcp-Session-Id")
    c.close()
    assert mv.stop() == 0
    assert s.seen(http="DELETE")[0].header("Mcp-Session-Id") == session
    assert not s.sessions


# -- what a server says meanwhile ----------------------------------------------------------------


@pytest.mark.parametrize("kind", FRONTS)
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_progress_and_logs_reach_their_call(front, remote, kind, era):
    s = remote(era)
    mv, c = front(kind, s)
    c.ask("logging/setLevel", {"level": "info"})
    if kind == "stdio":
        key = c.start_call("alpha__slow", {"n": 7}, meta={"progressToken": "p"})
        assert c.notice("notifications/progress").params["progressToken"] == "p"
        assert c.notice("notifications/message").params["data"] == "from slow 7"
        s.gate.set()
        assert text_of(c.answer(key)) == {"n": 7}
    else:
        s.gate.set()
        got = c.call("alpha__slow", {"n": 7}, meta={"progressToken": "p"})
        assert text_of(got) == {"n": 7}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_changed_lists(front, remote, era):
    s = remote(era, streams=True)
    mv, c = front("stdio", s)
    assert "alpha__echo" in c.tools()
    wait_for(lambda: s.queues, 5, "a stream is open")
    s.tools = ["other"]
    msg = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    if era == "modern":
        msg["params"] = {"_meta": {"io.modelcontextprotocol/subscriptionId":
                                   s.wait_seen("subscriptions/listen").msg["id"]}}
    s.tell(msg)
    c.notice("notifications/tools/list_changed")
    assert c.tools() == ["alpha__other"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_cancel(front, remote, era):
    s = remote(era)
    mv, c = front("stdio", s)
    key = c.start_call("alpha__slow")
    s.wait_seen("tools/call")
    c.cancel(key)
    c.ask("ping").result
    wait_for(lambda: s.hang_ups == 1, 5, "its stream is closed")
    if era == "legacy":
        told = s.wait_seen("notifications/cancelled")
        assert told.params["requestId"] == s.seen("tools/call")[0].msg["id"]
    else:
        assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}
        assert not s.seen("notifications/cancelled")


# -- single failures ---------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_call_fails_alone(front, remote, era):
    s = remote(era)
    mv, c = front("http", s)
    got = c.call("alpha__fail")
    assert got.code == -32603
    assert got.error["data"]["reason"] == "http_status"
    assert got.error["data"]["upstream"] == "alpha"
    assert "127.0.0.1:%d" % s.port in json.dumps(got.error) and "500" in json.dumps(got.error)
    got = c.call("alpha__cut")
    assert got.code == -32603 and got.error["data"]["reason"] == "closed"
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}


def test_a_busy_server(front, remote):
    s = remote()
    mv, c = front("http", s)
    c.call("alpha__echo")
    s.fail_next = [("tools/call", 429, b"slower")]
    got = c.call("alpha__echo")
    assert got.error["data"]["reason"] == "http_status"
    assert got.error["data"]["retryable"] is True
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}


def test_the_session_is_lost(front, remote):
    s = remote(streams=True)
    mv, c = front("http", s)
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}
    s.forget_sessions()
    assert text_of(c.call("alpha__echo", {"n": 2})) == {"n": 2}
    assert len(s.seen("initialize")) == 2
    assert s.seen("initialize")[1].header("Mcp-Session-Id") is None
    mv.wait_log("session lost")


# -- the whole of it -------------------------------------------------------------------------


FAST = {"restart_base_ms": 100, "restart_max_ms": 200, "restart_limit": 0}


@pytest.mark.parametrize("era", ["legacy", "modern", "sse"])
def test_goes_and_comes_back(front, remote, era):
    s = remote(era)
    mv, c = front("http", s, **FAST)
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}
    s.close()
    got = wait_for(lambda: bad(c), 5, "it is unreachable")
    assert got.code == -32603
    assert got.error["data"]["reason"] in ("unreachable", "backoff", "closed", "died")
    assert got.error["data"]["retryable"] is True
    s.reopen()
    wait_ready(mv)
    assert text_of(c.call("alpha__echo", {"n": 2})) == {"n": 2}


def wait_ready(mv, timeout=10):
    """And has said what it offers: until then a call is told to try again."""
    def ready():
        s = mv.upstream_status("alpha")
        return s["state"] == "ready" and s["lists"]["tools"] is not None

    wait_for(ready, timeout, "it is ready")


def bad(c):
    got = c.call("alpha__echo")
    return got if "error" in got.msg else None


def test_is_not_there_at_first(front, remote):
    s = remote()
    s.close()
    mv, c = front("http", s, **FAST)
    mv.wait_log("remote: ended upstream=\"?alpha\"? reason=.*cannot be reached")
    s.reopen()
    wait_ready(mv)
    wait_for(lambda: "alpha__echo" in c.tools(), 5, "its tools are there")


@pytest.mark.parametrize("first,then", [("legacy", "modern"), ("modern", "legacy"),
                                        ("sse", "legacy")])
def test_another_era(front, remote, first, then):
    s = remote(first)
    mv, c = front("http", s, **FAST)
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}
    s.close()
    s.era = then  # at the URL of the conf, whatever its path
    s.reopen()
    wait_for(lambda: "result" in c.call("alpha__echo", {"n": 2}).msg, 10, "it is another one")
    assert s.seen("server/discover" if then == "modern" else "initialize")


# -- credentials ---------------------------------------------------------------------------------


def test_refused_credentials(front, remote, tmp_path):
    s = remote(token="right")
    secret = tmp_path / "token"
    secret.write_text("wrong")
    mv, c = front("http", s, headers={"Authorization": "Bearer ${file:%s}" % secret})
    mv.wait_log("parked upstream=.*status 401.*realm=.*resource_metadata=")
    n = len(s.seen())
    got = c.call("alpha__echo")
    assert got.code in (-32602, -32603)
    assert len(s.seen()) == n
    assert "wrong" not in mv.log()
    assert len(re.findall("status 401", mv.log())) <= 2
    secret.write_text("right")
    wait_ready(mv, 15)
    wait_for(lambda: c.tools(), 5, "its tools are there")
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}


# -- headers that mirror arguments ----------------------------------------------------------------


def region(header, kind="string"):
    return {"type": kind, "x-mcp-header": header}


def tool(name, **properties):
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def test_headers_of_arguments(front, remote):
    s = remote("modern", tools=[tool("sql", region=region("Region")),
                                tool("bad", x=region("X", "number"))])
    mv, c = front("http", s)
    assert c.tools() == ["alpha__sql"]
    mv.wait_log("tool left out .*bad")
    assert text_of(c.call("alpha__sql", {"region": "us-west1"})) == {"region": "us-west1"}
    assert s.seen("tools/call")[0].header("Mcp-Param-Region") == "us-west1"
    # The definition changes, and nobody is told.
    s.tools = [tool("sql", region=region("Zone"))]
    assert text_of(c.call("alpha__sql", {"region": "x"})) == {"region": "x"}
    assert s.seen("tools/call")[-1].header("Mcp-Param-Zone") == "x"
    assert len(s.seen("tools/list")) == 2
