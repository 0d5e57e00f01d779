"""Runs of scripts: results, errors, tools, asyncio."""

import asyncio
import pickle
import signal
import subprocess
import sys
import threading

import pytest

import agentscript
from agentscript import RunError, Tool, ToolError, Toolset

BUSY = "let n = 0; while (true) n++;"
#: Limits under which only a cancellation ends a busy run.
ENDLESS = {
    "timeout_ms": 600_000,
    "max_duration_ms": 600_000,
    "max_steps": 10**15,
    "max_iterations": 10**15,
}


def failed(script, **options):
    with pytest.raises(RunError) as caught:
        agentscript.run(script, **options)
    return caught.value


def test_an_outcome():
    outcome = agentscript.run("console.log('a', [1]); return { list: [1, 2.5, null, 'é'], none: undefined }")
    assert outcome.result == {"list": [1, 2.5, None, "é"]}
    assert outcome.logs == ["a [ 1 ]"]
    assert outcome.stats["steps"] > 0
    assert outcome.to_dict() == {"status": "ok", "result": outcome.result, "logs": ["a [ 1 ]"], "warnings": outcome.warnings}
    assert agentscript.run("() => 1; return { f: () => 1 }").warnings != []


def test_texts_cross_unchanged():
    text = "\x00é漢🌍\ud800"

    def echo(text: str) -> str:
        return text

    script = "return { same: text === codecallContext.text, length: text.length, text: await echo({ text }) }"
    script = "const text = codecallContext.text; " + script
    outcome = agentscript.run(script, tools=[echo], context={"text": text})
    assert outcome.result == {"same": True, "length": 6, "text": text}


def test_numbers_cross_as_doubles():
    def numbers():
        return [2**53, 1e300, -0.5, float("nan"), float("inf"), True]

    assert agentscript.run("return await numbers()", tools=[numbers]).result == [2**53, 1e300, -0.5, None, None, True]


@pytest.mark.parametrize(
    ("script", "kind", "code", "place"),
    [
        ("return 1 +;", agentscript.ScriptSyntaxError, "SYNTAX_ERROR", (1, 11)),
        ("\n  eval('1')", agentscript.IllegalAccessError, "VALIDATION_ERROR", (2, 3)),
        ("null.name", agentscript.ScriptRuntimeError, "EXECUTION_ERROR", (1, 1)),
        ("while (true) {}", agentscript.ScriptRuntimeError, "ITERATION_LIMIT", (1, 1)),
        ("await callTool('no:tool', {})", agentscript.ToolCallError, "TOOL_NOT_FOUND", (1, 7)),
    ],
)
def test_errors_say_what_and_where(script, kind, code, place):
    error = failed(script)
    assert (type(error), error.code, tuple(error.location)) == (kind, code, place)
    assert error.message in str(error)
    assert f"line {place[0]}, column {place[1]}" in str(error)
    assert error.to_dict()["error"]["code"] == code


def test_all_violations_are_reported():
    error = failed("eval('1'); require('fs')")
    assert [issue.location.column for issue in error.issues] == [1, 12]
    assert error.hint or all(issue.message for issue in error.issues)


def test_an_error_has_its_calls_and_logs():
    def ok():
        return 1

    error = failed("console.log('before'); await ok(); throw new TypeError('no')", tools=[ok])
    assert (error.name, error.message, error.logs, error.tool_calls) == ("TypeError", "no", ["before"], 1)
    assert [(call["name"], call["status"]) for call in error.calls] == [("ok", "ok")]


def test_errors_can_be_pickled():
    error = pickle.loads(pickle.dumps(failed("null.x")))
    assert (type(error), error.code) == (agentscript.ScriptRuntimeError, "EXECUTION_ERROR")


