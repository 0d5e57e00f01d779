/** Runs of scripts: results, errors, tools, promises. The same tests run in Node, Deno and Bun. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { failed } from "./failed.mjs";

const {
  Journal, RunError, ToolError, Toolset, compile, declarations, run, runSync,
} = await import(process.env.AGENTSCRIPT ?? "@codecall/agentscript");

const BUSY = "let n = 0; while (true) n++;";
/** Limits under which only a cancellation ends a busy run. */
const ENDLESS = { timeoutMs: 600_000, maxDurationMs: 600_000, maxSteps: 1e15, maxIterations: 1e15 };

/** A promise, and what settles it. */
function deferred() {
  let resolve;
  const promise = new Promise((settle) => (resolve = settle));
  return { promise, resolve };
}

/** A tool that answers only when it is aborted. */
function untilAborted(aborted) {
  return (input, { signal }) =>
    new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => {
        aborted.push(signal.reason);
        reject(signal.reason);
      });
    });
}

test("an outcome", async () => {
  const outcome = await run("console.log('a', [1]); return { list: [1, 2.5, null, 'é'], none: undefined }");
  assert.deepEqual(outcome.result, { list: [1, 2.5, null, "é"] });
  assert.deepEqual([outcome.logs, outcome.warnings.length], [["a [ 1 ]"], 1]);
  assert.ok(outcome.stats.steps > 0);
});

test("texts and keys cross unchanged", async () => {
  const text = "\0é漢🌍\ud800";
  const script = "const { text } = codecallContext; return [await echo({ text }) === text, text.length, text]";
  const tools = { echo: ({ text }) => text };
  assert.deepEqual((await run(script, { tools, context: { text } })).result, [true, 6, text]);
  const odd = JSON.parse('{"__proto__": 1, "2": 2, "1": 1}');
  const { result } = await run("return await odd()", { tools: { odd: () => odd } });
  assert.deepEqual([Object.keys(result), Object.getPrototypeOf(result)], [["1", "2", "__proto__"], Object.prototype]);
});

test("errors say what and where", async () => {
  for (const [script, status, code, line, column] of [
    ["return 1 +;", "syntax_error", "SYNTAX_ERROR", 1, 11],
    ["\n  eval('1')", "illegal_access", "VALIDATION_ERROR", 2, 3],
    ["null.name", "runtime_error", "EXECUTION_ERROR", 1, 1],
    ["while (true) {}", "runtime_error", "ITERATION_LIMIT", 1, 1],
    ["await callTool('no:tool', {})", "tool_error", "TOOL_NOT_FOUND", 1, 7],
  ]) {
    const error = await failed(script);
    assert.deepEqual([error.status, error.code, error.location], [status, code, { line, column }]);
    assert.equal(JSON.parse(JSON.stringify(error)).error.message, error.message);
  }
  assert.deepEqual((await failed("eval('1'); require('fs')")).issues.map((issue) => issue.location.column), [1, 12]);
});

test("an error has its calls and logs", async () => {
  const tools = { ok: () => 1 };
  const error = await failed("console.log('before'); await ok(); throw new TypeError('no')", { tools });
  assert.deepEqual([error.errorName, error.message, error.logs, error.toolCalls], ["TypeError", "no", ["before"], 1]);
  assert.deepEqual(error.calls.map(({ name, status }) => [name, status]), [["ok", "ok"]]);
});

test("errors of tools", async () => {
  const broken = new RangeError("nothing there");
  const tools = {
    broken: async () => { throw broken; },
    refused: () => { throw new ToolError("too much", { code: "OVER_QUOTA", details: { left: 0 } }); },
    ends: () => { throw new ToolError("stop", { code: "STOP", fatal: true }); },
    text: () => { throw "a text"; },
    big: () => 1n,
  };
  const script = "try { await refused() } catch (error) { return [error.message, error.code, error.details.left] }";
  assert.deepEqual((await run(script, { tools })).result, ["too much", "OVER_QUOTA", 0]);
  const error = await failed("await broken()", { tools });
  assert.deepEqual([error.code, error.toolName, error.cause], ["TOOL_EXECUTION_ERROR", "broken", broken]);
  assert.equal((await failed("try { await ends() } catch { return 1 }", { tools })).code, "STOP");
  assert.equal((await failed("await text()", { tools })).message, "a text");
  assert.match((await failed("await big()", { tools })).message, /has no JSON.*BigInt/);
});

test("a misspelt tool has a suggestion", async () => {
  const error = await failed("await callTool('list_order')", { tools: { list_orders: () => [] } });
  assert.match(error.message, /Did you mean 'list_orders'\?/);
});

