# SPDX-License-Identifier: MIT
"""The control socket and its commands: what is said is true, and who may do what."""
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from mcp import PATIENCE, wait_for
from upstream import PYTHON

ERAS = ["legacy", "modern"]
# What becomes of results of tools.
REASONS = ["off", "none", "clean", "partial", "error", "suspect", "malformed", "too_large",
           "unparsed", "not_complete", "upstream_error", "already", "rule"]
FAILS = {"content": [{"type": "text", "text": "no"}], "isError": True}
MIX = {"tools": ["echo", "bad", "refuse", "slow", "die", "hold"], "prompts": ["p"],
       "resources": ["m:1", "m:2"], "texts": {"m:1": "x"}, "calls": {
           "bad": [["reply", FAILS]], "refuse": [["error", -31999, "no"]],
           "slow": [["sleep", 60000]], "die": [["kill"]], "hold": [["gate", "go"],
                                                                  ["reply", {"content": []}]]}}
NOBODY = 65534


class Raw:
    """A connection to the socket, line by line."""

    def __init__(self, mv, path=None):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(15 * PATIENCE)
        self.sock.connect(str(path or mv.socket))
        self.file = self.sock.makefile("rb")

    def send(self, raw):
        self.sock.sendall(raw)

    def read(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def ask(self, **request):
        self.send(json.dumps(request).encode() + b"\n")
        return self.read()

    def close(self):
        self.file.close()
        self.sock.close()


@pytest.fixture
def raw():
    opened = []

    def connect(mv, path=None):
        opened.append(Raw(mv, path))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


@pytest.fixture
def folder():
    """A folder that other users may enter, as pytest's own are not."""
    where = Path(tempfile.mkdtemp(prefix="mcpvisor-test-"))
    where.chmod(0o755)
    yield where
    shutil.rmtree(where, ignore_errors=True)


# -- status: the truth ---------------------------------------------------------------------


@pytest.mark.parametrize("upstream", ERAS)
@pytest.mark.parametrize("era", ERAS)
def test_calls_on_three_axes(serve_conf, era, upstream):
    mv = serve_conf(alpha={**MIX, "era": upstream}, beta={"tools": ["echo"]}, per={"alpha": {
        "call_ms": 400, "restart_base_ms": 10, "queue_calls": 3}}, more={"drain_ms": 0})
    c = mv.speak(era)
    c.tools()
    for name, n in (("echo", 5), ("bad", 3), ("refuse", 2)):
        for _ in range(n):
            c.call("alpha__" + name, {}).msg
    c.call("alpha__slow", {}).error
    first = mv["alpha"].starts()[0].pid
    c.call("alpha__die", {}).error
    wait_for(lambda: mv.upstream_status("alpha")["state"] == "ready", 5, "it is back")
    held = [c.start_call("alpha__hold", {"n": n}) for n in range(3)]
    wait_for(lambda: mv.upstream_status("alpha")["calls"]["in_flight"] == 3, 5, "three wait")
    assert c.call("alpha__echo", {}).error["data"]["reason"] == "busy"
    status = mv.status()
    alpha, beta = status["upstreams"]
    assert alpha["calls"] == {
        "total": 16, "in_flight": 3,
        "transport": {"returned": 8, "error": 2, "timeout": 1, "busy": 1, "cancelled": 0,
                      "died": 1, "failed": 3},
        "tool": {"ok": 5, "is_error": 3},
        "answer": {"full": 0, "partial": 0, "null_identity": 0, "unknown": 5},
        "labels": {**dict.fromkeys(REASONS, 0), "none": 5, "upstream_error": 3}}
    assert beta["calls"]["total"] == 0
    assert alpha["restarts"] == 1 and beta["restarts"] == 0
    assert alpha["pid"] == mv["alpha"].starts()[1].pid != first
    assert alpha["lists"] == {"tools": 6, "prompts": 1, "resources": 2, "resourceTemplates": 0}
    assert alpha["revision"] == ("2026-07-28" if upstream == "modern" else "2025-11-25")
    assert status["clients"]["in_flight"] == 3
    mv["alpha"].open("go")
    for answer in held:
        answer.message().msg
    after = mv.upstream_status("alpha")["calls"]
    assert after["in_flight"] == 0
    t = after["transport"]
    assert after["total"] == t["returned"] + t["error"] + t["failed"] + t["cancelled"] == 16
    # A cancelled call is none of the others.
    answer = c.start_call("alpha__slow", {})
    mv["alpha"].wait_input("tools/call", 12 + 4)
    if era == "modern":
        answer.wire.close()
    else:
        c.cancel(c.next_id)
    wait_for(lambda: mv.upstream_status("alpha")["calls"]["transport"]["cancelled"] == 1, 5)
    assert mv.upstream_status("alpha")["calls"]["total"] == 17
    counters = mv.status()["counters"]
    assert counters["mcpvisor_calls_tool_error_total"] == 3
    assert counters["mcpvisor_calls_busy_total"] == 1
    assert counters["mcpvisor_calls_cancelled_total"] == 1
    assert counters["mcpvisor_calls_died_total"] == 1
    assert counters["mcpvisor_child_deaths_total"] == 1
    assert counters["mcpvisor_child_spawns_total"] == 3


def test_states_and_their_reasons(serve_conf):
    slow = {"tools": ["echo"], "on": {"initialize": [["gate", "go"], ["default"]]}}
    mv = serve_conf(
        ready={"tools": ["echo"]}, init={**slow, "mcpvisor": {"era": "legacy"}},
        asleep={"tools": ["echo"]}, parked={"command": "/bin/false"},
        down={"command": "/bin/sh", "args": ["-c", "exit 3"]},
        none={"command": "/no/such/program"}, more={"list_wait_ms": 100},
        per={"asleep": {"start": "on_use", "idle_stop_ms": 100}, "parked": {"restart_limit": 1},
             "down": {"restart_base_ms": 60000, "restart_max_ms": 60000},
             "none": {"restart_limit": 1, "restart_base_ms": 1}})

    def states():
        return {u["name"]: u["state"] for u in mv.status()["upstreams"]}

    want = {"ready": "ready", "init": "init", "asleep": "asleep", "parked": "parked",
            "down": "down", "none": "parked"}
    wait_for(lambda: states() == want, 5, "each is what it should be")
    wait_for(lambda: mv.upstream_status("asleep")["pid"] is None, 5, "its process has ended")
    found = {u["name"]: u for u in mv.status()["upstreams"]}
    assert found["ready"]["reason"] is None and found["asleep"]["reason"] == \
        "asleep until it is used"
    assert "status 1" in found["parked"]["reason"] and "status 3" in found["down"]["reason"]
    assert "/no/such/program" in found["none"]["reason"]
    for name, u in found.items():
        running = name in ("ready", "init")
        assert (u["pid"] is not None) == running, u
        assert not running or u["pid"] == mv[name].starts()[0].pid
        assert u["state_ms"] < 20000 and u["instances"] == 0
    assert 0 < found["down"]["next_start_ms"] <= 60000
    assert found["parked"]["next_start_ms"] is None
    before = found["ready"]["state_ms"]
    wait_for(lambda: mv.upstream_status("ready")["state_ms"] > before, 5, "time passes")
    # Use wakes what is asleep; a gate that opens makes it ready.
    assert mv.modern().call("asleep__echo", {"a": 1}).result
    mv["init"].open("go")
    wait_for(lambda: states()["init"] == "ready" and states()["asleep"] == "asleep", 5)
    assert len(mv["asleep"].starts()) == 2


def test_queues_and_memory(serve_conf):
    """Calls that wait for a process that is starting are held, and so is their memory."""
    mv = serve_conf(alpha={"tools": ["echo"], "on": {"initialize": [["gate", "go"],
                                                                    ["default"]]}},
                    per={"alpha": {"era": "legacy", "restart_base_ms": 10}},
                    more={"drain_ms": 0})
    mv["alpha"].open("go")
    wait_for(lambda: mv.upstream_status("alpha")["lists"]["tools"] == 1, 5, "it is listed")
    mv["alpha"].run(["kill"])
    wait_for(lambda: len(mv["alpha"].inputs("initialize")) == 2, 5, "it starts again")
    c = mv.modern()
    text = "x" * (4 << 20)
    calls = [c.start_call("alpha__echo", {"t": text}) for _ in range(2)]
    wait_for(lambda: mv.upstream_status("alpha")["queue"]["held"] == 2, 5, "two wait")
    status = mv.status()
    assert 8 << 20 < status["upstreams"][0]["queue"]["held_bytes"] < 9 << 20
    memory = status["memory"]
    assert 8 << 20 < memory["in_use"] < 40 << 20 and memory["budget"] is None
    assert memory["resident"] > 8 << 20
    mv["alpha"].open("go")
    for call in calls:
        assert len(call.message(20).result["structuredContent"]["t"]) == len(text)
    wait_for(lambda: mv.status()["memory"]["in_use"] < 4 << 20, 5, "the memory is back")
    assert mv.upstream_status("alpha")["queue"] == {"held": 0, "held_bytes": 0, "out_bytes": 0}


def test_the_daemon_itself(serve_conf, raw):
    mv = serve_conf(alpha={"tools": ["echo"]})
    status = mv.status()
    assert status["pid"] == mv.proc.pid and status["conf"] == str(mv.file)
    assert status["listen"] == mv.bound and status["reloads"] == 0
    assert status["stopping"] is False and 0 <= status["uptime_ms"] < 20000
    assert mv.run("version", check=0)[1] == "mcpvisor %s\n" % status["version"]
    assert raw(mv).ask(command="version") == {"ok": True, "version": status["version"],
                                              "pid": mv.proc.pid}
    a, b = mv.legacy(), mv.legacy()
    stream = a.get()
    assert stream.status == 200 and b.tools()
    clients = mv.status()["clients"]
    assert clients["sessions"] == 2 and clients["streams"] == 1
    mv.more = {"drain_ms": 5}
    mv.reload()
    mv.reload("--dry-run")
    assert mv.status()["reloads"] == 1


# -- status: for people --------------------------------------------------------------------


@pytest.mark.parametrize("columns", [None, 60, 80, 100, 200])
def test_the_table_fits(serve_conf, columns):
    names = ["a", "n" * 60]
    mv = serve_conf(upstreams={names[0]: {"tools": ["echo"]}, names[1]: {
        "command": "/no/" + "very-long-name/" * 10}}, per={names[1]: {"restart_limit": 1}})
    wait_for(lambda: mv.upstream_status(names[1])["state"] == "parked"
             and mv.upstream_status("a")["state"] == "ready", 5, "both have settled")
    if columns:
        mv.env["COLUMNS"] = str(columns)
    lines = mv.control("status")[1].splitlines()
    assert lines[0].startswith("mcpvisor ") and "pid %d" % mv.proc.pid in lines[0]
    head = next(i for i, x in enumerate(lines) if x.startswith("UPSTREAM"))
    table = lines[head:]
    assert len(table) == 3 and table[1].split()[0] == "a" and "parked" in table[2]
    titles = ["UPSTREAM", "STATE", "SINCE", "PID", "CALLS", "FAILED", "ERRORS",
              "PARTIAL", "SUSPECT", "NO-ID", "OPEN", "RESTARTS", "REASON"]
    if columns is None or columns == 200:
        assert table[0].split() == titles
    # Columns are under their titles.
    assert table[1].index("ready") == table[0].index("STATE")
    pid = str(mv.upstream_status("a")["pid"])
    if "PID" in table[0]:
        assert table[1].index(pid) + len(pid) == table[0].index("PID") + 3
    if columns is None:
        assert table[2].endswith("No such file or directory"), table[2]
    else:
        assert all(len(x) <= columns for x in table), [len(x) for x in table]


def test_no_control_byte_reaches_the_terminal(serve_conf):
    evil = "\x1b[31mred\x07"
    mv = serve_conf(alpha={"tools": [{"name": "echo", "description": "d" + evil,
                                      "inputSchema": {"type": "object"}}],
                           "calls": {"echo": [["reply", {"content": [
                               {"type": "text", "text": evil}]}]]}},
                    beta={"command": "/no/such", "args": [evil]},
                    per={"beta": {"name": "b\u00e9", "restart_limit": 1}})
    wait_for(lambda: mv.upstream_status("b\u00e9")["state"] == "parked", 5)
    for command in ("status", "tools"):
        text = mv.control(command)[1]
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text), text
    assert evil in mv.control("call", "alpha__echo")[1]  # a pipe gets what there is
    assert json.loads(mv.control("tools", "--json")[1])[0]["description"] == "d" + evil


