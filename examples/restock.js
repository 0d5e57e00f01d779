// What to reorder, and from whom? Joins scarce products with what was sold lately, puts the most
// urgent first, groups them into one order sheet a supplier.
//
//   codecall run examples/restock.js --demo
//   codecall run examples/restock.js --demo --context '{"category": "furniture", "book": true}'
//
// With `book` the goods are booked in at once, as if they had been delivered.

const { category, book = false, since = '2026-06-10' } = codecallContext;

const [{ products }, { orders }] = await Promise.all([
  callTool('inventory:lowStock', { category }),
  callTool('orders:list', { from: since, limit: 50 }),
]);

// Lines are in the single orders only: fetch these, a few at a time.
const details = await parallel(
  orders.filter(({ status }) => status !== 'cancelled').map(({ id }) => () => callTool('orders:get', { id })),
  { maxConcurrency: 8 },
);

const sold = {};
for (const { lines } of details) {
  for (const { sku, quantity } of lines) {
    sold[sku] = (sold[sku] ?? 0) + quantity;
  }
}

const urgency = ({ sku, stock }) => (sold[sku] ?? 0) - stock;
const sheets = {};
for (const product of products.toSorted((a, b) => urgency(b) - urgency(a))) {
  const { sku, name, stock, supplier, priceCents, suggestedQuantity } = product;
  // What sells fast is ordered for twice as long.
  const quantity = suggestedQuantity + (sold[sku] ?? 0);
  const sheet = (sheets[supplier] ??= { valueCents: 0, lines: [] });
  sheet.valueCents += quantity * priceCents;
  sheet.lines.push({ sku, name, stock, sold: sold[sku] ?? 0, order: quantity });
}

let booked = 0;
if (book) {
  const lines = Object.values(sheets).flatMap((sheet) => sheet.lines);
  const adjusted = await parallel(lines, (line) =>
    callTool('inventory:adjust', { sku: line.sku, change: line.order, reason: 'delivery' }),
  );
  booked = adjusted.length;
  console.log(`booked in ${booked} products, such as ${adjusted[0]?.sku}: ${adjusted[0]?.stock} in stock now`);
}

return { soldSince: since, scarce: products.length, booked, sheets };
