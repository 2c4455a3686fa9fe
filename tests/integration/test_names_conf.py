# SPDX-License-Identifier: MIT
"""Names by the conf: whose tool, how long, in which characters; and names of options."""
import json
import re

import pytest

from mcp import wait_for

ERAS = ["legacy", "modern"]
ECHO = {"tools": ["echo"]}


def safe(names, budget=48):
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,%d}" % budget, n) for n in names), names


def routes(mv, c, names):
    """The tool that each published name reaches, by upstream."""
    found = {}
    for name in names:
        before = {u: len(mv[u].inputs("tools/call")) for u in mv.upstreams}
        c.call(name, {}).result
        for u, n in before.items():
            found.update({name: (u, r.msg["params"]["name"])
                          for r in mv[u].inputs("tools/call")[n:]})
    return found


def known(mv):
    """All lists are kept, so that check and the next start know them."""
    wait_for(lambda: all(None not in u["lists"].values() for u in mv.status()["upstreams"]), 5,
             "all lists")
    wait_for(lambda: len(list((mv.folder / "state/mcpvisor/lists").glob("*.memory"))) == len(
        mv.entries), 5, "they are kept")


# -- whose, stable over restarts, order and time ------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_o_030_the_same_name_twice(serve_conf, era):
    tool = '{"name":"send_email","description":"%s","inputSchema":{"type":"object"}}'
    mv = serve_conf({n: {"tools": [tool % n]} for n in ("alpha", "beta")})
    seen = []
    for turn in range(4):
        if turn == 1:  # the other order of the file
            mv.entries = dict(reversed(mv.entries.items()))
            mv.reload()
        elif turn == 2:  # and over a restart
            mv.restart()
        elif turn == 3:  # and when the other one is there first
            first = next(iter(mv.entries))
            mv[first].become(on={"start": [["block", 300]]})
            mv.restart()
        c = mv.speak(era)
        tools = {t["name"]: t["description"] for t in c.ask("tools/list").result["tools"]}
        assert tools == {"alpha__send_email": "alpha", "beta__send_email": "beta"}
        seen.append(list(tools))
        assert routes(mv, c, tools) == {"alpha__send_email": ("alpha", "send_email"),
                                        "beta__send_email": ("beta", "send_email")}
    # Conf order; the first turn's is that of the file then.
    assert seen[0] == seen[1][::-1] == seen[2][::-1] == seen[3][::-1]


def test_o_030_bare_names_that_collide(serve_conf):
    """The first in the conf has the name after each start, whoever is ready first."""
    mv = serve_conf(alpha=ECHO, beta=ECHO, per={n: {"prefix": ""} for n in ("alpha", "beta")})
    want = {"echo": ("alpha", "echo"), "beta__echo": ("beta", "echo")}
    c = mv.legacy()
    assert routes(mv, c, c.tools()) == want
    known(mv)
    mv["alpha"].become(on={"start": [["block", 300]]})
    mv.restart()
    c = mv.legacy()
    assert c.tools() == ["echo", "beta__echo"]
    assert routes(mv, c, c.tools()) == want
    _, out, err = mv.run("check", "--conf", mv.file, check=0)
    assert re.search("echo.*is published as.*beta__echo.*taken by.*alpha", out + err), out + err


# -- length --------------------------------------------------------------------------

LONG = ["a" * 40, "b" * 44, "t" * 60 + "abcd", "c" * 128, "t" * 60 + "wxyz", "ok"]


@pytest.mark.parametrize("budget", [24, 48, 128])
def test_o_031_names_fit_the_budget(serve_conf, budget):
    up = "u" * 20
    mv = serve_conf({up: {"tools": LONG}}, more="limits : { name_bytes = %d; };\n" % budget)
    c = mv.legacy()
    names = c.tools()
    safe(names, budget)
    assert routes(mv, c, names) == {n: (up, t) for n, t in zip(names, LONG)}
    known(mv)
    mv.restart()
    assert mv.legacy().tools() == names
    # A name that fits is as it is.
    fits = [n for n, t in zip(names, LONG) if n == "%s__%s" % (up, t)]
    assert len(fits) == sum(len(t) + 22 <= budget for t in LONG)
    _, out, _ = mv.run("check", "--conf", mv.file, check=0)
    assert out.count("shortened") == len(LONG) - len(fits)


