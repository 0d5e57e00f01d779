/**
 * A server that answers as the APIs of OpenAI and Anthropic do, with what it was told, so that the examples run without a key.
 *
 * Its model first writes a script with a mistake, then mends it, then tells the result.
 */

import { createServer } from "node:http";
import { once } from "node:events";

const SCRIPT = `
const names = ['tea', 'cup', 'pot'];
const found = await Promise.all(names.map((name) => findProduct({ name })));
const inStock = names.filter((name, index) => found[index].left > 0);
const { id } = await placeOrder({ names: inStock });
return { id, total: found.filter(({ left }) => left > 0).reduce((sum, { price }) => sum + price, 0) };
`;

/** What the model says, by what its last script came to. */
function turn(results) {
  const last = results.at(-1);
  if (last === undefined) return { script: SCRIPT.replace("findProduct(", "findProducts(") };
  const outcome = JSON.parse(last);
  if (outcome.status !== "ok") {
    if (!outcome.error.message.includes("findProducts is not defined")) throw new Error(`unexpected: ${last}`);
    return { script: SCRIPT };
  }
  return { text: `Ordered as ${outcome.result.id} for ${outcome.result.total} euros.` };
}

function chatCompletion(request) {
  const { script, text } = turn(request.messages.filter(({ role }) => role === "tool").map(({ content }) => content));
  const call = { id: `call_${request.messages.length}`, type: "function" };
  const message =
    script === undefined
      ? { role: "assistant", content: text }
      : {
          role: "assistant",
          content: null,
          tool_calls: [{ ...call, function: { name: "run_script", arguments: JSON.stringify({ script }) } }],
        };
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: request.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: script === undefined ? "stop" : "tool_calls" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  };
}

function anthropicMessage(request) {
  const blocks = request.messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const results = blocks.filter(({ type }) => type === "tool_result");
  const texts = results.map(({ content }) => (Array.isArray(content) ? content[0].text : content));
  const { script, text } = turn(texts);
  const content =
    script === undefined
      ? { type: "text", text, citations: null }
      : { type: "tool_use", id: `toolu_${request.messages.length}`, name: "run_script", input: { script } };
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: request.model,
    content: [content],
    stop_reason: script === undefined ? "end_turn" : "tool_use",
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  };
}

/** Starts the server, runs `use` with its address, and ends it. */
export async function withScriptedModel(use) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks).toString());
    const answer = request.url.endsWith("/chat/completions") ? chatCompletion : anthropicMessage;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answer(body)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}
