// Tasks with real MCP servers, with and without CodeCall: node transcripts.mjs [--check]
//
// Both sides are played by a model that makes no mistake: without CodeCall it calls the tools of all servers, as many at once
// as can be; with CodeCall it runs one script, after a search if the list of tools lacks a signature. Every call is really made. Tokens are those of
// gpt-tokenizer with the encoding o200k_base. The result is docs/reports/transcripts.md; --check compares instead of writing.
//
// Folders, dates and commits are fixed, so that the page is the same on every machine.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { codecall, environment, folder, modules, python, requireFiles, writePage } from './serve.mjs';

const npm = (name) => join(modules, '@modelcontextprotocol', name, 'dist/index.js');
const pip = (name) => join(python, name);
requireFiles('transcripts', codecall, npm('server-filesystem'), npm('server-memory'), npm('server-everything'), pip('mcp-server-git'), pip('mcp-server-time'));

const WORK = '/tmp/codecall-transcripts';
const GIT = { GIT_AUTHOR_DATE: '1768478400 +0000', GIT_COMMITTER_DATE: '1768478400 +0000', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' };
const SERVERS = {
  files: { command: process.execPath, args: [npm('server-filesystem'), WORK] },
  memory: { command: process.execPath, args: [npm('server-memory')], env: { MEMORY_FILE_PATH: `${WORK}/memory.jsonl` } },
  git: { command: pip('mcp-server-git'), args: ['--repository', `${WORK}/repo`], env: GIT },
  time: { command: pip('mcp-server-time'), args: ['--local-timezone', 'UTC'] },
  everything: { command: process.execPath, args: [npm('server-everything'), 'stdio'] },
};

const PEOPLE = ['Ada', 'Bruno', 'Chen', 'Dana', 'Emeka', 'Freya', 'Goran', 'Hana'];
const ZONES = ['Asia/Tokyo', 'America/Bogota', 'Asia/Shanghai', 'Asia/Dubai', 'Africa/Lagos', 'Asia/Kolkata', 'Asia/Singapore', 'Asia/Seoul'];
const AREAS = ['parser', 'server', 'docs', 'search'];

// The folder that the tasks work in.
function setUp() {
  rmSync(WORK, { recursive: true, force: true });
  mkdirSync(`${WORK}/repo`, { recursive: true });
  mkdirSync(`${WORK}/notes`);
  mkdirSync(`${WORK}/sales`);
  const git = (...words) => execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...words], { cwd: `${WORK}/repo`, env: { ...process.env, ...GIT } });
  git('init', '-q', '-b', 'main');
  git('config', 'user.name', 'Ada');
  git('config', 'user.email', 'ada@example.com');
  for (let n = 1; n <= 14; n += 1) {
    const area = AREAS[n % AREAS.length];
    writeFileSync(`${WORK}/repo/${area}.txt`, `${area} ${n}\n`);
    git('add', '.');
    git('commit', '-q', '-m', `${n % 3 ? 'feat' : 'fix'}(${area}): change number ${n}`);
  }
  const team = PEOPLE.map((name, n) => ({ name, zone: ZONES[n], area: AREAS[n % AREAS.length] }));
  writeFileSync(`${WORK}/team.json`, JSON.stringify(team, null, 2));
  for (let n = 1; n <= 12; n += 1) {
    const lines = Array.from({ length: 12 }, (_, line) => `- Discussed item ${n}.${line + 1} of the agenda, no decision was taken and nothing is to be done.`);
    lines.splice(n % 9, 0, `- TODO(${PEOPLE[n % PEOPLE.length]}): follow up on ${AREAS[n % AREAS.length]} before the next meeting.`);
    writeFileSync(`${WORK}/notes/2026-01-${String(n).padStart(2, '0')}.md`, `# Meeting ${n}\n\n${lines.join('\n')}\n`);
    const rows = Array.from({ length: 25 }, (_, row) => `${2026}-${String(n).padStart(2, '0')}-${String(row + 1).padStart(2, '0')},${PEOPLE[(row * n) % PEOPLE.length]},${(row * 37 + n * 11) % 500}`);
    writeFileSync(`${WORK}/sales/2026-${String(n).padStart(2, '0')}.csv`, `date,seller,amount\n${rows.join('\n')}\n`);
  }
}

