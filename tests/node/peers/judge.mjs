// The Node side of `peers.mjs`: reads lines `{"script"}`, and answers each with a line `{logs, outcome}`. A script that
// does not end has no answer. As in AgentScript, the properties of built-ins are fixed.
import { createInterface } from 'node:readline';
import { runScript } from '../sandbox.mjs';

process.on('unhandledRejection', () => {}); // scripts may leave promises behind

delete Error.prepareStackTrace;
// What the sandbox replaces, and the limit of stacks, which it sets.
const REPLACED = [Date, AbortSignal, Error, performance, crypto];
for (const name of Object.getOwnPropertyNames(globalThis)) {
  const { value } = Object.getOwnPropertyDescriptor(globalThis, name);
  const isOwn = /^[A-Z]/.test(name) && !/^(Buffer|Symbol|Proxy|Reflect|WebAssembly)$/.test(name);
  if (!isOwn && !/^(parse|is|en|de|structured|atob|btoa)/.test(name)) continue;
  for (const object of [value, value?.prototype]) {
    if (object === null || !/object|function/.test(typeof object)) continue;
    for (const [key, { value: method }] of Object.entries(Object.getOwnPropertyDescriptors(object))) {
      if (typeof method === 'function' && key !== 'prototype' && !REPLACED.includes(method)) Object.freeze(method);
    }
  }
  if (REPLACED.includes(value)) Object.preventExtensions(value);
  else if (value !== null && /object|function/.test(typeof value)) Object.freeze(value);
}

for await (const line of createInterface({ input: process.stdin })) {
  const { script } = JSON.parse(line);
  const { logs, outcome } = await runScript(script);
  // Output of a run contains no lone surrogates.
  const answer = { logs: logs.map((text) => text.toWellFormed()), outcome: { ...outcome, text: outcome.text.toWellFormed() } };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
