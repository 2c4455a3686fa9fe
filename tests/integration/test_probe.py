# SPDX-License-Identifier: MIT
"""mcpvisor probe: which tools it calls, what it writes down, and what comes of the file."""
import json
import os
import signal
import stat
import subprocess
import time

import pytest

from mcp import wait_for

READS = {"readOnlyHint": True}
ANY = {"type": "object"}


def tool(name, annotations=READS, **more):
    found = {"name": name, "inputSchema": ANY, **more}
    return {**found, "annotations": annotations} if annotations is not None else found


def text(value):
    return {"content": [{"type": "text", "text": value if isinstance(value, str)
                         else json.dumps(value)}]}


ROWS = {"id": 7, "rows": [{"name": "x"}, {"name": "y"}]}
SHAPE = "{id: number, rows: [2 of {name: string}]}"
RETURNS = "Returns: %s (as mcpvisor probe has seen it)" % SHAPE


class Probe:
    """A conf over scripted upstreams, and what probe makes of it."""

    def __init__(self, serve_conf, upstreams, per=None, more="", file="probe.json", **options):
        self.mv = serve_conf(upstreams, per=per, more=more, start=False, **options)
        self.settings, self.more = {"file": file} if file else {}, more
        self.path = self.mv.folder / (file or "probe.json")
        self.write()

    def write(self, **settings):
        self.settings.update(settings)
        rows = "".join('%s = %s; ' % (k, json.dumps(v)) for k, v in self.settings.items())
        self.mv.more = self.more + ("probe : { %s};\n" % rows if rows else "")
        self.mv.write()

    def run(self, *argv, check=0):
        got = self.mv.run("probe", "--conf", self.mv.file, *argv, check=check)
        assert self.mv.file.read_text() == self.mv.text()
        return got[1], got[2]

    def file(self):
        return json.loads(self.path.read_text())

    def records(self):
        return {(r["upstream"], r["tool"]): r for r in self.file()["tools"]}

    def record(self, name, upstream="alpha"):
        return self.records()[upstream, name]

    def calls(self, upstream="alpha"):
        return [i.msg["params"]["name"] for i in self.mv[upstream].inputs("tools/call")]


@pytest.fixture
def probe(serve_conf):
    return lambda upstreams=None, **kw: Probe(serve_conf, upstreams or {}, **kw)


def one(result=None, steps=None, **more):
    """An upstream whose one read-only tool returns that."""
    return {"tools": [tool("read")], "calls": {
        "read": steps or [["reply", result or text(ROWS)]]}, **more}


# -- what is called ------------------------------------------------------------------------


def test_only_what_says_that_it_reads(probe):
    quiet = [tool("plain", None), tool("no", {"readOnlyHint": False}), tool("open", {}),
             tool("text", {"readOnlyHint": "true"}), tool("one", {"readOnlyHint": 1}),
             tool("title", {"title": "readOnlyHint"})]
    p = probe({"alpha": {"tools": [
        tool("read"), *quiet, tool("both", {"readOnlyHint": True, "destructiveHint": True}),
        tool("needs", inputSchema={"type": "object", "required": ["id"]}), tool("whoami"),
        tool("denied")], "calls": {"read": [["reply", text(ROWS)]]}}}, per={"alpha": {"probe": {"deny": ["den*"]}}})
    out, _ = p.run()
    assert p.calls() == ["read"]
    assert {k[1]: r.get("skipped") for k, r in p.records().items()} == {
        "read": None, "both": "it says that it is destructive",  # R10
        "needs": "it needs arguments that probe_args does not give",  # R09
        "whoami": "it is asked who somebody is", "denied": "probe.deny has it"}
    assert "1 called, 1 sampled" in out  # R08: the others are not even told of
    assert not any("alpha: %s:" % q["name"] in out for q in quiet)