// The servers of a task: all, or some with some of their tools.
const serversOf = (task) => Object.fromEntries(Object.entries(SERVERS)
  .filter(([name]) => task.only?.includes(name) ?? true)
  .map(([name, server]) => [name, task.enabled?.[name] ? { ...server, enabledTools: task.enabled[name] } : server]));

const call = (server, tool, args) => ({ server, tool, arguments: args });
const months = Array.from({ length: 12 }, (_, n) => `${WORK}/sales/2026-${String(n + 1).padStart(2, '0')}.csv`);
const days = Array.from({ length: 12 }, (_, n) => `${WORK}/notes/2026-01-${String(n + 1).padStart(2, '0')}.md`);

// Each task: what a person asks for; `direct`, the calls of a model without CodeCall, a list for each round (what it knows by
// then comes from the results); `queries`, `tools`, `script`, its requests with CodeCall; the answer.
const TASKS = [
  {
    title: 'Release notes',
    servers: ['git', 'files', 'memory'],
    ask: `Write the release notes of ${WORK}/repo to ${WORK}/RELEASE.md: the changes by area, features first. Remember in the knowledge graph which areas changed, and how often.`,
    * direct() {
      const [log] = yield [call('git', 'git_log', { repo_path: `${WORK}/repo`, max_count: 20 })];
      const notes = releaseNotes(log);
      yield [
        call('files', 'write_file', { path: `${WORK}/RELEASE.md`, content: notes.text }),
        call('memory', 'create_entities', { entities: notes.entities }),
      ];
    },
    queries: ['commit log of a repository', 'write a file', 'create entities in the knowledge graph'],
    tools: ['git:git_log', 'files:write_file', 'memory:create_entities'],
    script: `const log = await git.git_log({ repo_path: '${WORK}/repo', max_count: 20 });
const changes = [...log.matchAll(/(feat|fix)\\((\\w+)\\): (.+?)['"]?$/gm)].map(([, kind, area, text]) => ({ kind, area, text }));
const byArea = Object.groupBy(changes, ({ area }) => area);
const text = Object.keys(byArea).sort().map((area) => '## ' + area + '\\n' + byArea[area]
  .sort((a, b) => a.kind.localeCompare(b.kind)).map(({ kind, text }) => '- ' + kind + ': ' + text).join('\\n')).join('\\n\\n');
await files.write_file({ path: '${WORK}/RELEASE.md', content: text });
await memory.create_entities({ entities: Object.keys(byArea).sort().map((area) => ({
  name: area, entityType: 'area', observations: [byArea[area].length + ' changes in January 2026'] })) });
return Object.fromEntries(Object.entries(byArea).map(([area, list]) => [area, list.length]));`,
    answer: 'The release notes are in RELEASE.md, and the four areas are remembered with their number of changes.',
  },
  {
    title: 'A meeting across time zones',
    servers: ['files', 'time', 'memory'],
    ask: `When is 09:00 in UTC for each person in ${WORK}/team.json? Remember each person with the local time, and tell me for whom it is outside of 8 to 18 h.`,
    * direct() {
      const [team] = yield [call('files', 'read_text_file', { path: `${WORK}/team.json` })];
      const people = JSON.parse(team);
      const times = yield people.map(({ zone }) => call('time', 'convert_time', { source_timezone: 'UTC', time: '09:00', target_timezone: zone }));
      const entities = people.map(({ name }, n) => ({ name, entityType: 'person', observations: [`The meeting is at ${JSON.parse(times[n]).target.datetime.slice(11, 16)} local time`] }));
      yield [call('memory', 'create_entities', { entities })];
    },
    queries: ['read a text file', 'convert time between time zones', 'create entities in the knowledge graph'],
    tools: ['files:read_text_file', 'time:convert_time', 'memory:create_entities'],
    script: `const people = JSON.parse((await files.read_text_file({ path: '${WORK}/team.json' })).content);
const local = await parallel(people, async ({ name, zone }) => {
  const { target } = await time.convert_time({ source_timezone: 'UTC', time: '09:00', target_timezone: zone });
  return { name, at: target.datetime.slice(11, 16) };
});
await memory.create_entities({ entities: local.map(({ name, at }) => ({
  name, entityType: 'person', observations: ['The meeting is at ' + at + ' local time'] })) });
return local.filter(({ at }) => at < '08:00' || at > '18:00');`,
    answer: 'It is outside of 8 to 18 h for Bruno, at 04:00. All eight local times are remembered.',
  },
  {
    title: 'Open points of twelve meetings',
    servers: ['files', 'memory', 'git'],
    ask: `Collect the TODOs in ${WORK}/notes by person, write them to ${WORK}/repo/TODO.md, commit that, and remember who has to do what.`,
    * direct() {
      yield [call('files', 'list_directory', { path: `${WORK}/notes` })];
      const notes = yield days.map((path) => call('files', 'read_text_file', { path }));
      const { text, entities } = openPoints(notes);
      yield [call('files', 'write_file', { path: `${WORK}/repo/TODO.md`, content: text }), call('memory', 'create_entities', { entities })];
      yield [call('git', 'git_add', { repo_path: `${WORK}/repo`, files: ['TODO.md'] })];
      yield [call('git', 'git_commit', { repo_path: `${WORK}/repo`, message: 'List the open points' })];
    },
    queries: ['read a text file', 'list the files of a folder', 'write a file', 'create entities in the knowledge graph', 'stage files', 'commit staged changes'],
    tools: ['files:list_directory', 'files:read_text_file', 'files:write_file', 'memory:create_entities', 'git:git_add', 'git:git_commit'],
    script: `const { content: listing } = await files.list_directory({ path: '${WORK}/notes' });
const paths = [...listing.matchAll(/\\[FILE\\] (.+)/g)].map(([, name]) => '${WORK}/notes/' + name);
const texts = await parallel(paths, async (path) => (await files.read_text_file({ path })).content);
const todos = texts.flatMap((text) => [...text.matchAll(/TODO\\((\\w+)\\): (.+)/g)].map(([, who, what]) => ({ who, what })));
const byPerson = Object.groupBy(todos, ({ who }) => who);
const names = Object.keys(byPerson).sort();
const page = names.map((who) => '## ' + who + '\\n' + byPerson[who].map(({ what }) => '- ' + what).join('\\n')).join('\\n\\n');
await files.write_file({ path: '${WORK}/repo/TODO.md', content: page });
await memory.create_entities({ entities: names.map((name) => ({
  name, entityType: 'person', observations: byPerson[name].map(({ what }) => 'TODO: ' + what) })) });
await git.git_add({ repo_path: '${WORK}/repo', files: ['TODO.md'] });
await git.git_commit({ repo_path: '${WORK}/repo', message: 'List the open points' });
return Object.fromEntries(names.map((name) => [name, byPerson[name].length]));`,
    answer: 'Twelve open points of eight people are in TODO.md, committed, and remembered.',
  },
  {
    title: 'Sales of a year',
    servers: ['files', 'memory', 'time'],
    ask: `Add up the sales in ${WORK}/sales by seller, write a ranking to ${WORK}/ranking.csv, remember the best seller with the sum, and tell me what time 17:00 in Dubai is there.`,
    * direct() {
      yield [call('files', 'list_directory', { path: `${WORK}/sales` })];
      const texts = yield months.map((path) => call('files', 'read_text_file', { path }));
      const [team] = yield [call('files', 'read_text_file', { path: `${WORK}/team.json` })];
      const ranking = rank(texts);
      const best = JSON.parse(team).find(({ name }) => name === ranking[0][0]);
      yield [
        call('files', 'write_file', { path: `${WORK}/ranking.csv`, content: ranking.map((row) => row.join(',')).join('\n') }),
        call('memory', 'create_entities', { entities: [{ name: best.name, entityType: 'person', observations: [`Sold ${ranking[0][1]} in 2026`] }] }),
        call('time', 'convert_time', { source_timezone: 'Asia/Dubai', time: '17:00', target_timezone: best.zone }),
      ];
    },
    queries: ['read a text file', 'list the files of a folder', 'write a file', 'create entities in the knowledge graph', 'convert time between time zones'],
    tools: ['files:list_directory', 'files:read_text_file', 'files:write_file', 'memory:create_entities', 'time:convert_time'],
    script: `const { content: listing } = await files.list_directory({ path: '${WORK}/sales' });
const paths = [...listing.matchAll(/\\[FILE\\] (.+)/g)].map(([, name]) => '${WORK}/sales/' + name);
const texts = await parallel(paths, async (path) => (await files.read_text_file({ path })).content);
const sums = {};
for (const text of texts) for (const line of text.trim().split('\\n').slice(1)) {
  const [, seller, amount] = line.split(',');
  sums[seller] = (sums[seller] ?? 0) + Number(amount);
}
const ranking = Object.entries(sums).sort(([a, x], [b, y]) => y - x || a.localeCompare(b));
await files.write_file({ path: '${WORK}/ranking.csv', content: ranking.map((row) => row.join(',')).join('\\n') });
const team = JSON.parse((await files.read_text_file({ path: '${WORK}/team.json' })).content);
const best = team.find(({ name }) => name === ranking[0][0]);
await memory.create_entities({ entities: [{ name: best.name, entityType: 'person', observations: ['Sold ' + ranking[0][1] + ' in 2026'] }] });
const { target } = await time.convert_time({ source_timezone: 'Asia/Dubai', time: '17:00', target_timezone: best.zone });
return { ranking, at: target.datetime.slice(11, 16) };`,
    answer: 'The ranking is in ranking.csv, and the best seller is remembered.',
  },
  {
    title: 'A brief for three offices',
    servers: ['everything', 'time', 'files'],
    ask: `Write ${WORK}/brief.md with a line for each of New York, Chicago and Los Angeles: the weather, and the time in Tokyo at 12:00 UTC. How many changes has the repository in ${WORK}/repo?`,
    * direct() {
      const cities = ['New York', 'Chicago', 'Los Angeles'];
      const results = yield [
        ...cities.map((location) => call('everything', 'get-structured-content', { location })),
        call('time', 'convert_time', { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' }),
        call('git', 'git_log', { repo_path: `${WORK}/repo`, max_count: 50 }),
      ];
      const at = JSON.parse(results[3]).target.datetime.slice(11, 16);
      const lines = cities.map((city, n) => `- ${city}: ${JSON.parse(results[n]).temperature}°, ${JSON.parse(results[n]).conditions}, Tokyo ${at}`);
      yield [call('files', 'write_file', { path: `${WORK}/brief.md`, content: lines.join('\n') })];
    },
    queries: ['weather of a city', 'convert time between time zones', 'write a file', 'commit log of a repository'],
    tools: ['everything:get-structured-content', 'time:convert_time', 'files:write_file', 'git:git_log'],
    script: `const cities = ['New York', 'Chicago', 'Los Angeles'];
const weather = await parallel(cities, (location) => callTool('everything:get-structured-content', { location }));
const { target } = await time.convert_time({ source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' });
const lines = cities.map((city, n) => \`- \${city}: \${weather[n].temperature}°, \${weather[n].conditions}, Tokyo \${target.datetime.slice(11, 16)}\`);
await files.write_file({ path: '${WORK}/brief.md', content: lines.join('\\n') });
return (await git.git_log({ repo_path: '${WORK}/repo', max_count: 50 })).match(/^Commit:/gm).length;`,
    answer: 'The brief is in brief.md. The repository has 14 changes.',
  },
];

function releaseNotes(log) {
  const changes = [...log.matchAll(/(feat|fix)\((\w+)\): (.+?)['"]?$/gm)].map(([, kind, area, text]) => ({ kind, area, text }));
  const byArea = Object.groupBy?.(changes, ({ area }) => area) ?? groupBy(changes, ({ area }) => area);
  const areas = Object.keys(byArea).sort();
  const text = areas.map((area) => `## ${area}\n${byArea[area].sort((a, b) => a.kind.localeCompare(b.kind)).map((change) => `- ${change.kind}: ${change.text}`).join('\n')}`).join('\n\n');
  return { text, entities: areas.map((area) => ({ name: area, entityType: 'area', observations: [`${byArea[area].length} changes in January 2026`] })) };
}

function openPoints(notes) {
  const todos = notes.flatMap((text) => [...text.matchAll(/TODO\((\w+)\): (.+)/g)].map(([, who, what]) => ({ who, what })));
  const byPerson = groupBy(todos, ({ who }) => who);
  const names = Object.keys(byPerson).sort();
  const text = names.map((who) => `## ${who}\n${byPerson[who].map(({ what }) => `- ${what}`).join('\n')}`).join('\n\n');
  return { text, entities: names.map((name) => ({ name, entityType: 'person', observations: byPerson[name].map(({ what }) => `TODO: ${what}`) })) };
}

function rank(texts) {
  const sums = {};
  for (const text of texts) {
    for (const line of text.trim().split('\n').slice(1)) {
      const [, seller, amount] = line.split(',');
      sums[seller] = (sums[seller] ?? 0) + Number(amount);
    }
  }
  return Object.entries(sums).sort(([a, x], [b, y]) => y - x || a.localeCompare(b));
}

function groupBy(list, key) {
  const groups = {};
  for (const item of list) (groups[key(item)] ??= []).push(item);
  return groups;
}

const tokens = (text) => encode(text).length;
const SEARCH_TOOL = JSON.stringify([{ name: 'tool_search', description: 'Find tools by what they do. Their schemas are then available.', input_schema: { type: 'object', properties: { queries: { type: 'array', items: { type: 'string' } } } } }]);
// The date of today, in results of the time server; durations.
const stable = (text) => text
  .replace(/\b20\d\d-\d\d-\d\d(?=T\d\d:\d\d:\d\d[+-])/g, '2026-01-15')
  .replace(/"day_of_week":(\s*)"\w+"/g, '"day_of_week":$1"Thursday"')
  .replace(/"durationMs":[\d.]+/g, '"durationMs":1.5');

// A model that is asked, with everything that its context has.
const schemasOf = (tools) => JSON.stringify(tools.map(({ name, description, inputSchema }) => ({ name, description, input_schema: inputSchema })));
class Conversation {
  constructor(listed, ask) {
    this.listed = tokens(listed);
    this.context = this.listed + tokens(ask);
    [this.requests, this.in, this.out, this.calls] = [0, 0, 0, 0];
    this.lines = [`**Person:** ${ask}`];
  }

  // The model writes: what it reads is its whole context.
  say(text, shown = text) {
    const written = tokens(text);
    this.requests += 1;
    this.in += this.context;
    this.out += written;
    this.context += written;
    this.lines.push(`**Model:** ${shown}`);
  }

  // It reads the results before it writes again.
  read(text) {
    this.context += tokens(text);
  }
}

const block = (text, language = '') => `\n\`\`\`${language}\n${text}\n\`\`\``;
const short = (text, length = 600) => (text.length > length ? `${text.slice(0, length)}… (${text.length} characters)` : text);
const textOf = (result) => {
  const texts = result.content.filter(({ type }) => type === 'text').map(({ text }) => text);
  assert(!result.isError, texts.join('\n'));
  return stable(texts.length ? texts.join('\n') : JSON.stringify(result.structuredContent));
};

async function connect(command, args, env, name = 'transcripts') {
  const client = new Client({ name, version: '1' }, { capabilities: {} });
  await client.connect(new StdioClientTransport({ command, args, env: { ...process.env, ...env }, stderr: 'ignore' }));
  return client;
}

// Plays a task with calls of tools as they are: `name` is the name of a tool in the list, `make` calls it.
async function callDirectly(conversation, task, name, make, search) {
  const plan = task.direct();
  for (let step = plan.next(); !step.done;) {
    const calls = step.value;
    search();
    const names = calls.map(({ server, tool }) => `${server}:${tool}`);
    const counted = [...new Set(names)].map((name) => `\`${name}\`${names.filter((other) => other === name).length > 1 ? ` × ${names.filter((other) => other === name).length}` : ''}`);
    conversation.say(JSON.stringify(calls.map(({ server, tool, arguments: args }) => ({ name: name(server, tool), arguments: args }))), `calls ${counted.join(', ')}`);
    conversation.calls += calls.length;
    const results = [];
    for (const { server, tool, arguments: args } of calls) results.push(textOf(await make(server, tool, args)));
    results.forEach((result) => conversation.read(result));
    step = plan.next(results);
  }
  conversation.say(task.answer);
}

async function withoutCodeCall(task) {
  setUp();
  const clients = {};
  const tools = [];
  for (const [name, { command, args, env }] of Object.entries(serversOf(task))) {
    clients[name] = await connect(command, args, env);
    for (const tool of (await clients[name].listTools()).tools) if (task.enabled?.[name]?.includes(tool.name) ?? true) tools.push({ ...tool, name: `${name}__${tool.name}` });
  }
  const conversation = new Conversation(task.client?.defers ? SEARCH_TOOL : schemasOf(tools), task.ask);
  let searched = false;
  const search = () => {
    if (!task.client?.defers || searched) return;
    searched = true;
    // The host's own search brings the schemas of all tools of the task, and of two that it does not need.
    const wanted = task.tools.map((tool) => tool.replace(':', '__'));
    const found = tools.filter(({ name }) => wanted.includes(name)).concat(tools.filter(({ name }) => !wanted.includes(name)).slice(0, 2));
    conversation.say(JSON.stringify([{ name: 'tool_search', arguments: { queries: task.queries } }]), `searches ${task.queries.map((query) => `“${query}”`).join(', ')}`);
    conversation.read(schemasOf(found));
  };
  await callDirectly(conversation, task, (server, tool) => `${server}__${tool}`, (server, tool, args) => clients[server].callTool({ name: tool, arguments: args }), search);
  for (const client of Object.values(clients)) await client.close();
  return conversation;
}

// Which tools have a line with all their parameters in the list.
const signatures = (tools) => {
  const text = tools.find(({ name }) => name === 'codecall_execute')?.description ?? '';
  const known = new Set();
  let app = '';
  for (const line of text.split('\n')) {
    const tool = line.replace(/ \/\*.*?\*\//g, '').match(/^"?([^"(]+)"?\(([^…]*?)\)(:|$| )/);
    if (tool) known.add(`${app}:${tool[1]}`);
    else app = line.replace(/( \(\d+ of \d+\))?:$/, '');
  }
  return known;
};

async function withCodeCall(task) {
  setUp();
  const home = folder();
  const config = join(home, 'codecall.json');
  writeFileSync(config, JSON.stringify({ mcpServers: serversOf(task) }));
  const start = () => connect(codecall, ['serve', '--config', config], environment(home), task.client?.name);
  // The first start fills the store with the lists of tools.
  const first = await start();
  for (let waiting = true; waiting;) {
    const found = await first.callTool({ name: 'codecall_search', arguments: { query: 'anything' } });
    waiting = (found.content[0].text.match(/still starting|not connected/) ?? []).length > 0;
    if (waiting) await new Promise((resolve) => setTimeout(resolve, 200));
  }
  await first.close();
  const client = await start();
  const { tools } = await client.listTools();
  const conversation = new Conversation(schemasOf(tools) + (client.getInstructions() ?? ''), task.ask);
  if (!tools.some(({ name }) => name === 'codecall_execute')) {
    const listed = (server, tool) => `${server}_${tool}`;
    await callDirectly(conversation, task, listed, (server, tool, args) => client.callTool({ name: listed(server, tool), arguments: args }), () => {});
    await client.close();
    return conversation;
  }
  const ask = async (name, args, shown) => {
    conversation.say(JSON.stringify([{ name, arguments: args }]), shown);
    conversation.calls += 1;
    const result = textOf(await client.callTool({ name, arguments: args }));
    conversation.read(result);
    return result;
  };
  const known = signatures(tools);
  if (!task.tools.every((tool) => known.has(tool))) {
    const found = await ask('codecall_search', { queries: task.queries }, `\`codecall_search\` ${task.queries.map((query) => `“${query}”`).join(', ')}`);
    for (const tool of task.tools) assert(found.includes(`\n${tool.split(':')[1]}(`) || found.includes(`\n"${tool.split(':')[1]}"(`), `${task.title}: search does not find ${tool}: ${found}`);
  }
  const result = await ask('codecall_execute', { script: task.script }, `\`codecall_execute\`${block(task.script, 'js')}`);
  conversation.lines.push(`**CodeCall:** ${block(short(JSON.stringify(JSON.parse(result).result)), 'json')}`);
  conversation.say(task.answer);
  await client.close();
  return conversation;
}

const thousands = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ',');
const rows = [];
let transcripts = '';
const sums = { without: 0, with: 0 };
// The last two: a task whose servers have twelve tools in all, and one for a client that brings in tools as its model needs them.
const MORE = [
  { ...TASKS[1], title: 'Few tools', only: ['time', 'memory', 'files'], enabled: { files: ['read_text_file', 'write_file', 'list_directory'], memory: ['create_entities', 'create_relations', 'add_observations', 'delete_entities', 'read_graph', 'search_nodes', 'open_nodes'] } },
  { ...TASKS[3], title: 'A client that defers', client: { name: 'claude-ai', defers: true } },
];
for (const task of [...TASKS, ...MORE]) {
  const without = await withoutCodeCall(task);
  const ours = await withCodeCall(task);
  sums.without += without.in + without.out;
  sums.with += ours.in + ours.out;
  const cells = (conversation) => [conversation.requests, thousands(conversation.in), thousands(conversation.out), thousands(conversation.context)];
  rows.push([`[${task.title}](#${task.title.toLowerCase().replace(/ /g, '-')})`, task.servers.join(', '), ...cells(without), ...cells(ours), `${((without.in + without.out) / (ours.in + ours.out)).toFixed(1)} ×`]);
  transcripts += `\n## ${task.title}\n\n### Without CodeCall\n\n${without.lines.join('\n\n')}\n\n### With CodeCall\n\n${ours.lines.join('\n\n')}\n`;
  console.log(`${task.title}: ${without.in + without.out} tokens without, ${ours.in + ours.out} with`);
}
rmSync(WORK, { recursive: true, force: true });

const page = `# Transcripts

Tasks with five MCP servers (\`server-filesystem\`, \`server-memory\`, \`mcp-server-git\`, \`mcp-server-time\`, \`server-everything\`), with
and without CodeCall. Every call is really made; the model is played by a script that makes no mistake on either side:

- without CodeCall it has all tools of all servers in its context, and calls as many at once as can be;
- with CodeCall the list of tools has signatures. It runs one script, and answers; it searches first only if a signature is missing.

*Few tools* has three servers with twelve tools in all, which are listed as they are. *A client that defers* brings in the schemas of tools by a search of its own, and CodeCall
gives it a short list of signatures.

A *request* is one answer of the model. **in**: the tokens that the model reads, in all requests together (list of tools, question, own
calls, results; without a cache of prompts). **out**: the tokens that it writes. **context**: the size of the conversation at its end, with
the list of tools. Tokens are those of \`gpt-tokenizer\`, encoding \`o200k_base\`.

This page is written by \`node tests/node/transcripts.mjs\`.

| task | servers | without: requests | in | out | context | with: requests | in | out | context | fewer tokens |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
${rows.map((row) => `| ${row.join(' | ')} |`).join('\n')}

All together: ${thousands(sums.without)} tokens without CodeCall, ${thousands(sums.with)} with it. [reports/cost.md](cost.md) has public
benchmarks, and the tasks that CodeCall does not help with.
${transcripts}`;
writePage('docs/reports/transcripts.md', page);
