"""Tools of agent frameworks as tools of scripts.

Each function takes the tool objects of one framework and gives a list for ``tools=``. The framework itself checks the input of
a call and makes it; this module imports none of them before it is asked to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ._errors import ToolError
from ._tools import Tool

__all__ = ["from_langchain", "from_llama_index", "from_openai_agents", "from_pydantic_ai", "from_smolagents"]


def from_langchain(tools: Iterable[Any]) -> list[Tool]:
    """Tools of LangChain and LangGraph: objects of ``BaseTool``, as ``@tool`` makes them."""

    def convert(tool: Any) -> Tool:
        schema = tool.tool_call_schema
        if not isinstance(schema, dict):
            schema = schema.model_json_schema()

        async def call(value: dict[str, Any]) -> Any:
            return await tool.ainvoke(value)

        return Tool(tool.name, call, description=tool.description, input_schema=_parameters(schema), check_input=False)

    return [convert(tool) for tool in tools]


def from_openai_agents(tools: Iterable[Any], context: Any = None) -> list[Tool]:
    """Tools of the OpenAI Agents SDK: objects of ``FunctionTool``, as ``@function_tool`` makes them.

    ``context`` is what they see as the context of the run. What a tool raises is a text for the model there; one made with
    ``failure_error_function=None`` raises, so that the script can catch it.
    """
    from agents.tool_context import ToolContext  # type: ignore[import-not-found, unused-ignore]

    def convert(tool: Any) -> Tool:
        count = 0

        async def call(value: dict[str, Any]) -> Any:
            nonlocal count
            count += 1
            text = json.dumps(value)
            call_id = f"script_{tool.name}_{count}"
            given = ToolContext(context, tool_name=tool.name, tool_call_id=call_id, tool_arguments=text)
            return await tool.on_invoke_tool(given, text)

        schema = _parameters(tool.params_json_schema)
        return Tool(tool.name, call, description=tool.description, input_schema=schema, check_input=False)

    return [convert(tool) for tool in tools]


def from_pydantic_ai(tools: Iterable[Any], context: Any = None) -> list[Tool]:
    """Tools of Pydantic AI: objects of ``Tool``, or functions as its agents take them.

    ``context`` is the ``RunContext`` of the agent's own tool that runs the script, for tools that take one.
    """
    from pydantic import ValidationError  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai import Tool as PydanticTool  # type: ignore[import-not-found, unused-ignore]

    def convert(tool: Any) -> Tool:
        made = tool if isinstance(tool, PydanticTool) else PydanticTool(tool)
        schema = made.function_schema
        if made.takes_ctx and context is None:
            raise TypeError(f"the tool '{made.name}' takes a RunContext: from_pydantic_ai(tools, context)")

        async def call(value: dict[str, Any]) -> Any:
            try:
                arguments = schema.validator.validate_python(value)
            except ValidationError as error:
                raise ToolError(str(error), code="INVALID_INPUT") from error
            return await schema.call(arguments, context)

        description = made.description or ""
        return Tool(
            made.name,
            call,
            description=description,
            input_schema=schema.json_schema,
            output_schema=getattr(schema, "return_schema", None) or None,
            check_input=False,
        )

    return [convert(tool) for tool in tools]


def from_llama_index(tools: Iterable[Any]) -> list[Tool]:
    """Tools of LlamaIndex: objects of ``AsyncBaseTool``, such as ``FunctionTool``."""

    def convert(tool: Any) -> Tool:
        async def call(value: dict[str, Any]) -> Any:
            output = await tool.acall(**value)
            if output.is_error:
                raise ToolError(str(output.content)) from getattr(output, "exception", None)
            return output.raw_output

        metadata = tool.metadata
        schema = _parameters(metadata.get_parameters_dict())
        return Tool(metadata.get_name(), call, description=metadata.description, input_schema=schema, check_input=False)

    return [convert(tool) for tool in tools]


def from_smolagents(tools: Iterable[Any]) -> list[Tool]:
    """Tools of smolagents: objects of ``Tool``, as ``@tool`` makes them."""

    def convert(tool: Any) -> Tool:
        properties = {name: _smolagents_schema(given) for name, given in tool.inputs.items()}
        required = [name for name, given in tool.inputs.items() if not given.get("nullable")]
        schema = {"type": "object", "properties": properties, "required": required}
        output = {key: value for key, value in {"type": tool.output_type}.items() if value not in ("any", None)}

        def call(value: dict[str, Any]) -> Any:
            return tool(**value)

        return Tool(
            tool.name,
            call,
            description=tool.description,
            input_schema=schema,
            output_schema=output or None,
            check_input=False,
        )

    return [convert(tool) for tool in tools]


def _parameters(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an input without the titles that generators write, which say nothing that the names do not."""
    return {key: value for key, value in schema.items() if key not in ("title", "description")}


def _smolagents_schema(given: dict[str, Any]) -> dict[str, Any]:
    schema = {key: value for key, value in given.items() if key != "nullable"}
    if schema.get("type") == "any":
        del schema["type"]
    return schema
