/** Scripts, runs and steps. */

import { Calls, Driver, driveSync, type Message } from "./drive.js";
import { RunError, type FailedOutcome, type Stats } from "./errors.js";
import { checked, native, Progress, type NativeJournal, type NativeRun, type NativeScript } from "./native.js";
import { checkNames, namesOf } from "./options.js";
import { toolset, Toolset, type CallHandler, type PendingCall, type ToolFunction, type Tools } from "./tools.js";

/** A set of limits and permissions. */
export type Preset = "locked_down" | "secure" | "balanced" | "experimental";

/** Values on top of a preset: docs/reference/limits.md says what they are in each. */
export interface Limits {
  // limits of numbers: written by `UPDATE=1 cargo test -p codecall-tests --test docs`
  /** Time the script itself may take, waits for tools excluded. */
  timeoutMs?: number;
  /** Time from start to end, waits for tools included. */
  maxDurationMs?: number;
  /** Time one tool call may take. */
  toolTimeoutMs?: number;
  /** How many loop bodies may be entered. */
  maxIterations?: number;
  /** How many statements, calls, loop turns and units of work inside built-ins may be evaluated. */
  maxSteps?: number;
  /** How many tools may be called; 0 is no limit. */
  maxToolCalls?: number;
  /** How much memory live data may take. Garbage does not count. */
  maxMemoryBytes?: number;
  /** How deep calls may nest. */
  maxCallDepth?: number;
  /** How long a script may be. */
  maxScriptBytes?: number;
  /** How long the result may be, as JSON. */
  maxResultBytes?: number;
  /** How much may be logged. */
  maxConsoleBytes?: number;
  /** How often something may be logged. */
  maxConsoleCalls?: number;
  /** How many tool calls may be under way at once; further ones wait their turn. */
  maxConcurrency?: number;
  // /limits
  loops?: "all" | "bounded" | "none";
  allowLoops?: boolean;
  timers?: boolean;
  allowConsole?: boolean;
  disabledBuiltins?: readonly string[];
  disabledGlobals?: readonly string[];
}

/** What a script sees as `codecallContext`. */
export type Context = { readonly [key: string]: unknown };

/** How a script is compiled. */
export interface CompileOptions {
  /** What it can call. */
  tools?: Tools | Toolset | undefined;
  /** Answers the calls of all names that no tool has. Without it they fail with `TOOL_NOT_FOUND`. */
  onCall?: CallHandler | undefined;
  /** `secure` by default. */
  preset?: Preset | undefined;
  limits?: Limits | undefined;
  /** By default JavaScript first, and TypeScript where the text is not JavaScript. */
  language?: "javascript" | "typescript" | undefined;
  /** `async` by default; `sync` has `call_tool(server, tool, args)`, which waits. */
  dialect?: "async" | "sync" | undefined;
  /** Answers calls of `fetch`, which scripts do not have without it: see docs/guide/fetch.md for input and answer. */
  fetch?: ToolFunction | undefined;
}

/** What a run is started with. */
export interface RunOptions {
  context?: Context | undefined;
  /** Seed of random numbers and UUIDs, a whole number; by default one that nobody can guess. */
  seed?: number | undefined;
  /** Called with what the script sends by `mcpLog` and `mcpNotify`. */
  onMessage?: ((message: Message) => void) | undefined;
}

/** What a run is started with that the caller drives. */
export interface StartOptions extends Omit<RunOptions, "onMessage"> {
  /** Whether the script sees only the time that `advance` lets pass. */
  hostTime?: boolean | undefined;
  /** When that time begins, in milliseconds since 1970-01-01 UTC. */
  unixMs?: number | undefined;
}

