# SPDX-License-Identifier: MIT
"""Real servers steered by a conf: asleep until they are used, shaped, kept over a restart,
and reloaded under the sessions of real clients."""

import json
import subprocess

import pytest

import interop_env as env
from interop_http import Serve, until
from test_interop_http_restart import Driver, greeted

SHAPED = ('tool = ( { tool = "get-sum"; name = "plus_one"; description = "Adds one."; '
          'fixed : { b = 1; }; } );')
ASLEEP = 'start = "on_use"; idle_stop_ms = "2s";'


class ConfServe(Serve):
    """The upstreams of a run in a conf; more: {name: text of its group}."""

    def __init__(self, run, more):
        self.more = more
        self.conf = run.folder / "mcpvisor.conf"
        self.control = run.folder / "control.sock"
        self.write()
        super().__init__(run)

    def write(self):
        entries = json.loads(self.run_entries())
        groups = []
        for name, text in self.more.items():
            e = entries[name.replace("_", "-")]
            environ = " ".join("%s = %s;" % (k, json.dumps(v)) for k, v in e["env"].items())
            groups.append("%s : { command = %s; args = %s; env : { %s }; %s };" % (
                name, json.dumps(e["command"]), json.dumps(e["args"]), environ, text))
        self.conf.write_text("upstream : {\n%s\n};\n" % "\n".join(groups))

    def run_entries(self):
        return json.dumps(json.loads((self.conf.parent / "mcp.json").read_text())["mcpServers"])

    def argv(self):
        return [self.run.command, "serve", "--conf", str(self.conf), "--socket",
                str(self.control)]

    def say(self, *argv):
        done = subprocess.run([self.run.command, argv[0], "--socket", str(self.control),
                               *argv[1:]], capture_output=True, text=True, timeout=60,
                              env=self.run.environ())
        assert done.returncode == 0, done.stderr
        return done.stdout

    def states(self):
        status = json.loads(self.say("status", "--json"))
        return {u["name"]: u["state"] for u in status["upstreams"]}

    def tools(self):
        return {t["name"] for t in json.loads(self.say("tools", "--json"))}


def servers(run):
    """Processes of the run's upstreams, our own aside."""
    return [p for p in run.left(0) if p[1].startswith(env.NODE)]


def test_real_servers_sleep_wake_and_are_remembered(make_run):
    run = make_run("conf-sleep", tap=False)
    more = {n: ASLEEP for n in ("filesystem", "memory", "sequential_thinking", "modern")}
    with ConfServe(run, {**more, "everything": ASLEEP + SHAPED}) as s:
        until(lambda: set(s.states().values()) == {"asleep"}, "all sleep", 30)
        until(lambda: not servers(run), "their processes end")
        before = s.tools()
        assert {"everything__plus_one", "modern__greet", "memory__read_graph"} <= before
        assert s.say("call", "everything__plus_one", "a=41").strip().endswith("42.")
        assert s.states()["everything"] == "ready"
        assert s.states()["memory"] == "asleep"
        s.restart()
        assert s.tools() == before and servers(run) == []
        s.say("call", "modern__greet", "name=x")
        until(lambda: set(s.states().values()) == {"asleep"}, "all sleep again", 30)
    assert run.left() == []


@pytest.mark.parametrize("kind", ["sdk1", "client2-legacy", "client2-modern"])
def test_a_reload_goes_unnoticed_by_a_real_client(make_run, kind):
    run = make_run(f"conf-reload-{kind}", tap=False, upstreams=("modern", "memory"))
    with ConfServe(run, {"modern": ""}) as s:
        with Driver(s, kind) as d:
            first = d.said()
            assert "before" in greeted(first)
            for n in (1, 2):
                # Its own server is replaced, and another one comes.
                s.more = {"modern": "", "memory": ""} if n == 1 else {"modern": ""}
                entries = json.loads((run.folder / "mcp.json").read_text())
                entries["mcpServers"]["modern"]["env"]["GENERATION"] = str(n)
                (run.folder / "mcp.json").write_text(json.dumps(entries))
                s.write()
                said = s.say("reload")
                assert "upstream.modern" in said and "upstream.memory" in said
                if n == 1:
                    until(lambda: "memory__read_graph" in s.tools(), "memory is listed")
                seen = d.call()
                assert f"after {n}" in greeted(seen), seen
                names = {t["name"] for t in seen["listed"]["tools"]}
                assert ("memory__read_graph" in names) == (n == 1)
                assert seen.get("session") == first.get("session")
            if kind != "client2-modern":
                until(lambda: d.call()["changes"] >= 1, "it hears of a change")
            assert d.end() == 0
    assert run.left() == []
