// Methods of `Map` and `Set` that call functions of the script.

function Map_forEach(self, fn) {
  const values = $values(self, fn, "Map.prototype.forEach");
  for (const value of values) fn(value, $lastKey(values), self);
}

function Map_groupBy(self, items, fn) {
  $iterable(items);
  $callable(fn);
  const groups = new Map();
  let i = 0;
  for (const item of $each(items)) {
    const key = fn(item, i);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
    i++;
  }
  return groups;
}

function Set_forEach(self, fn) {
  for (const value of $values(self, fn, "Set.prototype.forEach")) fn(value, value, self);
}

function Set_union(self, other) {
  $setLike(self, other, "Set.prototype.union");
  const out = new Set(self);
  for (const key of Set_keys(other)) out.add(key);
  return out;
}

function Set_intersection(self, other) {
  const size = $setLike(self, other, "Set.prototype.intersection");
  const out = new Set();
  if (self.size <= size) {
    for (const value of self) if (other.has(value)) out.add(value);
  } else {
    for (const key of Set_keys(other)) if (self.has(key)) out.add(key);
  }
  return out;
}

function Set_difference(self, other) {
  const size = $setLike(self, other, "Set.prototype.difference");
  const out = new Set(self);
  if (self.size <= size) {
    for (const value of self) if (other.has(value)) out.delete(value);
  } else {
    for (const key of Set_keys(other)) out.delete(key);
  }
  return out;
}

function Set_symmetricDifference(self, other) {
  $setLike(self, other, "Set.prototype.symmetricDifference");
  const out = new Set(self);
  for (const key of Set_keys(other)) {
    if (self.has(key)) out.delete(key);
    else out.add(key);
  }
  return out;
}

function Set_isSubsetOf(self, other) {
  const size = $setLike(self, other, "Set.prototype.isSubsetOf");
  if (self.size > size) return false;
  for (const value of self) if (!other.has(value)) return false;
  return true;
}

function Set_isSupersetOf(self, other) {
  const size = $setLike(self, other, "Set.prototype.isSupersetOf");
  if (self.size < size) return false;
  for (const key of Set_keys(other)) if (!self.has(key)) return false;
  return true;
}

function Set_isDisjointFrom(self, other) {
  const size = $setLike(self, other, "Set.prototype.isDisjointFrom");
  if (self.size <= size) {
    for (const value of self) if (other.has(value)) return false;
  } else {
    for (const key of Set_keys(other)) if (self.has(key)) return false;
  }
  return true;
}

// The keys of anything like a set: `keys()` of a script may give any object with a `next`.
function Set_keys(other) {
  const keys = other.keys();
  if ($isIterator(keys)) return keys;
  const next = keys.next;
  const out = [];
  for (let step = $call(next, keys, []); !step.done; step = $call(next, keys, [])) out.push(step.value);
  return out;
}
