"""Functions as tools: their schemas, declarations and inputs."""

import dataclasses
import datetime
import decimal
import enum
import functools
import typing
import uuid
from typing import Annotated, Any, Literal, Optional, Union

import pytest

import agentscript
from agentscript import Tool, Toolset
from agentscript._tools import parse_docstring


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Item:
    sku: str
    count: int = 1


@dataclasses.dataclass
class Tree:
    name: str
    children: "list[Tree]" = dataclasses.field(default_factory=list)


class Address(typing.TypedDict, total=False):
    street: str
    zip: int


def order(
    items: list[Item],
    color: Color,
    at: datetime.datetime,
    kind: Literal["gift", "own"] = "own",
    note: Optional[str] = None,
    price: Annotated[float, "In euros"] = 0,
) -> dict[str, Any]:
    """Places an order.

    It is sent at once.

    Args:
        items: What to send,
            in any order.
        color (Color): Of the paper.
        at: When.

    Returns:
        The order.
    """
    return {"items": items, "color": color, "year": at.year, "kind": kind, "note": note, "price": price}


def test_a_schema_from_hints_and_docstring():
    tool = Tool.from_function(order)
    assert tool.description == "Places an order.\n\nIt is sent at once."
    assert tool.input_schema == {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": {"$ref": "#/$defs/Item"},
                "description": "What to send, in any order.",
            },
            "color": {"enum": ["red", "blue"], "description": "Of the paper."},
            "at": {"type": "string", "format": "date-time", "description": "When."},
            "kind": {"enum": ["gift", "own"], "default": "own"},
            "note": {"type": ["string", "null"], "default": None},
            "price": {"type": "number", "description": "In euros", "default": 0},
        },
        "required": ["items", "color", "at"],
        "additionalProperties": False,
        "$defs": {
            "Item": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
                "required": ["sku"],
                "additionalProperties": False,
            }
        },
    }


def test_declarations():
    assert agentscript.declarations([order]) == (
        "/** Places an order. It is sent at once. */\n"
        "declare function order(input: {\n"
        "  // What to send, in any order.\n"
        "  items: {\n    sku: string;\n    count?: number;\n  }[];\n"
        '  color: "red" | "blue"; // Of the paper.\n'
        "  at: string; // When. (date-time)\n"
        '  kind?: "gift" | "own"; // default "own"\n'
        "  note?: string | null;\n"
        "  price?: number; // In euros (default 0)\n"
        "}): Promise<Record<string, unknown>>;\n"
    )


def test_inputs_become_what_the_hints_promise():
    seen = []

    def spy(items: list[Item], color: Color, at: datetime.datetime, tree: Tree, where: Address, id: uuid.UUID):
        seen.append((items, color, at, tree, where, id))

    script = """await spy({
        items: [{ sku: 'a' }, { sku: 'b', count: 2 }], color: 'red', at: new Date(0),
        tree: { name: 'x', children: [{ name: 'y' }] }, where: { zip: 1000 }, id: '00000000-0000-0000-0000-000000000001',
    })"""
    agentscript.run(script, tools=[spy])
    assert seen == [
        (
            [Item("a"), Item("b", 2)],
            Color.RED,
            datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc),
            Tree("x", [Tree("y")]),
            {"zip": 1000},
            uuid.UUID(int=1),
        )
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{}", "'items' is missing"),
        ("{ items: [{ sku: 1 }], color: 'red', at: '2024-01-01' }", "items.0.sku: must be a string, not 1"),
        ("{ items: [{ sku: 'a', size: 1 }], color: 'red', at: '2024-01-01' }", "items.0: there is no 'size'"),
        ("{ items: [], color: 'green', at: '2024-01-01' }", "color: must be one of 'red', 'blue', not 'green'"),
        ("{ items: [], color: 'red', at: 'soon' }", "at: must be an ISO date with a time, not 'soon'"),
        ("{ items: [], color: 'red', at: '2024-01-01', price: true }", "price: must be a number, not True"),
        ("{ items: [], color: 'red', at: '2024-01-01', note: 3 }", "note: must be a string, not 3; or must be null"),
        ("{ items: [], color: 'red', at: '2024-01-01', more: 1 }", "there is no 'more'; there are: items, color"),
    ],
)
def test_inputs_that_do_not_fit(given, message):
    with pytest.raises(agentscript.ToolCallError) as caught:
        agentscript.run(f"await order({given})", tools=[order])
    assert caught.value.code == "INVALID_INPUT"
    assert message in caught.value.message


