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
