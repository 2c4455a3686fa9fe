# SPDX-License-Identifier: MIT
"""State on disk: what is there at once after a start, and that it only ever helps."""
import json
import os
import re
import shutil
import time

import pytest

from mcp import wait_for

ERAS = ["legacy", "modern"]
FULL = {"tools": ["echo", '{"name":"odd","inputSchema":{"type":"object","x":1e400, "y":1.0}}'],
        "prompts": ["ask"], "resources": ["m:1"], "resourceTemplates": ["t:{x}"],
        "texts": {"m:1": "one"}, "instructions": "Use echo."}
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
DAY = 86400
SLOW = {m: [["gate", "up"], ["default"]] for m in ("server/discover", "initialize")}


def lists(c):
    """Every list, as bytes."""
    return [c.ask(m).span("result", m.split("/")[-2] if m != LISTS[3] else "resourceTemplates")
            for m in LISTS]


def folder(mv):
    return mv.folder / "state" / "mcpvisor"


def memories(mv, name="alpha"):
    """Files of that upstream."""
    at = folder(mv) / "lists"
    return sorted(at.glob(name + "-*")) if at.exists() else []


def kept(mv, name="alpha", n=1):
    wait_for(lambda: len(memories(mv, name)) == n and None not in mv.upstream_status(
        name)["lists"].values(), 5, "its lists are kept")
    return memories(mv, name)


def down_for_good(mv, name="alpha"):
    """Its command cannot run any more, but the upstream is the same one."""
    mv[name].become(on={"start": [["exit", 1]]})


# -- warm starts ---------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("how", ["slow", "down", "asleep"])
def test_full_lists_at_once_after_a_start(serve_conf, how, era):
    mv = serve_conf(alpha=FULL, per={"alpha": {
        "restart_base_ms": 60000, "start": "on_use" if how == "asleep" else "eager"}})
    first = mv.speak(era)
    want = lists(first)
    assert b"1e400" in want[0] and all(want)
    hello = first.ask("server/discover") if era == "modern" else first.legacy().message()
    kept(mv)
    if how == "slow":
        mv["alpha"].become(on=SLOW)
    elif how == "down":
        down_for_good(mv)
    mv.restart()
    c = mv.client()
    start = time.monotonic()
    if era == "legacy":
        again = c.legacy().message()
    else:
        c.era, c.revision = "modern", "2026-07-28"
        again = c.ask("server/discover")
    assert lists(c) == want
    assert time.monotonic() - start < 2
    assert again.result["capabilities"] == hello.result["capabilities"]
    assert again.result.get("instructions") == hello.result.get("instructions") is not None
    if how == "down":
        answer = wait_for(lambda: (lambda a: "error" in a.msg and a)(
            c.call("alpha__echo", {})), 5, "it is known to be down")
        assert answer.code == -32603 and answer.error["data"]["upstream"] == "alpha"
        assert lists(c) == want
    elif how == "slow":
        # A call waits for it and is answered.
        answer = c.start_call("alpha__echo", {"n": 1})
        wait_for(lambda: mv.upstream_status("alpha")["queue"]["held"] == 1, 5, "it waits")
        mv["alpha"].open("up")
        assert answer.result["structuredContent"] == {"n": 1}
    else:
        assert len(mv["alpha"].starts()) == 1


@pytest.mark.parametrize("era", ERAS)
def test_a_fresh_list_that_differs_is_told(serve_conf, era):
    mv = serve_conf(alpha=FULL)
    assert mv.speak(era).tools() == ["alpha__echo", "alpha__odd"]
    kept(mv)
    mv["alpha"].become(tools=["echo", "new"], on=SLOW)
    mv.restart()
    c = mv.speak(era)
    assert c.tools() == ["alpha__echo", "alpha__odd"]
    if era == "legacy":
        stream = c.get()
        assert stream.is_stream
    else:
        stream = c.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        stream.next()
    mv["alpha"].open("up")
    assert stream.next().msg["method"] == "notifications/tools/list_changed"
    assert c.tools() == ["alpha__echo", "alpha__new"]
    # And that is what the next one finds.
    down_for_good(mv)
    mv.restart()
    assert mv.speak(era).tools() == ["alpha__echo", "alpha__new"]


def test_a_fresh_list_that_is_the_same_is_no_news(serve_conf):
    mv = serve_conf(alpha=FULL)
    assert mv.legacy().tools()
    kept(mv)
    mv["alpha"].become(on=SLOW)
    mv.restart()
    c = mv.legacy()
    assert c.tools()
    stream = c.get()
    assert stream.is_stream
    mv["alpha"].open("up")
    mv["alpha"].wait_input("resources/templates/list", 2)
    mv.fence("alpha")
    stream.quiet(150)