# -- who may -------------------------------------------------------------------------------


def as_nobody(mv, *argv):
    drop = "import os,sys;os.setgroups([]);os.setgid(%d);os.setuid(%d);" \
           "os.execv(sys.argv[1],sys.argv[1:])" % (NOBODY, NOBODY)
    done = subprocess.run([PYTHON, "-c", drop, str(mv.binary), *map(str, argv)],
                          capture_output=True, timeout=30, env={"PATH": "/usr/bin:/bin"}, cwd="/")
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.skipif(os.getuid() != 0, reason="needs a second user: run as root")
def test_others_may_look_and_no_more(serve_conf, folder):
    path = folder / "c.sock"
    mv = serve_conf(alpha={"tools": ["echo"]}, more={"control": {"mode": "0666"}},
                    args=["--socket", str(path)])
    mv.socket = path
    copy = folder / "mcpvisor"
    shutil.copy(mv.binary, copy)  # where it may be run from
    mv.binary, own = copy, mv.binary
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    rc, out, _ = as_nobody(mv, "status", "--socket", path, "--json")
    assert rc == 0 and json.loads(out)["pid"] == mv.proc.pid
    for argv in (["restart", "--socket", path, "alpha"], ["reload", "--socket", path],
                 ["reload", "--dry-run", "--socket", path], ["tools", "--socket", path],
                 ["call", "--socket", path, "alpha__echo"]):
        rc, out, err = as_nobody(mv, *argv)
        assert rc == 5 and out == "" and "not permitted" in err, (argv, rc, out, err)
    assert mv.status()["reloads"] == 0 and len(mv["alpha"].starts()) == 1
    assert not mv["alpha"].inputs("tools/call")
    mv.wait_log('control: not permitted .*uid=%d' % NOBODY)
    mv.binary = own
    # Ours may.
    assert mv.control("call", "alpha__echo", "a=1")[1] == '{"a":"1"}\n'


