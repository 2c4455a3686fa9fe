# SPDX-License-Identifier: MIT
"""Python's own MCP package, in virtual environments beside the build trees."""

import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

import interop_env as env

INSTALL_S = 240
BUILDS = pathlib.Path(os.environ.get("MCPVISOR_BUILDS", env.REPO))


def _run(argv):
    """None, or what went wrong."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stdout + done.stderr).strip()[-800:]


def _make(folder, requirements):
    reason = None
    # Debian has ensurepip in a package of its own, another python3 has it built in
    for python in dict.fromkeys((sys.executable, shutil.which("python3"))):
        shutil.rmtree(folder, ignore_errors=True)
        reason = _run([python, "-m", "venv", str(folder)])
        if reason is None:
            break
    else:
        return reason
    return _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet",
                 "--disable-pip-version-check", "--retries", "2", "--timeout", "20",
                 "-r", str(requirements)])


def python_with(name):
    """(interpreter, None), or (None, why there is none) for requirements-NAME.txt."""
    requirements = env.HERE / f"requirements-{name}.txt"
    folder = BUILDS / "build-python" / name
    python, done = folder / "bin" / "python", folder / "installed"
    if done.exists() and done.read_text() == requirements.read_text():
        return str(python), None
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Tests run side by side: one of them installs, the others wait for it.
    with open(folder.parent / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists() and done.read_text() == requirements.read_text():
            return str(python), None
        reason = _make(folder, requirements)
        if reason is not None:
            return None, f"{requirements.name} cannot be installed: {reason}"
        done.write_text(requirements.read_text())
    return str(python), None
