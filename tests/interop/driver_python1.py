# SPDX-License-Identifier: MIT
"""The client of Python's mcp 1.x, which is legacy.
Usage: python driver_python1.py CONFIG.json"""

import asyncio
import contextlib

import interop_steps as steps
from mcp import ClientSession, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl


class Client:
    era = "legacy"
    label = "python1"

    def __init__(self):
        self.notices = []
        self.lists = {
            "tools": self._list("list_tools", "tools"),
            "prompts": self._list("list_prompts", "prompts"),
            "resources": self._list("list_resources", "resources"),
            "templates": self._list("list_resource_templates", "resourceTemplates"),
        }

    async def on_message(self, message):
        if isinstance(message, types.ServerNotification):
            self.notices.append(steps.plain(message.root))

    def _list(self, method, member):
        return lambda: steps.pages(lambda cursor: getattr(self.session, method)(
            params=types.PaginatedRequestParams(cursor=cursor)), member)

    async def info(self):
        hello = steps.plain(self.hello)
        return {"server": hello["serverInfo"], "capabilities": hello["capabilities"],
                "instructions": hello["instructions"],
                "revision": hello["protocolVersion"]}

    def call(self, name, arguments, on_progress=None):
        return self.session.call_tool(name, arguments, progress_callback=on_progress)

    async def cancel(self, name, arguments, on_progress, ready):
        # this client has no cancel of its own: the number of the call is its last one
        task = asyncio.ensure_future(self.call(name, arguments, on_progress))
        await ready()
        await self.session.send_notification(types.ClientNotification(
            types.CancelledNotification(params=types.CancelledNotificationParams(
                requestId=self.session._request_id - 1, reason="enough"))))
        done, _ = await asyncio.wait([task], timeout=0.5)
        if done:
            return task.result()
        task.cancel()
        raise RuntimeError("never answered")

    def read(self, uri):
        return self.session.read_resource(AnyUrl(uri))

    def prompt(self, name, arguments):
        return self.session.get_prompt(name, arguments)

    def complete(self, prompt, uri, name, value, context=None):
        ref = (types.PromptReference(type="ref/prompt", name=prompt) if prompt else
               types.ResourceTemplateReference(type="ref/resource", uri=uri))
        return self.session.complete(ref, {"name": name, "value": value}, context)

    @contextlib.asynccontextmanager
    async def watch(self, uris=(), tools=False):
        for uri in uris:
            await self.session.subscribe_resource(AnyUrl(uri))
        yield
        for uri in uris:
            await self.session.unsubscribe_resource(AnyUrl(uri))

    def ping(self):
        return self.session.send_ping()

    def set_level(self, level):
        return self.session.set_logging_level(level)


@contextlib.asynccontextmanager
async def opened(url, old, answers):
    client = Client()
    async with ((sse_client if old else streamable_http_client)(url) as (read, write, *more),
                ClientSession(read, write, message_handler=client.on_message,
                              **answers) as session):
        client.session = session
        client.session_id = more[0] if more else lambda: None
        client.hello = await session.initialize()
        yield client


conf = steps.config()
answers = steps.answers(types) if "servers" in conf else {}
asyncio.run(steps.run(opened(conf["url"], "sse" in conf, answers), conf))
