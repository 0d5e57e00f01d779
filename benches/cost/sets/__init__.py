"""Sets of tasks behind one interface. Tools, data, tasks, gold actions and checkers are read from the installed packages.

A set has these methods:

    servers()                   the tools, as MCP lists them: {server: [{name, description, inputSchema}]}
    tasks()                     a dict for each task, see `task`
    reset(id)                   makes the initial state of a task
    begin_turn(n)               a user speaks: own actions of the user on the state, if the set has any
    call(server, tool, args)    makes a call: (text of the result, whether it is an error)
    has_effect(tool)            whether a call can change the state
    snapshot(), restore(state)  the state
    check()                     whether the set's own checker accepts the present state
"""

NAMES = ["retail", "airline", "bfcl", "agentdojo"]
HELD_OUT = ["telecom", "banking", "long_context"]


def load(name):
    """The set of a name. Each needs a process of its own: some replace modules that others need."""
    if name == "agentdojo":
        from .agentdojo import AgentDojo

        return AgentDojo()
    if name in ("bfcl", "long_context"):
        from .bfcl import Bfcl

        return Bfcl("multi_turn_base" if name == "bfcl" else "multi_turn_long_context")
    from . import tau2

    return {
        "retail": tau2.Retail,
        "airline": tau2.Airline,
        "telecom": tau2.Telecom,
        "banking": tau2.Banking,
    }[name]()


def task(id, servers, turns, system="", hidden="", told=(), answer=""):
    """One task.

    turns   [{user: text, calls: [{server, tool, args}]}], the gold calls
    system  the system prompt
    hidden  what a simulated user says when the agent asks
    told    texts that the answer must have
    answer  the answer, if the set has one
    """
    return {
        "id": id,
        "servers": sorted(servers),
        "turns": turns,
        "system": system,
        "hidden": hidden,
        "told": list(told),
        "answer": answer,
    }
