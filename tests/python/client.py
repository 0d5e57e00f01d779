"""The Python SDK as a client that tests/node/clients.mjs drives: python client.py legacy|auto URL|COMMAND WORDS…

Each line of the input is a request, each line of the output its answer. Warnings of the SDK go to stderr.
"""

import asyncio
import json
import logging
import sys
import warnings

import mcp.types as types
from mcp import Client, StdioServerParameters

warnings.simplefilter("always")
logging.basicConfig(level=logging.WARNING)


async def elicit(context, params):
    return types.ElicitResult(action="accept", content={"name": "Ada", "check": True})


async def sample(context, params):
    return types.CreateMessageResult(role="assistant", content=types.TextContent(type="text", text="a sampled text"), model="none")


async def main():
    mode, target, *words = sys.argv[1:]
    server = target if target.startswith("http") else StdioServerParameters(command=target, args=words)
    changes = 0

    async def message(received):
        nonlocal changes
        if isinstance(received, types.ToolListChangedNotification):
            changes += 1

    async with Client(server, mode=mode, message_handler=message, elicitation_callback=elicit, sampling_callback=sample) as client:

        async def follow():
            # A connection without a session is asked for changes.
            nonlocal changes
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    changes += 1

        following = asyncio.create_task(follow()) if client.protocol_version >= "2026" else None
        if following:
            # It is subscribed before the first answer.
            await asyncio.sleep(0.3)

        async def call(request):
            steps = []

            async def progress(step, total, text):
                steps.append(step)

            calling = client.call_tool(request["name"], request["arguments"], progress_callback=progress)
            if "abortAfter" in request:
                try:
                    await asyncio.wait_for(calling, request["abortAfter"] / 1000)
                except asyncio.TimeoutError:
                    return {"aborted": True}
            result = await calling
            texts = [block.text for block in result.content if block.type == "text"]
            return {"structured": result.structured_content, "text": "".join(texts), "isError": bool(result.is_error), "progress": steps}

        async def answer(request):
            match request["op"]:
                case "about":
                    return {"name": client.server_info.name, "protocol": client.protocol_version}
                case "list":
                    return {"names": [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]}
                case "changes":
                    return {"changes": changes}
                case "call":
                    return await call(request)

        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                reply = await answer(json.loads(line))
            except Exception as error:
                code = getattr(getattr(error, "error", None), "code", None)
                reply = {"failed": str(error) or type(error).__name__, "code": code}
            print(json.dumps(reply), flush=True)
        if following:
            following.cancel()


asyncio.run(main())
