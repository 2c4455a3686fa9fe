# SPDX-License-Identifier: MIT
"""Merged lists: pages, order, odd upstreams, and notices of change."""
import json
import time

import pytest

LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}


def keys(mv, method):
    """The merged list through all the pages that we hand out."""
    member, key = LISTS[method]
    found, cursor = [], None
    for _ in range(300):
        got = mv.ask(method, {"cursor": cursor} if cursor is not None else {}).result
        found += [item[key] for item in got[member]]
        cursor = got.get("nextCursor")
        if cursor is None:
            return found
    raise AssertionError("%s has no end" % method)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("method", LISTS)
def test_o_025_pages_are_drained(serve, era, method):
    member, _ = LISTS[method]
    items = ["i%03d" % i if "s/list" in method and member in ("tools", "prompts")
             else "m:%03d" % i for i in range(101)]
    mv = serve(alpha={"era": era, member: items, "page": 50, "tools": items
                      if member == "tools" else ["echo"]})
    mv.speak(era)
    want = ["alpha__" + i for i in items] if member in ("tools", "prompts") else items
    assert keys(mv, method) == want
    if member == "tools":
        assert mv.call("alpha__i100", {"x": 1}).result["structuredContent"] == {"x": 1}
    cursors = [r.msg.get("params", {}).get("cursor") for r in mv["alpha"].inputs(method)]
    assert cursors == [None, "p50", "p100"]


def test_o_026_cursors_that_we_hand_out_work(serve):
    mv = serve(alpha={"tools": ["a%d" % i for i in range(14)], "page": 8},
               beta={"tools": ["b%d" % i for i in range(14)], "page": 8})
    mv.legacy()
    got = keys(mv, "tools/list")
    assert len(got) == len(set(got)) == 28


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("cursor", ["", "again"])
def test_o_027_a_repeated_cursor_ends_the_list(serve, era, cursor):
    mv = serve(alpha={"era": era, "tools": ["a", "b", "c"], "cursor": cursor},
               beta={"tools": ["echo"]})
    mv.speak(era)
    assert mv.tools() == ["alpha__a", "alpha__b", "alpha__c", "beta__echo"]
    assert len(mv["alpha"].inputs("tools/list")) <= 3
    mv.wait_log("(?i)warning.*alpha|alpha.*cursor")


def test_a_cursor_that_we_never_gave_is_invalid_params(serve):
    mv = serve(alpha={"tools": ["echo"]})
    mv.legacy()
    assert mv.ask("tools/list", {"cursor": "forged"}).code == -32602
    assert mv.ask("tools/list", {"cursor": 7}).code == -32602


def test_the_order_is_the_files_whoever_is_ready_first(serve):
    slow = {"tools": ["z", "a"], "on": {"initialize": [["sleep", 150], ["default"]]}}
    fast = {"tools": ["z", "a"]}
    seen = set()
    for order in ((slow, fast), (fast, slow)):
        mv = serve(first=order[0], second=order[1])
        mv.legacy()
        seen.add(mv.ask("tools/list").span("result"))
        assert mv.tools() == ["first__z", "first__a", "second__z", "second__a"]
    assert len(seen) == 1


def test_o_054_a_declared_list_that_is_no_method(serve):
    none = [["error", -32601, "Method not found"]]
    mv = serve(alpha={"tools": ["echo"], "capabilities": {"tools": {}, "resources": {}},
                      "on": {"resources/list": none, "resources/templates/list": none}},
               beta={"resources": ["m:1"], "resourceTemplates": ["t:{x}"]})
    mv.legacy()
    assert mv.tools() == ["alpha__echo"]
    for _ in range(2):
        assert keys(mv, "resources/list") == ["m:1"]
        assert keys(mv, "resources/templates/list") == ["t:{x}"]
    assert mv.call("alpha__echo", {}).result
    assert len(mv["alpha"].inputs("resources/list")) == 1
    assert mv["alpha"].inputs("prompts/list") == []


def test_a_list_that_fails_does_not_spoil_the_others(serve):
    mv = serve(alpha={"tools": ["echo"], "prompts": ["p"],
                      "on": {"prompts/list": [["error", -32603, "disk on fire"]]}},
               beta={"prompts": ["q"]})
    mv.legacy()
    assert keys(mv, "prompts/list") == ["beta__q"]
    assert keys(mv, "tools/list") == ["alpha__echo"]


def test_o_036_entries_that_are_no_tools_are_skipped(serve):
    raw = '{"tools":[null,{"name":"ok","inputSchema":{"type":"object"}},42,' \
          '{"description":"no name"},{"name":7},[],"x"]}'
    mv = serve(alpha={"tools": ["ok"], "on": {"tools/list": [["reply", raw]]}},
               beta={"tools": ["echo"]})
    mv.legacy()
    assert mv.tools() == ["alpha__ok", "beta__echo"]
    mv.wait_log("alpha")


@pytest.mark.parametrize("raw", ['{"tools":null}', '{"tools":{}}', "{}", '{"tools":"no"}'])
def test_a_list_that_is_no_list_counts_as_failed(serve, raw):
    mv = serve(alpha={"tools": ["ok"], "on": {"tools/list": [["reply", raw]]}},
               beta={"tools": ["echo"]})
    mv.legacy()
    assert mv.tools() == ["beta__echo"]


@pytest.mark.parametrize("what,method", [("tools", "tools/list"), ("prompts", "prompts/list"),
                                         ("resources", "resources/list")])
