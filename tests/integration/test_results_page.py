# SPDX-License-Identifier: MIT
"""contrib/doc/results.md shows what its script prints, and has all that there is."""
import re
import subprocess

from mcp import PATIENCE, REPO
from test_control import REASONS

PAGE = REPO / "contrib" / "doc" / "results.md"


def words_of(section):
    """The words in code in the first column of a section's tables."""
    text = PAGE.read_text(encoding="utf-8").split("\n## %s\n" % section)[1].split("\n## ")[0]
    return [w for row in re.findall(r"^\| (`.*?) \|", text, re.M)
            for w in re.findall(r"`([a-z_]+)`", row)]


def test_the_page_shows_the_run(binary, tmp_path):
    done = subprocess.run([REPO / "contrib" / "doc" / "results.sh", binary], check=True,
                          env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": str(tmp_path)},
                          capture_output=True, timeout=60 * PATIENCE)
    shown = PAGE.read_bytes().split(b"```text\n")[1].split(b"```\n")[0]
    assert done.stdout == shown
    assert list(tmp_path.iterdir()) == []


def test_the_page_has_every_outcome_and_option():
    header = (REPO / "include/mcpvisor/label.h").read_text(encoding="utf-8")
    assert REASONS == re.findall(r'^\tX\([A-Z_]+, "(\w+)"\)', header, re.M)
    assert sorted(words_of("Outcomes")) == sorted(REASONS)
    table = (REPO / "src/daemon/option_table.h").read_text(encoding="utf-8")
    rows = re.findall(r'X\(UPSTREAM, "(\w+)", \w+,\s*label\.', table)
    assert words_of("Options") == rows
