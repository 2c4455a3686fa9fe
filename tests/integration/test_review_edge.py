# SPDX-License-Identifier: MIT
"""What a hostile reading of the conf, the state and the commands found."""
import json
import os
import pty
import re
import signal
import socket
import subprocess

import pytest

import conf_served
from mcp import wait_for
from upstream import PATIENCE

ECHO = {"tools": ["echo"]}
CAT = 'upstream : { a : { command = "/bin/cat"; }; };\n'


@pytest.fixture
def run(binary, tmp_path):
    """run(*argv): one command in a folder of its own; (exit status, stdout, stderr)."""
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(tmp_path),
           **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}}

    def one(*argv, timeout=10, **more):
        done = subprocess.run([str(binary), *map(str, argv)], capture_output=True, cwd=tmp_path,
                              timeout=timeout * PATIENCE, env={**env, **more},
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return one


# -- files of the conf that are none -------------------------------------------------------


def test_a_pipe_in_place_of_a_conf_file_is_an_error_and_no_wait(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "x.conf")
    (tmp_path / "a.conf").write_text('upstream_dir = "folder";\n')
    (tmp_path / "b.conf").write_text('mcp_servers = ["pipe"];\n')
    for argv in (["--conf", "pipe"], ["--mcp-json", "pipe"], ["--conf", "a.conf"],
                 ["--conf", "b.conf"]):
        rc, _, err = run("check", *argv)
        assert rc == 1 and "not a regular file" in err, (argv, err)
    assert run("check", "--conf", "/dev/null")[0] == 0


def test_a_pipe_in_the_folder_does_not_stop_the_daemon(serve_conf):
    mv = serve_conf(alpha=ECHO)
    c = mv.legacy()
    (mv.folder / "upstream.d").mkdir()
    os.mkfifo(mv.folder / "upstream.d" / "x.conf")
    err = mv.control("reload", check=3)[2]
    assert "x.conf" in err and "not a regular file" in err
    assert c.call("alpha__echo", {"n": 1}).result


# -- state -----------------------------------------------------------------------------------


def files_below(folder):
    return sorted(str(p) for p in folder.rglob("*"))


def test_check_writes_nothing(run, tmp_path):
    (tmp_path / "a.conf").write_text(CAT + 'state : { dir = "state"; };\n')
    before = files_below(tmp_path)
    assert run("check", "--conf", "a.conf")[0] == 0
    assert files_below(tmp_path) == before


def test_check_leaves_what_serve_has_written_as_it_is(serve_conf):
    mv = serve_conf(alpha=ECHO, more='state : { dir = "kept"; };\n')
    mv.legacy().call("alpha__echo", {})
    kept = mv.folder / "kept"
    wait_for(lambda: list(kept.glob("lists/*.memory")), 5, "the lists are kept")
    mv.stop()
    for f in kept.rglob("*"):
        os.utime(f, (1, 1))
    (kept / "sessions.gone").unlink()
    out = mv.run("check", "--conf", mv.file, check=0)[1]
    assert "known of earlier runs: 1 tools" in out
    assert not (kept / "sessions.gone").exists()
    assert {f.stat().st_mtime for f in kept.rglob("*.memory")} == {1}


def test_the_folder_of_the_conf_may_have_a_colon(serve_conf):
    mv = serve_conf(alpha=ECHO, more='state : { dir = "a:b"; };\n')
    assert (mv.folder / "a:b" / "session.key").exists()
    assert not (mv.folder / "a").exists()


# -- reload ------------------------------------------------------------------------------------


def test_a_refused_reload_tells_what_is_wrong_and_nothing_else(serve_conf):
    mv = serve_conf(alpha=ECHO)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        mv.listen = ("127.0.0.1:0", "127.0.0.1:%d" % taken.getsockname()[1])
        mv.more = "drain_ms = 7;\n"
        mv.write()
        err = mv.control("reload", check=3)[2]
    assert "cannot listen" in err and "drain_ms" not in err, err
    assert "drain_ms" not in mv.log()


def test_refused_reloads_use_up_no_profiles(serve_conf):
    mv = serve_conf(alpha=ECHO, more="profile : { p : { }; };\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = "127.0.0.1:%d" % taken.getsockname()[1]
        for i in range(40):
            mv.write('profile : { p%d : { }; };\nlisten = ( { address = "127.0.0.1:0"; },\n'
                     '{ address = "127.0.0.1:0"; path = "/p"; profile = "p%d"; },\n'
                     '{ address = "%s"; } );\n' % (i, i, busy) + CAT)
            err = mv.control("reload", check=3)[2]
            assert "cannot listen" in err, (i, err)
    mv.more = 'profile : { q : { }; };\nlisten = ( { address = "127.0.0.1:0"; },\n' \
              '{ address = "127.0.0.1:0"; path = "/q"; profile = "q"; } );\n'
    mv.reload()


def test_the_demo_says_that_it_has_nothing_to_reload(serve_conf):
    mv = serve_conf(start=False)
    mv.argv = lambda: [str(mv.binary), "serve", "--demo", "--listen", "127.0.0.1:0"]
    mv.start()
    mv.proc.send_signal(signal.SIGHUP)
    mv.wait_log("reload: refused .*no conf")


def test_what_a_reload_says_needs_a_restart_does(serve_conf):
    mv = serve_conf(alpha=ECHO, beta=ECHO, per={"beta": {"enabled": False}},
                    more='state : { dir = "kept"; lists = false; };\n')
    mv.legacy().call("alpha__echo", {})
    mv.more = 'state : { dir = "kept"; lists = true; keep_days = 3; };\nlist_wait_ms = 1;\n'
    mv.per["beta"] = {}
    text = mv.reload()
    assert "state.lists: false -> true\n" in text and "keep_days: 30 -> 3\n" in text, text
    assert "list_wait_ms: 5000 -> 1 (needs a restart)" in text
    wait_for(lambda: list((mv.folder / "kept").glob("lists/beta-*.memory")), 5,
             "lists are kept from now on")


# -- the command line beside the conf -------------------------------------------------------------


def test_the_command_line_wins_over_levels_of_modules(serve_conf):
    mv = serve_conf(alpha=ECHO, log_level="notice",
                    more='log : { level = "debug"; modules : { call = "debug"; }; };\n')
    mv.modern().call("alpha__echo", {})
    mv.reload()
    mv.modern().call("alpha__echo", {})
    assert mv.stop() == 0
    assert not re.search(r" (info|debug) ", mv.log()), mv.log()


def test_servers_of_the_command_line_take_the_defaults_of_the_conf(run, tmp_path):
    (tmp_path / "a.conf").write_text('defaults : { call_ms = 1234; };\n' + CAT)
    (tmp_path / "s.json").write_text(json.dumps({"mcpServers": {
        "b": {"command": "/bin/cat"},
        "c": {"command": "/bin/cat", "mcpvisor": {"call_ms": 77}}}}))
    rc, out, err = run("check", "--conf", "a.conf", "--mcp-json", "s.json", "--dump")
    assert rc == 0, err
    assert "upstream.a.call_ms = 1234" in out and "upstream.b.call_ms = 1234" in out
    assert "upstream.c.call_ms = 77" in out
    (tmp_path / "s.json").write_text('{"mcpServers": {"a": {"command": "/bin/cat"}}}')
    rc, _, err = run("check", "--conf", "a.conf", "--mcp-json", "s.json")
    assert rc == 1 and "a.conf:2" in err and "taken" in err, err


# -- terminals --------------------------------------------------------------------------------------


def test_no_control_character_of_a_result_gets_to_a_terminal(serve_conf):
    ends = [["reply", {"content": [], "structuredContent": {"t": "a\u009b31mb\u007fc"}}]]
    mv = serve_conf(alpha={"tools": ["echo", "ends"], "calls": {"ends": ends}})
    master, slave = pty.openpty()
    try:
        done = subprocess.Popen([str(mv.binary), "call", "--socket", str(mv.socket),
                                 "alpha__ends"], stdout=slave, stderr=slave, env=mv.env,
                                stdin=subprocess.DEVNULL)
        assert done.wait(20 * PATIENCE) == 0
        out = os.read(master, 65536).decode()
    finally:
        os.close(master)
        os.close(slave)
    assert '"t": "a?31mb?c"' in out, out


def test_the_status_of_an_upstream_with_a_hostile_name(serve_conf):
    mv = serve_conf(alpha=ECHO)
    mv.per["alpha"] = {"name": "al\u009b31mpha"}
    mv.reload()
    out = mv.control("status")[1]
    assert "al?31mpha" in out and "\u009b" not in out, out


