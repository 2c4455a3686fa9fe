# SPDX-License-Identifier: MIT
"""The cases of the benchmark that go over HTTP: load, lists, readiness, memory."""

import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import time

TOOLS = 10000
STREAMS = 990  # connections_max has its default
LOAD_FIGURES = ("rate", "p50_us", "p99_us", "cpu_us")
BLOB_FIGURES = ("mb_per_s", "p50_us", "cpu_us")
SESSION_FIGURES = (
    "session_kb", "stream_kb", "idle_rss_kb", "idle_private_kb", "idle_anon_kb",
    "after_streams_rss", "after_streams_anon", "after_10000_rss", "after_10000_anon")
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "run", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}
NGINX = """daemon off; worker_processes 1; pid {d}/pid; error_log {d}/err;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 1000000000;
 client_body_temp_path {d}/b; proxy_temp_path {d}/p; fastcgi_temp_path {d}/f;
 uwsgi_temp_path {d}/u; scgi_temp_path {d}/s;
 server {{ listen 127.0.0.1:{port};
  location /mcp {{ default_type application/json; return 200 '{body}'; }} }} }}
"""


class Fault(Exception):
    """A wrong answer, or none."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def memory_kb(pid):
    got = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        for line in f:
            words = line.split()
            if words[-1] == "kB":
                got[words[0]] = int(words[1])
    return {"rss": got["Rss:"], "anon": got["Anonymous:"],
            "private": got["Private_Clean:"] + got["Private_Dirty:"]}


class Subject:
    """One server that listens on a port of its own; a context manager."""

    def __init__(self, bench, kind, tools=0, wait_ms=0, stamps=False):
        self.home = bench.work / "web"
        shutil.rmtree(self.home, ignore_errors=True)
        (self.home / "run").mkdir(mode=0o700, parents=True)
        self.port = free_port()
        self.stamps = []
        self.env = dict(os.environ, HOME=str(self.home),
                        XDG_STATE_HOME=str(self.home / "state"),
                        XDG_RUNTIME_DIR=str(self.home / "run"))
        self.argv = self.command(bench, kind, tools, wait_ms, stamps)
        self.p = None

    def command(self, bench, kind, tools, wait_ms, stamps):
        echo = str(bench.bench / "bench_echo")
        if kind == "nginx":
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {
                "content": [{"type": "text", "text": "x" * 100}]}})
            conf = self.home / "nginx.conf"
            conf.write_text(NGINX.format(d=self.home, port=self.port, body=body),
                            encoding="ascii")
            return ["nginx", "-c", str(conf), "-p", str(self.home)]
        if kind == "echo_http":
            more = ["--tools", str(tools - 2)] if tools else []
            return [echo, "--http", str(self.port), *more]
        n = int(kind[1:])
        servers = {}
        for i in range(n):
            args = ["--tools", str(tools // n - 2)] if tools else []
            args += ["--wait", str(wait_ms)] if wait_ms else []
            if stamps:
                self.stamps.append(self.home / f"stamp{i}")
                args += ["--stamp", str(self.stamps[-1])]
            servers[f"s{i}"] = {"command": echo, "args": args}
        (self.home / "servers.json").write_text(
            json.dumps({"mcpServers": servers}), encoding="utf-8")
        (self.home / "conf").write_text("# defaults\n", encoding="utf-8")
        return [str(bench.mcpvisor), "serve", "--conf", str(self.home / "conf"),
                "--mcp-json", str(self.home / "servers.json"),
                "--listen", f"127.0.0.1:{self.port}"]

    def __enter__(self):
        self.started_ns = time.monotonic_ns()
        self.p = subprocess.Popen(self.argv, env=self.env, stderr=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.p.send_signal(signal.SIGTERM)
        try:
            self.p.wait(10)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()


class Client:
    def __init__(self, port, modern=True, limit_s=10):
        self.modern, self.last_id = modern, 0
        until = time.monotonic() + limit_s
        while True:
            self.conn = http.client.HTTPConnection("127.0.0.1", port, timeout=limit_s)
            try:
                self.conn.connect()
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.001)
        self.conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, verb, body, headers, status):
        self.conn.request(verb, "/mcp", body, {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream", **headers})
        r = self.conn.getresponse()
        text = r.read()
        if r.status != status:
            raise Fault(f"{verb}: status {r.status}, not {status}: {text[:120]!r}")
        return r, text

    def open(self):
        """A legacy session; the headers of its requests."""
        r, _ = self.send("POST", json.dumps({
            "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "run", "version": "1"}}}), {}, 200)
        h = {"MCP-Protocol-Version": "2025-11-25"}
        if r.headers["Mcp-Session-Id"]:
            h["Mcp-Session-Id"] = r.headers["Mcp-Session-Id"]
        self.send("POST", '{"jsonrpc":"2.0","method":"notifications/initialized"}', h, 202)
        return h

    def end(self, headers):
        r = self.conn
        r.request("DELETE", "/mcp", None, headers)
        answer = r.getresponse()
        answer.read()
        if answer.status not in (200, 202, 204):
            raise Fault(f"DELETE: status {answer.status}")

    def list(self, headers=None):
        """Text of one tools/list; the time when it was read."""
        self.last_id += 1
        msg = {"jsonrpc": "2.0", "id": self.last_id, "method": "tools/list"}
        headers = dict(headers or {})
        if self.modern:
            msg["params"] = {"_meta": META}
            headers.update({"MCP-Protocol-Version": "2026-07-28",
                            "Mcp-Method": "tools/list"})
        _, text = self.send("POST", json.dumps(msg), headers, 200)
        return text, time.monotonic_ns()

    def check_list(self, text, tools):
        answer = json.loads(text)
        names = {t["name"] for t in answer["result"]["tools"]}
        if answer["id"] != self.last_id or len(names) != tools:
            raise Fault(f"a list of {len(names)} tools, not {tools}")

    def wait_for(self, tools, limit_s=20):
        """The time when a list of all tools was there."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            text, at = self.list()
            if text.count(b'"inputSchema"') >= tools:
                self.check_list(text, tools)
                return at
            time.sleep(0.0005)
        raise Fault(f"the list does not become {tools} tools")


