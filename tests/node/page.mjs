// The web page in a headless Chromium, as an operator uses it: node page.mjs [--check] [NAME…]
//
// Each walk ends without errors in the console, violations of the content security policy, and violations that axe-core
// finds. Without --check, the screenshots in docs/guide/page/ are made anew.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { CHROMIUM, launch } from './chromium.mjs';
import { codecall, environment, folder, requireFiles, root, start } from './serve.mjs';

requireFiles('the web page in Chromium', codecall, CHROMIUM);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const SHOTS = join(root, 'docs/guide/page');
const MAX_SHOT_BYTES = 150_000;
const BROKEN = `// How many users come from the city of one of them
const user = await users.get({ id: 'usr_001' });
const [active, first] = await Promise.all([users.list({ status: 'active', limit: 50 }), users.list({ limit: 5 })]);
console.log('found', first.users.length);
return user.address.city;`;
const MENDED = BROKEN.replace('user.address.city', 'first.users.length');
const HOSTILE = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;

const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const checks = process.argv.includes('--check');

// A server with the page. `link` is the address with its token.
async function serve({ config = {}, args = [] } = {}) {
  const home = folder();
  const path = join(home, 'codecall.json');
  writeFileSync(path, JSON.stringify({ store: { path: join(home, 'codecall.db') }, directCalls: { enabled: true }, ...config }));
  const server = await start(codecall, ['serve', '--http', '0', '--ui', '--demo', '--config', path, ...args], {
    ready: /page: (http:\S+)/, env: environment(home),
  });
  const link = server.found;
  return { ...server, link, url: new URL(link).origin };
}

// Runs a script as an agent does, over MCP.
async function execute(url, script, headers = {}) {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'codecall_execute', ...headers },
    body: JSON.stringify({
      jsonrpc: '2.0', id: 1, method: 'tools/call',
      params: { name: 'codecall_execute', arguments: { script }, _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'walker', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      } },
    }),
  });
  const text = await response.text();
  assert(response.ok, text);
  return text;
}

// A page of the browser that collects what goes wrong in it.
async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) faults.push(message.text()); });
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('requestfailed', (request) => {
    // News and icons end when the page is left.
    if (!/\/live|icon\.svg/.test(request.url())) faults.push(`${request.url()}: ${request.failure()?.errorText}`);
  });
  return { context, page, faults };
}

// What axe-core finds wrong in a page. It is evaluated beside the policy of the page, which allows nothing inline.
async function accessible(page, what) {
  const results = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ['violations'] })`);
  const found = results.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`);
  assert.deepEqual(found, [], what);
}

async function shot(page, name) {
  const path = join(SHOTS, `${name}.png`);
  const size = page.viewportSize();
  if (size.width > 1000) await page.setViewportSize({ width: 1040, height: 640 });
  const image = await page.screenshot({ animations: 'disabled' });
  await page.setViewportSize(size);
  assert(image.length < MAX_SHOT_BYTES, `${name}.png has ${image.length} bytes`);
  if (!checks) {
    mkdirSync(SHOTS, { recursive: true });
    writeFileSync(path, image);
  } else assert(existsSync(path), `${path} is missing`);
}