def test_o_031_a_short_name_depends_on_its_tool_alone(serve_conf):
    mv = serve_conf({"u" * 20: {"tools": ["x" * 64]}, "v": ECHO})
    c = mv.legacy()
    name = c.tools()[0]
    mv["u" * 20].run(["set", "tools", ["y" * 64, "x" * 63, "x" * 64]], ["changed", "tools"])
    wait_for(lambda: len(c.tools()) == 4, 5)
    assert name in c.tools()
    mv.entries = dict(reversed(mv.entries.items()))
    mv.reload()
    assert name in c.tools()


def test_o_031_a_reload_sets_the_budget(serve_conf):
    mv = serve_conf(alpha={"tools": ["n" * 41]})
    c = mv.legacy()
    assert c.tools() == ["alpha__" + "n" * 41]
    mv.more = "limits : { name_bytes = 30; };\n"
    assert "limits.name_bytes" in mv.reload()
    short = wait_for(lambda: (lambda t: len(t[0]) <= 30 and t)(c.tools()), 5)[0]
    assert c.call(short, {}).result
    assert c.call("alpha__" + "n" * 41, {}).code == -32602
    for bad in (23, 129):
        mv.more = "limits : { name_bytes = %d; };\n" % bad
        mv.write()
        assert "limits.name_bytes" in mv.control("reload", check=3)[2]


def test_o_031_check_says_who_would_be_cut_by_a_client(serve_conf):
    mv = serve_conf(alpha={"tools": ["n" * 40, "m" * 30, "ok"]})
    assert len(mv.legacy().tools()) == 3
    known(mv)
    assert mv.stop() == 0

    def cut(n):
        _, out, _ = mv.run("check", "--conf", mv.file, "--client-prefix", n, "--json", check=0)
        return [f["text"] for f in json.loads(out)["findings"] if "clients take" in f["text"]]

    # 47 and 37 characters: over 64 and over 60 of some client.
    assert cut(13) == [] and len(cut(14)) == 1 and "over the 60" in cut(14)[0]
    assert "over the 64" in cut(18)[0] and len(cut(24)) == 2


# -- characters ----------------------------------------------------------------------


def unmap(name):
    raw = re.sub(rb"_x([0-9A-Fa-f]{2})", lambda m: bytes.fromhex(m[1].decode()), name.encode())
    return raw.decode()


@pytest.mark.parametrize("prefix", [None, "", "p-"])
def test_o_032_other_characters_are_mapped_reversibly(serve_conf, prefix):
    tools = ["restartNode.js", "a/b", "a b", "été", "ok", "a.b", "a_b", "a-b", "\U0001F600"]
    mv = serve_conf(alpha={"tools": tools, "prompts": ["a.b", "a_b"]},
                    per={"alpha": {} if prefix is None else {"prefix": prefix}})
    c = mv.legacy()
    names = c.tools()
    safe(names)
    head = "alpha__" if prefix is None else prefix
    assert head + "ok" in names and head + "a_b" in names
    assert [unmap(n[len(head):]) for n in names] == tools
    assert routes(mv, c, names) == {n: ("alpha", t) for n, t in zip(names, tools)}
    assert [unmap(p["name"][len(head):]) for p in c.ask("prompts/list").result["prompts"]] == [
        "a.b", "a_b"]
    known(mv)
    _, out, _ = mv.run("check", "--conf", mv.file, check=0)
    assert "characters are mapped" in out and "a_b is" not in out


def test_o_032_what_looks_like_a_mapped_name_is_not_merged(serve_conf):
    tools = ["a.b", "a_x2eb", "a_x2Eb", "a_x"]
    mv = serve_conf(alpha={"tools": tools})
    c = mv.legacy()
    names = c.tools()
    safe(names)
    assert routes(mv, c, names) == {n: ("alpha", t) for n, t in zip(names, tools)}


# -- names of options ----------------------------------------------------------------

GOOD = 'listen = ( { address = "127.0.0.1:0"; } );\n'
UP = 'upstream : {\n alpha : {\n  command = "/bin/touch"; args = ["started"];%s\n };\n%s};\n%s'