class WebCase:
    tools = 0

    def __init__(self, name, subject, figures):
        self.name, self.subject, self.figures = name, subject, figures
        self.got = {f: [] for f in figures}

    def median(self, figure):
        return statistics.median(self.got[figure])

    def skipped(self):
        if self.subject == "nginx" and not shutil.which("nginx"):
            return "nginx is not installed"
        return None

    def children(self):
        return int(self.subject[1:]) if self.subject.startswith("m") else 1

    def note(self, **figures):
        for f, v in figures.items():
            self.got[f].append(float(v))


class Load(WebCase):
    def __init__(self, name, subject, figures, load, modern=False):
        super().__init__(name, subject, figures)
        self.load, self.modern = load, modern

    def measure(self, bench):
        with Subject(bench, self.subject) as s:
            if self.subject == "nginx":
                Client(s.port).conn.close()
            else:
                Client(s.port).wait_for(2 * self.children())
            pid = s.p.pid
            p = subprocess.run(
                [str(bench.bench / "bench_http"), "--port", str(s.port), "--pid", str(pid),
                 *self.load, *(["--modern"] if self.modern else []),
                 *(["--plain"] if self.subject == "nginx" else [])],
                stdout=subprocess.PIPE, text=True, check=False, timeout=60)
        words = dict(w.split("=", 1) for w in p.stdout.split())
        if p.returncode != 0:
            raise Fault(f"bench_http failed: {p.stdout.strip()}")
        self.note(**{f: words[f] for f in self.figures})


class List(WebCase):
    def __init__(self, name, subject, modern, times):
        super().__init__(name, subject, ("list_ms", "list_bytes"))
        self.modern, self.times = modern, times

    def measure(self, bench):
        took = []
        with Subject(bench, self.subject, tools=TOOLS) as s:
            Client(s.port).wait_for(TOOLS)
            c = Client(s.port, self.modern)
            h = {} if self.modern else c.open()
            for _ in range(self.times):
                start = time.monotonic_ns()
                text, at = c.list(h)
                took.append((at - start) / 1e6)
            c.check_list(text, TOOLS)
        self.note(list_ms=statistics.median(took), list_bytes=len(text))


