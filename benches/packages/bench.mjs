/**
 * What runs cost from JavaScript, beside Node's `vm`, isolated-vm and QuickJS as WebAssembly: `node benches/packages/bench.mjs [SECONDS]`.
 *
 *     node runtime/node/build.mjs --profile release
 *     npm ci --prefix benches/packages
 *     node --expose-gc benches/packages/bench.mjs
 *
 * Each figure is the time of one run, the least of several rounds, on a machine without other work. A run is fresh: it has an
 * environment of its own, compiled from its text. `vm` separates nothing from its host; it is here as the floor.
 */

import assert from "node:assert/strict";
import vm from "node:vm";
import { Toolset, compile, run, runSync } from "@codecall/agentscript";
import { getQuickJS } from "quickjs-emscripten";

const SECONDS = Number(process.argv[2] ?? 1);
const ROUNDS = 5;
const WAITING = 10_000;

const users = Array.from({ length: 10 }, (_, id) => ({ id, name: `user ${id}` }));
const orders = Array.from({ length: 20 }, (_, n) => ({ user: n % 10, total: n * 3 }));
const expected = orders.map(({ user, total }) => `user ${user}: ${total}`).join(", ");

const BODY = `
const names = new Map(users.map((user) => [user.id, user.name]));
return orders.map((order) => names.get(order.user) + ': ' + order.total).join(', ');
`;
const JOIN = `const [users, orders] = await Promise.all([listUsers({}), listOrders({})]);${BODY}`;
/** The same with functions that give JSON at once, for engines whose isolates have no promises of their host. */
const SYNC_JOIN = `(() => { const users = JSON.parse(listUsers()), orders = JSON.parse(listOrders());${BODY} })()`;

/** Microseconds of one run. */
async function microseconds(work) {
  await work();
  let [count, least] = [1, Infinity];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (;;) {
      const began = performance.now();
      for (let n = 0; n < count; n += 1) {
        const pending = work();
        if (pending !== undefined) await pending;
      }
      const used = performance.now() - began;
      if (used >= (SECONDS * 1000) / ROUNDS / 2) {
        least = Math.min(least, used / count);
        break;
      }
      count *= 2;
    }
  }
  return least * 1000;
}

async function agentscript() {
  const tools = new Toolset({ listUsers: () => users, listOrders: () => orders });
  const later = new Toolset({ listUsers: async () => users, listOrders: async () => orders });
  const [one, join] = [compile("1 + 1"), compile(JOIN, { tools })];
  const is = (value, outcome) => assert.equal(outcome.result, value);
  return [
    ["runSync('1 + 1')", () => is(2, runSync("1 + 1"))],
    ["the same, compiled before", () => is(2, one.runSync())],
    ["runSync of a join of two tools", () => is(expected, runSync(JOIN, { tools }))],
    ["the same, compiled before", () => is(expected, join.runSync())],
    ["await run('1 + 1')", async () => is(2, await run("1 + 1"))],
    ["await run of a join of two async tools", async () => is(expected, await run(JOIN, { tools: later }))],
  ];
}

function nodeVm() {
  const tools = { listUsers: () => JSON.stringify(users), listOrders: () => JSON.stringify(orders) };
  return [
    ["vm: 1 + 1", () => assert.equal(vm.runInNewContext("1 + 1", {}), 2)],
    ["vm: a join of two functions", () => assert.equal(vm.runInNewContext(SYNC_JOIN, { ...tools }), expected)],
  ];
}

async function isolatedVm() {
  let ivm;
  try {
    ({ default: ivm } = await import("isolated-vm"));
  } catch (error) {
    console.log(`isolated-vm is skipped: ${error.message.split("\n")[0]}`);
    return [];
  }
  const fresh = (script, functions, value) => {
    const isolate = new ivm.Isolate({ memoryLimit: 64 });
    const context = isolate.createContextSync();
    for (const [name, call] of Object.entries(functions)) context.global.setSync(name, new ivm.Callback(call));
    assert.equal(isolate.compileScriptSync(script).runSync(context, { timeout: 3500 }), value);
    isolate.dispose();
  };
  const tools = { listUsers: () => JSON.stringify(users), listOrders: () => JSON.stringify(orders) };
  return [
    ["isolated-vm: 1 + 1", () => fresh("1 + 1", {}, 2)],
    ["isolated-vm: a join of two functions", () => fresh(SYNC_JOIN, tools, expected)],
  ];
}

async function quickjs() {
  const engine = await getQuickJS();
  const fresh = (script, functions, value) => {
    const context = engine.newContext();
    for (const [name, call] of Object.entries(functions)) {
      context.newFunction(name, () => context.newString(call())).consume((handle) => context.setProp(context.global, name, handle));
    }
    const handle = context.unwrapResult(context.evalCode(script));
    assert.equal(context.dump(handle), value);
    handle.dispose();
    context.dispose();
  };
  const tools = { listUsers: () => JSON.stringify(users), listOrders: () => JSON.stringify(orders) };
  return [
    ["quickjs-emscripten: 1 + 1", () => fresh("1 + 1", {}, 2)],
    ["quickjs-emscripten: a join of two functions", () => fresh(SYNC_JOIN, tools, expected)],
  ];
}

/** Kibibytes of a run that waits for a tool, with its promises. */
async function waiting() {
  const { promise, resolve } = Promise.withResolvers?.() ?? deferred();
  let count = 0;
  const tools = { wait: ({ n }) => ((count += 1), promise.then(() => n)) };
  const limits = { maxDurationMs: 600_000, toolTimeoutMs: 600_000 };
  const script = compile("return await wait({ n: codecallContext.n })", { tools, limits });
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  const runs = Array.from({ length: WAITING }, (_, n) => script.run({ context: { n } }));
  while (count < WAITING) await new Promise((next) => setTimeout(next, 1));
  const used = process.memoryUsage().rss - before;
  resolve();
  const outcomes = await Promise.all(runs);
  assert.equal(outcomes.reduce((sum, { result }) => sum + result, 0), (WAITING * (WAITING - 1)) / 2);
  return used / WAITING / 1024;
}

function deferred() {
  let resolve;
  const promise = new Promise((settle) => (resolve = settle));
  return { promise, resolve };
}

// Before the others, whose freed memory it would use.
const memory = await waiting();
for (const rows of [await agentscript(), nodeVm(), await isolatedVm(), await quickjs()]) {
  for (const [name, work] of rows) console.log(name.padEnd(45), (await microseconds(work)).toFixed(1).padStart(9), "µs");
}
console.log(`${WAITING} runs that wait, each with its promises`.padEnd(45), memory.toFixed(1).padStart(9), "KiB each");
