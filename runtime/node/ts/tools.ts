/** Tools: functions that scripts call. */

import { ToolError } from "./errors.js";
import { checked, native, type NativeToolset } from "./native.js";

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
  // Each tool has a type of input of its own.
  readonly execute?: ((input: any, options: any) => unknown) | undefined;
}

/** A function as a tool, without a description. */
export type ToolFunction = (input: any, options: CallOptions) => unknown;

/** Tools by the names that scripts call them by. */
export type Tools = { readonly [name: string]: ToolDefinition | ToolFunction };

interface Prepared {
  readonly execute: (input: unknown, options: CallOptions) => unknown;
  readonly validate: StandardSchema["~standard"]["validate"] | undefined;
}

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

  constructor(tools: Tools = {}, options: { reserved?: readonly string[] } = {}) {
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
   * Makes a call. The result is not converted yet.
   * @internal
   */
  call(call: PendingCall, signal: AbortSignal): unknown {
    const tool = this.#tools.get(call.tool);
    if (tool === undefined) {
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
  const { description, inputSchema, outputSchema, annotations } = tool;
  const row = {
    name,
    description,
    inputSchema: toJsonSchema(name, inputSchema, "input"),
    outputSchema: toJsonSchema(name, outputSchema, "output"),
    annotations,
  };
  const validate = inputSchema !== undefined && isStandard(inputSchema) ? inputSchema["~standard"].validate : undefined;
  const execute = tool.execute;
  return { row, prepared: { execute: (input, options) => execute.call(tool, input, options), validate } };
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
