// The scripts of a model that makes no mistake: one line for each gold call of a turn.

const NAME = /^[A-Za-z_$][\w$]*$/;

// The sources of arguments that end a script, because the model has to read a result before it goes on.
export const SPLITS = {
  // It knows the shapes of results: fixed paths, members that the question names, and loops need no reading.
  real: (kind) => kind === 'judged' || kind === 'made',
  // It does not know them: it reads every result but a plain value.
  pess: (kind) => kind !== 'whole',
};

// The script of its turn that each call is in: [0, 0, 1, …].
export function stages(turn, ends) {
  const stage = [];
  turn.calls.forEach((_, n) => {
    const before = [
      ...turn.sources[n].map(({ call, kind }) => stage[call] + (ends(kind) ? 1 : 0)),
      ...turn.effects[n].map((call) => stage[call]),
    ];
    stage.push(Math.max(0, ...before));
  });
  return stage;
}

const member = (key) => (typeof key === 'number' ? `[${key}]` : NAME.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`);
const quoted = (text) => (/['\\\n]/.test(text) ? JSON.stringify(text) : `'${text}'`);
const parsed = (text) => { try { return JSON.parse(text); } catch { return text; } };

// `r2.items[0].id`, or the member of a list (or of an object's values) that has a text which the model knows.
function expression({ call, path, select }, results) {
  if (!select) return `r${call}${path.map(member).join('')}`;
  const [inner, known] = select;
  let text = `r${call}`;
  let data = parsed(results[call]);
  for (const [n, key] of path.entries()) {
    if (typeof key === 'number' || /\d/.test(key)) {
      const members = Array.isArray(data) ? text : `Object.values(${text})`;
      return `${members}.find((x) => x${inner.map(member).join('')} === ${quoted(known)})${path.slice(n + 1).map(member).join('')}`;
    }
    text += member(key);
    data = data[key];
  }
  return text;
}

function literal(value, sources, results, path = []) {
  const source = sources.find(({ arg }) => arg.length === path.length && arg.every((key, n) => key === path[n]));
  if (source) return expression(source, results);
  if (Array.isArray(value)) return `[${value.map((item, n) => literal(item, sources, results, [...path, n])).join(', ')}]`;
  if (value && typeof value === 'object') {
    const members = Object.entries(value).map(([key, item]) => `${NAME.test(key) ? key : JSON.stringify(key)}: ${literal(item, sources, results, [...path, key])}`);
    return members.length ? `{ ${members.join(', ')} }` : '{}';
  }
  return typeof value === 'string' ? quoted(value) : JSON.stringify(value);
}

const callee = ({ server, tool }) => (NAME.test(server) && NAME.test(tool) ? `${server}.${tool}(` : `callTool('${server}:${tool}', `);

// The script of the calls `mine` of a turn. `kept`: those whose results it returns.
export function script(turn, mine, ends, kept) {
  const inside = (n) => turn.sources[n].filter(({ call, kind }) => mine.includes(call) && kind !== 'made' && !ends(kind));
  const calls = mine.map((n) => {
    const made = `await ${callee(turn.calls[n])}${literal(turn.calls[n].args, inside(n), turn.results)})`;
    return turn.errors[n] ? `${made}.catch((e) => e.message)` : made;
  });
  if (mine.some((n) => inside(n).length)) {
    const lines = calls.map((text, n) => `const r${mine[n]} = ${text};`);
    const names = kept.map((n) => `r${n}`);
    return `${lines.join('\n')}\nreturn ${names.length === 1 ? names[0] : names.length ? `[${names.join(', ')}]` : "'done'"};`;
  }
  if (kept.length === mine.length) return calls.length === 1 ? `return ${calls[0]};` : `return [${calls.join(', ')}];`;
  const lines = calls.map((text, n) => (kept.includes(mine[n]) ? `const r${mine[n]} = ${text};` : `${text};`));
  const names = kept.map((n) => `r${n}`);
  return names.length ? `${lines.join('\n')}\nreturn ${names.length === 1 ? names[0] : `[${names.join(', ')}]`};` : lines.join('\n');
}

// Whether the model needs the result of call `n` of turn `t`: it writes a value of it later, or has to tell one.
export function needed(task, t, n, stage) {
  const result = task.turns[t].results[n];
  const asked = task.turns.map(({ user }) => user).join('\n');
  const isNew = (value) => String(value).length >= 3 && result.includes(String(value)) && !asked.includes(String(value));
  const values = (value) => (value && typeof value === 'object' ? Object.values(value).flatMap(values) : [value]);
  if (task.told.some(isNew)) return true;
  return task.turns.some((turn, u) => u >= t && turn.calls.some(({ args }, m) => (u > t || stage[m] > stage[n]) && values(args).some(isNew)));
}
