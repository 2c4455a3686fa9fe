# SPDX-License-Identifier: MIT
"""Labels of results from the operator's side: options, the log, what is counted."""
import json

import pytest

import label_cases as cases
import logs
from label_cases import CASES, E, F, N, OURS, P, PLAIN, failed, partial, result, seen, warned
from mcp import wait_for
from test_control import REASONS
from test_options_log import start

ERAS = ["legacy", "modern"]
SUSPECT = "call: result looks like a failed GraphQL answer"


def call(c, name):
    return c.call("alpha__" + name, {}).span("result")


def legacy(raw):
    """What a legacy client gets of a legacy upstream."""
    return raw.encode()


def flipped(raw, rule=None, meta=""):
    """A result that a rule has hit."""
    return '%s,"isError":true,"_meta":{%s"%srule":%d}}' % (raw[:-1], meta, OURS, rule)


def labels(mv):
    return {k: v for k, v in mv.upstream_status("alpha")["calls"]["labels"].items() if v}


# -- options -----------------------------------------------------------------------------

BARE = result(['{"errors":[%s]}' % E])
WRAPPED = '{"ok":true,"response":%s}' % P
DEEP = '{"data":{"a":{"x":null}},"errors":[%s]}' % E
# Options of the upstream, options of the tool (None: no row), the result, what comes of it.
MODES = {
    "auto": ({}, None, result([P]), partial(result([warned(P)]))),
    "auto-bare": ({}, None, BARE, BARE),
    "off": ({"graphql": "off"}, None, result([P]), result([P])),
    "on": ({"graphql": "on"}, None, BARE, failed(BARE)),
    "tool-off": ({}, {"graphql": "off"}, result([P]), result([P])),
    "tool-on": ({}, {"graphql": "on"}, BARE, failed(BARE)),
    "tool-on-over-off": ({"graphql": "off"}, {"graphql": "on"}, BARE, failed(BARE)),
    "tool-auto-over-off": ({"graphql": "off"}, {"graphql": "auto"}, result([N]),
                           failed(result([N]))),
    "tool-auto-over-on": ({"graphql": "on"}, {"graphql": "auto"}, BARE, BARE),
    "tool-off-over-on": ({"graphql": "on"}, {"graphql": "off"}, BARE, BARE),
    "row-that-says-nothing": ({"graphql": "on"}, {}, BARE, failed(BARE)),
    "shallow": ({}, None, result([DEEP]), partial(result([warned(DEEP)]))),
    "deep": ({"graphql_survival": "deep"}, None, result([DEEP]), failed(result([DEEP]))),
    "tool-deep": ({}, {"graphql_survival": "deep"}, result([DEEP]), failed(result([DEEP]))),
    "tool-shallow": ({"graphql_survival": "deep"}, {"graphql_survival": "shallow"},
                     result([DEEP]), partial(result([warned(DEEP)]))),
    "root": ({"graphql": "on", "graphql_root": "/response"}, None, result([WRAPPED]),
             partial(result([WRAPPED.replace('"data"', '"_warning":%s,"data"' % (
                 cases.quoted(cases.sentence())), 1)]))),
    "tool-root": ({"graphql": "on"}, {"graphql_root": "/response"}, result([WRAPPED]),
                  partial(result([WRAPPED.replace('"data"', '"_warning":%s,"data"' % (
                      cases.quoted(cases.sentence())), 1)]))),
    "meta": ({"graphql_annotate": "meta"}, None, result([P], P), partial(result([P], P))),
    "meta-failed": ({"graphql_annotate": "meta"}, None, result([F]), failed(result([F]))),
    "tool-full": ({"graphql_annotate": "meta"}, {"graphql_annotate": "full"}, result([P]),
                  partial(result([warned(P)]))),
    "max": ({"graphql_max_bytes": 64}, None, result([P]), result([P])),
    "tool-max": ({"graphql_max_bytes": 64}, {"graphql_max_bytes": 4096}, result([P]),
                 partial(result([warned(P)]))),
}


@pytest.mark.parametrize("name", MODES)
def test_options(serve_conf, name):
    of_upstream, of_tool, said, got = MODES[name]
    options = dict(of_upstream)
    if of_tool is not None:
        options["tool"] = [{"tool": "t", **of_tool}]
    mv = serve_conf(alpha=cases.upstream({"t": (PLAIN, said, None)}), per={"alpha": options})
    assert call(mv.legacy(), "t") == legacy(got)
    # Its neighbours are others' business: an echo of nothing is never labelled.
    assert b"_meta" not in mv.modern().call("alpha__echo", {}).raw


