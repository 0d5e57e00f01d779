// Runs a script on Node as CodeCall does: with the functions of the host, a captured console, and the conversion of the
// result. It has no limits and refusals; cases that test those are marked `@no-node`.
import { Console } from 'node:console';
import { isDeepStrictEqual, inspect, types } from 'node:util';
import { parseScript, withImpliedReturn } from './parse.mjs';
import { codeOf } from './shape.mjs';

const AsyncFunction = (async () => {}).constructor;
const MAX_PARALLEL = 100;

/** How many digests and requests are under way outside of virtual time: a script that waits for one is not stuck. */
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
    ? { console: consoleOf(logs), call_tool: host.callNow, call_tools: host.callAllNow, input: structuredClone(context), ...time.globals, sleep: time.sleepNow }
    : { ...globals(host, logs), ...time.globals, codecallContext: deepFreeze(structuredClone(context)), ...namespaces(host) };
  // In a list, so that nothing handles the promise of the script.
  const body = `"use strict"; return [(async function () {\n${returns ? script : withImpliedReturn(script, tree, entry)}\n})()];`;
  let run;
  try {
    run = new AsyncFunction(...Object.keys(names), body);
  } catch {
    return { logs, outcome: { kind: 'status', text: 'syntax_error SYNTAX_ERROR' } };
  }
  Error.stackTraceLimit = 0;
  const restore = time.install(logs);
  const { value, failure } = await ended(logs, () => run(...Object.values(names)), (value) => resultOf(value, sync), time);
  const outcome = failure ? failureOf(failure, host) : value;
  if (failure) logs.length = failure.logged;
  restore();
  Error.stackTraceLimit = 10;
  return { logs, outcome };
}

/** Node's own console, which writes to the log: an entry for each call, with the level of warnings and errors in front. */
function consoleOf(logs) {
  let prefix = '';
  const stream = { write: (text) => { logs.push((prefix + text.replace(/\n$/, '')).toWellFormed()); }, on() {}, once() {}, removeListener() {}, listenerCount: () => 0 }; // well-formed as it is written to a stream
  const real = new Console({ stdout: stream, stderr: stream });
  const levels = { warn: '[warn] ', assert: '[warn] ', error: '[error] ', trace: '[error] ' };
  for (const [name, level] of Object.entries(levels)) {
    const method = real[name];
    real[name] = (...args) => {
      const before = prefix;
      prefix ||= level;
      try {
        method(...args);
      } finally {
        prefix = before;
      }
    };
  }
  for (const [name, method] of Object.entries(console)) {
    if (typeof method !== 'function') continue;
    real[name] ??= () => {}; // what only an inspector shows
    Object.defineProperties(real[name], { name: { value: name }, length: { value: method.length } });
  }
  return real;
}

