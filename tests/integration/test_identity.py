# SPDX-License-Identifier: MIT
"""Who an upstream acts for: what is kept of its answer, for whom, and until when."""
import json

import pytest

import logs
import remote_server
from mcp import wait_for
from upstream import Upstream

CACHE = "io.github.mcpvisor/cache"
ERAS = ["legacy", "modern"]
KEEP = {"identity_cache_ms": 3600000}
LONG = 3600


def text(value):
    return {"content": [{"type": "text", "text": value if isinstance(value, str)
                         else json.dumps(value)}]}


ANN = text({"data": {"viewer": {"id": "1", "login": "ann"}}})
NOBODY = text({"data": {"viewer": None}})
PARTIAL = text({"data": {"viewer": {"id": "1"}, "x": None}, "errors": [{"message": "no x"}]})
TYPED = {"resultType": "complete"}


def says(result, era="legacy", **more):
    """An upstream whose whoami says that; become_* changes what it says."""
    result = {**TYPED, **result} if era == "modern" else result
    done = {**TYPED, "content": []} if era == "modern" else {"content": []}

    def becomes(value):
        value = {**TYPED, **value} if era == "modern" else value
        return [["set", "calls", {"whoami": [["reply", value]]}], ["reply", done]]

    return {"era": era, "tools": ["echo", "whoami", "become_nobody", "become_ann"],
            "calls": {"whoami": [["reply", result]], "become_nobody": becomes(NOBODY),
                      "become_ann": becomes(ANN), **more.pop("calls", {})}, **more}


def asked(mv, name="whoami", upstream="alpha"):
    return len([i for i in mv[upstream].inputs("tools/call") if i.msg["params"]["name"] == name])


def whoami(c, args=None, tool="alpha__whoami"):
    return c.call(tool, {} if args is None else args)


def age(m):
    return m.result.get("_meta", {}).get(CACHE, {}).get("ageMs")


def state(mv):
    return mv.upstream_status("alpha")["identity"]


def nulls(mv):
    return mv.upstream_status("alpha")["calls"]["answer"]["null_identity"]


def only(**one):
    return {**{"resolved": 0, "unresolved": 0, "unknown": 0}, **one}


def bare(m):
    """A result without our age."""
    found = json.loads(json.dumps(m.result))
    found.get("_meta", {}).pop(CACHE, None)
    if found.get("_meta") == {}:
        del found["_meta"]
    return found


def keeping(serve_conf, behaviour=None, **options):
    return serve_conf(alpha=behaviour or says(ANN), per={"alpha": {**KEEP, **options}})


# -- what is kept ------------------------------------------------------------------------


@pytest.mark.parametrize("upstream", ERAS)
@pytest.mark.parametrize("client", ERAS)
def test_k01_the_same_principal_again(serve, client, upstream):
    mv = serve(alpha=says(ANN, upstream, mcpvisor=KEEP)).speak(client)
    first = whoami(mv)
    again = [whoami(mv) for _ in range(3)]
    assert asked(mv) == 1 and age(first) is None
    for m in again:
        assert isinstance(age(m), int) and 0 <= age(m) < LONG * 1000
        assert bare(m) == first.result
        # In an answer to a client whose revision has it, and as the upstream had it.
        assert ("resultType" in m.result) == ("modern" in (client, upstream))
        assert list(m.result).count("resultType") <= 1
    assert "\"io.github.mcpvisor/cache\":{\"ageMs\":" in again[0].raw.decode()
    assert [e["ans"] for e in logs.ended(mv, 4)] == ["full"] * 4


def test_k01_over_http(serve_conf):
    mv = keeping(serve_conf)
    one, other = mv.legacy(), mv.legacy()
    first = whoami(one)
    assert bare(whoami(other)) == first.result == bare(whoami(one))
    assert asked(mv) == 1  # K13: one set of credentials is everybody's
    assert state(mv) == only(resolved=1) and nulls(mv) == 0
    calls = mv.upstream_status("alpha")["calls"]
    assert calls["total"] == 1 and calls["answer"]["full"] == 1


def test_its_bytes_and_its_own_meta_stay(serve):
    raw = ('{"_meta":{"x":1.0, "y":{"n":9007199254740993}},"content":[{"type":"text",'
           '"text":"{\\"viewer\\":{\\"id\\":1e400}}"}]}')
    mv = serve(alpha=says({}, calls={"whoami": [["reply", raw]]}, mcpvisor=KEEP)).speak("legacy")
    assert whoami(mv).span("result").decode() == raw
    again = whoami(mv)
    ours = '"%s":{"ageMs":%d},' % (CACHE, age(again))
    assert again.span("result").decode() == raw.replace('"_meta":{', '"_meta":{' + ours)
    assert asked(mv) == 1


