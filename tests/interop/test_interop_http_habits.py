# SPDX-License-Identifier: MIT
"""The habits of HTTP stacks: how they put bodies, headers and connections."""

import http.client
import json
import subprocess
import time
import urllib.parse

import pytest

from interop_http import Answer, HttpWire, Serve, call_body
from interop_stacks import Curl, HttpClient, Node, Urllib

PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
JSON = {"Content-Type": "application/json"}
COUNT = call_body("modern__count", {"to": 3})


@pytest.fixture(scope="module")
def server(make_run):
    run = make_run("http-habits", tap=False, upstreams=("everything", "modern"))
    with Serve(run) as s:
        wire = HttpWire(HttpClient(s.url), True)
        wire.list("tools/list", "tools")
        yield s


def modern(stack):
    return HttpWire(stack, True)


def check_count(wire, **headers):
    answer = wire.send("tools/call", COUNT, '"progressToken":1', headers=headers)
    assert answer.status == 200
    assert "counted to 3" in answer.reply()["result"]
    return answer


def curl(server, *options, data=PING):
    done = subprocess.run(["curl", "-sS", "-i", "--max-time", "20", *options, server.url],
                          input=data.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


# Bodies

BIG = "x" * 1500000


@pytest.mark.parametrize("stack", [
    # from 1 MiB on curl sends Expect: 100-continue and waits
    lambda s: Curl(s.url, "-H", "Expect: 100-continue"),
    lambda s: Curl(s.url),
    lambda s: Curl(s.url, "-H", "Transfer-Encoding: chunked"),
    lambda s: Node(s.url, "stream"),
    lambda s: Node(s.url, "undici"),
    lambda s: HttpClient(s.url),
    lambda s: Urllib(s.url),
], ids=["curl-expect", "curl", "curl-chunked", "fetch-stream", "undici", "http.client",
        "urllib"])
def test_big_bodies(server, stack):
    wire = modern(stack(server))
    result = wire.call("everything__echo", {"message": BIG})
    assert result["content"][0]["text"] == "Echo: " + BIG
    wire.stack.close()


def test_curl_waits_no_second_for_its_expectation(server):
    begin = time.monotonic()
    out = curl(server, "-H", "Content-Type: application/json", "-H",
               "Expect: 100-continue", "--expect100-timeout", "10",
               "--data-binary", "@-")
    assert time.monotonic() - begin < 5
    assert out.startswith("HTTP/1.1 100 ")
    assert '"result"' in out


def test_http_client_sends_an_iterable_in_chunks(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    pieces = [PING[:10].encode(), PING[10:11].encode(), PING[11:].encode()]
    connection.request("POST", "/mcp", body=iter(pieces), headers=JSON,
                       encode_chunked=True)
    assert b'"result"' in connection.getresponse().read()
    connection.close()


@pytest.mark.parametrize("kind, status", [
    ("application/json", 200),
    ("application/json; charset=utf-8", 200),
    ("Application/JSON;charset=UTF-8", 200),
    ("application/x-www-form-urlencoded", 415),  # what curl -d and urllib say unasked
    ("text/plain", 415),  # what a web page may send without asking first
    ("application/json-rpc", 415),
])
def test_type_of_the_body(server, kind, status):
    out = curl(server, "-H", f"Content-Type: {kind}", "--data-binary", "@-")
    assert out.startswith(f"HTTP/1.1 {status} ")


def test_urllib_says_form_unless_told(server):
    stack = Urllib(server.url)
    assert stack.open("POST", {}, PING.encode()).status == 415


def test_a_pretty_printed_body(server):
    text = json.dumps(json.loads(PING), indent=2).replace("\n", "\r\n")
    out = curl(server, "-H", "Content-Type: application/json", "--data-binary", "@-",
               data=text)
    assert '"result"' in out


# Heads

@pytest.mark.parametrize("accept, streamed", [
    ("*/*", True),  # curl
    ("application/json, text/event-stream", True),
    ("text/event-stream;q=0.9, application/json;q=1.0", True),
    ("application/*, text/*", True),
    ("application/json", False),
    ("text/event-stream", True),
])
def test_what_is_accepted_decides_the_form(server, accept, streamed):
    answer = check_count(modern(HttpClient(server.url)), Accept=accept)
    assert answer.streamed is streamed
    notices = len(answer.seen) - 1
    assert notices == (3 if streamed else 0)


def test_no_accept_at_all(server):
    out = curl(server, "-H", "Accept:", "-H", "Content-Type: application/json",
               "--data-binary", "@-")
    assert out.startswith("HTTP/1.1 200 ")


def test_nothing_acceptable(server):
    out = curl(server, "-H", "Accept: text/html", "-H",
               "Content-Type: application/json", "--data-binary", "@-")
    assert out.startswith("HTTP/1.1 406 ")


@pytest.mark.parametrize("case", (str.lower, str.upper, str.title))
def test_case_of_names_does_not_matter(server, case):
    wire = HttpWire(HttpClient(server.url), False)
    wire.initialize()
    headers = {case(k): v for k, v in wire.headers().items()}
    answer = Answer(wire.stack.open("POST", headers, PING.encode()))
    assert answer.status == 200 and "result" in answer.reply()
    assert wire.delete() == 204


@pytest.mark.parametrize("options", [
    ["--compressed"],
    ["-H", "Accept-Encoding: gzip, deflate, br, zstd"],
    ["-H", "Accept-Encoding: identity"],
    ["--http2"],  # an offer to upgrade, which nobody has to take
    ["-H", "Connection: keep-alive, x-other", "-H", "X-Other: 1"],
    ["-H", "TE: trailers"],
    ["-H", "Cookie: a=b; c=d", "-H", "DNT: 1", "-H", "Sec-Fetch-Mode: cors"],
    ["-A", ""],
    ["-A", "Mozilla/5.0 (X11; Linux x86_64)", "-H", "Accept-Language: *"],
    ["-H", "Authorization: Bearer not-asked-for"],
    ["-H", "X-Forwarded-For: 192.0.2.1", "-H", "Forwarded: for=192.0.2.1"],
    ["-u", "user:password"],
    ["--tr-encoding"],
], ids=lambda o: " ".join(o)[:40])
def test_headers_that_do_not_concern_us(server, options):
    out = curl(server, "-H", "Content-Type: application/json", *options,
               "--data-binary", "@-")
    assert out.startswith("HTTP/1.1 200 ")
    head, body = out.split("\r\n\r\n", 1)
    assert "content-encoding" not in head.lower()
    assert '"result"' in body


def test_http_1_0(server):
    out = curl(server, "-0", "-H", "Content-Type: application/json",
               "--data-binary", "@-")
    head, body = out.split("\r\n\r\n", 1)
    assert head.split()[1] == "200"
    assert "chunked" not in head.lower()
    assert json.loads(body)["id"] == 1


def test_a_stream_on_http_1_0_is_not_in_chunks(server):
    answer = check_count(modern(Curl(server.url, "-0")))
    assert answer.streamed and len(answer.seen) == 4
    assert "transfer-encoding" not in answer.headers


@pytest.mark.parametrize("host", ("localhost", "127.0.0.1", "127.0.0.1:{port}",
                                  "localhost:{port}", "LocalHost:1", "[::1]:{port}"))
def test_names_of_this_machine(server, host):
    out = curl(server, "-H", f"Host: {host.format(port=server.port)}", "-H",
               "Content-Type: application/json", "--data-binary", "@-")
    assert out.startswith("HTTP/1.1 200 ")


@pytest.mark.parametrize("headers", [
    {"Host": "rebound.example"},
    {"Host": "rebound.example:7332"},
    {"Host": "127.0.0.1.rebound.example"},
    {"Origin": "https://rebound.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost.rebound.example"},
])
def test_names_of_others(server, headers):
    answer = Answer(HttpClient(server.url).open("POST", {**JSON, **headers},
                                                PING.encode()))
    assert answer.status == 403


def test_a_page_of_this_machine(server):
    origin = "http://localhost:3000"
    out = curl(server, "-X", "OPTIONS", "-H", f"Origin: {origin}", "-H",
               "Access-Control-Request-Method: POST", "-H",
               "Access-Control-Request-Headers: content-type,mcp-session-id")
    head = out.lower()
    assert head.startswith("http/1.1 204 ")
    assert f"access-control-allow-origin: {origin}" in head
    assert "mcp-session-id" in head and "mcp-protocol-version" in head
    answer = Answer(HttpClient(server.url).open("POST", {**JSON, "Origin": origin},
                                                PING.encode()))
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == origin


@pytest.mark.parametrize("method, status", [
    ("HEAD", 405), ("PUT", 405), ("PATCH", 405), ("TRACE", 405), ("GET", 405)])
def test_other_methods(server, method, status):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, "/mcp", headers={"Accept": "text/event-stream"})
    response = connection.getresponse()
    assert response.status == status
    assert "POST" in response.headers["Allow"]
    response.read()
    connection.request("POST", "/mcp", body=PING, headers=JSON)
    assert connection.getresponse().status == 200
    connection.close()


# Connections

def test_http_client_keeps_its_connection(server):
    wire = modern(HttpClient(server.url))
    for n in range(20):
        assert wire.call("modern__greet", {"name": str(n)})
    check_count(wire)
    assert wire.send("none/such").reply()["error"]
    assert wire.call("modern__greet", {"name": "x"})
    assert wire.stack.opened == 1
    wire.stack.close()


def test_curl_keeps_its_connection(server):
    one = ["-sS", "--max-time", "20", "-H", "Content-Type: application/json", "-d", PING,
           "-o", "/dev/null", "-w", "%{http_code} %{num_connects}\\n", server.url]
    done = subprocess.run(["curl", *one, "--next", *one, "--next", *one],
                          capture_output=True, text=True)
    assert done.stdout.splitlines() == ["200 1", "200 0", "200 0"]


def test_urllib_closes_its_connection(server):
    answer = check_count(modern(Urllib(server.url)))
    assert answer.headers["connection"] == "close"


def test_undici_pipelines(server):
    """Many calls on one connection at once; each gets its own answer, in order."""
    node = Node(server.url, "pipeline")
    wire = modern(node)
    exchanges = []
    for n in range(24):
        slow = n % 3 == 0
        name = "everything__trigger-long-running-operation" if slow else "modern__greet"
        arguments = {"duration": 0.1, "steps": 2} if slow else {"name": f"n{n}"}
        meta = ',"progressToken":1' if slow else ""
        text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}' % wire.params(
            call_body(name, arguments), meta[1:])
        exchanges.append((n, slow, node.start("POST", wire.headers("tools/call", name),
                                              text.encode())))
    for n, slow, exchange in exchanges:
        exchange.wait_head()
        answer = Answer(exchange)
        assert answer.status == 200 and answer.streamed is slow
        assert ("completed" if slow else f"Hello, n{n}") in answer.reply()["result"]
        assert len(answer.seen) == (3 if slow else 1)
    node.close()


