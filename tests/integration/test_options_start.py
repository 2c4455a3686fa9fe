# SPDX-License-Identifier: MIT
"""start, idle_stop_ms and enabled: when a process runs, and that nobody misses it."""
import os
import re
import time

import pytest

from mcp import group_members, wait_for

ERAS = ["legacy", "modern"]
IDLE = 60
FULL = {"tools": ["echo"], "prompts": ["ask"], "resources": ["m:1"], "texts": {"m:1": "one"},
        "resourceTemplates": ["t:{x}"]}
NAP = {"alpha": {"idle_stop_ms": IDLE}}


def is_in(mv, state, name="alpha"):
    return mv.upstream_status(name)["state"] == state


def wait_state(mv, state, name="alpha"):
    wait_for(lambda: is_in(mv, state, name), 8, "%s is %s" % (name, state))
    return mv.upstream_status(name)


def asleep(mv, name="alpha"):
    """Asleep, and its process is gone."""
    wait_state(mv, "asleep", name)
    wait_for(lambda: not group_members({r.msg["pgid"] for r in mv[name].starts()}), 5,
             "the process ends")
    return wait_for(lambda: mv.upstream_status(name)["pid"] is None, 5, "it is reaped")


def watch(c, uri="m:1"):
    """A subscription of a client of either era, held open."""
    if c.era == "legacy":
        assert c.ask("resources/subscribe", {"uri": uri}).result == {}
        stream = c.get()
        assert stream.is_stream
        return stream
    stream = c.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
    assert stream.next().msg["method"] == "notifications/subscriptions/acknowledged"
    return stream


# -- start ---------------------------------------------------------------------------


def test_on_use_is_started_once_to_learn_what_it_has(serve_conf):
    mv = serve_conf(alpha=FULL, beta=FULL, per={"alpha": {"start": "on_use"}})
    c = mv.legacy()
    want = ["alpha__echo", "beta__echo"]
    assert c.tools() == want and is_in(mv, "ready")
    wait_for(lambda: None not in mv.upstream_status("alpha")["lists"].values(), 5, "all lists")
    # What it learnt a moment ago is kept as well.
    mv.restart()
    # What it has is known now: nothing is started for a look at it.
    c = mv.legacy()
    assert c.tools() == want
    assert c.ask("resources/list").result["resources"][0]["uri"] == "m:1"
    assert [p["name"] for p in c.ask("prompts/list").result["prompts"]] == [
        "alpha__ask", "beta__ask"]
    found = mv.upstream_status("alpha")
    assert found["state"] == "asleep" and found["pid"] is None and found["reason"]
    assert found["lists"]["tools"] == 1
    wait_for(lambda: len(mv["beta"].starts()) == 2, 5, "the eager one is started")
    assert len(mv["alpha"].starts()) == 1
    assert "asleep" in mv.control("status")[1]
    assert c.call("alpha__echo", {"n": 1}).result["structuredContent"] == {"n": 1}
    assert len(mv["alpha"].starts()) == 2 and is_in(mv, "ready")


def test_eager_is_started_also_with_known_lists(serve_conf):
    mv = serve_conf(alpha=FULL)
    assert mv.legacy().tools()
    mv.restart()
    wait_for(lambda: len(mv["alpha"].starts()) == 2, 5, "it is started")


@pytest.mark.parametrize("up", ERAS)
@pytest.mark.parametrize("what", ["tools/call", "prompts/get", "resources/read", "watch",
                                  "completion/complete", "template"])
def test_use_wakes_it(serve_conf, what, up):
    mv = serve_conf(alpha={**FULL, "era": up, "texts": {"m:1": "one", "t:7": "seven"}}, per=NAP)
    c = mv.speak(ERAS[up == "legacy"])  # a client of the other era
    assert c.tools()
    asleep(mv)
    if what == "tools/call":
        assert c.call("alpha__echo", {"n": 1}).result["structuredContent"] == {"n": 1}
    elif what == "prompts/get":
        assert c.ask(what, {"name": "alpha__ask"}).result["messages"]
    elif what == "resources/read":
        assert c.ask(what, {"uri": "m:1"}).result["contents"][0]["text"] == "one"
    elif what == "template":
        assert c.ask("resources/read", {"uri": "t:7"}).result["contents"][0]["text"] == "seven"
    elif what == "watch":
        stream = watch(c)
        wait_state(mv, "ready")
        wait_for(lambda: b"m:1" in b"".join(r.raw for r in mv["alpha"].inputs()), 5,
                 "it is subscribed")
        mv["alpha"].run(["updated", "m:1"])
        assert stream.next().params["uri"] == "m:1"
    else:
        assert c.ask(what, {"ref": {"type": "ref/prompt", "name": "alpha__ask"},
                            "argument": {"name": "a", "value": ""}}).result["completion"]
    assert len(mv["alpha"].starts()) == 2


