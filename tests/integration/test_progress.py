# SPDX-License-Identifier: MIT
"""Progress: the client's own token comes back, before the result, in time."""
import pytest

from mcp import PATIENCE

NOTE = "notifications/progress"
STEPS = [["progress", 1], ["progress", 2.5], ["reply", {"content": []}]]


def report(era="legacy", steps=None, **more):
    return {"era": era, "tools": ["echo", "work"], "calls": {"work": steps or STEPS}, **more}


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_018_every_token_comes_back_as_it_was(each, upstream):
    mv = each(alpha=report(upstream))
    for token in (0, 7, "7", "", -1, 9007199254740993, "é\"\n", "x" * 200):
        before = len(mv.notices(NOTE))
        answer = mv.call("alpha__work", {}, meta={"progressToken": token})
        assert answer.result["content"] == []
        notes = mv.notices(NOTE)[before:]
        assert [n.params["progress"] for n in notes] == [1, 2.5]
        for note in notes:
            got = note.params["progressToken"]
            assert got == token and type(got) is type(token) and note.at <= answer.at
    sent = [r.msg["params"]["_meta"]["progressToken"]
            for r in mv["alpha"].inputs("tools/call")]
    assert len(set(map(repr, sent))) == len(sent)


def test_the_rest_of_a_notice_is_the_upstreams(serve):
    raw = '{"progress":0.50,"progressToken":${TOKEN},"total":1.0,"message":"\\u00e9","x":[1e2]}'
    mv = serve(alpha=report(steps=[["notify", NOTE, raw], ["reply", {"content": []}]]))
    mv.legacy()
    mv.start_call("alpha__work", {}, meta={"progressToken": "tok"})
    got = mv.notice(NOTE).span("params").decode()
    assert got == raw.replace("${TOKEN}", '"tok"')


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_019_progress_that_nobody_asked_for(each, upstream):
    mv = each(alpha=report(upstream, steps=[["progress", 1, '"x"'], ["progress", 2, "5"],
                                            ["reply", {"content": []}]]))
    assert mv.call("alpha__work", {}).result["content"] == []
    mv.fence("alpha")
    assert mv.notices() == []


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_019_a_token_that_the_upstream_invented(each, upstream):
    mv = each(alpha=report(upstream, steps=[
        ["progress", 1, '"tool-call-5"'], ["progress", 2, '"mine"'], ["progress", 3, '"5"'],
        ["reply", {"content": []}]]))
    for token in (5, "mine"):
        assert mv.call("alpha__work", {}, meta={"progressToken": token}).result
    mv.fence("alpha")
    assert mv.notices() == []


def test_progress_after_the_result_is_dropped(serve):
    mv = serve(alpha=report(steps=[["reply", {"content": []}], ["progress", 1]]))
    mv.legacy()
    mv.call("alpha__work", {}, meta={"progressToken": "t"}).result
    mv.fence("alpha")
    assert mv.notices() == []


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_o_076_notices_are_passed_on_at_once(serve, era):
    """Over HTTP: test_o_076_each_notice_is_sent_at_once."""
    steps = [s for n in range(5) for s in (["sleep", 30], ["progress", n])]
    mv = serve(alpha=report(steps=[*steps, ["reply", {"content": []}]]))
    mv.speak(era).call("alpha__work", {}, meta={"progressToken": 1}).result
    sent = [r.at for r in mv["alpha"].records("O") if b"progress" in r.raw]
    seen = [m.at for m in mv.notices(NOTE)]
    assert len(sent) == len(seen) == 5
    assert all(0 < b - a < 100e6 * PATIENCE for a, b in zip(sent, seen))


def test_progress_of_prompts_resources_and_completions(serve):
    work = [["progress", 1], ["default"]]
    mv = serve(alpha={"prompts": ["p"], "resources": ["m:1"], "texts": {"m:1": "x"},
                      "on": {"prompts/get": work, "resources/read": work}})
    mv.legacy()
    for method, params in (("prompts/get", {"name": "alpha__p"}),
                           ("resources/read", {"uri": "m:1"})):
        mv.ask(method, {**params, "_meta": {"progressToken": method}}).result
        assert mv.notice(NOTE).params["progressToken"] == method


def test_two_calls_two_upstreams_one_looks_like_the_other(serve):
    hold = [["gate", "go"], ["progress", 1], ["reply", {"content": []}]]
    mv = serve(alpha=report(steps=hold), beta=report(steps=hold))
    mv.legacy()
    keys = [mv.start_call(u + "__work", {}, meta={"progressToken": t})
            for u, t in (("alpha", 1), ("beta", "1"))]
    for u in ("beta", "alpha"):
        mv[u].wait_input("tools/call")
        mv[u].open("go")
        assert mv.notice(NOTE).params["progressToken"] == {"alpha": 1, "beta": "1"}[u]
    for k in keys:
        mv.answer(k).result


@pytest.mark.parametrize("token", ["null", "{}", "1.5", "true"])
def test_a_token_of_the_wrong_kind(serve, token):
    mv = serve(alpha=report())
    mv.legacy()
    got = mv.ask("tools/call", '{"name":"alpha__work","_meta":{"progressToken":%s}}' % token)
    # Either refused, or served without progress; never passed on as a token.
    assert got.code == -32602 if "error" in got.msg else got.result == {"content": []}
    assert mv.notices() == []
