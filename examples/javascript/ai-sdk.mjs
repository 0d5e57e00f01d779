/** One tool of the AI SDK instead of many. */

import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { declarations } from "@codecall/agentscript";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";
import { description, instructions, runScript, tools } from "./shop.mjs";
import { withScriptedModel } from "./scripted-model.mjs";

const text = await withScriptedModel(async (address) => {
  // With a key of one's own: import { openai } from "@ai-sdk/openai", and model: openai("…").
  const openai = createOpenAI({ baseURL: `${address}/v1`, apiKey: "none" });
  const answer = await generateText({
    model: openai.chat("scripted"),
    system: instructions,
    prompt: "Order what you have of tea, cups and pots.",
    tools: {
      run_script: tool({ description, inputSchema: z.object({ script: z.string() }), execute: runScript }),
    },
    stopWhen: stepCountIs(5),
  });
  return answer.text;
});
console.log(text);
// What `tool()` gives can be called by scripts as it is.
assert.equal(declarations({ find_product: tool(tools.find_product) }), declarations({ find_product: tools.find_product }));
assert.equal(text, "Ordered as order-1 for 34.5 euros.");
