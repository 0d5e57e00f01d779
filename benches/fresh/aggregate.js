// Revenue by region and by customer, from one page of orders.
const orders = await callTool('orders:list', { limit: 500 });

const euros = (cents) => `${(cents / 100).toFixed(2)} EUR`;
const revenue = { total: 0, tax: 0 };
const regions = {};
const customers = new Map();

for (const order of orders) {
  if (order.status === 'cancelled') continue;
  const { userId, region, amount, tax = 0 } = order;
  revenue.total += amount;
  revenue.tax += tax;

  const group = (regions[region] ??= { orders: 0, cents: 0, largest: 0 });
  group.orders++;
  group.cents += amount;
  group.largest = Math.max(group.largest, amount);

  const customer = customers.get(userId) ?? { userId, cents: 0, days: new Set() };
  customer.cents += amount;
  customer.days.add(order.created.slice(0, 10));
  customers.set(userId, customer);
}

const top = [...customers.values()]
  .sort((a, b) => b.cents - a.cents || a.userId.localeCompare(b.userId))
  .slice(0, 10)
  .map(({ userId, cents, days }, place) => `${place + 1}. ${userId}: ${euros(cents)} on ${days.size} days`);

const byRegion = Object.entries(regions)
  .sort(([, a], [, b]) => b.cents - a.cents)
  .map(([name, { orders: count, cents, largest }]) => ({
    region: name.toUpperCase(),
    average: euros(cents / count),
    largest: euros(largest),
    share: `${Math.round((cents / revenue.total) * 100)} %`,
  }));

return { revenue: euros(revenue.total), tax: euros(revenue.tax), byRegion, top: top.join('\n') };
