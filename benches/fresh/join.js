const [users, orders] = await Promise.all([
  callTool('users:list', { limit: 50 }),
  callTool('orders:list', { limit: 50, status: 'paid' }),
]);
const byId = new Map(users.map((user) => [user.id, user]));
return orders.map((order) => ({
  order: order.id,
  customer: byId.get(order.userId)?.name ?? 'unknown',
  total: order.amount + order.tax,
}));