test("wrong settings", async () => {
  await assert.rejects(run("1", { limits: { maxStep: 1 } }), /TypeError: there is no limit 'maxStep'; did you mean 'maxSteps'/);
  await assert.rejects(run("1", { preset: "safe" }), /there is no preset 'safe'/);
  await assert.rejects(run("1", { context: [1] }), /the context must be an object/);
  await assert.rejects(run("1", { tools: { a: 3 } }), /tool 'a': a tool is a function or an object/);
  assert.throws(() => new Toolset({ get_user: () => 1, getUser: () => 1 }), /would both be the function getUser/);
});

test("languages, dialects, limits, fetch", async () => {
  assert.equal((await run("const n: number = 1; return n", { language: "typescript" })).result, 1);
  assert.equal((await failed("const n: number = 1", { language: "javascript" })).code, "SYNTAX_ERROR");
  const tools = { "math:double": ({ n }) => n * 2 };
  const script = "const { ok, result } = call_tool('math', 'double', { n: 4 }); return [ok, result]";
  assert.deepEqual((await run(script, { tools, dialect: "sync" })).result, [true, 8]);
  assert.equal((await failed("for (const x of [1]) x", { preset: "locked_down" })).code, "LOOP_NOT_ALLOWED");
  const fetch = ({ url }) => ({ status: 200, headers: [], body: `you asked for ${url}` });
  const asks = "return (await fetch('https://example.com/a')).text()";
  assert.equal((await run(asks, { fetch })).result, "you asked for https://example.com/a");
  assert.equal((await failed(asks)).code, "VALIDATION_ERROR");
});

test("messages and seeds", async () => {
  const seen = [];
  await run("mcpLog('info', 'hello', { n: 1 }); mcpNotify('step', [1])", { onMessage: (message) => seen.push(message) });
  assert.deepEqual(seen, [
    { type: "log", level: "info", message: "hello", metadata: { n: 1 } },
    { type: "notify", event: "step", payload: [1] },
  ]);
  const script = "return [Math.random(), crypto.randomUUID()]";
  assert.deepEqual((await run(script, { seed: 7 })).result, (await run(script, { seed: 7 })).result);
  assert.notDeepEqual((await run(script)).result, (await run(script)).result);
});

test("calls are concurrent", async () => {
  const all = deferred();
  let count = 0;
  const meet = () => {
    count += 1;
    if (count === 3) all.resolve();
    return all.promise.then(() => count);
  };
  assert.deepEqual((await run("return Promise.all([meet(), meet(), meet()])", { tools: { meet } })).result, [3, 3, 3]);
});

test("a signal cancels the run and its calls", async () => {
  const aborted = [];
  const controller = new AbortController();
  const wait = untilAborted(aborted);
  const tools = { wait: (input, options) => { queueMicrotask(() => controller.abort(new Error("enough"))); return wait(input, options); } };
  await assert.rejects(run("await wait()", { tools, signal: controller.signal }), /enough/);
  assert.equal(aborted.length, 1);
  await assert.rejects(run("1", { signal: AbortSignal.abort() }), { name: "AbortError" });
});

test("busy scripts leave the thread alone and can be cancelled", async () => {
  const controller = new AbortController();
  const busy = run(BUSY, { limits: ENDLESS, signal: controller.signal });
  for (let n = 0; n < 20; n += 1) await new Promise((resolve) => setTimeout(resolve, 1));
  controller.abort();
  await assert.rejects(busy, { name: "AbortError" });
});

test("a slow tool times out and is aborted", async () => {
  const aborted = [];
  const script = "try { await slow() } catch (error) { return [error.code, error.message] }";
  const { result } = await run(script, { tools: { slow: untilAborted(aborted) }, limits: { toolTimeoutMs: 20 } });
  assert.deepEqual(result, ["TOOL_TIMEOUT", "Tool 'slow' timed out after 20ms"]);
  assert.equal(aborted[0].code, "TOOL_TIMEOUT");
  const error = await failed("await slow()", { tools: { slow: untilAborted(aborted) }, limits: { maxDurationMs: 50 } });
  assert.deepEqual([error.status, aborted.length], ["timeout", 2]);
});

test("what lost a race is aborted", async () => {
  const aborted = [];
  const tools = { slow: untilAborted(aborted), fast: async () => "fast" };
  const { result, unanswered } = await run("return Promise.race([slow(), fast()])", { tools });
  assert.deepEqual([result, aborted.length, unanswered[0].name], ["fast", 1, "slow"]);
});

test("a script aborts a call", async () => {
  const aborted = [];
  const script = `
    const controller = new AbortController();
    const call = callTool('slow', {}, { signal: controller.signal }).catch((error) => error.name);
    await fast();
    controller.abort();
    return await call;`;
  const tools = { slow: untilAborted(aborted), fast: async () => 1 };
  assert.deepEqual([(await run(script, { tools })).result, aborted.length], ["AbortError", 1]);
});