function globals(host, logs) {
  return {
    console: consoleOf(logs),
    callTool: host.call,
    getTool: host.describe,
    ...(host.names.includes('fetch') ? { fetch: host.fetch } : {}),
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
    const fits = name === 'fetch' ? (wanted) => Object.entries(wanted).every(([part, value]) => isDeepStrictEqual(input[part], value)) : (wanted) => isDeepStrictEqual(wanted, input);
    const response = tool.responses.find((one) => (one.input == null || fits(one.input)) && (used.get(one) ?? 0) < (one.times ?? Infinity));
    if (!response) throw { message: `No response of '${name}' for this input`, code: 'NO_MOCK_RESPONSE' };
    used.set(response, (used.get(response) ?? 0) + 1);
    if (response.error) throw { message: response.error.message, code: response.error.code ?? 'TOOL_EXECUTION_ERROR', details: response.error.details };
    return structuredClone(response.output);
  }

  // Not an async function: a call that is refused at once is rejected at once.
  function call(name, input = {}, options = {}) {
    const { signal } = options ?? {};
    if (!signal) return callTool(name, input, options ?? {});
    const aborted = () => ({ success: false, error: { message: 'The call was aborted', code: 'EXECUTION_ABORTED', toolName: name } });
    return new Promise((resolve, reject) => {
      const abort = () => (options.throwOnError === false ? resolve(aborted()) : reject(signal.reason));
      if (signal.aborted) return abort();
      signal.addEventListener('abort', abort, { once: true });
      callTool(name, input, options).then(resolve, reject);
    });
  }

  async function callTool(name, input, options) {
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

  /** Node's own `fetch`; what it sends is answered by the fixture of the tool `fetch`. */
  function fetchRecorded(input, init) {
    const dispatch = (sent, handler) => {
      let aborted = false;
      handler.onConnect((reason) => { aborted = true; handler.onError(reason); });
      const request = { url: new URL(sent.path, sent.origin).href, method: sent.method, ...bodyOf(sent.body), headers: headersOf(sent.headers) };
      // Node hands a response to the script in some turns of its loop.
      const delivered = async () => { digests += 1; for (let turns = 0; turns < 5; turns++) await turn(); digests -= 1; };
      answer('fetch', request).then((response) => {
        const { status, statusText = '', headers = [], body, bodyBase64 } = response;
        if (aborted) return;
        handler.onHeaders(status, headers.flat().map((text) => Buffer.from(text, 'latin1')), () => {}, statusText);
        const bytes = bodyBase64 === undefined ? Buffer.from(body ?? '') : Buffer.from(bodyBase64, 'base64');
        if (bytes.length > 0) handler.onData(bytes);
        handler.onComplete([]);
      }, ({ message, code }) => { if (!aborted) handler.onError(Object.assign(new Error(message), { code })); }).finally(delivered);
      return true;
    };
    const given = init !== null && typeof init === 'object' ? init : {};
    return fetch(input, init == null || init === given ? { ...given, dispatcher: { dispatch, isMockActive: true } } : init);
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

  const named = { fetch(input, init) { return fetchRecorded(input, init); } }.fetch;
  return { call, fetch: Object.defineProperty(named, 'length', { value: 1 }), callNow, callAllNow, describe, failures, names: tools.map((tool) => tool.name) };
}

function bodyOf(body) {
  if (body == null) return {};
  if (typeof body === 'string') return { body };
  const bytes = Buffer.from(body);
  const text = bytes.toString();
  return Buffer.from(text).equals(bytes) ? { body: text } : { bodyBase64: bytes.toString('base64') };
}

/** The headers of a request but for those that Node adds. */
function headersOf(headers) {
  const pairs = Array.isArray(headers) ? headers : Object.entries(headers ?? {});
  const flat = pairs.length > 0 && !Array.isArray(pairs[0]) ? pairs.reduce((all, text, index) => (index % 2 ? [...all.slice(0, -1), [all.at(-1)[0], text]] : [...all, [text]]), []) : pairs;
  const added = ['accept', 'accept-language', 'sec-fetch-mode', 'user-agent', 'accept-encoding', 'content-length', 'host', 'connection'];
  return flat.map(([name, value]) => [String(name).toLowerCase(), String(value)]).filter(([name]) => !added.includes(name)).sort(([a], [b]) => (a < b ? -1 : 1));
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
        failed.push([index, error]);
      }
    }
  };
  const workers = Math.min(options?.maxConcurrency ?? 10, 20, work.length);
  for (const one of Array.from({ length: workers }, worker)) await one;
  if (failed.length === 0) return results;
  failed.sort(([a], [b]) => a - b);
  // Only now: a reason whose conversion throws is an error of the whole, which its caller handles.
  const groups = new Map();
  for (const [index, reason] of failed) {
    const message = String(reason?.message ?? reason);
    const group = groups.get(message);
    if (group) group.count += 1;
    else groups.set(message, { index, count: 1 });
  }
  const line = ([message, { index, count }]) => (count === 1 ? `  [${index}]: ${message}` : `  ${count} × ${message}, first at [${index}]`);
  const lines = [...groups].map(line);
  const error = new Error([`${failed.length} of ${work.length} parallel operations failed:`, ...lines].join('\n'));
  const [[, cause]] = failed;
  if (types.isNativeError(cause)) {
    for (const key of ['code', 'toolName', 'details']) if (Object.hasOwn(cause, key)) error[key] = cause[key];
    if (host.failures.has(cause)) host.failures.set(error, { ...host.failures.get(cause), code: error.code, message: error.message });
  }
  if (failed.length < work.length) {
    for (const [index] of failed) results[index] = null;
    const details = error.details;
    error.details = { ...(details && typeof details === 'object' && !Array.isArray(details) ? details : {}), results };
  }
  throw error;
}