/** The same, for a run with promises. */
export interface AsyncRunOptions extends RunOptions {
  /** Aborting it cancels the run and its calls; the run rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
}

/** What a run has come to. A run that fails throws a `RunError` instead. */
export interface Outcome {
  status: "ok";
  /** What the script returned. */
  result: any;
  /** What of it JSON does not hold, in words. */
  warnings: string[];
  /** What the script logged, a text for each call of `console`. */
  logs: string[];
  /** Calls that had no answer when the run ended. */
  unanswered: { name: string; started: boolean; awaited: boolean }[];
  stats: Stats;
}

const COMPILE_OPTIONS = namesOf<CompileOptions>({
  tools: true,
  onCall: true,
  preset: true,
  limits: true,
  language: true,
  dialect: true,
  fetch: true,
});
const RUN_OPTIONS = namesOf<RunOptions>({ context: true, seed: true, onMessage: true });
const ASYNC_OPTIONS = [...RUN_OPTIONS, ...namesOf<Omit<AsyncRunOptions, keyof RunOptions>>({ signal: true })];
const START_OPTIONS = namesOf<StartOptions>({ context: true, seed: true, hostTime: true, unixMs: true });
const JOURNAL_OPTIONS = ["context", "unixMs"];

/** How long a run may hold up other work of the thread at a time, in milliseconds; longer work goes on in another one. */
const SLICE_MS = 2;

/** A compiled script with its tools and limits. Any number of runs share it. */
export class Script {
  readonly #script: NativeScript;
  readonly #tools: Toolset;
  readonly #fetch: ToolFunction | undefined;
  readonly #onCall: CallHandler | undefined;

  constructor(source: string, options: CompileOptions = {}) {
    checkNames("option", options, COMPILE_OPTIONS);
    this.#tools = toolset(options.tools);
    this.#fetch = options.fetch;
    this.#onCall = options.onCall;
    const settings = settingsOf(options);
    this.#script = checked(() => new (native().Script)(String(source), settings, this.#tools.native));
    const failure = this.#script.failure();
    if (failure !== null && failure !== undefined) throw new RunError(JSON.parse(failure) as FailedOutcome);
  }