def test_k02_another_principal_is_another_question(serve_conf):
    mv = keeping(serve_conf, isolation="session")
    one, other = mv.legacy(), mv.legacy()
    assert [age(whoami(one)), age(whoami(other))] == [None, None]
    assert asked(mv) == 2 and state(mv) == only(resolved=2)
    assert None not in (age(whoami(one)), age(whoami(other)))
    assert asked(mv) == 2
    # Whoever leaves is nobody any more.
    assert one.delete().status == 204
    wait_for(lambda: state(mv) == only(resolved=1), 5, "the first is forgotten")
    assert age(whoami(other)) is not None


def test_k03_nobody_is_asked_for_again(serve_conf):
    mv = keeping(serve_conf, says(NOBODY))
    c = mv.legacy()
    assert [age(whoami(c)) for _ in range(3)] == [None] * 3
    assert asked(mv) == 3 and nulls(mv) == 3 and state(mv) == only(unresolved=1)
    assert {(e["ans"], e["is_err"]) for e in logs.ended(mv, 3)} == {("null_identity", "0")}
    assert "viewer" not in json.dumps(mv.status())
    c.call("alpha__become_ann", {})
    assert age(whoami(c)) is None and age(whoami(c)) is not None
    assert state(mv) == only(resolved=1)


@pytest.mark.parametrize("shown", [NOBODY, text(""), text("null"), {"content": []}])
def test_null_identities_are_counted_without_a_cache(serve_conf, shown):
    mv = serve_conf(alpha=says(shown))
    assert whoami(mv.legacy()).result == shown
    assert nulls(mv) == 1 and state(mv) == only(unresolved=1)


@pytest.mark.parametrize("shown, ans", [
    (text("Signed in as ann"), "unknown"), ({**ANN, "isError": True}, "none"), (PARTIAL, "partial")])
def test_what_is_not_certain_is_not_kept(serve_conf, shown, ans):
    # K07: partial with somebody in it is resolved all the same.
    mv = keeping(serve_conf, says(shown))
    c = mv.legacy()
    assert [age(whoami(c)) for _ in range(2)] == [None] * 2 and asked(mv) == 2
    resolved = ans == "partial"
    assert state(mv) == only(**{"resolved" if resolved else "unknown": 1})
    assert {e["ans"] for e in logs.ended(mv, 2)} == {ans}


def test_k06_a_restart_ends_it(serve_conf):
    mv = keeping(serve_conf, says(ANN, calls={"die": [["kill"]]}, tools=["whoami", "die"]),
                 restart_base_ms=1, restart_max_ms=1)
    c = mv.legacy()
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]
    mv.control("restart", "alpha")
    wait_for(lambda: mv.upstream_status("alpha")["state"] == "ready"
             and len(mv["alpha"].starts()) == 2, 5, "it is back")
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]
    assert c.call("alpha__die", {}).code == -32603
    wait_for(lambda: mv.upstream_status("alpha")["state"] == "ready"
             and len(mv["alpha"].starts()) == 3, 5, "it is back")
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]
    assert asked(mv) == 3


def test_of_one_that_is_down_nothing_is_told(serve_conf):
    mv = keeping(serve_conf, says(ANN, calls={"die": [["kill"]]}, tools=["whoami", "die"]),
                 restart_base_ms=60000, restart_max_ms=60000)
    c = mv.legacy()
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]
    c.call("alpha__die", {})
    wait_for(lambda: mv.upstream_status("alpha")["state"] != "ready", 5, "it is down")
    assert whoami(c).code == -32603


def test_one_that_is_started_for_it(serve_conf):
    mv = keeping(serve_conf, start="on_use")
    c = mv.legacy()
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]
    assert asked(mv) == 1


def test_k08_other_arguments_are_another_question(serve):
    mv = serve(alpha=says(ANN, mcpvisor=KEEP)).speak("legacy")
    for args in ({"a": 1}, {"a": 2}, {}, {"a": 1.0}):
        assert [age(whoami(mv, args)) is None for _ in range(2)] == [True, False]
    assert asked(mv) == 4
    mv.call("alpha__whoami").result  # none at all
    assert asked(mv) == 5


