/** How the package is used, for the compiler alone. */

import {
  Journal, RunError, ToolError, Toolset, compile, declarations, run, runSync,
  type CallOptions, type Limits, type Message, type Outcome, type Step,
} from "@codecall/agentscript";
import { z } from "zod";

const limits: Limits = { maxSteps: 1000, loops: "bounded" };
const tools = {
  plain: ({ id }: { id: number }) => ({ id }),
  typed: {
    description: "Typed.",
    inputSchema: z.object({ id: z.number() }),
    execute: async ({ id }: { id: number }, { signal, toolCallId }: CallOptions) => [id, signal.aborted, toolCallId],
  },
  json: { inputSchema: { type: "object" }, execute: () => null },
};

export async function main(): Promise<void> {
  const outcome: Outcome = await run("return 1", { tools, limits, signal: AbortSignal.timeout(1000), context: { a: 1 } });
  const text: string[] = outcome.logs;
  const set = new Toolset(tools, { reserved: ["agent"] });
  const script = compile("return 1", { tools: set, preset: "balanced", language: "typescript" });
  const step: Step = script.step(script.journal("id"));
  if (step.done) console.log(step.outcome.result, text);
  else Journal.from(step.journal.answer(0, {}).toJSON());
  runSync("1", { onMessage: (message: Message) => console.log(message.type) });
  console.log(declarations(set));
  await run("1", { onCall: (name, input, { signal }) => [name.length, input, signal.aborted] });
  // @ts-expect-error: there is no such option.
  await run("1", { tool: {} });
  // @ts-expect-error: there is no such preset.
  await run("1", { preset: "safe" });
  // @ts-expect-error: there is no such limit.
  await run("1", { limits: { maxStep: 1 } });
}

export function fails(): never {
  try {
    throw new ToolError("no", { code: "NO", details: { a: 1 }, cause: 1 });
  } catch (error) {
    if (error instanceof RunError) console.log(error.location?.line, error.toJSON().status);
    throw error;
  }
}
