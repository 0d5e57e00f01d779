// Strings are built piece by piece, by templates, and read letter by letter.
let text = '';
for (let i = 0; i < 100000; i++) text += 'ab' + i;
let lines = '';
for (let i = 0; i < 50000; i++) lines += `${i}: ${i % 7 === 0 ? 'seven' : 'other'}\n`;
let hash = 0;
for (let i = 0; i < 100000; i++) hash = (hash * 31 + text.charCodeAt(i)) % 1000003;
return [text.length, lines.length, hash];
