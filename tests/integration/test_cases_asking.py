# SPDX-License-Identifier: MIT
"""Records of the collected reports that are about what upstreams ask of clients."""
import json
import time

import pytest

from asking import CAPS, MODERN_CAPS, asking, come_back, reply
from mcp import META, wait_for
from remote_server import result
from test_cases_remote import calls_of, say
from test_questions_http import legacy, marked, next_request

PARAMS = '{"message":"m","requestedSchema":{"type":"object","properties":{}},' \
         '"_meta":{"args":${ARGS}}}'


def accept(n):
    return {"action": "accept", "content": {"who": n}}


def responses(up):
    return [r.msg for r in up.inputs() if "method" not in r.msg]


# -- whose question it is ----------------------------------------------------------------


def two_that_ask(go):
    """Tools ask1 and ask2, whose questions have the ids 1 and 2 of the upstream's own; they
    ask when both are called."""
    def ask(n):
        return [["file", str(go)], ["request", n, "elicitation/create", PARAMS],
                ["expect", n, 20000],
                ["reply", '{"content":[],"structuredContent":${HEARD}}']]

    return asking(calls={"ask1": ask(1), "ask2": ask(2)}, tools=["echo", "ask", "ask1", "ask2"])


class Pipe:
    """A client that is connected to the daemon by its socket."""

    def __init__(self, c):
        self.c = c
        c.legacy(capabilities=CAPS)

    def start(self, name, args):
        return self.c.start_call(name, args)

    def question(self, _key):
        return self.c.notice("elicitation/create")

    def result(self, key):
        return self.c.answer(key).result

    def reply(self, asked, value):
        reply(self.c, asked, value)

    def cancel(self, key):
        self.c.cancel(key)

    def quiet(self, _key, for_ms):
        self.c.nothing(for_ms=for_ms)


class Http:
    """One by HTTP, which is asked on the stream of its call."""

    def __init__(self, c):
        self.c = c

    def start(self, name, args):
        return self.c.start_call(name, args)

    def question(self, answer):
        return next_request(answer)

    def result(self, answer):
        return answer.result

    def reply(self, asked, value):
        reply(self.c, asked, value)

    def cancel(self, _answer):
        self.c.cancel(self.c.next_id)

    def quiet(self, answer, for_ms):
        assert not answer.has_started(for_ms)


@pytest.fixture(params=["http", "connect"])
def clients(request, connect):
    """clients(mv): two legacy clients of one daemon, which listens(folder) as told."""
    def start(mv):
        if request.param == "http":
            return [Http(legacy(mv)) for _ in range(2)]
        return [Pipe(connect(mv.bound[1][5:])) for _ in range(2)]

    return start


def listens(folder):
    return ["127.0.0.1:0", "unix:%s" % (folder / "s")]


def test_o_049_two_that_are_asked_at_once_by_one_that_is_known_to_ask(serve_conf, clients,
                                                                      tmp_path):
    go = tmp_path / "go"
    mv = serve_conf(alpha=two_that_ask(go), listen=listens(tmp_path))
    marked(mv)
    both = clients(mv)
    calls = [(n, c, c.start("alpha__ask%d" % n, {"who": n}))
             for n, c in enumerate(both, start=1)]
    wait_for(lambda: len(mv["alpha"].inputs("tools/call")) == 3, 5, "both are there")
    go.touch()
    asked = [c.question(key) for _, c, key in calls]
    for (n, c, key), q in zip(reversed(calls), reversed(asked)):
        assert q.params["_meta"] == {"args": {"who": n}}
        c.reply(q, accept(n))
        got = c.result(key)["structuredContent"]
        assert got["id"] == n and type(got["id"]) is int and got["result"] == accept(n)


def test_o_049_an_owner_that_cannot_be_known_is_not_guessed(serve_conf, clients, tmp_path):
    """One shared instance, and both have a call there: nobody is asked. When one of them
    gives up, its question is still not the other's."""
    go = tmp_path / "go"
    mv = serve_conf(alpha=two_that_ask(go), listen=listens(tmp_path))
    a, b = clients(mv)
    first, second = a.start("alpha__ask1", {"who": 1}), b.start("alpha__ask2", {"who": 2})
    wait_for(lambda: len(mv["alpha"].inputs("tools/call")) == 2, 5, "both are there")
    assert len(mv["alpha"].starts()) == 1
    go.touch()
    wait_for(lambda: sum(b"elicitation/create" in r.raw for r in mv["alpha"].records("O")) == 2,
             5, "both ask")
    a.quiet(first, 150)
    b.quiet(second, 150)
    a.cancel(first)
    mv["alpha"].wait_input("notifications/cancelled")
    b.quiet(second, 150)
    assert all("result" not in m for m in responses(mv["alpha"]))
    b.cancel(second)


