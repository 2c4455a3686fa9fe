# SPDX-License-Identifier: MIT
"""Results that hold an answer of GraphQL: what clients get, byte for byte."""
import json

import jsonschema
import pytest

import label_cases as cases
import remote_server
from label_cases import CASES, E, N, P, PLAIN, failed, partial, result, seen, warned
from mcp import wait_for
from test_http_resume import cut, resume, start

ERAS = ["legacy", "modern"]
ONE = {"text": CASES["text"], "null": CASES["null"]}


def check_all(w, names, era, prefix="alpha__", table=None):
    table = CASES if table is None else table
    got = {n: w.call(prefix + n, {}).span("result") for n in names}
    assert got == {n: seen(table[n], era, w.is_modern) for n in names}


# -- every way ---------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_every_outcome_every_way(each, era):
    w = each(alpha=cases.upstream(era=era))
    check_all(w, CASES, era)


@pytest.mark.parametrize("streams", [False, True], ids=["json", "streams"])
@pytest.mark.parametrize("era", ERAS)
def test_results_of_a_remote(each, remote, era, streams):
    names = ["text", "both", "closed", "failed", "flag", "said", "clean", "bare"]
    tools = [{"name": n, **CASES[n][0]} for n in names]
    s = remote(era, streams, tools=tools)
    message = '{"jsonrpc":"2.0","id":%s,"result":%s}'

    def odd(h, r):
        if r.rpc != "tools/call":
            return False
        raw = message % (json.dumps(r.msg["id"]),
                         cases.from_upstream(CASES[r.params["name"]][1], era))
        if streams:
            remote_server.begin_stream(h)
            remote_server.event(h, raw)
        else:
            remote_server.reply(h, 200, "application/json", raw.encode())
        return True

    s.odd = odd
    w = each(alpha={"url": s.url})
    check_all(w, names, era)


@pytest.mark.parametrize("era", ERAS)
def test_processes_of_their_own(serve_conf, era):
    mv = serve_conf(alpha=cases.upstream(ONE, era), per={"alpha": {"isolation": "session"}})
    for c in [mv.legacy() for _ in range(3)]:
        for n in ONE:
            assert c.call("alpha__" + n, {}).span("result") == seen(CASES[n], era, False)
    assert len({r.pid for r in mv["alpha"].inputs("tools/call")}) == 3
    calls = mv.upstream_status("alpha")["calls"]
    assert calls["labels"]["partial"] == calls["labels"]["error"] == 3
    assert calls["tool"] == {"ok": 3, "is_error": 3} and calls["answer"]["partial"] == 3


BATCHED = [("text", "a"), ("null", 7), ("closed", "7"), ("said", -1), ("clean", "x")]


def batch():
    return [{"jsonrpc": "2.0", "id": key, "method": "tools/call",
             "params": {"name": "alpha__" + n, "arguments": {}}} for n, key in BATCHED]


def check_batch(message, era):
    assert {type(m["id"]).__name__ + str(m["id"]): m["result"] for m in message.msg} == {
        type(key).__name__ + str(key): json.loads(seen(CASES[n], era, False))
        for n, key in BATCHED}
    for n, _ in BATCHED:
        assert seen(CASES[n], era, False) in message.raw


@pytest.mark.parametrize("era", ERAS)
def test_a_batch(serve, era):
    mv = serve(alpha=cases.upstream(era=era))
    mv.legacy("2025-03-26")
    mv.line(json.dumps(batch()))
    check_batch(mv.take(lambda m: isinstance(m.msg, list), what="an array"), era)


@pytest.mark.parametrize("era", ERAS)
def test_a_batch_over_http(serve_http, era):
    mv = serve_http(alpha=cases.upstream(era=era))
    check_batch(mv.legacy("2025-03-26").post(batch()).message(), era)


def test_labelled_results_are_what_the_tools_promise(serve):
    mv = serve(alpha=cases.upstream())
    mv.modern()
    for n, (tool, *_) in CASES.items():
        got = mv.call("alpha__" + n, {}).result
        if "structuredContent" in got and not got.get("isError"):
            jsonschema.validate(got["structuredContent"], tool.get("outputSchema", {}))


# -- streams -----------------------------------------------------------------------------

AWAITED = {"calls": {
    "start": [["progress", 1], ["gate", "go"], ["reply", {"hex": CASES["both"][1].encode().hex()}]],
}}


def awaited():
    up = cases.upstream(ONE, **AWAITED)
    up["tools"].append({"name": "start", **CASES["both"][0]})
    return up


def test_on_the_stream_of_a_call(each):
    w = each(alpha=awaited())
    sent = w.start_call("alpha__start", {}, meta={"progressToken": 1})
    w["alpha"].wait_input("tools/call")
    w["alpha"].open("go")
    assert w.answer(sent).span("result") == seen(CASES["both"], "legacy", w.is_modern)


@pytest.mark.parametrize("when", ["before", "after"])
def test_on_a_stream_that_is_resumed(serve_http, when):
    mv = serve_http(alpha=awaited())
    c = mv.legacy()
    answer = start(c, id="x")
    cut(mv, answer)
    if when == "before":
        mv["alpha"].open("go")
        mv.fence("alpha")
        again = resume(c, answer.last_id)
    else:
        again = resume(c, answer.last_id)
        again.quiet(60)
        mv["alpha"].open("go")
    got = again.message()
    assert got.msg["id"] == "x" and got.span("result") == seen(CASES["both"], "legacy", False)


