# SPDX-License-Identifier: MIT
"""One call from end to end: the story that the rest of the tests vary."""
import json

from mcp import META


def test_one_client_over_two_servers(serve):
    # Two servers of different age, each with a tool of the same name.
    mv = serve(
        old={"era": "legacy", "tools": ["echo", "send"], "instructions": "Old ways."},
        new={"era": "modern", "tools": ["echo"], "instructions": "New ways."},
    )

    # A legacy client shakes hands once. It meets one server that has what both have.
    hello = mv.legacy("2025-11-25").result
    assert hello["protocolVersion"] == "2025-11-25"
    assert "tools" in hello["capabilities"]
    assert "Old ways." in hello["instructions"] and "New ways." in hello["instructions"]

    # The lists are merged in the order of the file; names say whose tool it is.
    assert mv.tools() == ["old__echo", "old__send", "new__echo"]

    # A call goes to its owner alone, with the owner's own name for the tool ...
    answer = mv.call("new__echo", {"n": 1})
    sent = mv["new"].wait_input("tools/call").msg
    assert sent["params"]["name"] == "echo"
    assert mv["old"].inputs("tools/call") == []
    # ... in the owner's dialect, whatever the client speaks ...
    assert sent["params"]["_meta"][META + "protocolVersion"] == "2026-07-28"
    # ... and the result comes back as the owner wrote it.
    assert json.loads(answer.text) == answer.result["structuredContent"] == {"n": 1}

    # End of input ends everything: mcpvisor, its children, their children.
    assert mv.finish() == 0
