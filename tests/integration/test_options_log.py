# SPDX-License-Identifier: MIT
"""The log: its forms, what is in it and what is not, and the line of a call."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

import logs
from mcp import PATIENCE, wait_for

ERAS = ["legacy", "modern"]
HOSTILE = 'bad "name" = 1\r\n2026-01-01 error serve: forged\x1b[31m\u202e\x85 k=v \\'
FAILS = {"content": [{"type": "text", "text": "no"}], "isError": True}
# One tool for each way in which a call ends.
ENDS = {"tools": ["echo", "bad", "refuse", "slow", "die", "hold"], "calls": {
    "bad": [["reply", FAILS]], "refuse": [["error", -31999, "no"]],
    "slow": [["sleep", 30000]], "die": [["kill"]], "hold": [["gate", "never"]]}}
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "00-%s-b7ad6b7169203331-01" % TRACE


def up(mv):
    """Waits for a daemon whose log is in another form than the harness reads."""
    def listens():
        assert mv.proc.poll() is None, mv.log()
        return os.path.exists(mv.socket) and mv.status()["listen"]

    mv.bound = wait_for(listens, 10, "it listens")
    return mv


def start(serve_conf, form, **kw):
    more = 'log : { level = "debug"; format = "%s"; };\n' \
           'listen = ( { address = "127.0.0.1:0"; } );\n' % form
    return up(serve_conf(more=more, listen=[], log_level=None, **kw))


# -- the forms -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "logfmt", "json"])
def test_every_line_of_a_busy_run_parses(serve_conf, form):
    noise = [["stderr", "plain\n"], ["stderr", HOSTILE + "\n"], ["stderr", '{"level":"error"}\n'],
             ["stderr", {"hex": "ff00fe80c3280a"}], ["stderr", {"repeat": "y", "n": 9000}],
             ["stderr", "\nlevel=error module=serve event=\"x\" ts=1 cut=true\n"],
             ["bytes", "not a message\n"], ["bytes", HOSTILE + "\n"]]
    tools = ["echo", HOSTILE[:60], "ünïcode", "t" * 400]
    mv = start(serve_conf, form, upstreams={
        "alpha": {**ENDS, "tools": ENDS["tools"] + tools[1:], "on": {"start": noise}},
        "beta": {"tools": ["echo"]}}, per={
            "alpha": {"call_ms": 300, "restart_base_ms": 10}, "beta": {"name": "with space"}})
    for era in ERAS:
        c = mv.client()
        if era == "legacy":
            c.legacy(name=HOSTILE)
        else:
            c.era, c.revision = "modern", "2026-07-28"
        names = c.tools()
        for name in names:
            if not name.endswith(("hold", "die")):
                c.call(name, {}, meta={"traceparent": PARENT}).msg
        for wrong in ("nothing", HOSTILE, "x" * 300, ""):
            c.call(wrong, {}).msg
        c.ask("resources/read", {"uri": "m:" + HOSTILE}).msg
        c.call("alpha__die", {}).msg
        wait_for(lambda: mv.upstream_status("alpha")["state"] == "ready", 10, "it is back")
    mv.client().http("POST", {"Host": 'e"v=il', "Content-Type": "application/json"}, b"{}").status
    wait_for(lambda: len([r for r in mv.log_lines if b"plain" in r]) >= 3, 5, "its stderr")
    mv.stop()
    every = [logs.PARSE[form](raw) for raw in mv.log_lines]
    assert len(every) > 40
    assert {e["module"] for e in every} >= {"serve", "upstream", "call"}
    done = [e for e in every if e["module"] == "call"]
    assert {e["end"] for e in done} == {"returned", "error", "timeout", "died"}
    assert {str(e["trace"]) for e in done} == {TRACE, "-"}
    # Nobody else's words became an event or a level of ours.
    assert not [e for e in every if e["level"] == "error" and e["module"] == "serve"]
    if form == "json":
        assert all(isinstance(e[k], int) for e in done for k in ("ms", "in", "out", "added"))
        # Bytes that no line may have are spelled out.
        spelled = HOSTILE.replace("\x85", "\\xc2\\x85")
        assert {e["client"] for e in done} == {spelled, "harness"}


def test_the_form_changes_by_a_reload(serve_conf):
    mv = serve_conf(alpha=ENDS, log_level=None, more='log : { format = "text"; };\n')
    assert logs.parse_text(mv.log_lines[0])
    mv.more = 'log : { format = "json"; };\n'
    mv.reload()
    mv.modern().call("alpha__echo", {})
    wait_for(lambda: any(b'"call"' in raw for raw in mv.log_lines), 5, "the call's line")
    lines = list(mv.log_lines)
    n = next(i for i, raw in enumerate(lines) if raw.startswith(b"{"))
    assert all(logs.parse_text(raw) for raw in lines[:n])
    assert all(logs.parse_json(raw) for raw in lines[n:])


# -- levels, limits, switches --------------------------------------------------------------


def test_levels_of_the_conf_and_of_modules(serve_conf):
    mv = serve_conf(alpha=ENDS, log_level=None,
                    more='log : { level = "notice"; modules : { call = "info"; }; };\n')
    mv.modern().call("alpha__echo", {})
    mv.wait_log(" info call: done ")
    assert not re.search(r" (info|debug) (?!call:)", mv.log()), mv.log()
    mv.more = 'log : { level = "debug"; modules : { call = "error"; http = "notice"; }; };\n'
    mv.reload()
    mv.wait_log("control: reload ")
    n = len(mv.log_lines)
    mv.modern().call("alpha__echo", {})
    mv["alpha"].run(["stderr", "now\n"])
    wait_for(lambda: any(b"now" in raw for raw in mv.log_lines[n:]), 5, "its stderr is shown")
    after = b"".join(mv.log_lines[n:]).decode()
    assert " call: " not in after and not re.search(r" (info|debug) http: ", after), after


def test_the_command_line_wins_over_the_level(serve_conf):
    mv = serve_conf(alpha=ENDS, log_level="notice", more='log : { level = "debug"; };\n')
    mv.modern().call("alpha__echo", {})
    mv.reload()
    mv.modern().call("alpha__echo", {})
    assert mv.stop() == 0
    assert not re.search(r" (info|debug) ", mv.log()), mv.log()


def test_burst_and_period(serve_conf):
    mv = serve_conf(alpha=ENDS, log_level=None,
                    more='log : { level = "info"; burst = 3; period_ms = "1h"; };\n')

    def refuse(n):
        for _ in range(n):
            assert mv.client().http("POST", {"Host": "evil.example"}, b"{}").status == 403
        # Whatever was logged before is there when this is.
        done = len(logs.calls(mv))
        mv.modern().call("alpha__echo", {})
        wait_for(lambda: len(logs.calls(mv)) > done, 5, "a later line")
        return [r for r in list(mv.log_lines) if b"http: host refused" in r]

    assert len(refuse(8)) == 3
    assert mv.status()["counters"]["mcpvisor_log_suppressed_total"] == 5
    # In the next period there are lines again, and the first tells what was left out.
    mv.more = mv.more.replace('"1h"', "1")
    mv.reload()
    time.sleep(0.005)
    after = logs.pairs(refuse(1)[3].decode().rstrip())
    assert int(after["suppressed"]) == 5
    for word in ("allowed_hosts", "--allowed-host"):
        assert word in after["hint"]


@pytest.mark.parametrize("era", ERAS)
def test_lines_of_calls_can_be_turned_off(serve_conf, era):
    mv = serve_conf(alpha=ENDS, more="log : { calls = false; };\n")
    c = mv.speak(era)
    c.call("alpha__echo", {})
    c.call("alpha__bad", {})
    assert not logs.calls(mv)
    mv.more = ""
    mv.reload()
    c.call("alpha__bad", {})
    wait_for(lambda: len(logs.calls(mv)) == 1, 5, "its line")
    # The counters do not depend on it.
    assert mv.upstream_status("alpha")["calls"]["total"] == 3


# -- the line of a call --------------------------------------------------------------------


ENDINGS = {
    #            end         reason      ok   is_err err_src     ans
    "echo":    ("returned", "-",        "1", "0", "-",        "unknown"),
    "bad":     ("returned", "-",        "1", "1", "upstream", "none"),
    "refuse":  ("error",    "-31999",   "0", "-", "upstream", "-"),
    "slow":    ("timeout",  "timeout",  "0", "-", "upstream", "-"),
    "die":     ("died",     "died",     "0", "-", "upstream", "-"),
    "nothing": ("error",    "not_found", "0", "-", "proxy",   "-"),
    "hold":    ("cancelled", "cancelled", "0", "-", "-",      "-"),
}
AXES = ("end", "reason", "ok", "is_err", "err_src", "ans")


class Stdio:
    """Both transports in the same words."""

    def __init__(self, mv, era):
        self.mv = mv
        mv.speak(era)

    def call(self, name):
        return self.mv.call(name, {"a": 1})

    def cancel(self, name):
        key = self.mv.start_call(name, {"a": 1})
        self.mv["alpha"].wait_input("tools/call")
        self.mv.cancel(key)


class Http:
    def __init__(self, mv, era):
        self.mv, self.c, self.era = mv, mv.speak(era), era

    def call(self, name):
        return self.c.call(name, {"a": 1})

    def cancel(self, name):
        answer = self.c.start_call(name, {"a": 1})
        self.mv["alpha"].wait_input("tools/call")
        if self.era == "modern":
            answer.wire.close()
        else:
            self.c.cancel(self.c.next_id)


@pytest.fixture(params=["stdio", "http"])
def speak(request, serve, serve_http):
    def begin(era, **what):
        if request.param == "stdio":
            return Stdio(serve(**what), era)
        return Http(serve_http(**what), era)

    return begin


@pytest.mark.parametrize("upstream", ERAS)
@pytest.mark.parametrize("era", ERAS)
def test_the_line_of_each_ending(speak, era, upstream):
    c = speak(era, alpha={**ENDS, "era": upstream,
                          "mcpvisor": {"call_ms": 400, "restart_base_ms": 10}})
    for name in ENDINGS:
        if name == "hold":
            c.cancel("alpha__hold")
            c.mv.wait_log("end=cancelled")
            continue
        c.call("alpha__" + name)
        if name == "die":
            wait_for(lambda: len(c.mv["alpha"].starts()) == 2, 5, "it starts again")
            wait_for(lambda: "result" in c.call("alpha__echo").msg, 5, "it is back")
    found = logs.calls(c.mv)
    for name, axes in ENDINGS.items():
        lines = [f for f in found if f["tool"] == "alpha__" + name
                 and (name != "echo" or f["ok"] == "1")]
        assert lines, (name, found)
        line = lines[0]
        assert tuple(line[k] for k in AXES) == axes, line
        assert line["client"] == "harness" and line["method"] == "tools/call"
        assert line["upstream"] == ("-" if name == "nothing" else "alpha")
        assert line["trace"] == "-" and int(line["in"]) > 80
        ms = int(line["ms"])
        assert (400 <= ms < 400 + 3000 * PATIENCE) if name == "slow" else ms < 3000 * PATIENCE
        if name == "echo":
            # The answer's bytes, and what came in with the envelope's translation.
            assert int(line["out"]) > 60 and int(line["added"]) >= 0
            assert (int(line["added"]) > 0) == (era == "modern" and upstream == "legacy"), line
        if line["ok"] == "0" and name != "hold":
            assert line["added"] == "0", line


@pytest.mark.parametrize("era", ERAS)
def test_a_full_queue_is_busy_and_ours(serve_conf, era):
    mv = serve_conf(alpha=ENDS, per={"alpha": {"queue_calls": 1}}, more={"drain_ms": 0})
    c = mv.speak(era)
    c.start_call("alpha__hold", {})
    mv["alpha"].wait_input("tools/call")
    assert c.call("alpha__echo", {}).error["data"]["reason"] == "busy"
    wait_for(lambda: logs.calls(mv), 5, "its line")
    line = logs.calls(mv)[0]
    assert tuple(line[k] for k in AXES) == ("busy", "busy", "0", "-", "proxy", "-")


@pytest.mark.parametrize("era", ERAS)
def test_other_requests_that_go_to_an_upstream(serve_conf, era):
    mv = serve_conf(alpha={"tools": ["echo"], "prompts": ["p"], "resources": ["m:1"],
                           "texts": {"m:1": "x"}})
    c = mv.speak(era)
    c.ask("resources/list")
    c.ask("prompts/get", {"name": "alpha__p"}).result
    c.ask("resources/read", {"uri": "m:1"}).result
    c.ask("resources/read", {"uri": "m:2"}).error
    wait_for(lambda: len(logs.calls(mv)) == 3, 5, "three lines")
    assert [(f["method"], f["upstream"], f["tool"], f["end"]) for f in logs.calls(mv)] == [
        ("prompts/get", "alpha", "alpha__p", "returned"),
        ("resources/read", "alpha", "m:1", "returned"),
        ("resources/read", logs.calls(mv)[2]["upstream"], "m:2", "error")]


def test_each_line_names_its_own_client(serve_http):
    mv = serve_http(alpha=ENDS)
    one, two, three = mv.client(), mv.client(), mv.modern()
    one.legacy(name="first one")
    two.legacy(name='se"cond')
    for n, c in enumerate((one, two, three)):
        c.call("alpha__echo", {"n": n})
    wait_for(lambda: len(logs.calls(mv)) == 3, 5, "three lines")
    assert [f["client"] for f in logs.calls(mv)] == ["first one", 'se"cond', "harness"]


# -- trace context -------------------------------------------------------------------------


@pytest.mark.parametrize("parent, trace", [
    (PARENT, TRACE), ("cc-%s-b7ad6b7169203331-01-more" % TRACE, TRACE),
    ("cc-%s-b7ad6b7169203331-01" % TRACE, TRACE),
    ("", "-"), ("00", "-"), (PARENT.upper(), "-"), (PARENT + "-x", "-"), (PARENT[:-1], "-"),
    ("ff" + PARENT[2:], "-"), ("00-%s-b7ad6b7169203331-01" % ("0" * 32), "-"),
    ("00-%s-0000000000000000-01" % TRACE, "-"), ("cc" + PARENT[2:] + ".", "-"),
    (7, "-"), (None, "-"), ({"a": 1}, "-"), ("x" * 5000, "-")])
def test_the_trace_id_of_well_formed_parents_alone(trace_run, parent, trace):
    mv, c = trace_run
    n = len(logs.calls(mv))
    answer = c.call("alpha__echo", {"a": 1}, meta={
        "traceparent": parent, "tracestate": "v=1,  w=2", "baggage": 'k="\u00e9"'})
    assert answer.result["structuredContent"] == {"a": 1}
    wait_for(lambda: len(logs.calls(mv)) > n, 5, "its line")
    assert logs.calls(mv)[n]["trace"] == trace
    # And all of it passes as it came.
    sent = mv["alpha"].inputs("tools/call")[-1].msg["params"]["_meta"]
    assert sent["traceparent"] == parent and type(sent["traceparent"]) is type(parent)
    assert sent["tracestate"] == "v=1,  w=2" and sent["baggage"] == 'k="\u00e9"'


@pytest.fixture(scope="module")
def trace_run(binary, tmp_path_factory):
    import served
    mv = served.Served(binary, tmp_path_factory.mktemp("trace"), {"alpha": {"tools": ["echo"]}})
    yield mv, mv.legacy()
    mv.check_end()


@pytest.mark.parametrize("upstream", ERAS)
@pytest.mark.parametrize("era", ERAS)
def test_trace_context_reaches_every_upstream(speak, era, upstream):
    c = speak(era, alpha={**ENDS, "era": upstream})
    meta = {"traceparent": PARENT, "tracestate": "a=b"}
    who = c.mv if isinstance(c, Stdio) else c.c
    who.call("alpha__echo", {}, meta=meta).result
    sent = c.mv["alpha"].inputs("tools/call")[0]
    for key, value in meta.items():
        assert sent.raw.count(json.dumps(value).encode()) == 1
        assert sent.msg["params"]["_meta"][key] == value
    wait_for(lambda: logs.calls(c.mv), 5, "its line")
    assert logs.calls(c.mv)[0]["trace"] == TRACE


# -- the journal ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "logfmt", "json"])
def test_priorities_in_place_of_times_for_the_journal(serve_conf, binary, form):
    """As the service manager would start it: JOURNAL_STREAM names what stderr is."""
    mv = serve_conf(alpha={"tools": ["echo"]}, start=False, more=(
        'log : { level = "debug"; format = "%s"; };\nlisten = ( { address = "unix:%%s"; } );\n'
        % form))
    mv.more = mv.more % (mv.folder / "s.sock")
    mv.write()
    r, w = os.pipe()
    st = os.fstat(w)
    for stream, is_journal in (("%d:%d" % (st.st_dev, st.st_ino), True), ("1:2", False)):
        proc = subprocess.Popen([str(binary), "serve", "--conf", str(mv.file)], stderr=w,
                                cwd=mv.folder, env={**mv.env, "JOURNAL_STREAM": stream})
        text = b""
        try:
            while text.count(b"\n") < 3:
                text += os.read(r, 65536)
        finally:
            proc.send_signal(signal.SIGTERM)
            assert proc.wait(10 * PATIENCE) == 0
        os.set_blocking(r, False)
        try:
            text += os.read(r, 1 << 20)
        except BlockingIOError:
            pass
        os.set_blocking(r, True)
        for raw in text.splitlines():
            found = re.match(rb"<([3-7])>", raw)
            assert bool(found) == is_journal, raw
            if is_journal:
                want = {b"3": b"error", b"4": b"warning", b"5": b"notice", b"6": b"info",
                        b"7": b"debug"}[found[1]]
                body = raw[3:]
                assert not re.search(logs.STAMP.encode(), body), raw
                assert body.startswith({"text": want + b" ", "logfmt": b"level=" + want,
                                        "json": b'{"level":"' + want}[form]), raw
    os.close(r)
    os.close(w)


def test_a_log_that_nobody_reads_holds_nobody_up(serve_conf):
    """Stderr is a full pipe: calls go on, and what was lost is counted."""
    mv = serve_conf(alpha={"tools": ["echo"]}, start=False)
    mv.write(mv.text())
    r, w = os.pipe()
    proc = subprocess.Popen(mv.argv(), stderr=w, cwd=mv.folder, env=mv.env)
    os.close(w)
    try:
        wait_for(lambda: os.path.exists(mv.socket) and mv.status()["listen"], 10, "it listens")
        mv.bound = mv.status()["listen"]
        c = mv.modern()
        wire = c.wire()
        for n in range(400):
            assert c.call("alpha__echo", {"n": n}, wire=wire).result
        lost = mv.status()["counters"]["mcpvisor_log_lost_total"]
        assert lost > 50
        # What went into the pipe is whole lines.
        text = os.read(r, 1 << 20)
        assert all(logs.parse_text(raw) for raw in text.splitlines(True))
    finally:
        c.close()
        proc.send_signal(signal.SIGTERM)
        assert proc.wait(10 * PATIENCE) == 0
        os.close(r)
