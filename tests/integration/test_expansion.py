# SPDX-License-Identifier: MIT
"""Values that stand elsewhere: what is put in, where, and that nobody is shown it."""
import json
import os

import pytest

from mcp import wait_for

ECHO = {"tools": ["echo"]}
SECRET = "s3cret-0123456789"
ENV = {"SET": "value", "EMPTY": "", "NESTED": "${SET}", "TOKEN": SECRET, "SPACES": "a  b"}


def start_of(mv, name="alpha"):
    return wait_for(lambda: mv[name].starts(), 5, "it is started")[-1].msg


def args_of(mv, *more):
    mv.entries["alpha"]["args"] = [*mv.entries["alpha"]["args"], *more]


# -- the rule ------------------------------------------------------------------------

RULE = [("${SET}", "value"), ("${env:SET}", "value"), ("${UNSET:-d}", "d"),
        ("${EMPTY:-d}", "d"), ("${EMPTY}", ""), ("${UNSET:-}", ""), ("${SET:-d}", "value"),
        ("a${SET}b", "avalueb"), ("${SET}${SET}", "valuevalue"), ("${NESTED}", "${SET}"),
        ("$$", "$$"), ("$SET", "$SET"), ("$", "$"), ("$HOME", "$HOME"), ("{SET}", "{SET}"),
        ("%SET%", "%SET%"), ("~", "~"), ("`id`", "`id`"), ("$(id)", "$(id)"), ("*", "*"),
        ("${SPACES}", "a  b"), ("é${SET}\n", "évalue\n"), ("${UNSET:-a b:-c}", "a b:-c")]


def test_o_088_one_rule_for_env_and_args(serve_conf):
    mv = serve_conf(alpha=ECHO, start=False, env=ENV)
    mv.per["alpha"]["env"] = {"V%d" % i: text for i, (text, _) in enumerate(RULE)}
    args_of(mv, *[text for text, _ in RULE], "${userHome}")
    mv.write()
    mv.start()
    facts = start_of(mv)
    want = [w for _, w in RULE]
    assert [facts["env"]["V%d" % i] for i in range(len(RULE))] == want
    assert facts["argv"][2:] == [*want, mv.env["HOME"]]


def test_o_088_the_same_in_every_option_that_is_expanded(serve_conf, tmp_path):
    (tmp_path / "value").mkdir()
    (tmp_path / "value" / "vars").write_text("FROM_FILE=1\nNOT=${SET}\n")
    os.symlink("/usr/bin/python3", tmp_path / "value" / "snake")
    mv = serve_conf(alpha={**ECHO, "resources": ["m:1"]}, start=False,
                    env={**ENV, "T": str(tmp_path), "NAME": "PASS"}, per={"alpha": {
                        "command": "${T}/${SET}/snake", "cwd": "${T}/${SET}",
                        "env_file": "${T}/${SET}/vars", "env_pass": ["${NAME}_*"],
                        "prefix": "${SET}-", "uri_prefix": "${SET}+",
                        "tool": [{"tool": "echo", "fixed": {"token": "${TOKEN}"},
                                  "defaults": {"n": {"deep": {"x": "${SET}"}, "k": 1}}}]}},
                    more='listen = ( { address = "unix:${T}/${SET}/s"; } );\n'
                         'state : { dir = "${T}/${SET}/st"; };\n', listen=[""])
    mv.env["PASS_1"] = "passed"
    mv.write()
    mv.start()
    c = mv.legacy()
    assert mv.address == "unix:%s/value/s" % tmp_path
    assert c.tools() == ["value-echo"]
    assert [r["uri"] for r in c.ask("resources/list").result["resources"]] == ["value+m:1"]
    facts = start_of(mv)
    assert os.path.realpath(facts["cwd"]) == os.path.realpath(tmp_path / "value")
    assert facts["env"]["PASS_1"] == "passed" and facts["env"]["FROM_FILE"] == "1"
    # What a file of variables says is not expanded.
    assert facts["env"]["NOT"] == "${SET}"
    assert c.call("value-echo", {}).result["structuredContent"] == {
        "token": SECRET, "n": {"deep": {"x": "value"}, "k": 1}}
    assert (tmp_path / "value" / "st" / "session.key").exists()


def test_o_088_json_in_a_string_is_used_as_it_is(serve_conf):
    mv = serve_conf(alpha=ECHO, env=ENV, per={"alpha": {"tool": [
        {"tool": "echo", "fixed": '{"t": "${SET}", "n": 1.0}'}]}})
    assert mv.legacy().call("alpha__echo", {}).result["structuredContent"] == {
        "t": "${SET}", "n": 1.0}
    assert b'"n":1.0' in mv["alpha"].inputs("tools/call")[0].raw


FIELDS = {"env": {"V": "%s"}, "args": ["x", "%s"], "command": "%s", "cwd": "%s",
          "env_file": "%s", "env_pass": ["%s"], "prefix": "%s", "uri_prefix": "%s",
          "tool": [{"tool": "echo", "fixed": {"a": "%s"}}]}


