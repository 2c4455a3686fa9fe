# SPDX-License-Identifier: MIT
"""What the matrix of tests/integration looks up in a server beyond the suite's needs."""

import json
import time

from fixture_call import elicit_strings, schema, text
from fixture_offer import CONTENTS, RESOURCES, TOOLS, told, tool

WAIT_S = 20
URL = "https://fixture.example/visit?a=1&b=%C3%A9"


def register():
    """All below is registered by being loaded; the suite's own tools stay in front."""
    assert next(iter(TOOLS)) == "test_simple_text"


@tool("bridge_echo", "Gives back what it was called with",
      schema({"n": {}, "s": {"type": "string"}}))
def echo(call):
    return {"content": [text(json.dumps(call.args))], "structuredContent": call.args,
            "_meta": {"fixture.example/meta": {
                k: v for k, v in call.meta.items()
                if not k.startswith("io.modelcontextprotocol/")}}}


@tool("bridge_wait", "Waits until it is cancelled")
def wait(call):
    call.progress(1, 2)
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end and not call.exchange.is_over():
        time.sleep(0.01)
    return [text("Waited in vain")]


@tool("bridge_elicit_url", "Has the user visit a URL")
def elicit_url(call):
    return [text("Visited: " + told(call.ask_url("Please visit", URL)))]


@tool("bridge_need_url", "Works only after a URL has been visited")
def need_url(call):
    call.need_url("Please log in", URL)
    return [text("Thank you for the visit")]


@tool("bridge_update", "Updates the watched resource")
def update(call):
    call.server.world.update("test://watched-resource")
    return [text("The resource is another")]


@tool("bridge_trigger_resource_change", "Changes the list of resources")
def trigger_resource_change(call):
    call.server.world.toggle("resources")
    return [text("The list of resources has changed")]


def asking(call):
    answer = call.ask_one("reader", elicit_strings("Who reads this?", "name"))
    return {"mimeType": "text/plain", "text": "Read by " + told(answer)}


RESOURCES.append({"uri": "test://asking", "name": "asking", "mimeType": "text/plain",
                  "description": "Asks who reads it"})
CONTENTS["test://asking"] = asking
