# SPDX-License-Identifier: MIT
"""listen: rows of addresses, paths, profiles and guards; unix sockets; inherited ones."""
import grp
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from http_client import ACCEPT, Wire
from mcp import PATIENCE, wait_for
from upstream import PYTHON

ECHO = {"tools": ["echo", "look"]}
BODY = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
NOBODY = 65534
PROFILES = {"one": {"tools": {"allow": ["*__echo"]}}, "two": {"tools": {"allow": ["*__look"]}}}


def rows(*every, **more):
    return {"listen": list(every), "profile": PROFILES, **more}


def serve_rows(serve_conf, *every, n=None, **kw):
    """Rows as they are given; addresses that several share are logged once."""
    n = len(every) if n is None else n
    return serve_conf(alpha=ECHO, more=rows(*every), listen=[""] * n, **kw)


def post(mv, address=None, path="/mcp", **headers):
    c = mv.client(address)
    c.path = path
    return c.http("POST", {"Content-Type": "application/json", "Accept": ACCEPT, **headers},
                  BODY)


def tools(mv, address=None, path="/mcp"):
    answer = post(mv, address, path)
    assert answer.status == 200, answer.head
    return [t["name"] for t in answer.result["tools"]]


@pytest.fixture
def folder():
    """A folder that other users may enter, as pytest's own are not."""
    where = Path(tempfile.mkdtemp(prefix="mcpvisor-test-"))
    where.chmod(0o755)
    yield where
    shutil.rmtree(where, ignore_errors=True)


# -- rows ----------------------------------------------------------------------------------


def test_several_addresses_and_paths(serve_conf):
    mv = serve_rows(serve_conf, {"address": "127.0.0.1:0"},
                    {"address": "127.0.0.1:0", "path": "/one", "profile": "one"},
                    {"address": "127.0.0.2:0", "path": "/one", "profile": "two"},
                    {"address": "127.0.0.2:0", "path": "/x/y", "profile": "default"}, n=2)
    first, second = mv.bound
    assert first.startswith("127.0.0.1:") and second.startswith("127.0.0.2:")
    both = ["alpha__echo", "alpha__look"]
    assert tools(mv, first) == both and tools(mv, second, "/x/y") == both
    assert tools(mv, first, "/one") == ["alpha__echo"]
    assert tools(mv, second, "/one") == ["alpha__look"]
    # A path belongs to its address; another is not there, nor is more or less of it.
    for address, path in ((first, "/x/y"), (second, "/mcp"), (first, "/"), (first, "/mcp/"),
                          (first, "/one/two"), (second, "/x"), (first, "/MCP")):
        assert post(mv, address, path).status == 404, (address, path)
    assert sorted(mv.status()["listen"]) == sorted([first, first, second, second])


def test_guards_are_those_of_the_row(serve_conf):
    mv = serve_rows(serve_conf, {"address": "127.0.0.1:0"},
                    {"address": "127.0.0.1:0", "path": "/web",
                     "allowed_hosts": ["mcp.example.org"],
                     "allowed_origins": ["https://app.example.org"]},
                    {"address": "127.0.0.1:0", "path": "/all", "allowed_origins": ["*"]}, n=1)
    named = {"Host": "mcp.example.org"}
    page = {"Origin": "https://app.example.org"}
    assert post(mv, path="/web", **named, **page).status == 200
    assert post(mv, path="/web", **page).header(
        "Access-Control-Allow-Origin") == page["Origin"]
    assert post(mv, **named).status == 403 and post(mv, **page).status == 403
    mv.wait_log("host refused .*allowed_hosts")
    mv.wait_log("origin refused .*allowed_origins")
    assert post(mv, path="/web", Origin="https://evil.example").status == 403
    assert post(mv, path="/web", Host="evil.example").status == 403
    assert post(mv, path="/all", Origin="https://evil.example").status == 200
    assert post(mv, path="/all", **named).status == 403
    # Loopback's own names are always fine.
    for path in ("/mcp", "/web", "/all"):
        assert post(mv, path=path, Host="localhost").status == 200
    # What is not there tells nothing to who may not ask.
    assert post(mv, path="/no", Host="evil.example").status == 403
    assert post(mv, path="/no").status == 404
    # A reload moves them.
    mv.more["listen"][0]["allowed_hosts"] = ["mcp.example.org"]
    mv.more["listen"][1]["allowed_origins"] = []
    mv.reload()
    assert post(mv, **named).status == 200
    assert post(mv, path="/web", **page).status == 403


