# SPDX-License-Identifier: MIT
"""Who may talk to the endpoint: Host, Origin, CORS, and where it listens at all."""
import os
import socket
import subprocess

import pytest

from http_client import ACCEPT

ECHO = {"tools": ["echo"]}
BODY = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
PUBLIC = ("--allowed-host", "mcp.example.org", "--allowed-host", "*.apps.example.org",
          "--allowed-host", "fixed.example.org:8443",
          "--allowed-origin", "https://app.example.org")


def post(c, **headers):
    return c.http("POST", {"Content-Type": "application/json", "Accept": ACCEPT, **headers},
                  BODY)


@pytest.mark.parametrize("host, plain, public", [
    ("127.0.0.1:{port}", 200, 200), ("localhost:{port}", 200, 200), ("localhost", 200, 200),
    ("[::1]:{port}", 200, 200), ("LOCALHOST:1", 200, 200), ("127.9.9.9:80", 200, 200),
    ("mcp.example.org", 403, 200), ("MCP.example.org:8443", 403, 200),
    ("a.apps.example.org", 403, 200), ("apps.example.org", 403, 403),
    ("fixed.example.org:8443", 403, 200), ("fixed.example.org", 403, 403),
    ("fixed.example.org:1", 403, 403),
    ("evil.example", 403, 403), ("evil.example:{port}", 403, 403),
    ("localhost.evil.example", 403, 403), ("127.0.0.1.evil.example", 403, 403),
    ("mcp.example.org.evil.example", 403, 403), ("0.0.0.0:{port}", 403, 403),
    ("localhost:{port}@evil.example", 400, 400), ("a b", 400, 400), ("", 400, 400),
    (None, 400, 400), (["localhost", "localhost"], 400, 400),
])
def test_o_069_hosts(serve_http, host, plain, public):
    for args, status in (((), plain), (PUBLIC, public)):
        mv = serve_http(alpha=ECHO, args=args)
        port = mv.address.rpartition(":")[2]
        said = host.replace("{port}", port) if isinstance(host, str) else host
        answer = post(mv.client(), Host=said)
        assert answer.status == status, said
        if status == 403:
            mv.wait_log("host refused.*allowed-host")


@pytest.mark.parametrize("origin, plain, public", [
    (None, 200, 200), ("http://localhost:3000", 200, 200), ("https://localhost", 200, 200),
    ("http://127.0.0.1:{port}", 200, 200), ("http://[::1]:1", 200, 200),
    ("https://app.example.org", 403, 200), ("http://app.example.org", 403, 403),
    ("https://app.example.org:8443", 403, 403), ("https://evil.example", 403, 403),
    ("https://app.example.org.evil.example", 403, 403),
    ("http://localhost.evil.example", 403, 403), ("null", 403, 403), ("", 403, 403),
    ("file://", 403, 403), ("localhost", 403, 403),
    (["http://localhost", "http://localhost"], 403, 403),
    (["http://localhost", "https://evil.example"], 403, 403),
])
def test_o_070_origins(serve_http, origin, plain, public):
    for args, status in (((), plain), (PUBLIC, public)):
        mv = serve_http(alpha=ECHO, args=args)
        port = mv.address.rpartition(":")[2]
        said = origin.replace("{port}", port) if isinstance(origin, str) else origin
        answer = post(mv.client(), Origin=said)
        assert answer.status == status, said
        if status == 200 and said:
            assert answer.header("Access-Control-Allow-Origin") == said
            assert answer.header("Vary") == "Origin"
            assert "Mcp-Session-Id" in answer.header("Access-Control-Expose-Headers")
        else:
            assert answer.header("Access-Control-Allow-Origin") is None
        if status == 403:
            assert "Forbidden" in answer.message().error["message"]
            mv.wait_log("origin refused.*allowed-origin")


@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE", "OPTIONS"])
def test_o_070_every_method_is_guarded(serve_http, verb):
    mv = serve_http(alpha=ECHO)
    c = mv.legacy()
    body = BODY if verb == "POST" else None
    for bad in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        answer = c.http(verb, {**c.base(), "Content-Type": "application/json", **bad}, body)
        assert answer.status == 403
    assert c.ask("ping").result == {}


