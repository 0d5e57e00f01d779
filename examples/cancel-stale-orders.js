// Orders that were never paid: cancels them when told so, and tells what changes.
//
//   codecall run examples/cancel-stale-orders.js --demo
//   codecall run examples/cancel-stale-orders.js --demo --context '{"before": "2026-06-27", "dryRun": false}'
//
// A script with effects is best run dry first: `dryRun` is on unless the context says otherwise.

const { before = '2026-06-25', dryRun = true } = codecallContext;

// Apps are namespaces too: orders.list(…) is callTool('orders:list', …).
const pending = await orders.list({ status: 'pending', to: before, limit: 100 });
const stale = pending.orders.filter(({ createdAt }) => createdAt < before);

const results = [];
for (const { id, userId, createdAt, totalCents } of stale) {
  const { name } = await users.get({ id: userId });
  const row = { id, name, placed: createdAt.slice(0, 10), totalCents };
  if (!dryRun) {
    const { success, data, error } = await callTool('orders:cancel', { id }, { throwOnError: false });
    row.outcome = success ? data.order.status : error.message;
  }
  results.push(row);
}

const freed = results.reduce((cents, row) => cents + row.totalCents, 0);
return { dryRun, before, stale: results.length, worth: `€${(freed / 100).toFixed(2)}`, orders: results };
