# SPDX-License-Identifier: MIT
"""Remote upstreams say which call they ask for: by the stream that they ask on."""
import json

from asking import MODERN_CAPS, come_back, reply
from remote_server import RemoteServer
from test_questions_http import legacy, next_request


def text_of(answer):
    return json.loads(answer.result["content"][0]["text"])


def accept(n):
    return {"action": "accept", "content": {"who": n}}


def test_each_call_is_asked_on_its_own_stream(serve_conf):
    s = RemoteServer(tools=["ask", "echo"])
    try:
        mv = serve_conf(alpha={"url": s.url})
        a, b, modern = legacy(mv), legacy(mv), mv.modern()
        calls = [(n, c, c.start_call("alpha__ask", {"who": n})) for n, c in (("a", a), ("b", b))]
        got = modern.call("alpha__ask", {"who": "m"}, meta=MODERN_CAPS).result
        asked = {n: next_request(answer) for n, _, answer in calls}
        for n, c, answer in reversed(calls):
            assert json.loads(asked[n].params["message"]) == {"who": n}
            reply(c, asked[n], accept(n))
            assert text_of(answer)["result"] == accept(n)
        (key, request), = got["inputRequests"].items()
        assert json.loads(request["params"]["message"]) == {"who": "m"}
        done = come_back(modern, got, {key: accept("m")}, args={"who": "m"})
        assert text_of(done)["result"] == accept("m")
        # One connection does for all of them.
        assert len(s.seen("initialize")) == 1 and not s.seen("notifications/cancelled")
    finally:
        s.close()


def test_a_call_whose_client_cannot_be_asked(serve_conf):
    s = RemoteServer(tools=["ask", "echo"])
    try:
        mv = serve_conf(alpha={"url": s.url})
        c = mv.legacy()
        assert text_of(c.call("alpha__ask", {}))["error"]["code"] == -32601
        answer = mv.modern().start_call("alpha__ask", {})
        assert answer.fault() == (400, -32021)
        assert mv.modern().call("alpha__echo", {"n": 1}).result
    finally:
        s.close()
