# SPDX-License-Identifier: MIT
"""mcpvisor serve steered by a conf file and its control socket."""
import json
import subprocess

import served
from upstream import PATIENCE, Upstream

OPTIONS = ("more", "per", "env", "state", "args", "listen", "start", "log_level")


def quote(value):
    """A value as libconfig writes it; bool before int, as True is both."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\\/", "/")
    if isinstance(value, (list, tuple)):
        if any(isinstance(v, (dict, list, tuple)) for v in value):
            return "( %s )" % ", ".join(quote(v) for v in value)
        return "[ %s ]" % ", ".join(quote(v) for v in value)
    return "{ %s }" % " ".join("%s = %s;" % (k, quote(v)) for k, v in value.items())


def setting(key, value):
    return "%s = %s;\n" % (key, quote(value))


class ConfServed(served.Served):
    """more: text of the conf beside the upstreams, or a dict; per: {upstream: options}."""

    def __init__(self, binary, folder, upstreams, more="", per=None, env=None, state=None,
                 args=(), listen=("127.0.0.1:0",), start=True, log_level="debug"):
        self.more, self.per, self.log_level = more, dict(per or {}), log_level
        self.entries = {}
        self.socket = folder / "control.sock"
        self.file = folder / "mcpvisor.conf"
        self.built = False
        super().__init__(binary, folder, {}, listen, args, env, state, "")
        self.file = folder / "mcpvisor.conf"
        for name, what in upstreams.items():
            self.add(name, what)
        self.write()
        self.built = True
        if start:
            super().start()

    # -- the conf ------------------------------------------------------------------

    def add(self, name, what=None, **options):
        """One more upstream; the conf is not written."""
        what = {} if what is None else what
        if "command" in what or "url" in what:
            self.entries[name] = dict(what)
        else:
            self.upstreams[name] = Upstream(self.folder, name, what)
            self.entries[name] = dict(self.upstreams[name].entry())
            # The import's own way to say options.
            self.entries[name].update(self.entries[name].pop("mcpvisor", {}))
        self.per.setdefault(name, {}).update(options)

    def remove(self, name):
        del self.entries[name]

    def text(self):
        """The conf as it will be written: what the test has said, as libconfig text."""
        text = self.more if isinstance(self.more, str) else "".join(
            setting(k, v) for k, v in self.more.items())
        if "listen" not in text and self.listen:
            text += setting("listen", [{"address": a} for a in self.listen])
        groups = {n: {**e, **self.per.get(n, {})} for n, e in self.entries.items()}
        return text + "upstream : {\n%s};\n" % "".join(
            "  %s : %s;\n" % (n, quote(g)) for n, g in groups.items())

    def write(self, text=None):
        self.file.write_text(self.text() if text is None else text)

    # -- the daemon ----------------------------------------------------------------

    def argv(self):
        level = ["--log-level", self.log_level] if self.log_level else []
        return [str(self.binary), "serve", "--conf", str(self.file), "--socket",
                str(self.socket), *level, *self.args]

    def start(self):
        if not self.built:
            return  # the base class's own start comes before there is a conf
        super().start()

    def run(self, *argv, timeout=30, check=None, stdin=None):
        """One command of the program; (exit status, stdout, stderr)."""
        done = subprocess.run([str(self.binary), *map(str, argv)], capture_output=True,
                              timeout=timeout * PATIENCE, env=self.env, cwd=self.folder,
                              input=stdin)
        out, err = done.stdout.decode(), done.stderr.decode()
        if check is not None:
            assert done.returncode == check, (done.returncode, out, err)
        return done.returncode, out, err

    def control(self, *argv, check=0, **kw):
        return self.run(argv[0], "--socket", self.socket, *argv[1:], check=check, **kw)

    def status(self):
        return json.loads(self.control("status", "--json")[1])

    def upstream_status(self, name):
        return next(u for u in self.status()["upstreams"] if u["name"] == name)

    def reload(self, *argv, check=0):
        """Writes the conf as it is wanted now, and reloads; what it says."""
        self.write()
        return self.control("reload", *argv, check=check)[1]

    def check_end(self):
        if self.proc is None:
            return
        super().check_end()
