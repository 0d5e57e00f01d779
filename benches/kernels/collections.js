// Counting in a Map, a Set and a plain object.
const counts = new Map();
const seen = new Set();
const groups = {};
for (let i = 0; i < 200000; i++) {
  const key = 'k' + (i % 500);
  counts.set(key, (counts.get(key) ?? 0) + 1);
  seen.add(i % 1000);
  groups[key] = (groups[key] || 0) + 1;
}
let sum = 0;
for (const [key, count] of counts) sum += count + groups[key];
return [sum, seen.size, Object.keys(groups).length];
