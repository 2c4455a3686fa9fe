# SPDX-License-Identifier: MIT
"""Where the program is, and the file that puts one upstream behind it."""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def binary():
    named = os.environ.get("MCPVISOR")
    places = [named] if named else [ROOT / "build/mcpvisor", ROOT / "build-gcc/mcpvisor"]
    for path in places:
        if os.access(path, os.X_OK):
            return str(path)
    sys.exit("conformance: no %s; build it, or name it in $MCPVISOR" % places[0])


def servers(folder, entry):
    path = Path(folder) / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"fixture": {
        **entry,
        # Servers are told exactly what the client of each call can do from the first
        # call on, not only once they have asked.
        "mcpvisor": {"prefix": "", "isolation": "session"}}}}))
    return str(path)


def environment(folder):
    """With a state of its own in folder."""
    state = Path(folder) / "state"
    state.mkdir(mode=0o700)
    return {**os.environ, "XDG_STATE_HOME": str(state), "STATE_DIRECTORY": str(state)}
