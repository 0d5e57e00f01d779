// `Object.groupBy`, and the methods of functions.

// A function of the prelude, so that its callers have frames.
function Error_captureStackTrace(receiver, error, above) {
  $capture(error, above);
}

function Object_groupBy(self, items, fn) {
  $iterable(items);
  $callable(fn);
  const groups = Object.create(null);
  let i = 0;
  for (const item of $each(items)) {
    $group(groups, fn(item, i), item);
    i++;
  }
  return groups;
}

function Function_call(self, thisArg, ...args) {
  return $call(self, thisArg, args);
}

function Function_apply(self, thisArg, args) {
  return $call(self, thisArg, $arguments(self, args));
}
