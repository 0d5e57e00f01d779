// Methods of `Intl` that read iterables.

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