@pytest.mark.parametrize("upstream", ERAS)
def test_k10_what_a_client_was_asked_for_is_not_kept(serve, upstream):
    ask = {"resultType": "input_required", "requestState": "s", "inputRequests": {"q": {
        "method": "elicitation/create", "params": {
            "message": "?", "requestedSchema": {"type": "object", "properties": {}}}}}}
    legacy = [["request", "7", "elicitation/create", json.dumps({
        "message": "?", "requestedSchema": {"type": "object", "properties": {}}})],
        ["expect", "7", 5000], ["reply", ANN]]
    steps = [["reply", ask]] if upstream == "modern" else legacy
    again = [["set", "calls", {"whoami": [["reply", {**TYPED, **ANN}]]}], *steps]
    mv = serve(alpha=says(ANN, upstream, calls={"whoami": again}, mcpvisor=KEEP))
    mv.legacy(capabilities={"elicitation": {}})
    key = mv.start_call("alpha__whoami", {})
    asks = mv.notice("elicitation/create")
    mv.line(json.dumps({"jsonrpc": "2.0", "id": asks.msg["id"],
                        "result": {"action": "accept", "content": {}}}))
    assert mv.answer(key).result["content"] == ANN["content"]
    # The next one is the first that may be.
    assert [age(whoami(mv)) is None for _ in range(2)] == [True, False]


def test_k10_a_retry_is_not_kept_nor_answered_from_what_is(serve):
    mv = serve(alpha=says(ANN, "modern", mcpvisor=KEEP)).speak("modern")
    retry = {"name": "alpha__whoami", "arguments": {}, "inputResponses": {}, "requestState": "s"}
    for _ in range(2):
        assert age(mv.ask("tools/call", retry)) is None
    n = asked(mv)
    assert [age(whoami(mv)) is None for _ in range(2)] == [True, False]
    assert age(mv.ask("tools/call", retry)) is None
    assert asked(mv) == n + 2


def test_k11_too_large(serve):
    mv = serve(alpha=says(text({"viewer": {"id": "x" * 500}}),
                          mcpvisor={**KEEP, "identity_cache_max": 400})).speak("legacy")
    assert [age(whoami(mv)) for _ in range(2)] == [None, None] and asked(mv) == 2


def test_k12_without_a_session_nobody_is_known(serve_conf):
    mv = keeping(serve_conf)
    c = mv.modern()
    assert [age(whoami(c)) for _ in range(3)] == [None] * 3 and asked(mv) == 3
    # Nor from what another one was told.
    known = mv.legacy()
    assert [age(whoami(known)) is None for _ in range(2)] == [True, False]
    assert age(whoami(c)) is None and asked(mv) == 5


def test_k15_one_that_wants_arguments_is_none(serve_conf):
    tool = {"name": "me", "inputSchema": {"type": "object", "required": ["id"],
                                          "properties": {"id": {}}}}
    writes = {"name": "viewer", "inputSchema": {"type": "object"},
              "annotations": {"readOnlyHint": False}}
    mv = keeping(serve_conf, {"tools": [tool, writes], "calls": {
        "me": [["reply", NOBODY]], "viewer": [["reply", NOBODY]]}})
    c = mv.legacy()
    c.call("alpha__me", {"id": 1}).result
    c.call("alpha__viewer", {}).result
    assert state(mv) == only() and nulls(mv) == 0


def test_tools_by_name_a_path_and_words(serve_conf):
    mv = keeping(serve_conf, {"tools": ["session_info", "whoami", "lookup"], "calls": {
        "session_info": [["reply", text({"s": {"user": ""}, "x": 1})]],
        "whoami": [["reply", NOBODY]], "lookup": [["reply", text("Not logged in.")]]}},
        identity_tools=["session_*", "lookup"], identity_path="/s/user",
        identity_null_text=["(?i)not logged in"])
    c = mv.legacy()
    for name, n in (("whoami", 0), ("session_info", 1), ("lookup", 2)):
        c.call("alpha__" + name, {}).result
        assert nulls(mv) == n


def test_none_are_asked(serve_conf):
    mv = keeping(serve_conf, says(NOBODY), identity_tools="none")
    c = mv.legacy()
    assert whoami(c).result == NOBODY and nulls(mv) == 0 and state(mv) == only()


# -- until when --------------------------------------------------------------------------


def test_time(serve):
    mv = serve(alpha=says(ANN, mcpvisor={"identity_cache_ms": 1})).speak("legacy")
    whoami(mv)
    wait_for(lambda: age(whoami(mv)) is None and asked(mv) > 1, 5, "it is asked anew")


def test_a_reload_ends_it(serve_conf):
    mv = keeping(serve_conf)
    c = mv.legacy()
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]
    mv.reload()
    assert state(mv) == only()
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]
    mv.per["alpha"]["identity_cache_ms"] = 0
    mv.reload()
    assert [age(whoami(c)) for _ in range(2)] == [None, None]


