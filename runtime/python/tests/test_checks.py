"""Inputs that are checked against schemas, names that do not exist, limits, and the handler of all names."""

import asyncio
import sys
from typing import Any

import pytest

import agentscript
from agentscript import RunError, Tool, Toolset

USER = {
    "type": "object",
    "properties": {"id": {"type": "integer", "minimum": 1}, "note": {"type": "string"}, "all": {"type": "array"}},
    "required": ["id"],
    "additionalProperties": False,
}


def failed(script: str, **options: Any) -> RunError:
    with pytest.raises(RunError) as caught:
        agentscript.run(script, **options)
    return caught.value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{ id: 'x' }", 'id: "x" is not of type "integer"'),
        ("{ id: 0 }", "id: 0 is less than the minimum of 1"),
        ("{}", '"id" is a required property; expected id: number'),
        ("{ ID: 1 }", "expected id: number, instead of 'ID'"),
        ("{ id: 1, nte: '' }", "did you mean 'note'?"),
    ],
)
def test_inputs_are_checked_against_schemas(given, message):
    seen: list[Any] = []
    error = failed(f"await getUser({given})", tools=[Tool("get_user", seen.append, input_schema=USER)])
    assert (error.status, error.code, error.tool_name, seen) == ("tool_error", "INVALID_INPUT", "get_user", [])
    assert error.message.startswith("Invalid input for tool 'get_user':\n")
    assert message in error.message
    assert error.details["issues"] and error.details["signature"].startswith('callTool("get_user", input')


def test_calls_that_fit_are_made_beside_those_that_do_not():
    async def double(value: dict[str, Any]) -> int:
        await asyncio.sleep(0)
        return value["id"] * 2

    script = """const all = await Promise.allSettled([1, 'x', 3].map((id) => double({ id, note: null })));
        return all.map(({ value, reason }) => value ?? reason.code)"""
    for handler in (double, lambda value: value["id"] * 2):
        tool = Tool("double", handler, input_schema=USER)
        assert asyncio.run(agentscript.run_async(script, tools=[tool])).result == [2, "INVALID_INPUT", 6]
        assert agentscript.run(script, tools=[tool]).result == [2, "INVALID_INPUT", 6]


def test_null_for_what_is_optional_is_left_out():
    tools = {"get": Tool("get", lambda value: value, input_schema=USER)}
    assert agentscript.run("return await get({ id: 1, note: null })", tools=tools).result == {"id": 1}
    assert failed("await get({ id: null })", tools=tools).code == "INVALID_INPUT"


def test_long_inputs_are_checked():
    script = "return (await get({ id: 1, all: Array(100_000).fill(1) })).all.length"
    assert agentscript.run(script, tools=[Tool("get", lambda value: value, input_schema=USER)]).result == 100_000
    strict = {**USER, "properties": {**USER["properties"], "all": {"items": {"type": "string"}}}}
    tools = [Tool("get", lambda value: value, input_schema=strict)]
    assert failed(script, tools=tools).code == "INVALID_INPUT"
    with pytest.raises(RunError, match="Invalid input"):
        asyncio.run(agentscript.run_async(script, tools=tools))


def test_a_tool_can_check_its_input_itself():
    tool = Tool("get", lambda value: value, input_schema=USER, check_input=False)
    assert agentscript.run("return await get({ more: 1 })", tools=[tool]).result == {"more": 1}
    assert agentscript.run("return await other({ more: 1 })", tools={"other": tool}).result == {"more": 1}


def test_steps_check_inputs():
    script = agentscript.compile("await get({})", tools=[Tool("get", print, input_schema=USER)])
    with pytest.raises(RunError, match="Invalid input"):
        script.step(script.journal("id"))


def test_bytes_are_base64():
    def size(data: bytes) -> int:
        return len(data)

    script = "return await size({ data: new Uint8Array(codecallContext.size).fill(255).toBase64() })"
    for length in (0, 1, 2, 3, 100_000):
        assert agentscript.run(script, tools=[size], context={"size": length}).result == length
    assert "must be base64" in failed("await size({ data: 'a-b*' })", tools=[size]).message
    assert "must be base64" in failed("await size({ data: 'abc' })", tools=[size]).message


def test_misspelled_arguments_have_a_suggestion():
    def send(recipient: str, subject: str = "") -> None: ...

    error = failed("await send({ recipent: 'a' })", tools=[send])
    assert error.message == "there is no 'recipent'; did you mean 'recipient'?"
    assert "there are: recipient, subject" in failed("await send({ x: 'a' })", tools=[send]).message