def test_allow_names_those_that_may(probe):
    p = probe({"alpha": {"tools": [tool("read_a"), tool("read_b"), tool("read_x", None)]}},
              per={"alpha": {"probe": {"allow": ["*_a", "*_x"]}}})
    p.run()
    assert p.calls() == ["read_a"]
    assert p.record("read_b")["skipped"] == "probe.allow does not have it"


def test_arguments_from_the_conf(probe):
    needs = {"type": "object", "required": ["a", "b"]}
    p = probe({"alpha": {"tools": [tool("read", inputSchema=needs)]}},
              per={"alpha": {"tool": [{"tool": "read", "probe_args": '{"a": [1, 2]}'}]}})
    p.run()
    assert p.calls() == [] and "skipped" in p.record("read")
    p.mv.per["alpha"]["tool"] = [{"tool": "read", "probe_args": '{"a": [1, 2]}',
                                  "fixed": '{"b": true}'}]
    p.write()
    p.run()
    sent = p.mv["alpha"].inputs("tools/call")[-1].msg["params"]["arguments"]
    assert sent == {"a": [1, 2], "b": True} and "shape" in p.record("read")
    p.run()
    assert p.calls() == ["read"]
    # Other arguments, another call.
    p.mv.per["alpha"]["tool"][0]["probe_args"] = '{"a": 3}'
    p.write()
    p.run()
    assert p.calls() == ["read"] * 2


def test_one_at_a_time_with_a_pause(probe):
    names = ["a", "b", "c"]
    p = probe({"alpha": {"tools": [tool(n) for n in names]},
               "beta": {"tools": [tool(n) for n in names]}})
    start = time.monotonic()
    p.run()
    for upstream in ("alpha", "beta"):
        at = [r.at for r in p.mv[upstream].inputs("tools/call")]
        assert p.calls(upstream) == names
        assert all(b - a >= 190e6 for a, b in zip(at, at[1:])), at
    assert time.monotonic() - start < 10


# -- what is written -----------------------------------------------------------------------


def test_r01_a_result(probe):
    p = probe({"alpha": one()})
    out, err = p.run()
    r = p.record("read")
    assert (r["ok"], r["is_error"], r["shape"]) == (True, False, SHAPE)
    assert json.loads(r["sample"]) == ROWS and r["content"] == ["text"]
    assert r["bytes"] == len(json.dumps(text(ROWS), separators=(",", ":"))) and r["ms"] >= 0
    assert r["time"].endswith("Z") and "why" not in r and "failure" not in r
    assert out == "alpha: read: sampled\n1 called, 1 sampled; %s is written\n" % p.path
    assert err == ""


FAILURES = {
    "r02": ([["reply", {**text("403 Forbidden"), "isError": True}]],
            dict(ok=True, is_error=True, why="is_error", failure="403 Forbidden")),
    "r03": ([["error", -32000, "no such table"]],
            dict(ok=False, is_error=False, why="error", failure="no such table")),
    "r05": ([["reply", text({"errors": [{"message": "no"}], "data": None})]],
            dict(ok=True, is_error=True, why="is_error")),
    "r07": ([["reply", text({"data": {"viewer": None}})]],
            dict(ok=True, is_error=False, why="null")),
    "empty": ([["reply", {"content": []}]], dict(ok=True, why="null")),
    "died": ([["kill"]], dict(ok=False, why="died")),
    "suspect": ([["reply", text({"errors": [{"message": "no"}]})]],
                dict(ok=True, is_error=False, why="suspect")),
    "long": ([["error", -32000, "\u00e9" * 300]], dict(why="error", failure="\u00e9" * 100)),
    "secret": ([["error", -32000, "password: hunter2"]], dict(why="error")),
}


@pytest.mark.parametrize("case", FAILURES)
def test_r02_to_r07_what_is_not_good_is_no_sample(probe, case):
    steps, want = FAILURES[case]
    p = probe({"alpha": one(steps=steps)})
    out, _ = p.run()
    r = p.record("read")
    assert {k: r.get(k) for k in want} == want
    assert "sample" not in r and "shape" not in r
    assert "alpha: read: %s\n1 called, 0 sampled" % want["why"] in out
    assert "hunter2" not in p.path.read_text()


