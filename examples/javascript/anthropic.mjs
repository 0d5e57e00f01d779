/** One tool of Anthropic's library instead of many. */

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { description, instructions, runScript } from "./shop.mjs";
import { withScriptedModel } from "./scripted-model.mjs";

const text = await withScriptedModel(async (address) => {
  // With a key of one's own: new Anthropic().
  const client = new Anthropic({ baseURL: address, apiKey: "none" });
  const messages = [{ role: "user", content: "Order what you have of tea, cups and pots." }];
  for (;;) {
    const answer = await client.messages.create({
      model: "scripted",
      max_tokens: 1000,
      system: instructions,
      messages,
      tools: [
        {
          name: "run_script",
          description,
          input_schema: { type: "object", properties: { script: { type: "string" } }, required: ["script"] },
        },
      ],
    });
    const calls = answer.content.filter(({ type }) => type === "tool_use");
    if (calls.length === 0) return answer.content.find(({ type }) => type === "text").text;
    messages.push({ role: "assistant", content: answer.content });
    const results = calls.map(async ({ id, input }) => {
      const outcome = await runScript(input);
      return { type: "tool_result", tool_use_id: id, content: JSON.stringify(outcome), is_error: outcome.status !== "ok" };
    });
    messages.push({ role: "user", content: await Promise.all(results) });
  }
});
console.log(text);
assert.equal(text, "Ordered as order-1 for 34.5 euros.");
