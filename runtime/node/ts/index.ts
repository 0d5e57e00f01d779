/** What every entry of the package exports. */

export { Journal, Run, Script, compile, declarations, run, runSync } from "./api.js";
export type {
  AsyncRunOptions,
  CompileOptions,
  Context,
  DoneStep,
  Limits,
  Outcome,
  Preset,
  RunOptions,
  StartOptions,
  Step,
  WaitingStep,
} from "./api.js";
export type { Message } from "./drive.js";
export { RunError, ToolError } from "./errors.js";
export type { FailedOutcome, FailedStatus, Issue, Location, MadeCall, Stats, ToolErrorOptions } from "./errors.js";
export { Toolset } from "./tools.js";
export type {
  CallHandler,
  CallOptions,
  JsonSchema,
  PendingCall,
  Schema,
  StandardSchema,
  ToolDefinition,
  ToolFunction,
  ToolsetOptions,
  Tools,
} from "./tools.js";
