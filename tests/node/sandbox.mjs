// Runs a script on Node as CodeCall does: with the functions of the host, a captured console, and the conversion of the
// result. It has no limits and refusals; cases that test those are marked `@no-node`.
import { isDeepStrictEqual, format, inspect, types } from 'node:util';
import { parseScript, withImpliedReturn } from './parse.mjs';
import { codeOf } from './shape.mjs';

const AsyncFunction = (async () => {}).constructor;
const MAX_PARALLEL = 100;

/** How many digests threads are computing: a script that waits for one is not stuck. */
let digests = 0;
const subtle = Object.getPrototypeOf(crypto.subtle);
const { digest: digestOf } = subtle;
subtle.digest = {
  digest(algorithm, data) {
    const promise = digestOf.apply(this, arguments);
    digests += 1;
    const done = () => { digests -= 1; };
    promise.then(done, done);
    return promise;
  },
}.digest;

/** Returns `{logs, outcome: {kind, text}}`. With `returns` the script ends with `return`, so it need not be parsed. */
export async function runScript(text, { tools = [], context = {}, language, dialect, returns = false } = {}) {
  const logs = [];
  const time = virtualTime();
  const host = toolHost(tools, time);
  const { code: script, entry } = returns ? { code: text } : codeOf(text, language) ?? {};
  const tree = returns || script === undefined ? null : parseScript(script);
  if (!tree && !returns) return { logs, outcome: { kind: 'status', text: 'syntax_error SYNTAX_ERROR' } };

  const sync = dialect === 'sync';
  const names = sync
    ? { console: consoleOf(logs), call_tool: host.callNow, call_tools: host.callAllNow, input: structuredClone(context) }
    : { ...globals(host, logs), codecallContext: deepFreeze(structuredClone(context)), ...namespaces(host) };
  const body = `"use strict"; return (async function () {\n${returns ? script : withImpliedReturn(script, tree, entry)}\n})();`;
  let run;
  try {
    run = new AsyncFunction(...Object.keys(names), body);
  } catch {
    return { logs, outcome: { kind: 'status', text: 'syntax_error SYNTAX_ERROR' } };
  }
  Error.stackTraceLimit = 0;
  let outcome;
  try {
    outcome = await settledOrStuck(async () => {
      const value = await run(...Object.values(names));
      // The result is converted when all microtasks are done.
      await new Promise((done) => process.nextTick(done));
      return resultOf(value, sync);
    }, time);
  } catch (error) {
    outcome = failureOf(error, host);
  }
  await turn(); // what the script left in the job queue still logs
  Error.stackTraceLimit = 10;
  return { logs, outcome };
}

function consoleOf(logs) {
  const logger = (prefix) => (...args) => { logs.push((prefix + format(...args)).toWellFormed()); } // as it is written to a stream;
  const plain = logger('');
  return { log: plain, info: plain, debug: plain, warn: logger('[warn] '), error: logger('[error] ') };
}

function globals(host, logs) {
  return {
    console: consoleOf(logs),
    callTool: host.call,
    getTool: host.describe,
    mcpLog: () => {},
    mcpNotify: () => {},
    parallel: (...args) => parallel(host, ...args),
    __safe_parallel: (...args) => parallel(host, ...args),
  };
}

