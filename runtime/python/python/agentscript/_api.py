"""Scripts, runs and steps."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypedDict

from . import _json, _native
from ._drive import SLICE_MS, AsyncDriver, Calls, OnMessage, drive
from ._errors import run_error
from ._options import limit_key, suggests
from ._tools import CallHandler, Tool, Tools, Toolset, is_async, toolset

Preset = Literal["locked_down", "secure", "balanced", "experimental"]
Language = Literal["javascript", "typescript"]
Dialect = Literal["async", "sync"]

#: How long a run in a thread of its own goes on before signals are handled.
BLOCKING_SLICE_MS = 20


class Limits(TypedDict, total=False):
    """Values on top of a preset: docs/reference/limits.md says what they are in each."""

    # limits of numbers: written by `UPDATE=1 cargo test -p codecall-tests --test docs`
    #: Time the script itself may take, waits for tools excluded.
    timeout_ms: int
    #: Time from start to end, waits for tools included.
    max_duration_ms: int
    #: Time one tool call may take.
    tool_timeout_ms: int
    #: How many loop bodies may be entered.
    max_iterations: int
    #: How many statements, calls, loop turns and units of work inside built-ins may be evaluated.
    max_steps: int
    #: How many tools may be called; 0 is no limit.
    max_tool_calls: int
    #: How much memory live data may take. Garbage does not count.
    max_memory_bytes: int
    #: How deep calls may nest.
    max_call_depth: int
    #: How long a script may be.
    max_script_bytes: int
    #: How long the result may be, as JSON.
    max_result_bytes: int
    #: How much may be logged.
    max_console_bytes: int
    #: How often something may be logged.
    max_console_calls: int
    #: How many tool calls may be under way at once; further ones wait their turn.
    max_concurrency: int
    # /limits
    loops: Literal["all", "bounded", "none"]
    allow_loops: bool
    timers: bool
    allow_console: bool
    disabled_builtins: list[str]
    disabled_globals: list[str]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run has come to. A run that fails raises :class:`RunError` instead."""

    #: What the script returned.
    result: Any
    #: What of it JSON does not hold, in words.
    warnings: list[str]
    #: What the script logged, a text for each call of ``console``.
    logs: list[str]
    #: Calls that had no answer when the run ended: ``{"name", "started", "awaited"}``.
    unanswered: list[dict[str, Any]]
    #: What the run used: ``durationMs``, ``scriptMs``, ``steps``, ``iterations``, ``toolCalls``, ``peakMemoryBytes``.
    stats: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The outcome for a model or a client: ``{"status": "ok", "result", "warnings"?, "logs"?}``."""
        rest = {"warnings": self.warnings, "logs": self.logs}
        return {"status": "ok", "result": self.result, **{key: value for key, value in rest.items() if value}}


class Call(NamedTuple):
    """A call that waits for an answer."""

    id: int
    #: ``tool``; ``fetch`` for a call of ``fetch``.
    kind: str
    tool: str
    input: Any
    #: How long it may take.
    timeout_ms: int


class Script:
    """A compiled script with its tools and limits. Any number of runs share it."""

    def __init__(
        self, script: _native.Script, tools: Toolset, fetch: Tool | None, on_call: CallHandler | None
    ) -> None:
        self._script = script
        self._tools = tools
        self._fetch = fetch
        self._on_call = on_call

    @suggests
    def run(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        on_message: OnMessage | None = None,
        seed: int | None = None,
    ) -> Outcome:
        """Runs the script to its end. See :func:`run`."""
        if self._is_async():
            if _has_loop():
                raise RuntimeError("an event loop is running and a tool is async: use 'await run_async(…)'")
            return asyncio.run(self.run_async(context, on_message=on_message, seed=seed))
        run = self._start(context, seed, slice_ms=BLOCKING_SLICE_MS)
        calls = Calls(self._tools, self._fetch, self._on_call)
        drive(run, calls, on_message)
        return _outcome(run.outcome(), calls)

    @suggests
    async def run_async(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        on_message: OnMessage | None = None,
        seed: int | None = None,
    ) -> Outcome:
        """Runs the script to its end without blocking the event loop. See :func:`run_async`."""
        run = self._start(context, seed, slice_ms=SLICE_MS)
        calls = Calls(self._tools, self._fetch, self._on_call)
        await AsyncDriver(run, calls, on_message).drive()
        return _outcome(run.outcome(), calls)

    @suggests
    def start(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        seed: int | None = None,
        host_time: bool = False,
        unix_ms: float | None = None,
    ) -> Run:
        """Starts a run that the caller drives itself: see :class:`Run`.

        With ``host_time`` the script sees only the time that :meth:`Run.advance` lets pass, from ``unix_ms`` on.
        """
        return Run(self._start(context, seed, slice_ms=BLOCKING_SLICE_MS, host_time=host_time, unix_ms=unix_ms))

    def journal(
        self, id: str, context: Mapping[str, Any] | None = None, *, unix_ms: int | None = None
    ) -> Journal:  # noqa: A002: a run's id
        """The journal of a stateless run that has not begun. Its random numbers follow from ``id``, its time from ``unix_ms``."""
        now = int(time.time() * 1000) if unix_ms is None else unix_ms
        return Journal(self._script.journal(id, now, _context(context)))

    def step(self, journal: Journal, context: Mapping[str, Any] | None = None) -> Step:
        """Plays the script against its journal, and on as far as it goes without a new answer.

        A pure function: the same script, tools, journal and context give the same step, in any process.
        """
        next_journal, text = self._script.step(journal._native, _context(context))
        if next_journal is None:
            return Step([], [], [], None, _outcome(text, None))
        step = _json.loads(text)
        calls = [_call(call) for call in step["calls"]]
        return Step(calls, step["waiting"], step["abandoned"], Journal(next_journal), None)

    def _is_async(self) -> bool:
        handlers = [self._fetch] if self._fetch is not None else []
        return any(tool.is_async for tool in [*self._tools, *handlers]) or is_async(self._on_call)

    def _start(
        self,
        context: Mapping[str, Any] | None,
        seed: int | None,
        *,
        slice_ms: int,
        host_time: bool = False,
        unix_ms: float | None = None,
    ) -> _native.Run:
        number = secrets.randbits(64) if seed is None else seed
        return self._script.start(_context(context), number, host_time, unix_ms, slice_ms)


class Run:
    """A run that its caller drives: for schedulers other than asyncio, and for tests in virtual time.

    ``resume`` gives the new calls; answer each with ``answer`` or ``fail``, and resume, until ``done``. Where there are no
    calls to wait for, resume again after ``time_left_ms``. It may be used from any thread, by one at a time.
    """

    def __init__(self, run: _native.Run) -> None:
        self._run = run
        self.done = False

    def resume(self) -> list[Call]:
        """Evaluates until the run waits or has ended. Gives the calls that are new."""
        self.done = self._run.resume_all() == _native.DONE
        calls = self._run.take_calls()
        return [Call(number, kind, tool, _json.loads(text), ms) for number, kind, tool, text, ms in calls]

    def answer(self, id: int, result: Any) -> None:  # noqa: A002: as in Call
        """Answers a call."""
        self._run.settle(id, _json.dumps(result))

    def fail(
        self,
        id: int,  # noqa: A002: as in Call
        message: str,
        *,
        code: str = "TOOL_EXECUTION_ERROR",
        details: Any = None,
        fatal: bool = False,
    ) -> None:
        """Answers a call with an error, which the script can catch unless it is fatal."""
        self._run.settle(id, None, (code, message, None if details is None else _json.dumps(details), fatal))

    def take_cancelled(self) -> list[int]:
        """The calls that the script has cancelled since the last time; their answers have no effect."""
        return self._run.take_cancelled()

    def take_messages(self) -> list[dict[str, Any]]:
        """What the script has sent with ``mcpLog`` and ``mcpNotify`` since the last time."""
        text = self._run.take_messages()
        return [] if text is None else list(_json.loads(text))

    def advance(self, ms: int) -> None:
        """Lets time pass until so many milliseconds after the beginning, in a run with ``host_time``."""
        self._run.reach(ms)

    def cancel(self) -> None:
        """Cancels the run, also while another thread resumes it: it ends with ``EXECUTION_ABORTED``."""
        self._run.cancel()

    @property
    def next_timer_ms(self) -> int | None:
        """When the next timer of the script is due, since the beginning."""
        return self._run.next_timer_ms()

    @property
    def time_left_ms(self) -> float:
        """When the run has to be resumed, whether or not a call has an answer."""
        return self._run.time_left_ms()

    @property
    def memory_bytes(self) -> int:
        """What its values take, by its own meter."""
        return self._run.memory_bytes()

    def outcome(self) -> Outcome:
        """What the run has come to. Raises :class:`RunError` if it has failed."""
        return _outcome(self._run.outcome(), None)


class Journal:
    """What has happened in a stateless run so far: plain data that is kept or passed on between steps. It never changes."""

    def __init__(self, journal: _native.Journal) -> None:
        self._native = journal

    def answer(self, id: int, result: Any) -> Journal:  # noqa: A002: as in Call
        """The journal with the answer to a call."""
        return Journal(self._native.answered(id, _json.dumps(result)))

    def fail(
        self, id: int, message: str, *, code: str = "TOOL_EXECUTION_ERROR", details: Any = None
    ) -> Journal:  # noqa: A002: as in Call
        """The journal with the failure of a call."""
        error = (code, message, None if details is None else _json.dumps(details), False)
        return Journal(self._native.answered(id, None, error))

    def to_dict(self) -> dict[str, Any]:
        """The journal as JSON data."""
        return dict(_json.loads(self._native.to_json()))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Journal:
        """Reads what :meth:`to_dict` gave."""
        return cls(_native.Journal.from_json(_json.dumps(data)))

    def to_token(self, key: bytes | None = None) -> str:
        """The journal as a short text. With a key it is protected against changes, but not secret."""
        return self._native.to_token(key)

    @classmethod
    def from_token(cls, token: str, key: bytes | None = None) -> Journal:
        """Reads a token; with a key, only one that was made with it."""
        return cls(_native.Journal.from_token(token, key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Journal) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


class Step(NamedTuple):
    """How far a script comes with its journal."""

    #: The calls that are new.
    calls: list[Call]
    #: Ids of all calls without an answer.
    waiting: list[int]
    #: Those among them whose answers the run does not need.
    abandoned: list[int]
    #: The journal for the answers; ``None`` if the script has ended.
    journal: Journal | None
    #: The outcome, if the script has ended.
    outcome: Outcome | None


@suggests
def compile(  # noqa: A001: as `re.compile`
    script: str,
    *,
    tools: Tools | None = None,
    on_call: CallHandler | None = None,
    preset: Preset = "secure",
    limits: Limits | Mapping[str, Any] | None = None,
    language: Language | None = None,
    dialect: Dialect = "async",
    fetch: Callable[[dict[str, Any]], Any] | None = None,
) -> Script:
    """Compiles a script, once for many runs. The arguments are those of :func:`run`.

    Raises :class:`ScriptSyntaxError` or :class:`IllegalAccessError`.
    """
    prepared = toolset(tools)
    settings = _settings(preset, limits, language, dialect, fetch is not None)
    try:
        native = _native.Script(script, settings, prepared._native)
    except _native.NotCompiled as error:
        raise run_error(_json.loads(error.args[0])) from None
    return Script(native, prepared, None if fetch is None else Tool("fetch", fetch), on_call)


@suggests
def run(
    script: str,
    *,
    tools: Tools | None = None,
    on_call: CallHandler | None = None,
    context: Mapping[str, Any] | None = None,
    preset: Preset = "secure",
    limits: Limits | Mapping[str, Any] | None = None,
    language: Language | None = None,
    dialect: Dialect = "async",
    fetch: Callable[[dict[str, Any]], Any] | None = None,
    on_message: OnMessage | None = None,
    seed: int | None = None,
) -> Outcome:
    """Runs a script to its end.

    ``tools``: functions and :class:`Tool` objects, in a list or under their names, or a :class:`Toolset`.
    ``on_call``: ``on_call(name, input)`` answers the calls of all names that no tool has; it may be async.
    ``context``: what the script sees as ``codecallContext``. ``preset`` and ``limits``: what it may use.
    ``language``: by default JavaScript first, and TypeScript where the text is not JavaScript.
    ``fetch``: answers calls of ``fetch``, which scripts do not have without it.
    ``on_message``: called with what the script sends by ``mcpLog`` and ``mcpNotify``.
    ``seed``: of random numbers and UUIDs; by default one that nobody can guess.

    Plain functions are called in this thread, one after the other, and are not interrupted by time limits. If a tool is
    async, the run gets an event loop of its own; where one is running already, ``await run_async(…)`` instead.

    Raises :class:`RunError`.
    """
    return _compiled(locals()).run(context, on_message=on_message, seed=seed)


@suggests
async def run_async(
    script: str,
    *,
    tools: Tools | None = None,
    on_call: CallHandler | None = None,
    context: Mapping[str, Any] | None = None,
    preset: Preset = "secure",
    limits: Limits | Mapping[str, Any] | None = None,
    language: Language | None = None,
    dialect: Dialect = "async",
    fetch: Callable[[dict[str, Any]], Any] | None = None,
    on_message: OnMessage | None = None,
    seed: int | None = None,
) -> Outcome:
    """Runs a script to its end without blocking the event loop. The arguments are those of :func:`run`.

    Calls that the script makes together are concurrent: async functions are tasks, plain functions run in threads. Evaluation
    that takes longer than a moment goes on in a thread. Cancelling this ends the run and cancels its calls.

    Raises :class:`RunError`.
    """
    return await _compiled(locals()).run_async(context, on_message=on_message, seed=seed)


def _compiled(arguments: Mapping[str, Any]) -> Script:
    """The script, by those among the arguments that :func:`compile` takes."""
    return compile(**{name: arguments[name] for name in inspect.signature(compile).parameters})


def declarations(tools: Tools) -> str:
    """Declarations of tools in TypeScript, for the prompt of a model that writes scripts."""
    return toolset(tools).declarations()


def _settings(preset: str, limits: Mapping[str, Any] | None, language: str | None, dialect: str, fetch: bool) -> str | None:
    values = {limit_key(name): value for name, value in (limits or {}).items()}
    if preset == "secure" and not values and language is None and dialect == "async" and not fetch:
        return None
    settings = {"preset": preset, "limits": values, "dialect": dialect, "fetch": fetch}
    return _json.dumps(settings if language is None else {**settings, "language": language})


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _context(context: Mapping[str, Any] | None) -> str | None:
    return None if context is None else _json.dumps(context)


def _call(row: dict[str, Any]) -> Call:
    return Call(row["id"], row["kind"], row["tool"], row["input"], row["timeoutMs"])


def _outcome(text: str | None, calls: Calls | None) -> Outcome:
    if text is None:
        raise RuntimeError("the run has not ended: resume it until it is done")
    try:
        outcome = _json.loads(text)
    except RecursionError:
        raise run_error(_TOO_DEEP) from None
    if outcome["status"] == "ok":
        return Outcome(
            outcome["result"],
            warnings=outcome.get("warnings", []),
            logs=outcome.get("logs", []),
            unanswered=outcome.get("unanswered", []),
            stats=outcome["stats"],
        )
    error = run_error(outcome)
    cause = calls.cause(error.message) if calls is not None and error.status == "tool_error" else None
    raise error from cause


_TOO_DEEP = {
    "status": "runtime_error",
    "error": {"code": "SERIALIZATION_ERROR", "message": "The result is nested too deeply for Python's parser of JSON"},
}
