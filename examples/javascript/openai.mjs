/** One tool of OpenAI's library instead of many. */

import assert from "node:assert/strict";
import OpenAI from "openai";
import { description, instructions, runScript } from "./shop.mjs";
import { withScriptedModel } from "./scripted-model.mjs";

const text = await withScriptedModel(async (address) => {
  // With a key of one's own: new OpenAI().
  const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: "none" });
  const runner = client.chat.completions.runTools({
    model: "scripted",
    messages: [
      { role: "system", content: instructions },
      { role: "user", content: "Order what you have of tea, cups and pots." },
    ],
    tools: [
      {
        type: "function",
        function: {
          name: "run_script",
          description,
          parameters: { type: "object", properties: { script: { type: "string" } }, required: ["script"] },
          parse: JSON.parse,
          function: runScript,
        },
      },
    ],
  });
  return runner.finalContent();
});
console.log(text);
assert.equal(text, "Ordered as order-1 for 34.5 euros.");
