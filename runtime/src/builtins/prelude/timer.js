function timer_setTimeout(receiver, callback, delay, ...args) {
  return $set_timer(callback, delay, args, false);
}

function timer_setInterval(receiver, callback, delay, ...args) {
  return $set_timer(callback, delay, args, true);
}

function timer_sleep(receiver, ms) {
  return $sleep(ms);
}

function timer_sleep_now(receiver, ms) {
  const over = $sleep_now(ms);
  return $wait(over);
}

function AbortController_abort(controller, reason) {
  $abort($abort_target(controller), $abort_reason(reason));
}

function AbortSignal_fire(receiver, signal, reason) {
  const [event, dependents] = $begin_abort(signal, reason);
  if (event === undefined) return;
  for (;;) {
    const listener = $next_listener(signal);
    if (listener === undefined) break;
    try {
      if (typeof listener === 'function') listener(event);
      else listener.handleEvent(event);
    } catch (error) {
      $uncaught(error);
    }
  }
  for (const dependent of dependents) $abort(dependent, reason);
}
