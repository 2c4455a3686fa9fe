# SPDX-License-Identifier: MIT
"""Functions of a shell file as tools: the contract, loading, what cannot get in."""
import json

import pytest

from made import made, pids, wait_gone  # noqa: F401 (a fixture)
from upstream import wait_for

MISSING = "gone"


def definition(name, **more):
    return {"name": name, "description": "About %s." % name,
            "inputSchema": {"type": "object"}, **more}


class Files:
    """The function file and the tools file of an upstream."""

    def __init__(self, folder):
        self.file, self.tools_file = folder / "tools.sh", folder / "tools.json"

    def write(self, text):
        """As an editor does: another file under the same name."""
        new = self.file.with_suffix(".new")
        new.write_text(text)
        new.rename(self.file)

    def list(self, *tools, **kw):
        self.tools_file.write_text(json.dumps({"tools": [
            t if isinstance(t, dict) else definition(t) for t in tools]}, **kw))


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


@pytest.fixture
def shell(made, files):
    """shell(text of the functions, tools, option=value): an upstream sh with them."""
    def start(text, *tools, **more):
        files.write(text)
        files.list(*tools)
        return made(sh={"kind": "shell", "file": str(files.file),
                        "tools_file": str(files.tools_file), **more})

    return start


def names(c):
    return sorted(t["name"] for t in c.ask("tools/list").result["tools"])


# -- the contract (X25 to X28) ---------------------------------------------------------


def test_output_and_return_are_the_result(shell):
    c = shell("""
tool_hello() { echo "hello"; }
tool_args() { printf '%s|%s' "$#" "$1"; }
tool_invalid() { echo "Invalid age"; return 1; }
tool_mute() { return 7; }
tool_err() { echo "on stderr" >&2; return 1; }
tool_lines() { printf 'a\\n\\nb\\n\\n\\n'; }
tool_leaves() { echo so far; exit 3; }
""", "hello", "args", "invalid", "mute", "err", "lines", "leaves")
    assert c.good("sh__hello") == "hello"
    assert c.good("sh__args") == "1|{}"
    assert json.loads(c.good("sh__args", {"a": "x\ny", "b": [1]}).split("|")[1]) == {
        "a": "x\ny", "b": [1]}
    assert c.bad("sh__invalid") == "Invalid age"
    assert c.bad("sh__mute") == "Tool 'mute' failed with exit status 7"
    assert c.bad("sh__err") == "on stderr"
    assert c.good("sh__lines") == "a\n\nb"
    assert c.bad("sh__leaves") == "so far"


def test_x26_what_is_listed_and_what_is_there(shell):
    c = shell("tool_a() { echo a; }\ntool_unlisted() { echo u; }\nother() { echo o; }\n",
              "a", MISSING, "bad-name", definition("a"), "x;id")
    assert names(c) == ["sh__a"]
    for name in (MISSING, "unlisted", "other", "bad-name", "x;id", "a;id", "../a", "x" * 300):
        answer = c.call("sh__" + name, {})
        assert answer.code == -32602 and answer.error["message"].startswith("Unknown tool")
    c.wait_log("no function.*%s" % MISSING)


def test_x26_a_function_that_the_file_takes_away(shell, tmp_path):
    mark = tmp_path / "later"
    c = shell("[ -e %s ] || tool_a() { echo a; }\ntool_b() { echo b; }\n" % mark, "a", "b")
    assert c.good("sh__a") == "a"
    mark.touch()
    assert c.call("sh__a", {}).code == -32602
    assert c.good("sh__b") == "b"


def test_definitions_are_as_they_are_written(shell, files):
    tool = definition("a", annotations={"readOnlyHint": True, "title": "A"},
                      _meta={"example.org/x": 12345678901234567890})
    c = shell("tool_a() { echo a; }\ntool_b() { echo b; }\n", tool, "b", tool=[
        {"tool": "b", "read_only": True}])
    a, b = sorted(c.ask("tools/list").result["tools"], key=lambda t: t["name"])
    assert a == {**tool, "name": "sh__a"}
    assert b["annotations"] == {"readOnlyHint": True, "destructiveHint": False,
                                "idempotentHint": False, "openWorldHint": True}


