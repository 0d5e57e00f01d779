/** Driving a run: its calls become promises. */

import { ToolError } from "./errors.js";
import { Progress, type NativeRun } from "./native.js";
import { callOptions, isPromise, type CallHandler, type PendingCall, type ToolFunction, type Toolset } from "./tools.js";

/** What a script sends with `mcpLog` and `mcpNotify`. */
export type Message =
  | { type: "log"; level: string; message: string; metadata: unknown }
  | { type: "notify"; event: string; payload: unknown };

/** Longest delay of a timer of JavaScript, in milliseconds. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** What answers the calls of one run, and what it has thrown. */
export class Calls {
  readonly #tools: Toolset;
  readonly #fetch: ToolFunction | undefined;
  readonly #onCall: CallHandler | undefined;
  readonly #thrown: unknown[] = [];

  constructor(tools: Toolset, fetch: ToolFunction | undefined, onCall: CallHandler | undefined) {
    this.#tools = tools;
    this.#fetch = fetch;
    this.#onCall = onCall;
  }

  make(call: PendingCall, signal: AbortSignal): unknown {
    if (call.kind === "fetch" && this.#fetch !== undefined) return this.#fetch(call.input, callOptions(call, signal));
    return this.#tools.call(call, signal, this.#onCall);
  }

  /** Hands a result to the run. */
  settle(run: NativeRun, id: number, result: unknown): void {
    let text: string | undefined;
    try {
      text = JSON.stringify(result);
    } catch (error) {
      this.fail(run, id, new ToolError(`The result has no JSON: ${messageOf(error)}`, { cause: error }));
      return;
    }
    run.settle(id, text ?? "null");
  }

  /** Hands what was thrown to the run. */
  fail(run: NativeRun, id: number, error: unknown): void {
    this.#thrown.push(error);
    const { code, details, fatal } = partsOf(error);
    run.fail(id, code, messageOf(error), details, fatal);
  }

  /** What was thrown with this message. */
  cause(message: string): unknown {
    return this.#thrown.findLast((error) => messageOf(error) === message);
  }
}

/** Drives a run to its end in one go: its calls are made one after the other, and must not be promises. */
export function driveSync(run: NativeRun, calls: Calls, onMessage: ((message: Message) => void) | undefined): void {
  const waiting: PendingCall[] = [];
  const never = new AbortController().signal;
  for (;;) {
    const progress = run.resume();
    deliver(run, onMessage);
    if (progress === Progress.done) return;
    if (progress === Progress.yielded) continue;
    waiting.push(...(JSON.parse(run.takeCalls()) as PendingCall[]));
    const cancelled = run.takeCancelled();
    for (let index = 0; index < cancelled.length; index += 1) remove(waiting, cancelled[index]!);
    const call = waiting.shift();
    if (call === undefined) {
      sleep(run.timeLeftMs());
      continue;
    }
    let result: unknown;
    try {
      result = calls.make(call, never);
    } catch (error) {
      calls.fail(run, call.id, error);
      continue;
    }
    if (isPromise(result)) {
      // Nobody awaits it any more.
      Promise.resolve(result).catch(() => {});
      calls.fail(run, call.id, new ToolError(`Tool '${call.tool}' gave a promise: use run`, { fatal: true }));
    } else {
      calls.settle(run, call.id, result);
    }
  }
}

/** Lets time pass, for a timer of the script. The main thread of a browser refuses that. */
function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.ceil(Math.max(ms, 0)));
}

/** Drives a run to its end with promises: its calls are concurrent. */
export class Driver {
  readonly #run: NativeRun;
  readonly #calls: Calls;
  readonly #onMessage: ((message: Message) => void) | undefined;
  /** The calls without an answer. */
  readonly #open = new Map<number, { abort: AbortController; deadline: ReturnType<typeof setTimeout> }>();
  /** Answers that the run has not been handed yet: another thread may evaluate it. */
  #settled: (() => void)[] = [];
  #wake: (() => void) | undefined;
  #hasEvent = false;

  constructor(run: NativeRun, calls: Calls, onMessage: ((message: Message) => void) | undefined) {
    this.#run = run;
    this.#calls = calls;
    this.#onMessage = onMessage;
  }

