// Writes docs/reports/cost.md from the results that run.mjs and sizes.mjs leave in target/cost: node benches/cost/report.mjs [--check]
//
// With --check, the page is compared instead, and a task that costs more with CodeCall than direct calls is a failure.

import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, writePage } from '../../tests/node/serve.mjs';

const PAGE = 'docs/reports/cost.md';
const WORK = join(root, 'target/cost');
const read = (name) => JSON.parse(readFileSync(join(WORK, name), 'utf8'));
const SIZES = ['own', 60, 300];
const GROUPS = { 'tau2 retail, airline': ['retail', 'airline'], 'BFCL base': ['bfcl'], AgentDojo: ['agentdojo'] };
const HELD_OUT = { 'tau2 telecom': ['telecom'], 'tau2 banking': ['banking'], 'BFCL long_context': ['long_context'] };
const METRICS = ['requests', 'in', 'total', 'price'];

const results = Object.fromEntries([...Object.values(GROUPS), ...Object.values(HELD_OUT)].flat()
  .filter((set) => existsSync(join(WORK, `result-${set}.json`))).map((set) => [set, read(`result-${set}.json`)]));
const refused = (row) => !row.arms.codecall.accepted;
const rowsOf = (sets, size) => sets.flatMap((set) => results[set]?.rows ?? []).filter((row) => row.size === size && !refused(row));

const quantile = (list, part) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(part * list.length))];
const median = (list) => quantile(list, 0.5);
const sum = (list) => list.reduce((total, value) => total + value, 0);
const thousands = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ',');
const table = (heads, rows) => `| ${heads.join(' | ')} |\n|${heads.map((_, n) => (n < 1 ? '---' : '---:')).join('|')}|\n${rows.map((row) => `| ${row.join(' | ')} |`).join('\n')}`;

// A row for each set and size at which `cells` gives something.
function perSet(groups, cells, sizes = SIZES) {
  const rows = [];
  for (const [name, sets] of Object.entries(groups)) {
    for (const size of sizes) {
      const mine = rowsOf(sets, size);
      if (mine.length) rows.push([name, size === 'own' ? `own, ${range(mine.map((row) => row.tools))}` : size, ...cells(mine)]);
    }
  }
  return rows;
}
const range = (list) => (Math.min(...list) === Math.max(...list) ? `${list[0]}` : `${Math.min(...list)} to ${Math.max(...list)}`);
const arm = (rows, name, metric) => rows.filter((row) => row.arms[name]).map((row) => row.arms[name][metric]);

const ARMS = ['one', 'waves', 'deferred', 'codecall'];
const heads = ['set', 'tools', '`one`', '`waves`', '`deferred`', '`codecall`'];
const requests = (groups) => table(heads, perSet(groups, (rows) => ARMS.map((name) => thousands(sum(arm(rows, name, 'requests'))))));
const medians = (groups, metric) => table(heads, perSet(groups, (rows) => ARMS.map((name) => thousands(median(arm(rows, name, metric))))));

const worse = (rows, name, metric, base = 'waves') => rows.filter((row) => row.arms[name][metric] > row.arms[base][metric]);
// Tasks that cost more, for an arm and another in brackets.
const losses = (groups, name, other, sizes = SIZES) => table(
  ['set', 'tools', 'tasks', 'requests', 'input', 'total', 'price'],
  perSet(groups, (rows) => [rows.length, ...METRICS.map((metric) => `${worse(rows, name, metric).length} (${worse(rows, other, metric).length})`)], sizes),
);
const ratio = (rows, name, metric, base) => median(rows.map((row) => row.arms[name][metric] / row.arms[base][metric])).toFixed(2);
const ratios = (groups, names, base, sizes = SIZES) => table(
  ['set', 'tools', ...names.flatMap((name) => ['requests', 'total', 'price'].map((metric) => `\`${name}\`: ${metric}`))],
  perSet(groups, (rows) => names.flatMap((name) => ['requests', 'total', 'price'].map((metric) => ratio(rows, name, metric, base))), sizes),
);

