"""Values as JSON text, in both directions."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import json
import math
import os
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

_encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=lambda value: _plain(value))


def dumps(value: Any) -> str:
    """JSON text of a value. NaN and infinities become ``null``, as in JavaScript.

    Dataclasses, models with ``model_dump``, mappings, iterables, dates, UUIDs, decimals, paths, enumerations and bytes
    (as base64) are converted; anything else is a ``TypeError``.
    """
    try:
        return _encoder.encode(value)
    except ValueError as error:
        if "circular" in str(error).lower():
            raise
        return _encoder.encode(_finite(value))


def loads(text: str) -> Any:
    """The value of a JSON text."""
    return json.loads(text)


def _plain(value: Any) -> Any:
    """A value that the encoder knows, for one that it does not."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (uuid.UUID, os.PathLike)):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON")


def _finite(value: Any) -> Any:
    """The same value without NaN and infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return _finite(_plain(value))
