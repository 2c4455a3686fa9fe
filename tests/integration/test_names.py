# SPDX-License-Identifier: MIT
"""Published names: whose tool, in which characters, how long."""
import re

import pytest

SAFE = re.compile(r"[A-Za-z0-9_-]{1,48}\Z")


def routes(mv, names):
    """The tool name that reaches an upstream for each published name."""
    found = {}
    for name in names:
        mv.call(name, {}).result
    for up in (mv.mv if hasattr(mv, "mv") else mv).upstreams.values():
        for r in up.inputs("tools/call"):
            found[up.name] = found.get(up.name, []) + [r.msg["params"]["name"]]
    return found


def unmap(name):
    """Undoes the mapping: _xHH is the byte HH."""
    raw = re.sub(rb"_x([0-9A-Fa-f]{2})", lambda m: bytes.fromhex(m[1].decode()),
                 name.encode())
    return raw.decode()


def test_o_030_the_same_name_twice(each):
    tool = '{"name":"send_email","description":"%s","inputSchema":{"type":"object"}}'
    names = []
    for order in (("alpha", "beta"), ("beta", "alpha")):
        mv = each({n: {"tools": [tool % n]} for n in order})
        tools = {t["name"]: t for t in mv.ask("tools/list").result["tools"]}
        assert set(tools) == {"alpha__send_email", "beta__send_email"}
        assert tools["alpha__send_email"]["description"] == "alpha"
        assert routes(mv, tools) == {"alpha": ["send_email"], "beta": ["send_email"]}
        names.append(sorted(tools))
    assert names[0] == names[1]


def test_o_031_long_names(each):
    base = "t" * 60
    tools = ["a" * 40, "b" * 44, base + "abcd", "c" * 128, base + "wxyz"]
    upstream = "u" * 20
    runs = []
    for _ in range(2):
        mv = each({upstream: {"tools": tools}})
        names = mv.tools()
        assert len(set(names)) == len(tools)
        assert all(SAFE.match(n) for n in names), names
        assert routes(mv, names) == {upstream: tools}
        runs.append(names)
    assert runs[0] == runs[1]


def test_o_031_a_short_name_depends_on_its_tool_alone(serve):
    upstream = "u" * 20
    long = "x" * 64
    seen = set()
    for tools in ([long], ["a", "b" * 70, long], [long, "y" * 64]):
        mv = serve({upstream: {"tools": tools}})
        mv.legacy()
        names = dict(zip(tools, mv.tools()))
        seen.add(names[long])
    assert len(seen) == 1


def test_a_name_of_exactly_the_budget_stays(serve):
    mv = serve(alpha={"tools": ["n" * 41, "n" * 42]})
    mv.legacy()
    names = mv.tools()
    assert names[0] == "alpha__" + "n" * 41
    assert len(names[0]) == 48
    assert names[1] != "alpha__" + "n" * 42 and SAFE.match(names[1])


def test_o_032_other_characters_are_mapped_reversibly(each):
    tools = ["restartNode.js", "a/b", "a b", "été", "ok", "a.b", "a_b", "a-b", "\U0001F600"]
    mv = each(alpha={"tools": tools})
    names = mv.tools()
    assert all(SAFE.match(n) for n in names), names
    assert len(set(names)) == len(tools)
    assert "alpha__ok" in names and "alpha__a_b" in names
    assert [unmap(n[len("alpha__"):]) for n in names] == tools
    assert routes(mv, names) == {"alpha": tools}


def test_o_032_what_looks_like_a_mapped_name_is_not_merged(each):
    tools = ["a.b", "a_x2eb", "a_x2Eb", "a_x"]
    mv = each(alpha={"tools": tools})
    names = mv.tools()
    assert len(set(names)) == len(tools)
    assert all(SAFE.match(n) for n in names), names
    assert routes(mv, names) == {"alpha": tools}


def test_names_of_upstreams_are_mapped_too(serve):
    mv = serve({"My Server/1.0": {"tools": ["echo"]}, "plain": {"tools": ["echo"]}})
    mv.legacy()
    names = mv.tools()
    assert all(SAFE.match(n) for n in names), names
    assert names[1] == "plain__echo"
    assert routes(mv, names) == {"My Server/1.0": ["echo"], "plain": ["echo"]}
    mv.wait_log(r"My Server/1\.0")