@pytest.mark.parametrize("up", ERAS)
def test_fifty_at_once_wake_it_once(serve_conf, up):
    mv = serve_conf(alpha={**FULL, "era": up}, per=NAP)
    assert mv.modern().tools()
    asleep(mv)
    mv["alpha"].become(on={"start": [["block", 200]]})
    clients = [mv.modern() for _ in range(50)]
    answers = [c.start_call("alpha__echo", {"n": n}) for n, c in enumerate(clients)]
    assert [a.result["structuredContent"]["n"] for a in answers] == list(range(50))
    assert len(mv["alpha"].starts()) == 2


def test_a_reload_from_on_use_to_eager_starts_it(serve_conf):
    mv = serve_conf(alpha=FULL, per={"alpha": {"start": "on_use", "idle_stop_ms": IDLE}})
    asleep(mv)
    mv.per["alpha"] = {"start": "eager"}
    assert "upstream.alpha.start" in mv.reload()
    wait_state(mv, "ready")
    assert len(mv["alpha"].starts()) == 2


def test_on_use_that_ends_by_itself_stays_away(serve_conf):
    mv = serve_conf(alpha=FULL, per={"alpha": {"start": "on_use"}})
    c = mv.legacy()
    assert c.tools()
    mv["alpha"].run(["exit", 0])
    asleep(mv)
    assert len(mv["alpha"].starts()) == 1
    assert c.call("alpha__echo", {"n": 1}).result and len(mv["alpha"].starts()) == 2


@pytest.mark.parametrize("era", ERAS)
def test_one_that_does_not_wake_fails_the_call_and_stays_listed(serve_conf, tmp_path, era):
    flag = tmp_path / "well"
    flag.touch()
    mv = serve_conf(alpha={**FULL, "wrap": ["/bin/sh", "-c",
                                            "test -e %s && exec \"$@\"" % flag, "sh"]},
                    per={"alpha": {"idle_stop_ms": IDLE, "restart_base_ms": 300}})
    c = mv.speak(era)
    assert c.tools()
    asleep(mv)
    flag.unlink()
    start = time.monotonic()
    answer = c.call("alpha__echo", {})
    assert answer.code == -32603 and answer.error["data"]["upstream"] == "alpha"
    assert time.monotonic() - start < 5
    assert c.tools() == ["alpha__echo"]
    flag.touch()
    wait_for(lambda: "result" in c.call("alpha__echo", {}).msg, 8, "it is well again")


@pytest.mark.parametrize("era", ERAS)
def test_what_is_new_when_it_wakes_is_told(serve_conf, era):
    mv = serve_conf(alpha=FULL, per=NAP)
    c = mv.speak(era)
    assert c.tools() == ["alpha__echo"]
    asleep(mv)
    if era == "legacy":
        stream = c.get()
        assert stream.is_stream
    else:
        stream = c.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        stream.next()
    mv["alpha"].become(tools=["echo", "more"])
    assert c.call("alpha__echo", {}).result
    assert stream.next().msg["method"] == "notifications/tools/list_changed"
    assert c.tools() == ["alpha__echo", "alpha__more"]


# -- idle_stop_ms --------------------------------------------------------------------


@pytest.mark.parametrize("up", ERAS)
def test_it_stops_by_the_end_of_input_after_that_time_without_use(serve_conf, up):
    mv = serve_conf(alpha={**FULL, "era": up}, beta=FULL, per={"alpha": {"idle_stop_ms": 300}})
    c = mv.modern()
    assert c.tools()
    assert c.call("alpha__echo", {}).result
    last = mv["alpha"].records("O")[-1].at
    asleep(mv)
    ended = mv["alpha"].records("E")
    assert len(ended) == 1 and ended[0].at - last >= 290e6
    # 0, the default, is never.
    assert is_in(mv, "ready", "beta") and len(mv["beta"].starts()) == 1


@pytest.mark.parametrize("up", ERAS)
def test_a_call_in_flight_keeps_it_awake(serve_conf, up):
    mv = serve_conf(alpha={**FULL, "era": up, "tools": ["echo", "hold"], "calls": {
        "hold": [["sleep", 5 * IDLE], ["reply", {"content": []}]]}}, per=NAP)
    c = mv.modern()
    assert c.tools()
    answer = c.start_call("alpha__hold", {"n": 1})
    mv["alpha"].wait_input("tools/call")
    starts = len(mv["alpha"].starts())
    assert answer.result["content"] == []
    assert len(mv["alpha"].records("E")) == starts - 1
    asleep(mv)


