// OpenAI's own library as a client: BASE_URL=… node openai.mjs '{"prompt", "stream", "codeMessages"}'
// It calls its tools itself, and prints what it keeps of the conversation as JSON.

import { createRequire } from 'node:module';

const require = createRequire(new URL('../../../../tests/node/', import.meta.url));
const { OpenAI } = require('openai');

const { prompt, stream, codeMessages } = JSON.parse(process.argv[2]);
const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: 'sk-client', maxRetries: 0 });

const tools = [{
  type: 'function',
  function: {
    name: 'web_search',
    description: 'Search the web for news',
    parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  },
}];
const found = ({ query }) => [{ title: `About ${query}`, url: `https://example.com/${encodeURIComponent(query)}` }];

const messages = [{ role: 'system', content: 'You know the news.' }, { role: 'user', content: prompt }];
const spoken = [];
let requests = 0;
for (;;) {
  requests += 1;
  const question = { model: 'tiny', messages, tools, ...(codeMessages && { codecall: { code_messages: true } }) };
  let message, kept;
  if (stream) {
    const runner = client.chat.completions.stream({ ...question, stream_options: { include_usage: true } });
    runner.on('content', (piece) => spoken.push(piece));
    runner.on('chunk', (chunk) => { kept = chunk.codecall?.messages ?? kept; });
    ({ message } = (await runner.finalChatCompletion()).choices[0]);
  } else {
    const completion = await client.chat.completions.create(question);
    message = completion.choices[0].message;
    kept = completion.codecall?.messages;
  }
  messages.push(...(codeMessages ? kept : [message]));
  if (!message.tool_calls?.length) break;
  for (const call of message.tool_calls) {
    const content = JSON.stringify(found(JSON.parse(call.function.arguments)));
    messages.push({ role: 'tool', tool_call_id: call.id, content });
  }
}
console.log(JSON.stringify({ messages, requests, spoken: spoken.join('') }));