@pytest.mark.skipif(os.getuid() != 0, reason="needs a second user: run as root")
def test_the_mode_keeps_them_out(serve_conf, folder):
    path = folder / "c.sock"
    mv = serve_conf(alpha={"tools": ["echo"]}, args=["--socket", str(path)])
    mv.socket = path
    copy = folder / "mcpvisor"
    shutil.copy(mv.binary, copy)
    own, mv.binary = mv.binary, copy
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for argv in (["status"], ["tools"]):
        rc, _, err = as_nobody(mv, *argv, "--socket", path)
        assert rc == 5 and "Permission denied" in err, err
    mv.binary = own
    assert mv.control("status")[0] == 0


# -- hostile -------------------------------------------------------------------------------


@pytest.mark.parametrize("line, word", [
    (b"\x00\xff\xfe", "not JSON"), (b"status", "not JSON"), (b"[]", "command"), (b"7", "command"),
    (b"{}", "command"), (b'{"command":7}', "command"), (b'{"command":"stauts"}', '"status"'),
    (b'{"command":"status","more":1}', "more"), (b'{"command":"restart"}', "upstream"),
    (b'{"command":"restart","upstream":7}', "string"),
    (b'{"command":"reload","dry_runn":true}', '"dry_run"'),
    (b'{"command":"reload","dry_run":"yes"}', "true or false"),
    (b'{"command":"status","command":"status"}', "twice"),
    (b'{"command":"mcp","profile":7}', "string"),
    (b'{"command":"' + b"x" * 5000 + b'"}', "no command"),
    (b'{"command":"restart","upstream":"a\\u0000b"}', ""),
    (b"[" * 20000, "not JSON"), (b"GET / HTTP/1.1", "not JSON")])
