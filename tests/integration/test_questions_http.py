# SPDX-License-Identifier: MIT
"""What upstreams ask of clients over HTTP: each hears of its own, and of nothing else."""
import threading

import pytest

from asking import CAPS, MODERN_CAPS, asking, come_back, modern_asking, reply
from mcp import wait_for

ACCEPT = {"action": "accept", "content": {"x": 1}}


def legacy(mv, **kw):
    c = mv.client()
    c.legacy(capabilities=CAPS, **kw)
    return c


def next_request(answer, method="elicitation/create"):
    asked = answer.next()
    while asked is not None and "id" not in asked.msg:
        asked = answer.next()
    assert asked.msg["method"] == method, asked
    return asked


def marked(mv):
    """One that has asked, and whose successor for all has taken its place."""
    c = legacy(mv)
    got = ask_legacy(c, {"first": 1})
    assert got["params"]["_meta"] == {"args": {"first": 1}}
    wait_for(lambda: len(mv["alpha"].starts()) >= 2, 5, "one that cannot ask")
    return c


def ask_legacy(c, args):
    """A whole call; the params that were asked and the result."""
    answer = c.start_call("alpha__ask", args)
    asked = next_request(answer)
    reply(c, asked, {"action": "accept", "content": args})
    return {"params": asked.params, "result": answer.result}


def ask_modern(c, args):
    got = c.call("alpha__ask", args, meta=MODERN_CAPS).result
    (key, request), = got["inputRequests"].items()
    done = come_back(c, got, {key: {"action": "accept", "content": args}}, args=args)
    return {"params": request["params"], "result": done.result}


ASKERS = {"legacy": (legacy, ask_legacy), "modern": (lambda mv: mv.modern(), ask_modern)}


# ---- the four pairs ----

@pytest.mark.parametrize("era", list(ASKERS))
def test_legacy_upstream(serve_http, era):
    mv = serve_http(alpha=asking())
    client, ask = ASKERS[era]
    c = client(mv)
    for n in range(3):  # the second one is at an instance of its own
        got = ask(c, {"n": n})
        assert got["params"]["_meta"] == {"args": {"n": n}}
        assert got["result"]["structuredContent"]["result"]["content"] == {"n": n}


def test_legacy_client_modern_upstream(serve_http):
    mv = serve_http(alpha=modern_asking())
    c = legacy(mv)
    answer = c.start_call("alpha__ask", {"n": 1})
    reply(c, next_request(answer), ACCEPT)
    sent = answer.result["structuredContent"]
    assert sent["inputResponses"] == {"who": ACCEPT} and sent["requestState"] == "s-1"


def test_modern_client_modern_upstream(serve_http):
    mv = serve_http(alpha=modern_asking())
    c = mv.modern()
    got = c.call("alpha__ask", {"n": 1}, meta=MODERN_CAPS).result
    sent = come_back(c, got, {"who": ACCEPT}, args={"n": 1}).result["structuredContent"]
    assert sent["inputResponses"] == {"who": ACCEPT} and sent["requestState"] == "s-1"


# ---- many clients ----

