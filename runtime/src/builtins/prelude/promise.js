function AggregateError_new(receiver, errors, message, options) {
  return $aggregate_error(Iterable_items($combinable(errors)), message, options);
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

function Promise_all(receiver, iterable) {
  $promise_class(receiver, 'Promise.all');
  try {
    return $promise_all(Iterable_items($combinable(iterable)));
  } catch (error) {
    return $promise_reject(error);
  }
}

function Promise_allSettled(receiver, iterable) {
  $promise_class(receiver, 'Promise.allSettled');
  try {
    return $promise_all_settled(Iterable_items($combinable(iterable)));
  } catch (error) {
    return $promise_reject(error);
  }
}

function Promise_any(receiver, iterable) {
  $promise_class(receiver, 'Promise.any');
  try {
    return $promise_any(Iterable_items($combinable(iterable)));
  } catch (error) {
    return $promise_reject(error);
  }
}

function Promise_race(receiver, iterable) {
  $promise_class(receiver, 'Promise.race');
  try {
    return $promise_race(Iterable_items($combinable(iterable)));
  } catch (error) {
    return $promise_reject(error);
  }
}

function Promise_finally(promise, handler) {
  $finally_receiver(promise);
  if (typeof handler !== 'function') {
    return $then(promise, handler, handler);
  }
  return $then(
    promise,
    (value) => $then($promise_of(handler()), () => value),
    (reason) => $then($promise_of(handler()), () => {
      throw reason;
    }),
  );
}