// Looks at a page light and dark, wide and narrow; `kept` is the view of which there is a picture in docs/guide/page/. With PICTURES=FOLDER all four are there.
async function views(page, name, kept) {
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [1280, 380]) {
      const view = `${colorScheme}-${width}`;
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 860 });
      await accessible(page, `${name}, ${view}`);
      assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} is too wide: ${view}`);
      if (view === kept) await shot(page, name);
      if (process.env.PICTURES) writeFileSync(join(process.env.PICTURES, `${name}-${view}.png`), await page.screenshot({ fullPage: true }));
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 860 });
}

const walks = {
  // Finds a failed run, reads its line, mends the script, and runs it again.
  async mend(browser) {
    const server = await serve();
    for (let number = 0; number < 12; number++) await execute(server.url, `return (await users.list({ limit: ${number + 1} })).users.length`);
    await execute(server.url, BROKEN);
    const { page, faults } = await open(browser);
    await page.goto(server.link);
    await page.waitForURL(`${server.url}/ui/runs`);
    await page.getByLabel('Status').selectOption('failed');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.waitForURL(/status=failed/);
    assert.equal(await page.locator('tbody tr').count(), 1);
    await accessible(page, 'the list');
    await page.locator('tbody a').click();
    assert.match(await page.locator('.source li.failed').textContent(), /return user\.address\.city;.*failed here/);
    assert.equal(await page.locator('.source li.failed').getAttribute('id'), 'line-5');
    assert.equal(await page.locator('.timeline li').count(), 3);
    // The second and the third call are in progress at once.
    const bars = await page.locator('.timeline rect.ok').evaluateAll((all) => all.map((bar) => [bar.x.baseVal.value, bar.width.baseVal.value]));
    assert(bars[1][0] < bars[2][0] + bars[2][1] && bars[2][0] < bars[1][0] + bars[1][1], JSON.stringify(bars));
    assert.match(await page.locator('main').textContent(), /found 5/);
    await page.locator('.timeline summary').first().click();
    assert.match(await page.locator('.timeline li').first().textContent(), /Input.*usr_001.*Output/s);
    await accessible(page, 'the run');
    await page.locator('.timeline summary').first().click();
    await shot(page, 'run');
    // What is wrong is said while it is typed.
    const editor = page.locator('#script-text');
    await editor.fill(`${BROKEN}\nwhile (true) {`);
    await page.locator('.diagnostics li button').first().waitFor();
    assert.match(await page.locator('.diagnostics').textContent(), /line 6, column/);
    await editor.fill(MENDED);
    await page.locator('.diagnostics .fine').waitFor();
    await page.getByRole('button', { name: 'Replay with recorded answers' }).click();
    assert.match(await page.locator('main').textContent(), /No tool was called.*not as recorded.*Result\s*5/s);
    await accessible(page, 'the replay');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.waitForURL(/\/ui\/runs\/[0-9a-f]+$/);
    assert.match(await page.locator('.lead').textContent(), /ok.*by page/s);
    assert.match(await page.locator('main').textContent(), /Result\s*5/);
    assert.deepEqual(faults, []);
    await server.stop();
  },

  // New runs arrive by themselves, and all pages are accessible, light and dark, wide and narrow.
  async pages(browser) {
    const server = await serve();
    await execute(server.url, BROKEN);
    const { page, faults, context } = await open(browser);
    await page.goto(server.link);
    await page.waitForURL(`${server.url}/ui/runs`);
    await page.waitForTimeout(1_000);
    for (let number = 0; number < 3; number++) await execute(server.url, `return (await users.list({ limit: ${number + 2} })).users`);
    await page.locator('tr.new').nth(2).waitFor();
    assert.equal(await page.locator('tbody tr').count(), 4);
    assert.match(await page.locator('#news').textContent(), /3 new runs/);
    for (let number = 0; number < 30; number++) await execute(server.url, number % 6 ? `return (await users.list({ limit: ${number + 2} })).users.map(user => user.name)` : 'return await orders.get({ id: "none" })');
    await page.goto(`${server.url}/ui/runs`);
    await shot(page, 'runs');
    const addresses = ['runs', 'charts', 'charts?range=hour', 'script', 'tools', 'tools?q=refund', 'tool?name=users:list', 'tool?name=billing:refund', 'servers', 'server?name=users', 'secrets', 'quarantine', 'approvals'];
    for (const colorScheme of ['light', 'dark']) {
      for (const width of [1280, 380]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 860 });
        for (const address of addresses) {
          const response = await page.goto(`${server.url}/ui/${address}`);
          assert.equal(response.status(), 200, address);
          await accessible(page, `${address}, ${colorScheme}, ${width}`);
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert(overflow <= 0, `${address} is ${overflow} pixels too wide at ${width}`);
          if (colorScheme === 'light' && width === 1280 && address === 'charts?range=hour') await shot(page, 'charts');
          if (colorScheme === 'dark' && width === 1280 && address === 'tool?name=users:list') await shot(page, 'tool-dark');
          if (colorScheme === 'dark' && width === 380 && address === 'runs') await shot(page, 'runs-narrow');
        }
      }
    }
    // A tool is called by its form; the call is recorded.
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.goto(`${server.url}/ui/tools?q=list+users`);
    await page.getByRole('link', { name: 'users:list', exact: true }).click();
    await page.getByLabel('limit').fill('2');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    assert.match(await page.locator('#result').textContent(), /ok.*users/s);
    await page.goto(`${server.url}/ui/runs?kind=invoke&text=limit*`);
    await page.locator('tbody tr').first().waitFor({ timeout: 5_000 }).catch(() => page.reload());
    assert.equal(await page.locator('tbody tr').count(), 1);
    assert.deepEqual(faults, []);
    await context.close();
    await server.stop();
  },

  // Runs in progress appear by themselves and are cancelled; a server is restarted, and its log is shown.
  async control(browser) {
    const shop = { command: 'sh', args: ['-c', `echo "the shop of $$ opens" >&2; exec ${codecall} serve --demo`], env: { CODECALL_CONFIG: '' } };
    const config = { mcpServers: { shop, closed: { command: 'sh', args: ['-c', 'echo "no licence" >&2; exit 1'] } }, vm: { preset: 'experimental' } };
    const server = await serve({ config });
    const { page, faults } = await open(browser);
    await page.goto(server.link);
    await page.waitForURL(`${server.url}/ui/runs`);
    assert.equal(await page.locator('#active').isVisible(), false);
    const long = `// ${'a long line of a script, '.repeat(20)}\nawait sleep(600_000)`;
    const running = [execute(server.url, long), execute(server.url, 'await sleep(600_001)')];
    await page.locator('#active tbody tr').nth(1).waitFor();
    for (const colorScheme of ['light', 'dark']) {
      for (const width of [1280, 380]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 860 });
        await page.goto(`${server.url}/ui/runs`);
        await accessible(page, `runs in progress, ${colorScheme}, ${width}`);
        assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}`);
        assert(await page.locator('#active td.title').first().isVisible());
      }
    }
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.emulateMedia({ colorScheme: 'light' });
    await page.locator('#active tbody tr', { hasText: 'a long line' }).getByRole('button').click();
    assert.match(await running[0], /EXECUTION_ABORTED/);
    await page.getByText('1 new run.').or(page.locator('.runs tbody tr').first()).first().waitFor();
    assert.equal(await page.locator('#active tbody tr').count(), 1);
    await page.locator('#active tbody tr').getByRole('button').click();
    await running[1];
    await page.waitForFunction(() => document.getElementById('active').hidden);
    // The title of what ran is in a narrow list.
    await page.setViewportSize({ width: 380, height: 860 });
    await page.goto(`${server.url}/ui/runs`);
    const title = await page.locator('.runs td.title').first().boundingBox();
    assert(title.width > 300 && title.x >= 0 && title.x + title.width <= 380, JSON.stringify(title));
    await page.setViewportSize({ width: 1280, height: 860 });
    // A long line of a script is whole.
    await page.locator('.runs td.title a', { hasText: 'a long line' }).click();
    const source = page.locator('.source');
    assert(await source.evaluate((list) => list.scrollWidth <= list.clientWidth + 1), 'lines are wrapped');
    await page.getByRole('link', { name: 'Servers' }).click();
    await page.getByRole('link', { name: 'shop', exact: true }).click();
    await page.waitForURL(/server\?name=shop/);
    for (let at = 0; at < 40 && !(await page.locator('.status.ok').count()); at++) {
      await page.waitForTimeout(250);
      await page.reload();
    }
    const opens = async () => /the shop of (\d+) opens/.exec(await page.locator('main').textContent())[1];
    const first = await opens();
    await accessible(page, 'a server');
    await page.getByRole('button', { name: 'Restart' }).click();
    await page.waitForURL(/server\?name=shop/);
    for (let at = 0; at < 40 && !(await page.locator('.status.ok').count()); at++) {
      await page.waitForTimeout(250);
      await page.getByRole('link', { name: 'Load again' }).click();
    }
    assert.notEqual(await opens(), first);
    await page.goto(`${server.url}/ui/server?name=closed`);
    assert.match(await page.locator('main').textContent(), /failed.*does not work.*Restart.*no licence/s);
    await accessible(page, 'a server that has failed');
    assert.deepEqual(faults, []);
    await server.stop();
  },

  // A script is written without a run before it.
  async script(browser) {
    const server = await serve();
    const { page, faults } = await open(browser);
    await page.goto(server.link);
    await page.getByRole('link', { name: 'New script' }).click();
    const editor = page.locator('#script-text');
    await editor.fill(`${MENDED}\nwhile (true) {`);
    await page.locator('.diagnostics li button').first().waitFor();
    await views(page, 'script', 'dark-1280');
    await editor.fill(MENDED);
    await page.locator('.diagnostics .fine').waitFor();
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.waitForURL(/\/ui\/runs\/[0-9a-f]+$/);
    assert.match(await page.locator('main').textContent(), /Result\s*5/);
    assert.deepEqual(faults, []);
    await server.stop();
  },

  // A call waits until a person has decided.
  async approve(browser) {
    const server = await serve({ config: { approval: { rules: [{ tool: 'users:list', approval: 'always' }] } } });
    const { page, faults } = await open(browser);
    await page.goto(server.link);
    await page.waitForURL(`${server.url}/ui/runs`);
    const call = async () => {
      await page.goto(`${server.url}/ui/tool?name=users:list`);
      await page.getByLabel('limit').fill('2');
      await page.getByRole('button', { name: 'Call', exact: true }).click();
      return page.locator('#result').textContent();
    };
    assert.match(await call(), /APPROVAL_REQUIRED.*codecall approve/s);
    await page.getByRole('link', { name: 'Decide about this call' }).click();
    await page.getByRole('link', { name: /^Approvals 1/ }).waitFor();
    assert.match(await page.locator('.pending').textContent(), /users:list.*Asked by page.*"limit": 2/s);
    await page.getByLabel('Reason').fill('only two of them');
    await views(page, 'approvals', 'light-1280');
    await page.getByRole('button', { name: 'Approve users:list' }).click();
    await page.getByText('No call waits for a decision.').waitFor();
    assert.match(await page.locator('tbody').textContent(), /approved.*users:list.*page.*only two of them/s);
    assert.match(await call(), /ok.*users/s);
    assert.match(await call(), /APPROVAL_REQUIRED/, 'an approval holds for one call');
    await page.goto(`${server.url}/ui/approvals`);
    // A call that waits meanwhile appears, and does not disturb who is writing.
    await page.getByLabel('Reason').fill('not twice');
    const other = await page.context().newPage();
    await other.goto(`${server.url}/ui/tool?name=users:list`);
    await other.getByLabel('limit').fill('3');
    await other.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByText('A call waits.').waitFor();
    assert.equal(await page.locator('.pending').count(), 2);
    assert.equal(await page.locator('.pending').filter({ hasText: '"limit": 2' }).getByLabel('Reason').inputValue(), 'not twice');
    await accessible(page, 'two calls that wait');
    // What somebody else has decided leaves.
    await other.goto(`${server.url}/ui/approvals`);
    await other.locator('.pending').filter({ hasText: '"limit": 3' }).getByRole('button', { name: 'Deny users:list' }).click();
    await page.locator('.pending').filter({ hasText: '"limit": 3' }).waitFor({ state: 'detached' });
    await other.close();
    await page.getByRole('button', { name: 'Deny users:list' }).click();
    await page.getByText('No call waits for a decision.').waitFor();
    assert.match(await call(), /APPROVAL_DENIED.*not twice/s);
    assert.deepEqual(faults, []);
    await server.stop();
  },

  // A script tool is written, checked while it is typed, saved, called, and changed.
  async tools(browser) {
    const tools = folder();
    const server = await serve({ config: { http: { uiEdit: true }, scriptTools: { folder: tools } } });
    const { page, faults } = await open(browser);
    await page.goto(server.link);
    await page.waitForURL(`${server.url}/ui/runs`);
    await page.getByRole('link', { name: 'Script tools' }).click();
    await page.getByLabel('Name of a new tool').fill('greet');
    await page.getByRole('button', { name: 'New tool' }).click();
    const editor = page.locator('#script-text');
    const code = await editor.inputValue();
    await editor.fill(code.replace('return', 'return ('));
    await page.locator('.diagnostics li button').first().waitFor();
    await editor.fill(code.replace('type = "string"', 'type = "sting"'));
    await page.getByText(/sting|schema/).first().waitFor();
    await editor.fill(code);
    await page.locator('.diagnostics .fine').waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.waitForURL(/script-tool\?name=greet/);
    await accessible(page, 'the editor of a tool');
    await editor.fill(code.replace('`Hello', '`Welcome'));
    await page.getByRole('button', { name: 'Check and show changes' }).click();
    assert.match(await page.locator('.diff').textContent(), /-.*Hello.*\+.*Welcome/s);
    await shot(page, 'script-tool');
    // Its examples run, and nothing is saved.
    await page.getByRole('button', { name: 'Test with its examples' }).click();
    assert.match(await page.locator('#test').textContent(), /0 of 1 examples passed.*By name.*"Welcome, Ada", instead of "Hello, Ada"/s);
    await accessible(page, 'a test that fails');
    await editor.fill(code);
    await page.getByRole('button', { name: 'Test with its examples' }).click();
    assert.match(await page.locator('#test').textContent(), /1 of 1 examples passed/);
    await editor.fill(code.replace('`Hello', '`Welcome'));
    await page.getByRole('button', { name: 'Save' }).click();
    await page.waitForURL(/script-tool\?name=greet/);
    await page.goto(`${server.url}/ui/script-tools`);
    for (let at = 0; at < 20 && !(await page.getByRole('link', { name: 'call', exact: true }).count()); at++) {
      await page.waitForTimeout(300);
      await page.reload();
    }
    await accessible(page, 'the script tools');
    await page.waitForTimeout(2_500);
    await page.getByRole('link', { name: 'call', exact: true }).click();
    await page.getByLabel('name').fill('Ada');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    assert.match(await page.locator('#result').textContent(), /Welcome, Ada/);
    assert.deepEqual(faults, []);
    await server.stop();
  },

  // A stored tool has versions; an older one comes back.
  async versions(browser) {
    const server = await serve({ config: { http: { uiEdit: true }, scriptTools: { stored: true } } });
    const { page, faults } = await open(browser);
    await page.goto(server.link);
    await page.waitForURL(`${server.url}/ui/runs`);
    await page.goto(`${server.url}/ui/script-tool?name=greet`);
    const editor = page.locator('#script-text');
    const code = await editor.inputValue();
    const save = async (text) => {
      await editor.fill(text);
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('heading', { name: 'Versions' }).waitFor();
    };
    await save(code);
    await save(code.replace('`Hello', '`Welcome'));
    const versions = page.locator('details', { hasText: /^Version \d/ });
    await page.getByText(/^Version 2, .*page/).waitFor();
    assert.equal(await versions.count(), 2);
    await versions.first().locator('summary').click();
    assert.match(await versions.first().locator('.diff').textContent(), /-.*Hello.*\+.*Welcome/s);
    await accessible(page, 'the versions of a tool');
    await versions.last().locator('summary').click();
    await page.getByRole('link', { name: 'Edit version 1' }).click();
    await page.getByText('This is version 1.').waitFor();
    assert.equal(await editor.inputValue(), code);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/^Version 3, .*page/).waitFor();
    await page.goto(`${server.url}/ui/tool?name=tools:greet`);
    await page.getByLabel('name').fill('Ada');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    assert.match(await page.locator('#result').textContent(), /Hello, Ada/);
    assert.deepEqual(faults, []);
    await server.stop();
  },

  // Text of scripts, tools and clients is text.
  async hostile(browser) {
    const server = await serve();
    await execute(server.url, `// ${HOSTILE}\nconsole.log(${JSON.stringify(HOSTILE)}); throw new Error(${JSON.stringify(HOSTILE)})`);
    await execute(server.url, `return await callTool(${JSON.stringify(HOSTILE)}, { a: ${JSON.stringify(HOSTILE)} })`);
    const { page, faults } = await open(browser);
    await page.goto(server.link);
    await page.waitForURL(`${server.url}/ui/runs`);
    await page.waitForTimeout(1_000);
    await execute(server.url, `// live ${HOSTILE}\nreturn 1`);
    await page.locator('tr.new').first().waitFor();
    assert.match(await page.locator('.runs tbody').textContent(), /<img src=x onerror=/);
    const runs = await page.locator('tbody a').evaluateAll((links) => links.map((link) => link.href));
    const more = ['runs?text=%3Cimg%3E&status=%22%3E%3Cimg%20src=x%3E&tool=%3Cscript%3E', 'tools?q=%3Cimg%20src=x%3E', 'tool?name=%3Cimg%3E', 'charts?range=%3Cimg%3E', 'login?next=javascript:alert(1)'];
    for (const address of [...runs, ...more.map((path) => `${server.url}/ui/${path}`)]) {
      await page.goto(address);
      assert.equal(await page.locator('img, main script, iframe, object').count(), 0, address);
      assert.doesNotMatch(await page.title(), /owned/);
    }
    // The refusals of an unknown tool (404) and an unknown status of runs (400) are written to the console.
    assert.deepEqual(faults.filter((fault) => !/\b40[04]\b/.test(fault)), []);
    await server.stop();
  },

  // Who has no token sees nothing, and no other page can send a form.
  async access(browser) {
    const token = 'token-of-the-operator-0123456789';
    const server = await serve({ config: { http: { token, tokens: [{ name: 'agent', token: 'token-of-an-agent-0123456789', tools: {} }] } } });
    const bearer = { authorization: `Bearer ${token}` };
    await execute(server.url, 'return 1', bearer);
    for (const path of ['runs', 'tools', 'charts', 'script', 'runs/00', 'servers']) {
      for (const headers of [{}, bearer, { authorization: 'Bearer token-of-an-agent-0123456789' }, { cookie: `codecall_${new URL(server.url).port}=00` }]) {
        const response = await fetch(`${server.url}/ui/${path}`, { headers, redirect: 'manual' });
        assert.equal(response.status, 303, path);
        assert.match(response.headers.get('location'), /^\/ui\/login/);
        assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
        assert.equal(response.headers.get('cache-control'), 'no-store');
        assert.equal(response.headers.get('referrer-policy'), 'no-referrer');
        assert.match(response.headers.get('content-security-policy'), /default-src 'none'.*frame-ancestors 'none'/);
      }
    }
    assert.equal((await fetch(`${server.url}/ui/check`, { method: 'POST' })).status, 401);
    const { page, context, faults } = await open(browser);
    // By the form: first with the token of a client.
    await page.goto(`${server.url}/ui/runs?status=ok`);
    await page.getByLabel('Token').fill('token-of-an-agent-0123456789');
    await page.getByRole('button').click();
    assert.match(await page.getByRole('alert').textContent(), /not the token of an operator/);
    faults.splice(0);
    await page.getByLabel('Token').fill(token);
    await page.getByRole('button').click();
    await page.waitForURL(`${server.url}/ui/runs?status=ok`);
    assert.equal(await page.locator('tbody tr').count(), 1);
    const [cookie] = await context.cookies();
    assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, 'Strict', '/ui/']);
    // The address of the start works once.
    assert.equal((await fetch(server.link, { redirect: 'manual' })).status, 200);
    assert.equal((await fetch(server.link, { redirect: 'manual' })).status, 403);
    // A form needs its token, and an origin of its own.
    const headers = { cookie: `${cookie.name}=${cookie.value}`, 'content-type': 'application/x-www-form-urlencoded' };
    const post = (more, body) => fetch(`${server.url}/ui/script`, { method: 'POST', headers: { ...headers, ...more }, body, redirect: 'manual' });
    const csrf = await page.locator('input[name=csrf]').first().inputValue();
    assert.equal((await post({}, 'script=return+1')).status, 403);
    assert.equal((await post({}, `script=return+1&csrf=${'0'.repeat(64)}`)).status, 403);
    assert.equal((await post({ origin: 'https://evil.example' }, `script=return+1&csrf=${csrf}`)).status, 403);
    assert.equal((await post({ origin: 'null', 'sec-fetch-site': 'cross-site' }, `script=return+1&csrf=${csrf}`)).status, 403);
    assert.equal((await post({ origin: server.url, 'sec-fetch-site': 'same-origin' }, `script=return+1&csrf=${csrf}`)).status, 303);
    // A link of another site leads to the page, although the browser does not send the cookie to it.
    await page.goto('about:blank');
    await page.setContent(`<a href="${server.url}/ui/runs?status=ok">the runs</a>`);
    await page.getByRole('link').click();
    await page.waitForURL(`${server.url}/ui/runs?status=ok`);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.waitForURL(`${server.url}/ui/login`);
    assert.equal((await post({}, `script=return+1&csrf=${csrf}`)).status, 401);
    assert.deepEqual(faults, []);
    await server.stop();
  },

  // Everything can be reached and used with keys only.
  async keyboard(browser) {
    const server = await serve();
    await execute(server.url, BROKEN);
    const { page, faults } = await open(browser);
    await page.goto(server.link);
    await page.waitForURL(`${server.url}/ui/runs`);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
    const reach = async (what, most = 60) => {
      for (let at = 0; at < most; at++) {
        await page.keyboard.press('Tab');
        const focused = await page.evaluate(() => {
          const element = document.activeElement;
          const style = getComputedStyle(element);
          return { text: element.id || element.textContent.trim(), seen: style.outlineStyle !== 'none' };
        });
        assert(focused.seen, `the focus is not seen on ${focused.text}`);
        if (what.test(focused.text)) return;
      }
      assert.fail(`${what} is not reached`);
    };
    await reach(/^\/\/ How many users come/);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/ui\/runs\/[0-9a-f]+$/);
    await reach(/^users:get/);
    await page.keyboard.press('Enter');
    assert.equal(await page.locator('.timeline details[open]').count(), 1);
    await reach(/^script-text$/);
    // Tab indents; after Escape it leaves the field.
    await page.keyboard.press('Control+Home');
    await page.keyboard.press('Tab');
    assert.match(await page.locator('#script-text').inputValue(), /^ {2}\/\/ How many/);
    await page.keyboard.press('Control+a');
    await page.keyboard.type('return 6 * 7');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Tab');
    assert.notEqual(await page.evaluate(() => document.activeElement.id), 'script-text');
    await reach(/^Run$/);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => /Result\s*42/.test(document.querySelector('main').textContent));
    assert.deepEqual(faults, []);
    await server.stop();
  },

  // Without JavaScript all works but news and checks.
  async plain(browser) {
    const server = await serve();
    await execute(server.url, BROKEN);
    const { page, faults } = await open(browser, { javaScriptEnabled: false });
    await page.goto(server.link);
    await page.waitForURL(`${server.url}/ui/runs`);
    await page.locator('tbody a').click();
    await page.locator('#script-text').fill(MENDED);
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.waitForURL(/\/ui\/runs\/[0-9a-f]+$/);
    assert.match(await page.locator('main').textContent(), /Result\s*5/);
    assert.deepEqual(faults, []);
    await server.stop();
  },
};

const browser = await launch();
let failed = 0;
for (const [name, walk] of Object.entries(walks)) {
  if (words.length && !words.includes(name)) continue;
  const began = Date.now();
  try {
    await walk(browser);
    console.log(`ok      ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${name}: ${error.stack}`);
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
