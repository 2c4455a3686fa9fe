# SPDX-License-Identifier: MIT
"""Remote upstreams in the world as it is: certificates, proxies, name servers, credentials,
servers that are dead, and what all that costs those who have none."""
import http.server
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import pytest

from remote_server import RemoteServer, reply
from test_remote import FAST, front, text_of, wait_ready  # noqa: F401 F811 (a fixture)
from upstream import PATIENCE, wait_for

HERE = Path(__file__).resolve().parent

# -- certificates ----------------------------------------------------------------------------


def openssl(*argv):
    subprocess.run(["openssl", *map(str, argv)], check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    """Two authorities; a certificate for localhost and one for a client, both of `ours`."""
    folder = tmp_path_factory.mktemp("pki")
    for ca in ("ours", "theirs"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-nodes", "-keyout", folder / (ca + ".key"), "-out", folder / (ca + ".pem"),
                "-subj", "/CN=" + ca, "-days", "2")
    for name, more in (("server", "subjectAltName=DNS:localhost"),
                       ("client", "extendedKeyUsage=clientAuth")):
        (folder / "ext").write_text(more)
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", folder / (name + ".key"), "-out", folder / (name + ".csr"),
                "-subj", "/CN=" + name)
        openssl("x509", "-req", "-in", folder / (name + ".csr"), "-CA", folder / "ours.pem",
                "-CAkey", folder / "ours.key", "-CAcreateserial", "-days", "2", "-out",
                folder / (name + ".pem"), "-extfile", folder / "ext")
    return folder


class TlsServer(RemoteServer):
    """wants: the authority of clients, or None."""

    def __init__(self, pki, wants=None, **kw):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(pki / "server.pem", pki / "server.key")
        if wants:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(wants)
        super().__init__(**kw)

    def open(self):
        super().open()
        # Nobody knows the port yet. Handshakes are the business of each one's thread.
        self.httpd.socket = self.context.wrap_socket(
            self.httpd.socket, server_side=True, do_handshake_on_connect=False)

    @property
    def url(self):
        return super().url.replace("http://127.0.0.1", "https://localhost")


@pytest.fixture
def tls(pki):
    running = []

    def start(**kw):
        running.append(TlsServer(pki, **kw))
        return running[-1]

    yield start
    for s in running:
        s.close()


@pytest.mark.parametrize("kind", ["stdio", "http"])
@pytest.mark.parametrize("era", ["legacy", "modern", "sse"])
def test_an_authority_of_ones_own_and_a_client_certificate(front, tls, pki, kind, era):
    s = tls(era=era, wants=pki / "ours.pem")
    mv, c = front(kind, s, ca_file=str(pki / "ours.pem"), cert_file=str(pki / "client.pem"),
                  key_file=str(pki / "client.key"))
    for n in range(3):
        assert text_of(c.call("alpha__echo", {"n": n})) == {"n": n}


