# SPDX-License-Identifier: MIT
"""The daemon under a service manager: readiness, reloads, watchdog, signals, exit codes."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from mcp import PATIENCE, REPO, wait_for

ECHO = {"tools": ["echo"]}
HOLD = {"tools": ["echo", "hold"], "calls": {"hold": [["gate", "go"],
                                                      ["reply", {"content": []}]]}}


class Manager:
    """What NOTIFY_SOCKET gets, message by message."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(path)
        self.name = path.replace("\0", "@")

    def next(self, timeout=5):
        self.sock.settimeout(timeout * PATIENCE)
        return dict(x.split("=", 1) for x in self.sock.recv(4096).decode().splitlines())

    def until(self, key):
        while True:
            found = self.next()
            if key in found:
                return found

    def rest(self):
        self.sock.settimeout(0.2)
        found = []
        try:
            while True:
                found.append(self.sock.recv(4096).decode())
        except TimeoutError:
            return found


@pytest.fixture
def manager(tmp_path):
    made = []

    def make(path=None):
        made.append(Manager(path or str(tmp_path / "notify")))
        return made[-1]

    yield make
    for m in made:
        m.sock.close()


# -- what the manager is told --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_ready_reloading_stopping(serve_conf, manager, kind):
    m = manager("\0mcpvisor-test-%d" % os.getpid() if kind == "abstract" else None)
    mv = serve_conf(alpha=ECHO, env={"NOTIFY_SOCKET": m.name})
    # It is ready when it listens, whatever its upstreams do.
    assert m.next() == {"READY": "1"}
    assert mv.modern().tools()
    for by in ("signal", "command"):
        before = time.clock_gettime(time.CLOCK_MONOTONIC)
        mv.more = {"drain_ms": 500 if by == "signal" else 600}
        mv.write()
        if by == "signal":
            mv.proc.send_signal(signal.SIGHUP)
        else:
            mv.control("reload")
        said = m.next()
        assert said["RELOADING"] == "1"
        stamp = int(said["MONOTONIC_USEC"]) / 1e6
        assert before <= stamp <= time.clock_gettime(time.CLOCK_MONOTONIC)
        assert m.next() == {"READY": "1"}
    # A dry run is nobody's business, nor is one that is refused before it begins.
    mv.control("reload", "--dry-run")
    mv.write("drain_ms = -1;")
    mv.control("reload", check=3)
    assert m.rest() == []
    mv.proc.send_signal(signal.SIGTERM)
    assert m.next() == {"STOPPING": "1"}
    assert mv.wait_exit() == 0
    # None of it is an upstream's.
    env = json.loads(mv["alpha"].starts()[0].raw)["env"]
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC"} & set(env)


def test_ready_before_slow_upstreams(serve_conf, manager):
    m = manager()
    mv = serve_conf(alpha={**ECHO, "on": {"start": [["block", 3000]]}},
                    env={"NOTIFY_SOCKET": m.name})
    start = time.monotonic()
    assert m.next() == {"READY": "1"} and time.monotonic() - start < 2
    mv.kill()


def test_a_busy_manager_hears_it_later(serve_conf, manager):
    m = manager()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        sent = 0
        try:
            while True:
                other.sendto(b"OTHER=%d" % sent, m.name)
                sent += 1
        except BlockingIOError:
            pass
    mv = serve_conf(alpha=ECHO, env={"NOTIFY_SOCKET": m.name})
    mv.wait_log("notify: not sent")
    assert mv.modern().tools()
    for n in range(sent):
        assert m.next() == {"OTHER": str(n)}
    assert m.next() == {"READY": "1"}
    assert m.rest() == []


def test_no_ready_from_one_that_cannot_start(serve_conf, manager):
    m = manager()
    taken = serve_conf(alpha=ECHO)
    mv = serve_conf(alpha=ECHO, start=False, more={"listen": [{"address": taken.address}]})
    mv.env["NOTIFY_SOCKET"] = m.name
    rc, _, err = mv.run(*mv.argv()[1:])
    assert rc == 3 and taken.address in err and m.rest() == []