/**
 * Runs a script until nothing is left to do, as a Node process does. Returns its result, or what has failed first: a rejection
 * that nobody has handled when the job queue is empty, or an exception of a callback. A script that waits forever is an
 * error in the corpus. Nothing handles the promise of the script before it is settled: it fails in its turn among the others.
 */
async function ended(logs, start, convert, time) {
  let value;
  let failure;
  let main;
  let result;
  const failed = (unhandled) => (error) => { failure ??= { error, unhandled, logged: logs.length }; };
  const rejected = (error, promise) => failed(promise !== main && promise !== result)(error);
  const thrown = failed(true);
  process.on('unhandledRejection', rejected);
  process.on('uncaughtException', thrown);
  [main] = await start();
  do {
    await turn();
    // The result is converted when all microtasks are done.
    if (!failure && !result && isSettled(main)) {
      result = main.then(convert).then((converted) => { value = converted; });
      await turn();
    }
  } while (!failure && (digests > 0 || time.next(value === undefined)));
  process.off('unhandledRejection', rejected);
  process.off('uncaughtException', thrown);
  return { value: value ?? { kind: 'status', text: 'stuck' }, failure };
}

/**
 * Virtual time: timers and answers come in the order of their times, each when the job queue is empty. Of a timer and an
 * answer at the same time, the timer comes first.
 */
