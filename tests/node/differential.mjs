#!/usr/bin/env node
// The Node side of the differential fuzzer (tests/src/bin/differential.rs). `differential.mjs FIXTURE`
// reads lines from stdin, each a JSON list of scripts, and responds to each with a line: the JSON list of
// `{logs, outcome: {kind, text}}`. If a script does not end there is no response, and the caller kills this process.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { runScript } from './sandbox.mjs';

process.env.TZ = 'UTC';
process.on('unhandledRejection', () => {}); // scripts may leave promises behind

const { tools } = JSON.parse(readFileSync(process.argv[2], 'utf8'));

for await (const line of createInterface({ input: process.stdin })) {
  const answers = [];
  for (const script of JSON.parse(line)) {
    const { logs, outcome } = await runScript(script, { tools, returns: script.slice(script.lastIndexOf('\n') + 1).startsWith('return') });
    // Output of a run contains no lone surrogates.
    answers.push({ logs: logs.map((text) => text.toWellFormed()), outcome: { ...outcome, text: outcome.text.toWellFormed() } });
  }
  process.stdout.write(`${JSON.stringify(answers)}\n`);
}
