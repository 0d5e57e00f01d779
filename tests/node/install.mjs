// What the tests of packages share: checks, environments without Rust, and a registry for npm.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { delimiter, dirname, join } from 'node:path';

let cases = 0;
let problems = 0;
export async function check(name, test) {
  if (!test) return;
  cases += 1;
  try {
    await test();
    console.log(`ok: ${name}`);
  } catch (error) {
    problems += 1;
    console.log(`PROBLEM: ${name}: ${error.stack ?? error}`);
  }
}

export function skip(name, why) {
  console.log(`!!! SKIPPED: ${name}: ${why}`);
  if (process.env.CI) problems += 1;
}

// Runs a program to its end; never rejects.
export function run(command, args, { env, cwd, input = '' } = {}) {
  return new Promise((resolve) => {
    const child = execFile(command, args, { env, cwd, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? error?.code, signal: child.signalCode, stdout, stderr });
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

export async function must(command, args, options) {
  const result = await run(command, args, options);
  assert.equal(result.code, 0, `${command} ${args.join(' ')}: ${result.stderr}${result.stdout}`);
  return result.stdout;
}

export const isThere = (command) => process.env.PATH.split(delimiter).some((path) => existsSync(join(path, command)));

// Nothing of whoever runs the tests.
export const clean = (home, ...path) => ({ PATH: path.join(delimiter), HOME: home, LANG: 'C.UTF-8' });

// The packages as a registry has them; those of other platforms only say for what they are.
async function registry(packages, main) {
  const tarballs = packages.filter((name) => name.endsWith('.tgz'));
  const manifests = new Map();
  for (const tarball of tarballs) {
    const about = JSON.parse(await must('tar', ['-xzOf', tarball, 'package/package.json']));
    const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
    manifests.set(about.name, { about, tarball, integrity });
  }
  const { optionalDependencies, version } = manifests.get(main).about;
  for (const name of Object.keys(optionalDependencies)) {
    const [system, cpu, libc] = /[a-z0-9]+-[a-z0-9]+(-musl)?$/.exec(name)[0].split('-');
    const about = { name, version, os: [system], cpu: [cpu], ...(libc && { libc: [libc] }) };
    if (!manifests.has(name)) manifests.set(name, { about, tarball: '/none.tgz', integrity: 'sha512-AAAA' });
  }
  const asked = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url);
    asked.push(path);
    const tarball = tarballs.find((file) => path.endsWith('.tgz') && path === file);
    const found = manifests.get(path.slice(1));
    if (tarball) return response.end(readFileSync(tarball));
    if (!found) return response.writeHead(404).end('{}');
    const url = `http://127.0.0.1:${server.address().port}${found.tarball}`;
    const dist = { tarball: url, integrity: found.integrity };
    const about = { ...found.about, dist };
    return response.end(JSON.stringify({ name: about.name, 'dist-tags': { latest: about.version }, versions: { [about.version]: about } }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, asked, url: `http://127.0.0.1:${server.address().port}/` };
}

// An environment with npm, node and nothing else, whose registry has `packages`; `main` is the one that lists the platforms.
export async function npmEnvironment(packages, main, home) {
  const bin = join(home, 'bin');
  mkdirSync(bin);
  await must('ln', ['-s', process.execPath, join(bin, 'node')]);
  const { server, asked, url } = await registry(packages, main);
  const settings = { npm_config_registry: url, npm_config_cache: join(home, 'cache'), npm_config_audit: 'false', npm_config_fund: 'false', npm_config_update_notifier: 'false' };
  const env = { ...clean(home, bin), ...settings };
  const at = (command) => join(dirname(process.execPath), command);
  const tools = { npm: existsSync(at('npm')) ? at('npm') : 'npm', npx: existsSync(at('npx')) ? at('npx') : 'npx' };
  // `npx` starts programs with a shell.
  const shell = { ...env, PATH: `${bin}${delimiter}/bin` };
  return { bin, env, shell, tools, asked, close: () => server.close() };
}

// npm loads the package of this platform alone.
export function assertNoOthers(asked) {
  const others = asked.filter((path) => path.endsWith('/none.tgz'));
  assert.deepEqual(others, [], 'packages of other platforms are loaded');
}

// Ends the script with the line that CI counts.
export function finish() {
  console.log(`${cases} cases, ${problems} problems`);
  process.exit(problems > 0 ? 1 : 0);
}
