# SPDX-License-Identifier: MIT
"""Tasks: of 2025-11-25 between legacy peers, of the extension between modern ones."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mcp import META, MODERN, wait_for

EXT = META + "tasks"
RELATED = META + "related-task"
CAPS = {META + "clientCapabilities": {"extensions": {EXT: {}}}}
CORE = {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}, "tools": {}}
AT = "2026-01-01T00:00:00Z"


def task(key, status="working", ttl=60000, **more):
    return {"taskId": key, "status": status, "createdAt": AT, "lastUpdatedAt": AT,
            "ttl": ttl, **more}


def ext(key, status="working", **more):
    return {"taskId": key, "status": status, "createdAt": AT, "lastUpdatedAt": AT,
            "ttlMs": 60000, **more}


def core(key="t-1", **more):
    done = {"content": [{"type": "text", "text": "done"}],
            "_meta": {RELATED: {"taskId": key}}}
    return {"tools": ["echo", "slow"], "capabilities": CORE,
            "calls": {"slow": [["reply", {"task": task(key)}]]},
            "on": {"tasks/get": [["reply", task(key)]],
                   "tasks/cancel": [["reply", task(key, "cancelled")]],
                   "tasks/result": [["gate", "done"], ["reply", done]],
                   **more.pop("on", {})}, **more}


def extension(key="t-1", **more):
    return {"era": "modern", "tools": ["echo", "slow"],
            "capabilities": {"tools": {}, "extensions": {EXT: {}}},
            "calls": {"slow": [["reply", {**ext(key), "resultType": "task"}]]},
            "on": {"tasks/get": [["reply", ext(key, "input_required", inputRequests={
                       "q": {"method": "elicitation/create", "params": {"message": key}}})]],
                   "tasks/update": [["reply", {}]], "tasks/cancel": [["reply", {}]]}, **more}


def make(c, name="alpha__slow", **kw):
    got = c.ask("tools/call", {"name": name, "arguments": {}, "task": {"ttl": 60000}}, **kw)
    return got.result["task"]["taskId"]


def asked(up, method):
    return [r.msg["params"]["taskId"] for r in up.inputs(method)]


# ---- what is declared ----

@pytest.mark.parametrize("up, legacy, modern", [
    (core(), {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}, None),
    (core(capabilities={"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}),
     {"list": {}, "requests": {"tools": {"call": {}}}}, None),
    (core(capabilities={"tools": {}, "tasks": {"list": {}, "cancel": {}}}), None, None),
    (core(capabilities={"tools": {}}), None, None),
    (core(versions=["2025-06-18"]), None, None),
    (extension(), None, {EXT: {}}),
    (extension(capabilities={"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}),
     None, None)])
def test_what_is_declared_is_what_can_be_passed_on(serve, up, legacy, modern):
    mv = serve(alpha=up, beta={"tools": ["echo"]})
    assert mv.legacy().result["capabilities"].get("tasks") == legacy
    got = mv.legacy("2025-06-18").result["capabilities"]
    assert "tasks" not in got and "extensions" not in got
    got = mv.modern().ask("server/discover").result["capabilities"]
    assert got.get("extensions") == modern and "tasks" not in got


def test_methods_of_what_nobody_has_are_not_there(serve):
    mv = serve(alpha={"tools": ["echo"]})
    for method in ("get", "result", "cancel", "list"):
        mv.legacy()
        assert mv.ask("tasks/" + method, {"taskId": "x"}).code == -32601
    for method in ("get", "result", "cancel", "list", "update"):
        assert mv.modern().ask("tasks/" + method, {"taskId": "x"}, meta=CAPS).code == -32601


# ---- 2025-11-25 ----

def test_a_task_of_2025_11_25_from_its_call_to_its_result(serve):
    mv = serve(alpha=core(), beta=core())
    mv.legacy()
    key = make(mv)
    # The upstream's own id can be read in ours, which nobody can guess.
    assert key.endswith(".t-1") and len(key) == 16 + 4
    other = make(mv, "beta__slow")
    assert other != key and other.endswith(".t-1")
    assert mv["alpha"].inputs("tools/call")[0].msg["params"] == {
        "name": "slow", "arguments": {}, "task": {"ttl": 60000}}
    assert mv.ask("tasks/get", {"taskId": key}).result == task(key)
    waiting = mv.send("tasks/result", {"taskId": key})
    mv["alpha"].wait_input("tasks/result")
    assert mv.ask("tasks/get", {"taskId": key}).result["status"] == "working"
    mv["alpha"].open("done")
    got = mv.answer(waiting).result
    assert got["content"][0]["text"] == "done"
    assert got["_meta"] == {RELATED: {"taskId": key}}
    assert asked(mv["alpha"], "tasks/get") == ["t-1"] * 2
    assert asked(mv["alpha"], "tasks/result") == ["t-1"]
    assert mv.ask("tasks/cancel", {"taskId": other}).result == task(other, "cancelled")
    assert asked(mv["beta"], "tasks/cancel") == ["t-1"]
    assert mv["alpha"].inputs("tasks/cancel") == []


def test_an_escaped_id_is_the_same_id(serve):
    mv = serve(alpha=core("t/1 \u00e4\""))
    mv.legacy()
    key = make(mv)
    raw = "".join("\\u%04x" % ord(ch) for ch in key)
    assert mv.ask("tasks/get", '{"taskId":"%s"}' % raw).result == task(key)
    assert asked(mv["alpha"], "tasks/get") == ["t/1 \u00e4\""]


@pytest.mark.parametrize("params, code", [
    ({"taskId": "t-1"}, -32602), ({"taskId": "AAAAAAAAAAAAAAAA.t-1"}, -32602),
    ({"taskId": ""}, -32602), ({"taskId": 1}, -32602), ({}, -32602),
    ('{"taskId":"a","taskId":"b"}', -32600), ('{"taskId":"a","TaskID":"b"}', -32600)])
def test_unknown_ids_never_reach_an_upstream(serve, params, code):
    mv = serve(alpha=core())
    mv.legacy()
    make(mv)
    for method in ("get", "result", "cancel"):
        assert mv.ask("tasks/" + method, params).code == code
        assert mv["alpha"].inputs("tasks/" + method) == []


def test_the_end_of_its_process_is_the_end_of_a_task(serve):
    mv = serve(alpha=core(mcpvisor={"restart_base_ms": 10}))
    mv.legacy()
    key = make(mv)
    mv["alpha"].run(["kill"])
    wait_for(lambda: len(mv["alpha"].starts()) == 2)
    mv["alpha"].wait_input("tools/list", 2)
    mv.fence("alpha")
    assert mv.ask("tasks/get", {"taskId": key}).code == -32602
    assert mv["alpha"].inputs("tasks/get") == []
    assert make(mv) != key  # the same id of the next process is another task


def test_a_task_is_forgotten_when_its_time_is_over(serve):
    short = task("t-1", ttl=50)
    mv = serve(alpha=core(calls={"slow": [["reply", {"task": short}]]},
                          on={"tasks/get": [["reply", short]]}))
    mv.legacy()
    key = make(mv)
    wait_for(lambda: mv.ask("tasks/get", {"taskId": key}).msg.get("error"))


def test_an_idle_upstream_stays_for_its_task(serve):
    mv = serve(alpha=core(mcpvisor={"idle_stop_ms": 100}))
    mv.legacy()
    key = make(mv)
    mv.nothing(for_ms=400)
    assert mv.ask("tasks/get", {"taskId": key}).result
    assert mv["alpha"].records("E") == []
    mv.ask("tasks/cancel", {"taskId": key})
    wait_for(lambda: mv["alpha"].records("E"), what="it sleeps")


def test_a_list_has_ones_own_tasks_as_they_are_now(serve):
    mv = serve(alpha=core("t-a"), beta=core("t-b", on={"tasks/get": [
        ["reply", task("t-b", "failed", statusMessage="x")]]}), gamma=core("t-c", on={
            "tasks/get": [["error", -32602, "gone"]]}))
    mv.legacy()
    assert mv.ask("tasks/list").result == {"tasks": []}
    keys = [make(mv, n + "__slow") for n in ("beta", "alpha", "gamma")]
    got = mv.ask("tasks/list").result
    assert got == {"tasks": [task(keys[0], "failed", statusMessage="x"), task(keys[1])]}
    for cursor in ("x", "", "99", "-1", "1x", 1):
        assert mv.ask("tasks/list", {"cursor": cursor}).code == -32602


def test_a_long_list_has_pages(serve):
    ids = ["t-%d" % i for i in range(70)]
    mv = serve(alpha={"tools": ["slow"], "capabilities": CORE, "calls": {"slow": [
        ["reply", '{"task":{"taskId":"t${ID}","status":"working","createdAt":"%s",'
         '"lastUpdatedAt":"%s","ttl":60000}}' % (AT, AT)]]}, "on": {"tasks/get": [
             ["reply", '{"status":"working","createdAt":"%s","lastUpdatedAt":"%s","ttl":null,'
              '"x":${PARAMS},"taskId":"t"}' % (AT, AT)]]}})
    mv.check_schema = False
    mv.legacy()
    keys = [make(mv) for _ in ids]
    assert len(set(keys)) == 70
    cursor, seen = None, 0
    for n in (0, 0, 0):  # these answers name no task of ours: none is shown
        got = mv.ask("tasks/list", {"cursor": cursor} if cursor else {}).result
        assert len(got["tasks"]) == n
        cursor, seen = got.get("nextCursor"), seen + 1
    assert cursor is None and seen == 3
    assert len(mv["alpha"].inputs("tasks/get")) == 70


# ---- notices and questions ----

def test_notices_of_a_task_reach_its_owner_under_its_id(serve):
    mv = serve(alpha=core(on={}), beta=core("t-2"))
    mv.legacy()
    key = mv.ask("tools/call", {"name": "alpha__slow", "task": {},
                                "_meta": {"progressToken": "mine"}}).result["task"]["taskId"]
    token = mv["alpha"].inputs("tools/call")[0].msg["params"]["_meta"]["progressToken"]
    related = '"_meta":{"%s":{"taskId":"t-1"}}' % RELATED
    mv["alpha"].run(
        ["notify", "notifications/tasks/status",
         '{"taskId":"t-1","status":"working","createdAt":"%s","lastUpdatedAt":"%s",'
         '"ttl":1e5}' % (AT, AT)],
        ["notify", "notifications/progress",
         '{"progressToken":%d,"progress":1,%s}' % (token, related)],
        ["notify", "notifications/message", '{"level":"error","data":1,%s}' % related],
        # Not its own: nobody's.
        ["notify", "notifications/tasks/status", '{"taskId":"t-2","status":"working"}'],
        ["notify", "notifications/progress", '{"progressToken":99,"progress":1}'])
    got = mv.notice("notifications/tasks/status")
    assert got.params["taskId"] == key and b'"ttl":1e5' in got.raw
    got = mv.notice("notifications/progress").params
    assert got == {"progressToken": "mine", "progress": 1, "_meta": {RELATED: {"taskId": key}}}
    assert mv.notice("notifications/message").params["_meta"] == {RELATED: {"taskId": key}}
    mv.fence("alpha")
    assert mv.notices() == []


def test_notices_and_questions_of_a_task_over_http(serve_http):
    """Of two sessions that share an instance the one whose task it is."""
    mv = serve_http(alpha=core(on={"tasks/result": [
        ["request", "q", "elicitation/create",
         '{"message":"go?","requestedSchema":{"type":"object","properties":{}},'
         '"_meta":{"%s":{"taskId":"t-1"}}}' % RELATED],
        ["expect", "q", 5000],
        ["reply", {"content": [], "_meta": {RELATED: {"taskId": "t-1"}}}]]}))
    mv.check_schema = False
    a, b = (mv.legacy(capabilities={"elicitation": {}}) for _ in range(2))
    key = make(a)
    for method in ("get", "result", "cancel"):
        assert b.ask("tasks/" + method, {"taskId": key}).code == -32602
    assert b.ask("tasks/list").result == {"tasks": []}
    assert a.ask("tasks/list").result == {"tasks": [task(key)]}
    # Somebody else has a call open there: it must not be asked.
    waiting = a.send("tasks/result", {"taskId": key})
    question = waiting.next()
    assert question.msg["method"] == "elicitation/create"
    assert question.params["_meta"] == {RELATED: {"taskId": key}}
    said = a.post({"jsonrpc": "2.0", "id": question.msg["id"], "result": {
        "action": "accept", "content": {}, "_meta": {RELATED: {"taskId": key}}}})
    assert said.status == 202
    assert waiting.next().result["_meta"] == {RELATED: {"taskId": key}}
    answer = next(r.msg for r in mv["alpha"].inputs() if "method" not in r.msg)
    assert answer["result"]["_meta"] == {RELATED: {"taskId": "t-1"}}


# ---- the extension ----

def test_a_task_of_the_extension(serve):
    mv = serve(alpha=extension(), beta=extension())
    mv.modern()
    got = mv.call("alpha__slow", {}, meta=CAPS).result
    key = got["taskId"]
    assert got == {**ext(key), "resultType": "task"} and key.endswith(".t-1")
    got = mv.ask("tasks/get", {"taskId": key}, meta=CAPS).result
    assert got["taskId"] == key and got["inputRequests"]["q"]["params"] == {"message": "t-1"}
    answers = {"q": {"action": "accept", "content": {"a": 1.0}}}
    got = mv.ask("tasks/update", {"taskId": key, "inputResponses": answers}, meta=CAPS)
    assert got.result == {"resultType": "complete"}
    assert mv.ask("tasks/cancel", {"taskId": key}, meta=CAPS).result
    for method in ("get", "update", "cancel"):
        assert asked(mv["alpha"], "tasks/" + method) == ["t-1"]
        assert mv["beta"].inputs("tasks/" + method) == []
    sent = mv["alpha"].inputs("tasks/update")[0].msg["params"]
    assert sent["inputResponses"] == answers
    assert sent["_meta"][META + "clientCapabilities"] == CAPS[META + "clientCapabilities"]
    for method in ("result", "list"):
        assert mv.ask("tasks/" + method, {"taskId": key}, meta=CAPS).code == -32601


def test_who_does_not_declare_the_extension_is_told_so(serve):
    mv = serve(alpha=extension())
    key = mv.modern().call("alpha__slow", {}, meta=CAPS).result["taskId"]
    for method in ("get", "update", "cancel"):
        got = mv.ask("tasks/" + method, {"taskId": key})
        assert got.code == -32021
        assert got.error["data"] == {"requiredCapabilities": {"extensions": {EXT: {}}}}
        assert mv.ask("tasks/" + method, {"taskId": "t-1"}, meta=CAPS).code == -32602
    wish = {"notifications": {"taskIds": [key], "toolsListChanged": True}}
    assert mv.ask("subscriptions/listen", wish).code == -32021
    mv.send("subscriptions/listen", wish, meta=CAPS)
    # News of tasks are a may, and no part of what is agreed to.
    got = mv.notice("notifications/subscriptions/acknowledged").params["notifications"]
    assert "taskIds" not in got and got["toolsListChanged"] is True


def test_the_extension_over_http(serve_http):
    mv = serve_http(alpha=extension())
    a, b = mv.modern(), mv.modern()
    key = a.call("alpha__slow", {}, meta=CAPS).result["taskId"]
    # Who has no name but the id is who knows the id.
    assert b.ask("tasks/get", {"taskId": key}, meta=CAPS).result["taskId"] == key
    assert b.ask("tasks/get", {"taskId": key}, meta=CAPS,
                 headers={"Mcp-Name": "other"}).code == -32020
    assert b.ask("tasks/get", {"taskId": key}, meta=CAPS,
                 headers={"Mcp-Name": key}).result["taskId"] == key
    got = b.send("tasks/get", {"taskId": key})
    assert got.code == -32021 and got.status == 400
    assert b.send("tasks/result", {"taskId": key}, meta=CAPS).status == 404


# ---- from one era to the other: a call is a call ----

@pytest.mark.parametrize("params", [
    '{"name":"alpha__echo","task":{"ttl":1},"arguments":{"a":1.0}}',
    '{"task":{},"name":"alpha__echo","arguments":{"a":1.0}}',
    '{"name":"alpha__echo","arguments":{"a":1.0},"task":{}}',
    '{"name":"alpha__echo","arguments":{"a":1.0} , "task" : {} , "_meta":{"x":1}}'])
@pytest.mark.parametrize("client, up", [
    ("2025-11-25", extension()), ("2025-11-25", core(capabilities={"tools": {}})),
    ("2025-06-18", core()), ("modern", core())])
def test_a_wish_that_cannot_be_meant_is_cut(serve, client, up, params):
    mv = serve(alpha=up)
    mv.speak(client)
    if client == "modern":
        meta = '"_meta":{"%sprotocolVersion":"%s","%sclientCapabilities":{}}' % (
            META, MODERN, META)
        params = params.replace('"_meta":{"x":1}', meta) if "_meta" in params \
            else params[:-1] + "," + meta + "}"
    got = mv.ask("tools/call", params)
    assert got.result["structuredContent"] == {"a": 1} and b'{"a":1.0}' in got.raw
    assert set(mv["alpha"].inputs("tools/call")[0].msg["params"]) <= {
        "name", "arguments", "_meta"}


def test_ids_do_not_cross_eras(serve):
    mv = serve(alpha=core(), beta=extension())
    mv.legacy()
    old = make(mv)
    new = mv.modern().call("beta__slow", {}, meta=CAPS).result["taskId"]
    assert mv.ask("tasks/get", {"taskId": new}, meta=CAPS).result
    assert mv.ask("tasks/get", {"taskId": old}, meta=CAPS).code == -32602
    mv.era = "legacy"
    assert mv.ask("tasks/get", {"taskId": old}).result
    assert mv.ask("tasks/get", {"taskId": new}).code == -32602


def test_a_tool_that_must_be_a_task_says_so(serve):
    tool = {"name": "must", "inputSchema": {"type": "object"},
            "execution": {"taskSupport": "required"}}
    mv = serve(alpha=core(tools=["echo", tool], calls={
        "must": [["error", -32601, "Task augmentation required"]],
        "echo": [["error", -32601, "Unknown"]]}))
    mv.legacy()
    got = mv.call("alpha__must", {})
    assert (got.code, got.error["message"]) == (-32601, "Task augmentation required")
    assert mv.call("alpha__echo", {}).code == -32602
    got = mv.ask("tools/call", {"name": "alpha__echo", "task": {}})
    assert got.code == -32601
    for era in ("2025-06-18", "modern"):
        mv.speak(era)
        got = mv.call("alpha__must", {})
        assert got.code == -32602 and "runs as a task" in got.error["message"]


def test_results_that_only_look_like_tasks_pass_as_they_are(serve):
    result = '{"content":[],"taskId":"t-1","task":{"taskId":"t-1"},"_meta":{"%s":{}}}' % RELATED
    mv = serve(alpha=core(calls={"slow": [["reply", result]]}))
    mv.check_schema = False
    mv.legacy()
    assert mv.call("alpha__slow", {}).span("result").decode() == result


# ---- what a restart leaves ----

def test_a_session_whose_tasks_are_lost_is_lost_too(serve_http):
    mv = serve_http(alpha=core())
    a, b = mv.legacy(), mv.legacy()
    make(a)
    assert b.call("alpha__echo", {}).result
    mv.restart()
    assert a.send("ping").status == 404
    assert b.ask("ping").result == {}


# ---- servers over HTTP ----

class Remote:
    """A few answers, by method; what came is kept."""

    def __init__(self, answers):
        outer = self
        self.seen, self.answers = [], answers

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                self.reply(405, b"")

            do_DELETE = do_GET

            def do_POST(self):
                msg = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.seen.append((msg, dict(self.headers)))
                if "id" not in msg:
                    self.reply(202, b"")
                    return
                got = outer.answers.get(msg["method"])
                what = {"result": got} if got is not None else {
                    "error": {"code": -32601, "message": "no"}}
                self.reply(200, json.dumps({"jsonrpc": "2.0", "id": msg["id"],
                                            **what}).encode())

            def reply(self, status, body):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.daemon_threads = True
        threading.Thread(target=self.httpd.serve_forever, args=(0.02,), daemon=True).start()
        self.url = "http://127.0.0.1:%d/mcp" % self.httpd.server_address[1]

    def got(self, method):
        return next((m, h) for m, h in self.seen if m.get("method") == method)

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()


@pytest.fixture
def remote():
    running = []

    def start(answers):
        running.append(Remote(answers))
        return running[-1]

    yield start
    for s in running:
        s.close()


TOOLS = {"tools": [{"name": "slow", "inputSchema": {"type": "object"}}]}


def test_a_task_of_a_remote_server(serve, remote):
    s = remote({
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": CORE,
                       "serverInfo": {"name": "r", "version": "1"}},
        "tools/list": TOOLS, "tools/call": {"task": task("t 1")}, "tasks/get": task("t 1")})
    mv = serve(alpha={"url": s.url})
    mv.legacy()
    key = make(mv)
    assert mv.ask("tasks/get", {"taskId": key}).result == task(key)
    assert s.got("tasks/get")[0]["params"] == {"taskId": "t 1"}
    assert "Mcp-Name" not in s.got("tasks/get")[1]


def test_a_task_of_a_remote_modern_server(serve, remote):
    page = {"resultType": "complete", "ttlMs": 60000, "cacheScope": "public"}
    s = remote({
        "server/discover": {"supportedVersions": [MODERN], "capabilities": {
            "tools": {}, "extensions": {EXT: {}}}, **page},
        "tools/list": {**TOOLS, **page},
        "tools/call": {**ext("t\u00e4"), "resultType": "task"},
        "tasks/get": {**ext("t\u00e4"), "resultType": "complete"}})
    mv = serve(alpha={"url": s.url})
    key = mv.modern().call("alpha__slow", {}, meta=CAPS).result["taskId"]
    assert mv.ask("tasks/get", {"taskId": key}, meta=CAPS).result["taskId"] == key
    # The header has the name that the server knows.
    assert s.got("tasks/get")[1]["Mcp-Name"] == "=?base64?dMOk?="