@pytest.mark.parametrize("pid, beats", [("own", True), (None, True), ("other", False)])
def test_watchdog(serve_conf, manager, pid, beats):
    m = manager()
    env = {"NOTIFY_SOCKET": m.name, "WATCHDOG_USEC": "200000"}
    mv = serve_conf(alpha=ECHO, env=env, start=False)
    if pid == "own":
        plain = mv.argv()
        mv.argv = lambda: ["/bin/sh", "-c", 'WATCHDOG_PID=$$ exec "$@"', "sh", *plain]
    elif pid:
        mv.env["WATCHDOG_PID"] = "1"
    mv.start()
    assert m.next() == {"READY": "1"}
    if not beats:
        assert m.rest() == []
        return
    start = time.monotonic()
    for _ in range(4):
        assert m.next(1) == {"WATCHDOG": "1"}
    assert 0.15 < time.monotonic() - start < 1.5 * PATIENCE
    # One that hangs does not say that it is fine.
    mv.proc.send_signal(signal.SIGSTOP)
    m.rest()
    assert m.rest() == []
    mv.proc.send_signal(signal.SIGCONT)
    assert m.next(2) == {"WATCHDOG": "1"}


@pytest.mark.parametrize("name", ["", "relative", "/no/such/socket", "/" + "x" * 200])
def test_a_manager_that_is_not_there(serve_conf, name):
    mv = serve_conf(alpha=ECHO, env={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "10000"})
    assert mv.modern().tools() == ["alpha__echo"]


# -- signals ---------------------------------------------------------------------------------


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_the_first_stop_drains_and_the_second_does_not(serve_conf, sig):
    mv = serve_conf(alpha=HOLD, more={"drain_ms": 30000})
    c = mv.modern()
    answer = c.start_call("alpha__hold", {})
    mv["alpha"].wait_input("tools/call")
    mv.proc.send_signal(sig)
    mv.wait_log("serve: stopping ?$|serve: stopping\n")
    assert mv.proc.poll() is None and not answer.has_started(200)
    start = time.monotonic()
    mv.proc.send_signal(sig)
    assert mv.wait_exit() == 0 and time.monotonic() - start < 5 * PATIENCE
    assert answer.message().error["data"]["reason"] == "stopping"


def test_signals_that_mean_nothing(serve_conf):
    mv = serve_conf(alpha=ECHO)
    for sig in (signal.SIGPIPE, signal.SIGWINCH, signal.SIGCHLD, signal.SIGURG):
        mv.proc.send_signal(sig)
    assert mv.modern().tools()


def test_a_hangup_during_a_stop_is_no_reload(serve_conf):
    mv = serve_conf(alpha=HOLD, more={"drain_ms": 700})
    c = mv.modern()
    answer = c.start_call("alpha__hold", {})
    mv["alpha"].wait_input("tools/call")
    mv.proc.send_signal(signal.SIGTERM)
    mv.wait_log("serve: stopping")
    mv.add("beta", ECHO)
    mv.write()
    mv.proc.send_signal(signal.SIGHUP)
    assert answer.message().error["data"]["reason"] == "stopping"
    assert mv.wait_exit() == 0 and not mv["beta"].starts()


def test_many_hangups_end_with_the_last_conf(serve_conf):
    mv = serve_conf(alpha=ECHO)
    for n in range(20):
        mv.more = {"drain_ms": 100 + n}
        mv.write()
        mv.proc.send_signal(signal.SIGHUP)
    wait_for(lambda: "nothing has changed" in mv.control("reload", "--dry-run")[1], 5,
             "what is in force is the file")
    assert 1 <= mv.status()["reloads"] <= 20


# -- exit codes, as mcpvisor(8) has them -----------------------------------------------------


def ends(binary, folder, *argv, **env):
    return subprocess.run([binary, *argv], capture_output=True, text=True, timeout=30,
                          stdin=subprocess.DEVNULL, cwd=folder, env={
                              "PATH": "/usr/bin:/bin", "HOME": str(folder), **env})