def filled(value, text):
    return json.loads(json.dumps(value).replace("%s", text))


@pytest.mark.parametrize("text,word", [
    ("${UNSET_9}", "UNSET_9"), ("${", "closing brace"), ("${input:x}", "input"),
    ("${a${SET}}", "inside another"), ("${nope:x}", "nope"), ("${}", "names no variable"),
    ("${file:not-there}", "not-there"), ("${credential:x}", 'credential "x"'),
    ("${credential:../x}", "names no credential")])
def test_o_088_what_is_not_there_is_an_error_in_each_field(serve_conf, text, word):
    """All of them at once, each with its line; and nothing is started."""
    mv = serve_conf({"u-%s" % f: {"command": "/bin/true"} for f in FIELDS}, start=False,
                    env=ENV, per={"u-%s" % f: {f: filled(v, text)} for f, v in FIELDS.items()})
    _, _, err = mv.run("check", "--conf", mv.file, check=1)
    for field in FIELDS:
        line = next((x for x in err.splitlines() if "u-%s" % field in x), "")
        assert word in line and str(mv.file) + ":" in line, (field, err)
    _, _, said = mv.run(*mv.argv()[1:], check=3)
    assert word in said and "started" not in said


def test_o_088_at_a_reload_the_old_one_goes_on(serve_conf):
    mv = serve_conf(alpha=ECHO, env=ENV)
    c = mv.legacy()
    assert c.tools()
    mv.per["alpha"]["env"] = {"V": "${UNSET_9}"}
    mv.write()
    assert "UNSET_9" in mv.control("reload", check=3)[2]
    assert c.call("alpha__echo", {}).result and len(mv["alpha"].starts()) == 1


# -- files and credentials -----------------------------------------------------------


def test_files_and_credentials(serve_conf, tmp_path):
    creds = tmp_path / "creds"
    creds.mkdir()
    (creds / "git hub").write_text(SECRET + "\n")
    (tmp_path / "abs").write_text("two\nlines\n\n")
    mv = serve_conf(alpha=ECHO, start=False,
                    env={**ENV, "CREDENTIALS_DIRECTORY": str(creds)}, per={"alpha": {"env": {
                        "CRED": "${credential:git hub}", "REL": "<${file:beside.txt}>",
                        "ABS": "${file:%s/abs}" % tmp_path, "NEST": "${file:nest}",
                        "CRLF": "${file:crlf}", "NONE": "${file:empty}"}}})
    (mv.folder / "beside.txt").write_text("beside the conf")
    (mv.folder / "nest").write_text("${SET}\n")
    (mv.folder / "crlf").write_bytes(b"x\r\n")
    (mv.folder / "empty").write_text("")
    mv.start()
    env = start_of(mv)["env"]
    assert {k: env[k] for k in ("CRED", "REL", "ABS", "NEST", "CRLF", "NONE")} == {
        "CRED": SECRET, "REL": "<beside the conf>", "ABS": "two\nlines\n", "NEST": "${SET}",
        "CRLF": "x", "NONE": ""}
    # A reload reads them again.
    (creds / "git hub").write_text("rotated")
    assert "upstream.alpha" in mv.reload()
    wait_for(lambda: len(mv["alpha"].starts()) == 2, 5, "it is replaced")
    assert start_of(mv)["env"]["CRED"] == "rotated"
    assert "nothing has changed" in mv.reload()


@pytest.mark.parametrize("how", ["folder", "pipe", "nul", "long", "absent"])
def test_files_that_are_no_use(serve_conf, how):
    mv = serve_conf(alpha=ECHO, per={"alpha": {"env": {"V": "${file:it}"}}}, start=False)
    path = mv.folder / "it"
    if how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "nul":
        path.write_bytes(b"s3c\0ret")
    elif how == "long":
        path.write_bytes(b"x" * (2 << 20))
    _, out, err = mv.run("check", "--conf", mv.file, check=1)
    word = {"folder": "not a regular file", "pipe": "not a regular file", "nul": "NUL",
            "long": "too long", "absent": "No such file"}[how]
    assert word in err and "env.V" in err.replace("env: V", "env.V"), err
    assert "xxxx" not in err + out and "s3c" not in err + out


# -- secrets -------------------------------------------------------------------------


