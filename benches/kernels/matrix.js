// Two matrices are multiplied: arrays of arrays.
const n = 90;
function matrix(seed) {
  const rows = [];
  for (let i = 0; i < n; i++) {
    const row = [];
    for (let j = 0; j < n; j++) row.push(((i * seed + j) % 17) / 4);
    rows.push(row);
  }
  return rows;
}
const a = matrix(3);
const b = matrix(5);
let trace = 0;
const c = [];
for (let i = 0; i < n; i++) {
  const row = [];
  for (let j = 0; j < n; j++) {
    let sum = 0;
    for (let k = 0; k < n; k++) sum += a[i][k] * b[k][j];
    row.push(sum);
  }
  c.push(row);
  trace += row[i];
}
return trace;
