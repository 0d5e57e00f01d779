"""Writes texts of Python's `repr`, `pprint` and `csv`, with the data that they are, for the tests of `text_form`.

    python3 tests/python/text_forms.py

One JSON document a line: the text, and its data as `parseText` gives them. The seed is fixed.
"""

import collections
import csv
import datetime
import decimal
import io
import json
import pathlib
import pprint
import random
import uuid

FOLDER = pathlib.Path(__file__).parent.parent.parent / "runtime/src/text_form/tests"
CASES = 250
TEXTS = ["", "a", "it's", 'say "hi"', "both ' and \"", "back\\slash", "line\nbreak", "tab\there", "\r", "é", "日本", "😀",
         "\x00\x07\x1b", "\u2028", "a,b", "a;b", "{x}", "[1]", "None", "  pad  ", "\xa0", "\ud83d" + "x", "very " * 30]


def value(random, depth):
    kind = random.randrange(13 if depth > 0 else 9)
    if kind == 0:
        return None
    if kind == 1:
        return random.random() < 0.5
    if kind == 2:
        return random.choice([0, 1, -1, 42, 2**53, -(2**53), 2**53 + 1, 10**30, random.randrange(-10**9, 10**9)])
    if kind == 3:
        return random.choice([0.5, -0.0, 1e100, 1e-7, 3.14, 1e16, -2.5, random.uniform(-1e6, 1e6)])
    if kind in (4, 5):
        return random.choice(TEXTS)
    if kind == 6:
        return random.choice([datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
                              datetime.timedelta(days=1), decimal.Decimal("1.50"), uuid.UUID(int=5), pathlib.PurePosixPath("/a (b)/'c'")])
    if kind == 7:
        return random.choice([b"bytes", b"it\xff", 1 + 2j, 3j, int, ..., collections.OrderedDict(a=1), collections.deque([1, [2]])])
    if kind == 8:
        return random.choice([(), [], {}, set(), frozenset(), frozenset({1}), {1}, {"a"}, {(1, 2)}])
    size = random.randrange(5)
    if kind == 9:
        return tuple(value(random, depth - 1) for _ in range(size))
    if kind in (10, 11):
        return {key(random): value(random, depth - 1) for _ in range(size)}
    return [value(random, depth - 1) for _ in range(size)]


def key(random):
    return random.choice([random.choice(TEXTS), random.choice(TEXTS), f"k{random.randrange(9)}", 1, 2.5, None, True, (1, "a"), (),
                          datetime.date(2024, 1, 2), b"k"])


def data(value):
    """The same as JSON has it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in value)
    if isinstance(value, int):
        return value if abs(value) <= 2**53 else repr(value)
    if isinstance(value, float):
        return value
    if type(value) in (list, tuple):
        return [data(item) for item in value]
    if type(value) is dict:
        return {name(key): data(item) for key, item in value.items()}
    if type(value) is set or value == frozenset():
        return [data(item) for item in value]
    return repr(value)


def sources(value):
    """The values that stay as their source."""
    if type(value) in (list, tuple, set, dict):
        items = [*value.items()] if type(value) is dict else value
        return [source for item in items for source in sources(item)]
    plain = value is None or value == frozenset() or isinstance(value, (bool, str, int, float))
    return [] if plain else [repr(value)]


def name(key):
    return data(key) if isinstance(key, str) else repr(key)


def python():
    random_ = random.Random(1)
    seen = set()
    while len(seen) < CASES:
        whole = value(random_, 4)
        if not isinstance(whole, (list, tuple, dict)) and type(whole) is not set or whole == set() or isinstance(whole, (collections.OrderedDict, collections.deque)):
            continue
        for text in (repr(whole), pprint.pformat(whole, width=40)):
            # `pprint` sorts keys, so objects are compared without an order. It breaks lines in what stays as its source.
            if text not in seen and len(text) < 1500 and all(source in text for source in sources(whole)):
                seen.add(text)
                yield {"text": text, "data": data(whole)}


def tables():
    random_ = random.Random(2)
    cells = ["", "a", "1", "1.50", "x y", "a,b", "a;b", "a\tb", 'say "hi"', '"', "line\nbreak", "line\r\nbreak", "é😀", "  pad  ", "'", "|", "0012"]
    dialects = [{"delimiter": ","}, {"delimiter": ";"}, {"delimiter": "\t"}, {"delimiter": ",", "lineterminator": "\n"},
                {"delimiter": ",", "quoting": csv.QUOTE_ALL}, {"delimiter": "|"}]
    for _ in range(CASES):
        names = random_.sample(["id", "name", "Price (€)", "a b", "größe", "x", "y.z", "n/a", "Total"], random_.randrange(2, 6))
        rows = [[random_.choice(cells) for _ in names] for _ in range(random_.randrange(1, 6))]
        out = io.StringIO()
        dialect = random_.choice(dialects)
        writer = csv.writer(out, **dialect)
        writer.writerow(names)
        writer.writerows(rows)
        text = random_.choice(["", "\ufeff"]) + out.getvalue()
        form = "tsv" if dialect["delimiter"] == "\t" else "csv"
        yield {"text": text, "form": form, "data": [dict(zip(names, row)) for row in rows]}


for file, cases in [("python.jsonl", python()), ("csv.jsonl", tables())]:
    lines = [json.dumps(case, ensure_ascii=True) for case in cases]
    (FOLDER / file).write_text("\n".join(lines) + "\n")