REFUSALS = {
    "other authority": ({"ca_file": "theirs.pem"}, None, r"certificate"),
    "the system's alone": ({}, None, r"certificate"),
    "no client certificate": ({"ca_file": "ours.pem"}, "ours.pem", r"certificate|alert|closed"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_no_certificate_no_word(front, tls, pki, what):
    options, wants, words = REFUSALS[what]
    s = tls(wants=wants and pki / wants)
    mv, c = front("http", s, **FAST, **{k: str(pki / v) for k, v in options.items()})
    mv.wait_log(r'ended upstream="?alpha"? reason=.*localhost:%d.*(?:%s)' % (s.port, words))
    up = mv.upstream_status("alpha")
    assert up["state"] != "ready" and re.search(words, up["reason"]), up
    assert not s.seen()


def test_no_verification_for_those_who_ask_for_it(front, tls):
    mv, c = front("http", tls(), tls_verify=False)
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}


def test_a_certificate_for_another_name(front, tls, pki):
    s = tls()
    mv, c = front("http", s, **FAST, ca_file=str(pki / "ours.pem"))
    wait_ready(mv)
    mv.entries["alpha"]["url"] = "https://127.0.0.1:%d/mcp" % s.port
    mv.reload()
    mv.wait_log(r"127\.0\.0\.1:%d cannot be reached.*certificate" % s.port)


# -- proxies ---------------------------------------------------------------------------------


class Proxy:
    """GET, POST and DELETE of whole URLs, and CONNECT; everything goes to `to`."""

    def __init__(self, to):
        self.lines, proxy = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_CONNECT(self):
                proxy.lines.append((self.command, self.path,
                                    self.headers.get("Proxy-Authorization")))
                there = socket.create_connection(("127.0.0.1", to))
                self.send_response(200)
                self.end_headers()
                pump(self.connection, there)
                self.close_connection = True

            def do_POST(self):
                proxy.lines.append((self.command, self.path,
                                    self.headers.get("Proxy-Authorization")))
                there = socket.create_connection(("127.0.0.1", to))
                path = "/" + self.path.split("/", 3)[3]
                head = "%s %s HTTP/1.1\r\nConnection: close\r\n" % (self.command, path)
                head += "".join("%s: %s\r\n" % (k, v) for k, v in self.headers.items()
                                if k.lower() not in ("connection", "proxy-authorization"))
                there.sendall(head.encode() + b"\r\n" + self.rfile.read(
                    int(self.headers.get("Content-Length") or 0)))
                begin = there.recv(65536).split(b"\r\n", 1)
                self.connection.sendall(b"\r\nConnection: close\r\n".join(begin))
                pump(self.connection, there)
                self.close_connection = True

            do_GET = do_DELETE = do_POST

        self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.daemon_threads = True
        self.port = self.httpd.server_address[1]
        threading.Thread(target=self.httpd.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()


def pump(one, other):
    def copy(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    back = threading.Thread(target=copy, args=(other, one), daemon=True)
    back.start()
    copy(one, other)
    back.join()


@pytest.fixture
def proxy():
    running = []

    def start(to):
        running.append(Proxy(to))
        return running[-1]

    yield start
    for p in running:
        p.close()


@pytest.mark.parametrize("era", ["legacy", "modern", "sse"])
def test_a_proxy_of_the_conf(front, remote, proxy, era):
    s = remote(era)
    p = proxy(s.port)
    # A name that only the proxy knows.
    url = s.url.replace("127.0.0.1", "tools.internal")
    s_at = type("At", (), {"url": url})
    mv, c = front("http", s_at, proxy=p.url.replace("//", "//me:secret-4711@"))
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}
    assert {line[1].split("/")[2] for line in p.lines} == {"tools.internal:%d" % s.port}
    assert all(line[2].startswith("Basic ") for line in p.lines)
    assert "secret-4711" not in mv.log() + mv.control("status", "--json")[1]


def test_a_tunnel_for_tls(front, tls, proxy, pki):
    s = tls()
    p = proxy(s.port)
    mv, c = front("http", s, proxy=p.url, ca_file=str(pki / "ours.pem"))
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}
    assert {line[:2] for line in p.lines} == {("CONNECT", "localhost:%d" % s.port)}


@pytest.mark.parametrize("environ, option, through", [
    ({"http_proxy": "URL"}, None, True),
    ({"http_proxy": "URL", "no_proxy": "example.org,127.0.0.1"}, None, False),
    ({"http_proxy": "URL"}, "", False),
    ({"https_proxy": "URL"}, None, False),
    ({"all_proxy": "URL"}, None, True),
], ids=["http_proxy", "no_proxy", "none", "https_proxy", "all_proxy"])
def test_proxies_of_the_environment(serve_conf, remote, proxy, environ, option, through):
    s = remote()
    p = proxy(s.port)
    entry = {"url": s.url} if option is None else {"url": s.url, "proxy": option}
    mv = serve_conf(alpha=entry, env={k: v.replace("URL", p.url) for k, v in environ.items()})
    assert text_of(mv.legacy().call("alpha__echo", {"n": 1})) == {"n": 1}
    assert bool(p.lines) == through


# -- names that nobody answers for -----------------------------------------------------------


QUICK_S = 0.05


def prompt(server):
    """Small answers go out at once, as servers of its kind see to."""
    server.httpd.RequestHandlerClass.disable_nagle_algorithm = True
    return server


def check_quick(client, *tools):
    """Of 200 calls two may take longer. Whoever shares this machine may be why, so there
    are three tries. On one connection: a thousand that are left open are the limit."""
    on = {"wire": client.wire()} if hasattr(client, "wire") else {}
    for tool in tools:
        for _ in range(3):
            times = []
            for n in range(200):
                begin = time.monotonic()
                assert client.call(tool, {"n": n}, **on).result
                times.append(time.monotonic() - begin)
                time.sleep(0.005)
            if sorted(times)[-3] < QUICK_S * PATIENCE:
                break
        else:
            pytest.fail("%s is slow: %s" % (tool, sorted(times)[-8:]))


@pytest.fixture
def hole(tmp_path):
    """(environment, questions): a name server that hears everything and says nothing."""
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    shim = tmp_path / "elsewhere.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim,
                    HERE / "resolv_elsewhere.c", "-ldl"], check=True)
    # libevent reads no port in that file: an address of our own, at port 53.
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        server.bind(("127.0.0.153", 53))
    except OSError as error:
        pytest.skip("cannot be a name server: %s" % error)
    questions = []

    def listen():
        try:
            while data := server.recv(4096):
                questions.append(data)
        except OSError:
            pass

    threading.Thread(target=listen, daemon=True).start()
    conf = tmp_path / "resolv.conf"
    conf.write_text("nameserver 127.0.0.153\n")
    yield {"LD_PRELOAD": str(shim), "RESOLV_ELSEWHERE": str(conf)}, questions
    server.close()


