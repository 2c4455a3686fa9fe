# SPDX-License-Identifier: MIT
"""The client of Python's mcp 2.x, which speaks either era.
Usage: python driver_python2.py CONFIG.json legacy|auto|modern"""

import asyncio
import contextlib
import sys
import warnings

import httpx2
import interop_steps as steps
import mcp
import mcp_types as types
from mcp.client.streamable_http import streamable_http_client

MODES = {"legacy": "legacy", "auto": "auto", "modern": "2026-07-28"}
EVENTS = {"ToolsListChanged": steps.CHANGED, "ResourceUpdated": steps.UPDATED}


class Client:
    def __init__(self, mode):
        self.label = f"python2-{mode}"
        self.era = "legacy" if mode == "legacy" else "modern"
        self.notices = []
        self.session = None
        self.lists = {
            "tools": self._list("list_tools", "tools"),
            "prompts": self._list("list_prompts", "prompts"),
            "resources": self._list("list_resources", "resources"),
            "templates": self._list("list_resource_templates", "resourceTemplates"),
        }

    async def on_message(self, message):
        if not isinstance(message, Exception):
            self.notices.append(steps.plain(message))

    async def on_response(self, response):
        self.session = response.headers.get("mcp-session-id", self.session)

    def session_id(self):
        return self.session

    def _list(self, method, member):
        return lambda: steps.pages(lambda cursor: getattr(self.mcp, method)(
            cursor=cursor, cache_mode="bypass"), member)

    async def info(self):
        return {"server": steps.plain(self.mcp.server_info),
                "capabilities": steps.plain(self.mcp.server_capabilities),
                "instructions": self.mcp.instructions,
                "revision": self.mcp.protocol_version}

    def call(self, name, arguments, on_progress=None):
        return self.mcp.call_tool(name, arguments, progress_callback=on_progress)

    async def cancel(self, name, arguments, on_progress, ready):
        task = asyncio.ensure_future(self.call(name, arguments, on_progress))
        await ready()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            return await task
        raise RuntimeError("given up")

    def read(self, uri):
        return self.mcp.read_resource(uri, cache_mode="bypass")

    def prompt(self, name, arguments):
        return self.mcp.get_prompt(name, arguments)

    def complete(self, prompt, uri, name, value, context=None):
        ref = (types.PromptReference(name=prompt) if prompt else
               types.ResourceTemplateReference(uri=uri))
        return self.mcp.complete(ref, {"name": name, "value": value}, context)

    @contextlib.asynccontextmanager
    async def watch(self, uris=(), tools=False):
        if self.era == "legacy":
            for uri in uris:
                await self.mcp.subscribe_resource(uri)
            yield
            for uri in uris:
                await self.mcp.unsubscribe_resource(uri)
            return
        async with self.mcp.listen(tools_list_changed=tools,
                                   resource_subscriptions=list(uris)) as subscription:
            task = asyncio.ensure_future(self._follow(subscription))
            yield
            task.cancel()

    async def _follow(self, subscription):
        async for event in subscription:
            self.notices.append({"method": EVENTS[type(event).__name__],
                                 "params": {"uri": getattr(event, "uri", None)}})

    def ping(self):
        return self.mcp.send_ping()

    def set_level(self, level):
        return self.mcp.set_logging_level(level)


@contextlib.asynccontextmanager
async def opened(url, mode, answers):
    client = Client(mode)
    async with httpx2.AsyncClient(
            timeout=httpx2.Timeout(30, read=300),
            event_hooks={"response": [client.on_response]}) as transport:
        async with mcp.Client(streamable_http_client(url, http_client=transport),
                              mode=MODES[mode],
                              message_handler=client.on_message, **answers) as client.mcp:
            yield client


warnings.simplefilter("ignore", mcp.MCPDeprecationWarning)
conf = steps.config()
answers = steps.answers(types) if "servers" in conf else {}
asyncio.run(steps.run(opened(conf["url"], sys.argv[2], answers), conf))
