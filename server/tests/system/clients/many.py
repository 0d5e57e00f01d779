"""Many clients of the Python SDK: python many.py URL python-legacy|python-auto CLIENTS ROUNDS. It does what many.mjs does."""

import asyncio
import json
import sys

from mcp import Client


async def execute(client, name):
    """Makes a call. Returns what has become of it."""
    script = f"return (await ledger.add({{ name: {json.dumps(name)} }})).name"
    try:
        ran = await asyncio.wait_for(client.call_tool("codecall_execute", {"script": script}), 30)
        answer = json.loads(ran.content[0].text)
    except Exception as error:
        data = getattr(getattr(error, "error", None), "data", None)
        return {"failed": repr(error), "mayHaveRun": data.get("mayHaveRun") if isinstance(data, dict) else None}
    if answer["status"] != "ok":
        return {"failed": json.dumps(answer), "mayHaveRun": answer.get("error", {}).get("toolCalls") != 0}
    return {"ok": True} if answer["result"] == name else {"wrong": answer["result"]}


async def drive(url, kind, number, rounds):
    names = [f"{kind} {number}.{round}" for round in range(rounds)]
    attempts = 0
    while names:
        line = None
        try:
            async with Client(url, mode=kind.removeprefix("python-")) as client:
                while names:
                    line = {"name": names.pop(0), "failed": "the client has ended"}
                    line = {"name": line["name"], **await execute(client, line["name"])}
                    print(json.dumps(line), flush=True)
                    line = None
        except Exception:
            # A connection that breaks ends the client of this SDK, with the call that it waits for.
            attempts += 1
            if attempts == 4:
                raise
            if line:
                print(json.dumps(line), flush=True)


async def main():
    url, kind, clients, rounds = sys.argv[1:]
    await asyncio.gather(*(drive(url, kind, number, int(rounds)) for number in range(int(clients))))


asyncio.run(main())
