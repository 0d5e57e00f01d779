// A journal of this script goes through every way to replay one.
const began = Date.now();
const first = await callTool('ledger:add', { n: 1, text: 'ä "quoted"', big: 1e21, list: [1.5, -0, null] });
const both = await Promise.allSettled([
  callTool('ledger:add', { n: 2 }),
  callTool('ledger:add', { n: 3, attempt: 0 }),
]);
await sleep(20);
const [refusal] = both.filter((end) => end.status === 'rejected').map((end) => end.reason);
const last = await callTool('ledger:add', { n: first.n + 3 });
console.log('last', last.n);
return { first, second: both[0].value, refusal: [refusal.code, refusal.message.includes('"attempt":0')], last: last.n, slept: Date.now() - began >= 20 };
