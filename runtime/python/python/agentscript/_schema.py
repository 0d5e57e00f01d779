"""Type hints as JSON schemas, and JSON values as what the hints promise.

A hint becomes a pair: its schema, and a function that converts a value from JSON, which raises ``Invalid``.
"""

from __future__ import annotations

import base64
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import pathlib
import sys
import types
import typing
import uuid
from collections.abc import Callable
from typing import Any, Union, get_args, get_origin

from ._options import did_you_mean

Convert = Callable[[Any], Any]
Typed = tuple[dict[str, Any], Convert]


class Invalid(Exception):
    """A value that does not fit; ``path`` leads to it."""

    def __init__(self, message: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.message}" if self.path else self.message


class Types:
    """Converts hints. The definitions of named types are collected for ``$defs`` at the root."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self._named: dict[Any, tuple[str, Convert]] = {}

    def of(self, hint: Any) -> Typed:
        """The schema and the conversion of a hint."""
        if hint is Any or hint is inspect.Parameter.empty or hint is object:
            return {}, _same
        if hint is None or hint is type(None):
            return {"type": "null"}, _checked("null", lambda value: value is None)
        if isinstance(hint, typing.NewType):
            return self.of(hint.__supertype__)
        if isinstance(hint, typing.TypeVar):
            return self.of(hint.__bound__ or Any)
        if hasattr(hint, "__value__") and type(hint).__name__ == "TypeAliasType":
            return self.of(hint.__value__)
        origin = get_origin(hint)
        if origin is not None:
            return self._generic(hint, origin, get_args(hint))
        if isinstance(hint, type):
            return self._class(hint)
        return {}, _same

    def _generic(self, hint: Any, origin: Any, arguments: tuple[Any, ...]) -> Typed:
        if origin is typing.Annotated:
            schema, convert = self.of(arguments[0])
            return self._annotated(schema, arguments[1:]), convert
        if origin is Union or origin is types.UnionType:
            return self._union(arguments)
        if origin is typing.Literal:
            return {"enum": list(arguments)}, _one_of(arguments)
        if origin in (typing.Required, typing.NotRequired) if sys.version_info >= (3, 11) else False:
            return self.of(arguments[0])
        if origin is tuple:
            return self._tuple(arguments)
        if isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
            schema, convert = self.of(arguments[1] if len(arguments) > 1 else Any)
            return {"type": "object", "additionalProperties": schema or True}, _mapping(convert)
        if isinstance(origin, type) and issubclass(origin, collections.abc.Iterable):
            schema, convert = self.of(arguments[0] if arguments else Any)
            items = {"items": schema} if schema else {}
            return {"type": "array", **items}, _array(convert, _collection(origin))
        return self.of(origin) if isinstance(origin, type) and origin is not hint else ({}, _same)

    def _class(self, hint: type) -> Typed:
        simple = _SIMPLE.get(hint)
        if simple is not None:
            return dict(simple[0]), simple[1]
        if issubclass(hint, enum.Enum):
            values = [member.value for member in hint]
            return {"enum": values}, _member(hint)
        if hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate"):
            return self._model(hint)
        if dataclasses.is_dataclass(hint):
            return self._record(hint)
        if typing.is_typeddict(hint) or (issubclass(hint, tuple) and hasattr(hint, "_fields")):
            return self._record(hint)
        if issubclass(hint, (list, set, frozenset, tuple)):
            return {"type": "array"}, _array(_same, hint)
        if issubclass(hint, collections.abc.Mapping):
            return {"type": "object"}, _mapping(_same)
        for known, (schema, convert) in _SIMPLE.items():
            if issubclass(hint, known):
                return dict(schema), convert
        return {}, _same

    def _annotated(self, schema: dict[str, Any], metadata: tuple[Any, ...]) -> dict[str, Any]:
        for entry in metadata:
            description = entry if isinstance(entry, str) else getattr(entry, "description", None)
            if isinstance(description, str):
                schema = {**schema, "description": description}
        return schema

    def _union(self, arguments: tuple[Any, ...]) -> Typed:
        parts = [self.of(argument) for argument in arguments]
        if any(not schema for schema, _ in parts):
            return {}, _same
        plain = [schema["type"] for schema, _ in parts if set(schema) == {"type"} and isinstance(schema["type"], str)]
        schema = {"type": plain} if len(plain) == len(parts) else {"anyOf": [schema for schema, _ in parts]}
        return schema, _any_of([convert for _, convert in parts])

    def _tuple(self, arguments: tuple[Any, ...]) -> Typed:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            schema, convert = self.of(arguments[0])
            return {"type": "array", "items": schema}, _array(convert, tuple)
        parts = [self.of(argument) for argument in arguments]
        schema = {"type": "array", "prefixItems": [schema for schema, _ in parts], "items": False}
        return {**schema, "minItems": len(parts), "maxItems": len(parts)}, _fixed([convert for _, convert in parts])

    def _model(self, hint: Any) -> Typed:
        schema = dict(hint.model_json_schema())
        self.definitions.update(schema.pop("$defs", {}))

        def convert(value: Any) -> Any:
            try:
                return hint.model_validate(value)
            except ValueError as error:
                raise Invalid(str(error)) from error

        return schema, convert

    def _record(self, hint: Any) -> Typed:
        """A dataclass, a ``TypedDict`` or a named tuple: a definition, as it may contain itself."""
        if hint not in self._named:
            name = hint.__name__
            while name in self.definitions:
                name += "_"
            self.definitions[name] = {}
            fields: dict[str, Convert] = {}
            required: set[str] = set()
            make: Callable[..., Any] = dict if typing.is_typeddict(hint) else hint
            self._named[hint] = (name, _object(fields, required, make))
            properties = {}
            for field, kind in typing.get_type_hints(hint, include_extras=True).items():
                if field in _field_names(hint):
                    properties[field], fields[field] = self.of(kind)
            required.update(_required(hint))
            self.definitions[name] = {
                "type": "object",
                "properties": properties,
                "required": [field for field in properties if field in required],
                "additionalProperties": False,
            }
        name, convert = self._named[hint]
        # What it refers to is looked up late, as a type may contain itself.
        return {"$ref": f"#/$defs/{name}"}, convert


def _field_names(hint: Any) -> set[str]:
    if dataclasses.is_dataclass(hint):
        return {field.name for field in dataclasses.fields(hint) if field.init}
    return set(typing.get_type_hints(hint))


def _required(hint: Any) -> set[str]:
    if dataclasses.is_dataclass(hint):
        missing = dataclasses.MISSING
        fields = dataclasses.fields(hint)
        return {field.name for field in fields if field.default is missing and field.default_factory is missing}
    if typing.is_typeddict(hint):
        return set(hint.__required_keys__)
    return {field for field in hint._fields if field not in hint._field_defaults}


def _same(value: Any) -> Any:
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) or isinstance(value, float) and value.is_integer()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _checked(kind: str, fits: Callable[[Any], bool], convert: Convert = _same) -> Convert:
    def checked(value: Any) -> Any:
        if not fits(value):
            raise Invalid(f"must be {kind}, not {_shown(value)}")
        return convert(value)

    return checked


def _parsed(kind: str, parse: Callable[[str], Any]) -> Convert:
    def parsed(value: Any) -> Any:
        if not isinstance(value, str):
            raise Invalid(f"must be {kind}, not {_shown(value)}")
        try:
            return parse(value)
        except (ValueError, ArithmeticError):
            raise Invalid(f"must be {kind}, not {_shown(value)}") from None

    return parsed


def _date_time(text: str) -> datetime.datetime:
    # Before Python 3.11, `fromisoformat` does not know the Z that JavaScript writes.
    return datetime.datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)


def _one_of(values: tuple[Any, ...]) -> Convert:
    names = ", ".join(repr(value) for value in values)

    def chosen(value: Any) -> Any:
        for known in values:
            if known == value and isinstance(known, bool) == isinstance(value, bool):
                return known
        raise Invalid(f"must be one of {names}, not {_shown(value)}")

    return chosen


def _member(hint: type[enum.Enum]) -> Convert:
    choose = _one_of(tuple(member.value for member in hint))
    return lambda value: hint(choose(value))


def _any_of(choices: list[Convert]) -> Convert:
    def any_of(value: Any) -> Any:
        problems = []
        for choice in choices:
            try:
                return choice(value)
            except Invalid as error:
                problems.append(str(error))
        raise Invalid("; or ".join(dict.fromkeys(problems)))

    return any_of


def _inside(convert: Convert, value: Any, key: str) -> Any:
    try:
        return convert(value)
    except Invalid as error:
        raise Invalid(error.message, (key, *error.path)) from None


def _array(convert: Convert, make: Callable[[list[Any]], Any]) -> Convert:
    def array(value: Any) -> Any:
        return make([_inside(convert, entry, str(index)) for index, entry in enumerate(value)])

    return _checked("a list", lambda value: isinstance(value, list), array)


def _collection(origin: type) -> Callable[[list[Any]], Any]:
    return origin if origin in (set, frozenset, tuple, collections.deque) else list


def _mapping(convert: Convert) -> Convert:
    def mapping(value: Any) -> Any:
        return {key: _inside(convert, entry, key) for key, entry in value.items()}

    return _checked("an object", lambda value: isinstance(value, dict), mapping)


def _fixed(parts: list[Convert]) -> Convert:
    def fixed(value: Any) -> Any:
        return tuple(_inside(parts[index], entry, str(index)) for index, entry in enumerate(value))

    return _checked(f"a list of {len(parts)}", lambda value: isinstance(value, list) and len(value) == len(parts), fixed)


def _object(fields: dict[str, Convert], required: set[str], make: Callable[..., Any]) -> Convert:
    return _checked(
        "an object", lambda value: isinstance(value, dict), lambda value: make(**members(value, fields, required))
    )


def members(value: dict[str, Any], fields: dict[str, Convert], required: set[str]) -> dict[str, Any]:
    """The converted members of an object."""
    unknown = [name for name in value if name not in fields]
    if unknown:
        near = did_you_mean(unknown[0], fields)
        raise Invalid(f"there is no '{unknown[0]}'" + (near or f"; there are: {', '.join(fields) or 'none'}"))
    missing = [name for name in fields if name in required and name not in value]
    if missing:
        raise Invalid(f"'{missing[0]}' is missing")
    return {name: _inside(fields[name], entry, name) for name, entry in value.items()}


_SIMPLE: dict[type, Typed] = {
    bool: ({"type": "boolean"}, _checked("true or false", lambda value: isinstance(value, bool))),
    int: ({"type": "integer"}, _checked("an integer", _is_integer, int)),
    float: ({"type": "number"}, _checked("a number", _is_number, float)),
    str: ({"type": "string"}, _checked("a string", lambda value: isinstance(value, str))),
    bytes: ({"type": "string", "contentEncoding": "base64"}, _parsed("base64", functools.partial(base64.b64decode, validate=True))),
    datetime.datetime: ({"type": "string", "format": "date-time"}, _parsed("an ISO date with a time", _date_time)),
    datetime.date: ({"type": "string", "format": "date"}, _parsed("an ISO date", datetime.date.fromisoformat)),
    datetime.time: ({"type": "string", "format": "time"}, _parsed("an ISO time", datetime.time.fromisoformat)),
    uuid.UUID: ({"type": "string", "format": "uuid"}, _parsed("a UUID", uuid.UUID)),
    decimal.Decimal: (
        {"type": ["number", "string"]},
        _any_of(
            [
                _checked("a number", _is_number, lambda value: decimal.Decimal(str(value))),
                _parsed("a number", decimal.Decimal),
            ]
        ),
    ),
    pathlib.PurePath: ({"type": "string"}, _parsed("a path", pathlib.Path)),
}