def test_x27_arguments_of_any_size(shell):
    c = shell("tool_size() { printf '%s' \"${#1}\"; }\ntool_cat() { printf '%s' \"$1\"; }\n",
              "size", "cat")
    args = {"text": "x" * 200000}
    assert int(c.good("sh__size", args)) >= 200000
    assert json.loads(c.good("sh__cat", args)) == args


def test_arguments_are_never_read_as_shell(shell, tmp_path):
    mark = tmp_path / "mark"
    c = shell("tool_t() { printf '%s' \"$1\"; }\n", "t")
    for value in ("$(touch %s)" % mark, "`touch %s`" % mark, "'; touch %s; '" % mark,
                  "\"; touch %s; \"" % mark, "\n touch %s \n" % mark, "\\", "*", "%n"):
        assert json.loads(c.good("sh__t", {"v": value}))["v"] == value
    assert not mark.exists()


def test_x28_a_file_that_prints(shell):
    c = shell("echo noise\necho more >&2\nprintf 'declare -f tool_fake\\n'\n"
              "tool_a() { echo a; }\n", "a", "fake")
    assert names(c) == ["sh__a"]
    assert c.good("sh__a") == "a"


@pytest.mark.parametrize("text", [
    "set -euo pipefail\ntool_a() { echo a; }\n[[ ${BASH_SOURCE[0]} == \"$0\" ]] && exit 9\n",
    "set -- x y z\ntool_a() { echo a; }\n",
    "shopt -s extglob\ntool_a() { case abc in @(abc|d)) echo a;; esac; }\nfalse\n",
    "cd /\nexec 3>&1\ntool_a() { echo a; }\n",
    "tool_a() ( echo a )\nreturn 5\n",
    "IFS=o\ntool_a() { echo a; }\nunset IFS\n",
    "declare() { :; }\necho() { :; }\ntool_a() { printf 'a\\n'; }\n",
    "tool_a() { [ \"$*\" = '{}' ] && [[ -z $(cat) ]] && echo a; }\n",
], ids=range(8))
def test_files_of_all_kinds(shell, text):
    c = shell(text, "a")
    assert c.good("sh__a", {}) == "a"


def test_the_file_knows_where_it_is(shell, files):
    c = shell("here=$(dirname \"${BASH_SOURCE[0]}\")\n. \"$here/part.sh\" 2>/dev/null\n"
              "tool_a() { echo \"$here $0\"; }\n", "a")
    assert c.good("sh__a") == "%s mcpvisor" % files.file.parent


def test_x22_what_it_inherits(shell):
    c = shell("tool_fds() { for fd in {0..30}; do [ -e /proc/self/fd/$fd ] && echo $fd; done; "
              "true; }\ntool_env() { env; }\n", "fds", "env", env={"A": "1"})
    assert c.good("sh__fds").split() == ["0", "1", "2"]
    assert sorted(line for line in c.good("sh__env").split("\n")
                  if line.split("=")[0] not in ("PWD", "OLDPWD", "SHLVL", "_")) == [
        "A=1", "PATH=/usr/bin:/bin"]


# -- limits ----------------------------------------------------------------------------


def test_a_function_that_does_not_end(shell, tmp_path):
    mark = tmp_path / "pids"
    c = shell("tool_slow() { sleep 600 & echo $! $$ >>%s; echo begun; wait; }\n" % mark,
              definition("slow", annotations={"readOnlyHint": True}),
              timeout_ms=400, stop_ms=200)
    words, output = c.texts("sh__slow", {})
    assert words.startswith("Tool 'slow' did not finish within 400 ms and was stopped.")
    assert "effects" not in words and output == "begun"
    wait_gone(pids(mark, 2))


def test_output_that_is_too_long(shell):
    c = shell("tool_flood() { head -c 1000000 /dev/zero | tr '\\0' x; }\n", "flood",
              output_max=1000)
    text, note = c.texts("sh__flood", {})
    assert text == "x" * 1000 and note == "Output cut: kept 1000 of at least 1000000 bytes"


# -- loading ---------------------------------------------------------------------------


def changed(c, want, timeout=10.0):
    wait_for(lambda: names(c) == want, timeout, "tools are %r" % want)