@pytest.mark.parametrize("stack", [
    lambda s: Curl(s.url, "--unix-socket", str(s.socket)),
    lambda s: Node(s.url, "socket", s.socket),
], ids=["curl", "undici"])
@pytest.mark.parametrize("era", (False, True), ids=["legacy", "modern"])
def test_http_on_the_unix_socket(server, stack, era):
    wire = HttpWire(stack(server), era)
    wire.hello()
    check_count(wire)
    if not era:
        assert wire.delete() == 204
    wire.stack.close()


def test_a_session_belongs_to_its_principal(server):
    """One of a user on the socket is not to be had over TCP, nor the other way."""
    over_tcp = HttpWire(Curl(server.url), False)
    on_socket = HttpWire(Curl(server.url, "--unix-socket", str(server.socket)), False)
    for wire in (over_tcp, on_socket):
        wire.initialize()
    over_tcp.session, on_socket.session = on_socket.session, over_tcp.session
    for wire in (over_tcp, on_socket):
        assert wire.send("ping").status == 404


def test_a_query_is_not_the_path(server):
    url = urllib.parse.urlsplit(server.url)
    for target, status in (("/mcp?x=1", 200), ("/mcp/", 404), ("/", 404), ("/MCP", 404)):
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=10)
        connection.request("POST", target, body=PING, headers=JSON)
        assert connection.getresponse().status == status, target
        connection.close()
