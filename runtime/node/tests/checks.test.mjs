/** Inputs that are checked against schemas, names that do not exist, limits, and the handler of all names. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { failed } from "./failed.mjs";

const { Toolset, compile, run, runSync } = await import(process.env.AGENTSCRIPT ?? "@codecall/agentscript");

const USER = {
  type: "object",
  properties: { id: { type: "integer", minimum: 1 }, note: { type: "string" }, all: { type: "array" } },
  required: ["id"],
  additionalProperties: false,
};
const userTool = (execute, more) => ({ inputSchema: USER, execute, ...more });

test("inputs are checked against schemas", async () => {
  for (const [given, message] of [
    ["{ id: 'x' }", 'id: "x" is not of type "integer"'],
    ["{ id: 0 }", "id: 0 is less than the minimum of 1"],
    ["{}", '"id" is a required property; expected id: number'],
    ["{ ID: 1 }", "expected id: number, instead of 'ID'"],
    ["{ id: 1, nte: '' }", "did you mean 'note'?"],
  ]) {
    const seen = [];
    const error = await failed(`await getUser(${given})`, { tools: { get_user: userTool((input) => seen.push(input)) } });
    assert.deepEqual([error.status, error.code, error.toolName, seen], ["tool_error", "INVALID_INPUT", "get_user", []]);
    assert.ok(error.message.startsWith("Invalid input for tool 'get_user':\n"), error.message);
    assert.ok(error.message.includes(message), error.message);
    assert.ok(error.details.issues.length > 0 && error.details.signature.startsWith('callTool("get_user", input'));
  }
});

test("calls that fit are made beside those that do not", async () => {
  const script = `const all = await Promise.allSettled([1, 'x', 3].map((id) => double({ id, note: null })));
    return all.map(({ value, reason }) => value ?? reason.code)`;
  const later = { double: userTool(async ({ id }) => id * 2) };
  assert.deepEqual((await run(script, { tools: later })).result, [2, "INVALID_INPUT", 6]);
  const atOnce = { double: userTool(({ id }) => id * 2) };
  assert.deepEqual(runSync(script, { tools: atOnce }).result, [2, "INVALID_INPUT", 6]);
});

test("null for what is optional is left out", async () => {
  const tools = { get: userTool((input) => input) };
  assert.deepEqual((await run("return await get({ id: 1, note: null })", { tools })).result, { id: 1 });
  assert.equal((await failed("await get({ id: null })", { tools })).code, "INVALID_INPUT");
});

test("long inputs are checked", async () => {
  const script = "return (await get({ id: 1, all: Array(100_000).fill(1) })).all.length";
  assert.equal((await run(script, { tools: { get: userTool((input) => input) } })).result, 100_000);
  const inputSchema = { ...USER, properties: { ...USER.properties, all: { items: { type: "string" } } } };
  const tools = { get: { inputSchema, execute: (input) => input } };
  assert.equal((await failed(script, { tools })).code, "INVALID_INPUT");
  assert.throws(() => runSync(script, { tools }), /Invalid input/);
});

test("a tool can check its input itself", async () => {
  const own = { get: userTool((input) => input, { checkInput: false }) };
  assert.deepEqual((await run("return await get({ more: 1 })", { tools: own })).result, { more: 1 });
  // As `jsonSchema(…, { validate })` and `zodSchema(…)` of the AI SDK are.
  const validate = async (input) =>
    typeof input.id === "number" ? { success: true, value: { id: input.id + 1 } } : { success: false, error: new Error("no id") };
  const held = { get: { inputSchema: { jsonSchema: { required: ["other"] }, validate }, execute: ({ id }) => id } };
  assert.equal((await run("return await get({ id: 1 })", { tools: held })).result, 2);
  const error = await failed("await get({})", { tools: held });
  assert.deepEqual([error.code, error.message], ["INVALID_INPUT", "no id"]);
  const plain = { get: { inputSchema: { jsonSchema: USER }, execute: ({ id }) => id } };
  assert.equal((await failed("await get({})", { tools: plain })).code, "INVALID_INPUT");
});

test("steps check inputs", () => {
  const script = compile("await get({})", { tools: { get: userTool(() => 1) } });
  assert.throws(() => script.step(script.journal("id")), /Invalid input/);
});

test("a run that the caller drives gets calls that fit", async () => {
  const source = "const [a, b] = await Promise.allSettled([get({ id: 1 }), get({})]); return [a.value, b.reason.code]";
  const running = compile(source, { tools: { get: userTool(() => 0) } }).start();
  const calls = running.resume();
  assert.deepEqual([calls.map(({ input }) => input), running.timeLeftMs], [[{ id: 1 }], 0]);
  running.answer(calls[0].id, 5);
  running.resume();
  assert.deepEqual(running.outcome().result, [5, "INVALID_INPUT"]);
});

test("misspelt names of tools have a suggestion", async () => {
  const tools = { "users:list": () => [], get_user: ({ id }) => id };
  for (const script of ["await callTool('user:lst')", "await users.lsit({})", "await callTool('users_lst')"]) {
    const { message, hint } = await failed(script, { tools });
    assert.match(`${message} ${hint}`, /users[:.]list/);
  }
  assert.match((await failed("await getUsr({ id: 1 })", { tools })).hint, /getUser/);
});

test("misspelt options have a suggestion", async () => {
  const hint = (wrong, right) => ({ name: "TypeError", message: `there is no option '${wrong}'; did you mean '${right}'?` });
  await assert.rejects(run("1", { tool: {} }), hint("tool", "tools"));
  await assert.rejects(run("1", { contxt: {} }), hint("contxt", "context"));
  await assert.rejects(compile("1").run({ signl: undefined, contexts: {} }), hint("contexts", "context"));
  assert.throws(() => compile("1", { presets: "secure" }), hint("presets", "preset"));
  assert.throws(() => runSync("1", { onMesage: () => {} }), hint("onMesage", "onMessage"));
  assert.throws(() => compile("1").runSync({ seeds: 1 }), hint("seeds", "seed"));
  assert.throws(() => compile("1").start({ host_time: true }), hint("host_time", "hostTime"));
  assert.throws(() => compile("1").journal("id", { unixms: 1 }), hint("unixms", "unixMs"));
  assert.throws(() => new Toolset({}, { reservd: [] }), hint("reservd", "reserved"));
  assert.throws(() => compile("1", { zebra: 1 }), /there is no option 'zebra'; there are: tools, onCall, preset/);
  assert.throws(() => compile("1", { limits: { max_steps: 1 } }), /there is no limit 'max_steps'; did you mean 'maxSteps'/);
  assert.throws(() => compile("1", { limits: { fetch: true } }), /there is no limit 'fetch'/);
  assert.equal((await run("return 1", { tools: undefined, other: undefined })).result, 1);
});

test("misspelt members of a tool have a suggestion", () => {
  const execute = () => 1;
  const hint = (wrong, right) => ({ name: "TypeError", message: `tool 't': there is no '${wrong}'; did you mean '${right}'?` });
  assert.throws(() => new Toolset({ t: { execute, inputSchmea: {} } }), hint("inputSchmea", "inputSchema"));
  assert.throws(() => new Toolset({ t: { execute, input_schema: {} } }), hint("input_schema", "inputSchema"));
  assert.throws(() => new Toolset({ t: { execute, descripton: "" } }), hint("descripton", "description"));
  // Members of tools of the AI SDK.
  const more = ["type", "title", "id", "name", "args", "strict", "needsApproval", "providerOptions", "toModelOutput", "inputExamples"];
  const events = ["onInputStart", "onInputDelta", "onInputAvailable", "metadata", "dynamic", "isProviderExecuted"];
  new Toolset({ t: { execute, ...Object.fromEntries([...more, ...events].map((name) => [name, {}])) } });
});

test("a handler of all names", async () => {
  const calls = [];
  const onCall = (name, input, { signal, toolName }) => {
    calls.push([name, input, signal.aborted, toolName]);
    if (name === "no:such") throw new Error(`Unknown tool: ${name}`);
    return { name, id: input.id };
  };
  const script = `const known = await getUser({ id: 1 }), other = await callTool('billing:get', { id: 2 });
    try { await callTool('no:such', {}) } catch (error) { return [known, other.name, error.message, error.code] }`;
  const tools = { get_user: ({ id }) => `user ${id}` };
  const expected = ["user 1", "billing:get", "Unknown tool: no:such", "TOOL_EXECUTION_ERROR"];
  assert.deepEqual((await run(script, { tools, onCall })).result, expected);
  assert.deepEqual(calls, [["billing:get", { id: 2 }, false, "billing:get"], ["no:such", {}, false, "no:such"]]);
  assert.deepEqual(runSync(script, { tools, onCall }).result, expected);
  assert.deepEqual((await compile(script, { tools, onCall: async (...all) => onCall(...all) }).run()).result, expected);
  assert.equal((await failed("await callTool('billing:get', {})", { tools })).code, "TOOL_NOT_FOUND");
  const sync = "return call_tool('math', 'double', { n: 4 }).result.name";
  assert.equal((await run(sync, { onCall, dialect: "sync" })).result, "math:double");
  const reserved = new Toolset({}, { reserved: ["agent"] });
  assert.equal((await failed("await callTool('agent:run', {})", { tools: reserved, onCall })).status, "illegal_access");
});

const ENDLESS = { timeoutMs: 600_000, maxDurationMs: 600_000, maxSteps: 1e15, maxIterations: 1e15 };

test("every limit", async () => {
  const never = (input, { signal }) =>
    new Promise((resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  for (const [limits, script, status, code] of [
    [{ ...ENDLESS, timeoutMs: 50 }, "while (true) {}", "timeout", "TIMEOUT"],
    [{ ...ENDLESS, maxDurationMs: 50 }, "await sleep(60_000)", "timeout", "TIMEOUT"],
    [{ toolTimeoutMs: 20 }, "await never({})", "tool_error", "TOOL_TIMEOUT"],
    [{ maxIterations: 5 }, "for (let i = 0; i < 6; i++) {}", "runtime_error", "ITERATION_LIMIT"],
    [{ maxSteps: 100 }, "for (let i = 0; i < 100; i++) {}", "runtime_error", "STEP_LIMIT"],
    [{ maxToolCalls: 1 }, "await f({}); await f({})", "runtime_error", "MAX_TOOL_CALLS_EXCEEDED"],
    [{ maxMemoryBytes: 1e6 }, "const a = []; for (;;) a.push({})", "runtime_error", "MEMORY_LIMIT"],
    [{ maxCallDepth: 20 }, "const f = (n) => n && 1 + f(n - 1); f(30)", "runtime_error", "EXECUTION_ERROR"],
    [{ maxScriptBytes: 10 }, "return 'é'", "syntax_error", "SCRIPT_TOO_LARGE"],
    [{ maxResultBytes: 3 }, "return 'é'", "runtime_error", "RESULT_TOO_LARGE"],
    [{ maxConsoleBytes: 9 }, "console.log('x'.repeat(10))", "runtime_error", "CONSOLE_LIMIT"],
    [{ maxConsoleCalls: 1 }, "console.log(1); console.log(2)", "runtime_error", "CONSOLE_LIMIT"],
    [{ loops: "none" }, "for (const x of []) {}", "illegal_access", "LOOP_NOT_ALLOWED"],
    [{ loops: "bounded" }, "while (false) {}", "illegal_access", "LOOP_NOT_ALLOWED"],
    [{ allowLoops: false }, "for (const x of []) {}", "illegal_access", "LOOP_NOT_ALLOWED"],
    [{ timers: false }, "setTimeout(() => {}, 1)", "illegal_access", "VALIDATION_ERROR"],
    [{ allowConsole: false }, "console.log(1)", "illegal_access", "VALIDATION_ERROR"],
    [{ disabledBuiltins: ["Map"] }, "new Map()", "illegal_access", "VALIDATION_ERROR"],
    [{ disabledGlobals: ["mcpNotify"] }, "mcpNotify('a')", "illegal_access", "VALIDATION_ERROR"],
  ]) {
    const error = await failed(script, { tools: { f: () => 1, never }, limits });
    assert.deepEqual([error.status, error.code], [status, code], `${JSON.stringify(limits)}: ${error.message}`);
    for (const name of Object.keys(limits)) {
      assert.throws(() => compile("1", { limits: { [name]: -1 } }), new RegExp(`the limit '${name}' must be`));
    }
  }
});

test("limits that are met exactly", async () => {
  assert.equal((await run("return 'é'", { limits: { maxScriptBytes: Buffer.byteLength("return 'é'") } })).result, "é");
  assert.equal((await run("return 'é'", { limits: { maxResultBytes: 4 } })).result, "é");
  const logged = await run("console.log('x'.repeat(10))", { limits: { maxConsoleBytes: 10 } });
  assert.deepEqual(logged.logs, ["x".repeat(10)]);
  for (const [calls, maxToolCalls] of [[1, 1], [5, 0]]) {
    const script = `for (let i = 0; i < ${calls}; i++) await f({}); return 'all'`;
    assert.equal((await run(script, { tools: { f: () => 1 }, limits: { maxToolCalls } })).result, "all");
  }
  let open = 0;
  let most = 0;
  const call = async () => {
    most = Math.max(most, ++open);
    await new Promise((wake) => setTimeout(wake, 1));
    open -= 1;
  };
  await run("await Promise.all(Array.from({ length: 9 }, () => call({})))", { tools: { call }, limits: { maxConcurrency: 3 } });
  assert.equal(most, 3);
});

test("stats have the documented members", async () => {
  const members = ["durationMs", "iterations", "peakMemoryBytes", "scriptMs", "steps", "toolCalls"];
  const { stats } = await run("for (const x of [1, 2]) await f({}); return 1", { tools: { f: () => 1 } });
  assert.deepEqual(Object.keys(stats).sort(), members);
  assert.deepEqual([stats.iterations, stats.toolCalls], [2, 2]);
  assert.ok(stats.peakMemoryBytes > 0 && stats.peakMemoryBytes < 64 << 20);
  assert.deepEqual(Object.keys((await failed("null.a")).stats).sort(), members);
});
