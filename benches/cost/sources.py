"""Where the arguments of a gold call come from: a text that the model has read, or a value in an earlier result.

Kinds of a value in an earlier result, from the easiest to the hardest for a script:

    whole   the result is that value
    path    a fixed path in the result
    select  a member of a list, whose name a text that the model has read says
    all     every member of a list is used: a loop
    judged  one of several members, and nothing says which: a model has to read
    made    a text that is made of values: a model has to read
"""

import json
import re

EASE = ["whole", "path", "select", "judged"]


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, member in value.items():
            yield from leaves(member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from leaves(member, (*path, index))
    else:
        yield path, value


def data(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def at(value, path):
    for key in path:
        value = value[key]
    return value


def same(a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    return a == b if numbers else isinstance(a, str) and a == b


def plain(text):
    return re.sub(r"[^a-z0-9.#@]+", " ", str(text).lower())


def knows(read, value):
    """Whether a model that has read `read` knows the value."""
    if isinstance(value, bool) or value is None or value == "":
        return True
    if isinstance(value, (int, float)):
        number = re.escape(f"{value:g}")
        return abs(value) <= 1 or bool(re.search(rf"(?<![\d.]){number}(?![\d])", read.replace(",", "")))
    return plain(value).strip() in plain(read)


def varying(path):
    """The places of a path that are an index, or a key that looks like data rather than a name."""
    return [n for n, key in enumerate(path) if isinstance(key, int) or re.search(r"\d", str(key))]


def selector(result, path, place, value, read):
    """What picks the member of a list at `path[:place]`: a path in the member and the text there that the model knows."""
    box = at(result, path[:place])
    members = box if isinstance(box, list) else list(box.values())
    for inner, text in leaves(at(result, path[: place + 1])):
        if text == value or not isinstance(text, str) or len(text) < 3 or not knows(read, text):
            continue
        if sum(any(p == inner and t == text for p, t in leaves(member)) for member in members if isinstance(member, dict)) == 1:
            return [list(inner), text]
    return None


def origin(value, results, read):
    """The earlier result that has a value: the easiest kind, and of these the latest result."""
    best = None
    for call in range(len(results) - 1, -1, -1):
        result = data(results[call])
        for path, found in leaves(result):
            if not same(found, value):
                continue
            places, kind, select = varying(path), "judged", None
            if path == ():
                kind = "whole"
            elif not places:
                kind = "path"
            elif len(places) == 1:
                if len(at(result, path[: places[0]])) == 1:
                    kind = "path"
                elif select := selector(result, path, places[0], value, read):
                    kind = "select"
            if best is None or EASE.index(kind) < EASE.index(best["kind"]):
                best = {"call": call, "path": list(path), "kind": kind, "select": select}
        if best and best["kind"] in ("whole", "path"):
            break
    return best


def made_of(text, results, read):
    """The latest result with a word of a text that the model cannot know otherwise."""
    words = [word for word in re.findall(r"[#@]?[A-Za-z_]*\d[\w.\-]*\w|\d", text) if len(word) > 2]
    for call in range(len(results) - 1, -1, -1):
        if any(word in results[call] and not knows(read, word) for word in words):
            return {"call": call, "path": [], "kind": "made", "select": None}
    return None


def sources(turn, results, read):
    """For each call, the arguments that come from earlier results: [{arg, call, path, kind, select}]."""
    found = []
    for n, call in enumerate(turn["calls"]):
        mine = []
        for path, value in leaves(call["args"]):
            if knows(read, value):
                continue
            source = origin(value, results[:n], read)
            if not source and isinstance(value, str):
                source = made_of(value, results[:n], read)
            if source:
                mine.append({"arg": list(path), **source})
        found.append(mine)
    loops(turn, results, found)
    return found


def loops(turn, results, found):
    """`judged` becomes `all` where calls of one tool use every member of a list."""
    used = {}
    for n, mine in enumerate(found):
        for source in mine:
            if source["kind"] == "judged" and isinstance(source["path"][-1], int):
                key = (source["call"], tuple(source["path"][:-1]), turn["calls"][n]["tool"])
                used.setdefault(key, []).append(source)
    for (call, path, _), members in used.items():
        if len({member["path"][-1] for member in members}) == len(at(data(results[call]), path)):
            for member in members:
                member["kind"] = "all"
