// Random URLs, made of pieces, with setters and searchParams.
const SCHEMES = ['http', 'https', 'ftp', 'file', 'mailto', 'data', 'ws', 'foo', 'HTTP', 'blob:https', 'javascript', 'h-t+p.1', '1x', ''];
const HOSTS = ['example.com', 'EXAMPLE.com', 'a.b-c.d', '127.0.0.1', '0x7f.1', '256.1.1.1', '[::1]', '[1:2::3:4]', 'münchen.de', 'ex%41mple.com', 'a b', '', 'xn--mnchen-3ya.de', 'a..b', '日本.jp', 'a_b', '1.2.3', 'faß.de', '*', 'a%00b', '[::1', 'localhost', 'a|b', "it's"];
const PATHS = ['', '/', '/a/b', '/a/../b', '/./a', '/a//b', '/%41%zz', '/é', '/a b', '/a;b=c', "/it's", '/a?x', '/{}|^`"<>', '//x', '\\a\\b', '/C:/x', '/C|/x', 'a', '../..', '/a/%2e%2E/b', '/..', '/a/.', '/\u{1f600}', '/\\ud800'];
const QUERIES = ['', '?', '?a=1', '?a=1&b=2&a=3', '?q=é', '?a b', "?it's", '?%41=%zz', '?a+b=c%20d', '?"<>`{}|^', '?x=\u{1f600}', '?&&=', '?a=b=c'];
const HASHES = ['', '#', '#x', '#a b', '#é', '#`"<>{}|^', '#%41', "#it's"];
const VALUES = [...HOSTS, ...PATHS, ...QUERIES, ...HASHES, '8080', '80', '443', '99999', '-1', '8a', 'http', 'https:', 'foo', 'file', 'u:p', 'a@b', 'x:81', 'host:99/p', '  x ', 'a\\tb'];
const PROPERTIES = ['href', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'];

export function expression({ random, below, pick }) {
  const quoted = (text) => JSON.stringify(text).replaceAll('\\\\ud800', '\\ud800');
  const authority = () => `${pick(['//', '//', '//', '/', '', '\\\\'])}${pick(['', '', '', 'u@', 'u:p@', 'u:p:q@', '@', 'é:"@'])}${pick(HOSTS)}${pick(['', '', '', ':80', ':443', ':8080', ':', ':x', ':65536', ':007'])}`;
  const text = () => {
    const scheme = random() < 0.75 ? `${pick(SCHEMES)}:` : '';
    const odd = random() < 0.05 ? pick([' ', '\n', '\t', '\0']) : '';
    return `${odd}${scheme}${random() < 0.8 ? authority() : ''}${pick(PATHS)}${pick(QUERIES)}${pick(HASHES)}${odd}`;
  };
  const fields = '[u.href, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, [...u.searchParams], u.searchParams.size]';
  const base = random() < 0.3 ? `, ${quoted(random() < 0.7 ? `${pick(['http', 'https', 'file', 'foo'])}://${pick(['h', 'example.com:81', ''])}${pick(PATHS)}${pick(QUERIES)}` : text())}` : '';
  switch (below(6)) {
    case 0: return `{ const u = new URL(${quoted(text())}${base}); return ${fields}; }`.replace(/^\{(.*)\}$/s, '(() => {$1})()');
    case 1: return `[URL.canParse(${quoted(text())}${base}), String(URL.parse(${quoted(text())}${base}))]`;
    case 2: case 3: {
      const start = pick(['http://h/p?q#f', 'https://u:p@example.com:81/a/b?x=1#y', 'file:///a/b', 'mailto:x', 'foo://h/p', 'foo:/p', 'ws://h:80', 'data:text/plain,x ?q', 'file://h/x']);
      const sets = Array.from({ length: 1 + below(3) }, () => `u.${pick(PROPERTIES)} = ${quoted(random() < 0.2 ? text() : pick(VALUES))};`).join(' ');
      const touched = random() < 0.5 ? 'u.searchParams;' : '';
      return `(() => { const u = new URL(${quoted(start)}); ${touched} ${sets} return ${fields}; })()`;
    }
    default: {
      const name = () => quoted(pick(['a', 'b', 'é', 'a b', '', '+', '%41', '&', '=', "'", '\u{1f600}', '*-._~', '\\ud800x']));
      const calls = ['append', 'delete', 'delete', 'set', 'get', 'getAll', 'has', 'sort', 'toString'];
      const call = () => {
        const method = pick(calls);
        const list = { append: `${name()}, ${name()}`, set: `${name()}, ${name()}`, delete: random() < 0.5 ? name() : `${name()}, ${name()}`, has: random() < 0.5 ? name() : `${name()}, ${name()}`, sort: '', toString: '' };
        return `r.push(p.${method}(${list[method] ?? name()}));`;
      };
      const body = Array.from({ length: 1 + below(4) }, call).join(' ');
      const start = random() < 0.5 ? `const u = new URL(${quoted(`http://h/p${pick(QUERIES)}#f`)}), p = u.searchParams;` : `const p = new URLSearchParams(${quoted(pick(QUERIES))}), u = p;`;
      return `(() => { ${start} const r = []; ${body} return [r, [...p], String(p), String(u)]; })()`;
    }
  }
}