def test_a_list_from_before_says_that_it_is_stale(serve_conf):
    mv = serve_conf(alpha={**FULL, "era": "modern"}, per={"alpha": {"start": "on_use"}})
    assert mv.modern().ask("tools/list").result["ttlMs"] > 0
    kept(mv)
    mv.restart()
    assert mv.modern().ask("tools/list").result["ttlMs"] == 0


@pytest.mark.parametrize("up", ERAS)
def test_the_era_is_remembered(serve_conf, up):
    mv = serve_conf(alpha={**FULL, "era": up})
    assert mv.legacy().tools()
    kept(mv)
    before = len(mv["alpha"].inputs())
    mv.restart()
    c = mv.legacy()
    assert c.call("alpha__echo", {}).result
    said = [r.msg["method"] for r in mv["alpha"].inputs()[before:]]
    # No second probe of a legacy one, no handshake with a modern one.
    assert said[0] == ("initialize" if up == "legacy" else "server/discover")
    assert ("server/discover" in said) == (up == "modern")
    assert ("initialize" in said) == (up == "legacy")


@pytest.mark.parametrize("old,new", [("legacy", "modern"), ("modern", "legacy")])
def test_an_era_that_is_no_longer_true_is_found_out(serve_conf, old, new):
    mv = serve_conf(alpha={**FULL, "era": old}, per={"alpha": {"probe_ms": 100}})
    assert mv.legacy().tools()
    kept(mv)
    mv["alpha"].become(era=new)
    mv.restart()
    c = mv.legacy()
    assert c.call("alpha__echo", {"n": 1}).result["structuredContent"] == {"n": 1}
    revision = mv.upstream_status("alpha")["revision"]
    assert (revision >= "2026") == (new == "modern")


def test_it_is_kept_even_by_one_that_stops_at_once(serve_conf):
    mv = serve_conf(alpha=FULL)
    wait_for(lambda: None not in mv.upstream_status("alpha")["lists"].values(), 5)
    assert mv.stop() == 0
    assert len(memories(mv)) == 1
    down_for_good(mv)
    mv.start()
    assert mv.legacy().tools() == ["alpha__echo", "alpha__odd"]


# -- files that are no use -----------------------------------------------------------


def obeys_modes(mv):
    """root may do everything with a file: from its next start on it may not."""
    argv = mv.argv
    if os.geteuid() == 0:
        mv.argv = lambda: ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *argv()]
    return mv


