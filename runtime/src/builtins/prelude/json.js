function JSON_parse(json, text, reviver) {
  const value = $json_parse(text);
  return typeof reviver === 'function' ? JSON_revived({ '': value }, '', reviver) : value;
}

function JSON_revived(holder, key, reviver) {
  const value = $json_own(holder, key);
  if (typeof value === 'object' && value !== null) {
    if (Array.isArray(value)) {
      const length = value.length;
      for (let index = 0; index < length; index += 1) {
        $json_define(value, index, JSON_revived(value, String(index), reviver));
      }
    } else {
      for (const name of Object.keys(value)) {
        $json_define(value, name, JSON_revived(value, name, reviver));
      }
    }
  }
  return $call(reviver, holder, [key, value]);
}

function JSON_stringify(json, value, replacer, space) {
  if (typeof replacer === 'function') {
    return $json_stringify(JSON_replaced({ '': value }, '', replacer, [], []), undefined, space);
  }
  return $json_stringify(value, replacer, space);
}

// A copy of what `JSON.stringify` would write: data that has nothing left to convert or replace.
function JSON_replaced(holder, key, replacer, path, keys) {
  const value = $call(replacer, holder, [key, $json_to($json_own(holder, key), key)]);
  if (typeof value === 'bigint') {
    throw new TypeError('Do not know how to serialize a BigInt');
  }
  if (typeof value !== 'object' || value === null) {
    return typeof value === 'function' ? undefined : value;
  }
  $json_cycle(path, keys, key, value);
  path.push(value);
  keys.push(key);
  let copy;
  if (Array.isArray(value)) {
    copy = [];
    const length = value.length;
    for (let index = 0; index < length; index += 1) {
      copy.push(JSON_replaced(value, String(index), replacer, path, keys));
    }
  } else {
    copy = {};
    for (const name of Object.keys(value)) {
      const part = JSON_replaced(value, name, replacer, path, keys);
      if (part !== undefined) {
        $json_define(copy, name, part);
      }
    }
  }
  path.pop();
  keys.pop();
  return copy;
}

