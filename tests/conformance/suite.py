# SPDX-License-Identifier: MIT
"""The suite itself: had from npm, run, and what its results say."""

import hashlib
import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = HERE / "node_modules"
SUITE = MODULES / "@modelcontextprotocol/conformance"
EXPECTED = HERE / "expected-failures.txt"
PARTS = ["legacy", "modern", "client"]
REQUIREMENTS = ["2025-11-25", "2026-07-28"]
# Extensions of the protocol that mcpvisor does not claim, and authorization, which is
# the operator's to configure.
NOT_OURS = ("tasks-", "sep-2640-", "auth/")
SUITE_S = 600


def install():
    lock = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    stamp = MODULES / ".installed"
    if not stamp.exists() or stamp.read_text() != lock:
        if not shutil.which("npm"):
            sys.exit("conformance: npm is missing (Debian: apt-get install npm)")
        subprocess.run(["npm", "ci", "--ignore-scripts", "--loglevel", "error"],
                       cwd=HERE, check=True)
        stamp.write_text(lock)


def node():
    arch = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    path = MODULES / ("node-linux-" + arch) / "bin/node"
    if not path.exists():
        sys.exit("conformance: no node for %s in the lock" % platform.machine())
    return str(path)


def expected():
    """(part, requirements, scenario) of each line -> its check, or None: any."""
    found = {}
    for number, line in enumerate(EXPECTED.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if (len(words) not in (3, 4) or words[0] not in PARTS or
                words[1] not in REQUIREMENTS):
            sys.exit("%s:%d: not PART REQUIREMENTS SCENARIO [CHECK]" % (
                EXPECTED.name, number))
        found[tuple(words[:3])] = words[3] if len(words) == 4 else None
    return found


def scenarios(requirements, leg):
    """Those of a leg, from the suite's own file: name -> whether it is scored."""
    found, section, name = {}, None, None
    for line in (SUITE / "requirements" / (requirements + ".yaml")).read_text().splitlines():
        text = line.split(" #")[0].rstrip()
        if not text or text.startswith("#"):
            continue
        if not text.startswith(" "):
            section = text.rstrip(":")
        elif section == leg and text.startswith("  - "):
            found[text[4:].strip()] = True
        elif section == "not_scored" and text.startswith("  - scenario:"):
            name = text.split(":", 1)[1].strip()
        elif section == "not_scored" and text.strip() == "leg: " + leg:
            found[name] = False
    return {s: scored for s, scored in found.items() if not s.startswith(NOT_OURS)}


def start(leg, requirements, scenario, out, *options):
    """A process of the suite; all that is scored and more if scenario is None."""
    command = [node(), str(SUITE / "dist/index.js"), leg, "-o", str(out), *options]
    if scenario:
        command += ["--scenario", scenario, "--spec-version", requirements]
    else:
        command += ["--requirements", requirements]
    with open(out / ("suite-%s.txt" % (scenario or "all").replace("/", "-")), "wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=out)


def wait(process):
    """Its exit status; on the server side that says less than its results."""
    try:
        return process.wait(SUITE_S)
    finally:
        process.kill()


def checks_of(out, leg, scenario):
    """None if the scenario left no result."""
    start_of_name = "server-" if leg == "server" else ""
    stamp = "-????-??-??T??-??-??-???Z"
    found = sorted(out.glob(start_of_name + scenario + stamp))
    return json.loads((found[-1] / "checks.json").read_text()) if found else None


def judge(checks):
    """passed, failed or untried."""
    if any(c["status"] == "FAILURE" for c in checks):
        return "failed"
    # That all messages fit the schema is no sign that anything was tried.
    if any(c["status"] == "SUCCESS" and not c["id"].startswith("wire-schema")
           for c in checks):
        return "passed"
    warned = any(c["status"] == "WARNING" for c in checks)
    return "failed" if warned else "untried"


def judge_known(checks, check):
    """judge, of a scenario that is known to fail by this check (None: by any)."""
    if check is None:
        return "as expected" if judge(checks) == "failed" else "NO LONGER FAILS"
    if all(c["status"] == "SUCCESS" for c in checks if c["id"] == check):
        return "NO LONGER FAILS"
    rest = judge([c for c in checks if c["id"] != check])
    return "as expected" if rest == "passed" else rest


def notes_of(checks, known):
    return ["%s %s: %s" % (c["status"].lower(), c["id"], c.get("errorMessage", ""))
            for c in checks
            if c["status"] in ("FAILURE", "WARNING") and c["id"] != known]
