# SPDX-License-Identifier: MIT
"""Options of an upstream that have no file of their own, each by what it does."""
import os
import signal
import time

import pytest

from mcp import group_members, wait_for

ERAS = ["legacy", "modern"]
ECHO = {"tools": ["echo"]}
HOLD = {"tools": ["echo", "hold"], "calls": {"hold": [["gate", "go"], ["reply", {
    "content": []}]]}}
NEVER = {"tools": ["echo", "never", "other"], "prompts": ["ask"],
         "calls": {"never": [], "other": []}, "on": {"prompts/get": []}}
SLOW = {m: [["gate", "up"], ["default"]] for m in ("server/discover", "initialize")}
BUSY = {"upstream": "alpha", "reason": "busy", "retryable": True}
TIMEOUT = {"upstream": "alpha", "reason": "timeout", "retryable": True}


def pid(mv, name="alpha"):
    return mv.upstream_status(name)["pid"]


def state(mv, name="alpha"):
    return mv.upstream_status(name)["state"]


def took_ms(fn):
    start = time.monotonic()
    value = fn()
    return value, (time.monotonic() - start) * 1000


# -- bounds of calls -----------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_queue_calls_is_how_many_wait_or_run(serve_conf, era):
    mv = serve_conf(alpha={**HOLD, "era": era}, beta=ECHO, per={"alpha": {"queue_calls": 2}})
    c = mv.speak(era)
    assert c.tools()
    held = [c.start_call("alpha__hold", {}) for _ in range(2)]
    mv["alpha"].wait_input("tools/call", 2)
    refused = c.call("alpha__echo", {})
    assert refused.code == -32603 and refused.error["data"] == BUSY
    # That call only: others run, and there is room once one has ended.
    assert c.call("beta__echo", {}).result
    assert len(mv["alpha"].inputs("tools/call")) == 2
    mv["alpha"].open("go")
    assert [h.result["content"] for h in held] == [[], []]
    assert c.call("alpha__echo", {"n": 1}).result["structuredContent"] == {"n": 1}
    calls = mv.upstream_status("alpha")["calls"]
    assert calls["transport"]["busy"] == 1 and calls["in_flight"] == 0


def test_queue_calls_counts_those_that_wait_for_the_start(serve_conf):
    mv = serve_conf(alpha=ECHO, per={"alpha": {"queue_calls": 2, "idle_stop_ms": 60}})
    c = mv.modern()
    assert c.tools()
    wait_for(lambda: state(mv) == "asleep", 5)
    mv["alpha"].become(on=SLOW)
    held = [c.start_call("alpha__echo", {"n": n}) for n in range(2)]
    wait_for(lambda: mv.upstream_status("alpha")["queue"]["held"] == 2, 5, "they wait")
    assert c.call("alpha__echo", {}).error["data"] == BUSY
    mv["alpha"].open("up")
    assert [h.result["structuredContent"]["n"] for h in held] == [0, 1]


def test_queue_bytes_of_calls_that_wait_for_the_start(serve_conf):
    mv = serve_conf(alpha=ECHO, beta=ECHO, per={"alpha": {"queue_bytes": "10k",
                                                          "idle_stop_ms": 60}})
    c = mv.modern()
    assert c.tools()
    wait_for(lambda: state(mv) == "asleep", 5)
    mv["alpha"].become(on=SLOW)
    held = c.start_call("alpha__echo", {"x": "y" * 6000})
    wait_for(lambda: mv.upstream_status("alpha")["queue"]["held"] == 1, 5, "it waits")
    assert 6000 < mv.upstream_status("alpha")["queue"]["held_bytes"] <= 10240
    assert c.call("alpha__echo", {"x": "y" * 6000}).error["data"] == BUSY
    assert c.call("beta__echo", {}).result
    # A small one still has room.
    small = c.start_call("alpha__echo", {"n": 1})
    wait_for(lambda: mv.upstream_status("alpha")["queue"]["held"] == 2, 5, "it waits too")
    mv["alpha"].open("up")
    assert len(held.result["structuredContent"]["x"]) == 6000
    assert small.result["structuredContent"] == {"n": 1}
    assert mv.upstream_status("alpha")["queue"]["held_bytes"] == 0


