# SPDX-License-Identifier: MIT
"""check: all that is wrong with a conf, and what clients would see, with nothing started."""
import json
import re
import resource
import subprocess

import pytest

from mcp import PATIENCE, REPO, wait_for

# Each mistake on a line of its own: what is said of it, and what it is like.
MISTAKES = [
    ('log : { levle = "info"; };', "log.levle", '"level"'),
    ('log : { level = "loud"; };', "log.level", '"debug"'),
    ("log : { calls = 1; };", "log.calls", "true or false"),
    ('log : { burst = "10"; };', "log.burst", "whole number"),
    ('log : { modules : { call = "loud"; }; };', "log.modules.call", '"debug"'),
    ("logg : { };", "logg", '"log"'),
    ("disabled = true;", "disabled", "unknown"),
    ("log = 7;", "log", ""),
    ("limits : { sessions_max = 0; };", "limits.sessions_max", "1 to 1000000"),
    ("limits : { name_bytes = 129; };", "limits.name_bytes", "24 to 128"),
    ("limits : { pipeline_max = 1.5; };", "limits.pipeline_max", "whole number"),
    ('limits : { memory_max = "12q"; };', "limits.memory_max", '"512M"'),
    ('limits : { memory_max = "99999999999999999999G"; };', "limits.memory_max", ""),
    ("http : { session_s = 59; };", "http.session_s", "60 to 31536000"),
    ('http : { head_ms = "5 parsecs"; };', "http.head_ms", '"5s"'),
    ("http : { head_ms = 0; };", "http.head_ms", "1 to 3600000"),
    ("drain_ms = -1;", "drain_ms", "0 to 3600000"),
    ("drain_ms = 99999999999999999999;", "", ""),
    ('control : { mode = "0888"; };', "control.mode", '"0660"'),
    ("control : { mode = 660; };", "control.mode", '"0660"'),
    ('listen = ( { address = "127.0.0.1:99999"; } );', "listen.0.address", "ADDRESS:PORT"),
    ('listen = ( { path = "/x"; } );', "listen.0", "address is missing"),
    ('listen = ( { address = "127.0.0.1:1"; path = "nope"; } );', "listen.0.path", "begins with /"),
    ('listen = ( { address = "127.0.0.1:1"; profile = "none"; } );', "listen.0", "none"),
    ('listen = ( { address = "127.0.0.1:1"; }, { address = "127.0.0.1:1"; } );', "listen.1",
     "listen.0"),
    ('listen = ( { address = "0.0.0.0:1"; } );', "listen.0", "allow_unauthenticated"),
    ('upstream_dir = "no/such/folder";', "upstream_dir", ""),
    ('mcp_servers = ["no/such.json"];', "mcp_servers", "no/such.json"),
    ("mcp_servers = [7];", "mcp_servers", "string"),
    ('defaults : { command = "x"; };', "defaults.command", ""),
    ('defaults : { call_ms = true; };', "defaults.call_ms", "milliseconds"),
    ('profile : { p : { tools : { allow = "x"; }; }; };', "profile.p.tools.allow", "array"),
    ('profile : { p : { tool : { allow = ["x"]; }; }; };', "profile.p.tool", '"tools"'),
    ("upstream : { a : { }; };", "upstream.a", "command is missing"),
    ('upstream : { a : { command = 7; }; };', "upstream.a.command", "string"),
    ('upstream : { a : { command = "x"; disabled = true; }; };', "upstream.a.disabled",
     '"enabled"'),
    ('upstream : { a : { command = "x"; enabled = 0; }; };', "upstream.a.enabled",
     "true or false"),
    ('upstream : { a : { command = "x"; args = "y"; }; };', "upstream.a.args", "array"),
    ('upstream : { a : { command = "x"; env : { A = "${UNSET_X}"; }; }; };', "upstream.a.env.A",
     "UNSET_X"),
    ('upstream : { a : { command = "x"; env : { A = "${file:no/such}"; }; }; };',
     "upstream.a.env.A", "no/such"),
    ('upstream : { a : { command = "x"; env_file = "no/such"; }; };', "upstream.a", "env_file"),
    ('upstream : { a : { command = "x"; prefix = "b d"; }; };', "upstream.a.prefix", "letters"),
    ('upstream : { a : { command = "x"; era = "new"; }; };', "upstream.a.era", '"modern"'),
    ('upstream : { a : { command = "x"; tools : { alow = []; }; }; };', "upstream.a.tools.alow",
     '"allow"'),
    ('upstream : { a : { command = "x"; tool = ( { name = "y"; } ); }; };', "upstream.a.tool",
     "tool is missing"),
    ('upstream : { a : { command = "x"; tool = ( { tool = "y"; fixed = "{"; } ); }; };',
     "upstream.a.tool", "fixed"),
    ('upstream : { a : { command = "x"; }; a : { command = "y"; }; };', "", ""),
    ('drain_ms = 1; drain_ms = 2;', "", ""),
    ("upstream : { a : { command = \"x\"; ", "", "syntax"),
]