@pytest.mark.parametrize("own,beside,after,words,line", [
    ("\n  disabled = true;", "", "", ["disabled"], 5),
    ("\n  enabeld = false;", "", "", ["enabeld", '"enabled"'], 5),
    ("\n  env : { A = 1; };", "", "", ["env"], 5),
    ("\n  enabled = 1;", "", "", ["enabled"], 5),
    ("\n  call_ms = true;", "", "", ["call_ms"], 5),
    ("\n  call_ms = 0;", "", "", ["call_ms"], 5),
    ('\n  era = "modren";', "", "", ["era", "modern"], 5),
    ("\n  call_ms = 1;\n  call_ms = 2;", "", "", [], 6),
    ("", ' alpha : {\n  command = "x";\n };\n', "", [], 6),
    ("", ' beta : {\n };\n', "", ["command"], 6),
    ("", "", "lisen = ();\n", ["lisen", '"listen"'], 7),
    ("", "", "log : { level = 3; };\n", ["log.level"], 7),
    ("", "", "upstream : { };\n", [], 7),
    ("", "", "limits : {\n", [], 8),
])
def test_o_094_an_error_names_its_file_line_and_key(serve_conf, own, beside, after, words, line):
    mv = serve_conf(start=False)
    mv.write(GOOD + UP % (own, beside, after))
    _, _, err = mv.run("check", "--conf", mv.file, check=1)
    found = re.search(re.escape(str(mv.file)) + r":(\d+): (.*)", err)
    assert found, err
    for word in words:
        assert word in err
    assert line - 1 <= int(found[1]) <= line, err
    # And nothing of it runs.
    _, _, said = mv.run(*mv.argv()[1:], check=3)
    assert str(mv.file) in said
    for command in ("tools", "stdio"):
        assert mv.run(command, "--conf", mv.file, stdin=b"")[0] == 3
    assert not (mv.folder / "started").exists()


def test_o_094_every_error_is_told(serve_conf):
    mv = serve_conf(start=False)
    mv.write(GOOD + UP % ("\n  a = 1;\n  b = 2;\n  call_ms = -1;", ' beta : { };\n', "zzz = 1;\n"))
    _, _, err = mv.run("check", "--conf", mv.file, check=1)
    for word in ("alpha.a", "alpha.b", "alpha.call_ms", "beta", "zzz"):
        assert word in err, err
    assert "5 errors" in err


def test_o_094_members_of_an_import_that_we_do_not_know_warn(serve_conf):
    mv = serve_conf(alpha=ECHO, more='mcp_servers = ["servers.json"];\n', start=False)
    gamma = {**mv.entries["alpha"], "type": "stdio", "alwaysAllow": ["x"], "frobnicate": 1}
    (mv.folder / "servers.json").write_text(json.dumps({"mcpServers": {
        "gamma": gamma, "delta": {**gamma, "disabled": True}}}))
    _, out, err = mv.run("check", "--conf", mv.file, check=0)
    assert "frobnicate" in out + err and "gamma" in out + err
    mv.start()
    c = mv.legacy()
    wait_for(lambda: c.tools() == ["alpha__echo", "gamma__echo"], 5)
    assert [u["name"] for u in mv.status()["upstreams"]] == ["alpha", "gamma"]
    assert "frobnicate" in mv.log()


def test_one_file_for_each_upstream_is_named_by_it(serve_conf):
    mv = serve_conf(zeta=ECHO, more='upstream_dir = "up.d";\n', start=False)
    folder = mv.folder / "up.d"
    folder.mkdir()
    body = "command = %s; args = [%s];\n" % (
        json.dumps(mv.entries["zeta"]["command"]),
        ", ".join(json.dumps(a) for a in mv.entries["zeta"]["args"]))
    for name in ("b", "a", "B", "My-Server"):
        (folder / (name + ".conf")).write_text(body)
    (folder / "x.conf~").write_text("no sense")
    mv.start()
    # Behind those of the main file, in the order of their bytes.
    assert mv.legacy().tools() == ["zeta__echo", "B__echo", "My-Server__echo", "a__echo",
                                   "b__echo"]
    (folder / "zeta.conf").write_text(body)
    _, _, err = mv.control("reload", check=3)
    assert "zeta" in err
    (folder / "zeta.conf").unlink()
    (folder / "b.conf").write_text(body + "\n  nonsense = 1;\n")
    _, _, err = mv.control("reload", check=3)
    assert "b.conf:3:" in err and "nonsense" in err
