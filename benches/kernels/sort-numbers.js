// Numbers are sorted, by a comparator.
let seed = 42;
const items = [];
for (let i = 0; i < 100000; i++) {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  items.push(seed);
}
items.sort((a, b) => a - b);
let check = 0;
for (let i = 0; i < items.length; i += 1000) check = (check * 31 + items[i]) % 1000000007;
return check;
