"""The Python SDK as a client that answers: python interactive.py PROGRAM CONFIG, or python interactive.py URL"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent


async def main():
    server = sys.argv[1]
    if not server.startswith("http"):
        server = StdioServerParameters(command=server, args=["serve", "--config", sys.argv[2]])
    asked = []

    async def elicit(context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"name": "Ada"})

    async def sample(context, params):
        content = TextContent(type="text", text="forty-two")
        return CreateMessageResult(role="assistant", content=content, model="m")

    async def roots(context):
        return ListRootsResult(roots=[Root(uri="file:///work")])

    callbacks = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}
    async with Client(server, **callbacks) as client:
        for app in ["legacy", "modern"]:
            script = f"return [await {app}.greet({{}}), await {app}.think({{}}), await {app}.where({{}})]"
            ran = await client.call_tool("codecall_execute", {"script": script})
            assert json.loads(ran.content[0].text)["result"] == ["accept Ada", "forty-two", "file:///work"], ran
            assert asked == [f"[{app}] Your name?"], asked
            asked.clear()
    async with Client(server) as client:
        for app in ["legacy", "modern"]:
            ran = await client.call_tool("codecall_invoke", {"tool": f"{app}:greet", "input": {}})
            assert json.loads(ran.content[0].text)["error"]["code"] == "INPUT_REQUIRED", ran
    print("ok")


asyncio.run(main())
