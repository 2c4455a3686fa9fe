# SPDX-License-Identifier: MIT
"""What a child inherits: a short list of variables, its group, its directory."""
import os

ALLOWED = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR"}


def facts(mv, name="alpha"):
    mv.legacy()
    assert name + "__echo" in mv.tools()
    return mv[name].starts()[0].msg


def test_only_the_list_is_inherited(serve):
    ours = {"LC_ALL": "C.UTF-8", "SHELL": "/bin/sh", "TERM": "dumb", "USER": "u",
            "LOGNAME": "u", "TMPDIR": "/tmp", "AWS_SECRET": "x", "LD_PRELOAD_X": "y",
            "NODE_OPTIONS": "", "PYTHONPATH": "/nowhere", "MCPVISOR_X": "1"}
    mv = serve(alpha={"tools": ["echo"], "entry": {"env": {"MINE": "1", "TERM": "vt100"}}},
               env=ours)
    got = facts(mv)["env"]
    got.pop("_", None)
    extra = {k for k in got if k not in ALLOWED and not k.startswith("LC_")}
    # Python adds LC_CTYPE to itself; nothing else is new.
    assert extra == {"MINE"}
    assert got["LC_ALL"] == "C.UTF-8" and got["SHELL"] == "/bin/sh"
    assert got["TERM"] == "vt100"
    assert got["PATH"] == mv.env["PATH"] and got["HOME"] == mv.env["HOME"]


def test_o_089_own_variables_do_not_replace_the_rest(serve):
    mv = serve(alpha={"tools": ["echo"], "entry": {"command": "python3", "env": {"MY": ""}}})
    got = facts(mv)["env"]
    assert got["MY"] == "" and got["PATH"]


def test_o_089_the_command_is_found_on_the_childs_path(serve, tmp_path):
    folder = tmp_path / "only here"
    folder.mkdir()
    os.symlink("/usr/bin/python3", folder / "snake")
    mv = serve(alpha={"tools": ["echo"],
                      "entry": {"command": "snake", "env": {"PATH": str(folder)}}})
    assert facts(mv)["env"]["PATH"] == str(folder)


def test_o_089_a_command_that_is_not_on_the_path(serve):
    mv = serve(alpha={"command": "no-such-snake", "env": {"PATH": "/nowhere/bin"}},
               beta={"tools": ["echo"]})
    mv.legacy()
    assert mv.tools() == ["beta__echo"]
    line = next(x for x in mv.log().splitlines() if "no-such-snake" in x
                and "/nowhere/bin" in x)
    assert "alpha" in line and "No such file" in line


def test_o_089_a_relative_command_and_its_directory(serve, tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    os.symlink("/usr/bin/python3", folder / "snake")
    mv = serve(alpha={"tools": ["echo"], "entry": {"command": "./snake", "cwd": str(folder)}})
    assert facts(mv)["cwd"] == str(folder)


def test_a_child_leads_a_group_of_its_own(serve):
    mv = serve(alpha={"tools": ["echo"]}, beta={"tools": ["echo"]})
    mv.legacy()
    mv.tools()
    first, second = (mv[n].starts()[0] for n in ("alpha", "beta"))
    groups = {first.msg["pgid"], second.msg["pgid"]}
    assert len(groups) == 2 and os.getpgid(mv.proc.pid) not in groups


def test_signals_have_their_default_meaning(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy()
    mv.tools()
    pid = mv["alpha"].starts()[0].pid
    with open("/proc/%d/status" % pid) as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    assert int(status["SigBlk"], 16) == 0
    # Python itself ignores SIGPIPE and SIGXFSZ; SIGINT, TERM, HUP, CHLD are as exec left them.
    ignored = int(status["SigIgn"], 16)
    assert not ignored & (1 << 14 | 1 << 0 | 1 << 16 | 1 << 1)
