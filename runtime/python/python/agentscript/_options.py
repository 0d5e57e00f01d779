"""Names of options: one that does not exist is a mistake of the program, never of a script."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from . import _native

F = TypeVar("F", bound=Callable[..., Any])


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'tools'?``, or nothing."""
    near = _native.nearest(name, list(known))
    return "" if near is None else f"; did you mean '{near}'?"


def suggests(function: F) -> F:
    """A function that says which argument was meant by a misspelled one. From 3.13 on, Python does."""
    if sys.version_info >= (3, 13):
        return function
    known = frozenset(inspect.signature(function).parameters)

    def check(given: Mapping[str, Any]) -> None:
        if not known.issuperset(given):
            name = next(name for name in given if name not in known)
            hint = did_you_mean(name, known - {"self"})
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'{hint}")

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            check(kwargs)
            return await function(*args, **kwargs)

        return cast(F, call_async)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        check(kwargs)
        return function(*args, **kwargs)

    return cast(F, call)


def limit_key(name: str) -> str:
    """``maxSteps`` for ``max_steps``."""
    head, *words = name.split("_")
    key = head + "".join(word[:1].upper() + word[1:] for word in words)
    if key not in _LIMITS:
        raise ValueError(f"there is no limit '{name}'{did_you_mean(name, _LIMITS.values())}")
    return key


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


#: The names of limits in Python, by those in settings.
_LIMITS = {name: _snake(name) for name in _native.LIMITS}
