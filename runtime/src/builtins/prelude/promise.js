function AggregateError_new(receiver, errors, message, options) {
  const text = message === undefined ? undefined : `${message}`;
  return $aggregate_error(Iterable_items($combinable(errors)), text, options);
}

function Promise_new(receiver, executor) {
  const [promise, resolve, reject] = $executor(executor);
  try {
    executor(resolve, reject);
  } catch (error) {
    reject(error);
  }
  return promise;
}

function Promise_try(receiver, fn, ...args) {
  $promise_class(receiver, 'Promise.try');
  const [promise, resolve, reject] = $resolvers();
  try {
    resolve($call($called(fn), undefined, args));
  } catch (error) {
    reject(error);
  }
  return promise;
}

function Promise_all(receiver, iterable) {
  $promise_class(receiver, 'Promise.all');
  return Promise_combined(iterable, $promise_all, 0);
}

function Promise_allSettled(receiver, iterable) {
  $promise_class(receiver, 'Promise.allSettled');
  return Promise_combined(iterable, $promise_all_settled, 1);
}

function Promise_any(receiver, iterable) {
  $promise_class(receiver, 'Promise.any');
  return Promise_combined(iterable, $promise_any, 2);
}

function Promise_race(receiver, iterable) {
  $promise_class(receiver, 'Promise.race');
  return Promise_combined(iterable, $promise_race, 3);
}

// `combine` takes items of which none is a promise with a `then` of its own. Where a script has such promises or its own
// iterables, the calls of both are in the order of the specification.
function Promise_combined(iterable, combine, kind) {
  let state;
  try {
    let items = $combinable(iterable);
    if (!$isScriptIterable(iterable)) {
      items = [...iterable];
      if (!$own_then(items)) return combine(items);
    }
    state = $combinator();
    for (const item of $each(items)) {
      const promise = $promise_of(item);
      const [fulfilled, rejected] = $combinator_part(state, kind);
      if ($own_then(promise)) $call($method(promise, 'then'), promise, [fulfilled, rejected]);
      else $then(promise, fulfilled, rejected);
    }
    $combinator_end(state, kind);
  } catch (error) {
    if (state === undefined) return $promise_reject(error);
    $combinator_failed(state, error);
  }
  return state[0];
}

function Promise_catch(self, handler) {
  return $call($method(self, 'then'), self, [undefined, handler]);
}

function Promise_finally(self, handler) {
  $finally_receiver(self);
  if (typeof handler !== 'function') return Promise_then(self, [handler, handler]);
  return Promise_then(self, [
    (value) => Promise_then($promise_of(handler()), [() => value]),
    (reason) => Promise_then($promise_of(handler()), [() => {
      throw reason;
    }]),
  ]);
}

function Promise_then(self, handlers) {
  return $call($method(self, 'then'), self, handlers);
}
