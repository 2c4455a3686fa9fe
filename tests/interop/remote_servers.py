# SPDX-License-Identifier: MIT
"""Servers on Python's mcp package, 1.x and 2.x alike, over every transport that it has;
what remote_tools.mjs offers, as far as the package knows it.
Usage: python remote_servers.py PORT | stdio"""

import asyncio
import contextlib
import sys
import typing

import anyio
import pydantic
import uvicorn
from starlette.applications import Starlette

try:
    import mcp_types as types
    from mcp.server.mcpserver import (
        Context, Elicit, ListRoots, MCPServer, Resolve, Sample)
    FIRST = False
except ImportError:
    from mcp import types
    from mcp.server.fastmcp import Context, FastMCP
    FIRST = True

GENERATION = "python1" if FIRST else "python2"
# options of Streamable HTTP; None: HTTP with SSE
KINDS = {"http": {}, "json": {"json_response": True}, "stateless": {"stateless_http": True},
         "sse": None}


class Answer(pydantic.BaseModel):
    answer: str


def message(text):
    return types.SamplingMessage(role="user",
                                 content=types.TextContent(type="text", text=text))


def offer_questions1(tool):
    @tool
    async def ask_form(text: str, ctx: Context) -> str:
        return (await ctx.elicit(text, Answer)).data.answer

    @tool
    async def ask_url(text: str, ctx: Context) -> str:
        return (await ctx.elicit_url(text, "https://example.org/", "id-" + text)).action

    @tool
    async def ask_model(text: str, ctx: Context) -> str:
        got = await ctx.session.create_message([message(text)], max_tokens=10,
                                               related_request_id=ctx.request_id)
        return got.content.text

    @tool
    async def ask_roots(text: str, ctx: Context) -> str:
        return str((await ctx.session.list_roots()).roots[0].uri)


def offer_questions2(tool):
    async def form(text: str):
        return Elicit(text, Answer)

    async def model(text: str):
        return Sample([message(text)], max_tokens=10)

    async def roots():
        return ListRoots()

    @tool
    async def ask_form(text: str, got: typing.Annotated[Answer, Resolve(form)]) -> str:
        return got.answer

    @tool
    async def ask_model(
            text: str,
            got: typing.Annotated[types.CreateMessageResult, Resolve(model)]) -> str:
        return got.content.text

    @tool
    async def ask_roots(
            text: str,
            got: typing.Annotated[types.ListRootsResult, Resolve(roots)]) -> str:
        return str(got.roots[0].uri)


def offer(server, own):
    tool = server.tool(structured_output=False)
    given_up = [0]

    @tool
    async def greet(name: str) -> str:
        return f"{own}: {name}"

    @tool
    async def count(to: int, ctx: Context) -> str:
        for i in range(1, to + 1):
            await ctx.report_progress(i, to)
            await asyncio.sleep(0.03)
        return f"counted to {to}"

    @tool
    async def chat(text: str, ctx: Context) -> str:
        await ctx.warning(text)
        await asyncio.sleep(0.03)
        return "said"

    @tool
    async def slow(tag: str, ctx: Context) -> str:
        await ctx.report_progress(1, 2)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            given_up[0] += 1
            raise
        return tag

    @server.tool(name="given_up", structured_output=False)
    async def tell_given_up() -> str:
        return str(given_up[0])

    (offer_questions1 if FIRST else offer_questions2)(tool)

    @server.resource(f"interop-{own}://counter")
    def counter() -> str:
        return "0"

    @server.prompt()
    def plan(language: str) -> str:
        return f"Plan a program in {language}"


def make(kind):
    """The server and the app of it, for the path /KIND."""
    name, options = f"{GENERATION}-{kind}", KINDS[kind]
    if FIRST:
        server = FastMCP(name, streamable_http_path=f"/{kind}", sse_path=f"/{kind}",
                         message_path=f"/{kind}/messages/", **(options or {}))
        app = server.sse_app if options is None else server.streamable_http_app
        offer(server, name)
        return server, app()
    server = MCPServer(name)
    offer(server, name)
    if options is None:
        return server, server.sse_app(sse_path=f"/{kind}", message_path=f"/{kind}/messages/")
    return server, server.streamable_http_app(streamable_http_path=f"/{kind}", **options)


async def serve(port):
    made = {kind: make(kind) for kind in KINDS}
    async with contextlib.AsyncExitStack() as stack:
        for kind, (server, _) in made.items():
            if kind != "sse":
                await stack.enter_async_context(server.session_manager.run())
        app = Starlette(routes=[r for _, a in made.values() for r in a.routes])
        http = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port,
                                             log_level="warning"))
        async with anyio.create_task_group() as group:
            group.start_soon(http.serve)
            while not http.started:
                await asyncio.sleep(0.01)
            print(http.servers[0].sockets[0].getsockname()[1], flush=True)


if sys.argv[1] == "stdio":
    server = (FastMCP if FIRST else MCPServer)(f"{GENERATION}-stdio")
    offer(server, f"{GENERATION}-stdio")
    server.run("stdio")
else:
    asyncio.run(serve(int(sys.argv[1])))
