# SPDX-License-Identifier: MIT
"""A reload: what is touched, what is not, and what is never lost."""
import json
import os
import re
import signal
import threading
import time

import pytest

from mcp import group_members, wait_for

ECHO = {"tools": ["echo"]}
HOLD = {"tools": ["echo", "hold"], "resources": ["m:1"], "calls": {
    "hold": [["sleep", 1500], ["reply", {"content": []}]]}}
ERAS = ["legacy", "modern"]


def names(c):
    return sorted(t["name"] for t in c.ask("tools/list").result["tools"])


def pids(mv, name):
    return [r.pid for r in mv[name].starts()]


def test_o_086_a_changed_upstream_is_replaced_and_no_other(serve_conf):
    mv = serve_conf(alpha=HOLD, beta=HOLD, per={"alpha": {"env": {"MARK": "one"}}})
    c = mv.legacy()
    assert names(c) == ["alpha__echo", "alpha__hold", "beta__echo", "beta__hold"]
    held = [c.start_call("alpha__hold", {}), c.start_call("beta__hold", {})]
    mv["alpha"].wait_input("tools/call")
    mv["beta"].wait_input("tools/call")
    mv.per["alpha"]["env"] = {"MARK": "two"}
    text = mv.reload()
    assert "alpha" in text and "beta" not in text and "one" not in text and "two" not in text
    # The new one serves while the old one finishes what it has.
    wait_for(lambda: len(mv["alpha"].starts()) == 2, 5, "the new process")
    assert c.call("alpha__echo", {"n": 1}).result["structuredContent"] == {"n": 1}
    old, new = mv["alpha"].starts()
    assert json.loads(new.raw)["env"]["MARK"] == "two"
    assert len(pids(mv, "beta")) == 1
    assert held[0].result == {"content": []} and held[1].result == {"content": []}
    # It ended by the end of its input.
    wait_for(lambda: any(r.kind == "E" and r.pid == old.pid for r in mv["alpha"].records())
             or not os.path.exists("/proc/%d" % old.pid), 10, "the old process ends")
    assert c.call("beta__echo", {"n": 2}).result["structuredContent"] == {"n": 2}
    assert len(pids(mv, "alpha")) == 2 and len(pids(mv, "beta")) == 1


def test_o_086_a_bad_file_leaves_everything_in_place(serve_conf):
    mv = serve_conf(alpha=ECHO)
    c = mv.legacy()
    good = mv.text()
    for bad in (good.replace("upstream :", "upstraem :"), good + "limits : {", good * 2):
        mv.write(bad)
        rc, _, err = mv.control("reload", check=3)
        assert str(mv.file) in err and re.search(r":\d+: ", err), err
        mv.proc.send_signal(signal.SIGHUP)
        mv.wait_log("error reload: refused")
        assert c.call("alpha__echo", {"n": 1}).result
    assert len(mv["alpha"].starts()) == 1
    mv.write(good)
    assert "nothing has changed" in mv.control("reload")[1]


def test_all_errors_are_told_at_once(serve_conf):
    mv = serve_conf(alpha=ECHO)
    mv.write(mv.text() + 'limits : { sessions_max = "many"; };\nlog : { levle = "info"; };\n'
             + "drain_ms = -1;\n")
    _, _, err = mv.control("reload", check=3)
    assert "limits.sessions_max" in err and "drain_ms" in err
    assert "levle" in err and '"level"' in err.replace("level?", '"level"')


@pytest.mark.parametrize("how", ["in place", "renamed", "link", "half"])
def test_o_095_every_way_to_save(serve_conf, how):
    mv = serve_conf(alpha=ECHO)
    c = mv.legacy()
    mv.add("beta", ECHO)
    new = mv.text()
    if how == "in place":
        mv.file.write_text(new)
    elif how == "renamed":
        (mv.folder / "new").write_text(new)
        os.rename(mv.folder / "new", mv.file)
    elif how == "link":
        (mv.folder / "other.conf").write_text(new)
        os.symlink("other.conf", mv.folder / "link")
        os.rename(mv.folder / "link", mv.file)
    else:
        mv.file.write_text("")
        mv.control("reload", check=3)
        mv.file.write_text(new[:-20])
        mv.control("reload", check=3)
        assert names(c) == ["alpha__echo"]
        mv.file.write_text(new)
    assert "+ upstream.beta" in mv.control("reload")[1]
    wait_for(lambda: names(c) == ["alpha__echo", "beta__echo"], 5, "beta is listed")


def test_a_dry_run_does_nothing(serve_conf):
    mv = serve_conf(alpha=ECHO)
    mv.add("beta", ECHO)
    text = mv.reload("--dry-run")
    assert "+ upstream.beta" in text
    c = mv.legacy()
    assert names(c) == ["alpha__echo"] and not mv["beta"].starts()
    assert mv.control("reload", "--dry-run")[1] == text


