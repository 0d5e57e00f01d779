"""tau2 (Sierra, MIT) as inspect-evals has it: retail and airline; telecom and banking, whose users act on the state too."""

import copy
import gzip
import importlib
import itertools
import json
import re
from types import SimpleNamespace

from inspect_ai.model import ChatMessageAssistant
from inspect_ai.tool import ToolCall, ToolError
from inspect_ai.tool._tool_def import ToolDef
from inspect_ai.util import store, store_as
from inspect_evals.tau2.common import scorer as common
from inspect_evals.tau2.data_model.tasks import Task
from inspect_evals.tau2.utils import TAU2_DATA_DIR

from . import task

WRITES = re.compile(r"^(cancel|exchange|modify|return|book|update|send|transfer)")
DOMAINS = TAU2_DATA_DIR / "domains"


def run(coroutine):
    """The tools and scorers are `async` and never wait."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a tool waits")


class Table(dict):
    """A table that copies an entry when it is first read by key: the databases have thousands of entries."""

    def __init__(self, base, own=()):
        super().__init__(base)
        self.own = set(own)

    def __getitem__(self, key):
        value = super().__getitem__(key)
        if key not in self.own:
            value = copy.deepcopy(value)
            super().__setitem__(key, value)
            self.own.add(key)
        return value

    def __setitem__(self, key, value):
        self.own.add(key)
        super().__setitem__(key, value)


def fork(db):
    """A copy of a database whose tables are copied on access."""
    new = db.model_copy()
    for name in type(db).model_fields:
        value = getattr(db, name)
        if not isinstance(value, dict):
            continue
        own = getattr(value, "own", set())
        table = Table(value, own)
        for key in own:
            dict.__setitem__(table, key, copy.deepcopy(dict.__getitem__(value, key)))
        # Past the validation, which would copy the table into an ordinary dict.
        new.__dict__[name] = table
    return new


def equal(one, other):
    """Whether two forks of one database are equal: they are if all entries are that either has touched."""
    for name in type(one).model_fields:
        a, b = getattr(one, name), getattr(other, name)
        if not isinstance(a, Table):
            if a != b:
                return False
        elif a.keys() != b.keys():
            return False
        elif any(
            dict.__getitem__(a, key).model_dump() != dict.__getitem__(b, key).model_dump() for key in a.own | b.own
        ):
            return False
    return True


class Tau2:
    """What all domains share. The state is in inspect's store, where the domain's own tools look for it."""

    domain: str
    # Tools are named with it, gold actions are not.
    prefix = ""

    def __init__(self):
        tools = importlib.import_module(f"inspect_evals.tau2.{self.domain}.tools")
        self.tools = {}
        for make in self.makers(tools):
            definition = ToolDef(make())
            self.tools[definition.name] = definition
        self.raw = {raw["id"]: raw for raw in self.read_tasks()}

    def makers(self, tools):
        return getattr(tools, f"all_{self.domain}_tools")

    def servers(self):
        return {
            self.domain: [
                {
                    "name": name,
                    "description": tool.description,
                    "inputSchema": json.loads(tool.parameters.model_dump_json(exclude_none=True)),
                }
                for name, tool in self.tools.items()
            ]
        }

    def call(self, server, tool, args):
        self.made.append(("assistant", tool, args))
        try:
            result = run(self.tools[tool].tool(**copy.deepcopy(args)))
            return (result if isinstance(result, str) else json.dumps(result)), False
        except ToolError as error:
            return f"Error: {error.message}", True

    def has_effect(self, tool):
        return bool(WRITES.match(tool))

    def reset(self, id):
        self.task = Task.model_validate(self.raw[id])
        self.made = []
        self.start()

    def turns(self, raw, first):
        """The turns of a task. Policies want a confirmation before a write: a turn between reads and the writes after them.

        The user's own actions are done before the turn that follows them in the gold actions.
        """
        turns, wrote = [{"user": first, "calls": [], "actions": []}], False
        for action in raw["evaluation_criteria"].get("actions") or []:
            now = turns[-1]
            if action.get("requestor") == "user":
                if now["calls"]:
                    now = {"user": "I have done that. What is next?", "calls": [], "actions": []}
                    turns.append(now)
                now["actions"].append(action)
                continue
            tool = self.prefix + action["name"]
            writes = self.has_effect(tool) and action["name"] != "transfer_to_human_agents"
            # A task that begins with a write has a first turn without calls: the agent asks.
            if writes and not wrote and (now["calls"] or len(turns) == 1):
                now = {"user": "Yes, please go ahead.", "calls": [], "actions": []}
                turns.append(now)
            wrote = writes
            now["calls"].append({"server": self.domain, "tool": tool, "args": action["arguments"]})
        return turns

    def tasks(self):
        for id, raw in self.raw.items():
            scenario = raw["user_scenario"]["instructions"]
            if isinstance(scenario, str):
                first, hidden = self.opening(scenario), scenario
            else:
                known = scenario.get("known_info")
                first = scenario["reason_for_call"] + (f"\n{known}" if known else "")
                hidden = "\n".join(str(scenario.get(key) or "") for key in ("task_instructions", "unknown_info"))
            hidden += self.learned()
            turns = [{"user": turn["user"], "calls": turn["calls"]} for turn in self.turns(raw, first)]
            told = raw["evaluation_criteria"].get("communicate_info") or []
            yield task(id, [self.domain], turns, system=self.policy(), hidden=hidden, told=told)

    def opening(self, scenario):
        return scenario

    def learned(self):
        """What the agent knows from texts that no gold action reads."""
        return ""

    def policy(self):
        return (DOMAINS / self.domain / "policy.txt").read_text()

    def begin_turn(self, n):
        for action in self.turns(self.raw[self.task.id], "")[n]["actions"]:
            self.act(action)


class OneSided(Tau2):
    """Retail and airline: the user only speaks, and the database is large."""

    def __init__(self):
        super().__init__()
        seed = self.toolset()(instance="seed")
        seed.initialize()
        self.pristine = seed.db
        self.expected = {}
        # The checker loads the database for each task too.
        type(seed.db).load = classmethod(lambda cls, path: fork(self.pristine))

    def toolset(self):
        name = f"{self.domain.capitalize()}AgentTools"
        return getattr(importlib.import_module(f"inspect_evals.tau2.{self.domain}.{name}"), name)

    def read_tasks(self):
        return json.loads((DOMAINS / self.domain / "tasks.json").read_text())

    def live(self):
        return store_as(self.toolset(), f"{self.domain.capitalize()}Tools")

    def start(self):
        live = self.live()
        live.initialized = True
        live.db = fork(self.pristine)

    def snapshot(self):
        return fork(self.live().db)

    def restore(self, state):
        self.live().db = fork(state)

    def check(self, whole=False):
        """The set's `db_match`, which compares hashes; `whole` takes the hashes themselves, a second each."""
        if self.task.id not in self.expected:
            expected = common.get_expected_db(self.domain, self.task.evaluation_criteria.actions or [])
            self.expected[self.task.id] = expected.db
        expected, present = self.expected[self.task.id], self.live().db
        return expected.get_hash() == present.get_hash() if whole else equal(expected, present)