def test_garbage_gets_words_and_harms_nobody(serve_conf_once, raw, line, word):
    mv = serve_conf_once
    r = raw(mv)
    r.send(line + b"\n")
    answer = r.read()
    assert answer["ok"] is False and answer["reason"] == "request" and word in answer["error"]
    # The connection is as good as before.
    assert r.ask(command="version")["ok"] is True


@pytest.fixture(scope="module")
def serve_conf_once(binary, tmp_path_factory):
    import conf_served
    mv = conf_served.ConfServed(binary, tmp_path_factory.mktemp("control"), {
        "alpha": {"tools": ["echo"]}})
    yield mv
    mv.check_end()


def test_a_line_that_is_too_long(serve_conf_once, raw):
    mv = serve_conf_once
    r = raw(mv)
    r.send(b'{"command":"' + b"x" * (1 << 20) + b'"}\n{"command":"version"}\n')
    assert r.read()["reason"] == "too_long" and r.read()["ok"] is True


def test_pipelined_and_half_closed(serve_conf_once, raw):
    mv = serve_conf_once
    r = raw(mv)
    r.send(b'{"command":"version"}\n\n{"command":"status"}\r\n{"command":"version"}')
    r.sock.shutdown(socket.SHUT_WR)
    answers = [r.read(), r.read(), r.read(), r.read()]
    assert [a and a["ok"] for a in answers] == [True, True, True, None]