def damage(path, how, tmp_path):
    raw = path.read_bytes()
    if how == "flipped":
        path.write_bytes(raw.replace(b"odd", b"bad", 1))
    elif how == "cut":
        path.write_bytes(raw[:len(raw) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "longer":
        path.write_bytes(raw + b"x")
    elif how == "foreign":
        path.write_bytes(b"\x7fELF" + bytes(2000))
    elif how == "other version":
        path.write_bytes(raw.replace(b"mcpvisor memory 1", b"mcpvisor memory 9", 1))
    elif how == "of another upstream":
        path.write_bytes(next(path.parent.glob("beta-*")).read_bytes())
    elif how == "link":
        shutil.move(path, tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    elif how == "folder":
        path.unlink()
        path.mkdir()
    elif how == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif how == "unreadable":
        path.chmod(0)
    elif how == "key is gone":
        (path.parents[1] / "session.key").unlink()
    elif how == "key is damaged":
        (path.parents[1] / "session.key").write_bytes(b"no key")
    elif how == "huge":
        with open(path, "r+b") as f:
            f.truncate(1 << 40)
    return path


@pytest.mark.parametrize("how", [
    "flipped", "cut", "empty", "longer", "foreign", "other version", "of another upstream",
    "link", "folder", "pipe", "unreadable", "key is gone", "key is damaged", "huge"])
def test_what_is_no_use_counts_as_nothing(serve_conf, tmp_path, how):
    mv = obeys_modes(serve_conf(alpha=FULL, beta={"tools": ["b"]}))
    assert len(mv.legacy().tools()) == 3
    path = kept(mv)[0]
    kept(mv, "beta")
    assert mv.stop() == 0
    damage(path, how, tmp_path)
    mv["alpha"].become(tools=["fresh"])
    mv.start()
    c = mv.legacy()
    assert c.tools() == ["alpha__fresh", "beta__b"]
    if how not in ("key is gone", "key is damaged"):
        mv.wait_log("lists are not recalled upstream=\"?alpha")
    # It is made anew, where its place is not taken by what is none of ours.
    if how == "folder":
        mv.wait_log("lists are not kept upstream=\"?alpha")
        assert path.is_dir()
        return
    down_for_good(mv)
    kept(mv, n=len(memories(mv)))
    mv.restart()
    assert mv.legacy().tools() == ["alpha__fresh", "beta__b"]
    for one in memories(mv):
        assert one.is_file() and not one.is_symlink()
    if how == "link":
        assert b"fresh" not in (tmp_path / "elsewhere").read_bytes()


@pytest.mark.parametrize("how", ["file", "foreign folder of lists", "no home"])
def test_without_a_folder_it_runs(serve_conf, how):
    mv = serve_conf(alpha=FULL, start=False)
    place = mv.folder / "place"
    if how == "no home":
        for name in ("HOME", "XDG_STATE_HOME"):
            mv.env.pop(name)
    elif how == "file":
        place.write_text("a file")
        mv.env["XDG_STATE_HOME"] = str(place)
    else:
        folder(mv).mkdir(parents=True)
        (folder(mv) / "lists").write_text("a file")
    mv.start()
    c = mv.legacy()
    assert c.tools() and c.call("alpha__echo", {}).result
    mv.wait_log("is kept in memory only" if how != "foreign folder of lists"
                else "lists are not kept")
    c.close()
    mv.restart()
    assert mv.legacy().tools()


def test_a_folder_that_can_only_be_read(serve_conf):
    mv = obeys_modes(serve_conf(alpha=FULL))
    assert mv.legacy().tools()
    kept(mv)
    assert mv.stop() == 0
    down_for_good(mv)
    places = [folder(mv) / "lists", folder(mv)]
    try:
        for place in places:
            place.chmod(0o500)
        mv.start()
        # What is there warms all the same.
        c = mv.legacy()
        assert c.tools() == ["alpha__echo", "alpha__odd"]
        mv["alpha"].become(on=None, tools=["new"])
        mv.control("restart", "alpha")
        wait_for(lambda: c.tools() == ["alpha__new"], 5, "it is there")
        mv.wait_log("lists are not kept upstream=\"?alpha.*Permission denied")
        assert mv.stop() == 0
    finally:
        for place in places:
            place.chmod(0o700)


# -- several processes ---------------------------------------------------------------


def test_two_daemons_and_a_stdio_share_one_folder(serve_conf, binary):
    a = serve_conf(alpha=FULL)
    assert a.legacy().tools()
    path = kept(a)[0]
    b = serve_conf(start=False, state=a.folder / "state")
    # The same upstream, to the byte.
    b.entries["alpha"] = a.entries["alpha"]
    a["alpha"].become(on=SLOW)
    b.write()
    b.start()
    assert b.legacy().tools() == ["alpha__echo", "alpha__odd"]
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}}}
    text = "".join(json.dumps(m) + "\n" for m in (
        hello, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).encode()
    _, out, _ = a.run("stdio", "--conf", b.file, check=0, stdin=text)
    answers = {m["id"]: m for m in map(json.loads, out.splitlines()) if "id" in m}
    assert [t["name"] for t in answers[1]["result"]["tools"]] == ["alpha__echo", "alpha__odd"]
    assert memories(a) == [path]
    # Both write; what is there is always one of the two, whole.
    for n in range(6):
        a["alpha"].become(tools=["echo", "n%d" % n], on=None)
        for one in (a, b):
            one.control("restart", "alpha")
        for one in (a, b):
            wait_for(lambda: one.legacy().tools() == ["alpha__echo", "alpha__n%d" % n], 8)
    for one in (a, b):
        assert one.stop() == 0
    a["alpha"].become(on={"start": [["exit", 1]]})
    a.start()
    assert a.legacy().tools() == ["alpha__echo", "alpha__n5"]
    assert "not recalled" not in a.log()


def test_modes_of_files_and_what_is_left_over(serve_conf):
    mv = serve_conf(alpha=FULL, beta={"tools": ["b"]})
    assert mv.legacy().tools()
    kept(mv), kept(mv, "beta")
    assert mv.stop() == 0
    found = {str(p.relative_to(folder(mv))): p.stat().st_mode & 0o777
             for p in folder(mv).rglob("*")}
    assert folder(mv).stat().st_mode & 0o777 == 0o700 and found.pop("lists") == 0o700
    assert set(found.values()) == {0o600}
    assert all(re.fullmatch(r"session\.key|sessions\.gone|lists/(alpha|beta)-[0-9a-f]{16}"
                            r"\.memory", n) for n in found), found


def test_keep_days_sweeps_what_nobody_uses(serve_conf):
    mv = serve_conf(alpha=FULL, beta={"tools": ["b"]}, gamma={"tools": ["c"]},
                    more="state : { keep_days = 3; };\n", per={"beta": {"start": "on_use"}})
    assert len(mv.legacy().tools()) == 4
    paths = [kept(mv, n)[0] for n in ("alpha", "beta", "gamma")]
    assert mv.stop() == 0
    mv.remove("gamma")
    mv.write()
    fresh = paths[2].with_name("delta-0123456789abcdef.memory")
    shutil.copy(paths[2], fresh)
    for path in paths:
        os.utime(path, (time.time() - 4 * DAY,) * 2)
    os.utime(fresh, (time.time() - 2 * DAY,) * 2)
    note = paths[2].with_name("note.txt")
    note.write_text("not ours")
    os.utime(note, (0, 0))
    down_for_good(mv)
    mv.start()
    c = mv.legacy()
    # What is wanted is used, however old it is; a daemon may run for years.
    assert c.tools() == ["alpha__echo", "alpha__odd", "beta__b"]
    assert [p.exists() for p in paths] == [True, True, False] and fresh.exists()
    assert note.exists() and len(mv["beta"].starts()) == 1
    assert time.time() - paths[1].stat().st_mtime < DAY


def test_state_lists_false_keeps_and_recalls_none(serve_conf):
    mv = serve_conf(alpha=FULL, more="state : { lists = false; };\n")
    assert mv.legacy().tools()
    wait_for(lambda: None not in mv.upstream_status("alpha")["lists"].values(), 5)
    mv["alpha"].become(tools=["other"])
    mv.restart()
    assert mv.legacy().tools() == ["alpha__other"]
    assert memories(mv) == [] and (folder(mv) / "session.key").exists()


def test_state_dir_is_where_it_is(serve_conf):
    mv = serve_conf(alpha=FULL, more='state : { dir = "st/${WHERE}"; };\n', env={"WHERE": "x"},
                    start=False)
    mv.start()
    assert mv.legacy().tools()
    wait_for(lambda: list((mv.folder / "st" / "x" / "lists").glob("alpha-*")), 5, "it is there")
    assert not folder(mv).exists()


def test_state_directory_of_systemd(serve_conf):
    mv = serve_conf(alpha=FULL, start=False)
    mv.env["STATE_DIRECTORY"] = "%s:%s" % (mv.folder / "one", mv.folder / "two")
    mv.start()
    assert mv.legacy().tools()
    wait_for(lambda: list((mv.folder / "one" / "lists").glob("alpha-*")), 5, "it is there")
    assert not folder(mv).exists() and not (mv.folder / "two").exists()


# -- what it is kept under -----------------------------------------------------------


def test_another_process_is_another_file(serve_conf):
    mv = serve_conf(alpha=FULL, per={"alpha": {"env": {"ACCOUNT": "s3cret-one"}}})
    assert mv.legacy().tools()
    first = kept(mv)[0]
    mv.per["alpha"]["env"]["ACCOUNT"] = "s3cret-two"
    mv["alpha"].become(tools=["two"])
    mv.reload()
    c = mv.legacy()
    wait_for(lambda: c.tools() == ["alpha__two"], 5)
    both = kept(mv, n=2)
    # Back again, and what was kept of the first is right again.
    mv.per["alpha"]["env"]["ACCOUNT"] = "s3cret-one"
    assert mv.stop() == 0
    down_for_good(mv)
    mv.write()
    mv.start()
    assert mv.legacy().tools() == ["alpha__echo", "alpha__odd"]
    assert memories(mv) == both and first in both
    # What it is called for is not what it is.
    assert mv.stop() == 0
    mv.per["alpha"].update(prefix="x", call_ms=1000, term_ms=1, tools={"deny": ["odd"]})
    mv.write()
    mv.start()
    assert mv.legacy().tools() == ["xecho"] and memories(mv) == both


def test_no_secret_is_in_names_or_contents(serve_conf):
    secret = "s3cret-0123456789"
    mv = serve_conf(alpha=FULL, start=False, env={"TOKEN": secret, "PASS_TOKEN": secret},
                    per={"alpha": {"env": {"T": "${TOKEN}"}, "env_pass": ["PASS_*"], "tool": [
                        {"tool": "echo", "fixed": {"token": "${TOKEN}"}}]}})
    mv.entries["alpha"]["args"] = [*mv.entries["alpha"]["args"], "--token=${TOKEN}"]
    mv.write()
    mv.start()
    assert mv.legacy().tools()
    kept(mv)
    assert mv.stop() == 0
    assert json.loads(mv["alpha"].starts()[-1].raw)["argv"][-1] == "--token=" + secret
    for path in folder(mv).rglob("*"):
        assert secret not in str(path)
        if path.is_file():
            assert secret.encode() not in path.read_bytes()


def test_a_modified_folder_does_not_reach_another_upstream(serve_conf):
    """What is signed for one name is believed under no other."""
    mv = serve_conf(alpha=FULL, beta={"tools": ["b"]})
    assert mv.legacy().tools()
    a, b = kept(mv)[0], kept(mv, "beta")[0]
    assert mv.stop() == 0
    raw = a.read_bytes(), b.read_bytes()
    a.write_bytes(raw[1]), b.write_bytes(raw[0])
    for name in ("alpha", "beta"):
        down_for_good(mv, name)
    mv.start()
    assert mv.legacy().tools() == []
