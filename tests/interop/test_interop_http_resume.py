# SPDX-License-Identifier: MIT
"""An SDK client whose line is cut in the middle of a call."""

import json
import subprocess

import interop_env as env
from interop_http import Serve


def test_a_call_survives_its_connections(make_run):
    run = make_run("resume", tap=False, upstreams=("everything",))
    with Serve(run) as server:
        done = subprocess.run(
            [env.NODE, str(env.HERE / "driver_resume.mjs"), server.url],
            capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    said = json.loads(done.stdout)
    assert said["seen"] == [1, 2, 3, 4, 5, 6]
    assert "Long running operation completed" in said["result"]["content"][0]["text"]
    assert said["resumed"] >= 2