def test_secrets_are_shown_nowhere(serve_conf, tmp_path):
    creds = tmp_path / "creds"
    creds.mkdir()
    for name in ("cred", "next"):
        (creds / name).write_text("s3cret-of-%s" % name)
    mv = serve_conf(alpha=ECHO, beta={"command": "/nonexistent/x"}, start=False,
                    env={**ENV, "CREDENTIALS_DIRECTORY": str(creds), "PASS_X": "s3cret-passed"})
    (mv.folder / "file").write_text("s3cret-of-file")
    (mv.folder / "vars").write_text("FROM_VARS=s3cret-of-vars\n")
    options = {"env": {"A": "${TOKEN}", "B": "s3cret-literal", "C": "${file:file}",
                       "D": "x${credential:cred}y"}, "env_pass": ["PASS_*"],
               "env_file": "vars", "restart_base_ms": 60000,
               "tool": [{"tool": "echo", "fixed": {"k": "${TOKEN}"}}]}
    mv.per = {"alpha": dict(options), "beta": {**options, "args": ["--key", "${TOKEN}"]}}
    args_of(mv, "--token=${TOKEN}")
    mv.write()
    shown = []

    def see(*argv, run=mv.control, **kw):
        shown.extend(run(*argv, **kw)[1:])
        return shown[-2]

    dump = see("check", "--conf", mv.file, "--dump", run=mv.run)
    assert "(secret)" in dump
    see("check", "--conf", mv.file, "--json", run=mv.run)
    mv.start()
    c = mv.legacy()
    assert c.tools() == ["alpha__echo"]
    assert start_of(mv)["argv"][-1] == "--token=" + SECRET
    assert start_of(mv)["env"]["D"] == "xs3cret-of-credy"
    wait_for(lambda: "No such file" in (mv.upstream_status("beta")["reason"] or ""), 5)
    shown.append(json.dumps(c.call("beta__echo", {}).msg))
    see("status"), see("status", "--json"), see("tools", "--json"), see("tools")
    # A change of each of them shows that there is one, and no value.
    mv.per["alpha"]["env"] = {"A": "s3cret-new", "B": "${TOKEN}", "D": "${credential:next}"}
    mv.per["beta"]["args"] = ["--key", "s3cret-bare${TOKEN}"]
    mv.per["alpha"]["tool"] = [{"tool": "echo", "fixed": {"k": "${file:file}"}}]
    mv.write()
    diff = see("reload", "--dry-run")
    assert "upstream.alpha" in diff and "upstream.beta" in diff
    see("reload")
    # Nor does an error that is about one.
    for bad in ({"env": {"A": "s3cret-${"}}, {"prefix": "s3cret bad ${TOKEN}"},
                {"era": "s3cret-era"}, {"cwd": "s3cret-${UNSET_9}"}):
        mv.per["alpha"] = bad
        mv.write()
        see("reload", check=3)
    c.close()
    assert mv.stop() == 0
    for text in [*shown, *mv.old_logs]:
        assert "s3cret" not in text, text[max(0, text.find("s3cret") - 300):][:400]


# -- commands ------------------------------------------------------------------------


def test_o_089_own_variables_do_not_replace_the_rest(serve_conf):
    mv = serve_conf(alpha=ECHO, env={"PATH": "/usr/bin:/bin"},
                    per={"alpha": {"command": "python3", "env": {"MY": ""}}})
    assert mv.legacy().tools() == ["alpha__echo"]
    env = start_of(mv)["env"]
    assert env["MY"] == "" and env["PATH"] == mv.env["PATH"] and env["HOME"] == mv.env["HOME"]


def test_o_089_the_command_is_looked_up_in_its_own_path(serve_conf, tmp_path):
    only = tmp_path / "only here"
    only.mkdir()
    os.symlink("/usr/bin/python3", only / "snake")
    mv = serve_conf(alpha=ECHO, beta=ECHO, gamma=ECHO, env={"ONLY": str(only)}, per={
        "alpha": {"command": "snake", "env": {"PATH": str(only)}},
        "beta": {"command": "./snake", "cwd": str(only)},
        "gamma": {"command": "snake", "env": {"PATH": "/nowhere:${ONLY}:${PATH}"}}})
    assert len(mv.legacy().tools()) == 3
    assert start_of(mv)["env"]["PATH"] == str(only)
    assert start_of(mv, "gamma")["env"]["PATH"] == "/nowhere:%s:%s" % (only, mv.env["PATH"])


def test_o_089_what_is_not_found_is_named_with_its_path(serve_conf):
    mv = serve_conf(alpha={"command": "no-such-snake"}, beta=ECHO, per={
        "alpha": {"env": {"PATH": "/nowhere/bin"}}})
    c = mv.legacy()
    assert c.tools() == ["beta__echo"]
    reason = wait_for(lambda: mv.upstream_status("alpha")["reason"], 5, "why")
    for word in ("no-such-snake", "PATH=/nowhere/bin", "No such file"):
        assert word in reason
    # Clients learn nothing of the folders of this machine.
    told = c.call("alpha__x", {}).error["message"]
    assert "no-such-snake" in told and "No such file" in told and "/nowhere" not in told


ODD = ["-y", "--", "--stdio", "-", "", "a b", "$HOME", "*", '"q"', "'", "\\", "é\n", "--conf",
       "#no comment", "//", "a;b", "x=y", "\t"]


def test_o_096_arguments_are_exactly_the_list(serve_conf):
    mv = serve_conf(alpha=ECHO, start=False)
    args_of(mv, *ODD)
    mv.write()
    mv.start()
    assert start_of(mv)["argv"][2:] == ODD
    _, out, _ = mv.run("tools", "--conf", mv.file, check=0)
    assert "alpha__echo" in out and start_of(mv)["argv"][2:] == ODD