@pytest.mark.parametrize("era", ERAS)
def test_queue_bytes_of_what_it_does_not_read(serve_conf, era):
    mv = serve_conf(alpha=ECHO, beta=ECHO, per={"alpha": {"queue_bytes": 300000}})
    c = mv.speak(era)
    assert c.tools()
    os.kill(pid(mv), signal.SIGSTOP)
    answers = [c.start_call("alpha__echo", {"x": "y" * 100000}) for _ in range(8)]
    wait_for(lambda: mv.upstream_status("alpha")["calls"]["transport"]["busy"] >= 1, 5, "busy")
    assert mv.upstream_status("alpha")["queue"]["out_bytes"] <= 300000
    assert c.call("beta__echo", {}).result
    os.kill(pid(mv), signal.SIGCONT)
    ended = [a.message() for a in answers]
    refused = [m for m in ended if "error" in m.msg]
    assert 1 <= len(refused) <= 6 and all(m.error["data"] == BUSY for m in refused)
    assert c.call("alpha__echo", {}).result


# -- time limits of calls ------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_call_ms_of_the_upstream_and_of_one_tool(serve_conf, era):
    mv = serve_conf(alpha={**NEVER, "era": era}, per={"alpha": {
        "call_ms": 400, "tool": [{"tool": "never", "call_ms": 100}]}})
    c = mv.speak(era)
    assert c.tools()
    asks = {"never": lambda: c.start_call("alpha__never", {}),
            "other": lambda: c.start_call("alpha__other", {}),
            "ask": lambda: c.send("prompts/get", {"name": "alpha__ask"})}
    start = time.monotonic()
    answers = {k: ask() for k, ask in asks.items()}
    took = {}
    for name in ("never", "other", "ask"):
        assert answers[name].message().error["data"] == TIMEOUT
        took[name] = (time.monotonic() - start) * 1000
    assert 90 <= took["never"] < 390 <= took["other"] and 390 <= took["ask"]
    # The upstream is told that nobody waits any more, and goes on.
    mv["alpha"].wait_input("notifications/cancelled", 3)
    assert c.call("alpha__echo", {}).result and len(mv["alpha"].starts()) == 1
    assert mv.upstream_status("alpha")["calls"]["transport"]["timeout"] == 3


def test_progress_renews_call_ms_and_call_max_ms_ends_it_all_the_same(serve_conf):
    going = [["forever", [["progress", 1], ["sleep", 50]]]]
    mv = serve_conf(alpha={"tools": ["echo", "a", "b"], "calls": {"a": going, "b": going}}, per={
        "alpha": {"call_ms": 200, "call_max_ms": 900,
                  "tool": [{"tool": "a", "call_max_ms": 400}]}})
    c = mv.modern()
    assert c.tools()
    meta = {"progressToken": "p"}
    start = time.monotonic()
    answers = [c.start_call("alpha__" + t, {}, meta=meta) for t in "ab"]
    took = []
    for a in answers:
        assert a.message().error["data"] == TIMEOUT and a.notices
        took.append((time.monotonic() - start) * 1000)
    assert 390 <= took[0] < 890 <= took[1]


# -- restarts ------------------------------------------------------------------------


def loop(tally, **more):
    """An upstream that ends at once, and when it was started, in a file."""
    return {"command": "/bin/sh", "args": ["-c", "date +%%s%%N >> %s; exit 1" % tally], **more}


def starts(tally):
    return [int(x) / 1e6 for x in tally.read_text().split()] if tally.exists() else []


