"""A model of LangChain with one tool instead of many: it writes a script that calls them.

The model is scripted, so that this runs without a key; any chat model with ``bind_tools`` takes its place.
"""

import asyncio
import json

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool

import agentscript
from agentscript import adapters


@tool
def read_sensor(room: str, kind: str = "temperature") -> float:
    """Value of a sensor in a room."""
    return {"cellar": 11.5, "attic": 27.0, "kitchen": 21.0}[room]


TOOLS = agentscript.Toolset(adapters.from_langchain([read_sensor]))


@tool
async def run_script(script: str) -> str:
    """Run a script that calls the tools."""
    try:
        outcome = await agentscript.run_async(script, tools=TOOLS)
    except agentscript.RunError as error:
        return json.dumps(error.to_dict())
    return json.dumps(outcome.to_dict())


SCRIPT = """
const rooms = ['cellar', 'kitchen', 'attic'];
const values = await Promise.all(rooms.map((room) => readSensor({ room })));
return rooms[values.indexOf(Math.max(...values))];
"""


def scripted():
    """What a model would answer: a script, then its result."""
    yield AIMessage("", tool_calls=[{"name": "run_script", "args": {"script": SCRIPT}, "id": "call_1"}])
    yield AIMessage("The attic is the warmest room.")


async def main():
    model = GenericFakeChatModel(messages=scripted())
    messages = [
        SystemMessage("Answer with scripts in AgentScript, a subset of JavaScript. They can call:\n" + TOOLS.declarations()),
        HumanMessage("Which room is the warmest?"),
    ]
    while True:
        answer = await model.ainvoke(messages)
        messages.append(answer)
        if not answer.tool_calls:
            print(answer.content)
            return messages
        for call in answer.tool_calls:
            messages.append(await run_script.ainvoke({"type": "tool_call", **call}))


if __name__ == "__main__":
    history = asyncio.run(main())
    assert json.loads(history[3].content)["result"] == "attic"
