// A loop that ends when the numbers say so.
let turns = 0;
for (let i = 1; i < 30000; i++) {
  let n = i;
  while (n !== 1) {
    if (n % 2 === 0) n = n / 2;
    else n = 3 * n + 1;
    turns++;
  }
}
return turns;
