/*---
description = "A report of the orders of a period: their number, their total and the largest ones"
tools = ["orders:list"]
tags = ["sales"]

[annotations]
readOnlyHint = true

[[examples]]
description = "The two largest orders that are not cancelled"
params = { from = "2026-05-01", top = 2 }
data = { from = "2026-05-01", to = "today", orders = 3, total = "€60.00", largest = ["ord_3: €30.00", "ord_2: €20.00"] }

[[examples.answers]]
tool = "orders:list"
input = { from = "2026-05-01", limit = 100 }
output = { orders = [{ id = "ord_1", totalCents = 1000, status = "paid" }, { id = "ord_2", totalCents = 2000, status = "paid" }, { id = "ord_3", totalCents = 3000, status = "shipped" }, { id = "ord_4", totalCents = 9000, status = "cancelled" }] }

[[examples]]
description = "A period that ends before it begins"
params = { from = "2026-05-01", to = "2026-04-01" }
error = "'to' (2026-04-01) is before 'from' (2026-05-01)"
---*/

type Status = 'pending' | 'paid' | 'shipped' | 'delivered' | 'cancelled';

interface Params {
  /** The first day of the period
   * @pattern ^\d{4}-\d{2}-\d{2}$ */
  from: string;
  /** The last day; without it, the period ends today
   * @pattern ^\d{4}-\d{2}-\d{2}$ */
  to?: string;
  /** How many of the largest orders are listed
   * @integer
   * @minimum 0
   * @maximum 20
   * @default 3 */
  top?: number;
  /** Orders with these states do not count
   * @default ["cancelled"] */
  without?: Status[];
  /** How amounts are written */
  format?: {
    /** @default "€" */
    currency?: string;
    /** @integer
     * @default 2 */
    digits?: number;
  };
}

async function execute(params: Params, config: Record<string, string>) {
  // Defaults of the schema are there already; those of objects that may be missing are not.
  const { from, to, top, without, format: { currency = '€', digits = 2 } = {} } = params;
  if (to !== undefined && to < from) {
    return { success: false, error: `'to' (${to}) is before 'from' (${from})` };
  }
  const { orders } = await callTool('orders:list', { from, ...(to && { to }), limit: 100 });
  const counted = orders.filter((order) => !without.includes(order.status));
  const amount = (cents: number) => `${currency}${(cents / 100).toFixed(digits)}`;
  const largest = counted.toSorted((a, b) => b.totalCents - a.totalCents).slice(0, top);
  return {
    success: true,
    data: {
      from,
      to: to ?? 'today',
      orders: counted.length,
      total: amount(counted.reduce((sum, order) => sum + order.totalCents, 0)),
      largest: largest.map((order) => `${order.id}: ${amount(order.totalCents)}`),
    },
  };
}
