// An array grows by `push` and is read by index.
const items = [];
for (let i = 0; i < 1000000; i++) items.push(i * 2);
let sum = 0;
for (let i = 0; i < items.length; i++) sum += items[i];
return sum;
