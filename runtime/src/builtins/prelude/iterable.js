// Iterables of the script. A loop over `$each(value)` takes them, too.

function Iterable_list(receiver, items) {
  const out = [];
  for (const item of $each(items)) out.push(item);
  return out;
}

function Iterable_items(items) {
  return $isScriptIterable(items) ? Iterable_list(undefined, items) : [...items];
}

function Map_new(receiver, entries) {
  const map = new Map();
  for (const entry of $each(entries)) $putEntry(map, entry);
  return map;
}

function Set_new(receiver, values) {
  const set = new Set();
  for (const value of $each(values)) set.add(value);
  return set;
}

function Object_fromEntries(receiver, entries) {
  const object = {};
  for (const entry of $each(entries)) $defineEntry(object, entry);
  return object;
}

function Params_new(receiver, pairs) {
  const list = [];
  for (const pair of $each(pairs)) list.push(Params_pair(pair));
  return new URLSearchParams(list);
}

// Node converts each pair before it reads the next one, and each item of a pair that is no array.
function Params_pair(pair) {
  if (!$isScriptIterable(pair) || Array.isArray(pair)) return $queryPair(pair);
  const texts = [];
  for (const part of $each(pair)) texts.push(`${part}`);
  return $queryPair(texts);
}

// A synchronous iterator as an asynchronous one (ECMAScript 27.1.4).
function Iterable_asyncFromSync(iterator, next) {
  return {
    next: (value) => Iterable_call(iterator, next, value),
    return: (value) => Iterable_return(iterator, value),
    throw: (reason) => Iterable_throw(iterator, reason),
  };
}

function Iterable_call(iterator, method, value) {
  try {
    return Iterable_settled($call(method, iterator, [value]));
  } catch (error) {
    return $promise_reject(error);
  }
}

function Iterable_return(iterator, value) {
  const method = iterator.return;
  if (method === undefined || method === null) return $promise_of({ value, done: true });
  return Iterable_call(iterator, method, value);
}

function Iterable_throw(iterator, reason) {
  const method = iterator.throw;
  if (method === undefined || method === null) return $promise_reject(reason);
  return Iterable_call(iterator, method, reason);
}

function Iterable_settled(result) {
  if ((typeof result !== "object" && typeof result !== "function") || result === null) $notAResult(result);
  const done = !!result.done;
  return $then($promise_of(result.value), (value) => ({ value, done }));
}

