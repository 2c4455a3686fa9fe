# SPDX-License-Identifier: MIT
"""What upstreams write on stdout: noise, odd line ends, cuts, giants."""
import hashlib

import pytest

from mcp import wait_for


def usable(mv, *names):
    for name in names:
        assert mv.call(name + "__echo", {"a": 1}).result["structuredContent"] == {"a": 1}


def test_o_001_a_banner_before_everything(each):
    mv = each(alpha={"tools": ["echo"], "on": {"start": [["bytes", "obsidian ready v1\n"]]}},
               beta={"tools": ["echo"]})
    assert mv.tools() == ["alpha__echo", "beta__echo"]
    usable(mv, "beta", "alpha")
    mv.wait_log("alpha.*obsidian ready v1|obsidian ready v1.*alpha")
    assert b"obsidian" not in mv.seen()


def test_o_002_coloured_noise_around_every_reply(each):
    noise = "\x1b[33m[2026-03-18] INFO connect\x1b[0m\n"
    mv = each(alpha={"tools": ["echo"], "before_reply": noise, "after_reply": noise})
    for i in range(60):
        assert mv.call("alpha__echo", {"i": i}).result["structuredContent"] == {"i": i}
    assert "\x1b" not in mv.log()
    assert 1 <= mv.log().count("INFO connect") < 60
    assert b"INFO connect" not in mv.seen()


def test_o_003_line_ends(each):
    eols = ["\r\n", "\r\r\n", " \n", "\n\n\n"]
    mv = each({"u%d" % i: {"tools": ["echo"], "eol": eol} for i, eol in enumerate(eols)})
    for name in mv.mv.upstreams:
        usable(mv, name)
        assert len(mv[name].starts()) == 1
        # What we write ends in one line feed whatever the other side does.
        assert not [r for r in mv[name].inputs() if b"\r" in r.raw]


def test_o_004_a_byte_order_mark(each):
    mv = each(alpha={"tools": ["echo"], "on": {"start": [["bytes", {"hex": "efbbbf"}]]}})
    usable(mv, "alpha")


