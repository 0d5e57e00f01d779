// Nested loops over arithmetic.
let sum = 0;
for (let i = 0; i < 3000; i++) {
  for (let j = 0; j < 1000; j++) {
    sum = (sum + i * j + (j & 7)) % 1000007;
  }
}
return sum;
