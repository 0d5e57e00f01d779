"""Tasks with several turns of the Berkeley Function Calling Leaderboard v4 (Apache-2.0), from bfcl-eval."""

import ast
import copy
import importlib
import inspect
import itertools
import json
from pathlib import Path

import bfcl_eval
from bfcl_eval.constants import executable_backend_config as backends
from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker, state_checker

from . import task

CLASSES = [
    "GorillaFileSystem",
    "MathAPI",
    "MessageAPI",
    "TwitterAPI",
    "TicketAPI",
    "TradingBot",
    "TravelAPI",
    "VehicleControlAPI",
]
DATA = Path(bfcl_eval.__file__).parent / "data"
# The types of its schemas that JSON Schema does not have.
TYPES = {"dict": "object", "float": "number", "tuple": "array", "bool": "boolean"}


def lines(path):
    return [json.loads(line) for line in (DATA / path).open()]


def json_schema(schema):
    if isinstance(schema, list):
        return [json_schema(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: json_schema(value) for key, value in schema.items()}
    kind = schema.get("type")
    if kind == "any":
        del schema["type"]
    elif isinstance(kind, str):
        schema["type"] = TYPES.get(kind, kind)
    return schema


def backend(name):
    return getattr(importlib.import_module(backends.CLASS_FILE_PATH_MAPPING[name]), name)


class Bfcl:
    def __init__(self, category):
        self.category = category
        self.raw = {raw["id"]: raw for raw in lines(f"BFCL_v4_{category}.json")}
        self.gold = {raw["id"]: raw["ground_truth"] for raw in lines(f"possible_answer/BFCL_v4_{category}.json")}
        files = backends.MULTI_TURN_FUNC_DOC_FILE_MAPPING
        self.docs = {name: lines(f"multi_turn_func_doc/{files[name]}") for name in CLASSES}
        self.checks = itertools.count()

    def servers(self):
        # The benchmark shows models the name, description and parameters.
        return {
            name: [
                {
                    "name": doc["name"],
                    "description": doc["description"],
                    "inputSchema": json_schema(doc["parameters"]),
                }
                for doc in docs
            ]
            for name, docs in self.docs.items()
        }

    def has_effect(self, tool):
        return True

    def reset(self, id):
        self.task = self.raw[id]
        self.turns = []
        self.live = {}
        for name in self.task["involved_classes"]:
            instance = backend(name)()
            if name not in backends.STATELESS_CLASSES:
                initial = copy.deepcopy(self.task["initial_config"].get(name, {}))
                instance._load_scenario(initial, long_context="long_context" in self.category)
            self.live[name] = instance

    def begin_turn(self, n):
        self.turns.append([])

    def call(self, server, tool, args):
        self.turns[-1].append((tool, args))
        try:
            # The backends keep and change the lists that they are given.
            result = getattr(self.live[server], tool)(**copy.deepcopy(args))
        except Exception as error:  # as the benchmark's own executor
            return f"Error during execution: {error}", True
        if isinstance(result, str):
            return result, False
        try:
            return (json.dumps(result) if isinstance(result, dict) else str(result)), False
        except TypeError:
            return str(result), False

    def snapshot(self):
        return copy.deepcopy((self.live, self.turns))

    def restore(self, state):
        self.live, self.turns = copy.deepcopy(state)

    def check(self, whole=False):
        """The benchmark's checker on the calls that were made, turn by turn, and on the objects that they changed."""
        made = [
            [[f"{tool}({', '.join(f'{key}={value!r}' for key, value in args.items())})" for tool, args in turn]]
            if turn
            else []
            for turn in self.turns
        ]
        # The checker keeps its objects by this name, for ever.
        name = f"check{next(self.checks)}"
        gold = self.gold[self.task["id"]]
        verdict = multi_turn_checker(made, gold, self.task, self.category, name)
        _, expected = multi_turn_utils.execute_multi_turn_func_call(
            [call for turn in gold for call in turn],
            self.task["initial_config"],
            self.task["involved_classes"],
            f"{name}live",
            self.task["id"],
            long_context="long_context" in self.category,
        )
        live = {name: self.live[name] for name in expected}
        accepted = verdict["valid"] and state_checker(live, expected)["valid"]
        for key in [key for key in vars(multi_turn_utils) if key.endswith("_instance")]:
            del vars(multi_turn_utils)[key]
        return bool(accepted)

    def parse(self, text, classes):
        """A gold call is Python. Positional arguments get the names of the method's parameters."""
        node = ast.parse(text, mode="eval").body
        tool = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        server = next(name for name in classes if any(doc["name"] == tool for doc in self.docs[name]))
        names = list(inspect.signature(getattr(backend(server), tool)).parameters)[1:]
        args = {names[n]: ast.literal_eval(value) for n, value in enumerate(node.args)}
        args.update({keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords})
        return {"server": server, "tool": tool, "args": args}

    def tasks(self):
        for id, raw in self.raw.items():
            turns = [
                {
                    "user": "\n".join(message["content"] for message in messages if message["role"] == "user"),
                    "calls": [self.parse(call, raw["involved_classes"]) for call in calls],
                }
                for messages, calls in zip(raw["question"], self.gold[id], strict=True)
            ]
            yield task(id, raw["involved_classes"], turns)