function virtualTime() {
  const START = Date.now();
  const waits = [];
  let now = 0;
  let order = 0;
  const add = (ms, done, more = {}) => {
    order += 1;
    const wait = { at: now + ms, rank: 0, order, keeps: true, done, ...more };
    waits.push(wait);
    return wait;
  };
  const remove = (wait) => { if (waits.includes(wait)) waits.splice(waits.indexOf(wait), 1); };
  const isBefore = (a, b) => a.at - b.at || a.rank - b.rank || a.order - b.order;
  /** Lets the first one happen. Returns false if nothing is left to wait for. */
  const next = (isMainPending) => {
    if (!waits.some((wait) => wait.keeps || isMainPending)) return false;
    const [first] = waits.sort(isBefore);
    remove(first);
    now = Math.max(now, first.at);
    setImmediate(first.done);
    return true;
  };

  let ids = 0;
  const timeouts = new Map();
  class Timeout {
    #id = (ids += 1);
    #keeps = true;
    #wait;
    #set;
    constructor(callback, delay, args, repeats) {
      this.#set = () => {
        this.#wait = add(delay, () => {
          this.#wait = undefined;
          if (repeats) try { callback(...args); } finally { if (timeouts.has(this.#id)) this.#set(); }
          else { timeouts.delete(this.#id); callback(...args); }
        }, { keeps: this.#keeps });
      };
      timeouts.set(this.#id, this);
      this.#set();
    }
    #keep(keeps) {
      this.#keeps = keeps;
      if (this.#wait) this.#wait.keeps = keeps;
      return this;
    }
    ref() { return this.#keep(true); }
    unref() { return this.#keep(false); }
    hasRef() { return this.#keeps; }
    refresh() { if (this.#wait) { remove(this.#wait); this.#set(); } return this; }
    close() { remove(this.#wait); timeouts.delete(this.#id); return this; }
    [Symbol.toPrimitive]() { return this.#id; }
  }
  const delayOf = (ms) => { const delay = ms * 1; return delay >= 1 && delay <= 2 ** 31 - 1 ? Math.trunc(delay) : 1; };
  const realTimeout = globalThis.setTimeout;
  const named = (name, length, f) => Object.defineProperties(f, { name: { value: name }, length: { value: length } });
  const set = (repeats) => (callback, delay, ...args) => {
    if (typeof callback !== 'function') clearTimeout(realTimeout(callback, delay)); // throws
    return new Timeout(callback, delayOf(delay), args, repeats);
  };
  const clear = (timeout) => {
    const known = timeout instanceof Timeout ? timeout : timeouts.get(Number(timeout));
    known?.close();
  };
  const globals = {
    setTimeout: named('setTimeout', 5, set(false)),
    setInterval: named('setInterval', 5, set(true)),
    clearTimeout: named('clearTimeout', 1, (timeout) => clear(timeout)),
    clearInterval: named('clearInterval', 1, (timeout) => clear(timeout)),
    sleep: (ms) => new Promise((done) => { add(delayOf(ms), done); }),
    performance: { now: () => now },
  };
  const sleepNow = (ms) => { now += delayOf(ms); };

  /** Replaces the functions that are found on other objects. */
  const install = (logs) => {
    const realNow = Date.now;
    const realSignalTimeout = AbortSignal.timeout;
    const { hrtime, emitWarning } = process;
    Date.now = named('now', 0, () => START + now);
    // The clock and the warnings of `console.time` and its like.
    process.hrtime = ([seconds, nanos] = [0, 0]) => [Math.trunc(now / 1000) - seconds, (now % 1000) * 1e6 - nanos];
    process.emitWarning = (warning) => { if (/^(Label|No such label|Count for) /.test(warning)) logs.push(`[warn] ${warning}`); };
    AbortSignal.timeout = named('timeout', 1, (ms) => {
      realSignalTimeout.call(AbortSignal, ms); // throws for what is no delay
      const controller = new AbortController();
      add(Math.max(ms, 1), () => controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')), { keeps: false });
      return controller.signal;
    });
    return () => {
      Object.assign(process, { hrtime, emitWarning });
      Date.now = realNow;
      AbortSignal.timeout = realSignalTimeout;
    };
  };
  const wait = (ms) => new Promise((done) => { add(ms, done, { rank: 1 }); });
  return { wait, next, globals, sleepNow, install };
}

/** Whether a promise is not pending; the only way to know it that handles nothing. */
function isSettled(promise) {
  return !inspect(promise, { depth: 0, customInspect: false, maxArrayLength: 0, maxStringLength: 0 }).startsWith('Promise { <pending>');
}

function turn() {
  return new Promise((done) => setImmediate(done));
}

async function resultOf(value, strict) {
  awaitAll(value, new Set());
  const settled = await settle(value, new Map());
  const unserializable = { kind: 'status', text: 'runtime_error SERIALIZATION_ERROR' };
  if (typeof settled === 'function') return unserializable;
  if (strict && settled !== undefined && !isPlainData(settled, new Set())) return unserializable;
  try {
    return { kind: 'result', text: JSON.stringify(settled) ?? 'null' };
  } catch (error) {
    // What `toJSON` throws is an error of the script.
    if (!/circular structure|serialize a BigInt|call stack/.test(error?.message)) throw error;
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

/** Handles the rejections of all promises in a value, because they are awaited. */
function awaitAll(value, seen) {
  if (value === null || typeof value !== 'object' || seen.has(value)) return;
  seen.add(value);
  if (types.isPromise(value)) value.catch(() => {});
  else if (value instanceof Map) [...value].flat().forEach((part) => awaitAll(part, seen));
  else if (value instanceof Set) [...value].forEach((part) => awaitAll(part, seen));
  else if (Array.isArray(value) || Object.prototype.toString.call(value) === '[object Object]') Object.values(value).forEach((part) => awaitAll(part, seen));
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

function failureOf({ error, unhandled }, host) {
  const tool = error !== null && typeof error === 'object' ? host.failures.get(error) : undefined;
  if (tool) return { kind: 'status', text: [`tool_error ${tool.code}`, `toolName: ${tool.toolName}`, `toolInput: ${JSON.stringify(tool.toolInput)}`, `message: ${tool.message.split('\n')[0]}`, ...(unhandled ? ['unhandled: true'] : [])].join('\n') };
  if (types.isNativeError(error) || error instanceof DOMException) return { kind: 'error', text: `${error.name}: ${error.message}`.trimEnd() };
  return { kind: 'error', text: `Uncaught ${inspect(error)}` };
}

function deepFreeze(value) {
  if (value !== null && typeof value === 'object') Object.values(Object.freeze(value)).forEach(deepFreeze);
  return value;
}
