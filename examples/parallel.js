// Many calls at once: how `parallel` keeps order, limits what is under way, and reports failures.
//
//   codecall run examples/parallel.js --demo

// Different tools side by side: the report takes 1.5 seconds, the others wait for nothing.
const [report, pending, { total: admins }] = await parallel([
  () => callTool('billing:report', { from: '2026-04' }),
  () => callTool('orders:list', { status: 'pending', limit: 5 }),
  () => callTool('users:list', { role: 'admin' }),
]);

// The same tool for a list: results come in the order of the list, three calls at a time.
const buyers = [...new Set(pending.orders.map((order) => order.userId))];
const profiles = await parallel(
  buyers.map((id) => () => callTool('users:getProfile', { id })),
  { maxConcurrency: 3 },
);

// All are let finish before the failures are told together.
let failures = [];
try {
  await parallel(['usr_001', 'usr_404', 'nobody'], (id) => callTool('users:get', { id }));
} catch (error) {
  failures = error.message.split('\n');
}

// Promise.allSettled does it too, one outcome each.
const settled = await Promise.allSettled(['KEY-01', 'KEY-99'].map((sku) => callTool('inventory:get', { sku })));

return {
  admins,
  quarter: report.months.map(({ month, invoicedCents }) => `${month}: ${invoicedCents / 100}`),
  overdueCents: report.overdueCents,
  waiting: profiles.map(({ name, orderCount }) => `${name} (${orderCount} orders so far)`),
  failures,
  settled: settled.map(({ status, value, reason }) => (status === 'fulfilled' ? value.name : reason.code)),
};