const all = { ...GROUPS, ...HELD_OUT };
const listed = (rows, name) => {
  const values = rows.map((row) => row.lists[name]).filter((value) => value !== undefined);
  return values.length ? thousands(median(values)) : '–';
};
const lists = () => table(
  ['set', 'tools', 'direct', '`codecall`', '`lean`', '`hot`', 'tools passed through'],
  perSet(all, (rows) => [...['direct', 'codecall', 'lean', 'hot'].map((name) => listed(rows, name)), `${rows.filter((row) => row.direct).length} of ${rows.length} tasks`]),
);
const variants = () => table(
  ['set', 'tools', '`waves`', '`codecall`', '`need`', '`cold`', '`pess`', '`hot`', '`lean`'],
  perSet(all, (rows) => ['waves', 'codecall', 'need', 'cold', 'pess', 'hot', 'lean'].map((name) => {
    const values = arm(rows, name, 'total');
    return values.length ? `${thousands(sum(arm(rows, name, 'requests')))} · ${thousands(median(values))}` : '–';
  })),
);
const searches = () => table(
  ['set', 'tools', 'tasks that search', 'searches', 'median', 'p95'],
  perSet(all, (rows) => {
    const found = rows.flatMap((row) => row.arms.codecall.searches);
    return [rows.filter((row) => row.arms.codecall.searches.length).length, found.length, ...(found.length ? [median(found), quantile(found, 0.95)].map(thousands) : ['–', '–'])];
  }),
);
// The checkers' verdicts: of the gold calls, of the end states of all runs through CodeCall, of tasks with one call left out.
const controls = () => table(
  ['set', 'gold accepted', 'end states accepted with CodeCall', 'one call left out', 'noticed'],
  Object.entries(results).map(([set, { rows, control }]) => {
    const states = rows.flatMap((row) => Object.values(row.arms)).filter((made) => 'accepted' in made);
    const accepted = states.filter((made) => made.accepted);
    return [set, `${control.accepted} of ${control.tasks}`, `${thousands(accepted.length)} of ${thousands(states.length)}`, thousands(control.left_out), thousands(control.noticed)];
  }),
);
const left = [...new Set(Object.values(results).flatMap(({ rows }) => rows.filter(refused).map(({ id }) => id)))];

// How many tasks cost more than `waves`, at each size.
function summary(groups) {
  const rows = SIZES.map((size) => rowsOf(Object.values(groups).flat(), size));
  const counts = METRICS.map((metric) => rows.map((mine) => worse(mine, 'codecall', metric).length));
  const [requests, input, total, price] = counts.map((list) => list.join(', '));
  return `of ${rows[0].length} tasks with their own tools, 60 and 300, ${requests} need more requests than direct calls. ${input} need more input, ${total} more tokens, and ${price} a higher price.`;
}

const sizes = existsSync(join(WORK, 'sizes.json')) ? read('sizes.json') : undefined;
const sizesSection = () => `## Sizes

The columns are tokens of the list by default, with an index of 2,000 tokens, without an index, and for a host that defers tools. The last one has tokens of the answers of a search (median/p95 of 60 searches). The tools are those of ${sizes.servers} real servers.

${table(['tools', 'servers', 'direct', '`codecall`', 'index of 2,000', 'no index', '`lean`', 'one query', 'three queries'], sizes.lists.map((row) => row.map((cell) => (typeof cell === 'number' ? thousands(cell) : cell))))}

Lines of ${sizes.signatures.tools} real tools with parameters, as the index and searches write them:

${table(['text', 'total', 'median', 'p95'], sizes.signatures.rows.map((row) => row.map((cell) => (typeof cell === 'number' ? thousands(cell) : cell))))}
`;