@pytest.mark.parametrize("era", ERAS)
def test_a_call_that_was_cancelled_has_no_outcome(serve_conf, era):
    mv = serve_conf(alpha={**awaited(), "obey_cancel": False})
    c = mv.speak(era)
    answer = c.start_call("alpha__start", {}, meta={"progressToken": 1})
    assert answer.next().params["progress"] == 1
    if era == "modern":
        answer.wire.close()
    else:
        c.cancel(c.next_id)
    wait_for(lambda: mv.upstream_status("alpha")["calls"]["transport"]["cancelled"] == 1, 5)
    mv["alpha"].open("go")
    mv.fence("alpha")
    calls = mv.upstream_status("alpha")["calls"]
    labels = calls["labels"]
    assert {k for k, v in labels.items() if v} == {"none"} and labels["none"] == 1  # the fence
    assert calls["answer"]["partial"] == 0


# -- two of us ---------------------------------------------------------------------------

# Of the inner and of the outer one; which of the two does the work.
PAIRS = [({}, {}, "full"), ({"graphql": "on"}, {}, "full"), ({}, {"graphql": "on"}, "full"),
         ({"graphql": "off"}, {"graphql": "on"}, "full"),
         ({"graphql": "on"}, {"graphql": "off"}, "full"),
         ({}, {"graphql_survival": "deep"}, "full"),
         ({"graphql_annotate": "meta"}, {}, "meta"),
         ({"graphql": "off"}, {"graphql": "off"}, "none")]


@pytest.mark.parametrize("inner,outer,who", PAIRS)
def test_a_second_one_changes_nothing(each, tmp_path, binary, inner, outer, who):
    # Without what only mode "on" has another word for.
    table = {n: c for n, c in CASES.items() if n not in ("foreign", "bare")}
    made = cases.upstream(table)
    probe = each(alpha={**made, "mcpvisor": inner})
    file = str(probe.mv.file)
    w = each(mid={"command": str(binary), "args": ["stdio", "--mcp-json", file],
                  "mcpvisor": outer})
    for n in table:
        # Of the way through: the inner one is asked by our modern side.
        once = probe.call("alpha__" + n, {}).span("result")
        twice = w.call("mid__alpha__" + n, {}).span("result")
        want = seen(table[n], "modern", True)
        if who == "full":
            assert twice == want, n
        if probe.is_modern:
            assert who != "meta" or once == twice, n
        if who == "none":
            assert twice == seen((PLAIN, table[n][1], None), "modern", True), n


# -- records -----------------------------------------------------------------------------


def test_o_097_partial_and_failed_answers(each):
    x = '[{"message":"x","path":["b"]}]'
    texts = {"some": '{"data":{"a":1},"errors":%s}' % x,
             "none": '{"data":{"b":null},"errors":%s}' % x,
             "null": '{"data":null,"errors":%s}' % x, "absent": '{"errors":%s}' % x,
             "empty": '{"data":{},"errors":[]}', "nulls": '{"errors":null,"data":{}}',
             "said": '{"data":{"a":1},"errors":%s}' % x}
    table = {n: (PLAIN, result([t]), None) for n, t in texts.items()}
    # What takes a document answers as GraphQL does, so that errors alone are its failure.
    table["absent"] = ({"inputSchema": {"type": "object", "properties": {
        "query": {"type": "string"}, "variables": {}}}}, result([texts["absent"]]),
        failed(result([texts["absent"]])))
    table["some"] = (PLAIN, result([texts["some"]]), partial(result([warned(texts["some"])])))
    for n in ("none", "null"):
        table[n] = (PLAIN, result([texts[n]]), failed(result([texts[n]])))
    table["said"] = (PLAIN, result([texts["said"]], None, '"isError": true,'), None)
    w = each(alpha=cases.upstream(table))
    check_all(w, table, "legacy", table=table)


def test_o_098_errors_keep_all_that_they_had(each):
    errors = ('[{"message":"one","locations":[{"line":1,"column":2}],"path":["a",0,"b",12],'
              '"extensions":{"code":"X","id":12345678901234567890}},'
              '{ "extensions" : {"n":1.50,"big":1e400}, "message" : "t\\u0077o" }]')
    answer = '{"data":{"a":[null],"n":9007199254740993},"errors":%s}' % errors
    trailing = answer + " and that was it"
    table = {"both": (cases.OPEN, result([answer], answer),
                      partial(result([warned(answer, 2)], warned(answer, 2)), 2)),
             "failed": (PLAIN, result([answer.replace("[null]", "null").replace(
                 "9007199254740993", "null")]), None),
             "trailing": (PLAIN, result([trailing]), None)}
    table["failed"] = (PLAIN, table["failed"][1], failed(table["failed"][1], 2))
    w = each(alpha=cases.upstream(table))
    check_all(w, table, "legacy", table=table)


def test_what_is_over_the_bound_is_not_looked_at(each):
    """It stays as it is; what is beside it does not suffer from that."""
    pad = '{"data":{"a":null,"b":"%s"},"errors":[%s]}'
    fits, over = pad % ("x" * 1000, E), pad % ("x" * 3000, E)
    table = {"fits": (PLAIN, result([fits]), partial(result([warned(fits)]))),
             "over": (PLAIN, result([over]), None),
             "mixed": (PLAIN, result([over, P]), partial(result([over, warned(P)]))),
             "beside": (PLAIN, result([over], N), failed(result([over, cases.FAILURE], N)))}
    w = each(alpha={**cases.upstream(table), "mcpvisor": {"graphql_max_bytes": 2000}})
    check_all(w, table, "legacy", table=table)