  /** Runs the script to its end. */
  async run(options: AsyncRunOptions = {}): Promise<Outcome> {
    checkNames("option", options, ASYNC_OPTIONS);
    const run = this.#start(options, SLICE_MS);
    const calls = new Calls(this.#tools, this.#fetch, this.#onCall);
    await new Driver(run, calls, options.onMessage).drive(options.signal);
    return outcomeOf(run.outcome(), calls);
  }

  /** Runs the script to its end in one go. Its calls are made one after the other, and must not give promises. */
  runSync(options: RunOptions = {}): Outcome {
    checkNames("option", options, RUN_OPTIONS);
    const run = this.#start(options, undefined);
    const calls = new Calls(this.#tools, this.#fetch, this.#onCall);
    driveSync(run, calls, options.onMessage);
    return outcomeOf(run.outcome(), calls);
  }

  /**
   * Starts a run that the caller drives. With `hostTime` the script sees only the time that `advance` lets pass, from `unixMs`
   * on.
   */
  start(options: StartOptions = {}): Run {
    checkNames("option", options, START_OPTIONS);
    return new Run(this.#start(options, undefined, options.hostTime, options.unixMs));
  }

  /** The journal of a stateless run that has not begun. Its random numbers follow from `id`, its time from `unixMs`. */
  journal(id: string, options: { context?: Context; unixMs?: number } = {}): Journal {
    checkNames("option", options, JOURNAL_OPTIONS);
    const unixMs = options.unixMs ?? Date.now();
    return new Journal(checked(() => this.#script.journal(id, unixMs, textOf(options.context))));
  }

  /**
   * Plays the script against its journal, and on as far as it goes without a new answer: a pure function. The same script,
   * tools, journal and context give the same step, in any process.
   */
  step(journal: Journal, options: { context?: Context } = {}): Step {
    checkNames("option", options, ["context"]);
    const step = checked(() => this.#script.step(journal.native, textOf(options.context)));
    const next = step.journal();
    if (next === null || next === undefined) {
      return { done: true, calls: [], waiting: [], abandoned: [], outcome: outcomeOf(step.text(), undefined) };
    }
    const { calls, waiting, abandoned } = JSON.parse(step.text()) as Omit<WaitingStep, "done" | "journal">;
    return { done: false, calls, waiting, abandoned, journal: new Journal(next) };
  }

  #start(options: RunOptions, sliceMs: number | undefined, hostTime = false, unixMs?: number): NativeRun {
    const seed = options.seed ?? randomSeed();
    return checked(() => this.#script.start(textOf(options.context), seed, hostTime, unixMs, sliceMs));
  }
}

/**
 * A run that its caller drives: for schedulers of one's own, and for tests in virtual time.
 *
 * `resume` gives the new calls; answer each with `answer` or `fail`, and resume, until `done`. Where there are no calls to wait
 * for, resume again after `timeLeftMs`.
 */
export class Run {
  readonly #run: NativeRun;
  #done = false;

  /** @internal */
  constructor(run: NativeRun) {
    this.#run = run;
  }

  /** Whether it has ended. */
  get done(): boolean {
    return this.#done;
  }

  /** Evaluates until the run waits or has ended. Gives the calls that are new. */
  resume(): PendingCall[] {
    let progress: number;
    do progress = this.#run.resume();
    while (progress === Progress.yielded);
    this.#done = progress === Progress.done;
    return JSON.parse(this.#run.takeCalls()) as PendingCall[];
  }

  /** Answers a call. */
  answer(id: number, result: unknown): void {
    this.#run.settle(id, JSON.stringify(result) ?? "null");
  }

  /** Answers a call with an error, which the script can catch unless it is fatal. */
  fail(id: number, message: string, options: { code?: string; details?: unknown; fatal?: boolean } = {}): void {
    const { code = "TOOL_EXECUTION_ERROR", details, fatal = false } = options;
    this.#run.fail(id, code, message, textOf(details), fatal);
  }

  /** The calls that the script has cancelled since the last time; their answers have no effect. */
  takeCancelled(): number[] {
    return Array.from(this.#run.takeCancelled());
  }

  /** What the script has sent with `mcpLog` and `mcpNotify` since the last time. */
  takeMessages(): Message[] {
    const text = this.#run.takeMessages();
    return text === null || text === undefined ? [] : (JSON.parse(text) as Message[]);
  }

  /** Lets time pass until so many milliseconds after the beginning, in a run with `hostTime`. */
  advance(ms: number): void {
    this.#run.reach(ms);
  }

  /** Cancels the run: it ends with `EXECUTION_ABORTED` when it is resumed. */
  cancel(): void {
    this.#run.cancel();
  }

  /** When the next timer of the script is due, in milliseconds since the beginning. */
  get nextTimerMs(): number | undefined {
    return this.#run.nextTimerMs() ?? undefined;
  }

  /** When the run has to be resumed, whether or not a call has an answer. */
  get timeLeftMs(): number {
    return this.#run.timeLeftMs();
  }

  /** What its values take, by its own meter. */
  get memoryBytes(): number {
    return this.#run.memoryBytes();
  }

  /** What the run has come to; throws a `RunError` if it has failed. */
  outcome(): Outcome {
    return outcomeOf(this.#run.outcome(), undefined);
  }
}

/** What has happened in a stateless run so far: plain data that is kept or passed on between steps. It never changes. */
export class Journal {
  /** @internal */
  readonly native: NativeJournal;

  /** @internal */
  constructor(journal: NativeJournal) {
    this.native = journal;
  }

  /** The journal with the answer to a call. */
  answer(id: number, result: unknown): Journal {
    return new Journal(checked(() => this.native.answered(id, JSON.stringify(result) ?? "null")));
  }

  /** The journal with the failure of a call. */
  fail(id: number, message: string, options: { code?: string; details?: unknown } = {}): Journal {
    const { code = "TOOL_EXECUTION_ERROR", details } = options;
    return new Journal(checked(() => this.native.failed(id, code, message, textOf(details))));
  }

  /** The journal as JSON data, which `Journal.from` reads. */
  toJSON(): unknown {
    return JSON.parse(this.native.toJson());
  }

  /** Reads the JSON data of a journal. */
  static from(data: unknown): Journal {
    return new Journal(checked(() => native().Journal.fromJson(JSON.stringify(data) ?? "null")));
  }

  /** The journal as a short text. With a key it is protected against changes, but not secret. */
  toToken(key?: Uint8Array): string {
    return this.native.toToken(key);
  }

  /** Reads a token; with a key, only one that was made with it. */
  static fromToken(token: string, key?: Uint8Array): Journal {
    return new Journal(checked(() => native().Journal.fromToken(token, key)));
  }
}

/** A step of a script that waits. */
export interface WaitingStep {
  done: false;
  /** The calls that are new. */
  calls: PendingCall[];
  /** Ids of all calls without an answer. */
  waiting: number[];
  /** Those among them whose answers the run does not need. */
  abandoned: number[];
  /** The journal for the answers. */
  journal: Journal;
}

/** A step of a script that has ended. */
export interface DoneStep {
  done: true;
  calls: [];
  waiting: [];
  abandoned: [];
  outcome: Outcome;
}

/** How far a script comes with its journal. */
export type Step = WaitingStep | DoneStep;

/** Compiles a script, once for many runs. Throws a `RunError` if it is not AgentScript, or uses what it may not. */
export function compile(script: string, options?: CompileOptions): Script {
  return new Script(script, options);
}

/**
 * Runs a script to its end. Calls that the script makes together are concurrent. Evaluation that takes longer than a moment
 * goes on in another thread.
 *
 * Rejects with a `RunError`.
 */
export async function run(script: string, options: CompileOptions & AsyncRunOptions = {}): Promise<Outcome> {
  checkNames("option", options, [...COMPILE_OPTIONS, ...ASYNC_OPTIONS]);
  const { context, seed, onMessage, signal, ...compiling } = options;
  return new Script(script, compiling).run({ context, seed, onMessage, signal });
}

/** Runs a script to its end in one go. Its calls are made one after the other, and must not give promises. */
export function runSync(script: string, options: CompileOptions & RunOptions = {}): Outcome {
  checkNames("option", options, [...COMPILE_OPTIONS, ...RUN_OPTIONS]);
  const { context, seed, onMessage, ...compiling } = options;
  return new Script(script, compiling).runSync({ context, seed, onMessage });
}

/** Declarations of tools in TypeScript, for the prompt of a model that writes scripts. */
export function declarations(tools: Tools | Toolset): string {
  return toolset(tools).declarations();
}

function settingsOf(options: CompileOptions): string | undefined {
  const { preset, limits, language, dialect, fetch } = options;
  if (preset === undefined && limits === undefined && language === undefined && dialect === undefined && fetch === undefined) {
    return undefined;
  }
  return JSON.stringify({ preset, limits, language, dialect, fetch: fetch !== undefined });
}

function textOf(value: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value);
}

function outcomeOf(text: string | null | undefined, calls: Calls | undefined): Outcome {
  if (text === null || text === undefined) throw new Error("the run has not ended: resume it until it is done");
  const outcome = JSON.parse(text) as Outcome | FailedOutcome;
  if (outcome.status === "ok") {
    const { status, result, warnings = [], logs = [], unanswered = [], stats } = outcome;
    return { status, result, warnings, logs, unanswered, stats };
  }
  throw new RunError(outcome, outcome.status === "tool_error" ? calls?.cause(outcome.error.message) : undefined);
}

/** A whole number that nobody can guess, as exact as a number of JavaScript can be. */
function randomSeed(): number {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return (high! & 0x1fffff) * 2 ** 32 + low!;
}
