# SPDX-License-Identifier: MIT
"""Programs as tools: what becomes of arguments, of output, of every end."""
import base64
import json
import os
import pwd
import time

import pytest

from made import is_gone, made, pids, shell, wait_gone  # noqa: F401 (a fixture)
from upstream import wait_for

ARGV = """import json, sys
print(json.dumps(sys.argv[1:]))
"""
STRINGS = {"type": "array"}
NEEDED = {"required": True}
MAX_WORD = 131071
# Over HTTP each call has a connection of its own: they have no order.
IN_ORDER = pytest.mark.parametrize("made", ["stdio-legacy", "stdio-modern"], indirect=True)


@pytest.fixture
def one(made):
    """one({tool}, ..., option=value): an upstream run with those tools."""
    return lambda *tools, **more: made(run={"kind": "exec", "tool": list(tools), **more})


@pytest.fixture
def argv(one, tmp_path):
    """argv(args, params): a tool whose answer are its arguments; returns the caller of it."""
    file = tmp_path / "argv.py"
    file.write_text(ARGV)

    def start(args, params, **more):
        c = one({"tool": "t", "command": "/usr/bin/python3", "args": [str(file), *args],
                 "params": params, **more})
        c.words = lambda given=None: json.loads(c.good("run__t", given))
        c.refused = lambda given=None: c.bad("run__t", given)
        return c

    return start


# -- what it is ------------------------------------------------------------------------


