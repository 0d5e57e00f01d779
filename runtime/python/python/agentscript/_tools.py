"""Tools: functions of Python that scripts call."""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Union

from . import _json, _native
from ._errors import ToolError
from ._options import suggests
from ._schema import Convert, Invalid, Types, members

Handler = Callable[[dict[str, Any]], Union[Any, Awaitable[Any]]]
CallHandler = Callable[[str, dict[str, Any]], Union[Any, Awaitable[Any]]]


class Tool:
    """A tool with a schema of its own: ``handler`` gets the input of a call, a ``dict``, and gives the result.

    The handler may be a plain or an async function. Its result is converted to JSON; what it raises is an error that the
    script can catch. An input that does not fit ``input_schema`` is an error ``INVALID_INPUT``, and the handler is not called;
    with ``check_input=False`` the handler checks it.
    """

    __slots__ = (
        "name",
        "handler",
        "description",
        "input_schema",
        "output_schema",
        "annotations",
        "check_input",
        "is_async",
    )

    @suggests
    def __init__(
        self,
        name: str,
        handler: Handler,
        *,
        description: str = "",
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        annotations: Mapping[str, Any] | None = None,
        check_input: bool = True,
    ) -> None:
        self.name = name
        self.handler = handler
        self.description = description
        self.input_schema = input_schema
        self.output_schema = output_schema
        self.annotations = annotations
        self.check_input = check_input
        self.is_async = is_async(handler)

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], *, name: str | None = None, description: str | None = None
    ) -> Tool:
        """A tool from a function, plain or async: its type hints become the schemas, its docstring the descriptions.

        The members of the input are its keyword arguments, checked and converted to the types of the hints: dataclasses,
        models of Pydantic, ``TypedDict``, enumerations, dates, UUIDs and so on.
        """
        name = name or getattr(function, "__name__", "")
        if not name or name == "<lambda>":
            raise TypeError(f"a function without a name needs one: tools={{'name': {function!r}}}")
        signature = _Signature(function, name)
        tool = cls(
            name,
            signature.call,
            description=signature.description if description is None else description,
            input_schema=signature.input_schema,
            output_schema=signature.output_schema,
            # The conversion to the types of the hints does.
            check_input=False,
        )
        tool.is_async = is_async(function)
        return tool

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    def _to_dict(self) -> dict[str, Any]:
        row: dict[str, Any] = {"name": self.name, "description": self.description}
        for key, value in (
            ("inputSchema", self.input_schema),
            ("outputSchema", self.output_schema),
            ("annotations", self.annotations),
        ):
            if value is not None:
                row[key] = value
        if not self.check_input:
            row["checkInput"] = False
        return row


AnyTool = Union[Tool, Callable[..., Any]]
Tools = Union["Toolset", Iterable[AnyTool], Mapping[str, AnyTool]]


class Toolset:
    """Tools that are prepared once and used by many runs.

    ``tools`` are functions and :class:`Tool` objects, in a list or under the names that scripts call them by. A tool
    ``users:list`` is also called as ``users.list(…)``, and ``get_user`` as ``getUser(…)``. A call of a tool of an app in
    ``reserved`` ends the run: reserve what scripts must never reach.
    """

    @suggests
    def __init__(self, tools: Iterable[AnyTool] | Mapping[str, AnyTool] = (), *, reserved: Iterable[str] = ()) -> None:
        named: Iterable[tuple[str | None, AnyTool]]
        named = tools.items() if isinstance(tools, Mapping) else ((None, tool) for tool in tools)
        prepared = [_tool(name, tool) for name, tool in named]
        self._tools = {tool.name: tool for tool in prepared}
        rows = [tool._to_dict() for tool in prepared]
        self._native = _native.Toolset(_json.dumps({"tools": rows, "reserved": list(reserved)}))

    def declarations(self) -> str:
        """Declarations of the tools in TypeScript, for the prompt of a model."""
        return self._native.declarations()

    def __iter__(self) -> typing.Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def _find(self, name: str, on_call: CallHandler | None) -> Tool:
        tool = self._tools.get(name)
        if tool is None and on_call is not None:
            return Tool(name, functools.partial(on_call, name))
        if tool is None:
            near = self._native.similar(name)
            hint = f". Did you mean '{near[0]}'?" if near else ""
            raise ToolError(f"Tool '{name}' not found{hint}", code="TOOL_NOT_FOUND")
        return tool


_NO_TOOLS = Toolset()


def toolset(tools: Tools | None) -> Toolset:
    """The tools of a run."""
    if isinstance(tools, Toolset):
        return tools
    return Toolset(tools) if tools else _NO_TOOLS


