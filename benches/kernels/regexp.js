// Patterns over fifty thousand lines.
const lines = [];
for (let i = 0; i < 50000; i++) {
  lines.push(`2026-0${(i % 9) + 1}-1${i % 10} ${i % 4 === 0 ? 'ERROR' : 'INFO'} [worker-${i % 16}] request ${i} took ${i % 250}ms`);
}
let errors = 0;
let time = 0;
let parts = 0;
for (const line of lines) {
  if (/\bERROR\b/.test(line)) errors++;
  const took = line.match(/took (\d+)ms$/);
  if (took) time += Number(took[1]);
  const { groups } = /^(?<date>\d{4}-\d{2}-\d{2}) (?<level>[A-Z]+)/.exec(line);
  parts += groups.date.length + groups.level.length;
}
const masked = lines.slice(0, 10000).map((line) => line.replace(/\d+/g, '#')).join('\n').length;
return [errors, time, parts, masked];
