// About five megabytes of JSON are written, read and used.
const rows = [];
for (let i = 0; i < 30000; i++) {
  rows.push({
    id: i,
    name: `user ${i}`,
    email: `user${i}@example.com`,
    active: i % 3 === 0,
    score: i / 8,
    tags: ['alpha', 'beta', `t${i % 50}`],
    address: { city: 'Zürich', zip: String(8000 + (i % 100)), lines: ['first "line"', 'second\nline'] },
  });
}
const text = JSON.stringify(rows);
const back = JSON.parse(text);
let sum = 0;
for (const row of back) sum += row.score + row.tags.length + row.address.lines[1].length;
return [text.length, sum];
