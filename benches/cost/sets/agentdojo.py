"""AgentDojo v1.2.2 (MIT): the tasks of users, without injections."""

import datetime
import json
import sys
import types
from unittest.mock import MagicMock

from . import task

# The packages of model providers are not installed; nothing of them runs.
PROVIDERS = ["anthropic", "openai", "openai.types", "openai.types.chat", "openai._types", "cohere", "google",
             "google.genai", "google.genai.types", "vertexai"]  # fmt: skip
MODELS = ["anthropic_llm", "cohere_llm", "google_llm", "openai_llm", "local_llm", "prompting_llm"]
NOW = datetime.datetime(2024, 5, 15, 12, 0, 0)


def without_titles(schema):
    if isinstance(schema, list):
        return [without_titles(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_titles(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def freeze():
    """Mails and files are stamped with the time."""
    from agentdojo.default_suites.v1.tools import cloud_drive_client, email_client

    frozen = types.ModuleType("datetime")
    frozen.__dict__.update(vars(datetime))
    frozen.datetime = Clock
    cloud_drive_client.datetime = email_client.datetime = frozen


class AgentDojo:
    def __init__(self):
        for name in MODELS:
            sys.modules[f"agentdojo.agent_pipeline.llms.{name}"] = MagicMock()
        for name in PROVIDERS:
            sys.modules[name] = MagicMock()
        from agentdojo.functions_runtime import FunctionsRuntime
        from agentdojo.task_suite.load_suites import get_suites

        freeze()
        self.suites = get_suites("v1.2.2")
        # Read once, which takes a second.
        self.loaded = {name: suite.load_and_inject_default_environment({}) for name, suite in self.suites.items()}
        self.runtimes = {name: FunctionsRuntime(suite.tools) for name, suite in self.suites.items()}

    def servers(self):
        return {
            name: [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": without_titles(tool.parameters.model_json_schema()),
                }
                for tool in suite.tools
            ]
            for name, suite in self.suites.items()
        }

    def has_effect(self, tool):
        return True

    def environment(self, suite, task):
        return task.init_environment(self.loaded[suite].model_copy(deep=True))

    def reset(self, id):
        suite, name = id.split("/")
        self.suite = self.suites[suite]
        self.task = self.suite.user_tasks[name]
        self.live = self.environment(suite, self.task)
        self.before = self.live.model_copy(deep=True)
        self.trace = []

    def begin_turn(self, n):
        pass

    def call(self, server, tool, args):
        from agentdojo.functions_runtime import FunctionCall
        from pydantic import TypeAdapter

        result, error = self.runtimes[server].run_function(self.live, tool, args)
        self.trace.append(FunctionCall(function=tool, args=args))
        if error:
            return error, True
        return (result if isinstance(result, str) else TypeAdapter(object).dump_json(result).decode()), False

    def snapshot(self):
        return self.live.model_copy(deep=True), list(self.trace)

    def restore(self, state):
        self.live, self.trace = state[0].model_copy(deep=True), list(state[1])

    def check(self, whole=False):
        from agentdojo.types import text_content_block_from_string

        said = [text_content_block_from_string(self.task.GROUND_TRUTH_OUTPUT)]
        return bool(self.suite._check_user_task_utility(self.task, said, self.before, self.live, self.trace))

    def tasks(self):
        for name, suite in self.suites.items():
            for id, user_task in suite.user_tasks.items():
                calls = [
                    {
                        "server": name,
                        "tool": call.function,
                        "args": json.loads(json.dumps(dict(call.args), default=str)),
                    }
                    for call in user_task.ground_truth(self.environment(name, user_task))
                ]
                turn = {"user": user_task.PROMPT, "calls": calls}
                yield task(f"{name}/{id}", [name], [turn], answer=user_task.GROUND_TRUTH_OUTPUT)