def test_exit_2_for_a_wrong_command_line(binary, tmp_path):
    for argv in (["serve", "--no-such"], ["serve", "x"], ["serve", "--log-level", "loud"],
                 ["serve", "--listen"], ["serve", "--dry-run"], ["no-such"], [],
                 # What would be of no effect.
                 ["serve", "--demo", "--conf", "x"], ["stdio", "--demo", "--mcp-json", "x"],
                 ["tools", "--socket", "x", "--demo"], ["tools", "--socket", "x", "--conf", "y"],
                 ["call", "--mcp-json", "y", "--socket", "x", "a__b"]):
        done = ends(binary, tmp_path, *argv)
        assert done.returncode == 2 and "usage" in done.stderr, argv
    assert "missing: -x" in ends(binary, tmp_path, "serve", "-xy").stderr


def test_exit_3_for_the_conf_and_addresses(binary, tmp_path, serve_conf):
    taken = serve_conf(alpha=ECHO)
    conf = tmp_path / "x.conf"
    conf.write_text("drain_ms = -1;")
    for argv in (["--conf", conf], ["--conf", tmp_path / "none"], ["--conf", tmp_path],
                 ["--demo", "--listen", taken.address], ["--demo", "--listen", "nonsense"],
                 ["--demo", "--listen", "0.0.0.0:0"], ["--demo", "--listen", "192.0.2.1:1"],
                 ["--demo", "--listen", "unix:/no/such/folder/s"],
                 ["--demo", "--listen", "127.0.0.1:0", "--socket", "/no/such/folder/s"],
                 ["--demo", "--listen", "127.0.0.1:0", "--socket", "/" + "x" * 200]):
        done = ends(binary, tmp_path, "serve", *argv)
        assert done.returncode == 3 and done.stderr and done.stdout == "", (argv, done)


def test_exit_5_when_the_system_refuses(binary, tmp_path, serve_conf):
    """An event loop needs descriptors."""
    mv = serve_conf(alpha=ECHO)
    for argv in (["serve", "--demo"], ["stdio", "--demo"], ["tools", "--demo"], ["connect"],
                 ["tools", "--socket", mv.socket]):
        done = subprocess.run(["/bin/sh", "-c", 'ulimit -n 6; exec "$@"', "sh", binary, *argv],
                              capture_output=True, text=True, timeout=30,
                              env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
        if "Sanitizer" in done.stderr:
            pytest.skip("the sanitizer needs more of them")
        assert done.returncode == 5 and "event loop" in done.stderr, done


@pytest.mark.parametrize("argv", [
    ["help"], ["version"], ["completion", "bash"], ["check", "--demo"],
    ["check", "--demo", "--dump"], ["check", "--demo", "--json"], ["tools", "--demo"],
    ["tools", "--demo", "--json"], ["call", "--demo", "legacy__echo", "text=x"]])
def test_exit_5_when_nobody_takes_the_output(binary, tmp_path, argv):
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    with open("/dev/full", "w") as full:
        done = subprocess.run([binary, *argv], stdin=subprocess.DEVNULL, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=30, env=env)
    assert done.returncode == 5 and "No space left" in done.stderr, done


def test_standard_descriptors_that_are_closed(binary, tmp_path):
    """Nothing else gets their numbers, or the log would go into it."""
    where = tmp_path / "s"
    proc = subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", binary, "serve", "--demo", "--listen",
         "unix:%s" % where, "--socket", tmp_path / "c"],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    try:
        wait_for(where.exists, 5, "it listens")
        for fd in range(3):
            assert os.readlink("/proc/%d/fd/%d" % (proc.pid, fd)) == "/dev/null"
    finally:
        proc.terminate()
        assert proc.wait(20) == 0


def test_exit_0_after_a_stop(serve_conf):
    mv = serve_conf(alpha={"command": "/no/such/program"})
    assert mv.stop() == 0


