/** What a run rejects with, and what a tool throws. */

/** A place in a script; lines and columns begin at 1. */
export interface Location {
  line: number;
  column: number;
}

/** One of several things that a script may not do. */
export interface Issue {
  code: string;
  kind?: string;
  message: string;
  hint?: string;
  location?: Location;
}

/** A call that a failed run had made. */
export interface MadeCall {
  name: string;
  status: "ok" | "error" | "cancelled";
  durationMs?: number;
}

/** What a run has used. */
export interface Stats {
  durationMs: number;
  scriptMs: number;
  steps: number;
  iterations: number;
  toolCalls: number;
  peakMemoryBytes: number;
}

/** How a run has failed. */
export type FailedStatus = "syntax_error" | "illegal_access" | "runtime_error" | "tool_error" | "timeout";

/** The outcome of a failed run, for a model or a client. */
export interface FailedOutcome {
  status: FailedStatus;
  error: {
    code: string;
    message: string;
    hint?: string;
    name?: string;
    stack?: string;
    location?: Location;
    issues?: Issue[];
    toolName?: string;
    toolInput?: unknown;
    details?: unknown;
    toolCalls?: number;
    calls?: MadeCall[];
    unhandled?: boolean;
    [key: string]: unknown;
  };
  logs?: string[];
}

/** Options of a `ToolError`. */
export interface ToolErrorOptions {
  /** For the script: `error.code`. */
  code?: string;
  /** For the script: `error.details`, as JSON. */
  details?: unknown;
  /** Whether it ends the run; the script cannot catch it. */
  fatal?: boolean;
  cause?: unknown;
}

/**
 * Thrown by a tool: the script gets an `Error` with this message, code and details.
 *
 * Any other error of a tool does so too, with the code `TOOL_EXECUTION_ERROR`, or its own `code` if that is a text.
 */
export class ToolError extends Error {
  readonly code: string;
  readonly details: unknown;
  readonly fatal: boolean;

  constructor(message: string, options: ToolErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "ToolError";
    this.code = options.code ?? "TOOL_EXECUTION_ERROR";
    this.details = options.details;
    this.fatal = options.fatal ?? false;
  }
}

/** A run that has failed. `status` says how, `code` says it exactly (see docs/reference/errors.md). */
export class RunError extends Error {
  readonly status: FailedStatus;
  readonly code: string;
  /** What to write instead, if that is known. */
  readonly hint: string | undefined;
  /** The name of the error in the script: `TypeError`. */
  readonly errorName: string | undefined;
  /** Where in the script. */
  readonly location: Location | undefined;
  /** The stack of the script. */
  readonly scriptStack: string | undefined;
  /** Everything that is wrong with a script that was refused. */
  readonly issues: Issue[];
  /** The tool that failed, its input (cut if it is long) and what it says of its failure. */
  readonly toolName: string | undefined;
  readonly toolInput: unknown;
  readonly details: unknown;
  /** How many calls were handed to tools, and the first hundred of them: what has already happened. */
  readonly toolCalls: number;
  readonly calls: MadeCall[];
  /** What the script logged. */
  readonly logs: string[];
  readonly stats: Stats | undefined;
  readonly #outcome: FailedOutcome;

  constructor(outcome: FailedOutcome & { stats?: Stats; unanswered?: unknown }, cause?: unknown) {
    const { error } = outcome;
    super(error.message, cause === undefined ? undefined : { cause });
    this.name = "RunError";
    this.status = outcome.status;
    this.code = error.code;
    this.hint = error.hint;
    this.errorName = error.name;
    this.location = error.location;
    this.scriptStack = error.stack;
    this.issues = error.issues ?? [];
    this.toolName = error.toolName;
    this.toolInput = error.toolInput;
    this.details = error.details;
    this.toolCalls = error.toolCalls ?? 0;
    this.calls = error.calls ?? [];
    this.logs = outcome.logs ?? [];
    this.stats = outcome.stats;
    const { stats: _stats, unanswered: _unanswered, ...shown } = outcome;
    this.#outcome = shown;
  }

  /** The outcome for a model or a client: `{status, error, logs?}`. */
  toJSON(): FailedOutcome {
    return this.#outcome;
  }
}
