// Patterns, defaults, rest and spread.
let sum = 0;
for (let i = 0; i < 100000; i++) {
  const record = { id: i, name: 'n', extra: { depth: 2 } };
  const { id, extra: { depth = 1 }, missing = 5 } = record;
  const [first, second = 7, ...others] = [id, undefined, depth, missing];
  const merged = { ...record, depth, total: first + second };
  const list = [...others, merged.total];
  sum += list.length + merged.total + Math.max(...list) + depth;
}
return sum;
