// A hundred thousand awaits, of async functions and of values.
async function double(i) {
  return i * 2;
}
let sum = 0;
for (let i = 0; i < 50000; i++) sum += await double(i);
for (let i = 0; i < 50000; i++) sum += await i;
return sum;
