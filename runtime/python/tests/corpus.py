"""Runs cases of the corpus through the package: a line of JSON for each case, and one for each outcome.

Each case runs in virtual time, with a run that this file drives. One whose outcome does not depend on time is also run with
``run_async`` and ``run``, which must come to the same.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time

import agentscript

#: What a script that depends on time mentions.
TIME = re.compile(
    r"setTimeout|setInterval|sleep|Date|performance|console\.time|[tT]imeout|race|any\(|Abort|mcpLog|random|getRandomValues|randomUUID"
)

#: A case that takes longer, in seconds, runs only once.
LONG = 1


class Fixture:
    """Tools that answer from a list of responses."""

    def __init__(self, case):
        self.tools = {tool["name"]: tool for tool in case["tools"]}
        self.allowed = case["allowed"]
        self.used = {}

    def toolset(self, handler):
        tools = []
        for tool in self.tools.values():
            name = tool["name"]
            tools.append(
                agentscript.Tool(
                    name,
                    handler(name),
                    description=tool.get("description", ""),
                    input_schema=tool.get("inputSchema"),
                    output_schema=tool.get("outputSchema"),
                    check_input=False,
                )
            )
        return agentscript.Toolset(tools, reserved=["codecall"])

    def answer(self, name, kind, value, timeout_ms):
        """The delay of a call, and its result or error."""
        tool = self.tools.get(name)
        if tool is None:
            return 0, agentscript.ToolError(f"Tool '{name}' is not known", code="TOOL_NOT_FOUND")
        if self.allowed is not None and name not in self.allowed:
            return 0, agentscript.ToolError(f"Tool '{name}' is not allowed in this run", code="ACCESS_DENIED")
        delay = tool.get("delayMs", 0)
        if delay > timeout_ms:
            message = f"Tool '{name}' timed out after {timeout_ms}ms"
            return timeout_ms, agentscript.ToolError(message, code="TOOL_TIMEOUT")
        for index, response in enumerate(tool["responses"]):
            count = self.used.get((name, index), 0)
            if not fits(response.get("input"), value, kind) or count >= response.get("times", sys.maxsize):
                continue
            self.used[name, index] = count + 1
            error = response.get("error")
            if error is None:
                return delay, response.get("output")
            code = error.get("code", "TOOL_EXECUTION_ERROR")
            return delay, agentscript.ToolError(error["message"], code=code, details=error.get("details"))
        return delay, agentscript.ToolError(f"No response of '{name}' for this input", code="NO_MOCK_RESPONSE")


def fits(wanted, value, kind):
    if wanted is None:
        return True
    if kind == "fetch" and isinstance(wanted, dict):
        return all(value.get(key) == part for key, part in wanted.items())
    return same(wanted, value)


def same(a, b):
    """Equality of JSON, in which true is not 1."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def options(case, fixture, handler):
    limits = dict(case["limits"])
    fetch = handler("fetch") if limits.pop("fetch", False) else None
    return {
        "tools": fixture.toolset(handler),
        "preset": case["preset"],
        "limits": limits,
        "language": case["language"],
        "dialect": case["dialect"],
        "fetch": fetch,
    }


def outcome_of(call):
    try:
        return call().to_dict()
    except agentscript.RunError as error:
        return error.to_dict()


def in_virtual_time(case):
    """Answers calls in the order of their delays, but without waiting."""
    fixture = Fixture(case)

    def run():
        script = agentscript.compile(case["script"], **options(case, fixture, lambda name: lambda value: None))
        run = script.start(case["context"], seed=1, host_time=True)
        pending, now = [], 0
        while True:
            calls = run.resume()
            if run.done:
                return run.outcome()
            for call in calls:
                delay, result = fixture.answer(call.tool, call.kind, call.input, call.timeout_ms)
                pending.append((now + delay, call.id, result))
            cancelled = run.take_cancelled()
            pending = sorted((p for p in pending if p[1] not in cancelled), key=lambda p: p[:2])
            timer = run.next_timer_ms
            times = ([] if timer is None else [timer]) + [at for at, _, _ in pending[:1]]
            if not times:
                continue
            now = max(now, min(times))
            run.advance(now)
            if timer is None or timer > now:
                _, number, result = pending.pop(0)
                if isinstance(result, agentscript.ToolError):
                    run.fail(number, result.message, code=result.code, details=result.details)
                else:
                    run.answer(number, result)

    return outcome_of(run)


def by_functions(case, is_async):
    """The same with functions as tools, in real time."""
    fixture = Fixture(case)

    def handler(name):
        def call(value):
            _, result = fixture.answer(name, "fetch" if name == "fetch" else "tool", value, 1_000_000)
            if isinstance(result, agentscript.ToolError):
                raise result
            return result

        async def call_async(value):
            return call(value)

        return call_async if is_async else call

    values = options(case, fixture, handler)
    if is_async:
        return outcome_of(
            lambda: asyncio.run(agentscript.run_async(case["script"], context=case["context"], seed=1, **values))
        )
    return outcome_of(lambda: agentscript.run(case["script"], context=case["context"], seed=1, **values))


def comparable(outcome):
    error = {key: value for key, value in outcome.get("error", {}).items() if key not in ("calls", "omittedCalls")}
    return json.dumps({**outcome, "error": error}, sort_keys=True)


def is_independent_of_time(case):
    delays = any(tool.get("delayMs") for tool in case["tools"])
    limits = set(case["limits"]) & {"timeoutMs", "maxDurationMs", "toolTimeoutMs", "fetch"} - {"timeoutMs"}
    long = case["limits"].get("timeoutMs", 300_000) >= 300_000
    return not (delays or limits or TIME.search(case["script"])) and long and case["allowed"] is None


def written(outcome):
    """The outcome in UTF-8; a lone surrogate is the text of its escape."""
    text = json.dumps(outcome, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda found: f"\\\\u{ord(found[0]):04x}", text)


def main():
    also = 0
    for line in sys.stdin:
        case = json.loads(line)
        began = time.monotonic()
        outcome = in_virtual_time(case)
        is_quick = time.monotonic() - began < LONG
        if is_quick and is_independent_of_time(case) and "is not known" not in json.dumps(outcome):
            also += 1
            for is_async in (True, False):
                other = by_functions(case, is_async)
                if comparable(other) != comparable(outcome):
                    outcome = {"status": "differs", "virtual": outcome, "isAsync": is_async, "functions": other}
        print(written(outcome), flush=True)
    print(f"{also} of them with functions too", file=sys.stderr)


if __name__ == "__main__":
    sys.setrecursionlimit(20_000)
    main()
