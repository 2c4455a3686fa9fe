# SPDX-License-Identifier: MIT
"""Merged lists: pages, order, odd upstreams, and notices of change."""
import json
import time

import pytest

from ways import WAYS, Way

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


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_025_pages_are_drained(each, upstream):
    names, uris = (["%s%03d" % (p, i) for i in range(101)] for p in ("i", "m:"))
    mv = each(alpha={"era": upstream, "tools": names, "prompts": names, "resources": uris,
                     "resourceTemplates": ["%s/{x}" % u for u in uris], "page": 50})
    published = ["alpha__" + n for n in names]
    assert keys(mv, "tools/list") == published == keys(mv, "prompts/list")
    assert keys(mv, "resources/list") == uris
    assert keys(mv, "resources/templates/list") == ["%s/{x}" % u for u in uris]
    assert mv.call("alpha__i100", {"x": 1}).result["structuredContent"] == {"x": 1}
    assert mv.ask("prompts/get", {"name": "alpha__i050"}).result["messages"]
    for method in LISTS:
        cursors = [r.msg.get("params", {}).get("cursor") for r in mv["alpha"].inputs(method)]
        assert cursors == [None, "p50", "p100"]


def test_o_026_cursors_that_we_hand_out_work(each):
    """We hand out what we have in one page; a client that follows cursors still ends."""
    mv = each(alpha={"tools": ["a%d" % i for i in range(14)], "page": 8},
              beta={"era": "modern", "tools": ["b%d" % i for i in range(14)], "page": 8})
    got = keys(mv, "tools/list")
    assert len(got) == len(set(got)) == 28


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_027_a_repeated_cursor_ends_the_list(each, upstream):
    mv = each(alpha={"era": upstream, "tools": ["a", "b", "c"], "cursor": ""},
              gamma={"era": upstream, "tools": ["a", "b", "c"], "cursor": "again"},
              beta={"tools": ["echo"]})
    start = time.monotonic()
    assert mv.tools() == [*("%s__%s" % (u, t) for u in ("alpha", "gamma") for t in "abc"),
                          "beta__echo"]
    assert time.monotonic() - start < 4
    for name in ("alpha", "gamma"):
        assert len(mv[name].inputs("tools/list")) <= 3
        mv.wait_log("warning.*%s.*cursor" % name)


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


def test_o_054_a_declared_list_that_is_no_method(each):
    none = [["error", -32601, "Method not found"]]
    mv = each(alpha={"tools": ["echo"], "capabilities": {"tools": {}, "resources": {}},
                     "on": {"resources/list": none, "resources/templates/list": none}},
              beta={"resources": ["m:1"], "resourceTemplates": ["t:{x}"]})
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


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_036_entries_that_are_no_tools_are_skipped(each, upstream):
    tail = ',"resultType":"complete","ttlMs":9000,"cacheScope":"public"' * (upstream == "modern")
    raw = '{"tools":[null,{"name":"ok","inputSchema":{"type":"object"}},42,' \
          '{"description":"no name"},{"name":7},[],"x"]%s}' % tail
    mv = each(alpha={"era": upstream, "tools": ["ok"], "on": {"tools/list": [["reply", raw]]}},
              beta={"tools": ["echo"]})
    assert mv.tools() == ["alpha__ok", "beta__echo"]
    assert mv.call("alpha__ok", {}).result
    mv.wait_log("(?i)warning.*alpha")


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


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_028_a_list_that_announces_itself(each, upstream):
    mv = each(alpha={"era": upstream, "tools": ["echo"],
                     "on": {"tools/list": [["default"], ["changed", "tools"]]}})
    start = time.monotonic()
    assert mv.tools() == ["alpha__echo"]
    watch = mv.watch(tools=True)
    for _ in range(5):
        assert mv.tools() == ["alpha__echo"]
    watch.quiet(300)
    asked = len(mv["alpha"].inputs("tools/list"))
    assert asked <= 5 + 30 * (time.monotonic() - start)
    assert mv.call("alpha__echo", {}).result


def test_o_029_nothing_is_announced_when_nothing_changed(serve_http, connect, tmp_path):
    """Clients of each kind at one daemon: it lists again at most once a second."""
    path = str(tmp_path / "s.sock")
    mv = serve_http(alpha={"era": "modern", "tools": ["echo"], "ttl_ms": 50},
                    listen=("127.0.0.1:0", "unix:" + path))
    clients = [Way(mv, mv.speak(w[5:]) if w[:4] == "http" else connect(path).speak(w[6:]), w)
               for w in WAYS]
    for c in clients:
        assert c.tools() == ["alpha__echo"]
    watches = [c.watch(tools=True) for c in clients]
    # Five refreshes of what does not change ...
    mv["alpha"].wait_input("tools/list", 1 + 5, timeout=15)
    for w in watches:
        w.quiet(1)
    # ... and one that does.
    mv["alpha"].run(["set", "tools", ["echo", "b"]])
    for w in watches:
        w.next("notifications/tools/list_changed", 15)
    for c, w in zip(clients, watches):
        w.quiet(50)
        assert c.tools() == ["alpha__echo", "alpha__b"]


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


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_034_null_in_a_schema(each, upstream):
    """The rule: what has a name is passed as it is; nobody else's tools suffer."""
    odd = ['{"name":"%s","inputSchema":{"type":"object","%s":null}}' % (m, m)
           for m in ("required", "properties")]
    odd += ['{"name":"none"}', '{"name":"null","inputSchema":null}']
    mv = each(alpha={"era": upstream, "tools": ["good", *odd]}, beta={"tools": ["echo"]})
    mv.unchecked()
    got = mv.ask("tools/list")
    assert [t["name"] for t in got.result["tools"]] == [
        "alpha__good", "alpha__required", "alpha__properties", "alpha__none", "alpha__null",
        "beta__echo"]
    for one in odd:
        assert one.replace('"name":"', '"name":"alpha__').encode() in got.raw
    assert mv.call("alpha__good", {}).result
    assert "auth" not in mv.log().lower().replace("author", "")


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_033_a_schema_without_type(each, upstream):
    """The rule: it is passed as it is, to clients of every revision."""
    odd = '{"name":"odd","inputSchema":{"anyOf":[{"type":"object","required":["a"]},' \
          '{"type":"object"}]}}'
    mv = each(alpha={"era": upstream, "tools": ["good", odd]}, beta={"tools": ["echo"]})
    got = mv.unchecked().ask("tools/list")
    assert [t["name"] for t in got.result["tools"]] == [
        "alpha__good", "alpha__odd", "beta__echo"]
    assert odd.replace('"odd"', '"alpha__odd"').encode() in got.raw
    assert mv.call("alpha__odd", {"a": 1}).result and mv.call("beta__echo", {}).result


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
    mv.legacy()
    mv.wait_log("all lists are in", 30)
    tools = mv.ask("tools/list", timeout=30).result["tools"]
    assert 6 < len(tools) < 13 and tools[-1]["name"] == "gamma__echo"
    mv.fence("gamma")


@pytest.mark.parametrize("second", ['"name"', '"Name"', r'"n\u0061me"'])
def test_a_definition_with_two_names_is_left_out(serve, second):
    two = '{"name":"x",%s:"beta__pay","inputSchema":{"type":"object"}}' % second
    mv = serve(alpha={"tools": ["echo", two]}, beta={"tools": ["pay"]})
    mv.legacy()
    assert mv.tools() == ["alpha__echo", "beta__pay"]