def test_restart_base_doubles_up_to_restart_max(serve_conf, tmp_path):
    tally = tmp_path / "tally"
    mv = serve_conf(alpha=loop(tally), per={"alpha": {
        "restart_base_ms": 100, "restart_max_ms": 300, "era": "legacy"}})
    wait_for(lambda: len(starts(tally)) >= 5, 10, "five starts")
    at = starts(tally)
    gaps = [b - a for a, b in zip(at, at[1:])]
    # Less a quarter at most, so that not all come back at once.
    for gap, least in zip(gaps, (75, 150, 225, 225)):
        assert gap >= least, gaps
    assert gaps[2] < 300 + 250 and gaps[3] < 300 + 250, gaps
    assert mv.upstream_status("alpha")["state"] == "down"


@pytest.mark.parametrize("limit", [1, 3])
def test_restart_limit_is_when_it_is_parked(serve_conf, tmp_path, limit):
    tally = tmp_path / "tally"
    mv = serve_conf(alpha=loop(tally), beta=ECHO, per={"alpha": {
        "restart_base_ms": 1, "restart_limit": limit, "era": "legacy"}})
    wait_for(lambda: state(mv) == "parked", 8, "it is parked")
    c = mv.legacy()
    answer = c.call("alpha__echo", {})
    assert answer.code == -32603
    assert answer.error["data"] == {"upstream": "alpha", "reason": "parked", "retryable": False}
    assert len(starts(tally)) == limit and c.tools() == ["beta__echo"]


def test_restart_limit_0_is_never(serve_conf, tmp_path):
    tally = tmp_path / "tally"
    mv = serve_conf(alpha=loop(tally), per={"alpha": {
        "restart_base_ms": 1, "restart_max_ms": 1, "restart_limit": 0}})
    wait_for(lambda: len(starts(tally)) > 15, 10, "more starts than the default allows")
    assert state(mv) != "parked"


@pytest.mark.parametrize("stable", [1, 60000])
def test_stable_ms_is_when_crashes_are_forgotten(serve_conf, stable):
    mv = serve_conf(alpha={"tools": ["echo", "die"], "calls": {"die": [["sleep", 20], ["kill"]]}},
                    per={"alpha": {"stable_ms": stable, "restart_limit": 3,
                                   "restart_base_ms": 1, "era": "legacy"}})
    c = mv.legacy()
    assert c.tools()
    for n in range(5):
        if wait_for(lambda: state(mv) in ("ready", "parked") and state(mv), 5) == "parked":
            break
        c.call("alpha__die", {})
        wait_for(lambda: len(mv["alpha"].starts()) == n + 2 or state(mv) == "parked", 5, "on")
    assert state(mv) == ("ready" if stable == 1 else "parked")
    assert len(mv["alpha"].starts()) == (6 if stable == 1 else 3)


def test_term_ms_and_kill_ms_are_the_steps_of_the_ladder(serve_conf):
    mv = serve_conf(alpha={**ECHO, "ignore_eof": True, "ignore_term": True},
                    beta={**ECHO, "ignore_eof": True}, per={
                        "alpha": {"term_ms": 150, "kill_ms": 250}, "beta": {"term_ms": 1}})
    c = mv.legacy()
    assert c.tools()
    old = {n: mv[n].starts()[0].msg["pgid"] for n in ("alpha", "beta")}
    mv.control("restart", "alpha")
    mv["alpha"].wait_input("notifications/initialized", 2)
    eof, term = mv["alpha"].records("E")[0], wait_for(lambda: mv["alpha"].records("S"), 5)[0]
    assert 140e6 <= term.at - eof.at < 2000e6
    wait_for(lambda: not group_members({old["alpha"]}), 5, "it is killed")
    assert time.monotonic_ns() - term.at >= 240e6
    mv.control("restart", "beta")
    _, took = took_ms(lambda: wait_for(lambda: not group_members({old["beta"]}), 1.5, "TERM"))
    assert took < 1500
    mv.wait_log(r"child: signal upstream=beta pid=\d+ signal=15")