def test_exceptions_of_tools():
    def broken():
        raise LookupError("nothing there")

    def refused():
        raise ToolError("too much", code="OVER_QUOTA", details={"left": 0})

    def ends():
        raise ToolError("stop", code="STOP", fatal=True)

    tools = [broken, refused, ends]
    script = "try { await refused() } catch (error) { return [error.message, error.code, error.details.left] }"
    assert agentscript.run(script, tools=tools).result == ["too much", "OVER_QUOTA", 0]
    error = failed("await broken()", tools=tools)
    assert (error.code, error.tool_name, error.message) == ("TOOL_EXECUTION_ERROR", "broken", "nothing there")
    assert isinstance(error.__cause__, LookupError)
    assert failed("try { await ends() } catch { return 'caught' }", tools=tools).code == "STOP"


def test_results_without_json():
    def odd():
        return object()

    error = failed("await odd()", tools=[odd])
    assert "a value of type object has no JSON" in error.message


def test_a_misspelt_tool_has_a_suggestion():
    def list_orders():
        return []

    assert "Did you mean 'list_orders'?" in failed("await callTool('list_order')", tools=[list_orders]).message


def test_wrong_settings():
    with pytest.raises(ValueError, match="did you mean 'max_steps'"):
        agentscript.run("1", limits={"max_step": 1})
    with pytest.raises(ValueError, match="there is no preset 'safe'"):
        agentscript.run("1", preset="safe")
    with pytest.raises(ValueError, match="the context must be an object"):
        agentscript.run("1", context=[1])
    with pytest.raises(TypeError, match="neither a function nor"):
        agentscript.run("1", tools=[3])


def test_limits_and_presets():
    assert failed("1;".rjust(100), limits={"max_script_bytes": 10}).code == "SCRIPT_TOO_LARGE"
    assert failed("for (const x of [1]) x", preset="locked_down").code == "LOOP_NOT_ALLOWED"
    assert failed("console.log(1)", limits={"allow_console": False}).code == "VALIDATION_ERROR"


def test_languages_and_dialects():
    assert agentscript.run("const n: number = 1; return n as number", language="typescript").result == 1
    assert failed("const n: number = 1", language="javascript").code == "SYNTAX_ERROR"
    double = Tool("math:double", lambda value: value["n"] * 2)
    script = "const { ok, result } = call_tool('math', 'double', { n: 4 }); return [ok, result]"
    assert agentscript.run(script, tools=[double], dialect="sync").result == [True, 8]


def test_fetch_only_where_it_is_given():
    def fetch(request):
        return {"status": 200, "headers": [["content-type", "application/json"]], "body": '{"url": "%s"}' % request["url"]}

    script = "const response = await fetch('https://example.com/a'); return (await response.json()).url"
    assert agentscript.run(script, fetch=fetch).result == "https://example.com/a"
    assert failed(script).code == "VALIDATION_ERROR"


def test_messages():
    seen = []
    agentscript.run("mcpLog('info', 'hello', { n: 1 }); mcpNotify('step', [1])", on_message=seen.append)
    assert seen == [
        {"type": "log", "level": "info", "message": "hello", "metadata": {"n": 1}},
        {"type": "notify", "event": "step", "payload": [1]},
    ]


def test_seeds():
    script = "return [Math.random(), crypto.randomUUID()]"
    assert agentscript.run(script, seed=7).result == agentscript.run(script, seed=7).result
    assert agentscript.run(script).result != agentscript.run(script).result


def test_reserved_apps_end_the_run():
    tools = Toolset([Tool("agent:execute", lambda value: None)], reserved=["agent"])
    error = failed("try { await agent.execute({}) } catch { return 'caught' }", tools=tools)
    assert (error.code, error.tool_calls) == ("SELF_REFERENCE_BLOCKED", 0)


def test_deep_results_are_an_error():
    error = failed("let x = []; for (let i = 0; i < 200000; i++) x = [x]; return x", limits={"max_steps": 10**8, "max_iterations": 10**6, "timeout_ms": 600_000})
    assert error.code in ("SERIALIZATION_ERROR", "RESULT_TOO_LARGE")


