// `split`, `join`, `replace` and their kin.
const row = 'id;name;city;street;number;amount;currency;note';
let total = 0;
for (let i = 0; i < 20000; i++) {
  const cells = row.split(';');
  cells[1] = cells[1].toUpperCase().padEnd(8, '.');
  const line = cells.join(', ').replace('city', 'town').replaceAll('e', 'E');
  total += line.length + line.indexOf('note') + line.slice(3, 9).trim().length;
  if (line.startsWith('id') && line.includes('nOtE')) total++;
}
return total;
