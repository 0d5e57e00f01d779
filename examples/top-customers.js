// Who buys most? Pages through all orders, adds them up by customer, looks up the names.
//
//   codecall run examples/top-customers.js --demo
//   codecall run examples/top-customers.js --demo --context '{"top": 3, "from": "2026-06-01"}'
//
// 250 orders pass through the script; a few lines come back.

const { top = 5, from = '2026-01-01' } = codecallContext;

async function allOrders(filter) {
  const orders = [];
  let cursor;
  // A bounded loop: the default preset has no `while`, and no shop has more than 50 pages here.
  for (let page = 0; page < 50; page++) {
    const answer = await callTool('orders:list', { ...filter, limit: 100, cursor });
    orders.push(...answer.orders);
    if (answer.nextCursor === null) break;
    cursor = answer.nextCursor;
  }
  return orders;
}

const euros = (cents) => `€${(cents / 100).toFixed(2)}`;

const orders = (await allOrders({ from })).filter((order) => order.status !== 'cancelled');

const byUser = new Map();
for (const { userId, totalCents } of orders) {
  const sum = byUser.get(userId) ?? { userId, orders: 0, totalCents: 0 };
  sum.orders += 1;
  sum.totalCents += totalCents;
  byUser.set(userId, sum);
}

const revenue = orders.reduce((sum, order) => sum + order.totalCents, 0);
const best = [...byUser.values()].sort((a, b) => b.totalCents - a.totalCents).slice(0, top);
const users = await parallel(best.map(({ userId }) => () => callTool('users:get', { id: userId })));

return {
  from,
  orders: orders.length,
  revenue: euros(revenue),
  top: best.map(({ orders, totalCents }, rank) => {
    const { name, city, country } = users[rank];
    const share = ((100 * totalCents) / revenue).toFixed(1);
    return `${rank + 1}. ${name} (${city}, ${country}): ${orders} orders, ${euros(totalCents)}, ${share}%`;
  }),
};