@pytest.mark.parametrize("up", ERAS)
@pytest.mark.parametrize("era", ERAS)
def test_a_subscription_keeps_it_awake(serve_conf, era, up):
    mv = serve_conf(alpha={**FULL, "era": up}, per=NAP)
    c = mv.speak(era)
    assert c.tools() and c.ask("resources/list").result
    stream = watch(c)
    starts = len(mv["alpha"].starts())
    stream.quiet(5 * IDLE)
    assert is_in(mv, "ready") and len(mv["alpha"].starts()) == starts
    mv["alpha"].run(["updated", "m:1"])
    assert stream.next().params["uri"] == "m:1"
    if era == "legacy":
        assert c.ask("resources/unsubscribe", {"uri": "m:1"}).result == {}
    else:
        stream.wire.close()
    asleep(mv)
    assert len(mv["alpha"].starts()) == starts


def test_a_reload_sets_it(serve_conf):
    mv = serve_conf(alpha=FULL)
    c = mv.legacy()
    assert c.tools()
    mv.per["alpha"] = {"idle_stop_ms": IDLE}
    assert "upstream.alpha.idle_stop_ms" in mv.reload()
    asleep(mv)
    assert len(mv["alpha"].starts()) == 1


def test_sleep_is_no_crash(serve_conf):
    """More naps than crashes that would park it."""
    mv = serve_conf(alpha=FULL, per={"alpha": {"idle_stop_ms": 1, "restart_limit": 2}})
    c = mv.legacy()
    for n in range(5):
        assert c.call("alpha__echo", {"n": n}).result["structuredContent"] == {"n": n}
        asleep(mv)
    assert len(mv["alpha"].starts()) >= 5


# -- enabled, probe_ms, start_ms -----------------------------------------------------


def test_enabled_false_leaves_it_out(serve_conf):
    mv = serve_conf(alpha=FULL, beta=FULL, per={"alpha": {"enabled": False}})
    c = mv.legacy()
    assert c.tools() == ["beta__echo"]
    assert [u["name"] for u in mv.status()["upstreams"]] == ["beta"]
    assert mv["alpha"].starts() == []
    assert c.call("alpha__echo", {}).code == -32602
    mv.per["alpha"] = {}
    mv.reload()
    wait_for(lambda: c.tools() == ["alpha__echo", "beta__echo"], 5, "it is there now")
    mv.per["alpha"] = {"enabled": False}
    mv.reload()
    assert c.tools() == ["beta__echo"]
    wait_for(lambda: not os.path.exists("/proc/%d" % mv["alpha"].starts()[0].pid), 5, "it ends")


def test_enabled_false_forgives_what_is_not_set(serve_conf):
    mv = serve_conf(alpha=FULL, beta=FULL, per={
        "alpha": {"enabled": False, "env": {"T": "${NOT_SET_9}"}}})
    assert mv.legacy().tools() == ["beta__echo"]


def gap(mv, name):
    """Milliseconds from the probe to what is sent as well, by the log."""
    found = [re.search(r"T\d\d:(\d\d):(\d\d\.\d{3})Z .* state upstream=\"%s\" from=%s " % (
        name, way), mv.log()) for way in ("down to=probe", "probe to=both")]
    at = [int(m[1]) * 60000 + float(m[2]) * 1000 for m in found]
    return (at[1] - at[0]) % 3600000


def test_probe_ms_is_how_long_it_is_asked_in_the_modern_way_alone(serve_conf):
    silent = {**FULL, "on": {"server/discover": []}}
    mv = serve_conf(alpha=silent, beta=silent, per={
        "alpha": {"probe_ms": 150}, "beta": {"probe_ms": 1}})
    assert mv.legacy().tools() == ["alpha__echo", "beta__echo"]
    assert gap(mv, "alpha") >= 145 and gap(mv, "beta") < gap(mv, "alpha")


def test_start_ms_is_when_it_has_to_be_ready(serve_conf):
    mv = serve_conf(alpha={**FULL, "on": {"server/discover": [], "initialize": []}}, beta=FULL,
                    per={"alpha": {"probe_ms": 1, "start_ms": 250, "restart_base_ms": 60000}})
    c = mv.legacy()
    assert c.tools() == ["beta__echo"]
    wait_for(lambda: "not ready within 250 ms" in mv.upstream_status("alpha")["reason"], 5,
             "it is given up")
    assert c.call("alpha__echo", {}).error["data"] == {
        "upstream": "alpha", "reason": "backoff", "retryable": True}
