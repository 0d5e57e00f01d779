// Records are sorted by two keys, and by text.
let seed = 7;
const rows = [];
for (let i = 0; i < 20000; i++) {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  rows.push({ id: i, team: 't' + (seed % 10), score: seed % 1000, name: 'user ' + (seed % 5000) });
}
const byScore = [...rows].sort((a, b) => b.score - a.score || a.id - b.id);
const byName = [...rows].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
return [byScore.slice(0, 5).map((row) => row.id), byName.slice(0, 5).map((row) => row.id)];
