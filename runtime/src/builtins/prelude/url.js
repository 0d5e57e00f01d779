// Methods of `URLSearchParams` that call functions of the script.

function URLSearchParams_forEach(self, fn) {
  $searchParams(self, fn);
  for (const [name, value] of self) fn(value, name, self);
}