def test_r04_a_timeout(probe):
    p = probe({"alpha": {"tools": [tool("hang"), tool("read")], "calls": {
        "hang": [["gate", "never"]]}}})
    p.write(timeout_ms=100)
    p.run()
    assert p.record("hang")["why"] == "timeout" and p.record("hang")["ok"] is False
    # It is told, and goes on being asked.
    assert len(p.mv["alpha"].inputs("notifications/cancelled")) == 1
    assert p.record("read")["ok"] is True and len(p.mv["alpha"].starts()) == 1


def test_r06_a_partial_answer_is_a_sample_but_no_description(probe):
    p = probe({"alpha": one(text({"data": {"a": {"b": 1}, "x": None},
                                  "errors": [{"message": "no x", "path": ["x"]}]}))},
              per={"alpha": {"graphql": "on"}})
    p.run()
    r = p.record("read")
    assert (r["answer"], r["graphql"]) == ("partial", "partial") and "sample" in r
    assert "Returns" not in p.mv.run("tools", "--json", "--conf", p.mv.file, check=0)[1]


def test_r12_a_large_one(probe):
    big = {"pre": '{"content":[{"type":"text","text":"', "repeat": "\u00e9",
           "n": 2500000, "post": '"}]}'}
    p = probe({"alpha": one(steps=[["reply", big]])})
    p.run()
    r = p.record("read")
    assert r["bytes"] > 5000000 and len(r["sample"].encode()) <= 4096
    assert set(r["sample"]) == {"\u00e9"}
    p.write(sample_max=11)
    p.run("--again")
    assert p.record("read")["sample"] == "\u00e9" * 5


def test_one_that_is_too_large_for_a_sample_says_so(probe):
    big = {"pre": '{"content":[{"type":"text","text":"', "repeat": "x", "n": 6500000,
           "post": '"}]}'}
    p = probe({"alpha": one(steps=[["reply", big]])})
    assert "0 sampled" in p.run()[0]
    r = p.record("read")
    assert r["why"] == "too_large" and not {"shape", "sample"} & set(r)


def test_input_required_is_written_down_and_not_answered(probe):
    ask = {"resultType": "input_required", "requestState": "s", "inputRequests": {"q": {
        "method": "elicitation/create", "params": {"message": "?", "requestedSchema": ANY}}}}
    p = probe({"alpha": one(ask, era="modern")})
    p.run()
    assert p.record("read")["why"] == "input_required" and p.calls() == ["read"]


def test_a_question_is_refused(probe):
    p = probe({"alpha": one(steps=[
        ["request", "7", "elicitation/create", '{"message":"?","requestedSchema":{}}'],
        ["expect", "7", 5000], ["reply", text(ROWS)]])})
    p.run()
    assert p.record("read")["ok"] is True


def test_secrets_are_not_written(probe):
    p = probe({"alpha": one(text({
        "token": "hunter2", "api_key": {"deep": "hunter2"}, "Password": ["hunter2"],
        "mail": "ann@example.org", "n": 1}))})
    p.run()
    whole = p.path.read_text()
    assert "hunter2" not in whole and "ann@" not in whole and p.record("read")["shape"]


def test_odd_names_and_texts(probe, binary):
    p = probe({"alpha": {"tools": [tool("b\u001b[2Jell"), tool("sp ace"), tool("\u00fc")],
                         "calls": {"sp ace": [["reply", text("a\u0000b\u001b[2J")]]}}})
    out, _ = p.run()
    assert "\u001b" not in out and len(p.records()) == 3
    first = p.path.read_bytes()
    out, _ = p.run()
    assert p.path.read_bytes() == first and len(p.calls()) == 3