def test_many_connections_and_slow_ones(serve_conf_once, raw):
    """100 that say nothing: the 17th and later are told; who was first is served."""
    mv = serve_conf_once
    first = raw(mv)
    assert first.ask(command="version")["ok"]
    held = [raw(mv) for _ in range(15)]
    more = [raw(mv) for _ in range(84)]
    for r in more:
        answer = r.read()
        assert answer == {"ok": False, "error": "too many connections", "reason": "busy"}
    for r in held:
        r.send(b'{"comm')
    assert first.ask(command="status")["ok"]
    rc, _, err = mv.control("status", check=5)
    assert "too many connections" in err
    held[0].close()
    wait_for(lambda: mv.run("status", "--socket", mv.socket)[0] == 0, 5, "a place is free")
    assert mv.modern().tools() == ["alpha__echo"]


@pytest.mark.slow
def test_a_slow_one_has_its_time(serve_conf_once, raw):
    """10 s for a request, and as long to take an answer."""
    mv = serve_conf_once
    r, greedy = raw(mv), raw(mv)
    greedy.sock.settimeout(0.2)
    start = time.monotonic()
    try:
        for _ in range(2000):
            greedy.send(b'{"command":"status"}\n')
    except TimeoutError:
        pass
    for _ in range(20):
        r.send(b"{")
        time.sleep(0.2)
    assert r.sock.recv(10) == b"" and 9 < time.monotonic() - start < 12 * PATIENCE
    greedy.sock.settimeout(5)
    mv.wait_log("control: too slow.*\n.*control: too slow", 5)


# -- where it is ---------------------------------------------------------------------------


@pytest.mark.parametrize("env, name", [
    ({"RUNTIME_DIRECTORY": "{}"}, "control.sock"),
    ({"RUNTIME_DIRECTORY": "{}:/nowhere", "XDG_RUNTIME_DIR": "/nowhere"}, "control.sock"),
    ({"XDG_RUNTIME_DIR": "{}"}, "mcpvisor.control")])
def test_default_paths(serve_conf, folder, env, name):
    env = {k: v.replace("{}", str(folder)) for k, v in env.items()}
    mv = serve_conf(alpha={"tools": ["echo"]}, env=env, start=False)
    plain = mv.argv()
    at = plain.index("--socket")
    mv.argv = lambda: plain[:at] + plain[at + 2:]
    if "RUNTIME_DIRECTORY" not in env:
        del mv.env["RUNTIME_DIRECTORY"]
    mv.start()
    path = folder / name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "pid %d" % mv.proc.pid in mv.run("status", check=0)[1]
    assert json.loads(mv.run("tools", "--json", check=0)[1])[0]["name"] == "alpha__echo"
    assert mv.stop() == 0 and not path.exists()


def test_the_conf_names_it_or_none(serve_conf, folder):
    path = folder / "own.sock"
    mv = serve_conf(alpha={"tools": ["echo"]}, start=False, env={"XDG_RUNTIME_DIR": str(folder)},
                    more={"control": {"socket": str(path), "mode": "0660"}})
    plain = mv.argv()
    at = plain.index("--socket")
    mv.argv = lambda: plain[:at] + plain[at + 2:]
    del mv.env["RUNTIME_DIRECTORY"]
    mv.start()
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert mv.run("status", "--socket", path)[0] == 0
    assert sorted(p.name for p in folder.iterdir()) == ["own.sock"]
    assert mv.stop() == 0
    mv.more = {"control": {"socket": ""}}
    mv.write()
    mv.start()
    assert not list(folder.iterdir())
    assert mv.stop() == 0
    # From the folder of a conf that is itself named from here.
    mv.more = {"control": {"socket": "from_here.sock"}}
    mv.write()
    mv.argv = lambda: [x if x != str(mv.file) else mv.file.name for x in plain[:at]]
    mv.start()
    assert mv.run("status", "--socket", "from_here.sock")[0] == 0


# -- tools and call by the daemon ----------------------------------------------------------