def test_options_of_all_upstreams(serve_conf):
    table = {"t": (PLAIN, BARE, None)}
    mv = serve_conf(alpha=cases.upstream(table), beta=cases.upstream(table),
                    more='defaults : { graphql = "on"; };\n', per={"beta": {"graphql": "off"}})
    c = mv.legacy()
    assert call(c, "t") == legacy(failed(BARE))
    assert c.call("beta__t", {}).span("result") == legacy(BARE)


@pytest.mark.parametrize("option,value,word", [
    ("graphql", "maybe", "auto"), ("graphql_survival", "wide", "shallow"),
    ("graphql_annotate", "half", "full"), ("graphql_root", "response", "begin with /"),
    ("graphql_root", "/rows/0", "index"), ("graphql_max_bytes", 0, "1"),
    ("fail_if", ["/error"], "json:"), ("fail_if", ["text:("], "fail_if"),
    ("fail_if", ["json:/a=b"], "JSON")])
def test_mistakes_have_their_place(serve_conf, option, value, word):
    mv = serve_conf(start=False, alpha={"tools": ["echo"]}, per={"alpha": {option: value}})
    mv.write()
    rc, _, err = mv.run("check", "--conf", mv.file)
    assert rc != 0 and option in err and "alpha" in err and word in err, err


# -- fail_if -----------------------------------------------------------------------------

RULES = ["json:/error", "json:/ok=false", "text:^Error:", 'json:/state="bad\\u0021"']
ERROR = '{"error":"no such project"}'
OK = '{"ok":false,"n":1.0}'
HITS = {
    "error": (result([ERROR]), 1), "ok": (result([OK]), 2),
    "text": (result(["fine", "Error: it broke"]), 3), "state": (result(['{"state":"bad!"}']), 4),
    "structured": (result([], ERROR), 1), "first": (result(["Error: x", OK]), 2),
    "null": (result(['{"error":null}']), 0), "empty": (result(['{"error":{},"ok":0}']), 0),
    "true": (result(['{"ok":true}']), 0), "inside": (result(["An Error: x"]), 0),
    "string": (result(['{"ok":"false"}']), 0),
    "said": (result([ERROR], None, '"isError":true,'), 0),
}


@pytest.mark.parametrize("place", ["upstream", "tool"])
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_rules_of_failure(serve_conf, place, mode):
    table = {n: (PLAIN, said, None) for n, (said, _) in HITS.items()}
    options = {"graphql": mode, "fail_if": RULES}
    if place == "tool":
        options = {"graphql": mode, "tool": [{"tool": n, "fail_if": RULES} for n in HITS]}
    mv = serve_conf(alpha=cases.upstream(table), per={"alpha": options})
    c = mv.legacy()
    got = {n: call(c, n) for n in HITS}
    assert got == {n: legacy(flipped(said, rule) if rule else said)
                   for n, (said, rule) in HITS.items()}
    lines = {e["tool"].partition("__")[2]: e for e in logs.ended(mv, len(HITS))}
    for n, (_, rule) in HITS.items():
        want = ("1", "rule", "none") if rule else ("1", "upstream", "none") if n == "said" else (
            "0", "-", "unknown")
        assert tuple(lines[n][k] for k in ("is_err", "err_src", "ans")) == want, n
        assert (lines[n].get("gql") == "rule") == bool(rule)
    hits = sum(1 for _, rule in HITS.values() if rule)
    assert labels(mv)["rule"] == hits
    assert mv.upstream_status("alpha")["calls"]["tool"] == {
        "ok": len(HITS) - hits - 1, "is_error": hits + 1}
    assert mv.status()["counters"]["mcpvisor_results_flipped_total"] == hits


def test_rules_of_a_tool_are_in_place_of_its_upstreams(serve_conf):
    table = {n: (PLAIN, result([ERROR]), None) for n in ("a", "b")}
    mv = serve_conf(alpha=cases.upstream(table), per={"alpha": {
        "fail_if": ["json:/error"], "tool": [{"tool": "b", "fail_if": ["json:/fault"]}]}})
    c = mv.legacy()
    assert call(c, "a") == legacy(flipped(result([ERROR]), 1))
    assert call(c, "b") == legacy(result([ERROR]))


