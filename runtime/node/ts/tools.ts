/** Tools: functions that scripts call. */

import { ToolError } from "./errors.js";
import { checked, native, type NativeToolset } from "./native.js";
import { checkNames, namesOf, nearest } from "./options.js";

/** A JSON schema. */
export type JsonSchema = { readonly [key: string]: unknown };

/** A schema of a library that follows Standard Schema, such as Zod, Valibot and ArkType. */
export interface StandardSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult | Promise<StandardResult>;
    readonly jsonSchema?: {
      readonly input: (options: { target: string }) => Record<string, unknown>;
      readonly output: (options: { target: string }) => Record<string, unknown>;
    };
  };
}

type StandardResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<{ readonly message: string; readonly path?: ReadonlyArray<unknown> | undefined }> };

/** A schema: JSON, of a library with Standard Schema, or one that holds its JSON, as `jsonSchema()` of the AI SDK gives. */
export type Schema = JsonSchema | StandardSchema | { readonly jsonSchema: unknown };

/** What a tool is told of a call beside its input. */
export interface CallOptions {
  /** Aborted when the run no longer needs the answer: it was cancelled, has ended, or the time of the call is over. */
  readonly abortSignal: AbortSignal;
  /** The same, under the name of `fetch`. */
  readonly signal: AbortSignal;
  /** The number of the call in its run, as a text. */
  readonly toolCallId: string;
  /** The name of the tool. */
  readonly toolName: string;
  /** No messages: tools of the AI SDK get a conversation here, and scripts have none. */
  readonly messages: [];
}

/** A tool. Tools of the AI SDK have this form too. */
export interface ToolDefinition {
  readonly description?: string | undefined;
  readonly inputSchema?: Schema | undefined;
  readonly outputSchema?: Schema | undefined;
  readonly annotations?: { readonly [key: string]: unknown } | undefined;
  /** Whether inputs are checked against a JSON schema, `true` by default. Schemas of libraries check them in any case. */
  readonly checkInput?: boolean | undefined;
  // Each tool has a type of input of its own.
  readonly execute?: ((input: any, options: any) => unknown) | undefined;
}

/** A function as a tool, without a description. */
export type ToolFunction = (input: any, options: CallOptions) => unknown;

/** Answers the calls of all names that no tool has: a handler for a run whose tools are not known before. */
export type CallHandler = (name: string, input: any, options: CallOptions) => unknown;

/** Tools by the names that scripts call them by. */
export type Tools = { readonly [name: string]: ToolDefinition | ToolFunction };

interface Prepared {
  readonly execute: (input: unknown, options: CallOptions) => unknown;
  readonly validate: StandardSchema["~standard"]["validate"] | undefined;
}

/** Options of a `Toolset`. */
export interface ToolsetOptions {
  /** Apps whose tools scripts must never reach. */
  readonly reserved?: readonly string[] | undefined;
}

const TOOLSET_OPTIONS = namesOf<ToolsetOptions>({ reserved: true });
const TOOL_MEMBERS = namesOf<ToolDefinition>({
  description: true,
  inputSchema: true,
  outputSchema: true,
  annotations: true,
  checkInput: true,
  execute: true,
});

/** A call of a run, as the native part hands it out. */
export interface PendingCall {
  id: number;
  /** `tool`, or `fetch` for a call of `fetch`. */
  kind: string;
  tool: string;
  input: unknown;
  /** How long it may take. */
  timeoutMs: number;
}

/**
 * Tools that are prepared once and used by many runs.
 *
 * A tool `users:list` is also called as `users.list(…)`, and `get_user` as `getUser(…)`. A call of a tool of an app in
 * `reserved` ends the run: reserve what scripts must never reach.
 */
export class Toolset {
  /** @internal */
  readonly native: NativeToolset;
  readonly #tools = new Map<string, Prepared>();

  constructor(tools: Tools = {}, options: ToolsetOptions = {}) {
    checkNames("option", options, TOOLSET_OPTIONS);
    const rows = Object.entries(tools).map(([name, tool]) => {
      const { row, prepared } = prepare(name, tool);
      this.#tools.set(name, prepared);
      return row;
    });
    const text = JSON.stringify({ tools: rows, reserved: options.reserved ?? [] });
    this.native = checked(() => new (native().Toolset)(text));
  }