def test_what_a_tool_says_of_itself(one):
    c = one({"tool": "say", "description": "Says \"it\".", "command": "/bin/echo",
             "args": ["{text}"], "idempotent": True, "params": {
                 "text": {"required": True, "max_length": 9, "description": "What."},
                 "n": {"type": "integer", "default": 3, "min": 1}}},
            {"tool": "plain", "command": "/bin/true", "read_only": True})
    say, plain = sorted(c.ask("tools/list").result["tools"], key=lambda t: t["name"],
                        reverse=True)
    assert say["name"] == "run__say" and say["description"] == "Says \"it\"."
    schema = say["inputSchema"]
    assert schema["type"] == "object" and schema["required"] == ["text"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["text"]["maxLength"] == 9
    assert schema["properties"]["n"] == {"type": "integer", "minimum": 1, "default": 3}
    assert say["annotations"] == {"readOnlyHint": False, "destructiveHint": True,
                                  "idempotentHint": True, "openWorldHint": True}
    assert plain["annotations"]["readOnlyHint"] is True
    assert plain["inputSchema"]["type"] == "object"


# -- ends (X01 to X06, X18 to X20, X30, X32) -------------------------------------------


def test_x01_output_is_the_answer(one):
    c = one({"tool": "echo", "command": "/bin/echo", "args": ["{text}"],
             "params": {"text": NEEDED}})
    result = c.result("run__echo", {"text": "h\u00e4llo"})
    assert result["content"] == [{"type": "text", "text": "h\u00e4llo"}]
    assert "isError" not in result and "structuredContent" not in result


def test_x02_x03_x04_x20_failures(one):
    c = one(shell("age", "echo 'Invalid age'; exit 1"),
            shell("mute", "exit 3"),
            shell("err", "echo 'no such thing' >&2; exit 1"),
            shell("both", "echo out; echo err >&2; exit 1"),
            shell("fine", "echo out; echo err >&2"),
            shell("drop", "echo err >&2; exit 1", stderr="drop"),
            shell("merge", "echo out; echo err >&2", stderr="merge"),
            shell("log", "echo to-the-log >&2; echo x", stderr="log"),
            shell("lost", "exit 127"),
            shell("killed", "echo part; kill -9 $$"))
    assert c.bad("run__age") == "Invalid age"
    assert c.bad("run__mute") == "Tool 'mute' failed with exit status 3"
    assert c.bad("run__err") == "no such thing"
    assert c.texts("run__both") == ["out", "err"]
    assert c.good("run__fine") == "out"
    assert c.bad("run__drop") == "Tool 'drop' failed with exit status 1"
    assert c.good("run__merge") == "out\nerr"
    assert c.good("run__log") == "x"
    c.wait_log("upstream=\"?run\"? line=\"to-the-log\"")
    assert c.bad("run__lost") == "Tool 'lost' failed with exit status 127"
    assert c.texts("run__killed") == ["Tool 'killed' was ended by signal 9 (KILL)", "part"]


def test_x05_x06_unknown_tools(one, tmp_path):
    mark = tmp_path / "ran"
    c = one(shell("x", "touch %s" % mark))
    for name in ("run__nope", "run__x;id", "run__../x", "run__" + "a" * 300, "x", ""):
        answer = c.call(name, {})
        assert answer.code == -32602 and answer.error["message"].startswith("Unknown tool")
    assert c.call("run__x", [1]).code == -32602
    assert not mark.exists()


def test_x18_bytes_that_are_no_text(one):
    c = one(shell("bytes", "printf 'a\\377b\\200'"))
    text, note = c.texts("run__bytes")
    assert text == "a\ufffdb\ufffd" and "UTF-8" in note


def test_x19_a_program_that_is_gone(one, tmp_path):
    program, other = tmp_path / "program", tmp_path / "other"
    for p in (program, other):
        p.write_text("#!/bin/sh\n")
        p.chmod(0o755)
    c = one({"tool": "gone", "command": str(program)}, {"tool": "not", "command": str(other)})
    assert c.good("run__gone") == ""
    program.unlink()
    other.chmod(0o644)
    for tool in ("gone", "not"):
        answer = c.call("run__" + tool)
        assert answer.code == -32603
        assert answer.error["message"] == "Tool '%s' could not be started" % tool
        assert str(tmp_path).encode() not in answer.raw
    c.wait_log("not started.*%s" % program)


def test_x30_json_digit_by_digit(one):
    digits = "12345678901234567890"
    c = one(shell("json", "printf '{\"a\":%s}\\n'" % digits, output="json"),
            shell("pretty", "printf '{\\n \"a\":\\n %s\\n}\\n'" % digits, output="json"),
            shell("list", "echo '[1, 2]'", output="json"),
            shell("none", "echo 'oops, {'", output="json"),
            shell("fails", "echo '{\"why\": 1}'; exit 1", output="json"))
    for tool in ("json", "pretty"):
        answer = c.call("run__" + tool)
        assert digits in answer.text
        assert digits.encode() in answer.span("result", "structuredContent")
    assert c.result("run__list").get("structuredContent") is None
    assert c.good("run__list") == "[1, 2]"
    text = c.bad("run__none")
    assert "promised JSON" in text and "oops, {" in text
    assert c.bad("run__fails") == '{"why": 1}'
    assert "structuredContent" not in c.result("run__fails")


def test_x32_a_status_that_is_no_failure(one, tmp_path):
    (tmp_path / "f").write_text("something\n")
    c = one({"tool": "grep", "command": "/bin/grep", "success_exit": [0, 1],
             "args": ["--", "{text}", str(tmp_path / "f")], "params": {"text": NEEDED}},
            shell("two", "exit 2", success_exit=[0, 1]))
    assert c.good("run__grep", {"text": "some"}) == "something"
    assert c.good("run__grep", {"text": "else"}) == ""
    assert "status 2" in c.bad("run__two")


def test_images(one):
    c = one(shell("png", "printf '\\211PNG\\r\\n'", output="base64", mime="image/png"),
            shell("broken", "echo why; exit 1", output="base64", mime="image/png"))
    block, = c.result("run__png")["content"]
    assert block["type"] == "image" and block["mimeType"] == "image/png"
    assert base64.b64decode(block["data"]) == b"\x89PNG\r\n"
    assert c.bad("run__broken") == "why"


# -- arguments (X07 to X15, X31) ------------------------------------------------------


def test_x07_x14_values_are_values(argv):
    c = argv(["x={text}", "{text}"], {"text": NEEDED, "author": {}})
    for value in ("; rm -rf /", "$(id)", "`id`", "'\"", "*", "a\nb", "{author}", "\\", "a b",
                  "%s", "\u4e16", ""):
        assert c.words({"text": value, "author": "evil"}) == ["x=" + value, value]


def test_x08_x09_dashes(argv):
    c = argv(["{ref}", "--", "{path}"], {"ref": {"default": "HEAD"}, "path": {"default": "."}})
    evil = "--upload-pack=evil"
    text = c.refused({"ref": evil})
    assert "'ref'" in text and evil in text and "Retrying unchanged will fail" in text
    assert c.words({"path": evil}) == ["HEAD", "--", evil]


def test_x10_x11_constraints(argv):
    c = argv(["--max-count={limit}", "{id}"],
             {"limit": {"type": "integer", "min": 1, "max": 100, "default": 5},
              "id": {"required": True}})
    text = c.refused({"limit": -5, "id": "x"})
    assert "'limit'" in text and "1 to 100" in text and "-5" in text
    assert "'id'" in c.refused({})
    assert "more" in c.refused({"id": "x", "more": 1})
    assert c.words({"id": "x"}) == ["--max-count=5", "x"]
    assert c.words({"id": "x", "limit": 7.0}) == ["--max-count=7", "x"]


def test_x12_x13_words_that_are_there_or_not(argv):
    c = argv(["a", {"optional": "--author={author}"}, {"each": "{paths}"}],
             {"author": {}, "paths": STRINGS})
    assert c.words({}) == ["a"]
    assert c.words() == ["a"]
    assert c.words({"author": "me", "paths": []}) == ["a", "--author=me"]
    assert c.words({"paths": ["x", "y z", "*"]}) == ["a", "x", "y z", "*"]


def test_x15_paths(argv, tmp_path):
    root = tmp_path / "root"
    for folder in (root, tmp_path / "rootkit"):
        folder.mkdir()
        (folder / "f").write_text("f")
    (root / "in").symlink_to("f")
    (root / "out").symlink_to("../rootkit")
    c = argv([{"each": "{paths}"}], {"paths": {**STRINGS, "path": str(root)}})
    found = os.path.realpath(root / "f")
    assert c.words({"paths": ["f", "./f", "in"]}) == [found] * 3
    for path in ("../../etc/passwd", "out/f", str(tmp_path / "rootkit" / "f"), "nope", ".."):
        text = c.refused({"paths": ["f", path]})
        assert "'paths'" in text and (path[0] == "/" or str(tmp_path) not in text)


def test_x31_a_word_that_is_too_long(argv):
    c = argv(["{text}"], {"text": NEEDED})
    assert c.words({"text": "x" * MAX_WORD}) == ["x" * MAX_WORD]
    assert "stdin" in c.refused({"text": "x" * (MAX_WORD + 1)})


def test_input(one):
    c = one(shell("json", "cat", stdin="json", params={"text": {}}),
            shell("text", "cat", stdin="{text}", params={"text": {}}),
            shell("none", "cat", params={"text": {}}))
    assert json.loads(c.good("run__json", {"text": "a\nb"})) == {"text": "a\nb"}
    assert c.good("run__json") == "{}"
    assert c.good("run__text", {"text": "x" * 200000}) == "x" * 200000
    assert c.good("run__text", {}) == ""
    assert c.good("run__none", {"text": "a"}) == ""


# -- what runs (X16, X17, X21 to X24) -------------------------------------------------


def test_x16_a_program_that_does_not_end(one, tmp_path):
    mark = tmp_path / "pids"
    stubborn = ("trap '' TERM; sh -c \"trap '' TERM; echo \\$\\$ >>%s; exec sleep 600\" & "
                "echo $$ >>%s; echo begun; wait; sleep 600" % (mark, mark))
    c = one(shell("slow", stubborn, timeout_ms=400, stop_ms=200, read_only=True),
            shell("effects", "exec sleep 600", timeout_ms=300))
    start = time.monotonic()
    words, output = c.texts("run__slow", timeout=20)
    assert time.monotonic() - start >= 0.59  # clocks may round
    assert words == ("Tool 'slow' did not finish within 400 ms and was stopped. Output so far "
                     "follows. Retrying unchanged will probably time out again; ask for less.")
    assert output == "begun"
    wait_gone(pids(mark, 2), timeout=2)
    assert c.bad("run__effects").endswith(" It may have had effects.")


def test_x17_output_that_is_too_long(one):
    flood = "head -c 10000000 /dev/zero | tr '\\0' '%s'"
    c = one(shell("ok", flood % "x"), shell("fails", flood % "x" + "; exit 1"),
            shell("stopped", "yes", overflow="kill", output_max=1000),
            shell("wide", "printf '\\303\\244\\303\\244\\303\\244'", output_max=3))
    for tool, is_error in (("ok", False), ("fails", True)):
        result = c.result("run__" + tool, timeout=30)
        text, note = [b["text"] for b in result["content"]]
        assert text == "x" * 262144 and result.get("isError", False) is is_error
        assert note == "Output cut: kept 262144 of at least 10000000 bytes"
    result = c.result("run__stopped")
    assert result["isError"] is True
    assert "more than 1000 bytes and was stopped" in result["content"][0]["text"]
    assert c.texts("run__wide") == ["\u00e4", "Output cut: kept 2 of at least 6 bytes"]


@IN_ORDER
def test_x17_output_that_grows_in_json(one):
    c = one(shell("t", "head -c 16000000 /dev/zero", output_max=16000000))
    result = c.result("run__t", timeout=60)
    text, note = [b["text"] for b in result["content"]]
    assert "isError" not in result and set(text) == {"\0"}
    assert note == "Output cut: kept %d of at least 16000000 bytes" % len(text)


def test_x21_the_environment(one):
    c = one({"tool": "env", "command": "/usr/bin/env"}, env={"A": "1", "B": "two words"},
            env_pass=["LANG"])
    assert sorted(c.good("run__env").split("\n")) == [
        "A=1", "B=two words", "LANG=C.UTF-8", "PATH=/usr/bin:/bin"]


def test_x22_what_it_inherits(one, tmp_path):
    script = tmp_path / "what.py"
    script.write_text("""import json, os, resource, signal
def is_open(fd):
    try:
        os.fstat(fd)
        return True
    except OSError:
        return False
status = dict(l.split(":\\t", 1) for l in open("/proc/self/status") if ":\\t" in l)
print(json.dumps({
    "fds": [fd for fd in range(64) if is_open(fd)],
    "stdin": os.readlink("/proc/self/fd/0"),
    "umask": os.umask(0), "group": os.getpgrp() == os.getpid(), "cwd": os.getcwd(),
    "privs": status["NoNewPrivs"].strip(), "blocked": int(status["SigBlk"], 16),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
    "cpu": resource.getrlimit(resource.RLIMIT_CPU)[0]}))
""")
    folder = tmp_path / "cwd"
    folder.mkdir()
    c = one({"tool": "what", "command": "/usr/bin/python3", "args": [str(script)]},
            cwd=str(folder), rlimits={"nofile": 50, "cpu_s": 9})
    assert json.loads(c.good("run__what")) == {
        "fds": [0, 1, 2], "stdin": "/dev/null", "umask": 0o77, "group": True,
        "cwd": os.path.realpath(folder), "privs": "1", "blocked": 0, "files": 50, "cpu": 9}


@pytest.mark.skipif(os.getuid() != 0, reason="needs a second user")
def test_another_user(one):
    c = one(shell("id", "id -u; id -G; grep CapEff /proc/self/status"), user="nobody")
    nobody = pwd.getpwnam("nobody")
    uid, groups, caps = c.good("run__id").split("\n")
    assert int(uid) == nobody.pw_uid
    assert {int(g) for g in groups.split()} == set(os.getgrouplist("nobody", nobody.pw_gid))
    assert int(caps.split()[1], 16) == 0


def gated(tmp_path):
    """A program that notes its begin and its end, and waits for the file go in between."""
    log, go = tmp_path / "log", tmp_path / "go"
    return log, go, shell(
        "t", "echo \"+$1\" >>%s; until [ -e %s ]; do sleep 0.02; done; echo \"-$1\" >>%s; "
        "echo \"$1\"" % (log, go, log), "{n}", params={"n": {"type": "integer", **NEEDED}})


def lines(path):
    return path.read_text().split() if path.exists() else []


def test_x23_so_many_at_a_time(one, tmp_path):
    log, go, tool = gated(tmp_path)
    c = one(tool, max_concurrency=4)
    sent = [c.start_call("run__t", {"n": n}) for n in range(16)]
    wait_for(lambda: len(lines(log)) == 4, 10, "four have begun")
    c.ping()
    assert len(lines(log)) == 4
    go.touch()
    assert [c.answer(s, 30).text for s in sent] == [str(n) for n in range(16)]
    running = most = 0
    for line in lines(log):
        running += 1 if line[0] == "+" else -1
        most = max(most, running)
    assert most <= 4 and len(lines(log)) == 32


@IN_ORDER
def test_x23_in_the_order_of_arrival(one, tmp_path):
    log, go, tool = gated(tmp_path)
    c = one(tool, max_concurrency=1)
    sent = [c.start_call("run__t", {"n": n}) for n in range(12)]
    wait_for(lambda: lines(log), 10, "one has begun")
    go.touch()
    for s in sent:
        c.answer(s, 30).result
    assert [line for line in lines(log) if line[0] == "+"] == ["+%d" % n for n in range(12)]


def test_a_full_queue(one, tmp_path):
    log, go, tool = gated(tmp_path)
    c = one(tool, max_concurrency=1, max_queue=1)
    first = c.start_call("run__t", {"n": 1})
    wait_for(lambda: lines(log), 10, "one has begun")
    rest = [c.start_call("run__t", {"n": n}) for n in (2, 3)]
    # One of them waits, the other is refused at once.
    refused = c.call("run__t", {"n": 4}) if c.is_http else c.answer(rest.pop())
    assert refused.result["isError"] is True and "retry later" in refused.text
    go.touch()
    assert c.answer(first).text == "1"
    assert c.answer(rest[0]).result


def test_x24_a_call_that_is_cancelled(one, tmp_path):
    mark = tmp_path / "pids"
    c = one(shell("slow", "sleep 600 & echo $! >>%s; echo $$ >>%s; wait" % (mark, mark),
                  stop_ms=200), shell("quick", "echo quick"))
    sent = c.start_call("run__slow")
    found = pids(mark, 2)
    if not c.is_http:
        c.c.cancel(sent)
    elif c.is_modern:
        sent.wire.close()
    else:
        c.c.post({"jsonrpc": "2.0", "method": "notifications/cancelled",
                  "params": {"requestId": c.c.next_id}})
    wait_gone(found)
    assert c.good("run__quick") == "quick"
    if not c.is_http:
        assert c.c.pending == []


@IN_ORDER
def test_it_waits_in_the_queue_and_is_cancelled(one, tmp_path):
    log, go, tool = gated(tmp_path)
    c = one(tool, max_concurrency=1)
    first = c.start_call("run__t", {"n": 1})
    second = c.start_call("run__t", {"n": 2})
    third = c.start_call("run__t", {"n": 3})
    wait_for(lambda: lines(log), 10, "one has begun")
    c.c.cancel(second)
    c.ping()
    go.touch()
    assert c.answer(first).text == "1" and c.answer(third).text == "3"
    assert lines(log) == ["+1", "-1", "+3", "-3"]


@IN_ORDER
def test_x23_what_is_cancelled_has_a_place_until_it_is_over(one, tmp_path):
    mark = tmp_path / "pids"
    c = one(shell("t", "trap '' TERM; echo $$ >>%s; while :; do sleep 0.1; done" % mark,
                  stop_ms=300), shell("quick", "echo quick"), max_concurrency=1)
    for n in (1, 2, 3):
        sent = c.start_call("run__t")
        found = pids(mark, n)
        assert all(map(is_gone, found[:-1]))
        c.c.cancel(sent)
    assert c.good("run__quick") == "quick"
    assert all(map(is_gone, found))


def test_the_end_of_the_program_ends_all(one, tmp_path):
    mark = tmp_path / "pids"
    c = one(shell("slow", "sleep 600 & echo $! >>%s; echo $$ >>%s; wait" % (mark, mark)))
    c.start_call("run__slow")
    found = pids(mark, 2)
    if c.is_http:
        c.mv.stop()
    else:
        c.c.finish()
    wait_gone(found)


def test_a_reload_brings_other_tools(serve_conf):
    mv = serve_conf(start=False)
    mv.entries["run"] = {"kind": "exec", "tool": [shell("a", "echo one")]}
    mv.write()
    mv.start()
    c = mv.speak("legacy")
    assert c.call("run__a").text == "one"
    mv.entries["run"] = {"kind": "exec", "tool": [shell("a", "echo two"),
                                                  shell("b", "echo b")]}
    mv.reload()
    wait_for(lambda: sorted(c.tools()) == ["run__a", "run__b"], 10, "both tools")
    assert c.call("run__a").text == "two" and c.call("run__b").text == "b"


def test_a_reload_of_a_description_starts_nothing(serve_conf):
    def described(**more):
        return {"kind": "exec", "tool": [{**shell("a", "echo one"), **more}]}

    def seen():
        return [t.get("description") for t in c.ask("tools/list").result["tools"]]

    mv = serve_conf(start=False)
    mv.entries["run"] = described(description="One.")
    mv.write()
    mv.start()
    c = mv.speak("legacy")
    assert seen() == ["One."]
    mv.entries["run"] = described(description="Two.")
    told = mv.reload()
    assert "One." in told and "restarts" not in told
    assert seen() == ["Two."]
    mv.entries["run"] = described()
    mv.reload()
    assert seen() == [None]
    mv.control("status")
    assert mv.log().count('ready upstream="run"') == 1