def test_prefixes_of_ones_own(serve):
    mv = serve(alpha={"tools": ["one"], "prompts": ["p"], "mcpvisor": {"prefix": ""}},
               beta={"tools": ["two"], "mcpvisor": {"prefix": "b-"}},
               gamma={"tools": ["three"]})
    mv.legacy()
    names = mv.tools()
    assert names == ["one", "b-two", "gamma__three"]
    assert routes(mv, names) == {"alpha": ["one"], "beta": ["two"], "gamma": ["three"]}
    assert mv.ask("prompts/list").result["prompts"][0]["name"] == "p"


def test_a_collision_leaves_the_first_its_name(serve):
    mv = serve(alpha={"tools": ["same"], "mcpvisor": {"prefix": ""}},
               beta={"tools": ["same"], "mcpvisor": {"prefix": ""}})
    mv.legacy()
    assert mv.tools() == ["same", "beta__same"]
    assert routes(mv, ["same", "beta__same"]) == {"alpha": ["same"], "beta": ["same"]}
    mv.wait_log("(?i)same")


def test_routing_never_splits_a_name(serve):
    mv = serve(a={"tools": ["b__c"]}, a__b={"tools": ["c"]})
    mv.legacy()
    names = mv.tools()
    assert len(set(names)) == 2
    got = routes(mv, names)
    assert got == {"a": ["b__c"], "a__b": ["c"]}


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_042_an_unknown_tool_is_invalid_params(each, upstream):
    """Over HTTP a modern name that is no text is a header fault first, by the order of
    checks; test_o_042_unknown_tools has the statuses."""
    mv = each(alpha={"era": upstream, "tools": ["echo"]})
    mv.tools()
    for params in ('{"name":"alpha__nope"}', '{"name":"nope"}', '{"name":"__"}',
                   '{"name":"alpha__"}', '{"name":""}', '{"name":7}', "{}", '{"name":null}',
                   '{"name":"echo"}', '{"name":"ALPHA__ECHO"}', '{"name":"alpha__echo "}'):
        got = mv.ask("tools/call", params)
        allowed = (-32602, -32020) if mv.is_http and mv.is_modern else (-32602,)
        assert got.code in allowed, (params, got)
        if "nope" in params:
            assert got.code == -32602 and "Unknown tool: " in got.error["message"]
    assert mv["alpha"].inputs("tools/call") == []


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_042_two_unknown_tools_of_upstreams_say_32601(each, upstream):
    mv = each(alpha={"era": upstream, "tools": ["echo", "odd"],
                     "calls": {"odd": [["error", -32601, "Method not found"]]}})
    assert mv.call("alpha__odd", {}).code == -32602


def test_o_043_unknown_methods(each):
    mv = each(alpha={"tools": ["echo"]})
    assert mv.ask("foo/bar").code == -32601
    assert mv.ask("tools/cal", {"name": "alpha__echo"}).code == -32601
    mv.c.notify("notifications/foo")
    mv.fence()
    assert mv.notices() == [] and "foo" not in b"".join(
        r.raw for r in mv["alpha"].inputs()).decode()


def test_names_that_nobody_offers_any_more_are_forgotten_beyond_a_bound(serve):
    plain = {"mcpvisor": {"prefix": ""}}
    mv = serve(alpha={"tools": ["x", "echo"], **plain}, beta={"tools": ["echo"], **plain})
    mv.legacy()
    assert mv.tools() == ["x", "echo", "beta__echo"]

    def change(name, tools):
        mv[name].run(["set", "tools", tools], ["changed", "tools"])
        mv.notice("notifications/tools/list_changed")
        return mv.tools()

    # Once gone, a name is kept for whoever had it ...
    change("alpha", ["echo"])
    assert "beta__x" in change("beta", ["echo", "x"])
    change("beta", ["echo"])
    # ... but not for ever by one that invents names.
    for k in range(2):
        change("alpha", ["echo"] + ["n%d_%d" % (k, i) for i in range(3000)])
    change("alpha", ["echo"])
    assert "x" in change("beta", ["echo", "x"])