# -- a second run --------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_second_run_does_nothing(probe, era):
    bad = {"bad": [["error", -32000, "no"]], "hang": [["gate", "never"]]}
    names = [tool(n) for n in ("z", "bad", "a", "hang")] + [
        tool("needs", inputSchema={"type": "object", "required": ["x"]})]
    p = probe({"beta": {"tools": names, "calls": bad, "era": era},
               "alpha": {"tools": names, "calls": bad, "era": era}})
    p.write(timeout_ms=100)
    p.run()
    before, seen = p.path.read_bytes(), (p.calls(), p.calls("beta"))
    inode = os.stat(p.path).st_ino
    for _ in range(2):
        out, err = p.run()
        assert out == "0 called, 0 sampled; %s is as it was\n" % p.path and err == ""
        assert p.path.read_bytes() == before and os.stat(p.path).st_ino == inode
    assert (p.calls(), p.calls("beta")) == seen
    assert [(r["upstream"], r["tool"]) for r in p.file()["tools"]] == sorted(p.records())


def test_another_definition_is_called_again(probe):
    p = probe({"alpha": {"tools": [tool("read"), tool("other")]}})
    p.run()
    p.mv["alpha"].become(tools=[tool("read", description="Another."), tool("other")])
    p.run()
    assert p.calls() == ["read", "other", "read"]
    # What is gone is forgotten.
    p.mv["alpha"].become(tools=[tool("other")])
    p.run()
    assert list(p.records()) == [("alpha", "other")]


def test_again(probe):
    p = probe({"alpha": one(), "beta": one()})
    p.run()
    p.run("--again", "beta")
    assert p.calls() == ["read"] and p.calls("beta") == ["read"] * 2
    assert len(p.records()) == 2


def test_one_upstream_alone(probe):
    p = probe({"alpha": one(), "beta": one()})
    p.run("alpha")
    assert list(p.records()) == [("alpha", "read")] and p.calls("beta") == []
    p.run("beta")
    assert len(p.records()) == 2 and p.calls() == ["read"]


def test_one_that_does_not_run_keeps_what_is_known(probe):
    p = probe({"alpha": one(), "beta": one()}, per={"beta": {"restart_limit": 1}})
    p.run()
    known = p.record("read", "beta")
    p.mv["beta"].become(on={"start": [["exit", 3]]})
    p.mv["alpha"].become(tools=[tool("read", description="Another.")])
    out, err = p.run(check=5)
    assert "beta does not run" in err and p.record("read", "beta") == known
    assert p.calls() == ["read"] * 2


def test_one_that_dies_for_good_in_between(probe):
    names = [tool(n) for n in ("a", "die", "z")]
    p = probe({"alpha": {"tools": names}}, per={"alpha": {"restart_limit": 1}})
    p.run()
    known = p.record("z")
    p.mv["alpha"].become(calls={"die": [["kill"]]}, tools=[
        tool("a"), tool("die", description="New."), tool("z")])
    out, err = p.run(check=5)
    assert p.record("die")["why"] == "died" and p.record("z") == known
    assert "1 called" in out and "alpha cannot be called any more: parked" in err


# -- the file ------------------------------------------------------------------------------


def test_mode_path_and_elsewhere(probe, tmp_path):
    p = probe({"alpha": one()}, file="sub/probe.json")
    out, err = p.run(check=5)
    assert "No such file" in err and not p.path.exists()
    p.path.parent.mkdir()
    os.umask(os.umask(0))
    p.run()
    # Beside the conf, wherever it is run from.
    assert stat.S_IMODE(os.stat(p.path).st_mode) == 0o600
    assert os.listdir(p.path.parent) == ["probe.json"]
    there = tmp_path / "elsewhere"
    there.mkdir()
    done = subprocess.run([p.mv.binary, "probe", "--conf", p.mv.file, "--to", "other.json"],
                          cwd=there, env=p.mv.env, capture_output=True, timeout=30)
    assert done.returncode == 0, done
    assert json.loads((there / "other.json").read_text())["tools"]
    done = subprocess.run([p.mv.binary, "probe", "--conf", p.mv.file], cwd=there,
                          env=p.mv.env, capture_output=True, timeout=30)
    assert done.returncode == 0 and b"0 called" in done.stdout, done