def test_tools_and_calls_by_the_daemon(serve_conf):
    mv = serve_conf(alpha=MIX, beta={"tools": ["echo"]}, per={"alpha": {"call_ms": 300}},
                    more={"profile": {"small": {"tools": {"allow": ["beta__*"]}}},
                          "drain_ms": 0})
    text = mv.control("tools")[1]
    assert text.splitlines()[0].split() == ["NAME", "DESCRIPTION"]
    assert "alpha__hold" in text and "beta__echo" in text
    every = json.loads(mv.control("tools", "--json")[1])
    assert sorted(t["name"] for t in every) == sorted(
        ["beta__echo"] + ["alpha__" + t for t in MIX["tools"]])
    small = json.loads(mv.control("tools", "--profile", "small", "--json")[1])
    assert [t["name"] for t in small] == ["beta__echo"]
    assert mv.control("call", "beta__echo", "a=1", "b=two")[1] == '{"a":"1","b":"two"}\n'
    out = mv.control("call", "--json", '{"n": 1.50}', "beta__echo", "--output", "json")[1]
    assert '"structuredContent":{"n": 1.50}' in out.replace('": {"n"', '":{"n"')
    for argv, code, word in (
            (["call", "alpha__bad"], 1, "no"), (["call", "alpha__refuse"], 5, "-31999"),
            (["call", "alpha__slow"], 5, "timeout"), (["call", "alpha__none"], 4, "alpha__none"),
            (["call", "--profile", "small", "alpha__echo"], 4, "alpha__echo"),
            (["call", "beta__echo", "--json", "[1]"], 2, "object"),
            (["tools", "--profile", "nope"], 3, "nope"),
            (["call", "--profile", "nope", "beta__echo"], 3, "nope")):
        rc, out, err = mv.control(*argv, check=code)
        assert word in (out if code == 1 else err), (argv, out, err)
    # It is the running daemon's process that was asked.
    assert len(mv["alpha"].starts()) == 1 and len(mv["beta"].starts()) == 1
    wait_for(lambda: mv.status()["clients"]["in_flight"] == 0, 5, "they are gone")


@pytest.mark.parametrize("argv", [["status"], ["restart", "alpha"], ["reload"], ["tools"],
                                  ["call", "a__b"]])
def test_no_daemon(binary, tmp_path, argv):
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    gone = tmp_path / "gone.sock"
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(gone))
    s.close()  # stale
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "none.sock", gone, tmp_path / "file", tmp_path, "/" + "x" * 200):
        done = subprocess.run([binary, *argv[:1], "--socket", path, *argv[1:]], env=env,
                              capture_output=True, timeout=20, text=True)
        assert done.returncode == 5 and str(path) in done.stderr, (path, done)
        assert done.stdout == ""
    if argv[0] in ("status", "restart", "reload") and not os.path.exists(
            "/run/mcpvisor/control.sock"):
        done = subprocess.run([binary, *argv], env=env, capture_output=True, timeout=20, text=True)
        assert done.returncode == 5 and "--socket" in done.stderr, done


@pytest.mark.parametrize("argv", [["status", "x"], ["restart"], ["restart", "a", "b"],
                                  ["reload", "x"], ["status", "--dry-run"], ["status", "--socket"],
                                  ["call"], ["reload", "--profile", "x"]])
def test_wrong_usage(binary, argv):
    done = subprocess.run([binary, *argv], capture_output=True, timeout=20, text=True)
    assert done.returncode == 2 and "usage" in done.stderr and done.stdout == ""


def test_a_daemon_that_says_nothing_or_nonsense(binary, tmp_path):
    """The other side is somebody else: every wait ends."""
    path = tmp_path / "s.sock"
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(path))
    s.listen(8)
    for reply in (b"", b"nonsense\n", b"[]\n", b'{"ok":true}\n', b'{"ok":false}\n',
                  b'{"ok":true,"upstreams":[7,{"name":7}],"memory":[]}\n'):
        proc = subprocess.Popen([binary, "status", "--socket", path], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        s.settimeout(10)
        conn, _ = s.accept()
        conn.settimeout(10)
        assert conn.recv(100)
        conn.sendall(reply)
        conn.close()
        out, err = proc.communicate(timeout=20)
        assert proc.returncode in (0, 5), (reply, out, err)
        assert proc.returncode == 0 or err, reply
    s.close()


def test_a_restart_of_all_kinds(serve_conf):
    mv = serve_conf(alpha={"tools": ["echo"]}, beta={"tools": ["echo"]},
                    per={"beta": {"start": "on_use"}})
    mv.modern().tools()
    assert mv.control("restart", "alpha")[1] == ""
    assert json.loads(mv.control("restart", "--json", "alpha")[1]) == {}
    wait_for(lambda: len(mv["alpha"].starts()) == 3, 5, "started twice more")
    for name in ("", "gamma", "ALPHA", "alpha__echo"):
        assert mv.control("restart", name, check=4)[0] == 4
    mv.proc.send_signal(signal.SIGTERM)
    mv.wait_exit()
    assert mv.control("restart", "alpha", check=5)[0] == 5
