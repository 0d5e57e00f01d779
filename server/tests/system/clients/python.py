"""The Python SDK as a client: python python.py PROGRAM|URL"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters

SCRIPT = """
const names = [];
for (const id of ['usr_001', 'usr_002', 'usr_003']) names.push((await users.get({ id })).name);
return names;
"""


def data(result):
    assert result.structured_content is None, "each answer is sent once"
    return json.loads(result.content[0].text)


async def main():
    server = sys.argv[1]
    if not server.startswith("http"):
        server = StdioServerParameters(command=server, args=["serve", "--demo"])
    async with Client(server) as client:
        listed = await client.list_tools()
        names = [tool.name for tool in listed.tools]
        assert names == ["codecall_search", "codecall_describe", "codecall_execute", "codecall_invoke"], names

        found = await client.call_tool("codecall_search", {"query": "refund an invoice"})
        assert found.content[0].text.startswith("billing:\nrefund({invoiceId: string"), found

        steps = []

        async def progress(step, total, message):
            steps.append(step)

        ran = await client.call_tool("codecall_execute", {"script": SCRIPT}, progress_callback=progress)
        assert len(data(ran)["result"]) == 3, ran
        assert steps == [1, 2, 3, 4, 5, 6], steps

        failed = await client.call_tool("codecall_invoke", {"tool": "users:get", "input": {"id": "nobody"}})
        assert failed.is_error and data(failed)["error"]["code"] == "NOT_FOUND", failed
        try:
            await client.call_tool("users:get", {})
            raise AssertionError("an unknown tool")
        except Exception as error:
            assert "Unknown tool 'users:get'" in str(error), error
    print("ok")


asyncio.run(main())
