/**
 * Runs cases of the corpus through the package: a line of JSON for each case, and one for each outcome.
 *
 * Each case runs in virtual time, with a run that this file drives. One whose outcome does not depend on time is also run with
 * `run` and `runSync`, which must come to the same.
 */

import { writeSync } from "node:fs";
import { createInterface } from "node:readline";

const { RunError, ToolError, Toolset, compile, run, runSync } = await import(
  process.argv[2] ?? "@codecall/agentscript"
);

/** What a script that depends on time mentions. */
const TIME =
  /setTimeout|setInterval|sleep|Date|performance|console\.time|[tT]imeout|race|any\(|Abort|mcpLog|random|getRandomValues|randomUUID/;

/** A case that takes longer runs only once. */
const LONG_MS = 1000;

/** Tools that answer from a list of responses. */
class Fixture {
  constructor(testCase) {
    this.tools = new Map(testCase.tools.map((tool) => [tool.name, tool]));
    this.allowed = testCase.allowed;
    this.used = new Map();
  }

  toolset(execute) {
    const tools = [...this.tools.values()].map(({ name, description, inputSchema, outputSchema }) => [
      name,
      { description, inputSchema, outputSchema, checkInput: false, execute: execute(name) },
    ]);
    return new Toolset(Object.fromEntries(tools), { reserved: ["codecall"] });
  }

  /** The delay of a call, and its result or error. */
  answer(name, kind, input, timeoutMs) {
    const tool = this.tools.get(name);
    if (tool === undefined) {
      return { delay: 0, error: new ToolError(`Tool '${name}' is not known`, { code: "TOOL_NOT_FOUND" }) };
    }
    if (this.allowed !== null && !this.allowed.includes(name)) {
      const error = new ToolError(`Tool '${name}' is not allowed in this run`, { code: "ACCESS_DENIED" });
      return { delay: 0, error };
    }
    const delay = tool.delayMs ?? 0;
    if (delay > timeoutMs) {
      const message = `Tool '${name}' timed out after ${timeoutMs}ms`;
      return { delay: timeoutMs, error: new ToolError(message, { code: "TOOL_TIMEOUT" }) };
    }
    for (const [index, response] of tool.responses.entries()) {
      const key = `${name} ${index}`;
      const count = this.used.get(key) ?? 0;
      if (!fits(response.input, input, kind) || count >= (response.times ?? Infinity)) continue;
      this.used.set(key, count + 1);
      if (response.error === undefined) return { delay, result: response.output };
      const { message, code = "TOOL_EXECUTION_ERROR", details } = response.error;
      return { delay, error: new ToolError(message, { code, details }) };
    }
    return { delay, error: new ToolError(`No response of '${name}' for this input`, { code: "NO_MOCK_RESPONSE" }) };
  }
}

function fits(wanted, input, kind) {
  if (wanted === null || wanted === undefined) return true;
  if (kind === "fetch" && typeof wanted === "object") {
    return Object.entries(wanted).every(([key, part]) => same(input[key], part));
  }
  return same(wanted, input);
}

function same(a, b) {
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b;
  const keys = Object.keys(a);
  return (
    Array.isArray(a) === Array.isArray(b) &&
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]))
  );
}

function optionsOf(testCase, fixture, execute) {
  const { fetch, ...limits } = testCase.limits;
  const { preset, dialect } = testCase;
  const language = testCase.language ?? undefined;
  const tools = fixture.toolset(execute);
  return { tools, preset, limits, language, dialect, fetch: fetch ? execute("fetch") : undefined };
}

const contextOf = (testCase) => testCase.context ?? undefined;

async function outcomeOf(call) {
  try {
    const { status, result, warnings, logs } = await call();
    return { status, result, warnings, logs };
  } catch (error) {
    if (error instanceof RunError) return error.toJSON();
    throw error;
  }
}

/** Answers calls in the order of their delays, but without waiting. */
function inVirtualTime(testCase) {
  const fixture = new Fixture(testCase);
  return outcomeOf(() => {
    const script = compile(testCase.script, optionsOf(testCase, fixture, () => () => {}));
    const run = script.start({ context: contextOf(testCase), seed: 1, hostTime: true });
    let pending = [];
    let now = 0;
    for (;;) {
      const calls = run.resume();
      if (run.done) return run.outcome();
      for (const { id, kind, tool, input, timeoutMs } of calls) {
        const answer = fixture.answer(tool, kind, input, timeoutMs);
        pending.push({ id, at: now + answer.delay, ...answer });
      }
      const cancelled = run.takeCancelled();
      pending = pending.filter(({ id }) => !cancelled.includes(id)).sort((a, b) => a.at - b.at || a.id - b.id);
      const timer = run.nextTimerMs;
      const at = Math.min(timer ?? Infinity, pending[0]?.at ?? Infinity);
      if (at === Infinity) continue;
      now = Math.max(now, at);
      run.advance(now);
      if (timer !== undefined && timer <= now) continue;
      const { id, error, result } = pending.shift();
      if (error === undefined) run.answer(id, result);
      else run.fail(id, error.message, error);
    }
  });
}

/** The same with functions as tools, in real time. */
function byFunctions(testCase, isAsync) {
  const fixture = new Fixture(testCase);
  const execute = (name) => {
    const call = (input) => {
      const { error, result } = fixture.answer(name, name === "fetch" ? "fetch" : "tool", input, 1e6);
      if (error !== undefined) throw error;
      return result;
    };
    return isAsync ? async (input) => call(input) : call;
  };
  const options = { ...optionsOf(testCase, fixture, execute), context: contextOf(testCase), seed: 1 };
  return outcomeOf(() => (isAsync ? run(testCase.script, options) : runSync(testCase.script, options)));
}

/** An outcome without what is not the same in every run, and with its keys in order. */
function comparable(outcome) {
  const { calls, omittedCalls, ...error } = outcome.error ?? {};
  return JSON.stringify({ ...outcome, error });
}

function isIndependentOfTime(testCase) {
  const { timeoutMs = 300_000, maxDurationMs, toolTimeoutMs, fetch } = testCase.limits;
  return (
    !testCase.tools.some((tool) => tool.delayMs) &&
    maxDurationMs === undefined &&
    toolTimeoutMs === undefined &&
    !fetch &&
    timeoutMs >= 300_000 &&
    testCase.allowed === null &&
    !TIME.test(testCase.script)
  );
}

let also = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const testCase = JSON.parse(line);
  const began = performance.now();
  let outcome = await inVirtualTime(testCase);
  const isQuick = performance.now() - began < LONG_MS;
  if (isQuick && isIndependentOfTime(testCase) && !JSON.stringify(outcome).includes("is not known")) {
    also += 1;
    for (const isAsync of [true, false]) {
      const other = await byFunctions(testCase, isAsync);
      if (comparable(other) !== comparable(outcome)) outcome = { status: "differs", virtual: outcome, isAsync, other };
    }
  }
  // Lone surrogates are the text of their escapes, as JSON writes them; the reader expects that.
  writeSync(1, `${JSON.stringify(outcome)}\n`);
}
process.stderr.write(`${also} of them with functions too\n`);