def test_another_env_is_another_one_for_calls_on_their_way_too(serve_conf):
    mv = keeping(serve_conf, says(ANN, calls={"whoami": [["file", "go"], ["reply", ANN]]}))
    c = mv.legacy()
    sent = c.start_call("alpha__whoami", {})
    mv["alpha"].wait_input("tools/call")
    mv.per["alpha"]["env"] = {"TOKEN": "other"}
    mv.reload()
    wait_for(lambda: len(mv["alpha"].starts()) == 2, 5, "it is replaced")
    (mv.folder / "go").touch()
    assert sent.message().result == ANN
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]


@pytest.mark.parametrize("upstream", ERAS)
def test_list_changed_ends_it(serve, upstream):
    mv = serve(alpha=says(ANN, upstream, mcpvisor=KEEP)).speak("legacy")
    assert [age(whoami(mv)) is None for _ in range(2)] == [True, False]
    n = len(mv["alpha"].inputs("tools/list"))
    mv["alpha"].run(["changed", "tools"])
    mv["alpha"].wait_input("tools/list", n + 1)
    mv.fence("alpha")
    assert [age(whoami(mv)) is None for _ in range(2)] == [True, False]


# -- credentials -------------------------------------------------------------------------


def far(remote, serve_conf, tmp_path, era="legacy", token="t1"):
    """A remote upstream whose token stands in a file."""
    server = remote(era, tools=["whoami", "other"], token=token)

    def odd(h, r):
        if r.rpc != "tools/call" or r.params["name"] != "whoami":
            return False
        remote_server.answer(h, r, remote_server.result(
            r, {**TYPED, **ANN} if era == "modern" else ANN))
        return True

    server.odd = odd
    where = tmp_path / "token"
    where.write_text(token)
    mv = serve_conf(alpha={"url": server.url}, per={"alpha": {**KEEP, "headers": {
        "Authorization": "Bearer ${file:%s}" % where}}})
    return mv, server, where


def told(server):
    return len([r for r in server.seen("tools/call") if r.params["name"] == "whoami"])


@pytest.mark.parametrize("era", ERAS)
def test_k04_other_credentials(serve_conf, remote, tmp_path, era):
    mv, server, where = far(remote, serve_conf, tmp_path, era)
    c = mv.legacy()
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]
    server.token = "t2"
    where.write_text("t2")
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]
    assert told(server) == 2


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("status", [401, 403])
def test_k05_a_refusal_elsewhere(serve_conf, remote, tmp_path, era, status):
    mv, server, _ = far(remote, serve_conf, tmp_path, era)
    c = mv.legacy()
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]
    assert state(mv) == only(resolved=1)
    server.fail_next = [("tools/call", status, b"who are you")]
    assert "error" in c.call("alpha__other", {}).msg
    assert state(mv) == only(unresolved=1)
    if status == 403:
        assert [age(whoami(c)) is None for _ in range(2)] == [True, False]
        assert told(server) == 2 and state(mv) == only(resolved=1)
    else:
        assert whoami(c).msg.get("error") or told(server) == 2


def test_k05_unauthenticated_in_an_answer(serve_conf):
    refused = text({"data": None, "errors": [
        {"message": "no", "extensions": {"code": "UNAUTHENTICATED"}}]})
    mv = keeping(serve_conf, says(ANN, tools=["whoami", "other"],
                                  calls={"other": [["reply", refused]]}), graphql="on")
    c = mv.legacy()
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]
    assert c.call("alpha__other", {}).result["isError"] is True
    assert state(mv) == only(unresolved=1)
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]


def test_k09_credentials_change_meanwhile(serve_conf, remote, tmp_path):
    mv, server, where = far(remote, serve_conf, tmp_path)
    plain, c = server.odd, mv.legacy()

    def odd(h, r):
        if r.rpc == "tools/call":
            server.gate.wait(20)
        return plain(h, r)

    server.odd = odd
    sent = c.start_call("alpha__whoami", {})
    server.wait_seen("tools/call")
    server.token = "t2"
    where.write_text("t2")
    server.gate.set()
    assert sent.message().result == ANN
    assert [age(whoami(c)) is None for _ in range(2)] == [True, False]


# -- the hint ----------------------------------------------------------------------------

HINT = ("Identity check: %s returned no user. The stored credentials may have expired; "
        "reconnect before relying on who the current user is.")