def test_a_rule_hits_a_partial_answer_too(serve_conf):
    table = {"t": (PLAIN, result([P]), None), "f": (PLAIN, result([N]), None)}
    mv = serve_conf(alpha=cases.upstream(table), per={"alpha": {
        "fail_if": ["json:/none", "json:/errors"]}})
    c = mv.legacy()
    ours = '"%sgraphql":{"outcome":"partial","errors":1},' % OURS
    assert call(c, "t") == legacy(flipped(result([warned(P)]), 2, ours))
    assert call(c, "f") == legacy(failed(result([N])))
    lines = logs.ended(mv, 2)
    assert [(e["is_err"], e["err_src"], e["ans"], e["gql"]) for e in lines] == [
        ("1", "rule", "none", "rule"), ("1", "graphql", "none", "error")]


# -- the log -----------------------------------------------------------------------------

# What a line says of each outcome: is_err, err_src, ans, gql and what is behind it.
FOUND = {"gql_n": "1", "gql_code": "FORBIDDEN", "gql_path": "a"}
SAYS = {
    "partial": ("0", "-", "partial", {"gql": "partial", **FOUND}),
    "error": ("1", "graphql", "none", {"gql": "error", **FOUND}),
    "clean": ("0", "-", "full", {"gql": "clean"}),
    "suspect": ("0", "-", "unknown", {"gql": "suspect"}),
    "upstream_error": ("1", "upstream", "none", {}),
    "none": ("0", "-", "unknown", {}),
}


@pytest.mark.parametrize("era", ERAS)
def test_the_line_of_each_call(serve_conf, era):
    table = {n: c for n, c in CASES.items() if n not in ("fenced", "two")}
    mv = serve_conf(alpha=cases.upstream(table))
    c = mv.speak(era)
    sizes = {n: len(c.call("alpha__" + n, {}).span("result")) for n in table}
    lines = {e["tool"].partition("__")[2]: e for e in logs.ended(mv, len(table))}
    for n, case in table.items():
        e, (is_err, src, ans, more) = lines[n], SAYS[case[3]]
        assert (e["end"], e["ok"], e["is_err"], e["err_src"], e["ans"]) == (
            "returned", "1", is_err, src, ans), (n, e)
        assert {k: v for k, v in e.items() if k in logs.FOUND} == more, (n, e)
        assert int(e["out"]) == sizes[n]
        assert int(e["added"]) == sizes[n] - len(case[1].encode()), n


def test_what_errors_say_of_themselves(serve_conf):
    """Codes by any of their names, paths of every kind, and nobody's own lines."""
    hostile = 'x" is_err=0\r\n2026-01-01T00:00:00.000Z error serve: forged\x1b[31m'
    many = ["p%d" % i for i in range(12)]
    errors = {
        "extension": ({"extensions": {"code": "A"}}, {"gql_code": "A"}),
        "number": ({"extensions": {"code": 401}}, {"gql_code": "401"}),
        "errorType": ({"errorType": "Unauthorized"}, {"gql_code": "Unauthorized"}),
        "type": ({"type": "NOT_FOUND", "path": ["u", 3, "n"]},
                 {"gql_code": "NOT_FOUND", "gql_path": "u.3.n"}),
        "long": ({"path": many}, {"gql_path": ".".join(many[:8])}),
        "nothing": ({"path": None}, {}),
    }
    table = {n: (PLAIN, result([json.dumps({"data": None, "errors": [{"message": "x", **e}]})]),
                 None) for n, (e, _) in errors.items()}
    table["hostile"] = (PLAIN, result([json.dumps({"data": None, "errors": [
        {"message": hostile, "extensions": {"code": hostile}, "path": [hostile]}]})]), None)
    mv = serve_conf(alpha=cases.upstream(table))
    c = mv.legacy()
    for n in table:
        assert c.call("alpha__" + n, {}).result["isError"] is True
    lines = {e["tool"].partition("__")[2]: e for e in logs.ended(mv, len(table))}
    for n, (_, want) in errors.items():
        got = {k: v for k, v in lines[n].items() if k in ("gql_code", "gql_path")}
        assert got == want, n
    assert lines["hostile"]["is_err"] == "1"
    assert lines["hostile"]["gql_code"].startswith('x" is_err=0  2026-01-01')
    assert not any(line.startswith(b"2026-01-01T00:00:00") for line in mv.log_lines)
    for raw in mv.log_lines:
        logs.parse_text(raw)


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_a_suspect_in_every_form(serve_conf, form):
    mv = start(serve_conf, form, alpha=cases.upstream())
    mv.modern().call("alpha__bare", {}).result
    wait_for(lambda: any(SUSPECT[6:].encode() in raw for raw in mv.log_lines), 5, "it is told")
    told = [logs.PARSE[form](raw) for raw in mv.log_lines if SUSPECT[6:].encode() in raw]
    assert len(told) == 1 and told[0]["tool"] == "alpha__bare", told
    assert 'graphql = "on"' in told[0]["hint"]