test("plain functions in one go", async () => {
  const tools = { double: ({ n }) => n * 2, later: async () => 1 };
  assert.deepEqual(runSync("return Promise.all([1, 2].map((n) => double({ n })))", { tools }).result, [2, 4]);
  assert.throws(() => runSync("await later()", { tools }), /Tool 'later' gave a promise: use run/);
  if (typeof window === "undefined") assert.equal(runSync("await sleep(20); return 'woke'").result, "woke");
});

test("timers", async () => {
  assert.equal((await run("await sleep(20); return 'woke'")).result, "woke");
});

test("a script runs many times", async () => {
  const script = compile("return await double({ n: codecallContext.n })", { tools: { double: async ({ n }) => n * 2 } });
  const outcomes = await Promise.all(Array.from({ length: 50 }, (_, n) => script.run({ context: { n } })));
  assert.deepEqual(outcomes.map(({ result }) => result), Array.from({ length: 50 }, (_, n) => n * 2));
});

test("schemas of Zod: declarations, checks, defaults", async () => {
  const order = {
    description: "Order things.",
    inputSchema: z.object({
      sku: z.string().describe("Which one"),
      count: z.number().int().min(1).default(1),
      color: z.enum(["red", "blue"]).optional(),
    }),
    outputSchema: z.object({ total: z.number() }),
    execute: ({ count }) => ({ total: count * 2 }),
  };
  const tools = { order };
  assert.equal((await run("return (await order({ sku: 'a' })).total", { tools })).result, 2);
  const error = await failed("await order({ sku: 1 })", { tools });
  assert.equal(error.code, "INVALID_INPUT");
  assert.match(error.message, /^sku: /);
  const text = declarations(tools);
  assert.match(text, /\/\*\* Order things\. \*\/\ndeclare function order\(input: \{\n {2}sku: string; \/\/ Which one\n/);
  assert.match(text, /color\?: "red" \| "blue";/);
  assert.match(text, /Promise<\{\n {2}total: number;\n\}>/);
});

test("other forms of schemas", () => {
  const object = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
  const execute = () => 1;
  for (const inputSchema of [object, { jsonSchema: object, validate: undefined }]) {
    assert.match(declarations({ f: { inputSchema, execute } }), /a: string/);
  }
  const strange = { "~standard": { version: 1, vendor: "strange", validate: (value) => ({ value }) } };
  assert.throws(() => declarations({ f: { inputSchema: strange, execute } }), /schema of 'strange' has no JSON form/);
});

test("apps, and what is reserved", async () => {
  const tools = { "users:get_by_id": ({ id }) => ({ id }), "agent:execute": () => 1 };
  const set = new Toolset(tools, { reserved: ["agent"] });
  assert.equal((await run("return (await users.getById({ id: 3 })).id", { tools: set })).result, 3);
  assert.equal((await failed("try { await agent.execute({}) } catch { return 1 }", { tools: set })).code, "SELF_REFERENCE_BLOCKED");
});

test("a run that the caller drives, in time of its own", () => {
  const run = compile("const began = Date.now(); await sleep(1000); return [began, Date.now(), await callTool('a')]").start({
    hostTime: true,
    unixMs: 5000,
  });
  assert.deepEqual([run.resume(), run.nextTimerMs, run.done], [[], 1000, false]);
  assert.throws(() => run.outcome(), /has not ended/);
  run.advance(1000);
  const [call] = run.resume();
  assert.deepEqual([call.tool, call.input, call.kind, call.timeoutMs], ["a", {}, "tool", 30_000]);
  assert.ok(run.memoryBytes > 0);
  run.answer(call.id, 1);
  assert.deepEqual([run.resume(), run.done, run.outcome().result], [[], true, [5000, 6000, 1]]);
});

test("steps", () => {
  const source = "const [a, b] = await Promise.all([callTool('n', { n: 1 }), callTool('n', { n: 2 })]); return [a + b, Date.now()]";
  const script = compile(source);
  const step = script.step(script.journal("code_1", { unixMs: 7 }));
  assert.deepEqual(step.calls.map(({ id, input }) => [id, input]), [[0, { n: 1 }], [1, { n: 2 }]]);
  const key = new TextEncoder().encode("key");
  const token = step.journal.answer(1, 20).toToken(key);
  const next = compile(source).step(Journal.fromToken(token, key));
  assert.deepEqual([next.done, next.calls, next.waiting], [false, [], [0]]);
  const journal = Journal.from(JSON.parse(JSON.stringify(next.journal)));
  assert.deepEqual(script.step(journal.answer(0, 1)).outcome.result, [21, 7]);
  assert.throws(() => script.step(journal.fail(0, "down", { code: "DOWN" })), { code: "DOWN" });
  assert.throws(() => compile("await callTool('b')").step(journal), { code: "REPLAY_MISMATCH" });
  assert.throws(() => journal.answer(7, 1), /TypeError: there is no call 7/);
  assert.throws(() => Journal.fromToken(token, new Uint8Array([1])), /not issued here/);
});
