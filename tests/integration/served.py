# SPDX-License-Identifier: MIT
"""mcpvisor serve as a test sees it: started, restarted, ended and checked."""
import json
import os
import re
import signal
import subprocess
import threading
import time

import http_client
import mcp
import schema
from upstream import PATIENCE, Upstream, group_members, wait_for

BOUND = re.compile(r'notice serve: listening address="([^"]+)"')


class Served:
    """One daemon over scripted upstreams; it may be started several times."""

    def __init__(self, binary, folder, upstreams, listen=("127.0.0.1:0",), args=(), env=None,
                 state=None, text=None):
        self.binary, self.folder, self.upstreams = binary, folder, {}
        self.listen, self.args = listen, args
        self.clients, self.noted, self.old_logs = [], [], []
        self.check_schema, self.want_rc, self.proc = True, 0, None
        servers = {}
        for name, what in upstreams.items():
            if "command" in what or "url" in what:
                servers[name] = what
            else:
                self.upstreams[name] = Upstream(folder, name, what)
                servers[name] = self.upstreams[name].entry()
        self.file = folder / "servers.json"
        self.file.write_text(text or json.dumps({"mcpServers": servers}, indent=1))
        self.env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(folder),
                    "XDG_STATE_HOME": str(state or folder / "state"), "LANG": "C.UTF-8",
                    # The control socket of a service on this machine is not ours to take.
                    "RUNTIME_DIRECTORY": str(folder),
                    **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")},
                    **(env or {})}
        self.start()

    def __getitem__(self, name):
        return self.upstreams[name]

    def argv(self):
        argv = [str(self.binary), "serve", "--mcp-json", str(self.file), "--log-level",
                "debug", *self.args]
        for address in self.listen:
            argv += ["--listen", address]
        return argv

    def start(self):
        argv = self.argv()
        self.log_lines = []
        self.out = open(self.folder / "stdout", "ab")
        self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.out,
                                     stderr=subprocess.PIPE, env=self.env, process_group=0,
                                     cwd=self.folder)
        self.reader = threading.Thread(target=self.read_err, daemon=True,
                                       args=(self.proc.stderr, self.log_lines))
        self.reader.start()
        self.bound = []
        if self.listen:
            wait_for(lambda: len(BOUND.findall(self.log())) == len(self.listen)
                     or self.proc.poll() is not None, 10, "it listens")
            self.bound = BOUND.findall(self.log())
            assert len(self.bound) == len(self.listen), self.log()

    def read_err(self, pipe, lines):
        for raw in pipe:
            lines.append(raw)

    def log(self):
        return b"".join(list(self.log_lines)).decode("utf-8", "replace")

    def wait_log(self, pattern, timeout=5.0):
        return wait_for(lambda: re.search(pattern, self.log()), timeout,
                        "log has %s; it ends: %s" % (pattern, self.log()[-3000:]))

    @property
    def address(self):
        return self.bound[0]

    # -- clients -------------------------------------------------------------------

    def client(self, address=None):
        self.clients.append(http_client.Client(self, address))
        return self.clients[-1]

    def legacy(self, revision=mcp.LATEST, address=None, **kw):
        c = self.client(address)
        c.legacy(revision, **kw)
        return c

    def modern(self, address=None):
        c = self.client(address)
        c.era, c.revision = "modern", mcp.MODERN
        return c

    def speak(self, era, address=None):
        if era == "modern":
            return self.modern(address)
        return self.legacy(mcp.LATEST if era == "legacy" else era, address)

    def note(self, revision, methods, message):
        self.noted.append((revision, methods, message))

    def fence(self, name=None):
        """All that the upstream wrote before has been dealt with after this."""
        c = self.modern()
        if name is None:
            c.ask("server/discover").result
        else:
            c.call(name + "__echo", {"fence": 1}).result
        c.close()

    # -- the end -------------------------------------------------------------------

    def groups(self):
        return {json.loads(r.raw)["pgid"] for u in self.upstreams.values()
                for r in u.starts()}

    def wait_exit(self, timeout=10.0):
        rc = self.proc.wait(timeout * PATIENCE)
        self.reader.join(5)
        self.proc.stderr.close()
        self.out.close()
        self.old_logs.append(self.log())
        return rc

    def stop(self, timeout=10.0):
        """Asks it to end; the exit status."""
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
        return self.wait_exit(timeout)

    def kill(self):
        self.proc.kill()
        assert self.wait_exit() == -signal.SIGKILL

    def restart(self, close=True):
        """Connections that only idle are closed first: they would hold the end a while."""
        for c in self.clients if close else ():
            c.close()
        assert self.stop() == 0, self.log()[-3000:]
        self.start()

    def is_running(self):
        return not self.proc.stderr.closed

    def check_end(self):
        groups = self.groups()
        try:
            for c in self.clients:
                c.close()
            if self.is_running():
                rc = self.stop()
                assert rc == self.want_rc, "exit %d: %s" % (rc, self.log()[-3000:])
            wait_for(lambda: not group_members(groups), 3, "the children's groups end")
            assert (self.folder / "stdout").read_bytes() == b""
            for log in self.old_logs:
                for word in ("Sanitizer", "runtime error:", "assertion"):
                    assert word not in log, log[-6000:]
            if self.check_schema:
                self.check_schemas()
        finally:
            self.destroy(groups)

    def check_schemas(self):
        wrong = []
        for revision, methods, m in self.noted:
            if len(m.raw) > 200000:
                continue
            every = m.msg if isinstance(m.msg, list) else [m.msg]
            for i, one in enumerate(every):
                # The answers of a batch come in any order: their methods are not looked at.
                method = methods[0] if len(methods) == 1 and "method" not in one else None
                wrong += schema.check(revision, method, one)
        assert not wrong, wrong[:5]

    def destroy(self, groups):
        for c in self.clients:
            c.close()
        if self.proc.poll() is None:
            self.proc.kill()
            self.wait_exit()
        for pid in group_members(groups | self.groups()):
            os.kill(pid, signal.SIGKILL)
        for u in self.upstreams.values():
            u.close()


class Connected(mcp.Mcpvisor):
    """mcpvisor connect: the client of a daemon that other tests may share."""

    command = ("connect",)


def took(fn):
    start = time.monotonic()
    fn()
    return time.monotonic() - start
