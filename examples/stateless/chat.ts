// An ordinary client of chat completions, with tools of its own. That code runs in between, it need not know.
//
//   codecall serve --http 8931 --config codecall.toml &      # with model.url and model.key
//   npm install openai
//   OPENAI_BASE_URL=http://127.0.0.1:8931/v1 OPENAI_API_KEY=- MODEL=gpt-5-mini node chat.ts "Which city is warmest?"

import OpenAI from 'openai';

const tools: OpenAI.ChatCompletionFunctionTool[] = [
  {
    type: 'function',
    function: {
      name: 'get_temperature',
      description: 'Temperature in a city, in degrees Celsius: Oslo, Cairo or Lima',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
];

function getTemperature({ city }: { city: string }): unknown {
  const known: Record<string, number> = { Oslo: -4, Cairo: 24, Lima: 19 };
  return city in known ? { city, celsius: known[city] } : { error: { message: `There is no weather in ${city}` } };
}

const client = new OpenAI();
const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: process.argv[2] ?? 'Which city is warmest?' }];
for (;;) {
  const completion = await client.chat.completions.create({ model: process.env.MODEL ?? 'gpt-5-mini', messages, tools });
  const { message } = completion.choices[0];
  messages.push(message);
  if (!message.tool_calls?.length) {
    console.log(message.content);
    break;
  }
  for (const call of message.tool_calls) {
    if (call.type !== 'function') continue;
    const content = JSON.stringify(getTemperature(JSON.parse(call.function.arguments)));
    messages.push({ role: 'tool', tool_call_id: call.id, content });
  }
}
