// Compares an outcome here with Node's.

/** What a line begins with that is the text of a statement, logged before it. */
export const LABEL = '¶ ';
const text = (line) => (line?.startsWith(LABEL) ? line.slice(LABEL.length) : line);

/** Returns `{node, here}`, the first parts that differ; null if there are none. */
export function difference(outcome, node) {
  if (!node) return { node: 'does not end', here: endOf(outcome) };
  const logs = outcome.logs ?? [];
  const at = node.logs.findIndex((line, index) => line !== logs[index]);
  if (at >= 0) return { node: node.logs[at], here: logs[at] ?? endOf(outcome), before: text(node.logs[at - 1]) };
  if (logs.length > node.logs.length) return { node: node.outcome.text, here: logs[node.logs.length], before: text(node.logs.at(-1)) };
  if (isSameEnd(outcome, node.outcome)) return null;
  return { node: `${node.outcome.kind} ${node.outcome.text}`, here: endOf(outcome), before: text(logs.at(-1)) };
}

/** All parts that differ where both have logged the same labels, else the first one. */
export function differences(outcome, node) {
  const first = difference(outcome, node);
  const logs = outcome.logs ?? [];
  const labels = (lines) => JSON.stringify(lines.map((line) => (line.startsWith(LABEL) ? line : '')));
  if (!first || !node || !node.logs.some((line) => line.startsWith(LABEL)) || labels(node.logs) !== labels(logs)) return first ? [first] : [];
  const lines = node.logs.flatMap((line, index) => (line === logs[index] ? [] : [{ node: line, here: logs[index], before: text(node.logs[index - 1]) }]));
  const end = difference({ ...outcome, logs: [] }, { ...node, logs: [] });
  return end ? [...lines, { ...end, before: text(logs.at(-1)) }] : lines;
}

/** An outcome and Node's answer without what differs between two answers of Node: numbers, else the whole line. */
export function steady(outcome, node, again) {
  if (!node || !again) return [outcome, node ?? again];
  const logs = [...(outcome.logs ?? [])];
  const length = Math.min(node.logs.length, again.logs.length);
  const lines = node.logs.slice(0, length).map((line, index) => {
    if (line === again.logs[index]) return line;
    const isNumbers = withoutNumbers(line) === withoutNumbers(again.logs[index]);
    if (index < logs.length) logs[index] = isNumbers ? withoutNumbers(logs[index]) : '';
    return isNumbers ? withoutNumbers(line) : '';
  });
  const isFree = node.logs.length !== again.logs.length || (node.outcome.text !== again.outcome.text && node.outcome.kind === 'result' && outcome.status === 'ok');
  if (!isFree) return [{ ...outcome, logs }, { logs: lines, outcome: node.outcome }];
  return [{ status: 'ok', logs: logs.slice(0, length) }, { logs: lines, outcome: { kind: 'result', text: 'null' } }];
}

/** A text without its numbers, with which columns of numbers are aligned, and their signs. */
export function withoutNumbers(text) {
  return text.replace(/\s*-?\d+(\.\d+)?(e[-+]?\d+)?/g, '0');
}

function endOf({ status, result, error }) {
  return status === 'ok' ? `result ${jsonOf(result)}` : `${status} ${error?.code} ${error?.name}: ${error?.message}`;
}

function isSameEnd({ status, result, error }, { kind, text }) {
  if (kind === 'result') return status === 'ok' && jsonOf(result) === text;
  if (kind === 'status') {
    if (text === 'stuck') return error?.message?.includes('that nothing can settle') ?? false;
    return `${status} ${error?.code}` === text.split('\n')[0];
  }
  if (status !== 'runtime_error' || error.code !== 'EXECUTION_ERROR') return false;
  const shown = /^Uncaught (['"`])([\s\S]*)\1$/.exec(text);
  return `${error.name}: ${error.message}`.trimEnd() === text
    || `Uncaught ${error.message}`.replace('Uncaught Uncaught', 'Uncaught') === text
    || (shown !== null && (shown[2] === error.message || text.includes('\\')));
}

/** JSON that is nested too deeply to be written is shown as such. */
function jsonOf(value) {
  try {
    return JSON.stringify(value ?? null);
  } catch {
    return 'nested too deeply';
  }
}
