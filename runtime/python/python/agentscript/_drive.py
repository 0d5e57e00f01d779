"""Driving a run: its calls become calls of functions, in the thread or as tasks of asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import inspect
import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from . import _json, _native
from ._errors import ToolError
from ._tools import CallHandler, Tool, Toolset

OnMessage = Callable[[dict[str, Any]], Any]
Failure = tuple[str, str, "str | None", bool]

#: How long a run may hold up the event loop at a time; longer work goes on in a thread.
SLICE_MS = 2


class Calls:
    """The tools that answer the calls of one run, and what they raised."""

    __slots__ = ("tools", "fetch", "on_call", "raised")

    def __init__(self, tools: Toolset, fetch: Tool | None, on_call: CallHandler | None) -> None:
        self.tools = tools
        self.fetch = fetch
        self.on_call = on_call
        self.raised: list[BaseException] = []

    def find(self, kind: str, name: str) -> Tool:
        return self.fetch if kind == "fetch" and self.fetch is not None else self.tools._find(name, self.on_call)

    def failure(self, error: BaseException) -> Failure:
        """What the script is told of an exception."""
        if not isinstance(error, ToolError):
            self.raised.append(error)
            text = str(error)
            return ("TOOL_EXECUTION_ERROR", text if text else type(error).__name__, None, False)
        if error.__cause__ is not None or error.__traceback__ is not None:
            self.raised.append(error)
        details = None if error.details is None else _json.dumps(error.details)
        return (error.code, error.message, details, error.fatal)

    def cause(self, message: str) -> BaseException | None:
        """The exception behind a failure with this message."""
        found = (error for error in reversed(self.raised) if message in (str(error), type(error).__name__))
        return next(found, None)


def drive(run: _native.Run, calls: Calls, on_message: OnMessage | None) -> None:
    """Drives a run to its end in this thread: its calls are made one after the other."""
    waiting: deque[tuple[int, str, str, str, int]] = deque()
    while True:
        progress = run.resume_all()
        _deliver(run, on_message)
        if progress == _native.DONE:
            return
        waiting.extend(run.take_calls())
        cancelled = run.take_cancelled()
        if cancelled:
            waiting = deque(call for call in waiting if call[0] not in cancelled)
        if not waiting:
            time.sleep(max(run.time_left_ms(), 0) / 1000)
            continue
        number, kind, name, text, _ = waiting.popleft()
        try:
            result = calls.find(kind, name).handler(_json.loads(text))
            if inspect.isawaitable(result):
                _close(result)
                raise ToolError(f"Tool '{name}' is async: use 'await run_async(…)'", fatal=True)
            answer = _json.dumps(result)
        except Exception as error:
            run.settle(number, None, calls.failure(error))
        else:
            run.settle(number, answer)


class AsyncDriver:
    """Drives a run with tasks of asyncio: its calls are concurrent."""

    __slots__ = ("_run", "_calls", "_on_message", "_loop", "_tasks", "_stopping", "_settled", "_wake")

    def __init__(self, run: _native.Run, calls: Calls, on_message: OnMessage | None) -> None:
        self._run = run
        self._calls = calls
        self._on_message = on_message
        self._loop = asyncio.get_running_loop()
        #: The task of each call without an answer, and what ends it when its time is over.
        self._tasks: dict[int, tuple[asyncio.Task[Any], asyncio.TimerHandle]] = {}
        #: Tasks whose answers no longer matter.
        self._stopping: set[asyncio.Task[Any]] = set()
        self._settled: list[tuple[int, str | None, Failure | None]] = []
        self._wake: asyncio.Future[None] | None = None

    async def drive(self) -> None:
        """Drives the run to its end. Cancelling this cancels the run and its calls, and waits for them to stop."""
        run = self._run
        try:
            while True:
                progress = run.resume()
                if progress == _native.YIELDED:
                    progress = await self._in_background()
                if self._on_message is not None:
                    _deliver(run, self._on_message)
                if progress == _native.DONE:
                    return
                for number in run.take_cancelled():
                    self._stop(number)
                for call in run.take_calls():
                    self._start(*call)
                if not self._settled:
                    await self._event()
                for number, answer, failure in self._settled:
                    run.settle(number, answer, failure)
                self._settled.clear()
        finally:
            # Ends a run that was cancelled, which frees its memory.
            run.cancel()
            run.resume()
            await self._stop_all()

    async def _in_background(self) -> int:
        """Long work, in a thread: the lock of the interpreter is released there."""
        context = contextvars.copy_context()
        work = self._loop.run_in_executor(_threads(), context.run, self._run.resume_all)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self._run.cancel()
            await asyncio.wait([work])
            raise

    async def _event(self) -> None:
        """Waits for the answer to a call, for a timer of the script, or for a limit of time."""
        self._wake = wake = self._loop.create_future()
        timer = self._loop.call_later(max(self._run.time_left_ms(), 0) / 1000, _set, wake)
        try:
            await wake
        finally:
            timer.cancel()
            self._wake = None

    def _start(self, number: int, kind: str, name: str, text: str, timeout_ms: int) -> None:
        task = self._loop.create_task(self._answer(kind, name, text))
        deadline = self._loop.call_later(timeout_ms / 1000, self._expire, number, name, timeout_ms)
        self._tasks[number] = (task, deadline)
        task.add_done_callback(functools.partial(self._ended, number))

    async def _answer(self, kind: str, name: str, text: str) -> tuple[str | None, Failure | None]:
        try:
            tool = self._calls.find(kind, name)
            value = _json.loads(text)
            if tool.is_async:
                result = await tool.handler(value)
            else:
                result = await asyncio.to_thread(tool.handler, value)
                if inspect.isawaitable(result):
                    result = await result
            return _json.dumps(result), None
        except Exception as error:
            return None, self._calls.failure(error)

    def _ended(self, number: int, task: asyncio.Task[Any]) -> None:
        self._stopping.discard(task)
        if number not in self._tasks:
            return
        self._tasks.pop(number)[1].cancel()
        if task.cancelled():
            # The tool has cancelled itself.
            self._settle(number, None, ("EXECUTION_ABORTED", "The call was cancelled", None, False))
        else:
            error = task.exception()
            answer, failure = (None, self._calls.failure(error)) if error else task.result()
            self._settle(number, answer, failure)

    def _settle(self, number: int, answer: str | None, failure: Failure | None) -> None:
        self._settled.append((number, answer, failure))
        if self._wake is not None:
            _set(self._wake)

    def _expire(self, number: int, name: str, timeout_ms: int) -> None:
        self._stop(number)
        message = f"Tool '{name}' timed out after {timeout_ms}ms"
        self._settle(number, None, ("TOOL_TIMEOUT", message, None, False))

    def _stop(self, number: int) -> None:
        if number in self._tasks:
            task, deadline = self._tasks.pop(number)
            deadline.cancel()
            if not task.done():
                self._stopping.add(task)
                task.cancel()

    async def _stop_all(self) -> None:
        for number in list(self._tasks):
            self._stop(number)
        if self._stopping:
            await asyncio.wait(list(self._stopping))


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _close(awaitable: Any) -> None:
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()


def _deliver(run: _native.Run, on_message: OnMessage | None) -> None:
    text = run.take_messages()
    if text is not None and on_message is not None:
        for message in _json.loads(text):
            on_message(message)


@functools.cache
def _threads() -> concurrent.futures.Executor:
    """Threads for evaluation, apart from those that plain functions run on, which may all wait."""
    return concurrent.futures.ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="agentscript")