  /** The names of the tools. */
  get names(): string[] {
    return [...this.#tools.keys()];
  }

  /** Declarations of the tools in TypeScript, for the prompt of a model. */
  declarations(): string {
    return this.native.declarations();
  }

  /**
   * Makes a call; one that no tool has the name of is for `onCall`. The result is not converted yet.
   * @internal
   */
  call(call: PendingCall, signal: AbortSignal, onCall: CallHandler | undefined): unknown {
    const tool = this.#tools.get(call.tool);
    if (tool === undefined) {
      if (onCall !== undefined) return onCall(call.tool, call.input, callOptions(call, signal));
      const [near] = this.native.similar(call.tool);
      const hint = near === undefined ? "" : `. Did you mean '${near}'?`;
      throw new ToolError(`Tool '${call.tool}' not found${hint}`, { code: "TOOL_NOT_FOUND" });
    }
    const options = callOptions(call, signal);
    if (tool.validate === undefined) return tool.execute(call.input, options);
    const validated = tool.validate(call.input);
    if (isPromise(validated)) return validated.then((result) => tool.execute(accepted(result), options));
    return tool.execute(accepted(validated), options);
  }
}

/** The tools of a run. */
export function toolset(tools: Tools | Toolset | undefined): Toolset {
  return tools instanceof Toolset ? tools : new Toolset(tools);
}

/** What a tool is told of a call. */
export function callOptions(call: PendingCall, signal: AbortSignal): CallOptions {
  return { abortSignal: signal, signal, toolCallId: String(call.id), toolName: call.tool, messages: [] };
}

/** Whether a value is awaited. */
export function isPromise(value: unknown): value is PromiseLike<any> {
  return value !== null && typeof value === "object" && typeof (value as { then?: unknown }).then === "function";
}

function accepted(result: StandardResult): unknown {
  if (result.issues === undefined) return result.value;
  const problems = result.issues.map(({ message, path }) => {
    const keys = (path ?? []).map((part) => (part !== null && typeof part === "object" ? (part as any).key : part));
    return keys.length === 0 ? message : `${keys.join(".")}: ${message}`;
  });
  throw new ToolError(problems.join("; "), { code: "INVALID_INPUT" });
}

function prepare(name: string, tool: ToolDefinition | ToolFunction): { row: object; prepared: Prepared } {
  if (typeof tool === "function") return { row: { name }, prepared: { execute: tool, validate: undefined } };
  if (tool === null || typeof tool !== "object" || typeof tool.execute !== "function") {
    throw new TypeError(`tool '${name}': a tool is a function or an object with a function 'execute'`);
  }
  for (const member of Object.keys(tool)) {
    // Tools of frameworks have more members, which are not ours to refuse.
    const near = TOOL_MEMBERS.includes(member) ? undefined : nearest(member, TOOL_MEMBERS);
    if (near !== undefined && !(near in tool)) {
      throw new TypeError(`tool '${name}': there is no '${member}'; did you mean '${near}'?`);
    }
  }
  const { description, inputSchema, outputSchema, annotations } = tool;
  const validate = validatorOf(inputSchema);
  const row = {
    name,
    description,
    inputSchema: toJsonSchema(name, inputSchema, "input"),
    outputSchema: toJsonSchema(name, outputSchema, "output"),
    annotations,
    checkInput: validate === undefined && tool.checkInput !== false,
  };
  const execute = tool.execute;
  return { row, prepared: { execute: (input, options) => execute.call(tool, input, options), validate } };
}

/** What checks an input, for a schema that does so itself: of Standard Schema, or of the AI SDK. */
function validatorOf(schema: Schema | undefined): Prepared["validate"] {
  if (schema === undefined || schema === null) return undefined;
  if (isStandard(schema)) return schema["~standard"].validate;
  const { validate } = schema as { validate?: unknown };
  if (!("jsonSchema" in schema) || typeof validate !== "function") return undefined;
  return (input) => {
    const result = validate.call(schema, input) as HeldResult | PromiseLike<HeldResult>;
    return isPromise(result) ? Promise.resolve(result).then(standard) : standard(result);
  };
}

/** What `validate` of a schema of the AI SDK gives. */
type HeldResult = { success: true; value: unknown } | { success: false; error: Error };

function standard(result: HeldResult): StandardResult {
  return result.success ? { value: result.value } : { issues: [{ message: result.error.message }] };
}

function isStandard(schema: Schema): schema is StandardSchema {
  return "~standard" in schema && typeof (schema as StandardSchema)["~standard"]?.validate === "function";
}

function toJsonSchema(name: string, schema: Schema | undefined, side: "input" | "output"): unknown {
  if (schema === undefined || schema === null) return undefined;
  // The AI SDK's own schemas hold their JSON, and may make it late.
  if ("jsonSchema" in schema && !("properties" in schema)) {
    const held = schema.jsonSchema;
    if (isPromise(held)) throw new TypeError(`tool '${name}': await its schema first`);
    return held;
  }
  if (!isStandard(schema)) return schema;
  const convert = schema["~standard"].jsonSchema?.[side];
  if (convert === undefined) {
    throw new TypeError(
      `tool '${name}': the schema of '${schema["~standard"].vendor}' has no JSON form; give a JSON schema, or use a version of the library that has it`,
    );
  }
  return convert({ target: "draft-2020-12" });
}
