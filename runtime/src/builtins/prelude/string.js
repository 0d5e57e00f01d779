// Methods of strings that call functions of the script.

function String_replace(self, pattern, replacement) {
  if ($isRegExp(pattern)) return String_replaceMatches($stringReceiver(self, 'replace'), pattern, replacement);
  if (typeof replacement !== 'function') return $replace(self, pattern, replacement);
  const string = $stringReceiver(self, 'replace');
  const search = `${pattern}`;
  const at = string.indexOf(search);
  if (at < 0) return string;
  const before = string.slice(0, at);
  return `${before}${replacement(search, at, string)}${string.slice(at + search.length)}`;
}

// All matches are found before the first of them is replaced.
function String_replaceMatches(string, pattern, replacement) {
  if ($hasExec(pattern)) return String_replaceObserved(string, pattern, replacement);
  if (typeof replacement !== 'function') return $replaceMatches(string, pattern, replacement);
  const found = $matches(string, pattern);
  let result = '';
  let begin = 0;
  for (let i = 0; i < found.length; i += 2) {
    const at = found[i];
    const values = found[i + 1];
    const text = `${replacement(...values)}`;
    if (at >= begin) {
      result += string.slice(begin, at);
      result += text;
      begin = at + values[0].length;
    }
  }
  return result + string.slice(begin);
}

// With an `exec` of the script (ECMAScript 22.2.6.11).
function String_replaceObserved(string, pattern, replacement) {
  const isFunction = typeof replacement === 'function';
  const template = isFunction ? '' : `${replacement}`;
  const isGlobal = pattern.global;
  if (isGlobal) pattern.lastIndex = 0;
  const results = [];
  let result = $execResult($call(pattern.exec, pattern, [string]));
  while (result !== null) {
    results.push(result);
    if (!isGlobal) break;
    $advance(pattern, string, `${result[0]}`);
    result = $execResult($call(pattern.exec, pattern, [string]));
  }
  let text = '';
  let begin = 0;
  for (const result of results) {
    const count = Math.max($length(result) - 1, 0);
    const matched = `${result[0]}`;
    const position = Math.min(Math.max(Math.trunc(+result.index) || 0, 0), string.length);
    const captures = [];
    for (let i = 1; i <= count; i++) captures.push(result[i] === undefined ? undefined : `${result[i]}`);
    const groups = result.groups;
    const values = groups === undefined ? [] : [groups];
    const replaced = isFunction
      ? `${$call(replacement, undefined, [matched, ...captures, position, string, ...values])}`
      : String_substituted(template, matched, string, position, captures, groups);
    if (position < begin) continue;
    text += string.slice(begin, position);
    text += replaced;
    begin = position + matched.length;
  }
  return begin >= string.length ? text : text + string.slice(begin);
}

// GetSubstitution (ECMAScript 22.1.3.19.1)
function String_substituted(template, matched, string, position, captures, groups) {
  if (groups === null) throw new TypeError('Cannot convert undefined or null to object');
  let text = '';
  let i = 0;
  for (let at = template.indexOf('$'); at >= 0; at = template.indexOf('$', i)) {
    text += template.slice(i, at);
    const next = template[at + 1];
    i = at + 2;
    if (next === '$') text += '$';
    else if (next === '&') text += matched;
    else if (next === '`') text += string.slice(0, position);
    else if (next === "'") text += string.slice(position + matched.length);
    else if (next >= '0' && next <= '9') {
      const two = template[i] >= '0' && template[i] <= '9' ? +template.slice(at + 1, at + 3) : 0;
      const number = two >= 1 && two <= captures.length ? two : +next;
      if (number < 1 || number > captures.length) text += `$${next}`;
      else text += captures[number - 1] ?? '';
      if (number === two) i++;
    } else if (next === '<' && groups !== undefined && template.includes('>', i)) {
      const end = template.indexOf('>', i);
      const group = groups[template.slice(i, end)];
      text += group === undefined ? '' : `${group}`;
      i = end + 1;
    } else {
      text += '$';
      i = at + 1;
    }
  }
  return text + template.slice(i);
}

function String_replaceAll(self, pattern, replacement) {
  if ($isRegExp(pattern)) {
    const string = $stringReceiver(self, 'replaceAll');
    if (!pattern.global) throw new TypeError('String.prototype.replaceAll called with a non-global RegExp argument');
    return String_replaceMatches(string, pattern, replacement);
  }
  if (typeof replacement !== 'function') return $replaceAll(self, pattern, replacement);
  const string = $stringReceiver(self, 'replaceAll');
  const search = `${pattern}`;
  const positions = $matchPositions(string, search);
  let result = '';
  let begin = 0;
  for (let i = 0; i < positions.length; i++) {
    const at = positions[i];
    result += string.slice(begin, at);
    result += `${replacement(search, at, string)}`;
    begin = at + search.length;
  }
  return result + string.slice(begin);
}