def test_rows_of_listen_that_are_not_used_are_told(serve_conf):
    told = "rows of listen are not used"
    mv = serve_conf(alpha=ECHO, args=["--listen", "127.0.0.1:0"],
                    more='list_wait_ms = 4000;\nlisten = ( { address = "127.0.0.1:1"; } );\n')
    mv.more = mv.more.replace("4000", "4001")
    mv.entries["alpha"]["args"].append("a listen b")
    text = mv.reload("--dry-run")
    assert "list_wait_ms" in text and "a listen b" in text and told not in text
    mv.more = mv.more.replace("127.0.0.1:1", "127.0.0.1:2")
    assert told in mv.reload("--dry-run")


def test_a_difference_that_is_too_long_says_so(serve_conf):
    def shape(letter):
        return [{"tool": "echo", "fixed": json.dumps({"k": letter * 1_200_000})}]

    mv = serve_conf(alpha=ECHO, per={"alpha": {"tool": shape("a")}})
    mv.per["alpha"]["tool"] = shape("b")
    mv.more = {"drain_ms": 999}
    text = mv.reload("--dry-run")
    assert "~ drain_ms: 1000 -> 999\n" in text and len(text) < 1000
    assert text.endswith("(more does not fit)\n")


@pytest.mark.parametrize("era", ERAS)
def test_clients_hear_of_what_comes_and_goes(serve_conf, era):
    mv = serve_conf(alpha=ECHO)
    c = mv.speak(era)
    assert names(c) == ["alpha__echo"]
    if era == "legacy":
        stream = c.get()
    else:
        stream = c.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        assert stream.next().msg["method"] == "notifications/subscriptions/acknowledged"
    mv.add("beta", ECHO)
    mv.reload()
    assert stream.next().msg["method"] == "notifications/tools/list_changed"
    wait_for(lambda: names(c) == ["alpha__echo", "beta__echo"], 5, "beta is listed")
    mv.remove("alpha")
    mv.reload()
    assert stream.next().msg["method"] == "notifications/tools/list_changed"
    assert names(c) == ["beta__echo"]
    assert c.call("alpha__echo", {}).code == -32602
    group = {json.loads(mv["alpha"].starts()[0].raw)["pgid"]}
    wait_for(lambda: not group_members(group), 10, "alpha ends")


def test_limits_take_effect_without_a_new_process(serve_conf):
    mv = serve_conf(alpha=HOLD)
    c = mv.legacy()
    assert names(c)
    text = mv.reload()
    mv.per["alpha"] = {"call_ms": 300, "prefix": "", "tools": {"deny": ["echo"]}}
    text = mv.reload()
    assert "upstream.alpha.call_ms" in text
    assert names(c) == ["hold"]
    answer = c.call("hold", {})
    assert answer.code == -32603 and answer.error["data"]["reason"] == "timeout"
    assert len(mv["alpha"].starts()) == 1


def test_addresses_come_and_go(serve_conf):
    mv = serve_conf(alpha=ECHO, more='listen = ( { address = "127.0.0.1:0" } );\n', listen=[""])
    first = mv.legacy()
    assert names(first)
    path = mv.folder / "s.sock"
    mv.more = ('listen = ( { address = "127.0.0.1:0" }, '
               '{ address = "unix:%s"; mode = "0660" } );\n' % path)
    mv.reload()
    assert path.stat().st_mode & 0o777 == 0o660
    other = mv.legacy(address="unix:%s" % path)
    assert names(other) and names(first)
    kept = other.wire()
    assert other.send("ping", wire=kept).message().result == {}
    mv.more = 'listen = ( { address = "127.0.0.1:0" } );\n'
    mv.reload()
    assert not path.exists()
    # Who is connected stays so.
    assert other.send("ping", wire=kept).message().result == {}


def test_an_address_that_is_taken_refuses_the_whole(serve_conf):
    a = serve_conf(alpha=ECHO)
    b = serve_conf(beta=ECHO)
    b.add("gamma", ECHO)
    b.more = 'listen = ( { address = "127.0.0.1:0" }, { address = "%s" } );\n' % a.address
    b.write()
    _, _, err = b.control("reload", check=3)
    assert a.address in err
    c = b.legacy()
    assert names(c) == ["beta__echo"] and not b["gamma"].starts()


