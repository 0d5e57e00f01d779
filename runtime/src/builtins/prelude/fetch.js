// `fetch`, and the methods of `Headers` and responses that call functions of the script or give a promise.

async function Fetch_fetch(receiver, input, init) {
  const headers = $fetchHeaders(init);
  return $fetch(input, init, new Headers($isScriptIterable(headers) ? Headers_list(headers) : headers));
}

function Headers_new(receiver, pairs) {
  return new Headers(Headers_list(pairs));
}

function Headers_list(pairs) {
  const list = [];
  for (const pair of $each(pairs)) list.push($isScriptIterable(pair) ? Iterable_list(undefined, pair) : pair);
  return list;
}

function Headers_forEach(self, ...rest) {
  const fn = $headersEach(self, rest);
  for (const [name, value] of self) fn(value, name, self);
}

async function Response_text(self) {
  return Response_decoded($takeBody(self));
}

async function Response_json(self) {
  return JSON.parse(Response_decoded($takeBody(self)));
}

async function Response_bytes(self) {
  return Response_encoded($takeBody(self));
}

async function Response_arrayBuffer(self) {
  return Response_encoded($takeBody(self)).buffer;
}

function Response_decoded(body) {
  if (typeof body !== 'string') return new TextDecoder().decode(body);
  return body.startsWith('\uFEFF') ? body.slice(1) : body;
}

function Response_encoded(body) {
  return typeof body === 'string' ? new TextEncoder().encode(body) : body;
}