class Ready(WebCase):
    """From the last upstream's last byte to the client's last byte of the whole list."""

    def __init__(self, name, subject, tools, wait_ms=0):
        super().__init__(name, subject, ("after_ms",))
        self.tools, self.wait_ms = tools, wait_ms

    def measure(self, bench):
        with Subject(bench, self.subject, self.tools, self.wait_ms, stamps=True) as s:
            at = Client(s.port).wait_for(self.tools)
            last = max(self.stamp(p) for p in s.stamps)
        self.note(after_ms=max(0.0, (at - last) / 1e6))

    @staticmethod
    def stamp(path, limit_s=5):
        """A child writes it after its answer, so it may come after ours."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            text = path.read_text(encoding="ascii") if path.exists() else ""
            if text.endswith("\n"):
                return int(text)
            time.sleep(0.001)
        raise Fault(f"{path} does not come")


class Sessions(WebCase):
    """What sessions cost, and what those that have come and gone leave behind."""

    def __init__(self, subject, n, all_n, settle_s):
        super().__init__("sessions", subject, SESSION_FIGURES)
        self.n, self.all_n, self.settle_s = n, all_n, settle_s

    def warm(self, s):
        c = Client(s.port, modern=False)
        Client(s.port).wait_for(2 * self.children())
        c.end(c.open())
        time.sleep(self.settle_s)
        return c, memory_kb(s.p.pid)

    def stream(self, s, headers):
        k = socket.create_connection(("127.0.0.1", s.port), timeout=10)
        more = "".join(f"{a}: {b}\r\n" for a, b in headers.items())
        k.sendall(f"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\n"
                  f"Accept: text/event-stream\r\n{more}\r\n".encode())
        if k.recv(64)[9:12] != b"200":
            raise Fault("no stream for a session")
        return k

    def measure(self, bench):
        with Subject(bench, self.subject) as s:
            c, idle = self.warm(s)
            held = [c.open() for _ in range(self.n)]
            with_sessions = memory_kb(s.p.pid)
            streams = [self.stream(s, h) for h in held[:STREAMS]]
            with_streams = memory_kb(s.p.pid)
            for k in streams:
                k.close()
            for h in held:
                c.end(h)
            time.sleep(self.settle_s)
            left = memory_kb(s.p.pid)
            c.conn.close()
        with Subject(bench, self.subject) as s:
            c, before = self.warm(s)
            for _ in range(self.all_n // self.n):
                for h in [c.open() for _ in range(self.n)]:
                    c.end(h)
            time.sleep(self.settle_s)
            after = memory_kb(s.p.pid)
            c.conn.close()
        self.note(
            session_kb=(with_sessions["anon"] - idle["anon"]) / self.n,
            stream_kb=(with_streams["anon"] - with_sessions["anon"]) / len(streams),
            idle_rss_kb=idle["rss"], idle_private_kb=idle["private"],
            idle_anon_kb=idle["anon"],
            after_streams_rss=left["rss"] / idle["rss"],
            after_streams_anon=left["anon"] / idle["anon"],
            after_10000_rss=after["rss"] / before["rss"],
            after_10000_anon=after["anon"] / before["anon"])


def cases(smoke):
    ms = ["--ms", "100" if smoke else "700", "--warm", "50"]
    eras = (("legacy", False), ("modern", True))
    yield Load("http.echo.fixed.c16", "nginx", LOAD_FIGURES, ["--conns", "16", *ms])
    for era, modern in eras:
        for conns in (1, 16, 64):
            for subject in ("echo_http", "m1") if conns == 1 else ("echo_http", "m1", "m10"):
                yield Load(f"http.echo.{era}.c{conns}", subject, LOAD_FIGURES,
                           ["--conns", str(conns), *ms], modern)
        for subject in ("echo_http", "m1"):
            yield Load(f"http.blob.{era}.c4", subject, BLOB_FIGURES,
                       ["--conns", "4", "--blob", "1000000", *ms], modern)
        for subject in ("echo_http", "m1", "m10"):
            yield List(f"http.list.{era}", subject, modern, 1 if smoke else 9)
    yield Ready("ready.20", "m10", 20, 30)
    for subject in ("m1", "m10"):
        yield Ready(f"ready.{TOOLS}", subject, TOOLS)
    yield Sessions("m10", *((20, 40, 0) if smoke else (1000, 10000, 2.5)))
