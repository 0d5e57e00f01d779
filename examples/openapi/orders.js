const totals = {};
for (let page = 1; ; page += 1) {
  const orders = await shop.listOrders({ page });
  if (orders.length === 0) break;
  for (const { customer, total } of orders) totals[customer] = (totals[customer] ?? 0) + total;
}
const missing = await callTool('shop:getOrder', { id: 7 }, { throwOnError: false });
return { totals, missing: missing.error.message };
