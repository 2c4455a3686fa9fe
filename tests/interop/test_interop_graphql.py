# SPDX-License-Identifier: MIT
"""A real GraphQL server behind mcpvisor: what its failures are for a client of MCP."""

import json
import subprocess
import time

import pytest

import interop_env as env
from interop_remote import Remote
from interop_wire import Wire

OPERATIONS = """
# One user, with what may be hidden.
query GetUser($id: ID!) { user(id: $id) { ...Parts email } }
query Plain($id: ID!) { user(id: $id) { ...Parts } }
fragment Parts on User { id name }
query Users($filter: Filter) { users(filter: $filter) { id } }
query Viewer { viewer { id } }
query Echo($n: BigInt) { echo(n: $n) }
query Slow($ms: Int!) { slow(ms: $ms) }
query Status($code: Int!, $after: Int) { status(code: $code, after: $after) }
query Code($code: String!) { code(code: $code) }
query Bug { bug }
query Long($bytes: Int!) { long(bytes: $bytes) }
query Wrong { user(id: 1) { id nothing } }
mutation Rename($id: ID!, $name: String) { rename(id: $id, name: $name) { id name } }
mutation RenameAndFail($id: ID!) { renameAndFail(id: $id) { id } }
mutation RenameSlowly($id: ID!, $ms: Int!) { renameSlowly(id: $id, ms: $ms) { id } }
"""


@pytest.fixture(scope="module")
def yoga(able, tmp_path_factory):
    server = Remote([env.NODE, str(env.HERE / "graphql_yoga.mjs")],
                    tmp_path_factory.mktemp("yoga") / "log")
    yield server
    server.stop()


class Front:
    """mcpvisor over the endpoint, and a client of it."""

    def __init__(self, folder, url, modern, **options):
        (folder / "ops.graphql").write_text(OPERATIONS)
        given = {"kind": '"graphql"', "url": json.dumps(url),
                 "operations": '["ops.graphql"]', "mutations": '"explicit"', **options}
        conf = folder / "mcpvisor.conf"
        conf.write_text("list_wait_ms = 30000;\nupstream : { crm : { %s }; };\n" % " ".join(
            f"{k} = {v};" for k, v in given.items()))
        self.log = folder / "log"
        self.argv = [env.MCPVISOR, "stdio", "--conf", str(conf)]
        self.environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
        self.wire = Wire(self.argv, self.environ, self.log, modern) if modern is not None else None
        if modern is False:
            self.wire.initialize()

    def tools(self):
        return {t["name"]: t for t in json.loads(self.wire.result("tools/list"))["tools"]}

    def call(self, name, arguments="{}"):
        return json.loads(self.wire.result(
            "tools/call", f'"name":"crm__{name}","arguments":{arguments}'))

    def failed(self, name, arguments="{}"):
        result = self.call(name, arguments)
        assert result.get("isError") is True, result
        assert "structuredContent" not in result
        return result["content"][0]["text"]


@pytest.fixture(params=[False, True], ids=["legacy", "modern"])
def front(request, yoga, tmp_path):
    made = []

    def make(path="/graphql", **options):
        folder = tmp_path / f"f{len(made)}"
        folder.mkdir()
        made.append(Front(folder, yoga.url(path), request.param, **options))
        return made[-1]

    yield make
    for f in made:
        f.wire.close()


def test_tools_and_good_answers(front):
    f = front(fields='["Query.user"]')
    tools = f.tools()
    assert len(tools) == 15  # those of the file and the field
    assert tools["crm__user"]["description"] == "One user, if there is such."
    filter_ = tools["crm__Users"]["inputSchema"]["properties"]["filter"]
    assert filter_["properties"]["status"]["enum"] == ["OPEN", "CLOSED"]
    assert filter_["properties"]["status"]["default"] == "OPEN"
    result = f.call("Plain", '{"id": "2"}')
    assert result["structuredContent"] == {"data": {"user": {"id": "2", "name": "user 2"}}}
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    made = f.call("user", '{"id": "2"}')["structuredContent"]["data"]["user"]
    assert made == {"id": "2", "name": "user 2", "email": "2@x"}  # no users in a user
    assert f.call("Users", '{"filter": {"ids": ["7"]}}')["structuredContent"] == {
        "data": {"users": [{"id": "7"}]}}
    assert f.call("Plain", '{"id": "404"}')["structuredContent"] == {"data": {"user": None}}


def test_long_numbers(front):
    f = front(scalars='"{\\"BigInt\\": {\\"type\\": \\"integer\\"}}"')
    f.call("Echo", '{"n": 12345678901234567890}')
    # Its own parser of JSON has doubles; that the digits arrive is seen elsewhere.
    assert f.call("Echo", '{"n": 12}')["structuredContent"] == {"data": {"echo": "value 12"}}


