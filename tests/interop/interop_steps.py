# SPDX-License-Identifier: MIT
"""The steps of scenario.mjs for the clients of Python's mcp package, in the same words.

An adapter has era, label, and the async functions info, lists[name], call(name,
arguments, on_progress), cancel(name, arguments, on_progress, ready), read, prompt,
complete, watch(uris, tools) as a context manager, and notices, a list; a legacy one also
ping and set_level. It is a file for the venv: nothing but the standard library here."""

import asyncio
import contextlib
import http.client
import json
import pathlib
import re
import sys
import time
import traceback
import urllib.parse

NOTICE_S = 10
START_S = 20
UPDATED = "notifications/resources/updated"
CHANGED = "notifications/tools/list_changed"
LOGGED = "notifications/message"


def emit(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def plain(value):
    """A model of the package as the JSON it was made of."""
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return value


def describe(error):
    inner = getattr(error, "error", None)
    return {"code": getattr(inner, "code", None), "message": str(error),
            "data": plain(getattr(inner, "data", None))}


async def wait_for(check, what):
    end = time.monotonic() + NOTICE_S
    while True:
        seen = check()
        if seen:
            return seen
        if time.monotonic() > end:
            raise TimeoutError(f"not seen within {NOTICE_S} s: {what}")
        await asyncio.sleep(0.01)


async def error_of(coroutine):
    try:
        return {"result": plain(await coroutine)}
    except Exception as error:  # noqa: BLE001: whatever it is goes into the report
        return {"error": describe(error)}


async def pages(fetch, member):
    items, cursor = [], None
    while True:
        page = plain(await fetch(cursor))
        items += page[member]
        cursor = page.get("nextCursor")
        if cursor is None:
            return {member: items}


class Steps:
    def __init__(self, client, conf):
        self.client = client
        self.conf = conf

    async def call(self, name, arguments, on_progress=None):
        return plain(await self.client.call(name, arguments, on_progress))

    async def progress_of(self, name, arguments):
        seen = []

        async def on_progress(progress, total, message):
            seen.append({"progress": progress, "total": total, "message": message})

        result = await self.call(name, arguments, on_progress)
        return {"progress": list(seen), "result": result}

    async def noticed(self, method, match=lambda params: True):
        return await wait_for(lambda: next(
            (n for n in self.client.notices
             if n["method"] == method and match(n.get("params") or {})), None), method)

    def trace_has(self, line):
        trace = pathlib.Path(self.conf["trace"])
        return trace.exists() and line in trace.read_text().splitlines()

    async def aborted(self, name, arguments, started=lambda: True):
        seen = []

        async def on_progress(progress, total, message):
            seen.append(progress)

        ready = lambda: wait_for(lambda: seen and started(), f"progress of {name}")
        return await error_of(self.client.cancel(name, arguments, on_progress, ready))

    async def cancel_modern(self):
        tag = f"tag-{self.client.label}"
        outcome = await self.aborted("modern__slow", {"tag": tag},
                                     lambda: self.trace_has(f"started {tag}"))
        await wait_for(lambda: self.trace_has(f"cancelled {tag}"), "the cancellation")
        return {**outcome, "after": await self.call("modern__greet", {"name": "again"})}

    async def cancel_everything(self):
        outcome = await self.aborted("everything__trigger-long-running-operation",
                                     {"duration": 20, "steps": 100})
        return {**outcome,
                "after": await self.call("everything__echo", {"message": "again"})}

    async def progress_both(self):
        return {"calls": await asyncio.gather(
            self.progress_of("everything__trigger-long-running-operation",
                             {"duration": 0.2, "steps": 2}),
            self.progress_of("modern__count", {"to": 3}))}

    async def watch_everything(self):
        uri = "demo://resource/dynamic/text/1"
        async with self.client.watch(uris=[uri]):
            await self.call("everything__toggle-subscriber-updates", {})
            seen = await self.noticed(UPDATED, lambda p: p["uri"] == uri)
            await self.call("everything__toggle-subscriber-updates", {})
        return {"seen": seen}

    async def watch_modern(self):
        uri = "interop://counter"
        async with self.client.watch(uris=[uri]):
            bumped = await self.call("modern__bump", {})
            seen = await self.noticed(UPDATED, lambda p: p["uri"] == uri)
        return {"seen": seen, "bumped": bumped}

    def changes(self):
        return len([n for n in self.client.notices if n["method"] == CHANGED])

    async def list_changed(self):
        async with self.client.watch(tools=True):
            before = seen = self.changes()
            await self.call("modern__grow", {})
            while True:
                # a notice about an earlier change may still come first
                await wait_for(lambda: self.changes() > seen, "list_changed")
                seen = self.changes()
                listed = await self.client.lists["tools"]()
                if any(t["name"] == "modern__grown" for t in listed["tools"]):
                    break
        return {**listed, "noticed": seen - before,
                "called": await self.call("modern__grown", {})}

    async def ping(self):
        await self.client.ping()
        return {}

    async def log(self):
        await self.client.set_level("debug")
        await self.call("everything__toggle-simulated-logging", {})
        seen = await self.noticed(
            LOGGED, lambda p: re.search("level.message", str(p.get("data"))))
        return {"seen": seen}

    def all(self):
        client, call = self.client, self.call
        read = client.read
        yield "info", client.info
        yield from client.lists.items()
        yield "call_everything", lambda: call("everything__get-structured-content",
                                              {"location": "Chicago"})
        yield "call_filesystem", lambda: call("filesystem__read_text_file",
                                              {"path": self.conf["file"]})
        yield "call_memory", lambda: call("memory__create_entities", {"entities": [
            {"name": client.label, "entityType": "client", "observations": ["ran"]}]})
        yield "call_thinking", lambda: call("sequential-thinking__sequentialthinking", {
            "thought": "one", "nextThoughtNeeded": False, "thoughtNumber": 1,
            "totalThoughts": 1})
        yield "call_modern", lambda: call("modern__greet", {"name": "Bo"})
        yield "is_error_legacy", lambda: call("filesystem__read_text_file",
                                              {"path": "/etc/passwd"})
        yield "is_error_modern", lambda: call("modern__fail", {"why": "no luck"})
        yield "unknown_tool", lambda: error_of(call("everything__no-such-tool", {}))
        yield "unknown_upstream", lambda: error_of(call("nobody__echo", {}))
        yield "read_everything", lambda: read(
            "demo://resource/static/document/features.md")
        yield "read_template", lambda: read("demo://resource/dynamic/text/7")
        yield "read_memory", lambda: read("memory://knowledge-graph")
        yield "read_modern", lambda: read("interop://counter")
        yield "read_modern_template", lambda: read("interop://item/3")
        yield "read_unknown", lambda: error_of(read("nothing://here"))
        yield "prompt_everything", lambda: client.prompt("everything__args-prompt",
                                                         {"city": "Bonn"})
        yield "prompt_modern", lambda: client.prompt("modern__plan", {"language": "c"})
        yield "prompt_unknown", lambda: error_of(client.prompt("everything__none", {}))
        yield "complete_prompt", lambda: client.complete(
            "everything__completable-prompt", None, "name", "A",
            {"department": "Engineering"})
        yield "complete_template", lambda: client.complete(
            None, "demo://resource/dynamic/text/{resourceId}", "resourceId", "12")
        yield "complete_modern", lambda: client.complete("modern__plan", None,
                                                         "language", "c")
        yield "complete_modern_template", lambda: client.complete(
            None, "interop://item/{id}", "id", "1")
        yield "progress_everything", lambda: self.progress_of(
            "everything__trigger-long-running-operation", {"duration": 0.4, "steps": 4})
        yield "progress_modern", lambda: self.progress_of("modern__count", {"to": 5})
        yield "progress_both", self.progress_both
        yield "cancel_modern", self.cancel_modern
        yield "cancel_everything", self.cancel_everything
        yield "watch_everything", self.watch_everything
        yield "watch_modern", self.watch_modern
        yield "list_changed", self.list_changed
        if client.era == "legacy":
            yield "ping", self.ping
            yield "log", self.log


class ServerSteps(Steps):
    """What one of the servers of remote_tools.mjs is asked for; see scenario.mjs."""

    def __init__(self, client, conf, server):
        super().__init__(client, conf)
        self.server = server
        self.uri = f"interop-{server}://counter"

    async def is_listed(self, name, kind="tools", member="name"):
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            listed = await self.client.lists[kind]()
            if any(item[member] == name for item in listed[kind]):
                return
            await asyncio.sleep(0.1)

    def tool(self, name, arguments=None):
        return self.call(f"{self.server}__{name}", arguments or {})

    async def greet(self):
        return await self.tool("greet", {"name": self.client.label})

    async def fail(self):
        return await self.tool("fail", {"why": "no luck"})

    async def count(self):
        return await self.progress_of(f"{self.server}__count", {"to": 6})

    async def prompt(self):
        return await self.client.prompt(f"{self.server}__plan", {"language": "c"})

    async def complete(self):
        return await self.client.complete(f"{self.server}__plan", None, "language", "c")

    async def read(self):
        return await self.client.read(self.uri)

    async def chat(self):
        data = f"{self.client.label} {self.server}"
        await self.client.set_level("debug")
        await self.tool("chat", {"text": data})
        return {"seen": await self.noticed(LOGGED, lambda p: p["data"] == data)}

    async def ask(self, kind):
        return await self.tool(f"ask_{kind}",
                               {"text": f"{self.client.label} {self.server}"})

    async def watch(self):
        async with self.client.watch(uris=[self.uri]):
            bumped = await self.tool("bump")
            updated = await self.noticed(UPDATED, lambda p: p["uri"] == self.uri)
        return {"updated": updated, "bumped": bumped}

    async def grow(self):
        async with self.client.watch(tools=True):
            name = (await self.tool("grow"))["content"][0]["text"]
            await self.noticed(CHANGED)
            await self.is_listed(f"{self.server}__{name}")
        return await self.tool(name)

    async def slow(self):
        outcome = await self.aborted(f"{self.server}__slow", {"tag": "x"})
        end = time.monotonic() + NOTICE_S
        while time.monotonic() < end:
            given = (await self.tool("given_up"))["content"][0]["text"]
            if given != "0":
                break
        return {**outcome, "given": given}

    async def again(self):
        return await self.tool("greet", {"name": "again"})

    def body(self, step):
        if step.startswith("ask_"):
            return lambda: self.ask(step.removeprefix("ask_"))
        return getattr(self, step)


async def run_step(step, body):
    try:
        emit({"step": step, "ok": True, **plain(await body())})
    except Exception as error:  # noqa: BLE001: the next step still runs
        emit({"step": step, "ok": False, "error": describe(error),
              "stack": traceback.format_exc()})


async def run_servers(client, conf):
    async def one(server, wanted):
        steps = ServerSteps(client, conf, server)
        await steps.is_listed(f"{server}__greet")
        await steps.is_listed(steps.uri, "resources", "uri")
        for step in wanted:
            await run_step(f"{server}.{step}", steps.body(step))

    await asyncio.gather(*(one(*item) for item in conf["servers"].items()))


async def run_calls(client, conf):
    """Tools without arguments, by a client that knows what they promise."""
    await run_step("tools", client.lists["tools"])
    for name in conf["calls"]:
        await run_step(name, lambda: client.call(name, {}))


def answers(types):
    """How a client answers: callbacks for sampling, elicitation and roots, by keyword."""
    async def sample(context, params):
        text = "model: " + params.messages[0].content.text
        return types.CreateMessageResult(
            model="interop", role="assistant",
            content=types.TextContent(type="text", text=text))

    async def elicit(context, params):
        if getattr(params, "mode", "form") == "url":
            return types.ElicitResult(action="accept")
        return types.ElicitResult(action="accept",
                                  content={"answer": "form: " + params.message})

    async def roots(context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///srv/interop")])

    return {"sampling_callback": sample, "elicitation_callback": elicit,
            "list_roots_callback": roots}


async def run(opened, conf):
    """Everything, in order; OPENED is a context manager that gives the adapter."""
    begin = time.monotonic()
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(opened)
        emit({"step": "connect", "ok": True})
        if "servers" in conf:
            await run_servers(client, conf)
        elif "calls" in conf:
            await run_calls(client, conf)
        else:
            for step, body in Steps(client, conf).all():
                await run_step(step, body)
        session = client.session_id()
        begin = time.monotonic()
    emit({"step": "close", "ok": True, "ms": (time.monotonic() - begin) * 1000})
    emit({"step": "terminate", "ok": True, "session": session,
          "status": session and status_of(conf["url"], session)})


def status_of(url, session):
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    connection.request("POST", parts.path, '{"jsonrpc":"2.0","id":1,"method":"ping"}',
                       {"Content-Type": "application/json", "Mcp-Session-Id": session})
    return connection.getresponse().status


def config():
    return json.loads(pathlib.Path(sys.argv[1]).read_text())
