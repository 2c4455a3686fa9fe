# SPDX-License-Identifier: MIT
"""Tools that are shown otherwise than their servers offer them."""
import json

import pytest

ERAS = ["legacy", "modern"]
SCHEMA = {"type": "object", "properties": {
    "owner": {"type": "string"}, "repo": {"type": "string", "default": "x"},
    "n": {"type": "integer", "maximum": 9007199254740993}}, "required": ["repo", "owner", "n"],
    "additionalProperties": False}
FIND = {"name": "search.issues", "title": "T", "inputSchema": SCHEMA, "description": "Old \u00e9"}
ALPHA = {"tools": [FIND, {"name": "echo", "inputSchema": {"type": "object"}}]}
SHAPE = """
upstream_dir = "none.d";
"""


def conf(shape):
    return {"alpha": {"tool": shape}}


def tool(c, name):
    return next(t for t in c.ask("tools/list").result["tools"] if t["name"] == name)


def last_call(mv):
    return mv["alpha"].inputs("tools/call")[-1]


@pytest.mark.parametrize("era", ERAS)
def test_name_and_description(serve_conf, era):
    mv = serve_conf(alpha=ALPHA, per=conf([
        {"tool": "search.issues", "name": "find", "description": "New \"text\"\n\u4e16"}]))
    c = mv.speak(era)
    found = tool(c, "alpha__find")
    assert found["description"] == "New \"text\"\n\u4e16" and found["title"] == "T"
    assert found["inputSchema"] == SCHEMA
    c.call("alpha__find", {"repo": "r"})
    assert last_call(mv).msg["params"]["name"] == "search.issues"
    assert c.call("alpha__search_x2eissues", {}).code == -32602


@pytest.mark.parametrize("era", ERAS)
def test_fixed_and_preset_arguments(serve_conf, era):
    mv = serve_conf(alpha=ALPHA, per=conf([
        {"tool": "search.issues", "fixed": {"owner": "me"}, "defaults": '{"n": 1e400}'}]))
    c = mv.speak(era)
    schema = tool(c, "alpha__search_x2eissues")["inputSchema"]
    assert list(schema["properties"]) == ["repo"] and schema["required"] == ["repo"]
    name = "alpha__search_x2eissues"
    c.call(name, {"repo": "r"})
    assert b'"n":1e400' in last_call(mv).raw.replace(b" ", b"")
    assert json.loads(last_call(mv).raw)["params"]["arguments"]["owner"] == "me"
    c.call(name, {"owner": "you", "repo": "r", "n": 9007199254740993})
    raw = last_call(mv).raw
    assert b"you" not in raw and b"9007199254740993" in raw and b"1e400" not in raw
    c.call(name)
    assert last_call(mv).msg["params"]["arguments"]["owner"] == "me"
    # Spelled with an escape, and twice: it is still not the client's to say.
    c.post_raw if hasattr(c, "post_raw") else None
    answer = c.call(name, {"OWNER": "you"})
    assert answer.code == -32602 and "OWNER" in answer.error["message"]


def test_rename_by_the_short_form(serve_conf):
    mv = serve_conf(alpha=ALPHA, per={"alpha": {"tools": {"rename": {"echo": "say"}}}})
    c = mv.legacy()
    assert tool(c, "alpha__say")
    assert c.call("alpha__say", {"a": 1}).result["structuredContent"] == {"a": 1}


def test_deny_and_allow(serve_conf):
    mv = serve_conf(alpha=ALPHA, per={"alpha": {"tools": {"deny": ["search*"]}}})
    c = mv.legacy()
    assert c.tools() == ["alpha__echo"]
    assert c.call("alpha__search_x2eissues", {}).code == -32602
    mv.per["alpha"] = {"tools": {"allow": ["search.issues"]}}
    mv.reload()
    assert c.tools() == ["alpha__search_x2eissues"]


def test_a_time_limit_of_its_own(serve_conf):
    mv = serve_conf(alpha={"tools": ["echo", "never"], "calls": {"never": []}},
                    per=conf([{"tool": "never", "call_ms": 200}]))
    c = mv.legacy()
    answer = c.call("alpha__never", {})
    assert answer.code == -32603 and answer.error["data"]["reason"] == "timeout"


def test_two_tools_of_one_name(serve_conf):
    """A rename that collides is published all the same, under its upstream's name."""
    mv = serve_conf(alpha={"tools": ["a", "b"]}, beta={"tools": ["a"]},
                    per={"alpha": {"prefix": ""}, "beta": {"prefix": ""}})
    c = mv.legacy()
    assert sorted(c.tools()) == ["a", "b", "beta__a"]
    mv.wait_log("name is taken")
    mv.per["alpha"]["tools"] = {"rename": {"a": "b"}}
    mv.reload()
    assert len(set(c.tools())) == 3


@pytest.mark.parametrize("era", ERAS)
def test_uri_prefix_makes_twins_reachable(serve_conf, era):
    res = {"resources": ["m:1"], "resourceTemplates": ["m:{x}"], "tools": ["echo"],
           "texts": {"m:1": "1", "m:77": "77"}}
    mv = serve_conf(alpha=res, beta=res, per={"beta": {"uri_prefix": "beta+"}})
    c = mv.speak(era)
    found = [r["uri"] for r in c.ask("resources/list").result["resources"]]
    assert sorted(found) == ["beta+m:1", "m:1"]
    answer = c.ask("resources/read", {"uri": "beta+m:1"}).result
    assert mv["beta"].inputs("resources/read")[-1].msg["params"]["uri"] == "m:1"
    assert answer["contents"][0]["uri"] == "beta+m:1"
    assert not mv["alpha"].inputs("resources/read")
    c.ask("resources/read", {"uri": "beta+m:77"})
    assert mv["beta"].inputs("resources/read")[-1].msg["params"]["uri"] == "m:77"
