// The npm packages of the interpreter, installed into an empty folder without Rust: node bindings.mjs [FOLDER]
//
// They are those in FOLDER, or are made of what `runtime/node/build.mjs` has built. Only node and npm are there, and a registry
// that is served here.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { assertNoOthers, check, finish, must, npmEnvironment, run } from './install.mjs';
import { folder, requireFiles, root } from './serve.mjs';

const NAME = '@codecall/agentscript';
const ADDON = join(root, 'runtime/node/dist/agentscript.node');

async function packages() {
  if (process.argv[2]) {
    const given = resolve(process.argv[2]);
    return readdirSync(given).filter((name) => /^codecall-agentscript-.*\.tgz$/.test(name)).map((name) => join(given, name));
  }
  requireFiles('bindings', ADDON);
  const options = ['--addon', ADDON, '--main', '--out', folder(), '--quick', '--strip'];
  const made = await must(join(root, 'server/packaging/bindings'), options);
  return made.trim().split('\n').map((line) => line.split('\t')[0]);
}

const made = await packages();
for (const path of made) console.log(`    ${basename(path)}: ${statSync(path).size} bytes`);
const home = folder();
const { env, shell, tools, asked, close } = await npmEnvironment(made, NAME, home);
const work = join(home, 'work');
mkdirSync(work);
const scope = join(work, 'node_modules/@codecall');
const installed = join(scope, 'agentscript');
const node = (file) => run(process.execPath, [file], { env, cwd: work });

const USE = `run('return await double({ n: 21 })', { tools: { double: ({ n }) => n * 2 } }).then(({ result }) => console.log(result));`;
writeFileSync(join(work, 'import.mjs'), `import { run } from '${NAME}';\n${USE}`);
writeFileSync(join(work, 'require.cjs'), `const { run } = require('${NAME}');\n${USE}`);
// This one does not need the package of the platform.
writeFileSync(join(work, 'wasm.mjs'), `import { readFileSync } from 'node:fs';
import { init, run } from '${NAME}/wasm';
const module = '${installed}/dist/wasm/agentscript_wasm_bg.wasm';
await init(readFileSync(module));
${USE}`);

let platform;
await check('the packages of the interpreter are installed, for this platform alone', async () => {
  await must(tools.npm, ['install', '--prefix', work, NAME], { env: shell, cwd: work });
  const names = readdirSync(scope);
  assert.equal(names.length, 2, names.join());
  platform = names.find((name) => name !== 'agentscript');
  assertNoOthers(asked);
});
await check('the main package has all but the addon', async () => {
  assert(!existsSync(join(installed, 'dist/agentscript.node')));
  for (const file of ['README.md', 'LICENSE-MIT', 'dist/node.mjs', 'dist/cjs/node.js', 'dist/cjs/node.d.ts', 'dist/esm/node.d.ts', 'dist/esm/wasm.js', 'dist/esm/wasm.d.ts']) {
    assert(existsSync(join(installed, file)), file);
  }
  const about = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
  assert.deepEqual([about.scripts, about.devDependencies, about.dependencies], [undefined, undefined, undefined]);
  assert.deepEqual(readdirSync(join(scope, platform)).filter((file) => !/^(README|LICENSE)/.test(file)).sort(), ['agentscript.node', 'package.json']);
});
for (const file of ['import.mjs', 'require.cjs']) {
  await check(`a script with a tool, ${file}`, async () => {
    const { code, stdout, stderr } = await node(file);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, '42\n');
  });
}
rmSync(join(scope, platform), { recursive: true, force: true });
for (const file of ['import.mjs', 'require.cjs']) {
  await check(`without the package of the platform it says what to do, ${file}`, async () => {
    const { code, stderr } = await node(file);
    assert.notEqual(code, 0);
    const expected = `There is no native module of AgentScript for this platform: install @codecall/${platform}, or import "${NAME}/wasm"`;
    assert(stderr.includes(expected), stderr);
  });
}
if (existsSync(join(installed, 'dist/wasm'))) {
  await check('a script with a tool, as WebAssembly', async () => {
    const { code, stdout, stderr } = await node('wasm.mjs');
    assert.equal(code, 0, stderr);
    assert.equal(stdout, '42\n');
  });
} else {
  console.log('    the module for WebAssembly is not built');
}
close();
finish();
