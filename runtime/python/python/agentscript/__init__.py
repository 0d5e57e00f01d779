"""AgentScript: scripts of AI agents that call your functions, in a safe and metered subset of JavaScript.

>>> import agentscript
>>> def price(item: str) -> float:
...     '''Price of an item in euros.'''
...     return {"tea": 4.5, "cup": 12.0}[item]
>>> agentscript.run("const prices = await Promise.all(['tea', 'cup'].map((item) => price({ item })));"
...                 "return prices[0] + prices[1]", tools=[price]).result
16.5
"""

from ._api import (
    Call,
    Journal,
    Limits,
    Outcome,
    Run,
    Script,
    Step,
    compile,
    declarations,
    run,
    run_async,
)
from ._errors import (
    IllegalAccessError,
    Issue,
    Location,
    RunError,
    ScriptRuntimeError,
    ScriptSyntaxError,
    ScriptTimeoutError,
    ToolCallError,
    ToolError,
)
from ._native import VERSION as __version__
from ._tools import Tool, Toolset

__all__ = [
    "Call",
    "IllegalAccessError",
    "Issue",
    "Journal",
    "Limits",
    "Location",
    "Outcome",
    "Run",
    "RunError",
    "Script",
    "ScriptRuntimeError",
    "ScriptSyntaxError",
    "ScriptTimeoutError",
    "Step",
    "Tool",
    "ToolCallError",
    "ToolError",
    "Toolset",
    "__version__",
    "compile",
    "declarations",
    "run",
    "run_async",
]