@pytest.mark.parametrize("row, fine", [
    ({}, False), ({"allow_unauthenticated": True}, False),
    ({"allowed_hosts": ["mcp.example.org"]}, False),
    ({"allow_unauthenticated": True, "allowed_hosts": []}, False),
    ({"allow_unauthenticated": True, "allowed_hosts": ["mcp.example.org"]}, True)])
def test_beyond_loopback(serve_conf, row, fine):
    mv = serve_conf(alpha=ECHO, start=False, more=rows({"address": "0.0.0.0:0", **row}),
                    listen=[""])
    rc, out, err = mv.run("check", "--conf", mv.file)
    assert rc == (0 if fine else 1)
    if not fine:
        assert "listen" in err and "allow_unauthenticated" in err and "allowed_hosts" in err
        assert mv.run("serve", "--conf", mv.file)[0] == 3 and not mv["alpha"].starts()
        return
    mv.built = True
    mv.start()
    port = mv.address.rpartition(":")[2]
    assert post(mv, "127.0.0.1:" + port, Host="mcp.example.org").status == 200
    assert post(mv, "127.0.0.1:" + port, Host="evil.example").status == 403


def test_a_reload_cannot_open_it_either(serve_conf):
    mv = serve_rows(serve_conf, {"address": "127.0.0.1:0"})
    mv.more["listen"].append({"address": "0.0.0.0:0"})
    assert "allow_unauthenticated" in (mv.write() or mv.control("reload", check=3)[2])
    assert len(mv.status()["listen"]) == 1 and tools(mv)


# -- unix sockets --------------------------------------------------------------------------


def other_user(path, then):
    """Runs Python as nobody at a connection `s` to the socket."""
    code = ("import os,socket,sys\nos.setgroups([])\nos.setgid(%d)\nos.setuid(%d)\n"
            "s=socket.socket(socket.AF_UNIX)\ns.settimeout(10)\ns.connect(sys.argv[1])\n%s"
            % (NOBODY, NOBODY, then))
    return subprocess.run([PYTHON, "-c", code, str(path)], capture_output=True, timeout=30)


TALK = "s.sendall(%r)\nsys.stdout.buffer.write(s.recv(9999))" % PING


def test_mode_and_group_of_each_socket(serve_conf, folder):
    plain, shared, grouped = folder / "a.sock", folder / "b.sock", folder / "c.sock"
    mine = next(g for g in grp.getgrall()
                if (os.getuid() == 0 and g.gr_gid > 0) or g.gr_gid in os.getgroups())
    mv = serve_rows(serve_conf, {"address": "unix:%s" % plain},
                    {"address": "unix:%s" % shared, "mode": "0666"},
                    {"address": "unix:%s" % grouped, "mode": "0660", "group": mine.gr_name})
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (plain, shared, grouped)]
    assert modes == [0o600, 0o666, 0o660] and grouped.stat().st_gid == mine.gr_gid
    if os.getuid() == 0:
        assert json.loads(other_user(shared, TALK).stdout) == {
            "jsonrpc": "2.0", "id": 1, "result": {}}
        for path in (plain, grouped):
            assert b"PermissionError" in other_user(path, TALK).stderr
    # A reload changes the file, not the socket.
    wire = Wire("unix:%s" % shared)
    mv.more["listen"][1]["mode"] = "0600"
    mv.reload()
    assert stat.S_IMODE(shared.stat().st_mode) == 0o600
    wire.send(PING)
    assert b"result" in wire.until(b"\n", time.monotonic() + 5)
    wire.close()
    for group in ("no-such-group", ""):
        mv.more["listen"][2]["group"] = group
        mv.write()
        assert "group" in mv.control("reload", check=3)[2]
    assert grouped.stat().st_gid == mine.gr_gid