class Retail(OneSided):
    domain = "retail"


class Airline(OneSided):
    domain = "airline"


class TwoSided(Tau2):
    """Telecom and banking: agent and user have tools on one state, which is small."""

    def makers(self, tools):
        return getattr(tools, f"all_{self.domain}_agent_tools")

    def has_effect(self, tool):
        return not re.match(rf"^{self.prefix}(get|list|grep)", tool)

    def snapshot(self):
        return copy.deepcopy((store()._data, self.made))

    def restore(self, state):
        data, self.made = copy.deepcopy(state)
        store()._data.clear()
        store()._data.update(data)

    def start(self):
        store()._data.clear()
        self.initialize()

    def actions_made(self):
        """Whether the set's `find_unused_actions` finds all gold actions in what was really called."""

        def messages(side):
            calls = [
                ToolCall(id=str(n), function=tool, arguments=args)
                for n, (who, tool, args) in enumerate(self.made)
                if who == side
            ]
            return SimpleNamespace(messages=[ChatMessageAssistant(content="", tool_calls=calls)])

        return not common.find_unused_actions(messages("assistant"), messages("user"), self.task)

    def basis(self):
        return {str(getattr(reward, "value", reward)) for reward in self.task.evaluation_criteria.reward_basis}

    def scored(self, scorer):
        return run(scorer(SimpleNamespace(metadata={"instance": "check", "task": self.task}), None)).value == "C"


