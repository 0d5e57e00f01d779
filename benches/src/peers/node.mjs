// Runs scripts in Node and takes the time: JSON lines in, JSON lines out, as `process.rs` says.

import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { setImmediate } from 'node:timers/promises';
import vm from 'node:vm';

let bridge = '';
let runs = 0;

// V8 keeps the code of a text that it has compiled: a number makes each text another.
const compile = (script) => new vm.Script(`${bridge}__main(async () => {\n${script}\n});//${runs++}`);

async function fresh({ script, context, tools }) {
  const globals = vm.createContext({ __context: context ?? '{}' });
  compile(script).runInContext(globals);
  for (;;) {
    // Microtasks come before the next turn of the event loop.
    await setImmediate();
    const [state, text] = globals.__take();
    if (state === 'done') return text;
    if (state === 'failed') throw new Error(text);
    for (let tool = globals.__tool(); tool !== ''; tool = globals.__tool()) globals.__settle(tools[tool] ?? 'null');
  }
}

async function answer(question) {
  if (question.bridge !== undefined) {
    bridge = question.bridge;
    return {};
  }
  let text = '';
  const start = performance.now();
  for (let i = 0; i < question.times; i++) text = await fresh(question);
  return { ms: performance.now() - start, answer: text };
}

for await (const line of createInterface({ input: process.stdin })) {
  const reply = await answer(JSON.parse(line)).catch((error) => ({ error: String(error.message) }));
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