def test_nowhere_to_write(probe):
    p = probe({"alpha": one()}, file=None)
    _, err = p.run(check=2)
    assert "set probe.file, or say --to FILE" in err and p.calls() == []


def test_an_unknown_upstream(probe):
    p = probe({"alpha": one()})
    _, err = p.run("alhpa", check=4)
    assert "no such upstream: alhpa" in err and not p.path.exists()
    assert p.mv["alpha"].starts() == []


DAMAGED = ["", "{", "[]", "{}", '{"mcpvisor_probe":2,"tools":[]}', '{"mcpvisor_probe":1}',
           '{"mcpvisor_probe":1,"tools":{}}', "\x00\x01", "root:x:0:0\n"]


@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_file_that_is_no_such_one(probe, damaged):
    p = probe({"alpha": one()})
    p.path.write_text(damaged)
    _, err = p.run(check=3)
    assert str(p.path) in err and "probe has written" in err
    assert p.path.read_text() == damaged and p.mv["alpha"].starts() == []
    # Whoever only reads it warns, and goes on.
    done = p.mv.run("tools", "--conf", p.mv.file, check=0)
    assert "alpha__read" in done[1]
    done = p.mv.run("check", "--conf", p.mv.file)
    assert done[0] == 0 and str(p.path) in done[1] + done[2]


ODD = [1, {}, {"upstream": "alpha"}, {"upstream": "alpha", "tool": "read"},
       {"upstream": "alpha", "tool": 7, "shape": "x"}, {"upstream": 1, "tool": "read"},
       {"upstream": "alpha", "tool": "read", "shape": ["x"], "digest": {}},
       {"upstream": "nobody", "tool": "read", "shape": "x"},
       {"upstream": "alpha", "tool": "", "shape": "x"}, None, [[]]]