# -- the unit --------------------------------------------------------------------------------


UNIT = REPO / "packaging" / "systemd" / "mcpvisor.service.in"


def directives(text):
    return dict(x.split("=", 1) for x in text.splitlines() if re.match(r"[A-Z]\w+=", x))


def test_the_unit_is_what_the_manual_says():
    found = directives(UNIT.read_text())
    assert found["Type"].startswith("notify") and int(found["WatchdogSec"]) > 0
    assert {"2", "3"} <= set(found["RestartPreventExitStatus"].split())
    assert " serve --conf /etc/mcpvisor/mcpvisor.conf" in found["ExecStart"]
    assert " reload" in found["ExecReload"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
def test_the_unit_passes_systemd_analyze(binary, tmp_path):
    unit = tmp_path / "mcpvisor.service"
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(binary, folder / "mcpvisor")
    unit.write_text(UNIT.read_text().replace("@CMAKE_INSTALL_FULL_BINDIR@", str(folder)))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True,
                          text=True, timeout=60)
    ours = [x for x in done.stderr.splitlines() if "mcpvisor" in x]
    assert done.returncode == 0 and not ours, done.stderr


# -- which conf ------------------------------------------------------------------------------


def conf(path, name):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('upstream : { %s : { command = "/no/such/%s"; }; };\n' % (name, name))
    return path


def upstreams(binary, folder, *argv, **env):
    done = ends(binary, folder, "check", "--dump", *argv, **env)
    assert done.returncode == 0, done
    return sorted(set(re.findall(r"^upstream\.(\w+)\.", done.stdout, re.M)))


@pytest.mark.skipif(os.path.exists("/etc/mcpvisor/mcpvisor.conf"), reason="this machine has one")
def test_where_the_conf_is_looked_for(binary, tmp_path):
    demo = upstreams(binary, tmp_path)
    assert demo == ["legacy", "modern"]
    conf(tmp_path / ".config/mcpvisor/mcpvisor.conf", "home")
    xdg = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert upstreams(binary, tmp_path) == ["home"]
    assert upstreams(binary, tmp_path, XDG_CONFIG_HOME="") == ["home"]
    assert upstreams(binary, tmp_path, XDG_CONFIG_HOME="relative") == ["home"]
    assert upstreams(binary, tmp_path, **xdg) == demo  # not ~/.config then
    conf(tmp_path / "xdg/mcpvisor/mcpvisor.conf", "xdg")
    assert upstreams(binary, tmp_path, **xdg) == ["xdg"]
    assert upstreams(binary, tmp_path, HOME="", **xdg) == ["xdg"]
    # What is named wins, and a folder stands for its mcpvisor.conf.
    named = conf(tmp_path / "named/mcpvisor.conf", "named")
    assert upstreams(binary, tmp_path, "--conf", named, **xdg) == ["named"]
    assert upstreams(binary, tmp_path, "--conf", named.parent, **xdg) == ["named"]
    # --demo wins over what would be found; a file of servers is not mixed with it either.
    assert upstreams(binary, tmp_path, "--demo", **xdg) == demo
    servers = tmp_path / "s.json"
    servers.write_text('{"mcpServers": {"json": {"command": "/no/such"}}}')
    assert upstreams(binary, tmp_path, "--mcp-json", servers, **xdg) == ["json"]
    assert upstreams(binary, tmp_path, "--mcp-json", servers, "--conf", named) == [
        "json", "named"]
    # One that is there and wrong is an error, not passed over.
    wrong = tmp_path / "xdg/mcpvisor/mcpvisor.conf"
    for target in (None, "/no/such", wrong):
        wrong.unlink()
        if target:
            wrong.symlink_to(target)
        else:
            wrong.write_text("nonsense")
        done = ends(binary, tmp_path, "check", **xdg)
        assert done.returncode == 1 and str(tmp_path / "xdg") in done.stderr
    for command in ("stdio", "serve"):
        assert ends(binary, tmp_path, command, **xdg).returncode == 3
