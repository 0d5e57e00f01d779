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
  const length = $length(self);
  const parts = [];
  for (let i = 0; i < length; i++) {
    const item = self[i];
    parts.push(item === undefined || item === null ? "" : item.toLocaleString(locales, options));
  }
  return parts.join(",");
}

function Uint8Array_toLocaleString(self, locales, options) {
  const length = $viewLength(self, "toLocaleString");
  const parts = [];
  for (let i = 0; i < length; i++) parts.push(self[i].toLocaleString(locales, options));
  return parts.join(",");
}

function Object_toLocaleString(self) {
  return self.toString();
}