# -- what the client gets ------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_upstream_failure_as_a_result_that_the_model_can_read(serve_conf, era):
    die = {"tools": ["echo", "die", "never"], "prompts": ["ask"], "era": era,
           "calls": {"die": [["kill"]], "never": []}, "on": {"prompts/get": [["kill"]]}}
    options = {"call_ms": 150, "restart_base_ms": 60000}
    mv = serve_conf(alpha=die, beta=die, gamma=die, per={
        "alpha": {**options, "upstream_failure": "tool_error"}, "beta": options,
        "gamma": {**options, "upstream_failure": "tool_error"}})
    c = mv.speak(era)
    assert c.tools() and c.ask("prompts/list").result
    for tool, word in (("never", "no answer"), ("die", "ended"), ("echo", "restart")):
        result = c.call("alpha__" + tool, {}).result
        assert result["isError"] is True
        assert "alpha" in result["content"][0]["text"] and word in result["content"][0]["text"]
        assert ("resultType" in result) == (era == "modern")
    # Tools only, and nothing that the client has done wrong.
    assert c.ask("prompts/get", {"name": "gamma__ask"}).code == -32603
    assert c.call("alpha__nobody", {}).code == -32602
    # The default is an error of the protocol.
    assert c.call("beta__never", {}).code == -32603
    assert c.call("beta__die", {}).error["data"]["reason"] == "died"


@pytest.mark.parametrize("era", ERAS)
def test_rescue_errors_makes_two_errors_readable(serve_conf, era):
    tools = {"params": -32602, "internal": -32603, "own": -32000, "method": -32601}
    bad = {"tools": list(tools), "era": era, "prompts": ["ask"],
           "calls": {t: [["error", code, "bad \"n\"\né", {"k": 1}]] for t, code in tools.items()},
           "on": {"prompts/get": [["error", -32603, "no"]]}}
    mv = serve_conf(alpha=bad, beta=bad, per={"alpha": {"rescue_errors": True}})
    c = mv.speak(era)
    assert c.tools()
    for tool in ("params", "internal"):
        result = c.call("alpha__" + tool, {}).result
        assert result["isError"] is True
        text = result["content"][0]["text"]
        assert "bad \"n\"\né" in text and str(tools[tool]) in text
        answer = c.call("beta__" + tool, {})
        assert answer.error == {"code": tools[tool], "message": "bad \"n\"\né", "data": {"k": 1}}
    assert c.call("alpha__own", {}).error == {
        "code": -32000, "message": "bad \"n\"\né", "data": {"k": 1}}
    assert c.ask("prompts/get", {"name": "alpha__ask"}).code == -32603
    assert c.call("alpha__nobody", {}).code == -32602


# -- the process ---------------------------------------------------------------------


def test_env_file_env_and_env_pass_and_which_wins(serve_conf, tmp_path):
    mv = serve_conf(alpha=ECHO, start=False, env={
        "PASS_A": "passed", "PASS_B": "passed", "ONLY": "passed", "LC_TIME": "ours",
        "HIDDEN": "never", "PATH_X": "no"})
    (mv.folder / "vars").write_text(
        "# comment\nexport FROM_FILE='a b' # more\nBOTH=file\nPASS_A=file\n"
        "QUOTED=\"x\\ny\"\nLC_TIME=file\n\nEMPTY=\nRAW=${HOME} $HOME\n")
    mv.per["alpha"] = {"env_file": "vars", "env": {"BOTH": "env", "PASS_B": "env", "OWN": "1"},
                       "env_pass": ["PASS_*", "ONLY"]}
    mv.write()
    mv.start()
    assert mv.legacy().tools()
    env = mv["alpha"].starts()[0].msg["env"]
    want = {"FROM_FILE": "a b", "BOTH": "env", "OWN": "1", "QUOTED": "x\ny", "EMPTY": "",
            "RAW": "${HOME} $HOME", "ONLY": "passed", "LC_TIME": "file",
            # env_pass is read last.
            "PASS_A": "passed", "PASS_B": "passed"}
    assert {k: env.get(k) for k in want} == want
    assert "HIDDEN" not in env and "PATH_X" not in env
    assert env["PATH"] == mv.env["PATH"]


