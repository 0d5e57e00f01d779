// Who owes money, and can it be collected? Shows both ways to deal with a tool that fails.
//
//   codecall run examples/overdue-invoices.js --demo
//   codecall run examples/overdue-invoices.js --demo --context '{"charge": 3}'
//
// With `charge` the largest invoices are charged; nothing is charged without it.

const { charge = 0 } = codecallContext;

const { invoices, total } = await callTool('billing:listInvoices', { status: 'overdue', limit: 100 });

// A failure as an exception: the ledger is down, and the rest does not need it.
let ledger;
try {
  const { sent } = await callTool('billing:syncLedger', {});
  ledger = `${sent} payments sent`;
} catch (error) {
  if (error.code !== 'LEDGER_UNAVAILABLE') throw error;
  ledger = `skipped, retry in ${error.details.retryAfterSeconds} seconds`;
  console.warn(`${error.toolName}: ${error.message}`);
}

// A failure as a value: one declined card must not stop the others.
const largest = invoices.toSorted((a, b) => b.dueCents - a.dueCents);
const attempts = [];
for (const { id, dueCents } of largest.slice(0, charge)) {
  const { success, error } = await callTool('billing:charge', { invoiceId: id }, { throwOnError: false });
  attempts.push(success ? { id, collectedCents: dueCents } : { id, failed: error.code });
}

const byMonth = Object.groupBy(invoices, ({ dueOn }) => dueOn.slice(0, 7));
const sum = (list) => list.reduce((cents, { dueCents }) => cents + dueCents, 0);

return {
  overdue: total,
  dueCents: sum(invoices),
  byMonth: Object.fromEntries(
    Object.keys(byMonth)
      .sort()
      .map((month) => [month, { invoices: byMonth[month].length, dueCents: sum(byMonth[month]) }]),
  ),
  largest: largest.slice(0, 3).map(({ id, userId, dueOn, dueCents }) => ({ id, userId, dueOn, dueCents })),
  attempts,
  ledger,
};