# -- mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize("line, key, word", MISTAKES, ids=range(len(MISTAKES)))
def test_o_094_each_mistake_has_its_place(check, line, key, word):
    text = "# a line\n\n%s\n" % line
    rc, out, err = check(text, code=1)
    (said,) = [x for x in err.splitlines() if not re.fullmatch(r"\d+ errors?", x)]
    found = re.fullmatch(re.escape(str(check.folder / "mcpvisor.conf")) + r":(\d+): (.*)", said)
    # What has no end is found at the end of the file.
    assert found and found[1] in (("3",) if word != "syntax" else ("3", "4")), said
    assert found[2].startswith(key) and word in found[2], said
    assert err.splitlines()[-1] == "1 error" and out == ""


def test_all_mistakes_at_once(check):
    """One error is no reason to be silent on the next."""
    groups = {"": []}
    for line, _, _ in MISTAKES:
        group, _, rest = line.partition(" : { ")
        if group in ("log", "limits", "http", "control"):
            groups.setdefault(group, {})[rest.split()[0]] = rest.removesuffix(" };")
        elif line.startswith(("logg", "disabled", "drain_ms = -1", "profile : { p : { tools")):
            groups[""].append(line)
    text = "\n".join(groups.pop("")) + "\n" + "".join(
        "%s : {\n%s\n};\n" % (name, "\n".join(lines.values())) for name, lines in groups.items())
    wanted = ["logg", "disabled", "drain_ms", "profile.p.tools.allow"] + [
        "%s.%s" % (name, key) for name, lines in groups.items() for key in lines]
    rc, _, err = check(text, code=1)
    said = err.splitlines()
    for key in wanted:
        assert len([x for x in said if re.search(r": %s[.:]" % re.escape(key), x)]) == 1, (key, err)
    assert said[-1] == "%d errors" % len(wanted) and len(wanted) > 12
    # In the order of the file.
    lines = [int(x.split(":")[1]) for x in said[:-1]]
    assert lines == sorted(lines)


