"""An agent of the OpenAI Agents SDK that gets one tool instead of many: it writes a script that calls them.

The model is scripted, so that this runs without a key; leave out ``model=`` to talk to one.
"""

import asyncio
import json

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import agentscript
from agentscript import adapters


@function_tool
async def list_issues(repository: str) -> list[dict]:
    """Open issues of a repository."""
    return [{"id": n, "repository": repository, "votes": votes} for n, votes in enumerate([3, 12, 7], 1)]


@function_tool(failure_error_function=None)
async def add_label(repository: str, id: int, label: str) -> str:
    """Add a label to an issue."""
    if id == 3:
        raise PermissionError("issue 3 is locked")
    return f"{repository}#{id}: {label}"


TOOLS = agentscript.Toolset(adapters.from_openai_agents([list_issues, add_label]))


@function_tool
async def run_script(script: str) -> str:
    """Run a script that calls the tools."""
    try:
        outcome = await agentscript.run_async(script, tools=TOOLS)
    except agentscript.RunError as error:
        return json.dumps(error.to_dict())
    return json.dumps(outcome.to_dict())


SCRIPT = """
const issues = await listIssues({ repository: 'shop' });
const wanted = issues.filter((issue) => issue.votes > 5);
const settled = await Promise.allSettled(wanted.map(({ repository, id }) => addLabel({ repository, id, label: 'hot' })));
return settled.map((one) => one.value ?? `not done: ${one.reason.message}`);
"""


class Scripted(Model):
    """What a model would answer: a script, then its result."""

    async def get_response(self, system_instructions, input, *args, **options):
        assert "declare function listIssues" in system_instructions
        outputs = [item for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
        if not outputs:
            arguments = json.dumps({"script": SCRIPT})
            call = ResponseFunctionToolCall(
                type="function_call", name="run_script", call_id="call_1", arguments=arguments
            )
            return ModelResponse([call], Usage(), None)
        text = "; ".join(json.loads(outputs[-1]["output"])["result"])
        content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
        message = ResponseOutputMessage(
            id="message_1", type="message", role="assistant", status="completed", content=content
        )
        return ModelResponse([message], Usage(), None)

    def stream_response(self, *args, **options):
        raise NotImplementedError("the example does not stream")


async def main():
    set_tracing_disabled(True)
    agent = Agent(
        name="Triage",
        model=Scripted(),
        tools=[run_script],
        instructions="Work with scripts in AgentScript, a subset of JavaScript. They can call:\n" + TOOLS.declarations(),
    )
    answer = await Runner.run(agent, "Label what many want")
    print(answer.final_output)
    return answer.final_output


if __name__ == "__main__":
    assert asyncio.run(main()) == "shop#2: hot; not done: issue 3 is locked"
