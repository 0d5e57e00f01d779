"""Many clients of the Python SDK: python many.py URL python-legacy|python-auto CLIENTS ROUNDS. It does what many.mjs does."""

import asyncio
import json
import sys

from mcp import Client


async def drive(url, kind, number, rounds):
    async with Client(url, mode=kind.removeprefix("python-")) as client:
        for round in range(rounds):
            name = f"{kind} {number}.{round}"
            script = f"return (await ledger.add({{ name: {json.dumps(name)} }})).name"
            try:
                calling = client.call_tool("codecall_execute", {"script": script})
                ran = await asyncio.wait_for(calling, 30)
                answer = json.loads(ran.content[0].text)
                if answer["status"] != "ok":
                    line = {"failed": json.dumps(answer)}
                elif answer["result"] == name:
                    line = {"ok": True}
                else:
                    line = {"wrong": answer["result"]}
            except Exception as error:
                data = getattr(getattr(error, "error", None), "data", None)
                line = {"failed": repr(error), "mayHaveRun": data.get("mayHaveRun") if isinstance(data, dict) else None}
            print(json.dumps({"name": name, **line}), flush=True)


async def main():
    url, kind, clients, rounds = sys.argv[1:]
    await asyncio.gather(*(drive(url, kind, number, int(rounds)) for number in range(int(clients))))


asyncio.run(main())