def all_at_once(mv, n=4, rounds=3):
    """n clients of each era, whose questions, answers and log messages are their own."""
    problems = []

    def run(era, number):
        try:
            client, ask = ASKERS[era]
            c = client(mv)
            for i in range(rounds):
                args = {"era": era, "number": number, "round": i}
                got = ask(c, args)
                assert got["params"]["_meta"] == {"args": args}, got
                assert got["result"]["structuredContent"]["result"]["content"] == args, got
        except BaseException as e:  # told by the test's own thread
            problems.append(repr(e)[:800])

    threads = [threading.Thread(target=run, args=(era, k)) for era in ASKERS for k in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not problems, problems[:3]


def test_many_clients_of_one_that_is_known_to_ask(serve_http):
    mv = serve_http(alpha=asking())
    marked(mv)
    all_at_once(mv)


def test_log_messages_of_one_that_asks_are_their_clients_own(serve_http):
    mv = serve_http(alpha=asking(before=[
        ["notify", "notifications/message", '{"level":"error","data":${ARGS}}']]))
    marked(mv)
    a, b = legacy(mv), legacy(mv)
    calls = [(c, c.start_call("alpha__ask", {"who": n})) for c, n in ((a, "a"), (b, "b"))]
    for (c, answer), n in zip(calls, "ab"):
        asked = next_request(answer)
        assert asked.params["_meta"] == {"args": {"who": n}}
        assert answer.notices[0].params == {"level": "error", "data": {"who": n}}
        assert len(answer.notices) == 2
    for (c, answer), n in zip(calls, "ab"):
        reply(c, answer.notices[1], {"action": "accept", "content": {"who": n}})
        assert answer.result["structuredContent"]["result"]["content"] == {"who": n}


def test_a_first_question_that_may_be_anybodys(serve_http, tmp_path):
    """It waits until one client is left, and is that one's."""
    go = tmp_path / "go"
    mv = serve_http(alpha=asking(calls={"echo": [["file", str(go)], ["reply", {"content": []}]]}))
    a, b = legacy(mv), legacy(mv)
    other = b.start_call("alpha__echo", {})
    mv["alpha"].wait_input("tools/call")
    mine = a.start_call("alpha__ask", {"who": "a"})
    wait_for(lambda: any(b"q-" in r.raw for r in mv["alpha"].records("O")), 5, "it asks")
    mine.quiet(200)
    go.touch()
    assert other.result == {"content": []} and other.notices == []
    reply(a, next_request(mine), ACCEPT)
    assert mine.result["structuredContent"]["result"] == ACCEPT


def test_another_clients_answer_is_none(serve_http):
    mv = serve_http(alpha=asking())
    marked(mv)
    a, b = legacy(mv), legacy(mv)
    mine = a.start_call("alpha__ask", {"who": "a"})
    asked = next_request(mine)
    b.tools()
    reply(b, asked, {"action": "accept", "content": {"from": "b"}})
    mine.quiet(100)
    reply(a, asked, {"action": "accept", "content": {"from": "a"}})
    assert mine.result["structuredContent"]["result"]["content"] == {"from": "a"}


def test_another_clients_handle_is_for_the_same_call_only(serve_http):
    mv = serve_http(alpha=asking())
    c = mv.modern()
    got = c.call("alpha__ask", {"n": 1}, meta=MODERN_CAPS).result
    assert come_back(c, got, {}, args={"n": 2}).code == -32602
    assert come_back(c, got, {}, name="alpha__log", args={"n": 1}).code == -32602
    forged = dict(got, requestState=got["requestState"][:-2] + "AA")
    if forged["requestState"] != got["requestState"]:
        assert come_back(c, forged, {}, args={"n": 1}).code == -32602
    assert len(mv["alpha"].inputs("tools/call")) == 1
    (key, _), = got["inputRequests"].items()
    assert come_back(c, got, {key: ACCEPT}, args={"n": 1}).result["structuredContent"]


def test_the_mark_survives_a_restart(serve_http, tmp_path):
    mv = serve_http(alpha=asking(), state=str(tmp_path / "state"))
    marked(mv)
    before = len(mv["alpha"].inputs("initialize"))
    mv.restart()
    a, b = legacy(mv), legacy(mv)
    calls = [(c, c.start_call("alpha__ask", {"who": n})) for c, n in ((a, "a"), (b, "b"))]
    for (c, answer), n in zip(calls, "ab"):
        asked = next_request(answer)
        assert asked.params["_meta"] == {"args": {"who": n}}
        reply(c, asked, ACCEPT)
        assert answer.result["structuredContent"]["result"] == ACCEPT
    wait_for(lambda: len(mv["alpha"].inputs("initialize")) >= before + 3, 5, "the shared one")
    told = [r.msg["params"]["capabilities"] for r in mv["alpha"].inputs("initialize")[before:]]
    assert {} in told
    assert all(set(t) <= set(CAPS) for t in told)


def test_a_parked_call_and_a_restart(serve_http):
    mv = serve_http(alpha=asking())
    c = mv.modern()
    got = c.call("alpha__ask", {"n": 1}, meta=MODERN_CAPS).result
    mv.restart()
    done = come_back(c, got, {"input-1": ACCEPT}, args={"n": 1})
    assert "result" in done.msg and done.result["isError"] is True or done.code == -32602
    assert mv["alpha"].inputs("tools/call")[1:] == []


# ---- capabilities ----

def test_a_modern_client_without_the_capability(serve_http):
    mv = serve_http(alpha=asking())
    c = mv.modern()
    answer = c.start_call("alpha__ask", {})
    assert answer.fault() == (400, -32021)
    assert answer.message().error["data"] == {
        "requiredCapabilities": {"elicitation": {"form": {}}}}
    mv["alpha"].wait_input("notifications/cancelled")


def test_a_legacy_client_without_the_capability(serve_http):
    mv = serve_http(alpha=asking())
    c = mv.legacy()
    got = c.call("alpha__ask", {}).result["structuredContent"]
    assert got["error"]["code"] == -32601


# ---- streams ----

def test_the_close_of_what_was_answered_cancels_nothing(serve_http):
    mv = serve_http(alpha=asking())
    c = mv.modern()
    wire = c.wire()
    got = c.start_call("alpha__ask", {}, meta=MODERN_CAPS, wire=wire).message().result
    wire.close()
    (key, _), = got["inputRequests"].items()
    done = come_back(c, got, {key: ACCEPT}, args={}).result
    assert done["structuredContent"]["result"] == ACCEPT
    assert mv["alpha"].inputs("notifications/cancelled") == []


def test_the_close_of_the_retry_cancels(serve_http):
    mv = serve_http(alpha=asking(after=[["gate", "never"]]))
    c = mv.modern()
    got = c.call("alpha__ask", {}, meta=MODERN_CAPS).result
    (key, _), = got["inputRequests"].items()
    wire = c.wire()
    c.send("tools/call", {"name": "alpha__ask", "arguments": {}, "inputResponses": {key: ACCEPT},
                          "requestState": got["requestState"]}, meta=MODERN_CAPS, wire=wire)
    wait_for(lambda: [r for r in mv["alpha"].inputs() if "method" not in r.msg], 5, "the answer")
    wire.close()
    mv["alpha"].wait_input("notifications/cancelled")


def test_a_session_that_ends_takes_its_question_along(serve_http):
    mv = serve_http(alpha=asking())
    marked(mv)
    a = legacy(mv)
    answer = a.start_call("alpha__ask", {})
    next_request(answer)
    starts = len(mv["alpha"].starts())
    assert a.delete().status == 204
    b = legacy(mv)
    assert ask_legacy(b, {"n": 1})["result"]["structuredContent"]["result"]
    assert len(mv["alpha"].starts()) == starts + 1


# ---- URLs ----

def test_word_of_a_url_reaches_whom_was_sent_there(serve_http):
    mv = serve_http(alpha={"tools": ["echo"], "calls": {"echo": [
        ["error", -32042, "log in", {"elicitations": [
            {"mode": "url", "elicitationId": "e-1", "message": "m",
             "url": "https://example.com/"}]}]]}})
    a, b = legacy(mv), legacy(mv)
    streams = [c.get() for c in (a, b)]
    assert all(s.is_stream for s in streams)
    b.tools()
    assert a.call("alpha__echo", {}).code == -32042
    mv["alpha"].run(["notify", "notifications/elicitation/complete", '{"elicitationId":"e-1"}'])
    assert streams[0].next().params == {"elicitationId": "e-1"}
    streams[1].quiet(150)


def test_a_session_with_an_open_question_does_not_survive_a_restart(serve_http, tmp_path):
    mv = serve_http(alpha=asking(), state=str(tmp_path / "state"))
    a, b = legacy(mv), legacy(mv)
    b.tools()
    next_request(a.start_call("alpha__ask", {}))
    mv.restart()
    assert (a.send("ping").status, b.send("ping").status) == (404, 200)