def test_a_silent_name_server_delays_nobody_else(serve_conf, remote, hole, binary):
    if b"__asan_init" in Path(binary).read_bytes():
        pytest.skip("the sanitizer wants to be loaded first")
    environ, questions = hole
    s = prompt(remote("modern"))
    holes = {"hole%d" % n: {"url": "http://nowhere%d.example/mcp" % n, "connect_ms": 700, **FAST}
             for n in range(5)}
    mv = serve_conf(upstreams={"near": {"tools": ["echo"]}, "alpha": {"url": s.url}, **holes},
                    env=environ)
    c = mv.modern()
    wait_for(lambda: questions, 5, "it asks the name server")
    wait_ready(mv)
    assert c.call("near__echo").result
    check_quick(c, "near__echo", "alpha__echo")
    assert len(questions) >= len(holes)
    mv.wait_log("nowhere.*no name server answered in time")
    # Taken away while their names are asked for.
    for name in holes:
        mv.remove(name)
    begin = time.monotonic()
    mv.reload()
    assert time.monotonic() - begin < 1 * PATIENCE
    check_quick(c, "near__echo")


# -- the dead ----------------------------------------------------------------------------------


@pytest.fixture
def silent():
    """A port that takes connections and says nothing."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(100)
    yield s.getsockname()[1]
    s.close()


@pytest.mark.parametrize("kind", ["stdio", "http"])
def test_the_dead_delay_nobody(serve, serve_conf, remote, silent, tmp_path, kind):
    s = prompt(remote("legacy", streams=True))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens
        entries = {"mute": {"url": "http://127.0.0.1:%d/mcp" % silent},
                   "shut": {"url": "http://127.0.0.1:%d/mcp" % closed.getsockname()[1], **FAST},
                   "alpha": {"url": s.url}}
        if kind == "http":
            mv = serve_conf(upstreams=entries, more="list_wait_ms = 1000;\n")
            c = mv.legacy()
        else:
            c = serve(file=False, args=conf_args(tmp_path, entries))
            c.legacy()
        wait_for(lambda: "alpha__echo" in c.tools(), 10, "its tools")
        check_quick(c, "alpha__echo")
        got = c.call("mute__anything")
        assert got.code in (-32602, -32603)


def conf_args(tmp_path, entries):
    from conf_served import setting
    path = tmp_path / "dead.conf"
    path.write_text("list_wait_ms = 1000;\nupstream : {\n%s};\n" % "".join(
        setting(k, v) for k, v in entries.items()))
    return ("--conf", str(path), "--log-level", "debug")


# -- credentials -------------------------------------------------------------------------------


def test_what_is_forbidden_is_asked_once(front, remote, tmp_path):
    """403 as 401; looked at again only when the file that the header comes from has changed."""
    s = remote()
    state = {"token": "right"}

    def odd(h, r):
        if r.header("Authorization") == "Bearer " + state["token"]:
            return False
        reply(h, 403, "text/plain", b"not you", [(
            "WWW-Authenticate", 'Bearer error="insufficient_scope", scope="write"')])
        return True

    s.odd = odd
    secret = tmp_path / "token"
    secret.write_text("wrong-4711")
    mv, c = front("http", s, headers={"Authorization": "Bearer ${file:%s}" % secret}, **FAST)
    mv.wait_log(r"parked upstream=.*status 403.*insufficient_scope.*write")
    n = len(s.seen())
    secret.touch()  # it says the same
    time.sleep(6)
    assert len(s.seen()) == n
    assert len(re.findall("parked .*status 403", mv.log())) == 1
    assert len(re.findall("status 403", mv.log())) <= 2  # and that its tools are missing
    reason = mv.upstream_status("alpha")["reason"]
    assert "403" in reason and "write" in reason and "wrong-4711" not in mv.log() + reason
    secret.write_text("right")
    wait_ready(mv, 10)
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}
    # They are taken back, and given again.
    state["token"] = "newer"
    assert c.call("alpha__echo").error["data"]["retryable"] in (True, False)
    secret.write_text("newer")
    wait_ready(mv, 15)
    assert text_of(c.call("alpha__echo", {"n": 2})) == {"n": 2}


def test_a_reload_asks_again(front, remote):
    s = remote(token="right")
    mv, c = front("http", s, headers={"Authorization": "Bearer wrong"})
    mv.wait_log("parked upstream=.*status 401")
    mv.entries["alpha"]["headers"] = {"Authorization": "Bearer right"}
    mv.reload()
    wait_ready(mv)
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}


# -- reload and status ---------------------------------------------------------------------------


def test_another_url_by_reload(front, remote):
    one, other = remote("legacy"), remote("modern", tools=["echo", "fresh"])
    mv, c = front("http", one)
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}
    assert mv.upstream_status("alpha")["url"] == "http://127.0.0.1:%d" % one.port
    mv.entries["alpha"]["url"] = other.url
    assert "upstream.alpha" in mv.reload()
    wait_ready(mv)
    wait_for(lambda: "alpha__fresh" in c.tools(), 5, "the other's tools")
    assert text_of(c.call("alpha__echo", {"n": 2})) == {"n": 2}
    assert mv.upstream_status("alpha")["url"] == "http://127.0.0.1:%d" % other.port
    wait_for(lambda: one.seen(http="DELETE"), 5, "the old session is ended")
    assert len(other.seen("tools/call")) == 1


# -- what it costs those who have none -------------------------------------------------------------


def maps(mv):
    return Path("/proc/%d/maps" % mv.proc.pid).read_text()


def memory(mv, *names):
    text = Path("/proc/%d/smaps_rollup" % mv.proc.pid).read_text()
    return sum(int(re.search(r"^%s: +(\d+) kB" % n, text, re.M)[1]) for n in names)


def test_curl_comes_with_the_first_remote(serve_conf, remote, binary):
    near = {"near%d" % n: {"tools": ["echo"]} for n in range(10)}
    mv = serve_conf(upstreams=near, log_level="notice")
    c = mv.legacy()
    for name in near:
        assert c.call(name + "__echo").result
    assert "libcurl" not in maps(mv)
    if b"__asan_init" not in Path(binary).read_bytes():
        assert memory(mv, "Private_Clean", "Private_Dirty") < 3 * 1024
        assert memory(mv, "Rss") < 8 * 1024
    s = remote()
    mv.add("alpha", {"url": s.url})
    mv.reload()
    wait_ready(mv)
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}
    assert "libcurl" in maps(mv)
