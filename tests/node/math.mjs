#!/usr/bin/env node
// Compares the functions of `Math` with Node on random numbers. `math.mjs [COUNT] [SEED] [COMMAND...]`
//   COUNT:   how many numbers (3000)
//   COMMAND: runs a file and prints its outcome as JSON (`target/debug/codecall run --preset experimental`)
// The last digits of `sin`, `cos` and `tan` are known to differ now and then: Node takes those of glibc.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [count = '3000', seed = '1', ...given] = process.argv.slice(2);
const command = given.length > 0 ? given : ['target/debug/codecall', 'run', '--preset', 'experimental'];
const skipped = new Set(['constructor', 'random']);
const names = Object.getOwnPropertyNames(Math).filter((name) => typeof Math[name] === 'function' && !skipped.has(name));
const script = `let state = ${Number(seed)};
const random = () => { state = (state * 1103515245 + 12345) % 2147483648; return state / 2147483648; };
const numbers = [1, -1, 2, 0.5, 3, 10, 20, 21.9, 22, 709.78, 710, 710.4, 711, 1e99, 5e-324, 1e-310, 0, -0, NaN, Infinity, -Infinity];
const scales = [1, 10, 800, 1e-3, 1e-9, 1e6];
for (let i = 0; i < ${Number(count)}; i++) {
  const u = random() * 2 - 1;
  numbers.push(i % 8 < 6 ? u * scales[i % 8] : i % 8 === 6 ? 1 + u * 1e-4 : u * 10 ** (random() * 400 - 300));
}
const text = (value) => Object.is(value, -0) ? '-0' : String(value);
const other = (i) => numbers[(i * 7 + 3) % numbers.length];
return [${names.map((name) => `numbers.map((x, i) => 'Math.${name}(' + [text(x), text(other(i))].slice(0, ${Math[name].length}) + ') = ' + text(Math.${name}(${Math[name].length > 1 ? 'x, other(i)' : 'x'})))`).join(',\n')}];`;
const folder = mkdtempSync(join(tmpdir(), 'math-'));
const file = join(folder, 'math.js');
writeFileSync(file, script);
const wanted = new Function(`'use strict';${script}`)();
const outcome = JSON.parse(execFileSync(command[0], [...command.slice(1), file], { maxBuffer: 1 << 30 }).toString());
rmSync(folder, { recursive: true });
if (!outcome.result) throw new Error(JSON.stringify(outcome.error));
let [different, known] = [0, 0];
const isKnown = (line) => /^Math\.(sin|cos|tan)\(/.test(line);
wanted.forEach((lines, index) => {
  const all = lines.map((line, i) => [line, outcome.result[index][i]]).filter(([line, here]) => line !== here);
  const wrong = all.filter(([line]) => !isKnown(line));
  known += all.length - wrong.length;
  different += wrong.length;
  wrong.slice(0, 3).forEach(([line, here]) => console.log(`${line}, here ${here?.split(' = ')[1]}`));
});
console.log(`${wanted.length} functions on ${wanted[0].length} numbers, ${different} results that differ, ${known} that are known to`);
process.exitCode = different > 0 ? 1 : 0;