def test_misspelled_names_have_a_suggestion():
    tools = {"users:list": lambda: [], "get_user": lambda id: id}
    for script in ["await callTool('user:lst')", "await users.lsit({})", "await callTool('users_lst')"]:
        error = failed(script, tools=tools)
        assert "users:list" in f"{error.message} {error.hint}" or "users.list" in f"{error.hint}", (script, error.hint)
    assert "getUser" in (failed("await getUsr({ id: 1 })", tools=tools).hint or "")


@pytest.mark.parametrize(
    "call",
    [
        lambda: agentscript.run("1", contxt={}),
        lambda: agentscript.compile("1", contxt={}),
        lambda: agentscript.compile("1").run(contxt={}),
        lambda: asyncio.run(agentscript.run_async("1", contxt={})),
        lambda: asyncio.run(agentscript.compile("1").run_async(contxt={})),
        lambda: agentscript.compile("1").start(contxt={}),
    ],
)
def test_misspelled_options_have_a_suggestion(call):
    with pytest.raises(TypeError, match="unexpected keyword argument 'contxt'"):
        call()


def test_misspelled_options_name_the_right_one():
    ask = "[dD]id you mean '{}'".format
    with pytest.raises(TypeError, match=ask("tools")):
        agentscript.run("1", tool=[])
    with pytest.raises(TypeError, match=ask("input_schema")):
        Tool("a", print, inputschema={})
    with pytest.raises(TypeError, match=ask("reserved")):
        Toolset([], reservd=["a"])
    with pytest.raises(ValueError, match="there is no limit 'max_step'; did you mean 'max_steps'"):
        agentscript.run("1", limits={"max_step": 1})
    with pytest.raises(ValueError, match="there is no limit 'fetch'"):
        agentscript.run("1", limits={"fetch": True})
    assert agentscript.run("return 1", limits={"maxSteps": 100}).result == 1


def test_a_handler_of_all_names():
    calls = []

    def on_call(name: str, value: dict[str, Any]) -> Any:
        calls.append((name, value))
        if name == "no:such":
            raise LookupError(f"Unknown tool: {name}")
        return {"name": name, "id": value.get("id")}

    script = """const known = await getUser({ id: 1 }), other = await callTool('billing:get', { id: 2 });
        try { await callTool('no:such', {}) } catch (error) { return [known, other.name, error.message, error.code] }"""
    tools = {"get_user": lambda id: f"user {id}"}
    expected = ["user 1", "billing:get", "Unknown tool: no:such", "TOOL_EXECUTION_ERROR"]
    assert agentscript.run(script, tools=tools, on_call=on_call).result == expected
    assert calls == [("billing:get", {"id": 2}), ("no:such", {})]
    assert agentscript.compile(script, tools=tools, on_call=on_call).run().result == expected
    assert failed("await callTool('billing:get', {})", tools=tools).code == "TOOL_NOT_FOUND"


