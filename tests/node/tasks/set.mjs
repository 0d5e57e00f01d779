// The tasks of ../tasks.mjs. Each has what a person asks for, the servers, and the right answer. Scripts of one task differ in what their
// author knows:
//
// - `reads`: the tools whose results the script takes apart;
// - `now`: the script of an author who knows their shapes, with today's functions; `before`: the same without `parseText`, `now` if absent;
// - `guess`: the script of an author who takes results for data of the obvious shape, where one would;
// - `look`: the script that shows what results look like; `isNamed`: the question names the columns, so that `parseText` needs no look;
// - `patient`: `before` with waiting of its own, for tools that refuse calls when there are too many.

export const WORK = '/tmp/codecall-tasks';
// What reads a list of Python without `parseText`.
const PYTHON = `const read = (text) => JSON.parse(text.replace(/'/g, '"').replace(/\\bNone\\b/g, 'null'));\n`;
// What reads quoted cells without it.
const CSV = `const cells = (line) => [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].slice(0, 3).map(([, cell]) => cell.replace(/^"|"$/g, '').replace(/""/g, '"'));\n`;
const query = (sql) => `await sqlite.read_query({ query: ${JSON.stringify(sql)} })`;
const SPENT = 'SELECT c.name, SUM(o.cents) AS spent FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.id ORDER BY spent DESC LIMIT 2';
const CITIES = 'SELECT city, COUNT(*) AS people FROM customers GROUP BY city ORDER BY people DESC, city';
const MONTHS = 'SELECT month, SUM(cents) AS cents FROM orders GROUP BY month ORDER BY month';
const file = (name) => `(await files.read_text_file({ path: '${WORK}/${name}' })).content`;
const ZONES = `const zones = { Ada: 'Asia/Tokyo', Bruno: 'America/Bogota', Chen: 'Asia/Kolkata' };
const local = await parallel(Object.entries(zones), async ([name, target_timezone]) => {
  const { target } = await time.convert_time({ source_timezone: 'UTC', time: '09:00', target_timezone });
  return [name, target.datetime.slice(11, 16)];
});
return Object.fromEntries(local);`;

// What the shop has: services/shop.py makes the same.
const orders = Array.from({ length: 30 }, (_, n) => ({ customer: ['Ada', 'Bruno', 'Chen', 'Dana'][(n + 1) % 4], status: ['paid', 'open', 'paid'][(n + 1) % 3], cents: 1000 + (n + 1) * 250 }));
const sum = (list) => list.reduce((all, { cents }) => all + cents, 0);