def test_results_of_many_types():
    def many():
        return {
            "item": Item("a"),
            "color": Color.BLUE,
            "date": datetime.date(2024, 2, 29),
            "decimal": [decimal.Decimal("1.5"), decimal.Decimal(7)],
            "bytes": b"hi",
            "set": {1},
            "tuple": (1, 2),
            "id": uuid.UUID(int=2),
        }

    assert agentscript.run("return await many()", tools=[many]).result == {
        "item": {"sku": "a", "count": 1},
        "color": "blue",
        "date": "2024-02-29",
        "decimal": [1.5, 7],
        "bytes": "aGk=",
        "set": [1],
        "tuple": [1, 2],
        "id": "00000000-0000-0000-0000-000000000002",
    }


def test_hints_of_all_kinds():
    Name = typing.NewType("Name", str)

    def f(
        a: Any,
        b: Union[int, Item],
        c: tuple[int, str],
        d: tuple[int, ...],
        e: dict[str, list[int]],
        f: set[str],
        g: Name,
        h: None,
        i: bytes,
        j: "int | str",
        k,
    ): ...

    properties = Tool.from_function(f).input_schema["properties"]
    assert properties["a"] == properties["k"] == {}
    assert properties["b"] == {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/Item"}]}
    assert properties["c"]["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["d"] == {"type": "array", "items": {"type": "integer"}}
    assert properties["e"]["additionalProperties"] == {"type": "array", "items": {"type": "integer"}}
    assert (properties["f"]["type"], properties["g"], properties["h"]) == ("array", {"type": "string"}, {"type": "null"})
    assert properties["i"] == {"type": "string", "contentEncoding": "base64"}
    assert properties["j"] == {"type": ["integer", "string"]}


def test_functions_in_other_forms():
    class Shop:
        def price(self, item: str) -> int:
            """Price of an item."""
            return len(item)

    class Callable:
        def __call__(self, n: int) -> int:
            return n + 1

    def power(base: int, exponent: int) -> int:
        return base**exponent

    async def later(n: int) -> int:
        return n

    tools = {"price": Shop().price, "next": Callable(), "square": functools.partial(power, exponent=2), "later": later}
    script = "return [await price('abc'), await callTool('next', { n: 1 }), await square({ base: 3 }), await later(5)]"
    assert agentscript.run(script, tools=tools).result == [3, 2, 9, 5]
    assert Toolset(tools)["price"].description == "Price of an item."


def test_functions_that_cannot_be_tools():
    with pytest.raises(TypeError, match="cannot be given by name"):
        Toolset({"f": lambda a, /: a})
    with pytest.raises(TypeError, match="without a name"):
        Toolset([lambda value: value])
    with pytest.raises(ValueError, match="would both be the function"):
        Toolset({"get_user": print_it, "getUser": print_it})


def print_it(text: str = "", **more: Any) -> Any:
    return {"text": text, **more}


def test_further_keywords():
    assert Tool.from_function(print_it).input_schema["additionalProperties"] is True
    assert agentscript.run("return await printIt({ text: 'a', n: 1 })", tools=[print_it]).result == {"text": "a", "n": 1}


def test_get_tool_and_apps():
    tools = {"users:get_by_id": lambda id: {"id": id}}
    script = "const { name, appId } = getTool('users:get_by_id'); return [name, appId, (await users.getById({ id: 3 })).id]"
    assert agentscript.run(script, tools=tools).result == ["users:get_by_id", "users", 3]


NUMPY = """Sum.

Parameters
----------
a : int
    The first.
b
    The second
    one.

Returns
-------
int
"""

SPHINX = """Sum.

:param a: The first.
:param int b: The second
    one.
:returns: a number
"""


@pytest.mark.parametrize("text", [NUMPY, SPHINX])
def test_docstrings(text):
    assert parse_docstring(text) == ("Sum.", {"a": "The first.", "b": "The second one."})
