# SPDX-License-Identifier: MIT
"""Upstreams whose tools are made by mcpvisor, over a conf, as four kinds of clients see it."""
import os
from pathlib import Path

import pytest

import conf_served
import ways
from upstream import wait_for

SH = "/bin/sh"


def shell(tool, script, *words, **more):
    """A tool that runs a line of shell; braces in it are its own. words become $1, $2."""
    script = script.replace("{", "{{").replace("}", "}}")
    return {"tool": tool, "command": SH, "args": ["-c", script, "sh", *words], **more}


def upstream_text(groups):
    return "upstream : {\n%s};\n" % "".join(
        "  %s : %s;\n" % (name, conf_served.quote(group)) for name, group in groups.items())


class Made(ways.Way):
    """A client; text() and words() are what a call answers."""

    def result(self, tool, args=None, **kw):
        return self.call(tool, args, **kw).result

    def texts(self, tool, args=None, **kw):
        return [c["text"] for c in self.result(tool, args, **kw)["content"]]

    def good(self, tool, args=None, **kw):
        """The text of a call that has one block and no error."""
        result = self.result(tool, args, **kw)
        assert not result.get("isError", False), result
        assert len(result["content"]) == 1, result
        return result["content"][0]["text"]

    def bad(self, tool, args=None, **kw):
        """The text of one that is an error."""
        result = self.result(tool, args, **kw)
        assert result.get("isError") is True, result
        assert len(result["content"]) == 1, result
        return result["content"][0]["text"]


@pytest.fixture(params=ways.WAYS)
def made(request, serve, serve_conf, tmp_path):
    """made(name={options}, ...): a client of a program with those upstreams."""
    def start(**groups):
        if request.param.startswith("http"):
            mv = serve_conf(start=False)
            mv.entries.update(groups)
            mv.write()
            mv.start()
        else:
            file = tmp_path / "made.conf"
            file.write_text(upstream_text(groups))
            mv = serve(file=False, args=("--log-level", "debug", "--conf", str(file)))
        return Made(mv, mv.speak(request.param.split("-")[1]), request.param)

    return start


def is_gone(pid):
    try:
        stat = Path("/proc/%d/stat" % pid).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rsplit(")", 1)[1].split()[0] == "Z"


def pids(path, n, timeout=10.0):
    """The n process ids that programs have written to a file, a line each."""
    def read():
        found = path.read_text().split() if os.path.exists(path) else []
        return found if len(found) >= n else None

    return [int(p) for p in wait_for(read, timeout, "%d pids in %s" % (n, path))]


def wait_gone(found, timeout=10.0):
    wait_for(lambda: all(map(is_gone, found)), timeout, "%r are gone" % (found,))
