# SPDX-License-Identifier: MIT
"""Records of the collected reports that are about what remote upstreams answer: event
streams, types and codings; and about what is written of them in a conf."""
import functools
import gzip
import json
import re
import zlib

import pytest

from remote_server import begin_stream
from test_cases_remote import ERAS, calls_of, done, over, say, text_of, works
from test_expansion import ENV, RULE, SECRET
from upstream import wait_for


def streamed(text):
    """Answers a call by a stream of exactly these bytes; {} is the answer's place."""
    def what(h, r):
        begin_stream(h)
        msg = json.dumps(done(r, {"content": [{"type": "text", "text": "\"there\""}]}))
        raw = text.encode().replace(b"{}", msg.encode())
        for n in range(0, len(raw), 7):  # no piece is a line
            h.wfile.write(raw[n:n + 7])
            h.wfile.flush()

    return what


def delivered(each, remote, era, text):
    s = remote(era, streams=True)
    s.odd = calls_of("slow", streamed(text))
    w = over(each, s)
    assert text_of(w.call("alpha__slow", {})) == "there"
    works(w)
    assert not w.notices()
    return w


# -- event streams -------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("text", [
    "event: message\r\ndata: {}\r\n\r\n", "event: message\rdata: {}\r\r",
    "data: {}\r\nevent: message\r\n\r\n", "event: message\ndata: {}\r\n\r\n",
    "event: message\r\ndata: {}\n\n", "\r\n\r\n:c\rdata:{}\n\r\n",
    "\ufeffdata: {}\r\n\r\n", "id: 1\r\nretry: 5\r\ndata: {}\r\n\r\n"], ids=repr)
def test_o_063_ends_of_lines_of_every_kind(each, remote, era, text):
    delivered(each, remote, era, text)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("text", [
    ": keep-alive\n\n:\n:\n\ndata: {}\n\n: more\n\n", ":\n:data: x\ndata: {}\n\n:\n",
    ":{}\n\n: " + "x" * 100000 + "\n\ndata: {}\n\n"], ids=["keep-alive", "inside", "long"])
def test_o_064_comments_are_none_of_our_business(each, remote, era, text):
    delivered(each, remote, era, text)


HEARTBEATS = 'data: {"type":"heartbeat"}\n\nevent: ping\ndata: 1\n\ndata:\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize("era", ERAS)
def test_o_065_events_that_are_no_messages_are_skipped(each, remote, era):
    w = delivered(each, remote, era, HEARTBEATS + "data: {}\n\n")
    w.wait_log("not JSON-RPC.*heartbeat|heartbeat")


def test_o_065_they_are_counted(serve_conf, remote):
    s = remote(streams=True)
    s.odd = calls_of("slow", streamed(HEARTBEATS + "data: {}\n\n"))
    mv = serve_conf(alpha={"url": s.url})
    c = mv.modern()
    assert text_of(c.call("alpha__slow", {})) == "there"
    # Events of a type of their own, and those without data, are nobody's noise.
    assert mv.upstream_status("alpha")["noise_lines"] == 2
    wait_for(lambda: s.queues, 5, "the stream of its own is open")
    s.tell("1")
    s.tell({"type": "heartbeat"})
    wait_for(lambda: mv.upstream_status("alpha")["noise_lines"] == 4, 5, "these too")
    assert mv.upstream_status("alpha")["state"] == "ready"
    assert len(s.seen("initialize")) == 1


def broken_after_an_id(s, resumed, retry_ms=60):
    """Calls of slow are cut after the id e1; the n-th GET from there is resumed(n)'s."""
    def odd(h, r):
        if r.rpc == "tools/call" and r.params["name"] == "slow":
            begin_stream(h)
            h.wfile.write(b"retry: %d\nid: e1\ndata:\n\n" % retry_ms)
            s.call = r
            return True
        if r.http == "GET" and r.header("Last-Event-ID") is not None:
            begin_stream(h)
            tries = [x for x in s.seen(http="GET") if x.header("Last-Event-ID")]
            h.wfile.write(resumed(len(tries)))
            return True
        return False

    s.odd = odd