def test_o_094_a_service_does_not_start_with_them(check, binary):
    conf = ('upstream : { good : { command = "/usr/bin/touch"; args = ["%s"]; };\n'
            ' bad : { command = "/bin/true"; disabled = true; }; };\n'
            % (check.folder / "started"))
    check(conf, code=1)
    for command in (["serve", "--listen", "127.0.0.1:0"], ["stdio"], ["tools"]):
        done = subprocess.run([binary, *command, "--conf", check.folder / "mcpvisor.conf"],
                              capture_output=True, text=True, timeout=30, env=check.env,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 3 and "upstream.bad.disabled" in done.stderr, done
        assert not (check.folder / "started").exists() and done.stdout == ""


def test_o_094_files_of_clients(check):
    """Their members are others': those with a meaning count, unknown ones are named."""
    (check.folder / "servers.json").write_text("""{ "mcpServers": {
  "off": { "command": "/bin/true", "disabled": true },
  "on": { "command": "/bin/true", "type": "stdio", "alwaysAllow": ["a"],
          "timout": 5 },
  "socket": { "type": "ws", "url": "wss://example.org/mcp" },
  "none": { "args": [] }
} }
""")
    rc, out, err = check('mcp_servers = ["servers.json"];\n')
    text = out + err
    place = str(check.folder / "servers.json")
    assert re.search(re.escape(place) + r':2: entry "off": .*disabled', text), text
    assert re.search(re.escape(place) + r':[34]: entry "on": unknown member "timout"', text)
    assert "alwaysAllow" not in text
    assert re.search("upstream \"socket\": .*WebSocket", text) and "none" in text
    (check.folder / "servers.json").write_text('{"mcpServers": {\n"a": {"command": "x",}}\n{')
    assert place + ":3" in check(None, code=1)[2]


def test_files_of_a_folder(check):
    folder = check.folder / "upstream.d"
    folder.mkdir()
    (folder / "one.conf").write_text('command = "/bin/true";\n')
    (folder / "two.conf").write_text('command = "/bin/true";\n\ncomand = "x";\n')
    (folder / "notes.txt").write_text("not a conf")
    assert "is empty" in check("", code=1)[2]  # maybe half written
    err = check("# nothing\n", code=1)[2]
    assert "%s:3: " % (folder / "two.conf") in err and '"command"' in err
    (folder / "two.conf").write_text('command = "/bin/true";\n')
    assert "2 upstreams" in check("# nothing\n", code=0)[1]
    # A name that is taken is an error, whichever file has it.
    err = check('upstream : { one : { command = "/bin/true"; }; };', code=1)[2]
    assert "one" in err


@pytest.mark.parametrize("what", ["missing", "folder", "binary", "huge", "unreadable"])
def test_files_that_are_no_conf(check, what):
    path = check.folder / "mcpvisor.conf"
    if what == "folder":
        path.mkdir()
    elif what == "binary":
        path.write_bytes(bytes(range(256)) * 10)
    elif what == "huge":
        path.write_text("#" * (4 << 20) + "\n\n")
    elif what == "unreadable":
        path.symlink_to("/proc/self/mem")
    err = check(None, code=1)[2]
    assert str(path) in err and "1 error" in err, err


# -- words -----------------------------------------------------------------------------------


SECRETS = """
upstream : { a : { command = "/bin/cat"; args = ["plain", "${TOKEN}"];
    env : { T = "s3cret-env"; P = "${HOME}"; }; env_pass = ["OTHER_*"]; env_file = "env";
    cwd = "${PLACE}"; tools : { deny = ["x*"]; };
    tool = ( { tool = "t"; fixed : { key = "${TOKEN}"; a = 1; }; } ); }; };
mcp_servers = ["servers.json"];
"""


def test_nothing_secret_is_shown(check):
    (check.folder / "servers.json").write_text(json.dumps({"mcpServers": {"i": {
        "command": "/bin/true", "args": ["--key=s3cret-arg"], "env": {"K": "s3cret-imp"}},
        "j": {"command": "${TOKEN}", "cwd": "/tmp/${TOKEN}"}}}))
    (check.folder / "env").write_text("F=s3cret-file\n")
    more = {"TOKEN": "s3cret-token", "PLACE": str(check.folder)}
    _, out, err = check(SECRETS, "--dump", code=0, **more)
    assert "s3cret" not in out + err and "plain" in out, out
    assert "upstream.a.env.T = (secret)" in out and '"x*"' in out
    for argv in ((), ("--json",)):
        assert "s3cret" not in "".join(map(str, check(SECRETS, *argv, code=0, **more)))
    # Not by a mistake either.
    for wrong in (SECRETS.replace('cwd = "${PLACE}"', 'cwd = 7'),
                  SECRETS.replace('"${TOKEN}"]', '"${TOKEN"]'),
                  SECRETS.replace('"s3cret-env"', '"s3cret-env'),
                  SECRETS.replace("env :", "environ :"),
                  SECRETS.replace('deny = ["x*"]', 'deny = "${TOKEN}"')):
        rc, out, err = check(wrong, code=1, **more)
        assert "s3cret" not in out + err, err


def test_dump_says_every_option_with_its_value(check):
    """One PATH = VALUE a line, in the words of the manual; it is a listing, not a conf."""
    _, out, _ = check('upstream : { a : { command = "/bin/true"; call_ms = "2s"; }; };\n'
                      'log : { level = "debug"; };\n', "--dump", code=0)
    found = dict(x.split(" = ", 1) for x in out.splitlines())
    assert len(found) == len(out.splitlines()) > 40
    assert found["log.level"] == '"debug"' and found["upstream.a.call_ms"] == "2000"
    assert found["limits.pipeline_max"] == "64" and found["drain_ms"] == "1000"
    man = (REPO / "contrib" / "man" / "mcpvisor.conf.5").read_text()
    for key in found:
        assert key.split(".")[-1] in man, key


def test_as_json(check):
    out = json.loads(check("drain_ms = -1;\nlogg : {};\n", "--json", code=1)[1])
    assert out["ok"] is False and [f["level"] for f in out["findings"]] == ["error"] * 2
    assert out["findings"][0]["text"].endswith("0 to 3600000")
    out = json.loads(check('upstream : { a : { command = "/bin/true"; }; };', "--json",
                           code=0)[1])
    assert out == {"ok": True, "findings": [], "upstreams": 1}


def test_a_name_that_is_no_text_is_told_all_the_same(check, binary):
    for argv in ((), ("--json",)):
        done = subprocess.run([binary, "check", *argv, "--conf", b"no\xff.conf"],
                              capture_output=True, timeout=30, env=check.env, cwd=check.folder)
        said = (done.stdout if argv else done.stderr).decode()
        assert done.returncode == 1 and "No such file" in said and "ff.conf" in said, said


def test_what_could_not_be_looked_at_is_not_fine(check, binary):
    path = check.folder / "mcpvisor.conf"
    path.write_text('upstream : { a : { command = "/bin/true"; }; };\n')
    done = subprocess.run(["/bin/sh", "-c", 'ulimit -n 5; exec "$@"', "sh", binary, "check",
                           "--conf", path], capture_output=True, text=True, timeout=30,
                          env=check.env)
    if "Sanitizer" in done.stderr:
        pytest.skip("the sanitizer needs more of them")
    assert done.returncode == 1 and "event loop" in done.stderr, done


@pytest.mark.parametrize("argv", [["--client-prefix", "x"], ["--client-prefix", "1000"],
                                  ["--client-prefix"], ["extra"], ["--profile", "x"]])
def test_wrong_usage(check, argv):
    assert check("", *argv, code=2)[2].count("usage") == 1


# -- what is known of earlier runs -----------------------------------------------------------


def test_findings_of_the_names_on_disk(serve_conf):
    long = "l" * 70
    mv = serve_conf(alpha={"tools": ["echo", "wéird", long, "sp ace"], "prompts": ["p/q"],
                           "resources": ["m:1"]},
                    beta={"tools": ["echo", "m" * 50], "resources": ["m:1"]},
                    per={"alpha": {"prefix": "x_"}, "beta": {"prefix": "x_"}})

    def known():
        return all(u["lists"]["tools"] for u in mv.status()["upstreams"])

    wait_for(known, 5, "both are listed")
    published = mv.modern().tools()
    mv.stop()
    starts = len(mv["alpha"].starts())
    rc, out, err = mv.run("check", "--conf", mv.file, check=0)
    notes = [x for x in out.splitlines() + err.splitlines() if x.startswith("note: ")]
    # Exactly those that are not published as they are, and as clients have seen them.
    for name, word in (("wéird", "mapped"), ("sp ace", "mapped"), (long, "shortened"),
                       ("p/q", "mapped")):
        (note,) = [x for x in notes if '"%s"' % name in x]
        assert word in note, note
        if name != "p/q":
            assert re.search(r'published as "([^"]+)"', note)[1] in published
    taken = [x for x in notes if "taken" in x and "echo" in x]
    assert len(taken) == 1 and "alpha" in taken[0] and "beta" in taken[0], notes
    assert [x for x in notes if '"m:1"' in x], notes
    assert "6 tools, 1 prompts, 2 resources" in out
    assert len(mv["alpha"].starts()) == starts
    # A client that puts more in front.
    out = mv.run("check", "--conf", mv.file, "--client-prefix", "20", check=0)[1]
    over = [x for x in out.splitlines() if "in front" in x]
    assert len(over) == sum(len(n) > 40 for n in published) >= 2, (over, published)
    assert all("60" in x or "64" in x for x in over)
    assert not [x for x in mv.run("check", "--conf", mv.file, "--client-prefix", "0")[1]
                .splitlines() if "in front" in x]
    found = json.loads(mv.run("check", "--conf", mv.file, "--json", check=0)[1])
    assert found["ok"] is True and len(found["findings"]) == len(notes)
    # What any profile shows, once.
    mv.more = {"profile": {"default": {"tools": {"allow": ["*echo"]}}, "one": {"tools": {}},
                           "two": {"tools": {}}}}
    mv.write()
    out = mv.run("check", "--conf", mv.file, "--client-prefix", "20", check=0)[1]
    assert sorted(x for x in out.splitlines() if "in front" in x) == sorted(over)


SERVER = r"""
IFS= read -r tools <"$2"
while IFS= read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{%s,%s}}\n' "$id" \
        '"protocolVersion":"2025-11-25","capabilities":{"tools":{}}' \
        '"serverInfo":{"name":"s","version":"1"}' ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}\n' "$id" "$tools" ;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    esac
done
"""


def test_a_hundred_upstreams_with_ten_thousand_tools(serve_conf):
    """Under 100 ms, from the lists that are on disk."""
    mv = serve_conf(start=False, log_level="warning", more={"list_wait_ms": 0}, listen=[])
    server, tools = mv.folder / "server.sh", mv.folder / "tools"
    server.write_text(SERVER)
    tools.write_text(",".join(json.dumps({
        "name": "get_thing_number_%03d" % n,
        "description": "Looks up the thing of that number and says what is known of it.",
        "inputSchema": {"type": "object", "properties": {
            "id": {"type": "string", "description": "which one"},
            "limit": {"type": "integer", "minimum": 1}}, "required": ["id"]},
    }) for n in range(100)) + "\n")
    for i in range(100):
        mv.add("server%02d" % i, {"command": "/bin/sh", "args": [str(server), str(i), str(tools)]})
        mv.per["server%02d" % i] = {"era": "legacy"}
    mv.write()
    mv.start()

    def known():
        assert mv.proc.poll() is None, mv.log()
        rc, out, _ = mv.run("status", "--socket", mv.socket, "--json")
        return rc == 0 and sum(
            u["lists"]["tools"] or 0 for u in json.loads(out)["upstreams"]) == 10000

    wait_for(known, 30, "all are listed")
    mv.stop(20)
    took = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = mv.run("check", "--conf", mv.file, check=0)[1]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert "100 upstreams" in out and "10000 tools" in out, out
    if not [k for k in mv.env if k.endswith("SAN_OPTIONS")]:
        assert min(took) < 0.1 * PATIENCE, took
