# SPDX-License-Identifier: MIT
"""The verbs of a behaviour's scripts."""
import os
import time

import _signal

from rawjson import as_bytes, dumps


class Steps:
    """Mixed into Server: runs lists of steps without holding up the reader."""

    def start(self, steps, req):
        self.advance([self.script(steps, req), req, "run", None, 0])

    def advance(self, task):
        try:
            kind, what, wait_s = next(task[0])
        except StopIteration:
            return
        self.waiting.append([task[0], task[1], kind, what, time.monotonic() + wait_s])

    def script(self, steps, req):
        """Runs steps; yields (kind, what, seconds) when it must wait."""
        for step in steps:
            verb, args = step[0], step[1:]
            if verb == "sleep":
                yield "sleep", None, args[0] / 1000
            elif verb == "gate":
                yield "gate", args[0], 3600
            elif verb == "file":
                while not os.path.exists(args[0]):
                    yield "sleep", None, 0.01
            elif verb == "repeat":
                for _ in range(args[0]):
                    yield from self.script(args[1], req)
            elif verb == "forever":
                while True:
                    yield from self.script(args[0], req)
            elif verb == "expect":
                key, limit_s = req.fill(dumps(args[0]).encode()).decode(), args[1] / 1000
                if key not in self.responses:
                    yield "response", key, limit_s
                if key not in self.responses:
                    self.record("X", b"no response to " + key.encode())
                    os._exit(3)
                req.heard = dumps(self.responses.pop(key))
            else:
                getattr(self, "do_" + verb)(req, *args)

    def do_reply(self, req, result):
        self.result(req, result if isinstance(result, dict) and "repeat" not in result
                    and "hex" not in result else as_bytes(result))

    def do_error(self, req, code, message="scripted", data=None):
        self.error(req, code, message, data)

    def do_default(self, req):
        self.default(req, req.msg.get("method"))

    def do_raw(self, req, text):
        self.send(req.fill(as_bytes(text)))

    def do_bytes(self, req, text):
        self.put(req.fill(as_bytes(text)))

    def do_notify(self, req, method, params=None):
        self.notify(method, None if params is None else req.fill(as_bytes(params)))

    def do_progress(self, req, progress, token=None):
        raw = (token or req.token or '"none"').encode()
        self.notify("notifications/progress",
                    b'{"progressToken":%s,"progress":%s}' % (raw, dumps(progress).encode()))

    def do_request(self, req, key, method, params="{}"):
        self.send(req.fill(b'{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}'
                           % (dumps(key).encode(), dumps(method).encode(), as_bytes(params))))

    def do_changed(self, _req, what):
        self.changed(what)

    def do_updated(self, _req, uri):
        self.updated(uri)

    def do_set(self, _req, key, value):
        self.b[key] = value

    def do_stderr(self, _req, text):
        self.put(as_bytes(text), 2)

    def do_exit(self, _req, code=0):
        os._exit(code)

    def do_kill(self, _req):
        os.kill(os.getpid(), 9)

    def do_close_stdout(self, _req):
        os.close(1)

    def do_linger(self, _req, own_session=False):
        """A grandchild that holds our pipes and ignores TERM and HUP."""
        pid = os.fork()
        if pid == 0:
            _signal.signal(_signal.SIGTERM, _signal.SIG_IGN)
            _signal.signal(_signal.SIGHUP, _signal.SIG_IGN)
            if own_session:
                os.setsid()
            self.record("G")
            while True:
                time.sleep(60)

    def do_block(self, _req, ms):
        """Holds the whole server, reading included."""
        time.sleep(ms / 1000)