def resumptions(s):
    return [r for r in s.seen(http="GET") if r.header("Last-Event-ID")]


def test_o_066_a_stream_that_breaks_again_is_resumed_from_where_it_was(each, remote):
    def resumed(n):
        if n < 3:
            return b""
        return b"id: e2\ndata: %s\n\n" % json.dumps(done(s.call)).encode()

    s = remote(streams=True)
    broken_after_an_id(s, resumed)
    w = over(each, s)
    works(w)
    assert w.call("alpha__slow", {}).result["content"]
    tries = resumptions(s)
    assert [r.header("Last-Event-ID") for r in tries] == ["e1"] * 3
    assert {r.header("Mcp-Session-Id") for r in tries} == s.sessions
    # As long as it said, and it is not asked for what it has answered.
    every = [s.call, *tries]
    assert all(b.at - a.at >= 0.055 for a, b in zip(every, every[1:]))
    assert len(s.seen("tools/call")) == 2
    works(w, 2)
    assert len(resumptions(s)) == 3


def test_o_066_tries_are_bounded(each, remote):
    s = remote(streams=True)
    broken_after_an_id(s, lambda n: b"", retry_ms=20)
    w = over(each, s)
    works(w)
    got = w.call("alpha__slow", {})
    assert got.code == -32603 and got.error["data"]["reason"] == "closed"
    assert 2 <= len(resumptions(s)) <= 10
    works(w, 2)


def test_o_066_streams_of_modern_servers_are_not_resumed(each, remote):
    s = remote("modern", streams=True)
    broken_after_an_id(s, lambda n: b"")
    w = over(each, s)
    works(w)
    got = w.call("alpha__slow", {})
    assert got.code == -32603 and got.error["data"]["reason"] == "closed"
    assert not s.seen(http="GET") and len(s.seen("tools/call")) == 2
    works(w, 2)


# -- types and codings ------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_o_068_content_types_of_remote_answers(each, remote, era):
    """No type, or another one than the specification has, is an error that names it."""
    kinds = ["application/json; charset=utf-8", "Application/JSON",
             'application/json ;charset="UTF-8"', "text/event-stream;charset=utf-8",
             "Text/Event-Stream", "text/plain", "application/jsonp", None]
    good, left = 5, list(kinds)

    def what(h, r):
        kind, msg = left.pop(0), json.dumps(done(r)).encode()
        is_events = kind and kind.lower().startswith("text/event")
        say(h, 200, kind, b"data: " + msg + b"\n\n" if is_events else msg)

    s = remote(era)
    s.odd = calls_of("slow", what)
    w = over(each, s)
    for n, kind in enumerate(kinds):
        got = w.call("alpha__slow", {})
        if n < good:
            assert got.result["content"], kind
        else:
            assert got.code == -32603 and got.error["data"]["reason"] == "protocol"
            assert kind is None or kind in json.dumps(got.error)
    works(w)


def deflated(raw):
    return zlib.compress(raw)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_o_071_bodies_that_are_compressed(each, remote, era, kind):
    """gzip is what we ask for; what else a server sends is decoded, or an error."""
    codings = [("gzip", gzip.compress), ("deflate", deflated), ("br", lambda raw: b"\x0b" + raw),
               ("gzip", lambda raw: gzip.compress(raw)[:-20]), ("gzip", lambda raw: raw),
               ("identity", lambda raw: raw)]
    left = list(codings)

    def what(h, r):
        name, pack = left.pop(0)
        assert r.header("Accept-Encoding") == "gzip"
        raw = json.dumps(done(r, {"content": [
            {"type": "text", "text": "\"%s\"" % ("there" * 500)}]})).encode()
        say(h, 200, kind, pack(b"data: " + raw + b"\n\n" if "event" in kind else raw),
            [("Content-Encoding", name)])

    s = remote(era)
    s.odd = calls_of("slow", what)
    w = over(each, s)
    for n in range(len(codings)):
        got = w.call("alpha__slow", {})
        if "result" in got.msg:
            assert text_of(got) == "there" * 500
        else:
            assert n not in (0, len(codings) - 1) and got.code == -32603, got
        if w.is_http:  # its length and coding are looked at there
            assert w.answers[-1].header("Content-Encoding") is None
        works(w, n)


