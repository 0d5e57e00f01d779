// Values and errors are thrown and caught, in place and from a function.
function check(i) {
  if (i % 3 === 0) throw new Error('no ' + i);
  return i;
}
let sum = 0;
for (let i = 0; i < 100000; i++) {
  try {
    if (i % 2 === 0) throw i;
    sum++;
  } catch (thrown) {
    sum += 2;
  }
}
for (let i = 0; i < 50000; i++) {
  try {
    sum += check(i);
  } catch (error) {
    sum += error.message.length;
  } finally {
    sum++;
  }
}
return sum;