@pytest.mark.parametrize("what", ["alpha", "env", "nothing", "limits"])
def test_reloads_under_load_lose_no_call(serve_conf, what):
    """Clients call without a pause while the conf changes; every call gets its answer."""
    mv = serve_conf(alpha=ECHO, beta=ECHO, log_level="info")
    stop, wrong, done = threading.Event(), [], [0] * 4

    def load(k):
        c = mv.speak(ERAS[k % 2])
        wire, n = c.wire(), 0
        while not stop.is_set():
            n += 1
            done[k] = n
            tool = "beta__echo" if what == "alpha" or n % 2 else "alpha__echo"
            answer = c.call(tool, {"k": k, "n": n}, wire=wire)
            found = answer.msg.get("result", {}).get("structuredContent")
            if found != {"k": k, "n": n}:
                wrong.append((tool, answer.msg))

    threads = [threading.Thread(target=load, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    entry = dict(mv.entries["alpha"])
    for i in range(24):
        seen = sum(done)
        wait_for(lambda: sum(done) > seen + 20 or wrong, 20, "calls go on")
        if what == "alpha":
            mv.entries.pop("alpha") if i % 2 == 0 else mv.entries.update(alpha=entry)
        elif what == "env":
            mv.per["alpha"] = {"env": {"MARK": str(i)}}
        elif what == "limits":
            mv.per["alpha"] = {"call_ms": 100000 + i}
        mv.reload()
    stop.set()
    for t in threads:
        t.join()
    assert not wrong, wrong[:3]
    assert mv.status()["reloads"] == 24


@pytest.mark.parametrize("era", ERAS)
def test_a_restart_of_one_upstream_loses_no_call(serve_conf, era):
    mv = serve_conf(alpha=HOLD, beta=ECHO)
    c = mv.speak(era)
    assert names(c)
    held = c.start_call("alpha__hold", {})
    mv["alpha"].wait_input("tools/call")
    mv.control("restart", "alpha")
    wait_for(lambda: len(mv["alpha"].starts()) == 2, 5, "the new process")
    assert c.call("alpha__echo", {"n": 1}).result["structuredContent"] == {"n": 1}
    assert held.result["content"] == []
    assert len(mv["beta"].starts()) == 1
    _, _, err = mv.control("restart", "delta", check=4)
    assert "delta" in err


def test_a_parked_upstream_comes_back_by_restart(serve_conf):
    mv = serve_conf(alpha={"command": "/bin/false"},
                    per={"alpha": {"restart_limit": 2, "restart_base_ms": 10}})
    wait_for(lambda: mv.upstream_status("alpha")["state"] == "parked", 10, "it is parked")
    spawned = mv.status()["counters"]["mcpvisor_child_spawns_total"]
    mv.control("restart", "alpha")
    wait_for(lambda: mv.status()["counters"]["mcpvisor_child_spawns_total"] > spawned, 5,
             "it is started again")
    wait_for(lambda: "status 1" in (mv.upstream_status("alpha")["reason"] or ""), 5, "why")


@pytest.mark.parametrize("era", ERAS)
def test_a_subscription_moves_to_the_new_process(serve_conf, era):
    mv = serve_conf(alpha={"resources": ["m:1"], "tools": ["echo"]},
                    per={"alpha": {"env": {"MARK": "1"}}})
    c = mv.speak(era)
    assert c.ask("resources/list").result["resources"]
    if era == "legacy":
        assert c.ask("resources/subscribe", {"uri": "m:1"}).result == {}
        stream = c.get()
    else:
        stream = c.send("subscriptions/listen",
                         {"notifications": {"resourceSubscriptions": ["m:1"]}})
        assert stream.next().msg["method"] == "notifications/subscriptions/acknowledged"
    mv.per["alpha"]["env"] = {"MARK": "2"}
    mv.reload()
    wait_for(lambda: len(mv["alpha"].starts()) == 2, 5, "the new process")
    new = mv["alpha"].starts()[1].pid
    wait_for(lambda: any(r.kind == "I" and r.pid == new and b"m:1" in r.raw
                         for r in mv["alpha"].records()), 5, "it is subscribed again")
    wait_for(lambda: not os.path.exists("/proc/%d" % mv["alpha"].starts()[0].pid), 10,
             "the old process is gone")
    mv["alpha"].run(["updated", "m:1"])
    found = stream.next().msg
    assert found["method"] == "notifications/resources/updated"
    assert found["params"]["uri"] == "m:1"


def test_a_session_lives_through_a_reload(serve_conf):
    mv = serve_conf(alpha=ECHO)
    c = mv.legacy()
    stream = c.get()
    for i in range(3):
        mv.per["alpha"] = {"env": {"MARK": str(i)}}
        mv.reload()
        assert c.call("alpha__echo", {"i": i}).result["structuredContent"] == {"i": i}
    assert not stream.wire.ended


def test_a_stop_during_a_drain_ends_it(serve_conf):
    mv = serve_conf(alpha=HOLD, per={"alpha": {"env": {"MARK": "1"}}})
    c = mv.legacy()
    c.start_call("alpha__hold", {})
    mv["alpha"].wait_input("tools/call")
    mv.per["alpha"]["env"] = {"MARK": "2"}
    mv.reload()
    start = time.monotonic()
    assert mv.stop() == 0
    assert time.monotonic() - start < 8