  /** Drives the run. An aborted signal cancels it and its calls. */
  async drive(signal: AbortSignal | undefined): Promise<void> {
    // The run ends when it is resumed the next time, which frees its memory.
    const abort = (): void => {
      this.#run.cancel();
      this.#event();
    };
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    try {
      for (;;) {
        for (const settle of this.#settled.splice(0)) settle();
        let progress = this.#run.resume();
        while (progress === Progress.yielded) progress = await this.#inBackground();
        signal?.throwIfAborted();
        deliver(this.#run, this.#onMessage);
        if (progress === Progress.done) return;
        const cancelled = this.#run.takeCancelled();
        for (let index = 0; index < cancelled.length; index += 1) this.#close(cancelled[index]!, "cancelled");
        for (const call of JSON.parse(this.#run.takeCalls()) as PendingCall[]) this.#start(call);
        await this.#nextEvent();
      }
    } finally {
      signal?.removeEventListener("abort", abort);
      for (const id of [...this.#open.keys()]) this.#close(id, "the run has ended");
    }
  }

  /** Long work: in another thread where there are threads, else after other work of this one. */
  #inBackground(): Promise<number> {
    if (this.#run.resumeInBackground !== undefined) return this.#run.resumeInBackground();
    return new Promise((resolve, reject) => {
      setTimeout(() => {
        try {
          resolve(this.#run.resume());
        } catch (error) {
          reject(error);
        }
      }, 0);
    });
  }

  #nextEvent(): Promise<void> | undefined {
    if (this.#hasEvent) {
      this.#hasEvent = false;
      return undefined;
    }
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#event(), Math.min(Math.ceil(this.#run.timeLeftMs()), MAX_DELAY_MS));
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        this.#hasEvent = false;
        resolve();
      };
    });
  }

  #event(): void {
    this.#hasEvent = true;
    this.#wake?.();
  }

  #start(call: PendingCall): void {
    const abort = new AbortController();
    const deadline = setTimeout(() => this.#expire(call), Math.min(call.timeoutMs, MAX_DELAY_MS));
    this.#open.set(call.id, { abort, deadline });
    let result: unknown;
    try {
      result = this.#calls.make(call, abort.signal);
    } catch (error) {
      this.#answer(call.id, () => this.#calls.fail(this.#run, call.id, error));
      return;
    }
    if (isPromise(result)) {
      Promise.resolve(result).then(
        (value) => this.#answer(call.id, () => this.#calls.settle(this.#run, call.id, value)),
        (error: unknown) => this.#answer(call.id, () => this.#calls.fail(this.#run, call.id, error)),
      );
    } else {
      this.#answer(call.id, () => this.#calls.settle(this.#run, call.id, result));
    }
  }

  /** Answers a call unless that has happened: an answer that comes late has no effect. */
  #answer(id: number, settle: () => void): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    clearTimeout(open.deadline);
    this.#open.delete(id);
    this.#settled.push(settle);
    this.#event();
  }

  #expire(call: PendingCall): void {
    const open = this.#open.get(call.id);
    const error = new ToolError(`Tool '${call.tool}' timed out after ${call.timeoutMs}ms`, { code: "TOOL_TIMEOUT" });
    this.#answer(call.id, () => this.#calls.fail(this.#run, call.id, error));
    open?.abort.abort(error);
  }

  #close(id: number, reason: string): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    clearTimeout(open.deadline);
    this.#open.delete(id);
    open.abort.abort(new DOMException(`The call was aborted: ${reason}`, "AbortError"));
  }
}

function deliver(run: NativeRun, onMessage: ((message: Message) => void) | undefined): void {
  const text = run.takeMessages();
  if (text !== null && text !== undefined && onMessage !== undefined) {
    for (const message of JSON.parse(text) as Message[]) onMessage(message);
  }
}

function remove(calls: PendingCall[], id: number): void {
  const index = calls.findIndex((call) => call.id === id);
  if (index >= 0) calls.splice(index, 1);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

/** What the script is told of an error beside its message. */
function partsOf(error: unknown): { code: string; details: string | undefined; fatal: boolean } {
  if (error instanceof ToolError) {
    return { code: error.code, details: detailsOf(error.details), fatal: error.fatal };
  }
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  return { code: typeof code === "string" ? code : "TOOL_EXECUTION_ERROR", details: undefined, fatal: false };
}

function detailsOf(details: unknown): string | undefined {
  try {
    return details === undefined ? undefined : JSON.stringify(details);
  } catch {
    return undefined;
  }
}
