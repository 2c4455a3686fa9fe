# SPDX-License-Identifier: MIT
"""Every primitive x both eras of the client x both of the upstream x both transports on
either side: each cell of contrib/doc/bridging.md."""
import itertools
import subprocess

import pytest

from bridge import Bridge
from bridge_cases import CASES
from mcp import HERE, REPO

ERAS, TRANSPORTS = ["legacy", "modern"], ["stdio", "http"]


@pytest.mark.parametrize(
    "client,upstream,front,back",
    itertools.product(ERAS, ERAS, TRANSPORTS, TRANSPORTS), ids=lambda x: x)
def test_bridge(binary, tmp_path, client, upstream, front, back):
    b = Bridge(binary, tmp_path, client, upstream, front, back)
    pair = client[0] + upstream[0]
    got = {}
    try:
        for case in CASES:
            try:
                got[case.title] = case.fn(b)
            except AssertionError as e:
                # The others are still worth seeing.
                got[case.title] = "fault: %s" % str(e)[:2000]
        assert got == {case.title: case.expected[pair] for case in CASES}
    finally:
        b.end()


def test_the_page_is_the_table():
    page = (REPO / "contrib" / "doc" / "bridging.md").read_bytes()
    assert page == subprocess.run([HERE / "bridge_table"], check=True,
                                  stdout=subprocess.PIPE).stdout