def _tool(name: str | None, tool: AnyTool) -> Tool:
    if isinstance(tool, Tool):
        if name is None or name == tool.name:
            return tool
        return _renamed(tool, name)
    # Tool objects of frameworks are often callable too, but not with the input of a call.
    if callable(tool) and (inspect.isroutine(tool) or isinstance(tool, functools.partial) or not hasattr(tool, "name")):
        return Tool.from_function(tool, name=name)
    raise TypeError(
        f"{tool!r} is neither a function nor an agentscript.Tool; agentscript.adapters converts the tools of frameworks"
    )


def _renamed(tool: Tool, name: str) -> Tool:
    renamed = Tool(name, tool.handler)
    for slot in Tool.__slots__:
        if slot != "name":
            setattr(renamed, slot, getattr(tool, slot))
    return renamed


def is_async(function: Any) -> bool:
    """Whether calling a function gives an awaitable, as far as that is known before."""
    call = getattr(function, "__call__", None)  # noqa: B004: the method itself is wanted
    return inspect.iscoroutinefunction(inspect.unwrap(function)) or inspect.iscoroutinefunction(call)


class _Signature:
    """What the hints and the docstring of a function say."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        hints = _hints(function)
        text, described = parse_docstring(inspect.getdoc(function) or "")
        self.description = text
        self._function = function
        self._fields: dict[str, Convert] = {}
        self._required: set[str] = set()
        self._takes_more = False
        kinds, properties = Types(), {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._takes_more = True
                continue
            if parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL):
                raise TypeError(f"tool '{name}': parameter '{parameter.name}' cannot be given by name, as tools need it")
            schema, convert = kinds.of(hints.get(parameter.name, Any))
            if parameter.name in described and "description" not in schema:
                schema = {**schema, "description": described[parameter.name]}
            if parameter.default is inspect.Parameter.empty:
                self._required.add(parameter.name)
            elif parameter.default is None or isinstance(parameter.default, (bool, int, float, str)):
                schema = {**schema, "default": parameter.default}
            properties[parameter.name] = schema
            self._fields[parameter.name] = convert
        self.input_schema: dict[str, Any] = {"type": "object", "properties": properties}
        if self._required:
            self.input_schema["required"] = [key for key in properties if key in self._required]
        self.input_schema["additionalProperties"] = self._takes_more
        if kinds.definitions:
            self.input_schema["$defs"] = kinds.definitions
        self.output_schema = _output(hints)

    def call(self, value: dict[str, Any]) -> Any:
        """Calls the function with the input of a call."""
        known = {key: entry for key, entry in value.items() if key in self._fields} if self._takes_more else value
        try:
            arguments = members(known, self._fields, self._required)
        except Invalid as error:
            raise ToolError(str(error), code="INVALID_INPUT") from None
        return self._function(**{**value, **arguments})


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = function
    if not inspect.isroutine(function):
        target = getattr(function, "func", None) or type(function).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError):
        # Hints that only a type checker can resolve are none.
        return {}


def _output(hints: dict[str, Any]) -> dict[str, Any] | None:
    if "return" not in hints:
        return None
    kinds = Types()
    schema, _ = kinds.of(hints["return"])
    if kinds.definitions:
        schema = {**schema, "$defs": kinds.definitions}
    return schema or None


_SECTION = re.compile(
    r"^(args|arguments|parameters|params|returns?|yields?|raises|examples?|notes?|attributes|see also|warns?)\s*:?\s*$",
    re.IGNORECASE,
)
_GOOGLE = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^(\w+)\s*(?::.*)?$")
_SPHINX = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")


def parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description and those of the parameters, in the styles of Google, NumPy and Sphinx."""
    head: list[str] = []
    described: dict[str, str] = {}
    section, is_numpy, name = "", False, ""
    lines = text.splitlines()
    for index, line in enumerate(lines):
        sphinx = _SPHINX.match(line.strip())
        heading = _SECTION.match(line)
        if sphinx:
            section, name = "sphinx", sphinx[1]
            described[name] = sphinx[2]
        elif line.strip().startswith(":") and section in ("", "sphinx"):
            section, name = "sphinx", ""
        elif heading:
            section, name = heading[1].lower(), ""
            is_numpy = index + 1 < len(lines) and set(lines[index + 1].strip()) == {"-"}
        elif not section:
            head.append(line)
        elif section in ("args", "arguments", "parameters", "params"):
            start = (_NUMPY if is_numpy else _GOOGLE).match(line)
            indent = len(line) - len(line.lstrip())
            if start and (is_numpy or indent <= 4):
                name = start[1]
                described[name] = "" if is_numpy else start[2]
            elif name and line.strip() and set(line.strip()) != {"-"}:
                described[name] = f"{described[name]} {line.strip()}".strip()
        elif section == "sphinx" and name and line.strip():
            described[name] = f"{described[name]} {line.strip()}"
    return "\n".join(head).strip(), {key: value for key, value in described.items() if value}
