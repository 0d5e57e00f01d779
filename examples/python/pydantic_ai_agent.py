"""An agent of Pydantic AI that gets one tool instead of many: it writes a script that calls them.

The model is scripted, so that this runs without a key; replace ``FunctionModel`` by the name of a model to talk to one.
"""

import asyncio

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import agentscript
from agentscript import adapters


def search_flights(city: str) -> list[dict]:
    """Flights to a city, with their prices in euros."""
    return [{"city": city, "price": price} for price in {"Lima": [900, 740], "Oslo": [120, 95]}[city]]


async def book(ctx: RunContext[str], city: str, price: int) -> str:
    """Book a flight for the user."""
    return f"{ctx.deps} flies to {city} for {price}"


TOOLS = [search_flights, book]


async def run_script(ctx: RunContext[str], script: str) -> dict:
    """Run a script that calls the tools."""
    try:
        outcome = await agentscript.run_async(script, tools=adapters.from_pydantic_ai(TOOLS, ctx))
    except agentscript.RunError as error:
        # The model reads what is wrong and where, and tries again.
        return error.to_dict()
    return outcome.to_dict()


SCRIPT = """
const found = await Promise.all(['Lima', 'Oslo'].map((city) => searchFlights({ city })));
const [cheapest] = found.flat().sort((a, b) => a.price - b.price);
return await book(cheapest);
"""


def scripted(messages, info):
    """What a model would answer: first a script with a mistake, then the right one, then the result."""
    returned = [part for message in messages for part in message.parts if part.part_kind == "tool-return"]
    if not returned:
        return ModelResponse([ToolCallPart("run_script", {"script": SCRIPT.replace("book(", "bok(")})])
    if returned[-1].content["status"] != "ok":
        assert "bok is not defined" in returned[-1].content["error"]["message"]
        return ModelResponse([ToolCallPart("run_script", {"script": SCRIPT})])
    return ModelResponse([TextPart(returned[-1].content["result"])])


async def main():
    agent = Agent(
        FunctionModel(scripted),
        deps_type=str,
        tools=[run_script],
        instructions="Answer with scripts in AgentScript, a subset of JavaScript. They can call:\n"
        + agentscript.declarations([search_flights]),
    )
    answer = await agent.run("Book the cheapest flight to Lima or Oslo", deps="Ana")
    print(answer.output)
    return answer.output


if __name__ == "__main__":
    assert asyncio.run(main()) == "Ana flies to Oslo for 95"