def test_lines_on_a_socket_see_the_profile_of_its_row(serve_conf, folder, connect):
    one, two = folder / "one.sock", folder / "two.sock"
    mv = serve_rows(serve_conf, {"address": "unix:%s" % one, "profile": "one"},
                    {"address": "unix:%s" % two, "profile": "two"})
    for path, tool, other in ((one, "echo", "look"), (two, "look", "echo")):
        c = connect(str(path)).speak("legacy")
        assert c.tools() == ["alpha__" + tool]
        assert c.call("alpha__" + tool, {"a": 1}).result["structuredContent"] == {"a": 1}
        assert c.call("alpha__" + other, {}).code == -32602
        assert tools(mv, "unix:%s" % path) == ["alpha__" + tool]


@pytest.mark.parametrize("which", ["listen", "control"])
def test_stale_sockets_and_others_files(serve_conf, folder, which):
    path = folder / "s.sock"
    mv = serve_rows(serve_conf, {"address": "127.0.0.1:0"},
                    {"address": "unix:%s" % path}) if which == "listen" else \
        serve_conf(alpha=ECHO, per={"alpha": {}})
    path = path if which == "listen" else mv.socket
    again = [*mv.argv(), "--socket", mv.folder / "2.sock"] if which == "listen" else mv.argv()
    # A second daemon does not take what another one serves.
    second = mv.run(*again[1:])
    assert second[0] == 3 and str(path) in second[2], second
    assert mv.status()["pid"] == mv.proc.pid
    mv.kill()
    assert path.exists()
    mv.start()
    assert mv.status()["pid"] == mv.proc.pid and mv.modern().tools()
    assert mv.stop() == 0 and not path.exists()
    # A file that is no socket is somebody's.
    path.write_text("mine")
    assert mv.run(*again[1:])[0] == 3
    assert path.read_text() == "mine"
    path.unlink()


# -- sockets of the service manager --------------------------------------------------------


MANAGER = r"""
import json, os, socket, sys
names, fds, extra = [], [], json.loads(sys.argv[2])
for name, where in json.loads(sys.argv[1]):
    if where[:1] == "/":
        s = socket.socket(socket.AF_UNIX)
        s.bind(where)
    else:
        s = socket.socket()
        s.bind((where, 0))
    s.listen(16)
    names.append(name)
    fds.append(os.dup2(s.detach(), 40 + len(fds)))
for i, fd in enumerate(fds):
    os.dup2(fd, 3 + i)
    os.close(fd)
os.environ.update({"LISTEN_FDS": str(len(fds)), "LISTEN_PID": str(os.getpid()),
                   "LISTEN_FDNAMES": ":".join(names), **extra})
os.execv(sys.argv[3], sys.argv[3:])
"""


def by_manager(mv, *sockets, **extra):
    """The daemon will be started as the service manager does: sockets from fd 3 on."""
    plain = mv.argv
    mv.argv = lambda: [PYTHON, "-c", MANAGER, json.dumps(sockets), json.dumps(extra), *plain()]
    mv.built = True
    return mv


