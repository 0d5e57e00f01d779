// Authorization with an authorization server of others, `oidc-provider`: a person logs in with a browser, on this or another device,
// tokens are renewed and revoked, a client has access of its own, and CodeCall itself takes tokens of that issuer.
//
//     cargo build && node tests/node/oauth.mjs

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHROMIUM, launch } from './chromium.mjs';
import { codecall, environment, folder, here, node22, requireFiles, start } from './serve.mjs';

requireFiles('authorization by oidc-provider', codecall, node22, CHROMIUM, join(here, 'node_modules/oidc-provider'));

// Seconds that a token is valid: so few that it is renewed before each use.
const VALID = 10;
const service = await start(node22, [join(here, 'oauth-server.mjs'), String(VALID)], { ready: /^ready (.*)$/m });
const { issuer, resource } = JSON.parse(service.found);
const browser = await launch();

// A person with a store of their own, who uses the server.
function person(auth) {
  const home = folder();
  const config = join(home, 'codecall.json');
  writeFileSync(config, JSON.stringify({ mcpServers: { boxes: { url: resource, auth } } }));
  const env = environment(home);
  const run = (...args) => {
    const { status, stdout, stderr } = spawnSync(codecall, [...args, '--config', config], { env, encoding: 'utf8', timeout: 60_000 });
    return { status, stdout, stderr };
  };
  const invoke = (name) => {
    const answer = JSON.parse(run('invoke', `boxes:${name}`).stdout);
    return answer.result ?? answer.error;
  };
  // `codecall auth login`, during which the person does something with its address.
  const login = async (args, visit) => {
    const child = spawn(codecall, ['auth', 'login', 'boxes', '--config', config, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let [stdout, stderr, visiting] = ['', '', undefined];
    child.stdout.on('data', (chunk) => { stdout += chunk; });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
      const address = /to log in: (\S+)/.exec(stderr)?.[1];
      const code = /enter the code: (\S+)/.exec(stderr)?.[1];
      if (address && (code || !args.includes('--device'))) visiting ??= visit(address, code);
    });
    const status = await new Promise((resolve) => child.once('exit', resolve));
    await visiting;
    assert.equal(status, 0, stderr);
    assert.equal(stdout, 'logged in to boxes\n');
  };
  return { run, invoke, login };
}

// Logs in, agrees to what is asked, and returns the text of the last page.
async function agree(page, name) {
  for (;;) {
    await page.waitForLoadState();
    if (await page.locator('input[name=login]').count()) {
      await page.fill('input[name=login]', name);
      await page.fill('input[name=password]', 'any');
    } else if (!(await page.locator('input[name=prompt][value=consent]').count())) {
      return page.locator('body').innerText();
    }
    await Promise.all([page.waitForNavigation(), page.click('button[type=submit]')]);
  }
}

const visit = (name) => async (address) => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(address);
  const text = await agree(page, name);
  assert.match(text, /logged in/i);
  await context.close();
};

