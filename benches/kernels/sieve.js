// Primes by the sieve of Eratosthenes.
const n = 400000;
const prime = [];
for (let i = 0; i <= n; i++) prime.push(true);
let count = 0;
for (let i = 2; i <= n; i++) {
  if (prime[i]) {
    count++;
    for (let j = i * 2; j <= n; j += i) prime[j] = false;
  }
}
return count;