def test_an_async_handler_of_all_names():
    async def on_call(name: str, value: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return name

    script = "return Promise.all(['a', 'b:c'].map((name) => callTool(name, {})))"
    assert agentscript.run(script, on_call=on_call).result == ["a", "b:c"]
    assert asyncio.run(agentscript.run_async(script, on_call=on_call)).result == ["a", "b:c"]
    assert asyncio.run(agentscript.run_async(script, on_call=lambda name, value: name)).result == ["a", "b:c"]


def test_a_handler_of_all_names_in_the_other_dialect_and_beside_reserved_apps():
    name = lambda name, value: name  # noqa: E731: a handler in a word
    script = "return call_tool('math', 'double', { n: 4 }).result"
    assert agentscript.run(script, on_call=name, dialect="sync").result == "math:double"
    reserved = Toolset([], reserved=["agent"])
    assert failed("await callTool('agent:run', {})", tools=reserved, on_call=name).status == "illegal_access"
    assert "'x' was not found" in failed("getTool('x')", on_call=name).message


ENDLESS = {"timeout_ms": 600_000, "max_duration_ms": 600_000, "max_steps": 10**15, "max_iterations": 10**15}


async def never() -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("limits", "script", "status", "code"),
    [
        ({**ENDLESS, "timeout_ms": 50}, "while (true) {}", "timeout", "TIMEOUT"),
        ({**ENDLESS, "max_duration_ms": 50}, "await sleep(60_000)", "timeout", "TIMEOUT"),
        ({"tool_timeout_ms": 20}, "await never({})", "tool_error", "TOOL_TIMEOUT"),
        ({"max_iterations": 5}, "for (let i = 0; i < 6; i++) {}", "runtime_error", "ITERATION_LIMIT"),
        ({"max_steps": 100}, "for (let i = 0; i < 100; i++) {}", "runtime_error", "STEP_LIMIT"),
        ({"max_tool_calls": 1}, "await f({}); await f({})", "runtime_error", "MAX_TOOL_CALLS_EXCEEDED"),
        ({"max_memory_bytes": 1_000_000}, "const a = []; for (;;) a.push({})", "runtime_error", "MEMORY_LIMIT"),
        ({"max_call_depth": 20}, "const f = (n) => n && 1 + f(n - 1); f(30)", "runtime_error", "EXECUTION_ERROR"),
        ({"max_script_bytes": 10}, "return 'é'", "syntax_error", "SCRIPT_TOO_LARGE"),
        ({"max_result_bytes": 3}, "return 'é'", "runtime_error", "RESULT_TOO_LARGE"),
        ({"max_console_bytes": 9}, "console.log('x'.repeat(10))", "runtime_error", "CONSOLE_LIMIT"),
        ({"max_console_calls": 1}, "console.log(1); console.log(2)", "runtime_error", "CONSOLE_LIMIT"),
        ({"loops": "none"}, "for (const x of []) {}", "illegal_access", "LOOP_NOT_ALLOWED"),
        ({"loops": "bounded"}, "while (false) {}", "illegal_access", "LOOP_NOT_ALLOWED"),
        ({"allow_loops": False}, "for (const x of []) {}", "illegal_access", "LOOP_NOT_ALLOWED"),
        ({"timers": False}, "setTimeout(() => {}, 1)", "illegal_access", "VALIDATION_ERROR"),
        ({"allow_console": False}, "console.log(1)", "illegal_access", "VALIDATION_ERROR"),
        ({"disabled_builtins": ["Map"]}, "new Map()", "illegal_access", "VALIDATION_ERROR"),
        ({"disabled_globals": ["mcpNotify"]}, "mcpNotify('a')", "illegal_access", "VALIDATION_ERROR"),
    ],
)
def test_every_limit(limits, script, status, code):
    error = failed(script, tools={"f": lambda: 1, "never": never}, limits=limits)
    assert (error.status, error.code) == (status, code), error.message


def test_limits_that_are_met_exactly():
    assert agentscript.run("return 'é'", limits={"max_script_bytes": len("return 'é'".encode())}).result == "é"
    assert agentscript.run("return 'é'", limits={"max_result_bytes": 4}).result == "é"
    assert agentscript.run("console.log('x'.repeat(10))", limits={"max_console_bytes": 10}).logs == ["x" * 10]
    for calls, limit in ((1, 1), (5, 0)):
        script = f"for (let i = 0; i < {calls}; i++) await f({{}}); return 'all'"
        assert agentscript.run(script, tools={"f": lambda: 1}, limits={"max_tool_calls": limit}).result == "all"
    for name in agentscript.Limits.__annotations__:
        with pytest.raises(ValueError, match="must be"):
            agentscript.run("1", limits={name: -1})


def test_at_most_so_many_calls_are_concurrent():
    open_now, most = 0, 0

    async def call() -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.001)
        open_now -= 1

    script = "await Promise.all(Array.from({ length: 9 }, () => call({})))"
    agentscript.run(script, tools=[call], limits={"max_concurrency": 3})
    assert most == 3


def test_stats_have_the_documented_members():
    members = {"durationMs", "scriptMs", "steps", "iterations", "toolCalls", "peakMemoryBytes"}
    outcome = agentscript.run("for (const x of [1, 2]) await f({}); return 1", tools={"f": lambda: 1})
    assert set(outcome.stats) == members
    assert (outcome.stats["iterations"], outcome.stats["toolCalls"]) == (2, 2)
    assert 0 < outcome.stats["peakMemoryBytes"] < 64 << 20
    assert set(failed("null.a").stats) == members


def test_the_version_of_python_decides_who_suggests():
    from agentscript._options import suggests

    assert (suggests(print) is print) == (sys.version_info >= (3, 13))