def test_a_suspect_is_told_once_a_tool(serve_conf):
    mv = serve_conf(alpha=cases.upstream(), beta=cases.upstream({"bare": CASES["bare"]}),
                    log_level="notice")
    for c in (mv.legacy(), mv.modern()):
        for _ in range(3):
            for name in ("alpha__bare", "alpha__foreign", "beta__bare", "alpha__clean"):
                c.call(name, {}).result
    wait_for(lambda: mv.log().count(SUSPECT) >= 3, 5, "they are told")
    told = [logs.parse_text(r) for r in mv.log_lines if SUSPECT.encode() in r]
    assert [(e["upstream"], e["tool"]) for e in told] == [
        ("alpha", "alpha__bare"), ("alpha", "alpha__foreign"), ("beta", "beta__bare")]
    assert all('graphql = "on"' in e["hint"] for e in told), told
    assert labels(mv) == {"suspect": 12, "clean": 6}
    assert mv.status()["counters"]["mcpvisor_calls_suspect_total"] == 18
    # Nor again because of a reload.
    mv.per["alpha"]["call_ms"] = 50000
    mv.reload()
    mv.legacy().call("alpha__bare", {}).result
    assert mv.log().count(SUSPECT) == 3


# -- status ------------------------------------------------------------------------------


@pytest.mark.parametrize("upstream", ERAS)
@pytest.mark.parametrize("era", ERAS)
def test_calls_are_counted_on_three_axes(serve_conf, era, upstream):
    mv = serve_conf(alpha=cases.upstream(era=upstream), beta={"tools": ["echo"]})
    c = mv.speak(era)
    added = 0
    for n, case in CASES.items():
        got = c.call("alpha__" + n, {}).span("result")
        added += len(got) - len(seen((case[0], case[1], None), upstream, era == "modern"))
    outcomes = [case[3] for case in CASES.values()]
    want = {r: outcomes.count(r) for r in REASONS}
    status = mv.status()
    alpha, beta = status["upstreams"]
    calls = alpha["calls"]
    n_errors = want["error"] + want["upstream_error"]
    assert calls["labels"] == want
    assert calls["transport"]["returned"] == len(CASES) and calls["transport"]["failed"] == 0
    assert calls["tool"] == {"ok": len(CASES) - n_errors, "is_error": n_errors}
    assert calls["answer"] == {
        "full": want["clean"], "partial": want["partial"], "null_identity": 0,
        "unknown": want["none"] + want["suspect"]}
    assert set(beta["calls"]["labels"].values()) == {0}
    counters = status["counters"]
    assert counters["mcpvisor_calls_tool_error_total"] == n_errors
    assert counters["mcpvisor_calls_partial_total"] == want["partial"]
    assert counters["mcpvisor_calls_suspect_total"] == want["suspect"]
    assert counters["mcpvisor_results_flipped_total"] == want["error"]
    assert counters["mcpvisor_results_added_bytes_total"] == added


def test_the_table_has_them(serve_conf):
    mv = serve_conf(alpha=cases.upstream(), beta={"tools": ["echo"]})
    c = mv.modern()
    for n, times in (("text", 3), ("null", 2), ("bare", 4), ("said", 1), ("clean", 1)):
        for _ in range(times):
            c.call("alpha__" + n, {}).result
    lines = mv.control("status")[1].splitlines()
    head = next(i for i, x in enumerate(lines) if x.startswith("UPSTREAM"))
    rows = {}
    for line in lines[head + 1:]:
        # Each number ends under the end of its title.
        rows[line.split()[0]] = {title: line[:lines[head].index(title) + len(title)].split()[-1]
                                 for title in lines[head].split() if title != "REASON"}
    columns = ("CALLS", "FAILED", "ERRORS", "PARTIAL", "SUSPECT", "NO-ID")
    assert [rows["alpha"][k] for k in columns] == ["11", "0", "3", "3", "4", "0"]
    assert [rows["beta"][k] for k in columns] == ["0"] * 6