def test_partial_and_null_roots(front):
    f = front()
    partial = f.call("GetUser", '{"id": "1"}')
    assert partial.get("isError") in (None, False)
    seen = partial["structuredContent"]
    assert list(seen)[0] == "_warning" and seen["data"]["user"]["email"] is None
    assert json.loads(partial["content"][0]["text"]) == seen
    assert partial["_meta"]["io.github.mcpvisor/graphql"]["outcome"] == "partial"
    text = f.failed("Viewer")
    assert text.startswith(
        "crm: field viewer: You must sign in (UNAUTHENTICATED). Not permitted with the "
        "current credentials; retrying will not help.")


def test_failures_of_resolvers(front):
    f = front()
    text = f.failed("Bug")
    assert "hush" not in text and "The server failed; retrying once may succeed." in text
    text = f.failed("Code", '{"code": "NOT_FOUND"}')
    assert "check the id." in text and "secret.js" not in text
    assert "a fault in the gateway's operation" in f.failed("Wrong")


@pytest.mark.parametrize("code, after, words", [
    (400, None, ["HTTP 400", "status 400"]),
    (401, None, ["credentials for crm were refused; retrying will not help"]),
    (403, None, ["credentials for crm were refused"]),
    (404, None, ["HTTP 404"]),
    (429, 7, ["HTTP 429", "retry after 7 s"]),
    (500, None, ["HTTP 500. This is a server-side fault.", "status 500"]),
    (503, 20, ["HTTP 503. This is a server-side fault; retry after 20 s may succeed."]),
])
def test_statuses(front, code, after, words):
    text = front().failed("Status", json.dumps(
        {"code": code, **({"after": after} if after else {})}))
    for word in words:
        assert word in text, text


def test_another_path(front):
    f = front("/elsewhere", schema='"none"')
    assert "answered HTTP 404" in f.failed("Plain", '{"id": "1"}')


def test_time(front, yoga):
    f = front(request_ms=400)
    start = time.monotonic()
    assert "no complete answer within 400 ms" in f.failed("Slow", '{"ms": 5000}')
    assert time.monotonic() - start < 4
    before = int(yoga.ask("/count"))
    text = f.failed("RenameSlowly", '{"id": "1", "ms": 5000}')
    assert "may already have been applied; check before repeating" in text
    assert int(yoga.ask("/count")) == before + 1  # it was


def test_slow_bodies(front):
    f = front("/drip", schema='"none"')
    assert f.call("Plain", '{"id": "2"}')["structuredContent"]["data"]["user"]["id"] == "2"
    f = front("/drip", schema='"none"', request_ms=150)
    assert "within 150 ms" in f.failed("Long", '{"bytes": 2000}')


def test_mutations(front, yoga):
    f = front(mutations='"none"')
    assert not [name for name in f.tools() if "Rename" in name]
    f = front()
    assert f.call("Rename", '{"id": "3", "name": null}')["structuredContent"] == {
        "data": {"rename": {"id": "3", "name": None}}}
    text = f.failed("RenameAndFail", '{"id": "3"}')
    assert "verify before retrying" in text and "may succeed" not in text


def test_long_answers(front):
    f = front(response_max=100000)
    assert len(f.call("Long", '{"bytes": 90000}')["content"][0]["text"]) > 90000
    assert "longer than 100000 bytes" in f.failed("Long", '{"bytes": 100000}')


def test_closed_to_introspection(front):
    f = front("/closed")
    assert "introspection is disabled there" in f.failed("Plain", '{"id": "1"}')
    f = front("/closed", schema='"none"')
    assert f.call("Plain", '{"id": "1"}')["structuredContent"]["data"]["user"]["id"] == "1"


def test_what_the_model_writes(front, yoga):
    f = front(execute_tool='"queries"')
    before = int(yoga.ask("/count"))
    result = f.call("crm_execute", json.dumps({
        "query": "query A($id: ID!) { user(id: $id) { friends { id } } }",
        "variables": {"id": "2"}}))
    assert result["structuredContent"] == {
        "data": {"user": {"friends": [{"id": "2"}, {"id": "3"}]}}}
    assert "got a mutation" in f.failed("crm_execute", json.dumps(
        {"query": "mutation { rename(id: 1) { id } }"}))
    assert "Change the query." in f.failed("crm_execute", json.dumps(
        {"query": "{ nothing }"}))
    assert int(yoga.ask("/count")) == before


def test_an_sdk_that_checks_output(yoga, tmp_path):
    f = Front(tmp_path, yoga.url("/graphql"), None, output_schema="true")
    done = subprocess.run([env.NODE, str(env.HERE / "driver_graphql.mjs"), json.dumps({
        "command": str(f.argv[0]), "args": f.argv[1:], "env": f.environ, "calls": [
            ["crm__Plain", {"id": "2"}], ["crm__GetUser", {"id": "1"}], ["crm__Viewer", {}]]})],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert all("outputSchema" in t for t in told["tools"])
    good, partial, failed = told["results"]
    assert good["structuredContent"]["data"]["user"]["id"] == "2"
    assert "_warning" in partial["structuredContent"]
    assert failed["isError"] is True and "retrying will not help" in failed["content"][0]["text"]
