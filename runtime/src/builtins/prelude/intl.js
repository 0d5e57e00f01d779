// Methods of `Intl` that read iterables, and `toLocaleString` of what has parts.

function ListFormat_format(self, list) {
  $listFormat(self, false);
  return $formatList(self, strings_of_list(list));
}

function ListFormat_formatToParts(self, list) {
  $listFormat(self, true);
  return $formatListToParts(self, strings_of_list(list));
}

function strings_of_list(list) {
  const out = [];
  if (list === undefined) return out;
  for (const item of $each(list)) {
    $listItem(item);
    out.push(item);
  }
  return out;
}

function Array_toLocaleString(self, locales, options) {
  const length = $joining(self);
  return length === 0 ? "" : Array_localized(self, length, [locales, options]);
}

function Array_localized(self, length, args) {
  let text = "";
  try {
    for (let i = 0; i < length; i++) {
      if (i > 0) text += ",";
      const item = self[i];
      if (item === undefined || item === null) continue;
      const fn = item.toLocaleString;
      $callable(fn);
      text += `${$call(fn, item, args)}`;
    }
  } finally {
    $joined();
  }
  return text;
}

function Uint8Array_toLocaleString(self, locales, options) {
  const length = $viewLength(self, "toLocaleString");
  const parts = [];
  for (let i = 0; i < length; i++) parts.push(self[i]?.toLocaleString(locales, options));
  return parts.join(",");
}

function Object_toLocaleString(self) {
  if (self === undefined || self === null) {
    throw new TypeError("Object.prototype.toLocaleString called on null or undefined");
  }
  return $call($method(self, "toString"), self, []);
}
