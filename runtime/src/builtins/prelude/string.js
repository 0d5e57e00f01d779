// Methods of strings that call functions of the script.

function String_replace(self, pattern, replacement) {
  if (typeof replacement !== 'function') return $replace(self, pattern, replacement);
  const string = $stringReceiver(self, 'replace');
  const search = `${pattern}`;
  const at = string.indexOf(search);
  if (at < 0) return string;
  const before = string.slice(0, at);
  return `${before}${replacement(search, at, string)}${string.slice(at + search.length)}`;
}

function String_replaceAll(self, pattern, replacement) {
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