def test_env_as_an_array_and_in_defaults(serve_conf):
    mv = serve_conf(alpha=ECHO, beta=ECHO, more='defaults : { env : { A = "d"; B = "d"; }; };\n',
                    per={"alpha": {"env": ["B=own", "WITH-DASH=x=y"]}})
    assert mv.legacy().tools()
    wait_for(lambda: mv["alpha"].starts() and mv["beta"].starts(), 5)
    a, b = (mv[n].starts()[0].msg["env"] for n in ("alpha", "beta"))
    assert (a["A"], a["B"], a["WITH-DASH"]) == ("d", "own", "x=y")
    assert (b["A"], b["B"]) == ("d", "d") and "WITH-DASH" not in b


def test_a_bad_env_file_is_an_error_with_its_line(serve_conf):
    mv = serve_conf(alpha=ECHO)
    (mv.folder / "vars").write_text("GOOD=1\nno sense s3cret\n")
    mv.per["alpha"] = {"env_file": "vars"}
    mv.write()
    _, _, err = mv.control("reload", check=3)
    assert "env_file" in err and "line 2" in err and "s3cret" not in err
    mv.per["alpha"] = {"env_file": "not-there"}
    mv.write()
    _, _, err = mv.control("reload", check=3)
    assert "env_file" in err and "No such file" in err


def test_cwd_is_beside_the_conf_or_where_it_says(serve_conf, tmp_path):
    mv = serve_conf(alpha=ECHO, beta=ECHO, gamma=ECHO, start=False)
    (mv.folder / "here").mkdir()
    mv.per = {"alpha": {"cwd": "here"}, "beta": {"cwd": str(tmp_path)}, "gamma": {}}
    mv.write()
    mv.start()
    assert len(mv.legacy().tools()) == 3
    cwds = [os.path.realpath(mv[n].starts()[0].msg["cwd"]) for n in ("alpha", "beta", "gamma")]
    assert cwds == [os.path.realpath(p) for p in (mv.folder / "here", tmp_path, mv.folder)]


@pytest.mark.parametrize("era,up", [("legacy", "dual"), ("modern", "dual"), ("auto", "dual"),
                                    ("legacy", "modern"), ("modern", "legacy")])
def test_era_is_what_it_is_spoken_to_in(serve_conf, era, up):
    mv = serve_conf(alpha={**ECHO, "era": up}, beta=ECHO,
                    per={"alpha": {"era": era, "restart_base_ms": 60000, "start_ms": 1000}})
    c = mv.legacy()
    tools = c.tools()
    said = {r.msg["method"] for r in mv["alpha"].inputs()}
    assert ("server/discover" in said) == (era != "legacy")
    assert ("initialize" in said) == (era == "legacy")
    # A pin that is wrong fails that one alone.
    assert tools == (["alpha__echo", "beta__echo"] if up == "dual" else ["beta__echo"])
    if up != "dual":
        wait_for(lambda: mv.upstream_status("alpha")["reason"], 5, "why")
        assert state(mv) == "down"


def test_name_where_that_cannot_be_the_groups(serve_conf):
    mv = serve_conf(alpha=ECHO, per={"alpha": {"name": "My Server/1.0"}})
    c = mv.legacy()
    name = c.tools()[0]
    assert name.endswith("__echo") and "/" not in name and " " not in name
    assert c.call(name, {"n": 1}).result["structuredContent"] == {"n": 1}
    assert [u["name"] for u in mv.status()["upstreams"]] == ["My Server/1.0"]
    mv.control("restart", "My Server/1.0")
    mv["alpha"].become(on={"tools/call": [["kill"]]})
    assert c.call(name, {}) is not None
