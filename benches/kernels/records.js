// Records as tools give them are walked over with `for…of`, grouped and summed up.
const rows = [];
for (let i = 0; i < 100000; i++) rows.push({ id: i, team: i % 7, value: i % 13 });
const totals = {};
let third = 0;
for (const row of rows) {
  if (row.team === 3) third += row.value;
  totals[row.team] = (totals[row.team] ?? 0) + row.value;
}
return [third, Object.entries(totals)];