export const TASKS = [
  {
    title: 'Best customers of a database', servers: ['sqlite'], reads: ['sqlite:read_query'],
    ask: 'Which two customers have spent the most, and how much, in euros?',
    answer: { Ada: 90, Dana: 82.5 },
    guess: `const rows = ${query(SPENT)};\nreturn Object.fromEntries(rows.map(({ name, spent }) => [name, spent / 100]));`,
    before: `${PYTHON}const rows = read(${query(SPENT)});\nreturn Object.fromEntries(rows.map(({ name, spent }) => [name, spent / 100]));`,
    now: `const rows = parseText(${query(SPENT)}).data;\nreturn Object.fromEntries(rows.map(({ name, spent }) => [name, spent / 100]));`,
  },
  {
    title: 'Values that are missing', servers: ['sqlite'], reads: ['sqlite:read_query'],
    ask: 'How many customers does each city have? Customers without a city are a group of their own.',
    answer: { Lisbon: 2, none: 1, Porto: 1 },
    guess: `const rows = ${query(CITIES)};\nreturn Object.fromEntries(rows.map(({ city, people }) => [city ?? 'none', people]));`,
    before: `${PYTHON}const rows = read(${query(CITIES)});\nreturn Object.fromEntries(rows.map(({ city, people }) => [city ?? 'none', people]));`,
    now: `const rows = parseText(${query(CITIES)}).data;\nreturn Object.fromEntries(rows.map(({ city, people }) => [city ?? 'none', people]));`,
  },
  {
    title: 'Tables of a database', servers: ['sqlite'], reads: ['sqlite:list_tables', 'sqlite:describe_table'],
    ask: 'Which tables has the database, and which columns?',
    answer: { customers: ['id', 'name', 'city', 'note'], orders: ['id', 'customer', 'cents', 'month'] },
    look: `const tables = await sqlite.list_tables({});\nreturn [tables, await sqlite.describe_table({ table_name: 'orders' })];`,
    before: `const names = (text) => [...text.matchAll(/'name': '(\\w+)'/g)].map(([, name]) => name);
const tables = names(await sqlite.list_tables({}));
return Object.fromEntries(await parallel(tables, async (table_name) => [table_name, names(await sqlite.describe_table({ table_name }))]));`,
    now: `const tables = parseText(await sqlite.list_tables({})).data;
return Object.fromEntries(await parallel(tables, async ({ name }) => [name, parseText(await sqlite.describe_table({ table_name: name })).data.map((column) => column.name)]));`,
  },
  {
    title: 'Quotes in texts of a database', servers: ['sqlite'], reads: ['sqlite:read_query'],
    ask: 'What are the notes on customers? Give them by name.',
    answer: { Ada: "Doesn't call back", Bruno: 'Said "soon"', Chen: null, Dana: null },
    guess: `const rows = ${query('SELECT name, note FROM customers')};\nreturn Object.fromEntries(rows.map(({ name, note }) => [name, note]));`,
    look: `return ${query('SELECT name, note FROM customers')};`,
    // The line for Python's lists that errors recommended does not read these.
    before: [
      `${PYTHON}const rows = read(${query('SELECT name, note FROM customers')});\nreturn Object.fromEntries(rows.map(({ name, note }) => [name, note]));`,
      `const text = ${query("SELECT json_group_object(name, note) AS notes FROM customers")};\nreturn JSON.parse(text.slice(text.indexOf(': ') + 3, -3).replace(/\\\\'/g, "'").replace(/\\\\\\\\/g, '\\\\'));`,
    ],
    now: `const rows = parseText(${query('SELECT name, note FROM customers')}).data;\nreturn Object.fromEntries(rows.map(({ name, note }) => [name, note]));`,
  },
  {
    title: 'A report from database to file', servers: ['sqlite', 'files'], reads: ['sqlite:read_query'],
    ask: `Write ${WORK}/months.csv with the sales of each month in euros. How many months are there?`,
    answer: 3,
    guess: `const rows = ${query(MONTHS)};
await files.write_file({ path: '${WORK}/months.csv', content: rows.map(({ month, cents }) => [month, cents / 100].join()).join('\\n') });\nreturn rows.length;`,
    before: `${PYTHON}const rows = read(${query(MONTHS)});
await files.write_file({ path: '${WORK}/months.csv', content: rows.map(({ month, cents }) => [month, cents / 100].join()).join('\\n') });\nreturn rows.length;`,
    now: `const rows = parseText(${query(MONTHS)}).data;
await files.write_file({ path: '${WORK}/months.csv', content: rows.map(({ month, cents }) => [month, cents / 100].join()).join('\\n') });\nreturn rows.length;`,
  },
  {
    title: 'Commits of each author', servers: ['git'], reads: ['git:git_log'],
    ask: `How many commits in ${WORK}/repo are by each author?`,
    answer: { Ada: 4, Bruno: 2 },
    look: `return await git.git_log({ repo_path: '${WORK}/repo', max_count: 2 });`,
    before: `const log = await git.git_log({ repo_path: '${WORK}/repo', max_count: 50 });
const commits = {};\nfor (const [, name] of log.matchAll(/^Author: (.+)$/gm)) commits[name] = (commits[name] ?? 0) + 1;\nreturn commits;`,
  },
  {
    title: 'The changes of a commit', servers: ['git'], reads: ['git:git_show'],
    ask: `Which files did the last commit in ${WORK}/repo change?`,
    answer: ['server.txt'],
    look: `return await git.git_show({ repo_path: '${WORK}/repo', revision: 'HEAD' });`,
    now: `const text = await git.git_show({ repo_path: '${WORK}/repo', revision: 'HEAD' });\nreturn [...text.matchAll(/^\\+\\+\\+ (?:b\\/)?(.+)$/gm)].map(([, path]) => path);`,
  },
  {
    title: 'Files that are not committed', servers: ['git'], reads: ['git:git_status'],
    ask: `Which files in ${WORK}/repo are new?`,
    answer: ['notes.txt'],
    look: `return await git.git_status({ repo_path: '${WORK}/repo' });`,
    now: `const text = await git.git_status({ repo_path: '${WORK}/repo' });\nreturn [...text.split('Untracked files:')[1].matchAll(/^\\t(.+)$/gm)].map(([, path]) => path);`,
  },
  {
    title: 'A file of CSV', servers: ['files'], reads: [], isNamed: true, forms: true,
    ask: `Add up the amounts in ${WORK}/sales.csv by region. Its columns are region, seller and amount.`,
    answer: { north: 1900, south: 750 },
    look: `return ${file('sales.csv')}.slice(0, 500);`,
    before: `${CSV}const sums = {};\nfor (const line of ${file('sales.csv')}.trim().split('\\n').slice(1)) {\n  const [region, , amount] = cells(line);\n  sums[region] = (sums[region] ?? 0) + Number(amount);\n}\nreturn sums;`,
    now: `const sums = {};\nfor (const { region, amount } of parseText(${file('sales.csv')}).data) sums[region] = (sums[region] ?? 0) + Number(amount);\nreturn sums;`,
  },
  {
    title: 'A file of JSON lines', servers: ['files'], reads: [],
    ask: `How many errors has each service in ${WORK}/app.jsonl? A line has service and level.`,
    answer: { api: 2, web: 1 },
    before: `const counts = {};\nfor (const line of ${file('app.jsonl')}.trim().split('\\n')) {\n  const { service, level } = JSON.parse(line);\n  if (level === 'error') counts[service] = (counts[service] ?? 0) + 1;\n}\nreturn counts;`,
    now: `const counts = {};\nfor (const { service, level } of parseText(${file('app.jsonl')}).data) if (level === 'error') counts[service] = (counts[service] ?? 0) + 1;\nreturn counts;`,
  },
  {
    title: 'A table of Markdown', servers: ['files'], reads: [], isNamed: true, forms: true,
    ask: `Who is on duty in March, by the table of ${WORK}/ROTA.md with the columns Month and Person?`,
    answer: 'Chen',
    look: `return ${file('ROTA.md')};`,
    before: `const rows = ${file('ROTA.md')}.split('\\n').filter((line) => line.startsWith('|')).map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim()));\nreturn rows.find(([month]) => month === 'March')[1];`,
    now: `return parseText(${file('ROTA.md')}).data.find(({ Month }) => Month === 'March').Person;`,
  },
  {
    title: 'An aligned table', servers: ['files'], reads: [], isNamed: true, forms: true,
    ask: `Which mounts in ${WORK}/disks.txt, the output of df with Mounted and Use%, are more than 80 % full?`,
    answer: ['/var', '/mnt/old backups'],
    look: `return ${file('disks.txt')};`,
    before: `return ${file('disks.txt')}.trim().split('\\n').slice(1).map((line) => line.match(/(\\d+)%\\s+(.+)$/)).filter(([, used]) => Number(used) > 80).map(([, , mount]) => mount.trim());`,
    now: `return parseText(${file('disks.txt')}).data.filter((row) => parseInt(row['Use%']) > 80).map(({ Mounted }) => Mounted);`,
  },
  {
    title: 'A graph', servers: ['memory'], reads: ['memory:read_graph'],
    ask: 'Whom does Ada know, by the knowledge graph?',
    answer: ['Bruno', 'Dana'],
    now: `const { relations } = await memory.read_graph({});\nreturn relations.filter(({ from, relationType }) => from === 'Ada' && relationType === 'knows').map(({ to }) => to);`,
  },
  {
    title: 'Times in zones', servers: ['time'], reads: ['time:convert_time'],
    ask: 'What is the local time of Ada in Tokyo, Bruno in Bogota and Chen in Kolkata at 09:00 UTC?',
    answer: { Ada: '18:00', Bruno: '04:00', Chen: '14:30' },
    look: `return await time.convert_time({ source_timezone: 'UTC', time: '09:00', target_timezone: 'Asia/Tokyo' });`,
    now: ZONES,
  },
  {
    title: 'All pages of a list', servers: ['shop'], reads: ['shop:list_orders'],
    ask: 'How much have paid orders brought in, in cents?',
    answer: sum(orders.filter(({ status }) => status === 'paid')),
    now: `let cents = 0;\nlet cursor;\ndo {\n  const page = await shop.list_orders(cursor ? { cursor } : {});\n  for (const order of page.orders) if (order.status === 'paid') cents += order.cents;\n  cursor = page.next;\n} while (cursor);\nreturn cents;`,
  },
  {
    title: 'A rate limit', servers: ['shop'], reads: ['shop:get_price'],
    ask: 'What do the products 1 to 12 cost together, in cents?',
    answer: 125 * 78,
    now: `const prices = await parallel(Array.from({ length: 12 }, (_, n) => n + 1), (id) => shop.get_price({ id }));\nreturn prices.reduce((sum, { cents }) => sum + cents, 0);`,
    patient: `let sum = 0;\nfor (let id = 1; id <= 12; ) {\n  try {\n    sum += (await shop.get_price({ id })).cents;\n    id += 1;\n  } catch (error) {\n    if (error.details?.status !== 429) throw error;\n    await sleep(1100);\n  }\n}\nreturn sum;`,
  },
  {
    title: 'Odd money', servers: ['shop'], reads: ['shop:list_invoices'],
    ask: 'What is the sum of all invoices, in euros?',
    answer: 3348.75,
    look: `const seen = await shop.list_invoices({});\nreturn { keys: Object.keys(seen), first: Object.values(seen)[0].slice?.(0, 2) };`,
    now: `const { invoices } = await shop.list_invoices({});\nreturn invoices.reduce((sum, { amount }) => sum + Number(amount.replace(/[^\\d,]/g, '').replace(',', '.')), 0);`,
    // The shape has no values: the notation of the money is seen only in the answer.
    naive: `const { invoices } = await shop.list_invoices({});\nreturn invoices.reduce((sum, { amount }) => sum + Number(amount), 0);`,
  },
  {
    title: 'Odd dates', servers: ['shop'], reads: ['shop:list_shipments'],
    ask: 'Which shipments arrived after the day when they were due?',
    answer: [2, 4],
    now: `const shipments = await shop.list_shipments({});\nreturn shipments.filter(({ due, arrived }) => {\n  const [day, month, year] = due.split('.').map(Number);\n  return arrived * 1000 >= Date.UTC(year, month - 1, day + 1);\n}).map(({ id }) => id);`,
  },
  {
    title: 'A response without a schema', servers: ['shop'], reads: ['shop:list_stock'],
    ask: 'How many pieces of product 1 are left in all warehouses?',
    answer: 7,
    look: 'return await shop.list_stock({});',
    now: `const { warehouses } = await shop.list_stock({});\nreturn Object.values(warehouses).flat().filter(({ product }) => product === 1).reduce((sum, { left }) => sum + left, 0);`,
  },
  {
    title: 'Three servers', servers: ['sqlite', 'shop', 'memory'], reads: ['sqlite:read_query', 'shop:export_sales'],
    ask: 'Remember as entities of the type seller who has sold more than 400 by the export of the shop, and say who of them is also a customer in the database.',
    answer: { sellers: ['Lee, Ann', 'O"Neil, Pat', 'Cara'], customers: [] },
    look: `return [await shop.export_sales({}), ${query('SELECT name FROM customers')}];`,
    before: `${PYTHON}${CSV}const rows = (await shop.export_sales({})).trim().split(/\\r?\\n/).slice(1).map(cells);
const sellers = rows.filter(([, , amount]) => Number(amount) > 400).map(([, seller]) => seller);
await memory.create_entities({ entities: sellers.map((name) => ({ name, entityType: 'seller', observations: [] })) });
const names = read(${query('SELECT name FROM customers')}).map(({ name }) => name);\nreturn { sellers, customers: sellers.filter((name) => names.includes(name)) };`,
    now: `const sellers = parseText(await shop.export_sales({})).data.filter(({ amount }) => Number(amount) > 400).map(({ seller }) => seller);
await memory.create_entities({ entities: sellers.map((name) => ({ name, entityType: 'seller', observations: [] })) });
const names = parseText(${query('SELECT name FROM customers')}).data.map(({ name }) => name);\nreturn { sellers, customers: sellers.filter((name) => names.includes(name)) };`,
  },
];