const CASES = {
  async 'a person logs in, tokens are renewed, more scopes are asked for, and revoked'() {
    const alice = person();
    const before = alice.invoke('read');
    assert.equal(before.code, 'LOGIN_REQUIRED', JSON.stringify(before));
    await alice.login([], visit('alice'));
    const first = alice.invoke('read');
    assert.deepEqual([first.did, first.person, first.scope], ['read', 'alice', 'boxes:read'], JSON.stringify(first));
    // Its access token is about to expire, so each command renews it. The refresh token is another one each time.
    let last = first.token;
    for (let round = 0; round < 3; round += 1) {
      const next = alice.invoke('read');
      assert.equal(next.did, 'read', JSON.stringify(next));
      assert.notEqual(next.token, last);
      last = next.token;
    }
    const refused = alice.invoke('write');
    assert.equal(refused.code, 'LOGIN_REQUIRED', JSON.stringify(refused));
    assert.match(refused.message, /boxes:write/);
    await alice.login([], visit('alice'));
    const written = alice.invoke('write');
    assert.deepEqual([written.did, written.scope?.split(' ').sort()], ['write', ['boxes:read', 'boxes:write']], JSON.stringify(written));
    assert.equal(JSON.parse(alice.run('auth', 'status', '--json').stdout)[0].issuer, issuer);
    const out = alice.run('auth', 'logout', 'boxes');
    assert.equal(out.stdout, 'logged out of boxes\n', out.stderr);
    assert.equal(alice.invoke('read').code, 'LOGIN_REQUIRED');
  },

  async 'a code is entered on another device'() {
    const bob = person();
    await bob.login(['--device'], async (address, code) => {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(address);
      if (!(await page.locator('input[name=user_code]').inputValue())) await page.fill('input[name=user_code]', code);
      await Promise.all([page.waitForNavigation(), page.click('button[type=submit]')]);
      if (await page.locator('button[name=confirm], button:has-text("Continue")').count()) {
        await Promise.all([page.waitForNavigation(), page.locator('button[type=submit]').first().click()]);
      }
      await agree(page, 'bob');
      await context.close();
    });
    const read = bob.invoke('read');
    assert.deepEqual([read.did, read.person], ['read', 'bob'], JSON.stringify(read));
  },

  async 'a client has access of its own'() {
    const robot = person({ type: 'client_credentials', clientId: 'service', clientSecret: 'the-secret-of-the-service' });
    const read = robot.invoke('read');
    assert.deepEqual([read.did, read.client, read.scope], ['read', 'service', 'boxes:read'], JSON.stringify(read));
    const wrong = person({ type: 'client_credentials', clientId: 'service', clientSecret: 'another-secret-of-it' });
    assert.match(JSON.stringify(wrong.invoke('read')), /invalid_client/);
  },

  async 'CodeCall takes tokens of the issuer for itself, and no others'() {
    const home = folder();
    const config = join(home, 'codecall.json');
    const own = 'https://tools.example.com/mcp';
    writeFileSync(config, JSON.stringify({ http: { resource: own, jwt: { issuer, jwks: `${issuer}/jwks`, scopes: { 'boxes:read': { allow: ['*:*'] } } } } }));
    const server = await start(codecall, ['serve', '--http', '0', '--demo', '--config', config], { ready: /listening on (http:\S+)/, env: environment(home) });
    const token = async (audience) => {
      const body = new URLSearchParams({ grant_type: 'client_credentials', scope: 'boxes:read', resource: audience });
      const authorization = `Basic ${Buffer.from('service:the-secret-of-the-service').toString('base64')}`;
      const response = await fetch(`${issuer}/token`, { method: 'POST', body, headers: { authorization } });
      return (await response.json()).access_token;
    };
    const ask = async (authorization) => {
      const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } } };
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...authorization && { authorization } };
      return fetch(`${server.found}/mcp`, { method: 'POST', body: JSON.stringify(initialize), headers });
    };
    const bare = await ask();
    assert.equal(bare.status, 401);
    assert.match(bare.headers.get('www-authenticate'), /resource_metadata=/);
    assert.equal((await ask(`Bearer ${await token(own)}`)).status, 200);
    assert.equal((await ask(`Bearer ${await token(resource)}`)).status, 401);
    await server.stop();
  },
};

for (const [name, test] of Object.entries(CASES)) {
  try {
    await test();
    console.log(`ok: ${name}`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`FAILED: ${name}: ${error.stack}`);
  }
}
await browser.close();
const log = await service.stop();
if (process.exitCode) console.log(log);
const events = log.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
const problems = events.filter((event) => /error/.test(event.kind) && !/invalid_client/.test(event.error));
assert.deepEqual(problems, [], 'the authorization server found errors');
const renewals = events.filter((event) => event.kind === 'grant.success' && event.grant_type === 'refresh_token');
assert(renewals.length >= 2, 'no refresh token was used');
assert(events.filter((event) => event.kind === 'grant.success').every((event) => event.resource), 'a token was asked for without its resource');
assert(events.some((event) => event.kind === 'grant.revoked'), 'no token was revoked');