@pytest.mark.parametrize("odd", ODD)
def test_odd_records_change_nothing(probe, odd):
    p = probe({"alpha": one()})
    p.path.write_text(json.dumps({"mcpvisor_probe": 1, "tools": [odd]}))
    shown = p.mv.run("tools", "--json", "--conf", p.mv.file, check=0)[1]
    assert "Returns" not in shown and "alpha__read" in shown
    p.run()
    assert p.calls() == ["read"] and list(p.records()) == [("alpha", "read")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_the_file(probe, number):
    p = probe({"alpha": {"tools": [tool("a"), tool("hang")],
                         "calls": {"hang": [["gate", "never"]]}}})
    old = '{"mcpvisor_probe":1,"tools":[]}'
    p.path.write_text(old)
    proc = subprocess.Popen([p.mv.binary, "probe", "--conf", p.mv.file], env=p.mv.env,
                            cwd=p.mv.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: "hang" in p.calls(), 10, "it is called")
    proc.send_signal(number)
    out, err = proc.communicate(timeout=10)
    assert proc.returncode == 5 and b"interrupted" in err, (proc.returncode, err)
    assert p.path.read_text() == old
    assert sorted(f for f in os.listdir(p.mv.folder) if f.startswith("probe")) == ["probe.json"]


def test_interrupted_while_it_starts(probe):
    p = probe({"alpha": one(on={"initialize": [["gate", "never"]]})})
    proc = subprocess.Popen([p.mv.binary, "probe", "--conf", p.mv.file], env=p.mv.env,
                            cwd=p.mv.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.mv["alpha"].wait_input("server/discover")
    proc.send_signal(signal.SIGINT)
    proc.communicate(timeout=10)
    assert proc.returncode == 5 and not p.path.exists()


# -- what comes of it ----------------------------------------------------------------------


def described(c):
    return {t["name"].removeprefix("alpha__"): t.get("description")
            for t in c.ask("tools/list").result["tools"]}


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_descriptions(probe, upstream):
    same = [["reply", {**({"resultType": "complete"} if upstream == "modern" else {}),
                       **text(ROWS)}]]
    names = {"plain": {}, "own": {"description": 'It "says" \\ \u00e9\n.'},
             "conf": {"description": "Of the upstream."}, "cut": {}, "empty": {"description": ""}}
    p = probe({"alpha": {"era": upstream, "tools": [tool(n, **m) for n, m in names.items()],
                         "calls": {n: same for n in names}}},
              per={"alpha": {"tool": [{"tool": "conf", "description": 'Of "us".'},
                                      {"tool": "cut", "fixed": '{"x": 1}', "name": "kut"}]}})
    p.run()
    mv = p.mv
    mv.start()
    want = {"plain": RETURNS, "own": names["own"]["description"] + "\n\n" + RETURNS,
            "conf": 'Of "us".\n\n' + RETURNS, "kut": RETURNS, "empty": RETURNS}
    for c in (mv.legacy(), mv.modern()):
        assert described(c) == want
    # What it sampled stays in the file.
    assert '"x"' not in json.dumps(want)


def test_a_live_reload_takes_another_file(probe):
    p = probe({"alpha": one(), "beta": {"tools": ["echo"]}})
    p.mv.start()
    c = p.mv.legacy()
    assert described(c)["read"] is None
    p.run()
    assert "1 called" in p.run("--again")[0]
    p.mv.control("reload")
    assert described(c)["read"] == RETURNS
    # Nobody was restarted for it: one start by the daemon, two by probe.
    assert len(p.mv["beta"].starts()) == 3
    p.mv["alpha"].become(calls={"read": [["reply", text({"n": 1})]]})
    p.run("--again")
    p.mv.control("reload")
    assert "Returns: {n: number}" in described(c)["read"]
    p.path.write_text("damaged")
    p.mv.control("reload")
    assert described(c)["read"] is None
    p.mv.wait_log("warning conf: .*probe.json")
    p.path.unlink()
    p.mv.control("reload")
    assert described(c)["read"] is None


def test_a_tool_that_has_become_another_one_is_not_described_by_it(probe):
    p = probe({"alpha": one()})
    p.run()
    p.mv["alpha"].become(tools=[tool("read", description="Another.")])
    p.mv.start()
    assert described(p.mv.modern())["read"] == "Another."


def test_the_dump_has_only_what_was_written(probe):
    p = probe({"alpha": one()})
    before = p.mv.run("check", "--dump", "--conf", p.mv.file, check=0)[1]
    p.run()
    assert p.mv.run("check", "--dump", "--conf", p.mv.file, check=0)[1] == before


def test_tools_that_are_made_here(probe):
    p = probe({"alpha": {"command": "unused"}})
    p.mv.entries["alpha"] = {"kind": "exec", "tool": [
        {"tool": "hello", "command": "/bin/echo", "args": ["hello"], "read_only": True},
        {"tool": "write", "command": "/bin/echo", "args": ["bye"]}]}
    p.write()
    out, err = p.run()
    assert list(p.records()) == [("alpha", "hello")] and p.record("hello")["sample"] == "hello"
    # One that is no more is not made by what is known of it.
    p.mv.entries["alpha"]["tool"] = [p.mv.entries["alpha"]["tool"][1]]
    p.write()
    shown = p.mv.run("tools", "--json", "--conf", p.mv.file, check=0)[1]
    assert "hello" not in shown and "alpha__write" in shown


@pytest.mark.parametrize("start", ["eager", "on_use"])
def test_upstreams_that_start_when_they_are_used(probe, start):
    p = probe({"alpha": one()}, per={"alpha": {"start": start}})
    p.run()
    assert p.calls() == ["read"] and "shape" in p.record("read")


def test_a_list_in_pages_and_a_profile(probe):
    p = probe({"alpha": {"tools": [tool("t%d" % i) for i in range(5)], "page": 2}},
              per={"alpha": {"tools": {"deny": ["t3"]}}})
    p.run()
    assert p.calls() == ["t0", "t1", "t2", "t4"]