def test_plain_functions_are_called_in_order_in_the_thread():
    seen = []

    def note(n: int) -> int:
        seen.append((n, threading.get_ident()))
        return n

    script = "return Promise.all([1, 2, 3].map((n) => note({ n })))"
    assert agentscript.run(script, tools=[note]).result == [1, 2, 3]
    assert seen == [(n, threading.get_ident()) for n in (1, 2, 3)]


def test_timers_of_the_script():
    assert agentscript.run("await sleep(20); return 'woke'").result == "woke"


def test_async_tools_in_a_plain_run():
    async def answer():
        await asyncio.sleep(0)
        return 42

    assert agentscript.run("return await answer()", tools=[answer]).result == 42

    async def inside():
        return agentscript.run("return await answer()", tools=[answer])

    with pytest.raises(RuntimeError, match="await run_async"):
        asyncio.run(inside())


def test_a_hidden_coroutine_is_named():
    async def answer(value):
        return 42

    error = failed("return await later({})", tools=[Tool("later", lambda value: answer(value))])
    assert "Tool 'later' is async" in error.message


def test_calls_are_concurrent():
    async def main():
        together = asyncio.Event()
        count = 0

        async def meet():
            nonlocal count
            count += 1
            if count == 3:
                together.set()
            await together.wait()
            return count

        return await agentscript.run_async("return Promise.all([meet(), meet(), meet()])", tools=[meet])

    assert asyncio.run(main()).result == [3, 3, 3]


def test_plain_functions_are_concurrent_in_threads():
    barrier = threading.Barrier(3, timeout=60)

    def meet():
        barrier.wait()
        return True

    outcome = asyncio.run(agentscript.run_async("return Promise.all([meet(), meet(), meet()])", tools=[meet]))
    assert outcome.result == [True, True, True]


def test_cancelling_reaches_the_tools():
    async def main():
        started, ended = asyncio.Event(), []

        async def wait_forever():
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0)
                ended.append("cancelled")
                raise

        task = asyncio.create_task(agentscript.run_async("await wait_forever()", tools=[wait_forever]))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ended

    assert asyncio.run(main()) == ["cancelled"]


def test_busy_scripts_leave_the_loop_alone_and_can_be_cancelled():
    async def main():
        task = asyncio.create_task(agentscript.run_async(BUSY, limits=ENDLESS))
        for _ in range(100):
            await asyncio.sleep(0.001)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_other_threads_run_while_a_script_is_evaluated():
    run = agentscript.compile(BUSY, limits=ENDLESS).start()
    thread = threading.Thread(target=run.resume)
    thread.start()
    count = sum(1 for _ in range(100_000))
    assert thread.is_alive()
    run.cancel()
    thread.join(timeout=60)
    assert run.done
    with pytest.raises(RunError, match="cancel") as caught:
        run.outcome()
    assert (count, caught.value.code) == (100_000, "EXECUTION_ABORTED")


def test_interrupts_end_a_plain_run():
    # Whoever runs the tests in the background may have it ignored.
    handled = "import signal, agentscript; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{handled}; print('ready', flush=True); agentscript.run({BUSY!r}, limits={ENDLESS!r})"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=120)
    assert "KeyboardInterrupt" in errors


def test_a_slow_tool_times_out_and_is_cancelled():
    ended = []

    async def slow():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    script = "try { await slow() } catch (error) { return [error.code, error.message] }"
    outcome = asyncio.run(agentscript.run_async(script, tools=[slow], limits={"tool_timeout_ms": 20}))
    assert outcome.result == ["TOOL_TIMEOUT", "Tool 'slow' timed out after 20ms"]
    assert ended == [True]


def test_a_run_that_waits_too_long_ends():
    async def slow():
        await asyncio.Event().wait()

    with pytest.raises(agentscript.ScriptTimeoutError):
        asyncio.run(agentscript.run_async("await slow()", tools=[slow], limits={"max_duration_ms": 50}))


