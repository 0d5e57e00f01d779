// A counter in a closure, and many small ones.
function counter() {
  let count = 0;
  return () => {
    count = count + 1;
    return count;
  };
}
const next = counter();
let sum = 0;
for (let i = 0; i < 500000; i++) sum += next();
for (let i = 0; i < 50000; i++) {
  const other = counter();
  other();
  sum += other();
}
return sum;