def test_preflight(serve_http):
    mv = serve_http(alpha=ECHO)
    answer = mv.client().http("OPTIONS", {
        "Origin": "http://localhost:6274", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,mcp-protocol-version,mcp-param-x"})
    assert answer.status == 204
    assert answer.header("Access-Control-Allow-Origin") == "http://localhost:6274"
    methods = answer.header("Access-Control-Allow-Methods")
    assert all(m in methods for m in ("POST", "GET", "DELETE"))
    allowed = [h.strip().lower() for h in
               answer.header("Access-Control-Allow-Headers").split(",")]
    for name in ("content-type", "accept", "authorization", "mcp-session-id",
                 "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id", "*"):
        assert name in allowed
    assert "POST" in answer.header("Allow")


def test_a_page_can_read_every_answer(serve_http):
    """Refusals, streams and empty answers too, or a browser hides their status."""
    mv = serve_http(alpha={**ECHO, "calls": {}})
    c = mv.legacy()
    here = {"Origin": "http://localhost:6274"}
    json_type = {"Content-Type": "application/json"}
    answers = [
        c.send("ping", headers=here), c.send("nope", headers=here),
        c.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=here),
        c.http("GET", {**c.base(), **here}), c.http("GET", {"Accept": "*/*", **here}),
        c.http("PUT", {**here, **json_type}, BODY), post(c, Accept="text/html", **here),
        c.http("POST", {"Content-Type": "text/plain", **here}, BODY),
        c.http("POST", {**here, **json_type, "Mcp-Session-Id": "x"}, BODY),
        c.http("POST", {**here, **json_type}, b"{"),
        mv.modern().send("foo/bar", headers=here), c.http("DELETE", {**c.base(), **here}),
    ]
    assert [a.status for a in answers] == [200, 200, 202, 200, 405, 405, 406, 415, 404, 400,
                                           404, 204]
    for a in answers:
        assert a.header("Access-Control-Allow-Origin") == here["Origin"], a.head


# -- where it listens ---------------------------------------------------------------------


def run(binary, folder, *args):
    (folder / "servers.json").write_text('{"mcpServers":{"a":{"command":"touch","args":["%s"]}}}'
                                         % (folder / "started"))
    return subprocess.run([binary, "serve", "--mcp-json", folder / "servers.json", *args],
                          capture_output=True, timeout=20, stdin=subprocess.DEVNULL,
                          env={"PATH": os.environ["PATH"], "HOME": str(folder),
                               "XDG_STATE_HOME": str(folder / "state")})


@pytest.mark.parametrize("args", [
    ("--listen", "0.0.0.0:0"), ("--listen", "[::]:0"), ("--listen", "192.0.2.1:80"),
    ("--listen", "127.0.0.1:0", "--listen", "0.0.0.0:0"),
    ("--listen", "0.0.0.0:0", "--allow-unauthenticated"),
    ("--listen", "0.0.0.0:0", "--allowed-host", "mcp.example.org"),
])
def test_beyond_loopback_only_when_it_is_said_in_words(binary, tmp_path, args):
    got = run(binary, tmp_path, *args)
    assert got.returncode == 3 and got.stdout == b""
    for word in (b"loopback", b"--allow-unauthenticated", b"--allowed-host"):
        assert word in got.stderr
    assert b"listening" not in got.stderr
    assert not (tmp_path / "started").exists() and not (tmp_path / "state").exists()


@pytest.mark.parametrize("address", [
    "", "x", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "example.org:80",
    "unix:", "unix:relative", "unix:/" + "x" * 200, "[::1", "::1:80", "127.0.0.1:80x",
])
def test_addresses_that_are_none(binary, tmp_path, address):
    got = run(binary, tmp_path, "--listen", address)
    assert got.returncode in (2, 3) and got.stdout == b"" and got.stderr.strip()
    assert not (tmp_path / "started").exists()


def test_an_address_in_use(binary, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as s:
        got = run(binary, tmp_path, "--listen", "127.0.0.1:%d" % s.getsockname()[1])
    assert got.returncode == 3 and b"in use" in got.stderr
    assert not (tmp_path / "started").exists()


def test_with_the_words_it_listens_beyond_loopback(serve_http):
    mv = serve_http(alpha=ECHO, listen=("0.0.0.0:0",), args=(
        "--allow-unauthenticated", "--allowed-host", "mcp.example.org"))
    port = mv.address.rpartition(":")[2]
    c = mv.client("127.0.0.1:" + port)
    assert post(c, Host="mcp.example.org").status == 200
    # Then loopback's names are no different from others: they must be allowed too.
    assert post(c, Host="localhost:" + port).status == 403
    assert post(c, Host="mcp.example.org", Origin="http://localhost").status == 403


def test_several_addresses_serve_one_fleet(serve_http):
    mv = serve_http(alpha=ECHO, listen=("127.0.0.1:0", "[::1]:0", "localhost:0"))
    for address in mv.bound:
        assert mv.modern(address).tools() == ["alpha__echo"]
    # A session is the same behind each of them.
    c = mv.legacy()
    c.fixed = mv.bound[1]
    assert c.tools() == ["alpha__echo"]
    assert len(mv["alpha"].starts()) == 1