class Telecom(TwoSided):
    domain = "telecom"

    def __init__(self):
        super().__init__()
        from inspect_evals.tau2.telecom import TelecomAgentTools

        # Numbers of new bills are random.
        self.bills = itertools.count(1)
        TelecomAgentTools.uuid = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"{next(self.bills):08x}"))

    def read_tasks(self):
        base = set(json.loads((DOMAINS / "telecom/split_tasks.json").read_text())["base"])
        raw = json.loads(gzip.decompress((DOMAINS / "telecom/tasks.json.gz").read_bytes()))
        return [task for task in raw if task["id"] in base]

    def policy(self):
        from inspect_evals.tau2.telecom.agents import get_domain_policy

        return get_domain_policy(workflow=False)

    def environment(self):
        from inspect_evals.tau2.telecom.environment import get_environment

        return get_environment()

    def initialize(self):
        from inspect_evals.tau2.telecom.solver import perform_action

        self.bills = itertools.count(1)
        environment = self.environment()
        for action in self.task.initial_state.initialization_actions or []:
            perform_action(environment, action)

    def act(self, action):
        environment = self.environment()
        self.made.append(("user", action["name"], action["arguments"]))
        try:
            getattr(environment.user_tools, action["name"])(**action["arguments"])
        except ToolError:
            pass  # the gold actions of the user have it so
        environment.sync_tools()

    def check(self, whole=False):
        from inspect_evals.tau2.telecom.scorer import env_assertions

        actions = "ACTION" not in self.basis() or self.actions_made()
        return actions and self.scored(env_assertions())


class Banking(TwoSided):
    domain = "banking"
    prefix = "banking_"

    def __init__(self):
        super().__init__()
        from inspect_evals.tau2.banking import BankingAgentTools, data_model

        seed = data_model.TransactionalDB.load(str(BankingAgentTools.BANKING_DB_FILE))
        # Read once: the checker loads it for each task too.
        data_model.TransactionalDB.load = classmethod(lambda cls, path: copy.deepcopy(seed))

    def makers(self, tools):
        return [*super().makers(tools), tools.banking_grep]

    def read_tasks(self):
        return json.loads((DOMAINS / "banking_knowledge/tasks.json").read_text())

    def opening(self, scenario):
        """The user's scenario is prose; the text that it opens with is in quotes after "Opening"."""
        found = re.search(r"Opening[^\n]*?[\"“](.+?)[\"”]", scenario, re.S)
        return found[1] if found else "Hi, I need some help with my account."

    def learned(self):
        """Names of tools are in the knowledge base, and searches in it are no gold actions."""
        from inspect_evals.tau2.banking import BankingAgentTools, BankingUserTools

        names = {*BankingAgentTools.AGENT_DISCOVERABLE_TOOLS, *BankingUserTools.USER_DISCOVERABLE_TOOLS}
        return "\n" + "\n".join(sorted(names))

    def policy(self):
        from inspect_evals.tau2.banking.agents import _get_domain_policy

        return _get_domain_policy("grep")

    def initialize(self):
        from inspect_evals.tau2.banking import environment

        environment.initialize_environment()
        # A copy: the state keeps its parts and changes them, and the checker applies the same again.
        initial = copy.deepcopy(self.task.initial_state)
        environment.apply_initial_state(environment.get_agent_tools(), environment.get_user_tools(), initial)

    def act(self, action):
        from inspect_evals.tau2.banking.environment import get_user_tools

        self.made.append(("user", action["name"], action["arguments"]))
        getattr(get_user_tools(), action["name"].removeprefix(self.prefix))(**action["arguments"])

    def check(self, whole=False):
        from inspect_evals.tau2.banking.scorer import banking_db_match

        basis = self.basis()
        accepted = ("ACTION" not in basis or self.actions_made()) and ("DB" not in basis or self.scored(banking_db_match()))
        for key in [key for key in store().keys() if ":expected_" in key]:
            store().delete(key)
        return accepted