def test_o_005_giant_lines(each):
    """The largest come through an upstream of the other era, the others through both."""
    sizes = (65535, 65536, 65537, 1048576, 8000000)
    ups = {}
    for era, tail in (("legacy", ""), ("modern", ',"resultType":"complete"')):
        ups[era] = {"era": era, "tools": ["t%d" % n for n in sizes], "calls": {
            "t%d" % n: [["reply", {"pre": '{"content":[{"type":"text","text":"' + "x" * (n % 2),
                                   "repeat": "\u00e9", "n": n // 2, "post": '"}]%s}' % tail}]]
            for n in sizes}}
    mv = each(ups)
    for era in ups:
        for n in sizes:
            if n > 1 << 17 and era == mv.era:
                continue
            got = mv.call("%s__t%d" % (era, n), timeout=30).text.encode()
            want = b"x" * (n % 2) + "\u00e9".encode() * (n // 2)
            assert len(got) == n
            assert hashlib.sha256(got).digest() == hashlib.sha256(want).digest()


def test_o_006_a_cut_at_every_offset(each):
    text = '{"content":[{"type":"text","text":"x\U0001F600é"}]}'
    mv = each(alpha={"tools": ["echo", "t"], "cut_ms": 2,
                      "calls": {"t": [["reply", text]]}})
    want = '{"resultType":"complete",' + text[1:] if mv.is_modern else text
    mv["alpha"].run(["set", "cut", "walk"])
    mv.fence("alpha")
    for _ in range(100):
        assert mv.call("alpha__t").span("result").decode() == want


def test_o_007_noise_that_begins_like_json(each):
    noise = '{debug} starting\n[INFO] up\n{"level":"info","msg":"x"}\n[1,2]\n"s"\n7\nnull\n'
    mv = each(alpha={"tools": ["echo"], "before_reply": noise})
    usable(mv, "alpha")
    # Nothing of it was answered.
    assert [r for r in mv["alpha"].inputs() if "method" not in r.msg] == []
    assert mv.notices() == []
    mv.wait_log("debug} starting")
    assert b"starting" not in mv.seen() and b'"msg":"x"' not in mv.seen()


def test_o_008_the_framing_of_another_protocol(each):
    mv = each(alpha={"tools": ["echo"], "framing": "lsp", "on": {"start": [
                   ["raw", '{"jsonrpc":"2.0","method":"notifications/message","params":'
                           '{"level":"info","data":"hi"}}']]},
                      "mcpvisor": {"probe_ms": 50, "start_ms": 400, "restart_base_ms": 60000}},
               beta={"tools": ["echo"]})
    usable(mv, "beta")
    # Its limit passes, and it is given up with that reason, not started over and over.
    mv.wait_log('not available upstream="alpha" reason="writes Content-Length framing')
    assert len(mv["alpha"].starts()) <= 2
    got = mv.call("alpha__echo", {})
    assert got.code in (-32602, -32603)


def test_a_reply_that_is_not_utf8_fails_its_call_at_once(serve):
    bad = b'{"jsonrpc":"2.0","id":${ID},"result":{"content":[{"type":"text","text":"\xff"}]}}'
    mv = serve(alpha={"tools": ["echo", "bad"],
                      "calls": {"bad": [["raw", {"hex": bad.hex()}]]}})
    mv.legacy()
    got = mv.call("alpha__bad", timeout=3)
    assert got.code == -32603 and got.error["data"]["upstream"] == "alpha"
    usable(mv, "alpha")


def test_a_reply_that_is_too_deep_fails_its_call_at_once(serve):
    text = {"pre": '{"content":[],"structuredContent":', "repeat": "[", "n": 200000,
            "post": "0" + "]" * 200000 + "}"}
    mv = serve(alpha={"tools": ["echo", "deep"], "calls": {"deep": [["reply", text]]}})
    mv.legacy()
    got = mv.call("alpha__deep", timeout=3)
    assert got.code == -32603 and got.error["data"]["upstream"] == "alpha"
    usable(mv, "alpha")


def test_a_reply_over_the_limit_fails_its_call(serve):
    text = {"pre": '{"content":[{"type":"text","text":"', "repeat": "x", "n": 65 << 20,
            "post": '"}]}'}
    mv = serve(alpha={"tools": ["echo", "huge"], "calls": {"huge": [["reply", text]]}})
    mv.legacy()
    got = mv.call("alpha__huge", timeout=30)
    assert got.code == -32603 and got.error["data"]["upstream"] == "alpha"
    usable(mv, "alpha")


@pytest.mark.parametrize("raw", [
    '{"jsonrpc":"2.0","id":${ID}}', '{"jsonrpc":"2.0","id":${ID},"result":7}',
    '{"jsonrpc":"2.0","id":${ID},"result":{},"error":{"code":1,"message":"m"}}',
    '{"jsonrpc":"2.0","id":${ID},"error":{"code":"x","message":"m"}}',
    '{"jsonrpc":"2.0","id":${ID},"error":{}}', '{"id":${ID},"result":{}}',
    '{"jsonrpc":"1.0","id":${ID},"result":{}}',
])
def test_what_is_no_reply_never_reaches_the_client(serve, raw):
    mv = serve(alpha={"tools": ["echo", "odd"], "mcpvisor": {"call_ms": 500},
                      "calls": {"odd": [["raw", raw]]}})
    mv.legacy()
    # Failed at once where the id could be read, else at its limit.
    got = mv.call("alpha__odd")
    assert got.code == -32603 and got.error["data"]["upstream"] == "alpha"
    usable(mv, "alpha")


def test_o_081_stderr_is_always_drained(each):
    mv = each(alpha={"tools": ["echo", "log", "flood"], "calls": {
        "log": [["stderr", {"repeat": "x" * 255 + "\n", "n": 1024}],
                ["reply", {"content": []}]],
        "flood": [["stderr", {"repeat": "y", "n": 100000}], ["reply", {"content": []}]]}})
    assert mv.call("alpha__log").result
    before = resident_kb(mv)
    for _ in range(100):
        assert mv.call("alpha__flood").result
    assert resident_kb(mv) - before < 20000
    assert len(mv.log()) < 3000000


def resident_kb(mv):
    with open("/proc/%d/status" % mv.pid) as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


def test_stderr_is_logged_under_the_upstreams_name(serve):
    mv = serve(alpha={"tools": ["echo"]}, beta={"tools": ["echo"]})
    mv.legacy()
    mv["beta"].run(["stderr", "caf\u00e9 \x1b[31mred\x1b[0m\nsecond line\n"])
    mv.wait_log("beta.*second line")
    first = next(x for x in mv.log().splitlines() if "red" in x)
    assert "beta" in first and "second" not in first and "\x1b" not in first


def test_o_091_both_write_before_they_read(each):
    note = '{"jsonrpc":"2.0","method":"notifications/message","params":' \
           '{"level":"debug","data":"%s"}}\n'
    mv = each(alpha={"tools": ["swallow"], "calls": {"swallow": [["reply", {"content": []}]]}},
               beta={"tools": ["echo"]})
    mv.tools()
    mv["alpha"].run(["set", "before_line", note % ("n" * (1 << 20))])
    for size in (1 << 10, 5 << 10, 64 << 10, 1 << 20, 16 << 20):
        sent = mv.start_call("alpha__swallow", {"x": "z" * size})
        usable(mv, "beta")
        assert mv.answer(sent, timeout=30).result["content"] == []


def test_split_and_merged_writes(serve):
    note = '{"jsonrpc":"2.0","method":"notifications/progress","params":' \
           '{"progressToken":${TOKEN},"progress":%d}}'
    merged = "\n".join([note % 1, note % 2,
                        '{"jsonrpc":"2.0","id":${ID},"result":{"content":[]}}'])
    mv = serve(alpha={"tools": ["merged"], "calls": {"merged": [["raw", merged]]}})
    mv.legacy()
    assert mv.call("alpha__merged", meta={"progressToken": 1}).result
    wait_for(lambda: len(mv.notices()) == 2)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_carriage_return_between_tokens_does_not_travel(serve, era):
    # For a reader that ends lines at it too, the middle would be a message of its own.
    inner = '{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"hidden"}}'
    reply = '{"jsonrpc":"2.0","id":${ID},\r"result":\r{"content":[]\r,"resultType":"complete"}}\r'
    mv = serve(alpha={"era": era, "tools": ["echo", "odd"], "calls": {"odd": [["raw", reply]]}})
    mv.legacy()
    mv.line('{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"alpha__echo",'
            '"arguments":{"x":\r%s\r}}}' % inner)
    assert mv.answer("a").result["structuredContent"]["x"]["id"] == 99
    assert b"\r" not in mv["alpha"].wait_input("tools/call").raw
    assert mv.call("alpha__odd").result["content"] == []
    # In a string it is not white space.
    mv.line('{"jsonrpc":"2.0","id":"b","method":"ping","params":{"x":"a\rb"}}')
    assert mv.take(lambda m: "error" in m.msg).code == -32700
