// Methods of arrays that call functions of the script. If the callback is a leaf, `array/walk.rs` does the turns of
// the loop, as many as the fuel allows; the loop around has no body, so it costs the same in one piece or many.
// `self[i] !== undefined || i in self` tells holes from items without reading every item twice.

function Array_forEach(self, fn, thisArg) {
  const length = $begin(self, fn, "Array.prototype.forEach");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  if ($leaf(self, fn)) {
    for (let i = 0; i < length; i = $forEach(self, fn, i, length));
    return;
  }
  for (let i = 0; i < length; i++) {
    const item = self[i];
    if (item !== undefined || i in self) fn(item, i, self);
  }
}

function Array_map(self, fn, thisArg) {
  const length = $begin(self, fn, "Array.prototype.map");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  const out = $holes(length);
  if ($leaf(self, fn)) {
    for (let i = 0; i < length; i = $map(self, fn, i, length, out));
    return out;
  }
  for (let i = 0; i < length; i++) {
    const item = self[i];
    if (item !== undefined || i in self) out[i] = fn(item, i, self);
  }
  return out;
}

function Array_filter(self, fn, thisArg) {
  const length = $begin(self, fn, "Array.prototype.filter");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  const out = [];
  if ($leaf(self, fn)) {
    for (let i = 0; i < length; i = $filter(self, fn, i, length, out));
    return out;
  }
  for (let i = 0; i < length; i++) {
    const item = self[i];
    if ((item !== undefined || i in self) && fn(item, i, self)) out.push(item);
  }
  return out;
}

function Array_every(self, fn, thisArg) {
  const length = $begin(self, fn, "Array.prototype.every");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  if ($leaf(self, fn)) {
    let i = 0;
    for (; i >= 0 && i < length; i = $until(self, fn, i, length, false));
    return i >= 0;
  }
  for (let i = 0; i < length; i++) {
    const item = self[i];
    if ((item !== undefined || i in self) && !fn(item, i, self)) return false;
  }
  return true;
}

function Array_some(self, fn, thisArg) {
  const length = $begin(self, fn, "Array.prototype.some");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  if ($leaf(self, fn)) {
    let i = 0;
    for (; i >= 0 && i < length; i = $until(self, fn, i, length, true));
    return i < 0;
  }
  for (let i = 0; i < length; i++) {
    const item = self[i];
    if ((item !== undefined || i in self) && fn(item, i, self)) return true;
  }
  return false;
}