def test_a_change_counts_without_a_reload(shell, files):
    c = shell("tool_a() { echo one; }\n", "a", "b")
    assert c.good("sh__a") == "one"
    files.write("tool_a() { echo two; }\ntool_b() { echo b; }\n")
    changed(c, ["sh__a", "sh__b"])
    assert c.good("sh__a") == "two" and c.good("sh__b") == "b"
    files.list("b")
    changed(c, ["sh__b"])
    assert c.call("sh__a", {}).code == -32602


def test_clients_hear_of_a_change(shell, files):
    c = shell("tool_a() { echo one; }\n", "a", "b")
    assert names(c) == ["sh__a"]
    watch = c.watch(tools=True)
    files.write("tool_a() { echo one; }\ntool_b() { echo b; }\n")
    watch.next("notifications/tools/list_changed")
    changed(c, ["sh__a", "sh__b"])
    watch.close()


@pytest.mark.parametrize("text", ["tool_a() { echo two; }\nif then (\n",
                                  "tool_a() { echo \"two\n", "exit 0\n", "kill -9 $$\n"],
                         ids=["syntax", "quote", "exit", "kill"])
def test_x29_a_mistake_keeps_what_was_there(shell, files, text):
    c = shell("tool_a() { echo one; }\n", "a")
    assert c.good("sh__a") == "one"
    files.write(text)
    assert c.good("sh__a") == "one"
    c.wait_log("not loaded.*kept=true")
    assert names(c) == ["sh__a"]
    assert c.good("sh__a") == "one"
    files.write("tool_a() { echo three; }\n")
    wait_for(lambda: c.good("sh__a") == "three", 10, "the next file counts")


def test_x29_what_is_kept_returns_where_it_did(shell, files, tmp_path):
    mark = tmp_path / "mark"
    c = shell("tool_a() { echo \"$# $1\"; }\nreturn 0 2>/dev/null\ntouch %s\n" % mark, "a")
    assert c.good("sh__a") == "1 {}"
    files.write("exit 1\n")
    for value in range(3):
        assert c.good("sh__a", {"v": value}) == "1 {\"v\": %d}" % value
    c.wait_log("not loaded.*kept=true")
    assert c.good("sh__a") == "1 {}"
    assert not mark.exists()


def test_a_definition_that_is_none_spoils_no_other(shell):
    c = shell("tool_a() { echo a; }\ntool_b() { echo b; }\ntool_d() { echo d; }\n", {"name": "a"},
              "b", definition("d", annotations=5))
    assert names(c) == ["sh__b"]
    c.wait_log("not listed tool=.*inputSchema")


@pytest.mark.parametrize("text", ["{", "[]", "{\"tools\": 1}", "\x00"], ids=range(4))
def test_a_tools_file_that_is_none_keeps_what_was_there(shell, files, text):
    c = shell("tool_a() { echo one; }\n", "a")
    assert c.good("sh__a") == "one"
    files.tools_file.write_text(text)
    assert c.good("sh__a") == "one"
    c.wait_log("not loaded.*kept=true")
    assert names(c) == ["sh__a"]
    files.tools_file.unlink()
    assert c.good("sh__a") == "one"


def test_a_file_that_goes_away_while_it_is_served(shell, files):
    c = shell("tool_a() { echo one; }\n", "a")
    assert c.good("sh__a") == "one"
    files.file.unlink()
    assert c.good("sh__a") == "one"


def test_a_first_load_that_fails_is_tried_again(shell, files, tmp_path):
    mark = tmp_path / "mend"
    c = shell("[ -e %s ] || exit 1\ntool_a() { echo a; }\n" % mark, "a",
              restart_base_ms=50, restart_max_ms=50)
    c.wait_log("not loaded.*kept=false")
    mark.touch()
    changed(c, ["sh__a"])
    assert c.good("sh__a") == "a"


def test_one_that_was_given_up_comes_back_when_its_file_is_mended(shell, files):
    c = shell("exit 1\n", "a", restart_limit=1)
    c.wait_log("parked upstream=\"?sh")
    assert names(c) == []
    files.write("tool_a() { echo a; }\n")
    changed(c, ["sh__a"])
    assert c.good("sh__a") == "a"


def test_no_path_is_told(shell, files):
    c = shell("exit 1\n", "a", restart_limit=1)
    c.wait_log("not loaded")
    answer = c.call("sh__a", {}, timeout=30)
    assert str(files.file.parent).encode() not in answer.raw