function toolHost(tools, time) {
  const used = new Map();
  const failures = new WeakMap();

  async function answer(name, input) {
    await time.wait(tools.find((one) => one.name === name)?.delayMs ?? 0);
    return respond(name, input);
  }

  function respond(name, input) {
    const tool = tools.find((one) => one.name === name);
    if (!tool) throw { message: `Tool '${name}' is not known`, code: 'TOOL_NOT_FOUND' };
    const response = tool.responses.find((one) => (one.input == null || isDeepStrictEqual(one.input, input)) && (used.get(one) ?? 0) < (one.times ?? Infinity));
    if (!response) throw { message: `No response of '${name}' for this input`, code: 'NO_MOCK_RESPONSE' };
    used.set(response, (used.get(response) ?? 0) + 1);
    if (response.error) throw { message: response.error.message, code: response.error.code ?? 'TOOL_EXECUTION_ERROR', details: response.error.details };
    return structuredClone(response.output);
  }

  async function call(name, input = {}, options = {}) {
    if (input === null || typeof input !== 'object' || Array.isArray(input)) throw new TypeError('Tool input must be an object');
    const sent = JSON.parse(JSON.stringify(input));
    try {
      const data = await answer(name, sent);
      return options.throwOnError === false ? { success: true, data } : data;
    } catch ({ message, code, details }) {
      const fields = { code, toolName: name, ...(details === undefined ? {} : { details }) };
      if (options.throwOnError === false) return { success: false, error: { message, ...fields } };
      const error = Object.assign(new Error(message), fields);
      failures.set(error, { code, toolName: name, toolInput: sent, message });
      throw error;
    }
  }

  /** The synchronous dialect, in which delays have no effect, because nothing else runs. */
  function callNow(server, tool, args = {}) {
    if (typeof server !== 'string' || typeof tool !== 'string') throw new TypeError('Names of servers and tools are strings');
    if (args === null || typeof args !== 'object' || Array.isArray(args)) throw new TypeError('Tool input must be an object');
    try {
      return { ok: true, result: respond(`${server}:${tool}`, JSON.parse(JSON.stringify(args))) };
    } catch ({ message, code }) {
      return { ok: false, error: { message, code } };
    }
  }

  const callAllNow = (calls) => calls.map(({ server, tool, args }) => callNow(server, tool, args));

  function describe(name) {
    const tool = tools.find((one) => one.name === name);
    if (!tool) throw new Error(`Tool '${name}' is not known`);
    const { description = '', inputSchema = { type: 'object' }, outputSchema = null, annotations = {} } = tool;
    return structuredClone({ name, appId: name.split(':')[0], description, inputSchema, outputSchema, annotations });
  }

  return { call, callNow, callAllNow, describe, failures, names: tools.map((tool) => tool.name) };
}

function namespaces(host) {
  const apps = {};
  for (const name of host.names) {
    const [app, tool] = name.split(':');
    if (tool && /^[A-Za-z_$][\w$]*$/.test(app)) (apps[app] ??= {})[tool] = (input, options) => host.call(name, input, options);
  }
  return apps;
}

async function parallel(host, first, second, third) {
  const [work, options] = typeof second === 'function' ? [first.map((item, index) => () => second(item, index)), third] : [first, second];
  if (work.length > MAX_PARALLEL) throw new Error(`Cannot execute more than ${MAX_PARALLEL} operations in parallel`);
  const results = new Array(work.length);
  const failed = [];
  let next = 0;
  const worker = async () => {
    while (next < work.length) {
      const index = next;
      next += 1;
      try {
        results[index] = await work[index]();
      } catch (error) {
        failed.push([index, error?.message ?? String(error), error]);
      }
    }
  };
  const workers = Math.min(options?.maxConcurrency ?? 10, 20, work.length);
  for (const one of Array.from({ length: workers }, worker)) await one;
  if (failed.length === 0) return results;
  failed.sort(([a], [b]) => a - b);
  const error = new Error([`${failed.length} of ${work.length} parallel operations failed:`, ...failed.map(([i, text]) => `  [${i}]: ${text}`)].join('\n'));
  const [[, , cause]] = failed;
  if (types.isNativeError(cause)) {
    for (const key of ['code', 'toolName', 'details']) if (Object.hasOwn(cause, key)) error[key] = cause[key];
    if (host.failures.has(cause)) host.failures.set(error, { ...host.failures.get(cause), code: error.code, message: error.message });
  }
  throw error;
}

/** Returns the result of `work`. A script that waits forever is an error in the corpus. */
async function settledOrStuck(work, time) {
  let ended;
  work().then((value) => { ended = { value }; }, (error) => { ended = { error }; }).then(time.stop);
  do await turn(); while (!ended && (time.goesOn() || digests > 0));
  if (!ended) return { kind: 'status', text: 'stuck' };
  if ('error' in ended) throw ended.error;
  return ended.value;
}