def test_o_049_modern_clients_are_asked_in_their_answers(serve_conf, tmp_path):
    go = tmp_path / "go"
    mv = serve_conf(alpha=two_that_ask(go))
    marked(mv)
    both = [mv.modern(), mv.modern()]
    answers = [c.start_call("alpha__ask%d" % n, {"who": n}, meta=MODERN_CAPS)
               for n, c in enumerate(both, start=1)]
    wait_for(lambda: len(mv["alpha"].inputs("tools/call")) == 3, 5, "both are there")
    go.touch()
    for n, (c, answer) in enumerate(zip(both, answers), start=1):
        (key, request), = answer.result["inputRequests"].items()
        assert request["params"]["_meta"] == {"args": {"who": n}}
        got = come_back(c, answer.result, {key: accept(n)}, name="alpha__ask%d" % n,
                        args={"who": n}).result["structuredContent"]
        assert got["id"] == n and got["result"] == accept(n)


# -- roots -------------------------------------------------------------------------------

ROOTS = {"roots": [{"uri": "file:///home/a", "name": "a"}]}


def asks_for_roots():
    """Right after initialized, and in each call."""
    return asking("roots/list", "{}", on={"notifications/initialized": [
        ["request", "early", "roots/list"], ["expect", "early", 5000]]})


def declared(up):
    return ["roots" in r.msg["params"]["capabilities"] for r in up.inputs("initialize")]


@pytest.mark.parametrize("caps", [{"roots": {}}, {"roots": {"listChanged": True}}, {}, {
    "elicitation": {}}], ids=json.dumps)
def test_o_050_roots_of_the_only_client(serve, caps):
    mv = serve(alpha=asks_for_roots())
    mv.legacy(capabilities=caps)
    key = mv.start_call("alpha__ask", {})
    if "roots" in caps:
        for _ in range(2):
            reply(mv, mv.notice("roots/list"), ROOTS)
    got = mv.answer(key).result["structuredContent"]
    if "roots" in caps:
        assert got["result"] == ROOTS
    else:
        assert got["error"]["code"] == -32601
        mv.nothing("roots/list", for_ms=50)
    assert declared(mv["alpha"]) == ["roots" in caps]
    assert [("result" in m) for m in responses(mv["alpha"])] == ["roots" in caps] * 2
    assert mv["alpha"].records("X") == []


@pytest.mark.parametrize("roots", ["auto", "none", "client", ["file:///srv/x"]], ids=json.dumps)
def test_o_050_roots_of_several_clients(serve_conf, roots):
    """A declared them and B did not. Those who share are asked for none, unless by conf."""
    mv = serve_conf(alpha=asks_for_roots(), per={"alpha": {"roots": roots}})
    b = mv.legacy()
    a = legacy(mv)
    start = time.monotonic()
    plain = b.call("alpha__ask", {}).result["structuredContent"]
    sent = a.start_call("alpha__ask", {})
    if roots == "client":
        # It has an instance of its own; what that asks outside of calls is asked there too.
        for _ in range(2):
            reply(a, next_request(sent, "roots/list"), ROOTS)
        assert sent.result["structuredContent"]["result"] == ROOTS
        assert plain["error"]["code"] == -32601
        assert sorted(declared(mv["alpha"])) == [False, True]
    elif isinstance(roots, list):
        for got in (plain, sent.result["structuredContent"]):
            assert [r["uri"] for r in got["result"]["roots"]] == roots
        assert all(declared(mv["alpha"]))
    else:
        for got in (plain, sent.result["structuredContent"]):
            assert got["error"]["code"] == -32601
        assert not any(declared(mv["alpha"])) and sent.notices == []
    assert time.monotonic() - start < 4
    assert mv["alpha"].records("X") == []  # nobody waited in vain


# -- answers that ask for input --------------------------------------------------------------

