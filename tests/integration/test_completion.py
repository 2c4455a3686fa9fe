# SPDX-License-Identifier: MIT
"""completion: what the shells make of it."""
import shutil
import subprocess

import pytest

COMMANDS = {"stdio", "serve", "connect", "check", "tools", "call", "probe", "status", "restart",
            "reload", "completion", "version", "help"}


@pytest.fixture
def script(binary, tmp_path):
    def write(shell):
        text = subprocess.run([binary, "completion", shell], capture_output=True, check=True,
                              timeout=20)
        assert text.stderr == b""
        path = tmp_path / ("completion." + shell)
        path.write_bytes(text.stdout)
        return path

    return write


def need(shell):
    if not shutil.which(shell):
        pytest.skip("%s is not installed" % shell)


def bash(path, folder, *words):
    """What a real bash offers at the last of the words, as Tab would ask for it."""
    code = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
            'f=$(complete -p mcpvisor); f=${f#*-F }; ${f%% *} mcpvisor "${COMP_WORDS[COMP_CWORD]}"'
            ' "${COMP_WORDS[COMP_CWORD-1]}"\nprintf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "--norc", "-uec", code, "bash", path, "mcpvisor", *words],
                          capture_output=True, text=True, timeout=20, cwd=folder)
    assert done.returncode == 0 and done.stderr == "", done
    return {x for x in done.stdout.split("\n") if x}


def test_bash(script, tmp_path):
    need("bash")
    path = script("bash")
    (tmp_path / "my servers.json").touch()
    ask = lambda *words: bash(path, tmp_path, *words)  # noqa: E731 (shorter to read)
    assert ask("") == COMMANDS
    assert ask("re") == {"restart", "reload"} and ask("x") == set()
    assert ask("status", "") == {"--socket", "--json", "--log-level"}
    assert ask("reload", "--d") == {"--dry-run"}
    assert ask("probe", "--") >= {"--conf", "--mcp-json", "--to", "--again"}
    assert ask("probe", "--to", "my") == {"my servers.json"}
    assert ask("serve", "--conf", "x", "--al") == {"--allow-unauthenticated", "--allowed-host",
                                                   "--allowed-origin"}
    assert ask("serve", "--dump", "--du") == set()
    assert ask("serve", "--log-level", "") == {"error", "warning", "notice", "info", "debug"}
    assert ask("status", "--log-level", "n") == {"notice"}
    assert ask("call", "--output", "") == {"text", "json"}
    # File names stay whole, and those with a dash in front are no options.
    assert ask("tools", "--mcp-json", "my") == {"my servers.json"}
    assert ask("completion", "") >= {"bash", "zsh", "fish"}
    assert ask("version", "") == set() and ask("demo", "") == set()


def test_bash_offers_every_option_that_is_one(script, binary, tmp_path):
    """Each that is offered is taken by its command, and no other."""
    need("bash")
    path = script("bash")
    every = set()
    for command in COMMANDS:
        every |= {x for x in bash(path, tmp_path, command, "--") if x.startswith("--")}
    for command in sorted(COMMANDS - {"completion", "version", "help"}):
        offered = bash(path, tmp_path, command, "--")
        for option in every:
            done = subprocess.run([binary, command, option, "\x01", "--no-such"], timeout=20,
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL)
            assert done.returncode == 2, (command, option)
            refused = done.stderr.splitlines()[0].endswith(
                ("missing: " + option, "missing: \x01"))
            assert refused == (option not in offered), (command, option, done.stderr)


@pytest.mark.parametrize("shell, argv", [
    ("zsh", ["-n"]), ("fish", ["--no-execute"])])
def test_other_shells_can_read_theirs(script, shell, argv):
    path = script(shell)
    text = path.read_text()
    for command in COMMANDS:
        assert command in text
    assert "--dry-run" in text or "-l dry-run" in text
    # What takes a value with one command and none with another.
    for command, has in (("call", True), ("status", False)):
        (line,) = [x for x in text.splitlines() if "json" in x and (
            x.startswith("\t%s) " % command) or x.endswith("from %s' -l json" % command)
            or x.endswith("from %s' -l json -x" % command))]
        assert ("*--json:" in line or line.endswith(" -x")) == has, line
    # Quotes are in pairs, with or without the shell at hand.
    assert text.count("'") % 2 == 0
    need(shell)
    done = subprocess.run([shell, *argv, path], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0 and done.stderr == "", done


@pytest.mark.parametrize("argv", [[], ["tcsh"], ["bash", "zsh"], ["--json", "bash"]])
def test_wrong_usage(binary, argv):
    done = subprocess.run([binary, "completion", *argv], capture_output=True, text=True,
                          timeout=20)
    assert done.returncode == 2 and done.stdout == "" and "usage" in done.stderr
