/**
 * The interface of the native addon and of the module for WebAssembly, and which of them is in use.
 *
 * All data crosses it as JSON text. The rest of the package does not know which of the two it runs on.
 */

/** Tools, prepared for many runs. */
export interface NativeToolset {
  declarations(): string;
  similar(name: string): string[];
}

/** A compiled script, or why it does not compile. */
export interface NativeScript {
  failure(): string | null | undefined;
  start(
    context: string | undefined,
    seed: number,
    hostTime: boolean,
    unixMs: number | undefined,
    sliceMs: number | undefined,
  ): NativeRun;
  journal(id: string, unixMs: number, context: string | undefined): NativeJournal;
  step(journal: NativeJournal, context: string | undefined): NativeStep;
}

/** One execution of a script. */
export interface NativeRun {
  /** One slice: one of the numbers of `Progress`. */
  resume(): number;
  /** All slices, in another thread; absent where there are none. */
  resumeInBackground?(): Promise<number>;
  takeCalls(): string;
  takeCancelled(): ArrayLike<number>;
  takeMessages(): string | null | undefined;
  settle(id: number, result: string): void;
  fail(id: number, code: string, message: string, details: string | undefined, fatal: boolean): void;
  reach(ms: number): void;
  cancel(): void;
  timeLeftMs(): number;
  nextTimerMs(): number | null | undefined;
  memoryBytes(): number;
  outcome(): string | null | undefined;
  /** Frees its memory at once; absent where the garbage collector does. */
  free?(): void;
}

/** How far a run has come, as `resume` says it. */
export const Progress = { yielded: 0, waits: 1, done: 2 } as const;

/** The journal of a stateless run. */
export interface NativeJournal {
  toJson(): string;
  toToken(key: Uint8Array | undefined): string;
  answered(call: number, result: string): NativeJournal;
  failed(call: number, code: string, message: string, details: string | undefined): NativeJournal;
}

/** A step of a stateless run. */
export interface NativeStep {
  journal(): NativeJournal | null | undefined;
  text(): string;
}

/** The addon, or the module for WebAssembly. */
export interface Native {
  nearest(name: string, known: string[]): string | null | undefined;
  Toolset: new (text: string) => NativeToolset;
  Script: new (source: string, settings: string | undefined, tools: NativeToolset) => NativeScript;
  Journal: {
    fromJson(text: string): NativeJournal;
    fromToken(token: string, key: Uint8Array | undefined): NativeJournal;
  };
}

let current: Native | undefined;

/** Chooses what evaluates scripts. */
export function use(native: Native): void {
  current = native;
}

/** What evaluates scripts. */
export function native(): Native {
  if (current === undefined) throw new Error("AgentScript is not initialised: await init() first");
  return current;
}

/** Calls the native part; what it says of an argument is a `TypeError`. */
export function checked<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw new TypeError(error instanceof Error ? error.message : String(error));
  }
}
