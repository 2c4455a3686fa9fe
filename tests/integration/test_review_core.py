# SPDX-License-Identifier: MIT
"""The fleet while everything about it changes; what is hidden; what is counted."""
import random
import threading

import pytest

from mcp import wait_for

ERAS = ["legacy", "modern"]
LINK = [["reply", {"content": [{"type": "resource_link", "uri": "secret:1", "name": "s"}]}]]


@pytest.mark.parametrize("era", ERAS)
def test_a_hidden_resource_is_unknown_by_its_own_uri(serve_conf, era):
    """A result names it without the prefix that the profile's rule is written with."""
    more = ('profile : { some : { resources : { deny = ["p+secret:*"]; }; }; };\n'
            'listen = ( { address = "127.0.0.1:0"; }, '
            '{ address = "127.0.0.1:0"; path = "/some"; profile = "some"; } );\n')
    mv = serve_conf(alpha={"tools": ["link"], "resources": ["m:1"], "calls": {"link": LINK},
                           "texts": {"secret:1": "s"}},
                    per={"alpha": {"uri_prefix": "p+"}}, more=more, listen=[""])
    every, some = mv.speak(era), mv.client()
    some.path = "/some"
    if era == "modern":
        some.era, some.revision = "modern", "2026-07-28"
    else:
        some.legacy()
    assert some.call("alpha__link", {}).result["content"][0]["uri"] == "secret:1"
    for uri in ("secret:1", "p+secret:1"):
        assert every.ask("resources/read", {"uri": uri}).result
        assert some.ask("resources/read", {"uri": uri}).code in (-32002, -32602)
    assert len(mv["alpha"].inputs("resources/read")) == 2


def test_calls_of_every_process_are_counted(serve_conf):
    mv = serve_conf(alpha={"tools": ["echo", "bad"], "calls": {
        "bad": [["reply", {"content": [], "isError": True}]]}},
        per={"alpha": {"isolation": "call", "idle_stop_ms": 200}})
    c = mv.modern()
    assert c.call("alpha__echo", {}).result and c.call("alpha__bad", {}).result["isError"]
    for _ in range(2):
        calls = mv.upstream_status("alpha")["calls"]
        assert (calls["total"], calls["transport"]["returned"]) == (2, 2)
        assert (calls["tool"]["ok"], calls["tool"]["is_error"]) == (1, 1)
        # The same when the process that had them is gone.
        wait_for(lambda: mv.upstream_status("alpha")["instances"] == 0, 5, "it ends")


def test_a_stuck_process_is_not_used_again(serve_conf):
    mv = serve_conf(alpha={"tools": ["echo", "stuck"], "calls": {"stuck": [["block", 60000]]}},
                    per={"alpha": {"isolation": "call", "call_ms": 700, "term_ms": 100}})
    c = mv.modern()
    assert c.call("alpha__stuck", {}).error["data"]["reason"] == "timeout"
    assert c.call("alpha__echo", {"n": 1}).result["structuredContent"] == {"n": 1}


def test_on_use_shows_what_the_new_command_has(serve_conf):
    mv = serve_conf(alpha={"tools": ["old"]}, per={"alpha": {"start": "on_use"}})
    c = mv.modern()
    assert c.tools() == ["alpha__old"]
    mv.add("alpha", {"tools": ["new"]})
    mv.reload()
    wait_for(lambda: c.tools() == ["alpha__new"], 5, "its own list")


# -- everything at once ---------------------------------------------------------------

CHAOS = {"tools": ["echo", "link", "slow", "die"], "resources": ["m:1", "m:2"],
         "calls": {"slow": [["sleep", 120], ["reply", {"content": []}]], "die": [["kill"]],
                   "link": LINK}}


def chaos_client(mv, k, stop, wrong, done):
    rng = random.Random(k)
    while not stop.is_set():
        c = mv.speak(ERAS[k % 2])
        stream = c.get() if k % 2 == 0 else c.send("subscriptions/listen", {"notifications": {
            "toolsListChanged": True, "resourceSubscriptions": ["m:1", "p+m:2", "secret:1"]}})
        for _ in range(12):
            what = rng.choice(["echo", "link", "slow", "die", "cancel", "read", "sub", "list"])
            who = rng.choice(["alpha", "beta", "gamma"])
            if what == "cancel":
                c.start_call(who + "__slow", {}).wire.close()
                continue
            if what == "read":
                m = c.ask("resources/read", {"uri": rng.choice(["m:1", "p+m:1", "secret:1"])})
            elif what == "sub":
                m = c.ask("resources/subscribe" if k % 2 == 0 else "resources/list",
                          {"uri": "m:1"} if k % 2 == 0 else {})
            elif what == "list":
                m = c.ask("tools/list")
            else:
                m = c.call("%s__%s" % (who, what), {"n": 1})
            if m.msg.get("error") and m.code not in (-32602, -32002, -32603, -32601):
                wrong.append(m.msg)
            done[k] += 1
        stream.wire.close()
        c.close()


def chaos_conf(rng):
    per = {}
    for who in ("alpha", "beta", "gamma"):
        per[who] = {"enabled": rng.random() < 0.8, "env": {"MARK": rng.choice("ab")},
                    "isolation": rng.choice(["auto", "session", "call"]),
                    "max_instances": rng.randint(1, 4), "start": rng.choice(["eager", "on_use"]),
                    "idle_stop_ms": rng.choice([0, 30, 100]), "restart_base_ms": 1,
                    "call_ms": rng.choice([60, 5000]), "term_ms": 50, "kill_ms": 50}
        if rng.random() < 0.5:
            per[who]["uri_prefix"] = "p+"
        if rng.random() < 0.5:
            per[who]["tools"] = rng.choice([
                {"deny": ["slow"]}, {"rename": {"echo": "slow", "slow": "echo"}},
                {"allow": ["e*", "d*"]}])
        if rng.random() < 0.5:
            per[who]["tool"] = [{"tool": "echo", "fixed": {"n": 2}, "call_ms": 900}]
    return per


@pytest.mark.parametrize("seed", [1, 2])
def test_everything_changes_at_once(serve_conf, seed):
    rng = random.Random(seed)
    mv = serve_conf(alpha=CHAOS, beta=CHAOS, gamma=CHAOS, log_level="notice",
                    more="reload_drain_ms = 200;\n")
    stop, wrong, done = threading.Event(), [], [0] * 6
    threads = [threading.Thread(target=chaos_client, args=(mv, k, stop, wrong, done))
               for k in range(6)]
    for t in threads:
        t.start()
    for _ in range(16):
        seen = sum(done)
        wait_for(lambda n=seen: sum(done) > n + 3 or wrong, 20, "calls go on")
        mv.per = chaos_conf(rng)
        mv.reload()
        if rng.random() < 0.3:
            mv.control("restart", rng.choice(["alpha", "beta", "gamma"]), check=None)
    stop.set()
    for t in threads:
        t.join()
    assert not wrong, wrong[:3]
    mv.per = {}
    mv.reload()
    c = mv.modern()
    for who in ("alpha", "beta", "gamma"):
        wait_for(lambda w=who: "result" in c.call(w + "__echo", {"n": 1}).msg, 10, "it is back")
    # All that has been replaced is gone.
    wait_for(lambda: all(u["instances"] == 0 for u in mv.status()["upstreams"]), 10, "at rest")
    wait_for(lambda: sum(u["pid"] is not None for u in mv.status()["upstreams"]) == 3, 10)
