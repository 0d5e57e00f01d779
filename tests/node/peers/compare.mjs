// Compares an outcome here with Node's.

/** Returns `{node, here}`, the first parts that differ; null if there are none. */
export function difference(outcome, node) {
  if (!node) return { node: 'does not end', here: endOf(outcome) };
  const logs = outcome.logs ?? [];
  const at = node.logs.findIndex((line, index) => line !== logs[index]);
  if (at >= 0) return { node: node.logs[at], here: logs[at] ?? endOf(outcome), before: node.logs[at - 1] };
  if (logs.length > node.logs.length) return { node: node.outcome.text, here: logs[node.logs.length], before: node.logs.at(-1) };
  if (isSameEnd(outcome, node.outcome)) return null;
  return { node: `${node.outcome.kind} ${node.outcome.text}`, here: endOf(outcome), before: logs.at(-1) };
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
