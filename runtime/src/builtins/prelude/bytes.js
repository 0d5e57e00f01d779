// Methods of `Uint8Array` that call functions of the script, and functions that give a promise.

function Uint8Array_new(receiver, items) {
  return $bytes(Iterable_list(undefined, items));
}

function Uint8Array_from(self, items, fn, thisArg) {
  if (fn !== undefined) $callable(fn);
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  $fromIterable(items, "%TypedArray%.from");
  const list = $isScriptIterable(items) ? Iterable_list(undefined, items) : items;
  if (fn === undefined) return $bytes(list);
  return Uint8Array_mapped($list(list), fn);
}

function Uint8Array_mapped(list, fn) {
  const length = list.length;
  const out = new Uint8Array(length);
  for (let i = 0; i < length; i++) out[i] = fn(list[i], i);
  return out;
}

function Uint8Array_forEach(self, fn, thisArg) {
  const length = $view(self, fn, "forEach");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  if ($leaf(self, fn)) {
    for (let i = 0; i < length; i = $forEach(self, fn, i, length));
    return;
  }
  for (let i = 0; i < length; i++) fn(self[i], i, self);
}

function Uint8Array_map(self, fn, thisArg) {
  const length = $view(self, fn, "map");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  const out = new Uint8Array(length);
  if ($leaf(self, fn)) {
    for (let i = 0; i < length; i = $map(self, fn, i, length, out));
    return out;
  }
  for (let i = 0; i < length; i++) out[i] = fn(self[i], i, self);
  return out;
}

function Uint8Array_filter(self, fn, thisArg) {
  const length = $view(self, fn, "filter");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  const out = [];
  if ($leaf(self, fn)) {
    for (let i = 0; i < length; i = $filter(self, fn, i, length, out));
    return $bytes(out);
  }
  for (let i = 0; i < length; i++) {
    const item = self[i];
    if (fn(item, i, self)) out.push(item);
  }
  return $bytes(out);
}

function Uint8Array_every(self, fn, thisArg) {
  const length = $view(self, fn, "every");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  if ($leaf(self, fn)) {
    let i = 0;
    for (; i >= 0 && i < length; i = $until(self, fn, i, length, false));
    return i >= 0;
  }
  for (let i = 0; i < length; i++) if (!fn(self[i], i, self)) return false;
  return true;
}

function Uint8Array_some(self, fn, thisArg) {
  const length = $view(self, fn, "some");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  if ($leaf(self, fn)) {
    let i = 0;
    for (; i >= 0 && i < length; i = $until(self, fn, i, length, true));
    return i < 0;
  }
  for (let i = 0; i < length; i++) if (fn(self[i], i, self)) return true;
  return false;
}

function Uint8Array_find(self, fn, thisArg) {
  const length = $view(self, fn, "find");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  if ($leaf(self, fn)) {
    const found = [];
    for (let i = 0; i >= 0 && i < length; i = $find(self, fn, i, length, found));
    return found[0];
  }
  for (let i = 0; i < length; i++) {
    const item = self[i];
    if (fn(item, i, self)) return item;
  }
}

function Uint8Array_findIndex(self, fn, thisArg) {
  const length = $view(self, fn, "findIndex");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  if ($leaf(self, fn)) {
    let i = 0;
    for (; i >= 0 && i < length; i = $find(self, fn, i, length, []));
    return i < 0 ? -1 - i : -1;
  }
  for (let i = 0; i < length; i++) if (fn(self[i], i, self)) return i;
  return -1;
}

function Uint8Array_findLast(self, fn, thisArg) {
  const length = $view(self, fn, "findLast");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  for (let i = length - 1; i >= 0; i--) {
    const item = self[i];
    if (fn(item, i, self)) return item;
  }
}

function Uint8Array_findLastIndex(self, fn, thisArg) {
  const length = $view(self, fn, "findLastIndex");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  for (let i = length - 1; i >= 0; i--) if (fn(self[i], i, self)) return i;
  return -1;
}

function Uint8Array_reduce(self, fn, ...initial) {
  const length = $view(self, fn, "reduce");
  if (length === 0 && initial.length === 0) throw new TypeError("Reduce of empty array with no initial value");
  let i = initial.length > 0 ? 0 : 1;
  let value = initial.length > 0 ? initial[0] : self[0];
  if ($leaf(self, fn)) {
    const state = [value];
    for (; i < length; i = $reduce(self, fn, i, length, state));
    return state[0];
  }
  for (; i < length; i++) value = fn(value, self[i], i, self);
  return value;
}

function Uint8Array_reduceRight(self, fn, ...initial) {
  const length = $view(self, fn, "reduceRight");
  if (length === 0 && initial.length === 0) throw new TypeError("Reduce of empty array with no initial value");
  let i = initial.length > 0 ? length - 1 : length - 2;
  let value = initial.length > 0 ? initial[0] : self[length - 1];
  for (; i >= 0; i--) value = fn(value, self[i], i, self);
  return value;
}

function Uint8Array_sort(self, compare) {
  $comparator(compare);
  const length = $viewLength(self, "sort");
  if (compare === undefined) return $sortBytes(self);
  if (length < 2) return self;
  const sorted = Bytes_sorted([...self], compare);
  sorted.length = Math.min(length, self.length);
  if (sorted.length > 0) self.set(sorted);
  return self;
}

function Uint8Array_toSorted(self, compare) {
  $comparator(compare);
  $viewLength(self, "toSorted");
  const out = new Uint8Array(self);
  if (compare === undefined) return $sortBytes(out);
  if (out.length > 1) out.set(Bytes_sorted([...out], compare));
  return out;
}

// A merge sort with the comparisons of V8's typed arrays in the same order.

function Bytes_sorted(items, compare) {
  const target = items.slice();
  Bytes_sort(items, 0, items.length, target, compare);
  return target;
}

function Bytes_sort(source, from, to, target, compare) {
  const middle = from + ((to - from) >> 1);
  if (middle - from > 1) Bytes_sort(target, from, middle, source, compare);
  if (to - middle > 1) Bytes_sort(target, middle, to, source, compare);
  let left = from;
  let right = middle;
  for (let at = from; at < to; at++) {
    if (left < middle && (right >= to || !(+compare(source[left], source[right]) > 0))) target[at] = source[left++];
    else target[at] = source[right++];
  }
}

async function SubtleCrypto_digest(self, ...values) {
  return $digest(self, values);
}