const tried = new Set(Object.values(GROUPS).flat().flatMap((set) => (results[set]?.rows ?? []).map((row) => `${set} ${row.id}`))).size;
const page = `# Costs of an agent with CodeCall and without it

Does an agent ever need more requests or tokens with CodeCall than with its tools listed directly? This page answers by replay. The gold calls of ${tried} tasks of public benchmarks are really made, through CodeCall, and the benchmarks' own checkers judge the end state.
\`node benches/cost/run.mjs\` writes it; [benches/cost](../../benches/cost/README.md) says how.

In short: ${summary(GROUPS)}
On sets held out of tuning: ${summary(HELD_OUT)}

## Method

Each task has the tools of its own servers (**own**), or also those of other real servers, up to 60 or 300 tools. Arms:

- \`one\`: all tools are listed; the model makes one call a request. Real agents mostly do this.
- \`waves\`: all tools are listed; calls go together unless one needs the result or effect of another. All comparisons are with this arm.
- \`deferred\`: the host lists one search tool of 150 tokens. A turn with new tools searches first, and full schemas come in.
- \`codecall\`: the model reads what CodeCall lists, and makes the requests that CodeCall wants. The tasks of the set have run before, so
  the list has the used tools first, and shapes of results. All results return to the model.
- \`cold\`: as \`codecall\`, and nothing has run before. Shapes of results are known from elsewhere.
- \`pess\`: as \`cold\`, and shapes are unknown: the model reads each result before it uses a part of it.
- \`need\`: as \`codecall\`; scripts return only the results that something later uses.
- \`hot\`: as \`codecall\` with \`tools.indexTokens = 2000\`.
- \`lean\`: as \`codecall\` with a client that defers tools itself.

A tool is known to the model if a line that it has read names all arguments of the call. Otherwise it searches, with the words of the
tool's name; if the line leaves out what the call needs, it asks for the whole description. A script ends where one of several values has to be chosen, or a text composed.

Each request reads the list of tools, the system prompt and the conversation. The **total** is input and output, without a cache. The **price** counts a token of the last request's context as 0.1, a new one as 1, a written one as 5. Tokens are those of \`gpt-tokenizer\`, encoding
\`o200k_base\`. There are no tokens of thinking.

## Tasks that cost more than \`waves\`

Number of tasks, in brackets for \`pess\`:

${losses(GROUPS, 'codecall', 'pess')}

Median of \`codecall\` / \`waves\`, task by task:

${ratios(GROUPS, ['codecall', 'pess'], 'waves')}

## Requests

Sum over all tasks:

${requests(GROUPS)}

## Tokens and price

Medians of the tasks. Input:

${medians(GROUPS, 'in')}

Output:

${medians(GROUPS, 'out')}

Total:

${medians(GROUPS, 'total')}

Price:

${medians(GROUPS, 'price')}

## Beside a host that defers tools

Median of the ratio to \`deferred\`, task by task. \`lean\` is how CodeCall lists itself to such a host.

${ratios(GROUPS, ['codecall'], 'deferred')}

${ratios(GROUPS, ['lean'], 'deferred', [60, 300])}

## Held-out sets

No constant of CodeCall is chosen on these. Of telecom and banking the calls of the agent are replayed; the user's own actions are made on
the state between the turns. Searches in banking's knowledge base are no gold calls, so they are left out on both sides.

${losses(HELD_OUT, 'codecall', 'pess')}

${ratios(HELD_OUT, ['codecall', 'pess'], 'waves')}

${ratios(HELD_OUT, ['codecall'], 'deferred')}

Requests, sum over all tasks:

${requests(HELD_OUT)}

Total, medians:

${medians(HELD_OUT, 'total')}

## Variants

Requests of all tasks · median of total:

${variants()}

Tasks that cost more than \`waves\` with \`hot\`, in brackets with \`lean\`:

${losses(all, 'hot', 'lean', [300])}

## Lists and searches

Tokens of the list of tools and of the instructions, medians of the tasks:

${lists()}

Tokens of the answers of \`codecall_search\` in the arm \`codecall\`:

${searches()}

${sizes ? sizesSection() : ''}
## Checks

The checkers judge each end state. As a negative control, each gold call is left out once; checkers of states cannot notice a missing read.

${controls()}

${left.length ? `Left out of all tables: \`${left.join('`, `')}\`. Its gold call breaks the schema of its tool, which CodeCall refuses.` : 'No task is left out.'}

## Limits of a replay

Both sides are played by a model that makes no mistake. It knows which tools it needs, and finds each by the words of its name. It writes scripts that run at the first attempt, and batches direct calls as far as results and effects allow. A real model may search several times, write a script that fails, or call one tool at a time. In LiveMCPBench's recorded trajectories 2 of 905 requests have more than one call. So the
figures are the least that each side pays. They do not say how often a real model reaches that.
`;

mkdirSync(join(root, 'docs/reports'), { recursive: true });
writePage(PAGE, page);
if (process.argv.includes('--check')) {
  const lost = Object.values(GROUPS).flatMap((sets) => SIZES.flatMap((size) => METRICS.flatMap((metric) => worse(rowsOf(sets, size), 'codecall', metric)
    .map(({ id }) => `${id} with ${size} tools needs more ${metric} than direct calls`))));
  for (const line of lost.slice(0, 20)) console.error(line);
  if (lost.length) process.exitCode = 1;
}
