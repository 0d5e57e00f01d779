// `map`, `filter` and `reduce` with closures.
const items = [];
for (let i = 0; i < 100000; i++) items.push(i);
const factor = 3;
let sum = 0;
for (let round = 0; round < 5; round++) {
  sum += items
    .map((x) => x * factor)
    .filter((x) => x % 2 === 0)
    .reduce((total, x) => total + x, 0);
}
return sum;