function Array_find(self, fn, thisArg) {
  const length = $begin(self, fn, "Array.prototype.find");
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

function Array_findIndex(self, fn, thisArg) {
  const length = $begin(self, fn, "Array.prototype.findIndex");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  if ($leaf(self, fn)) {
    let i = 0;
    for (; i >= 0 && i < length; i = $find(self, fn, i, length, []));
    return i < 0 ? -1 - i : -1;
  }
  for (let i = 0; i < length; i++) if (fn(self[i], i, self)) return i;
  return -1;
}

function Array_findLast(self, fn, thisArg) {
  const length = $begin(self, fn, "Array.prototype.findLast");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  for (let i = length - 1; i >= 0; i--) {
    const item = self[i];
    if (fn(item, i, self)) return item;
  }
}

function Array_findLastIndex(self, fn, thisArg) {
  const length = $begin(self, fn, "Array.prototype.findLastIndex");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  for (let i = length - 1; i >= 0; i--) if (fn(self[i], i, self)) return i;
  return -1;
}

function Array_flatMap(self, fn, thisArg) {
  const length = $length(self);
  if (typeof fn !== "function") throw new TypeError("flatMap mapper function is not callable");
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  const out = [];
  for (let i = 0; i < length; i++) {
    const item = self[i];
    if (item !== undefined || i in self) $append(out, fn(item, i, self));
  }
  return out;
}

function Array_reduce(self, fn, ...initial) {
  const length = $begin(self, fn, "Array.prototype.reduce");
  let i = 0;
  let value;
  if (initial.length > 0) {
    value = initial[0];
  } else {
    while (i < length && self[i] === undefined && !(i in self)) i++;
    if (i >= length) throw new TypeError("Reduce of empty array with no initial value");
    value = self[i++];
  }
  if ($leaf(self, fn)) {
    const state = [value];
    for (; i < length; i = $reduce(self, fn, i, length, state));
    return state[0];
  }
  for (; i < length; i++) {
    const item = self[i];
    if (item !== undefined || i in self) value = fn(value, item, i, self);
  }
  return value;
}

function Array_reduceRight(self, fn, ...initial) {
  const length = $begin(self, fn, "Array.prototype.reduceRight");
  let i = length - 1;
  let value;
  if (initial.length > 0) {
    value = initial[0];
  } else {
    while (i >= 0 && self[i] === undefined && !(i in self)) i--;
    if (i < 0) throw new TypeError("Reduce of empty array with no initial value");
    value = self[i--];
  }
  for (; i >= 0; i--) {
    const item = self[i];
    if (item !== undefined || i in self) value = fn(value, item, i, self);
  }
  return value;
}

function Array_from(self, items, fn, thisArg) {
  if (fn === undefined) return $isScriptIterable(items) ? Iterable_list(undefined, items) : $list(items);
  $callable(fn);
  if (thisArg !== undefined) fn = $bind(fn, thisArg);
  if ($fromIterable(items, '%Array%.from')) {
    const out = [];
    let i = 0;
    for (const item of $each(items)) {
      out.push(fn(item, i));
      i++;
    }
    return out;
  }
  const length = $length(items);
  const out = $holes(length);
  for (let i = 0; i < length; i++) out[i] = fn(items[i], i);
  return out;
}

async function Array_fromAsync(self, items, fn, thisArg) {
  if (fn !== undefined) {
    $callable(fn);
    if (thisArg !== undefined) fn = $bind(fn, thisArg);
  }
  const out = [];
  let i = 0;
  for await (const item of $each($asyncIterable(items) ? items : $list(items))) {
    out.push(fn === undefined ? item : await fn(item, i));
    i++;
  }
  return out;
}

function Array_sort(self, compare) {
  $comparator(compare);
  const length = $length(self);
  if (length < 2) return self;
  const items = [];
  Array_arrange(items, $sortable(self, items, length, false), compare);
  $sorted(self, items, length);
  return self;
}

function Array_toSorted(self, compare) {
  $comparator(compare);
  const length = $length(self);
  if (length > 4294967295) throw new RangeError("Invalid array length");
  const items = [];
  Array_arrange(items, $sortable(self, items, length, true), compare);
  return items;
}

function Array_arrange(items, length, compare) {
  if (length < 2 || (compare === undefined && Sort_order(items, length))) return;
  Sort_run(items, length, compare ?? Sort_texts);
}

function Sort_order(items, length) {
  const state = [[], [], 0, 0, 0, 0];
  let done;
  while (done === undefined) done = $order(items, length, state);
  return done;
}

function Sort_texts(left, right) {
  const [a, b] = [`${left}`, `${right}`];
  return a < b ? -1 : b < a ? 1 : 0;
}

// Timsort with the comparisons of V8 in the same order, so comparators with effects or contradictions give the same
// results. A result of `compare` is only tested for being negative, so NaN is 0; the plus refuses BigInts.

function Sort_run(items, length, compare) {
  const state = { items, compare, gallop: 7, starts: [], lengths: [] };
  let least = length;
  let odd = 0;
  while (least >= 64) {
    odd |= least & 1;
    least >>= 1;
  }
  least += odd;
  for (let low = 0; low < length; ) {
    let run = Sort_count(items, low, length, compare);
    if (run < least) {
      const forced = least < length - low ? least : length - low;
      Sort_insert(items, low, low + run, low + forced, compare);
      run = forced;
    }
    state.starts.push(low);
    state.lengths.push(run);
    Sort_collapse(state);
    low += run;
  }
  const lengths = state.lengths;
  while (lengths.length > 1) {
    const n = lengths.length - 2;
    Sort_merge(state, n > 0 && lengths[n - 1] < lengths[n + 1] ? n - 1 : n);
  }
}

function Sort_count(items, low, high, compare) {
  if (low + 1 === high) return 1;
  let run = 2;
  let previous = items[low + 1];
  const descending = +compare(previous, items[low]) < 0;
  for (let i = low + 2; i < high; i++) {
    const item = items[i];
    if (+compare(item, previous) < 0 !== descending) break;
    previous = item;
    run++;
  }
  if (descending) $reverse(items, low, low + run);
  return run;
}

function Sort_insert(items, low, start, high, compare) {
  if ($leaf(items, compare)) {
    for (let i = start; i < high; i++) $insert(items, i, $search(items, low, i, items[i], compare));
    return;
  }
  for (let i = start; i < high; i++) {
    const pivot = items[i];
    let left = low;
    let right = i;
    while (left < right) {
      const middle = left + ((right - left) >> 1);
      if (+compare(pivot, items[middle]) < 0) right = middle;
      else left = middle + 1;
    }
    $insert(items, i, left);
  }
}

function Sort_collapse(state) {
  const lengths = state.lengths;
  while (lengths.length > 1) {
    const n = lengths.length - 2;
    if (
      (n > 0 && lengths[n - 1] <= lengths[n] + lengths[n + 1]) ||
      (n > 1 && lengths[n - 2] <= lengths[n - 1] + lengths[n])
    ) {
      Sort_merge(state, lengths[n - 1] < lengths[n + 1] ? n - 1 : n);
    } else if (lengths[n] <= lengths[n + 1]) {
      Sort_merge(state, n);
    } else {
      break;
    }
  }
}

function Sort_merge(state, n) {
  const { items, compare, starts, lengths } = state;
  const [startA, startB] = [starts[n], starts[n + 1]];
  const [lengthA, lengthB] = [lengths[n], lengths[n + 1]];
  lengths[n] = lengthA + lengthB;
  starts.splice(n + 1, 1);
  lengths.splice(n + 1, 1);
  const skipped = Sort_right(items, items[startB], startA, lengthA, 0, compare);
  const a = startA + skipped;
  const restA = lengthA - skipped;
  if (restA === 0) return;
  const restB = Sort_left(items, items[a + restA - 1], startB, lengthB, lengthB - 1, compare);
  if (restB === 0) return;
  if (restA <= restB) Sort_low(state, a, restA, startB, restB);
  else Sort_high(state, a, restA, startB, restB);
}

// The index of `key`, before equal items.
function Sort_left(items, key, start, length, hint, compare) {
  let last = 0;
  let offset = 1;
  if (+compare(items[start + hint], key) < 0) {
    const most = length - hint;
    while (offset < most && +compare(items[start + hint + offset], key) < 0) {
      last = offset;
      offset = offset * 2 + 1;
    }
    if (offset > most) offset = most;
    last += hint;
    offset += hint;
  } else {
    const most = hint + 1;
    while (offset < most && !(+compare(items[start + hint - offset], key) < 0)) {
      last = offset;
      offset = offset * 2 + 1;
    }
    if (offset > most) offset = most;
    const nearer = last;
    last = hint - offset;
    offset = hint - nearer;
  }
  last++;
  while (last < offset) {
    const middle = last + ((offset - last) >> 1);
    if (+compare(items[start + middle], key) < 0) last = middle + 1;
    else offset = middle;
  }
  return offset;
}

// The index of `key`, after equal items.
function Sort_right(items, key, start, length, hint, compare) {
  let last = 0;
  let offset = 1;
  if (+compare(key, items[start + hint]) < 0) {
    const most = hint + 1;
    while (offset < most && +compare(key, items[start + hint - offset]) < 0) {
      last = offset;
      offset = offset * 2 + 1;
    }
    if (offset > most) offset = most;
    const nearer = last;
    last = hint - offset;
    offset = hint - nearer;
  } else {
    const most = length - hint;
    while (offset < most && !(+compare(key, items[start + hint + offset]) < 0)) {
      last = offset;
      offset = offset * 2 + 1;
    }
    if (offset > most) offset = most;
    last += hint;
    offset += hint;
  }
  last++;
  while (last < offset) {
    const middle = last + ((offset - last) >> 1);
    if (+compare(key, items[start + middle]) < 0) offset = middle;
    else last = middle + 1;
  }
  return offset;
}

// Merge two neighbouring runs from the left; the first one is not the longer one.
function Sort_low(state, startA, lengthA, startB, lengthB) {
  const { items, compare } = state;
  const left = items.slice(startA, startA + lengthA);
  const leaf = $leaf(items, compare);
  let target = startA;
  let a = 0;
  let b = startB;
  items[target++] = items[b++];
  lengthB--;
  let done = lengthB === 0 || lengthA === 1;
  while (!done) {
    const gallop = state.gallop;
    let winsA = 0;
    let winsB = 0;
    if (leaf) {
      const at = [target, a, b, lengthA, lengthB, 0, 0];
      for (; !done && at[5] < gallop && at[6] < gallop; done = $mergeLow(items, left, at, gallop, compare));
      [target, a, b, lengthA, lengthB, winsA, winsB] = at;
    } else while (winsA < gallop && winsB < gallop) {
      if (+compare(items[b], left[a]) < 0) {
        items[target++] = items[b++];
        winsB++;
        winsA = 0;
        if (--lengthB === 0) { done = true; break; }
      } else {
        items[target++] = left[a++];
        winsA++;
        winsB = 0;
        if (--lengthA === 1) { done = true; break; }
      }
    }
    if (done) break;
    state.gallop++;
    do {
      if (state.gallop > 1) state.gallop--;
      winsA = Sort_right(left, items[b], a, lengthA, 0, compare);
      if (winsA > 0) {
        $copy(left, a, items, target, winsA);
        target += winsA;
        a += winsA;
        lengthA -= winsA;
        if (lengthA <= 1) { done = true; break; }
      }
      items[target++] = items[b++];
      if (--lengthB === 0) { done = true; break; }
      winsB = Sort_left(items, left[a], b, lengthB, 0, compare);
      if (winsB > 0) {
        $copy(items, b, items, target, winsB);
        target += winsB;
        b += winsB;
        lengthB -= winsB;
        if (lengthB === 0) { done = true; break; }
      }
      items[target++] = left[a++];
      if (--lengthA === 1) { done = true; break; }
    } while (winsA >= 7 || winsB >= 7);
    if (!done) state.gallop++;
  }
  if (lengthB > 0 && lengthA === 1) {
    $copy(items, b, items, target, lengthB);
    target += lengthB;
  }
  $copy(left, a, items, target, lengthA);
}

// Merge two neighbouring runs from the right; the second one is the shorter one.
function Sort_high(state, startA, lengthA, startB, lengthB) {
  const { items, compare } = state;
  const right = items.slice(startB, startB + lengthB);
  const leaf = $leaf(items, compare);
  let target = startB + lengthB - 1;
  let a = startA + lengthA - 1;
  let b = lengthB - 1;
  items[target--] = items[a--];
  lengthA--;
  let done = lengthA === 0 || lengthB === 1;
  while (!done) {
    const gallop = state.gallop;
    let winsA = 0;
    let winsB = 0;
    if (leaf) {
      const at = [target, a, b, lengthA, lengthB, 0, 0];
      for (; !done && at[5] < gallop && at[6] < gallop; done = $mergeHigh(items, right, at, gallop, compare));
      [target, a, b, lengthA, lengthB, winsA, winsB] = at;
    } else while (winsA < gallop && winsB < gallop) {
      if (+compare(right[b], items[a]) < 0) {
        items[target--] = items[a--];
        winsA++;
        winsB = 0;
        if (--lengthA === 0) { done = true; break; }
      } else {
        items[target--] = right[b--];
        winsB++;
        winsA = 0;
        if (--lengthB === 1) { done = true; break; }
      }
    }
    if (done) break;
    state.gallop++;
    do {
      if (state.gallop > 1) state.gallop--;
      winsA = lengthA - Sort_right(items, right[b], startA, lengthA, lengthA - 1, compare);
      if (winsA > 0) {
        target -= winsA;
        a -= winsA;
        $copy(items, a + 1, items, target + 1, winsA);
        lengthA -= winsA;
        if (lengthA === 0) { done = true; break; }
      }
      items[target--] = right[b--];
      if (--lengthB === 1) { done = true; break; }
      winsB = lengthB - Sort_left(right, items[a], 0, lengthB, lengthB - 1, compare);
      if (winsB > 0) {
        target -= winsB;
        b -= winsB;
        $copy(right, b + 1, items, target + 1, winsB);
        lengthB -= winsB;
        if (lengthB <= 1) { done = true; break; }
      }
      items[target--] = items[a--];
      if (--lengthA === 0) { done = true; break; }
    } while (winsA >= 7 || winsB >= 7);
    if (!done) state.gallop++;
  }
  if (lengthA > 0 && lengthB === 1) {
    target -= lengthA;
    $copy(items, a - lengthA + 1, items, target + 1, lengthA);
  }
  $copy(right, 0, items, target - lengthB + 1, lengthB);
}