def test_sockets_of_the_service_manager(serve_conf, folder):
    path = str(folder / "m.sock")
    mv = serve_conf(
        alpha=ECHO, start=False, listen=["", ""], more=rows(
            {"address": "systemd:web"}, {"address": "systemd:web", "path": "/one",
                                         "profile": "one"},
            {"address": "systemd:local", "profile": "two", "mode": "0600"}, list_wait_ms=100),
        beta={"command": "/bin/sh", "args": ["-c", "ls -l /proc/self/fd >&2; exec sleep 60"]})
    by_manager(mv, ["web", "127.0.0.1"], ["spare", "127.0.0.1"], ["local", path])
    mv.start()
    web, local = mv.bound
    assert local == "unix:" + path and web.startswith("127.0.0.1:")
    before = os.stat(path)
    wait_for(lambda: tools(mv, web, "/one") == ["alpha__echo"], 5, "it is listed")
    wire = Wire(local)
    wire.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
    answer = json.loads(wire.until(b"\n", time.monotonic() + 10))
    assert [t["name"] for t in answer["result"]["tools"]] == ["alpha__look"]
    wire.close()
    # Nothing of them gets into an upstream.
    mv.wait_log("0 -> pipe|0 -> /dev/null|0 -> socket")
    assert not [x for x in mv.log().splitlines() if "beta" in x and " 3 -> socket" in x]
    env = json.loads(mv["alpha"].starts()[0].raw)["env"]
    assert not [k for k in env if k.startswith(("LISTEN_", "NOTIFY_"))]
    # One that is let go of by a reload can be had again.
    kept = mv.more["listen"]
    mv.more["listen"] = kept[:2]
    mv.reload()
    assert len(mv.status()["listen"]) == 2
    mv.more["listen"] = kept
    mv.reload()
    assert tools(mv, local) == ["alpha__look"]
    assert mv.stop() == 0
    # The file is the manager's.
    assert os.stat(path).st_ino == before.st_ino


@pytest.mark.parametrize("what, word", [
    ("name", "systemd:web"), ("pid", "systemd:web"), ("beyond", "allow_unauthenticated")])
def test_sockets_that_cannot_be_had(serve_conf, what, word):
    mv = serve_conf(alpha=ECHO, start=False, listen=[""], more=rows({"address": "systemd:web"}))
    by_manager(mv, ["other" if what == "name" else "web",
                    "0.0.0.0" if what == "beyond" else "127.0.0.1"],
               **({"LISTEN_PID": "1"} if what == "pid" else {}))
    argv = mv.argv()
    done = subprocess.run(argv, capture_output=True, env=mv.env, timeout=30, cwd=mv.folder)
    assert done.returncode == 3, done
    assert word in done.stderr.decode(), done.stderr
    assert not mv["alpha"].starts()
    # check has no manager around it; the name alone is no error.
    assert mv.run("check", "--conf", mv.file)[0] == 0


def test_connections_that_came_before_us_are_served(serve_conf, folder):
    """Socket activation: who connected while nobody ran waits in the backlog."""
    path = str(folder / "m.sock")
    mv = serve_conf(alpha=ECHO, start=False, listen=[], more=rows({"address": "systemd:a"}))
    by_manager(mv, ["a", path])
    mv.start()
    wait_for(lambda: os.path.exists(path), 5, "the manager's socket")
    wire = Wire("unix:" + path)
    wire.send(PING)
    assert b"result" in wire.until(b"\n", time.monotonic() + 10 * PATIENCE)
    wire.close()
    mv.proc.send_signal(signal.SIGTERM)
    assert mv.wait_exit() == 0


def test_an_inherited_stdin_is_no_socket(serve_conf):
    """LISTEN_FDS that lies about what there is."""
    mv = serve_conf(alpha=ECHO, start=False, listen=[""], more=rows({"address": "systemd:web"}))
    code = ("import os,sys\nr,w=os.pipe()\nos.dup2(r,3)\nos.environ.update(LISTEN_FDS='1',"
            "LISTEN_FDNAMES='web',LISTEN_PID=str(os.getpid()))\nos.execv(sys.argv[1],sys.argv[1:])")
    done = subprocess.run([PYTHON, "-c", code, *mv.argv()], capture_output=True, env=mv.env,
                          timeout=30)
    assert done.returncode == 3 and b"systemd:web" in done.stderr, done
    assert not mv["alpha"].starts()