def test_what_lost_a_race_is_cancelled():
    ended = []

    async def fast():
        return "fast"

    async def slow():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("slow")

    outcome = asyncio.run(agentscript.run_async("return Promise.race([slow(), fast()])", tools=[slow, fast]))
    assert (outcome.result, ended) == ("fast", ["slow"])
    assert [call["name"] for call in outcome.unanswered] == ["slow"]


def test_a_script_aborts_a_call():
    async def main():
        ended = asyncio.Event()

        async def slow():
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def fast():
            return 1

        script = """
            const controller = new AbortController();
            const call = callTool('slow', {}, { signal: controller.signal }).catch((error) => error.name);
            await fast();
            controller.abort();
            return await call;
        """
        outcome = await agentscript.run_async(script, tools=[slow, fast])
        await asyncio.wait_for(ended.wait(), 60)
        return outcome.result

    assert asyncio.run(main()) == "AbortError"


def test_a_script_runs_many_times():
    def double(n: int) -> int:
        return n * 2

    script = agentscript.compile("return await double({ n: codecallContext.n })", tools=[double])
    assert [script.run({"n": n}).result for n in range(3)] == [0, 2, 4]

    async def together():
        return await asyncio.gather(*(script.run_async({"n": n}) for n in range(50)))

    assert [outcome.result for outcome in asyncio.run(together())] == [n * 2 for n in range(50)]


def test_a_run_that_the_caller_drives():
    run = agentscript.compile("return await callTool('a', { n: 1 }) + await callTool('b')").start()
    (first,) = run.resume()
    assert (first.tool, first.input, first.kind, first.timeout_ms) == ("a", {"n": 1}, "tool", 30_000)
    with pytest.raises(RuntimeError, match="has not ended"):
        run.outcome()
    run.answer(first.id, 40)
    (second,) = run.resume()
    assert run.memory_bytes > 0
    run.answer(second.id, 2)
    assert run.resume() == [] and run.done
    assert run.outcome().result == 42


def test_time_of_the_host():
    run = agentscript.compile("const began = Date.now(); await sleep(1000); return [began, Date.now()]").start(
        host_time=True, unix_ms=5000
    )
    assert run.resume() == [] and run.next_timer_ms == 1000
    run.advance(1000)
    run.resume()
    assert run.outcome().result == [5000, 6000]


def test_steps():
    source = "const [a, b] = await Promise.all([callTool('n', { n: 1 }), callTool('n', { n: 2 })]); return [a + b, Date.now()]"
    script = agentscript.compile(source)
    journal = script.journal("code_1", unix_ms=7)
    step = script.step(journal)
    assert [(call.id, call.tool, call.input) for call in step.calls] == [(0, "n", {"n": 1}), (1, "n", {"n": 2})]
    token = step.journal.answer(1, 20).to_token(b"key")
    # Another process goes on.
    journal = agentscript.Journal.from_token(token, b"key")
    step = agentscript.compile(source).step(journal)
    assert (step.calls, step.waiting, step.outcome) == ([], [0], None)
    journal = agentscript.Journal.from_dict(step.journal.to_dict())
    assert journal == step.journal
    assert script.step(journal.answer(0, 1)).outcome.result == [21, 7]
    with pytest.raises(RunError) as caught:
        script.step(journal.fail(0, "down", code="DOWN"))
    assert caught.value.code == "DOWN"


def test_journals_are_checked():
    one, other = agentscript.compile("await callTool('a')"), agentscript.compile("await callTool('b')")
    with pytest.raises(RunError) as caught:
        other.step(one.step(one.journal("id")).journal)
    assert caught.value.code == "REPLAY_MISMATCH"
    with pytest.raises(ValueError, match="there is no call 0"):
        one.journal("id").answer(0, 1)
    with pytest.raises(ValueError, match="not issued here"):
        agentscript.Journal.from_token(one.journal("id").to_token(b"key"), b"other")
    with pytest.raises(ValueError, match="not a journal"):
        agentscript.Journal.from_dict({"id": 1})
