"""What a run raises, and what a tool raises."""

from __future__ import annotations

from typing import Any, NamedTuple


class Location(NamedTuple):
    """A place in a script; lines and columns begin at 1."""

    line: int
    column: int


class Issue(NamedTuple):
    """One of several things that a script may not do."""

    code: str
    message: str
    hint: str | None
    location: Location | None


class ToolError(Exception):
    """Raised by a tool: the script gets an ``Error`` with this message, code and details.

    Any other exception of a tool does so too, with its text as the message and the code ``TOOL_EXECUTION_ERROR``. A
    ``fatal`` one ends the run; the script cannot catch it.
    """

    def __init__(
        self, message: str, *, code: str = "TOOL_EXECUTION_ERROR", details: Any = None, fatal: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.details = details
        self.fatal = fatal


class RunError(Exception):
    """A run that has failed. Its subclasses say how; ``code`` says it exactly (see docs/reference/errors.md)."""

    #: ``syntax_error``, ``illegal_access``, ``runtime_error``, ``tool_error`` or ``timeout``.
    status: str
    #: A stable code: ``STEP_LIMIT``, ``EXECUTION_ERROR``, ``TOOL_NOT_FOUND``, …
    code: str
    #: For a reader who can repair the script.
    message: str
    #: What to write instead, if that is known.
    hint: str | None
    #: The name of the JavaScript error: ``TypeError``.
    name: str | None
    #: Where in the script.
    location: Location | None
    #: The stack of the script, as V8 prints it.
    stack: str | None
    #: Everything that is wrong with a script that was refused.
    issues: list[Issue]
    #: The tool that failed, its input (cut if it is long) and what it says of its failure.
    tool_name: str | None
    tool_input: Any
    details: Any
    #: How many calls were handed to tools, and the first hundred of them: what has already happened.
    tool_calls: int
    calls: list[dict[str, Any]]
    #: What the script logged.
    logs: list[str]
    #: What the run used: ``durationMs``, ``scriptMs``, ``steps``, ``iterations``, ``toolCalls``, ``peakMemoryBytes``.
    stats: dict[str, Any]

    def __init__(self, outcome: dict[str, Any]) -> None:
        error = outcome["error"]
        super().__init__(_text(error))
        self._outcome = outcome
        self.status = outcome["status"]
        self.code = error["code"]
        self.message = error["message"]
        self.hint = error.get("hint")
        self.name = error.get("name")
        self.location = _location(error.get("location"))
        self.stack = error.get("stack")
        self.issues = [
            Issue(issue["code"], issue["message"], issue.get("hint"), _location(issue.get("location")))
            for issue in error.get("issues", [])
        ]
        self.tool_name = error.get("toolName")
        self.tool_input = error.get("toolInput")
        self.details = error.get("details")
        self.tool_calls = error.get("toolCalls", 0)
        self.calls = error.get("calls", [])
        self.logs = outcome.get("logs", [])
        self.stats = outcome.get("stats", {})

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._outcome,))

    def to_dict(self) -> dict[str, Any]:
        """The outcome for a model or a client: ``{"status", "error", "logs"?}``."""
        return {key: value for key, value in self._outcome.items() if key not in ("stats", "unanswered")}


class ScriptSyntaxError(RunError):
    """The text is not AgentScript."""


class IllegalAccessError(RunError):
    """The script uses what it may not. Nothing has run, unless ``tool_calls`` says otherwise."""


class ScriptRuntimeError(RunError):
    """The script threw, or is over one of its limits."""


class ToolCallError(RunError):
    """A tool failed and the script did not catch it. ``__cause__`` is the exception of the tool, if it raised one."""


class ScriptTimeoutError(RunError):
    """The run took too long."""


_CLASSES: dict[str, type[RunError]] = {
    "syntax_error": ScriptSyntaxError,
    "illegal_access": IllegalAccessError,
    "runtime_error": ScriptRuntimeError,
    "tool_error": ToolCallError,
    "timeout": ScriptTimeoutError,
}


def run_error(outcome: dict[str, Any]) -> RunError:
    """The exception of an outcome that is not ``ok``."""
    return _CLASSES.get(outcome["status"], RunError)(outcome)


def _location(value: dict[str, int] | None) -> Location | None:
    return None if value is None else Location(value["line"], value["column"])


def _text(error: dict[str, Any]) -> str:
    name, location, hint = error.get("name"), error.get("location"), error.get("hint")
    text = f"{name}: {error['message']}" if name else error["message"]
    if location:
        text += f" (line {location['line']}, column {location['column']})"
    return f"{text}. {hint[:1].upper()}{hint[1:]}" if hint else text