STATE = b'"AEAD+/=\\u00e9"'
ASKED = {"who": {"method": "elicitation/create", "params": {
    "mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}}}
WANTED = '{"resultType":"input_required","inputRequests":%s,"requestState":%s}' % (
    json.dumps(ASKED), STATE.decode())
CAPS_OF = {META + "clientCapabilities": {
    "elicitation": {"form": {}}, "sampling": {"tools": {}}, "roots": {},
    "extensions": {"com.example/x": {"n": 1.0}}}}


def child_that_asks():
    done = '{"resultType":"complete","content":[],"structuredContent":${PARAMS}}'
    return {"era": "modern", "tools": ["echo", "ask"], "calls": {"ask": [
        ["set", "calls", {"ask": [["reply", done]]}], ["reply", WANTED]]}}


def remote_that_asks(s):
    def what(h, r):
        if "inputResponses" in r.params:
            say(h, 200, "application/json", result(r, {
                "resultType": "complete", "content": [], "structuredContent": r.params}))
        else:
            say(h, 200, "application/json", ('{"jsonrpc":"2.0","id":%s,"result":%s}' % (
                json.dumps(r.msg["id"]), WANTED)).encode())

    s.odd = calls_of("ask", what)


@pytest.mark.parametrize("kind", ["child", "remote"])
@pytest.mark.parametrize("front", ["stdio", "http"])
def test_o_103_a_modern_question_and_its_state_pass_as_they_are(serve, serve_http, remote,
                                                                front, kind):
    beta = {"era": "modern", "tools": ["echo", "ask"]}
    if kind == "remote":
        s = remote("modern", tools=["ask", "echo"])
        remote_that_asks(s)
        alpha = {"url": s.url}
    else:
        alpha = child_that_asks()
    mv = (serve if front == "stdio" else serve_http)(alpha=alpha, beta=beta)
    c = mv.modern()

    def sent():
        if kind == "remote":
            return [(r.raw, r.msg) for r in s.seen("tools/call")]
        return [(r.raw, r.msg) for r in mv["alpha"].inputs("tools/call")]

    for n in (1, 2):
        if kind == "child" and n == 2:
            break  # it has had its one question
        got = c.call("alpha__ask", {"n": n}, meta=CAPS_OF)
        assert got.result["resultType"] == "input_required"
        assert got.result["inputRequests"] == ASKED
        assert got.span("result", "requestState") == STATE
        done = come_back(c, got.result, {"who": accept("me")}, args={"n": n})
        raw, msg = sent()[-1]
        assert b'"requestState":' + STATE in raw.replace(b'"requestState": ', b'"requestState":')
        assert msg["params"]["inputResponses"] == {"who": accept("me")}
        assert msg["params"]["arguments"] == {"n": n}
        assert done.result["structuredContent"]["requestState"] == "AEAD+/=\u00e9"
        assert len(sent()) == 2 * n and sent()[-1][1]["id"] != sent()[-2][1]["id"]
        caps = sent()[-2][1]["params"]["_meta"][META + "clientCapabilities"]
        assert caps == CAPS_OF[META + "clientCapabilities"]
    assert mv["beta"].inputs("tools/call") == []
    # It was answered once; the same again goes there again.
    count = len(sent())
    c.ask("tools/call", {"name": "alpha__ask", "arguments": {"n": 1}, "requestState":
                         "AEAD+/=\u00e9", "inputResponses": {"who": accept("me")}},
          meta=CAPS_OF)
    assert len(sent()) == count + 1


@pytest.mark.parametrize("kind", ["child", "remote"])
@pytest.mark.parametrize("front", ["stdio", "http"])
def test_o_103_a_legacy_client_is_asked_and_the_state_goes_back(serve, serve_http, remote,
                                                                front, kind):
    if kind == "remote":
        s = remote("modern", tools=["ask", "echo"])
        remote_that_asks(s)
        alpha = {"url": s.url}
    else:
        alpha = child_that_asks()
    mv = (serve if front == "stdio" else serve_http)(alpha=alpha, beta={"tools": ["echo"]})
    if front == "stdio":
        mv.legacy(capabilities=CAPS)
        key = mv.start_call("alpha__ask", {"n": 1})
        reply(mv, mv.notice("elicitation/create"), accept("me"))
        got = mv.answer(key).result["structuredContent"]
    else:
        c = legacy(mv)
        answer = c.start_call("alpha__ask", {"n": 1})
        reply(c, next_request(answer), accept("me"))
        got = answer.result["structuredContent"]
    assert got["requestState"] == "AEAD+/=\u00e9" and got["arguments"] == {"n": 1}
    assert got["inputResponses"] == {"who": accept("me")}
    raw = s.seen("tools/call")[-1].raw if kind == "remote" else \
        mv["alpha"].inputs("tools/call")[-1].raw
    assert b'"requestState":' + STATE in raw