/** Virtual timers: they fire in the order of their times, each when the job queue is empty. */
function virtualTime() {
  const waits = [];
  let stopped = false;
  let now = 0;
  let running = false;
  const next = () => {
    const first = waits.reduce((a, b) => (b.at < a.at ? b : a));
    waits.splice(waits.indexOf(first), 1);
    now = first.at;
    first.done();
    setImmediate(goOn);
  };
  const goOn = () => {
    running = waits.length > 0;
    if (running) next();
  };
  const wait = (ms) => new Promise((done) => {
    if (stopped) return;
    waits.push({ at: now + ms, done });
    if (!running) setImmediate(goOn);
    running = true;
  });
  const stop = () => {
    stopped = true;
    waits.length = 0;
  }; // what a run still waits for at its end is abandoned
  return { wait, stop, goesOn: () => running };
}

function turn() {
  return new Promise((done) => setImmediate(done));
}

async function resultOf(value, strict) {
  const settled = await settle(value, new Map());
  const unserializable = { kind: 'status', text: 'runtime_error SERIALIZATION_ERROR' };
  if (typeof settled === 'function') return unserializable;
  if (strict && !isPlainData(settled, new Set())) return unserializable;
  try {
    return { kind: 'result', text: JSON.stringify(settled) ?? 'null' };
  } catch {
    return unserializable;
  }
}

/** Whether a value can be represented as JSON, without its undefined properties. */
function isPlainData(value, above) {
  if (value === undefined || typeof value === 'function' || typeof value === 'bigint') return false;
  if (value === null || typeof value !== 'object') return true;
  if (types.isMap(value) || types.isSet(value)) return [...value].flat().every((part) => part === undefined || isPlainData(part, above));
  if (above.has(value) || !(Array.isArray(value) || Object.prototype.toString.call(value) === '[object Object]')) return false;
  above.add(value);
  const plain = Object.values(value).every((part) => part === undefined || isPlainData(part, above));
  above.delete(value);
  return plain;
}

/** Copies plain data and replaces each promise by its value, each `Map` by an object or pairs, and each `Set` by an array. */
async function settle(value, seen) {
  const awaited = types.isPromise(value) ? await value : value;
  if (types.isMap(awaited) || types.isSet(awaited)) {
    if (seen.has(awaited)) return seen.get(awaited);
    const isObject = types.isMap(awaited) && [...awaited.keys()].every((key) => typeof key === 'string');
    const copy = isObject ? {} : [];
    seen.set(awaited, copy);
    const whole = isObject ? Object.fromEntries(awaited) : [...awaited];
    for (const key of Object.keys(whole)) Object.defineProperty(copy, key, { value: await settle(whole[key], seen), enumerable: true, writable: true, configurable: true });
    return copy;
  }
  const isPlain = Array.isArray(awaited) || (inspect.custom in Object(awaited) === false && Object.prototype.toString.call(awaited) === '[object Object]');
  if (!isPlain) return awaited;
  if (seen.has(awaited)) return seen.get(awaited);
  const copy = Array.isArray(awaited) ? [] : {};
  seen.set(awaited, copy);
  for (const key of Object.keys(awaited)) Object.defineProperty(copy, key, { value: await settle(awaited[key], seen), enumerable: true, writable: true, configurable: true });
  if (Array.isArray(awaited)) copy.length = awaited.length;
  return copy;
}

function failureOf(error, host) {
  const tool = error !== null && typeof error === 'object' ? host.failures.get(error) : undefined;
  if (tool) return { kind: 'status', text: [`tool_error ${tool.code}`, `toolName: ${tool.toolName}`, `toolInput: ${JSON.stringify(tool.toolInput)}`, `message: ${tool.message.split('\n')[0]}`].join('\n') };
  if (types.isNativeError(error) || error instanceof DOMException) return { kind: 'error', text: `${error.name}: ${error.message}`.trimEnd() };
  return { kind: 'error', text: `Uncaught ${inspect(error)}` };
}

function deepFreeze(value) {
  if (value !== null && typeof value === 'object') Object.values(Object.freeze(value)).forEach(deepFreeze);
  return value;
}