# -- reload, the command line --------------------------------------------------------------


def test_a_reload_changes_the_mode_and_nothing_else(serve_conf):
    mv = serve_conf(alpha=cases.upstream({"t": (PLAIN, BARE, None), "p": CASES["text"]}),
                    per={"alpha": {"graphql": "off"}})
    c = mv.legacy()
    both = {"t": BARE, "p": CASES["text"][1]}
    steps = [
        ({"graphql": "off"}, both), ({"graphql": "auto"}, {**both, "p": CASES["text"][2]}),
        ({"graphql": "on"}, {"t": failed(BARE), "p": CASES["text"][2]}),
        ({"graphql": "on", "tool": [{"tool": "t", "graphql": "off"}]},
         {**both, "p": CASES["text"][2]}),
        ({"graphql": "on", "graphql_annotate": "meta"},
         {"t": failed(BARE), "p": partial(both["p"])}),
        ({"graphql": "off", "fail_if": ["json:/errors"]},
         {n: flipped(raw, 1) for n, raw in both.items()}),
        ({"graphql": "off"}, both)]
    for n, (options, want) in enumerate(steps):
        mv.per["alpha"] = options
        if n > 0:
            said = mv.reload()
            assert "alpha" in said
        assert {name: call(c, name) for name in want} == {
            name: legacy(raw) for name, raw in want.items()}, options
    assert len(mv["alpha"].starts()) == 1 and mv.status()["reloads"] == len(steps) - 1


CHANGES = {
    "row": ({"tool": [{"tool": "t", "graphql": "on"}]},
            {"tool": [{"tool": "t", "graphql": "off", "fail_if": ["text:errors"]}]}),
    "no-row": ({"tool": [{"tool": "t", "graphql": "on"}]}, {"fail_if": ["text:errors"]}),
    "new-row": ({}, {"tool": [{"tool": "t", "graphql": "off", "fail_if": ["text:errors"]}]}),
    "hidden": ({"tool": [{"tool": "t", "graphql": "on"}]},
               {"fail_if": ["text:errors"], "tools": {"deny": ["t"]}}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_reload_in_the_middle_of_a_call(serve_conf, name):
    """What is in force when the result comes is what counts."""
    before, after = CHANGES[name]
    up = cases.upstream({"t": (PLAIN, BARE, None)})
    up["calls"]["t"].insert(0, ["gate", "go"])
    mv = serve_conf(alpha=up, per={"alpha": before})
    c = mv.legacy()
    answer = c.start_call("alpha__t", {})
    mv["alpha"].wait_input("tools/call")
    mv.per["alpha"] = after
    mv.reload()
    mv["alpha"].open("go")
    assert answer.message().span("result") == legacy(flipped(BARE, 1))
    assert len(mv["alpha"].starts()) == 1


def test_an_upstream_that_is_removed_in_the_middle_of_a_call(serve_conf):
    up = cases.upstream({"t": CASES["text"]})
    up["calls"]["t"].insert(0, ["gate", "go"])
    mv = serve_conf(alpha=up, beta={"tools": ["echo"]},
                    per={"alpha": {"tool": [{"tool": "t", "graphql": "on"}]}})
    c = mv.legacy()
    answer = c.start_call("alpha__t", {})
    mv["alpha"].wait_input("tools/call")
    mv.remove("alpha")
    mv.reload()
    mv["alpha"].open("go")
    # It is let finish; without its definition nothing is known of what it hands through.
    assert answer.message().span("result") == legacy(CASES["text"][1])


def test_the_command_line_says_so(serve_conf):
    mv = serve_conf(alpha=cases.upstream())
    assert cases.sentence() in mv.control("call", "alpha__prose")[1]
    assert '"data":null' in mv.control("call", "alpha__null", check=1)[1]
    assert mv.control("call", "alpha__clean")[1] == cases.CLEAN + "\n"