@pytest.mark.parametrize("client", ERAS)
@pytest.mark.parametrize("upstream", ERAS)
def test_k14_a_hint(serve, client, upstream):
    mv = serve(alpha=says(NOBODY, upstream, mcpvisor={"identity_hint": True})).speak(client)
    got = whoami(mv).result
    assert got["content"] == [*NOBODY["content"], {"type": "text", "text": HINT % "alpha"}]
    assert "isError" not in got
    mv.call("alpha__become_ann", {})
    assert whoami(mv).result["content"] == ANN["content"]


def behind(serve, binary, folder, behaviour, **options):
    """A mcpvisor with those options over another one, and the upstream of that. They call
    theirs by one name, so that its tool is one that is asked who it is for both."""
    folder.mkdir()
    child = Upstream(folder, "alpha", behaviour)
    file = folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"alpha": child.entry()}}))
    mv = serve(alpha={"command": str(binary), "args": ["stdio", "--log-level", "error",
                                                            "--mcp-json", str(file)],
                      "mcpvisor": options})
    return mv, child


@pytest.mark.parametrize("era", ERAS)
def test_k14_two_on_the_way_give_one(serve, binary, tmp_path, era):
    hints = {"identity_hint": True}
    mv, child = behind(serve, binary, tmp_path / "inner", says(NOBODY, era, mcpvisor=hints),
                       **hints, **KEEP)
    got = whoami(mv.speak(era), tool="alpha__alpha__whoami").result
    assert [b["text"] for b in got["content"][1:]] == [HINT % "alpha"]
    assert [e["ans"] for e in logs.ended(mv, 1)] == ["null_identity"]
    child.close()


def test_two_on_the_way_never_say_two_ages(serve, binary, tmp_path):
    mv, child = behind(serve, binary, tmp_path / "inner", says(ANN, mcpvisor=KEEP),
                       identity_cache_ms=1)
    mv.legacy()
    for _ in range(5):
        got = whoami(mv, tool="alpha__alpha__whoami")
        assert got.raw.count(CACHE.encode()) <= 1
        assert got.result["content"] == ANN["content"]
    assert len(child.inputs("tools/call")) == 1
    child.close()


# -- an answer that is on its way ----------------------------------------------------------


@pytest.mark.parametrize("client", ERAS)
def test_many_at_once_and_in_between(serve, client):
    mv = serve(alpha=says(ANN, mcpvisor=KEEP)).speak(client)
    first = whoami(mv)
    keys = [mv.start_call("alpha__whoami", {}) for _ in range(50)]
    for key in keys:
        assert bare(mv.answer(key)) == first.result
    assert asked(mv) == 1


@pytest.mark.parametrize("client", ERAS)
def test_cancelled_on_its_way(serve, client):
    mv = serve(alpha=says(ANN, mcpvisor=KEEP)).speak(client)
    whoami(mv)
    cancels = []
    for key in range(1000, 1050):
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled",
                           "params": {"requestId": key}})
        params = {"name": "alpha__whoami", "arguments": {}}
        if client == "modern":
            params["_meta"] = mv.meta()
        mv.asked.setdefault(json.dumps(key), []).append("tools/call")
        # Both in one write, so that both are read in one turn.
        cancels.append(json.dumps({"jsonrpc": "2.0", "id": key, "method": "tools/call",
                                   "params": params}) + "\n" + note)
    mv.line("\n".join(cancels))
    mv.fence("alpha")
    # Answered before it, or not at all; and nobody upstream hears of any.
    assert asked(mv) == 1 and mv["alpha"].inputs("notifications/cancelled") == []
    assert {e["end"] for e in logs.ended(mv, 51)} <= {"returned", "cancelled"}
    assert age(whoami(mv)) is not None


@pytest.mark.parametrize("client", ERAS)
def test_the_end_of_input_on_its_way(serve, client):
    mv = serve(alpha=says(ANN, mcpvisor=KEEP)).speak(client)
    whoami(mv)
    keys = [mv.start_call("alpha__whoami", {}) for _ in range(20)]
    mv.close_input()
    for key in keys:
        assert age(mv.answer(key)) is not None


def test_a_client_that_leaves_on_its_way(serve_conf):
    mv = keeping(serve_conf)
    c = mv.legacy()
    whoami(c)
    for i in range(20):
        sent = c.start_call("alpha__whoami", {})
        (sent.wire.reset if i % 2 else sent.wire.close)()
    ended = mv.legacy()
    sent = ended.start_call("alpha__whoami", {})
    ended.delete()
    sent.wire.close()
    assert age(whoami(c)) is not None
    assert asked(mv) == 1