def test_list_changed_reaches_a_legacy_client(serve, what, method):
    mv = serve(alpha={"tools": ["echo"], "prompts": ["p"], "resources": ["m:1"]})
    caps = mv.legacy().result["capabilities"]
    assert caps[what]["listChanged"] is True
    before = len(keys(mv, method))
    mv["alpha"].run(["set", what, ["echo", "x"] if what != "resources" else ["m:1", "m:2"]],
                    ["changed", what])
    mv.notice("notifications/%s/list_changed" % what)
    assert before == 1 and len(keys(mv, method)) == 2
    mv.nothing()


def test_one_notice_per_burst(serve):
    mv = serve(alpha={"tools": ["echo"]}, beta={"tools": ["echo"]})
    mv.legacy()
    mv.tools()
    mv["alpha"].run(["set", "tools", ["echo", "b"]], ["repeat", 50, [["changed", "tools"]]])
    mv.notice("notifications/tools/list_changed")
    mv.fence("alpha")
    mv.nothing("notifications/tools/list_changed")
    assert len(mv["alpha"].inputs("tools/list")) <= 4


def test_o_028_a_list_that_announces_itself(serve):
    mv = serve(alpha={"tools": ["echo"],
                      "on": {"tools/list": [["default"], ["changed", "tools"]]}})
    mv.legacy()
    start = time.monotonic()
    for _ in range(5):
        assert mv.tools() == ["alpha__echo"]
    mv.nothing("notifications/tools/list_changed", for_ms=1000)
    asked = len(mv["alpha"].inputs("tools/list"))
    assert asked <= 30 * (time.monotonic() - start)
    assert mv.call("alpha__echo", {}).result


def test_o_029_nothing_is_announced_when_nothing_changed(serve):
    mv = serve(alpha={"era": "modern", "tools": ["echo"], "ttl_ms": 100})
    mv.legacy()
    mv.tools()
    mv["alpha"].wait_input("tools/list", 4, timeout=15)
    assert mv.notices() == []
    mv["alpha"].run(["set", "tools", ["echo", "b"]])
    mv.notice("notifications/tools/list_changed", timeout=15)
    mv.nothing("notifications/tools/list_changed")
    assert mv.tools() == ["alpha__echo", "alpha__b"]


def test_a_tool_that_went_is_unknown(serve):
    mv = serve(alpha={"tools": ["echo", "gone"]})
    mv.legacy()
    mv.tools()
    assert mv.call("alpha__gone", {}).result
    mv["alpha"].run(["set", "tools", ["echo"]], ["changed", "tools"])
    mv.notice("notifications/tools/list_changed")
    before = len(mv["alpha"].inputs("tools/call"))
    assert mv.call("alpha__gone", {}).code == -32602
    assert len(mv["alpha"].inputs("tools/call")) == before


@pytest.mark.parametrize("member", ["required", "properties"])
def test_o_034_null_in_a_schema(serve, member):
    odd = json.dumps({"name": "odd", "inputSchema": {"type": "object", member: None}})
    mv = serve(alpha={"tools": ["good", odd, '{"name":"none"}',
                                '{"name":"null","inputSchema":null}']})
    mv.check_schema = False
    mv.legacy()
    assert "alpha__good" in mv.tools()
    assert "auth" not in mv.log().lower().replace("author", "")


def test_o_033_a_schema_without_type(serve):
    odd = '{"name":"odd","inputSchema":{"anyOf":[{"type":"object"},{"type":"object"}]}}'
    mv = serve(alpha={"tools": ["good", odd]}, beta={"tools": ["echo"]})
    mv.check_schema = False
    mv.legacy()
    got = mv.tools()
    assert "alpha__good" in got and "beta__echo" in got


def test_a_first_list_that_fails_is_asked_for_again(serve):
    mv = serve(alpha={"tools": ["echo"], "on": {"tools/list": [["error", -32603, "busy"]]}})
    mv.legacy()
    assert mv.tools() == []
    mv["alpha"].run(["set", "on", {}])
    mv.notice("notifications/tools/list_changed", 15)
    assert mv.tools() == ["alpha__echo"]


def test_an_incomplete_list_is_not_to_be_kept(serve):
    mv = serve(alpha={"era": "modern", "tools": ["echo"]},
               beta={"command": "/bin/false", "mcpvisor": {"restart_base_ms": 60000}})
    assert mv.modern().ask("tools/list").result["ttlMs"] == 0


def test_lists_that_are_too_much_together_leave_room_for_others(serve):
    text = "x" * 10_000_000
    big = [json.dumps({"name": "t%d" % i, "description": text, "inputSchema": {"type": "object"}})
           for i in range(6)]
    mv = serve(alpha={"tools": big, "page": 2}, beta={"tools": big, "page": 2},
               gamma={"tools": ["echo"]})
    mv.wait_log("all lists are in", 30)
    mv.legacy()
    tools = mv.ask("tools/list", timeout=30).result["tools"]
    assert 6 < len(tools) < 13 and tools[-1]["name"] == "gamma__echo"
    mv.fence("gamma")


@pytest.mark.parametrize("second", ['"name"', '"Name"', r'"n\u0061me"'])
def test_a_definition_with_two_names_is_left_out(serve, second):
    two = '{"name":"x",%s:"beta__pay","inputSchema":{"type":"object"}}' % second
    mv = serve(alpha={"tools": ["echo", two]}, beta={"tools": ["pay"]})
    mv.legacy()
    assert mv.tools() == ["alpha__echo", "beta__pay"]
