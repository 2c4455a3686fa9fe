#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Twenty upstreams that crash, hang, flood and lie, clients of both eras that call.

usage: soak.py [--seconds N] [--seed N] [--keep]        with MCPVISOR=BINARY

Exit status: 0 when no reply was lost, doubled or swapped and everything is back where it
was before.
"""
import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

import clients  # noqa: E402 (path first)
import roles  # noqa: E402
from conf_served import ConfServed  # noqa: E402
from leaks import Control, held, marked  # noqa: E402
from upstream import PATIENCE  # noqa: E402

MARK = "MCPVISOR_SOAK"
BAD_LOG = (b"Sanitizer", b"runtime error:", b"assertion")
MB = 1 << 20
# What may be more at the end than after the warm-up.
MARGIN_IN_USE, MARGIN_RSS, RSS_FACTOR = 512 << 10, 8 * MB, 1.1
# Turns over 50 ms: some are the machine's.
SLOW_PER_S = 5


class Daemon(ConfServed):
    """Keeps only the end of its log, and what must not be in it."""

    def __init__(self, *args, **kw):
        self.bad_log = []
        super().__init__(*args, **kw)

    def note(self, revision, methods, message):
        """Nothing is kept for later."""

    def add(self, name, what=None, **options):
        super().add(name, what, **options)
        # Hours of records would fill a disk.
        self.upstreams[name].become(record=None)

    def write(self, text=None):
        """In one step: a reload by signal may come late and must not read a half."""
        new = self.file.with_suffix(".new")
        new.write_text(self.text() if text is None else text)
        os.replace(new, self.file)

    def read_err(self, pipe, lines):
        last = deque(maxlen=2000)
        for raw in pipe:
            last.append(raw)
            if any(word in raw for word in BAD_LOG):
                self.bad_log.append(raw)
            if len(lines) < 200:
                lines.append(raw)  # start() looks for the addresses here
        lines[:] = last


class Disturber(threading.Thread):
    """Reloads, restarts and kills while the clients play."""

    def __init__(self, soak):
        super().__init__(name="disturber", daemon=True)
        self.soak, self.rng = soak, random.Random("%s/disturber" % soak.seed)
        self.done = Counter()

    def run(self):
        acts = [self.move, self.come_or_go, self.limits, self.refused, self.restart,
                self.restart, self.kill, self.hangup]
        try:
            while not self.soak.resting.wait(self.rng.uniform(0.1, 1)):
                act = self.rng.choice(acts)
                act()
                self.done[act.__name__] += 1
        except Exception as e:  # said by the soak
            self.soak.tally.fault("disturber: %r" % (e,))
            raise

    def move(self):
        """Its next process takes over from the one that has calls."""
        mv = self.soak.mv
        mv.per["moves_m"]["env"] = {MARK: self.soak.mark, "N": str(self.done["move"])}
        mv.reload()

    def come_or_go(self):
        mv = self.soak.mv
        if "fickle_l" in mv.entries:
            self.soak.fickle_entry = mv.entries.pop("fickle_l")
        else:
            mv.entries["fickle_l"] = self.soak.fickle_entry
        mv.reload()

    def limits(self):
        """Options that leave the process alone."""
        mv = self.soak.mv
        mv.per["hang_l"].update(roles.hang_limits(self.rng.randint(1000, 1500)))
        mv.per["plain_m"]["queue_calls"] = self.rng.randint(1000, 4000)
        mv.reload()

    def refused(self):
        mv = self.soak.mv
        mv.write(mv.text() + "nonsense = 1;\n")
        mv.control("reload", check=3)
        mv.write()

    def hangup(self):
        self.soak.mv.proc.send_signal(signal.SIGHUP)

    def restart(self):
        name = self.rng.choice(("crash_l", "crash_m", "forks_l", "stays_m", "doomed_l",
                                "exits_l", "block_m"))
        self.soak.ask("restart", upstream=name)

    def kill(self):
        name = self.rng.choice(("crash_l", "crash_m", "stays_m"))
        pid = self.soak.upstream(name)["pid"]
        if pid:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Soak:
    def __init__(self, binary, folder, seconds, seed):
        self.seconds, self.seed, self.mark = seconds, seed, "%d-%d" % (os.getpid(), seed)
        self.tally, self.problems = clients.Tally(), []
        self.resting, self.over = threading.Event(), threading.Event()
        self.unix = str(folder / "mcp.sock")
        self.unix_address = "unix:" + self.unix
        self.roles = roles.every() + [roles.fickle()]
        self.mv = Daemon(
            binary, folder, {r.name: dict(r.behaviour) for r in self.roles},
            more={"log": {"calls": False, "level": "info"}, "reload_drain_ms": 40000,
                  "http": {"idle_ms": "1d", "session_idle_ms": 1000,
                           "session_state_idle_ms": 2000}},
            per={r.name: {**r.options, "env": {MARK: self.mark}} for r in self.roles},
            env={MARK: self.mark}, log_level=None,
            listen=("127.0.0.1:0", self.unix_address))
        self.fickle_entry = self.mv.entries["fickle_l"]
        self.control, self.control_lock = Control(self.mv.socket), threading.Lock()
        self.disturbed = Counter()

    def ask(self, command, **more):
        with self.control_lock:
            return self.control.ask(command, **more)

    def status(self):
        return self.ask("status")

    def upstream(self, name):
        return next(u for u in self.status()["upstreams"] if u["name"] == name)

    # -- playing -------------------------------------------------------------------

    def play(self, seconds):
        """All clients for a time; then each finishes what it has."""
        self.resting.clear()
        every = [*clients.every(self), Disturber(self)]
        end, told = time.monotonic() + seconds, time.monotonic()
        for one in every:
            one.start()
        while time.monotonic() < end and all(one.is_alive() for one in every) \
                and self.mv.proc.poll() is None and not self.tally.lost():
            time.sleep(0.2)
            if time.monotonic() > told + 60:
                told += 60
                self.tell()
        self.resting.set()
        for one in every:
            one.join(roles.LONGEST_S + 3 * clients.MARGIN_S)
            if one.is_alive():
                self.tally.fault("%s has not come to its end" % one.name)
        self.disturbed.update(every[-1].done)
        for call in list(self.tally.open.values()):
            self.tally.fault("%s (%s) was lost" % (call.nonce, call.name))

    def tell(self):
        now = self.measure()
        print("%s calls, %s" % (sum(self.tally.ended.values()), now), flush=True)

    # -- resting -------------------------------------------------------------------

    def measure(self):
        with self.control_lock:
            return held(self.control, self.mv.proc.pid, MARK, self.mark)

    def unrest(self):
        """What is not at rest yet."""
        status = self.status()
        want = {r.name: r.want_state for r in self.roles}
        found = ["%s=%d" % (k, v) for k, v in status["clients"].items() if v]
        for u in status["upstreams"]:
            name = u["name"]
            if u["state"] != want[name] or u["calls"]["in_flight"] or u["queue"]["held"] \
                    or u["instances"] > 1:
                found.append("%s is %s, %d in flight, %d held, %d instances" % (
                    name, u["state"], u["calls"]["in_flight"], u["queue"]["held"],
                    u["instances"]))
        awake = sum(s == "ready" for s in want.values())
        processes = len(marked(MARK, self.mark))
        if processes != 1 + 2 * awake:
            found.append("%d processes for %d" % (processes, 1 + 2 * awake))
        return found

    def rest(self):
        """Waits until nothing is left of the play, and measures."""
        self.mv.entries["fickle_l"] = self.fickle_entry
        for role in self.roles:
            self.mv.per[role.name] = {**role.options, "env": {MARK: self.mark}}
        self.mv.reload()
        # Grandchildren that linger go with their upstream.
        self.ask("restart", upstream="forks_l")
        end = time.monotonic() + 90 * PATIENCE
        while self.unrest():
            if time.monotonic() > end:
                self.problems.append("no rest: %s" % self.unrest())
                break
            time.sleep(0.2)
        return self.measure()

    # -- the verdict ---------------------------------------------------------------

    def compare(self, before, after, counters, seconds, sanitized):
        say = self.problems.append
        for key in ("descriptors", "processes"):
            if before[key] != after[key]:
                say("%s: %d before, %d after" % (key, before[key], after[key]))
        if after["in_use"] > before["in_use"] + MARGIN_IN_USE:
            say("memory in use: %(in_use)d before" % before + ", %(in_use)d after" % after)
        # A sanitizer keeps what was freed.
        if not sanitized and after["resident"] > before["resident"] * RSS_FACTOR + MARGIN_RSS:
            say("resident: %(resident)d before" % before + ", %(resident)d after" % after)
        slow = counters["mcpvisor_slow_turns_total"]
        if slow > SLOW_PER_S * PATIENCE * seconds:
            say("%d slow turns" % slow)

    def end(self):
        self.over.set()
        self.control.close()
        rc = self.mv.stop(20)
        if rc != 0:
            self.problems.append("exit status %d" % rc)
        left = marked(MARK, self.mark)
        if left:
            self.problems.append("processes left: %s" % left)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        for u in self.mv.upstreams.values():
            u.close()
        self.problems += [raw.decode("utf-8", "replace") for raw in self.mv.bad_log[:20]]

    def run(self):
        sanitized = b"__asan_init" in self.mv.binary.read_bytes()
        try:
            self.play(max(3, min(15, self.seconds / 6)))
            before = self.rest()
            print("after the warm-up:", before, flush=True)
            started = time.monotonic()
            if not self.tally.faults and not self.problems:
                self.play(self.seconds)
            took = time.monotonic() - started
            after = self.rest()
            counters = self.status()["counters"]
            print("at the end:       ", after, flush=True)
            self.compare(before, after, counters, took, sanitized)
        finally:
            self.end()
        self.report(counters)

    def report(self, counters):
        by_role = {}
        for (role, _, how), n in sorted(self.tally.ended.items()):
            by_role.setdefault(role, Counter())[how] += n
        for role, how in by_role.items():
            print("%-10s %s; slowest %s s" % (role, dict(how), self.tally.slowest[role]))
        print("disturbed:", dict(self.disturbed))
        print("counters:", {k.removeprefix("mcpvisor_"): v for k, v in counters.items() if v})


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--seconds", type=float,
                       default=float(os.environ.get("SOAK_SECONDS", "60")))
    parse.add_argument("--seed", type=int, default=int(time.time()))
    parse.add_argument("--keep", action="store_true", help="leave the folder")
    args = parse.parse_args()
    binary = Path(os.environ.get("MCPVISOR", "build/mcpvisor")).resolve()
    folder = Path(tempfile.mkdtemp(prefix="soak."))
    print("seed %d, %g s, %s, in %s" % (args.seed, args.seconds, binary, folder), flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    soak = Soak(binary, folder, args.seconds, args.seed)
    soak.run()
    faults = soak.tally.faults
    for text in [*soak.problems, *faults[:20]]:
        print("FAILED:", text)
    if soak.problems or faults:
        log = folder / "log"
        log.write_bytes(b"".join(soak.mv.log_lines))
        print("%d faults; the log's end is %s; repeat with --seed %d" % (
            len(faults), log, args.seed))
        return 1
    if not args.keep:
        shutil.rmtree(folder)
    print("passed: %d calls" % sum(soak.tally.ended.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
