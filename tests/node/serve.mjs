// What the scripts beside it share: processes of CodeCall and of others, pages that scripts write.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const here = dirname(fileURLToPath(import.meta.url));
export const root = join(here, '../..');
export const modules = join(here, 'node_modules');
export const python = join(root, 'tests/python/.venv/bin');
// Node 22, which some of the packages need.
export const node22 = join(modules, 'node/bin/node');

// The program under test: the debug build, or what CODECALL names.
export const codecall = process.env.CODECALL ?? join(process.env.CARGO_TARGET_DIR ?? join(root, 'target'), 'debug/codecall');
export const fixture = join(dirname(codecall), 'conformance-server');

// Ends the script: without CI quietly, with CI=true as a failure.
export function requireFiles(what, ...paths) {
  const missing = paths.find((path) => !existsSync(path));
  if (!missing) return;
  console.log(`!!! SKIPPED: ${what}: ${missing} is not there; see .ci/run`);
  process.exit(process.env.CI ? 1 : 0);
}

const children = new Set();
const folders = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function folder() {
  const path = mkdtempSync(join(tmpdir(), 'codecall-node-'));
  folders.add(path);
  return path;
}

// The environment of a CodeCall that knows nothing of earlier ones.
export const environment = (home) => ({
  ...process.env, HOME: home, XDG_CACHE_HOME: home, XDG_CONFIG_HOME: home, XDG_RUNTIME_DIR: home, RUST_LOG: '',
});

// Starts a process and waits until `ready` finds something in one of its lines. `stop` ends it and returns its stderr.
export async function start(command, args, { ready, env = process.env, cwd } = {}) {
  const child = spawn(command, args, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  let [seen, stderr] = ['', ''];
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const found = await new Promise((resolve, reject) => {
    const look = (chunk) => {
      seen += chunk;
      const match = ready.exec(seen);
      if (match) resolve(match[1]);
    };
    child.stdout.on('data', look);
    child.stderr.on('data', (chunk) => { stderr += chunk; look(chunk); });
    child.once('error', reject);
    exited.then((code) => reject(new Error(`${command} ended with ${code}: ${seen}`)));
  });
  const stop = async (signal = 'SIGTERM') => {
    child.kill(signal);
    await exited;
    children.delete(child);
    return stderr;
  };
  return { child, found, stop };
}

// `codecall serve --http` with a configuration, once its servers are up.
export async function serveHttp(config, { home = folder(), args = [] } = {}) {
  const path = join(home, 'codecall.json');
  writeFileSync(path, JSON.stringify(config));
  const server = await start(codecall, ['serve', '--http', '0', '--config', path, ...args], {
    ready: /listening on (http:\S+)/, env: environment(home),
  });
  for (const began = Date.now(); ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    if ((await fetch(`${server.found}/readyz`)).status === 200) break;
    assert(Date.now() - began < 60_000, 'the servers are not ready');
  }
  return { ...server, home, url: `${server.found}/mcp` };
}

// Writes `text` between the markers of a page; with --check, it must be there.
export function writeSection(page, name, text) {
  const path = join(root, page);
  const [begin, end] = [`<!-- ${name}: written by `, `<!-- /${name} -->`];
  const old = readFileSync(path, 'utf8');
  const from = old.indexOf('\n', old.indexOf(begin)) + 1;
  const to = old.indexOf(end);
  assert(old.includes(begin) && to >= from, `${page} has no section ${name}`);
  writePage(page, `${old.slice(0, from)}${text.trim()}\n${old.slice(to)}`);
}

export function writePage(page, text) {
  const path = join(root, page);
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return;
  if (process.argv.includes('--check')) {
    console.error(`${page} is out of date: run the script again without --check`);
    process.exitCode = 1;
  } else {
    writeFileSync(path, text);
    console.log(`${page} is written`);
  }
}