@functools.cache
def too_much():
    """More than the 64 MiB that a message may have."""
    return gzip.compress(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"a":"%s"}}'
                         % (b"x" * (65 << 20)), 1)


def test_o_071_what_unpacks_to_too_much_is_refused(each, remote):
    s = remote()
    s.odd = calls_of("slow", lambda h, r: say(h, 200, "application/json", too_much(),
                                              [("Content-Encoding", "gzip")]))
    w = over(each, s)
    got = w.call("alpha__slow", {}, timeout=30)
    assert got.code == -32603 and got.error["data"]["upstream"] == "alpha"
    works(w)


# -- variables -------------------------------------------------------------------------------


def test_o_088_one_rule_for_url_and_headers(serve_conf, remote):
    s = remote()
    # A header that is empty, or has a line break, is refused: see below.
    rule = [(text, want) for text, want in RULE if want and "\n" not in text]
    headers = {"X-V%d" % i: text for i, (text, _) in enumerate(rule)}
    env = {**ENV, "PORT": str(s.port), "PATH_OF_IT": "mcp"}
    mv = serve_conf(alpha={"url": "http://127.0.0.1:${PORT}/${PATH_OF_IT}?t=${SET}",
                           "headers": {**headers, "Authorization": "Bearer ${TOKEN}"}}, env=env)
    c = mv.legacy()
    assert text_of(c.call("alpha__echo", {"n": 1})) == {"n": 1}
    sent = s.seen("tools/call")[0]
    assert sent.path == "/mcp?t=value"
    assert sent.header("Authorization") == "Bearer " + SECRET
    got = [sent.header("X-V%d" % i) for i in range(len(rule))]
    assert got == [want for _, want in rule]
    assert SECRET not in mv.log()
    assert SECRET not in mv.control("status")[1] + mv.control("status", "--json")[1]


@pytest.mark.parametrize("field", ["url", "headers"])
@pytest.mark.parametrize("text, word", [
    ("${UNSET_9}", "UNSET_9"), ("${", "closing brace"), ("${input:x}", "input"),
    ("${file:not-there}", "not-there"), ("${BREAK}", "break|space|URL")])
def test_o_088_what_is_not_there_is_an_error_of_a_remote(serve, check, field, text, word):
    """A conf is refused with the line; of a client's file that server alone is failed."""
    entry = {"url": "http://127.0.0.1:9/" + text} if field == "url" else \
        {"url": "http://127.0.0.1:9/", "headers": {"A": "Bearer hush-4711 " + text}}
    shown = 'url = "%s";' % entry["url"]
    if field == "headers":
        shown += '\nheaders : { A = "%s"; };' % entry["headers"]["A"]
    env = {"BREAK": "a\nB: c"}
    err = check("\nupstream : {\n a : {\n %s\n}; };\n" % shown, code=1, **env)[2]
    assert re.search(r"conf:%d: upstream\.a\.%s" % (4 + (field == "headers"), field), err)
    assert re.search(word, err) and "hush-4711" not in err
    mv = serve(alpha=entry, beta={"tools": ["echo"]}, env=env)
    mv.legacy()
    assert mv.tools() == ["beta__echo"]
    mv.wait_log("alpha.*(%s)" % word)
    got = mv.call("alpha__echo", {})
    assert got.code == -32603 and got.error["data"]["upstream"] == "alpha"
    assert "hush-4711" not in mv.log() + str(got.raw)
