"""Runs the gold calls of a set once and writes their results, and what each call needs: plan.py SET FILE [--control]

With --control it only makes the negative control: each task with one gold call left out, how often the checker notices.
"""

import json
import sys

import sets
from sources import sources


def effects(env, turn, results, start):
    """For each call, the earlier ones of its turn that it needs: leaving one out changes its result."""
    calls = turn["calls"]
    needs = [[] for _ in calls]
    for left_out, call in enumerate(calls[:-1]):
        if not env.has_effect(call["tool"]):
            continue
        env.restore(start)
        for n, other in enumerate(calls):
            if n == left_out:
                continue
            text, _ = env.call(other["server"], other["tool"], other["args"])
            if n > left_out and text != results[n]:
                needs[n].append(left_out)
    return needs


def waves(turn):
    """The rounds of parallel calls: a call waits for those whose results or effects it needs."""
    rounds = []
    for mine, needs in zip(turn["sources"], turn["effects"], strict=True):
        before = [source["call"] for source in mine] + needs
        rounds.append(1 + max((rounds[n] for n in before), default=-1))
    return rounds


def plan(env, task):
    env.reset(task["id"])
    read = f"{task['system']}\n{task.pop('hidden')}"
    for n, turn in enumerate(task["turns"]):
        read += f"\n{turn['user']}"
        env.begin_turn(n)
        start = env.snapshot()
        answers = [env.call(call["server"], call["tool"], call["args"]) for call in turn["calls"]]
        end = env.snapshot()
        turn["results"] = [text for text, _ in answers]
        turn["errors"] = [error for _, error in answers]
        turn["sources"] = sources(turn, turn["results"], read)
        turn["effects"] = effects(env, turn, turn["results"], start)
        turn["waves"] = waves(turn)
        env.restore(end)
        read += "\n" + "\n".join(turn["results"])
    task["gold"] = env.check(whole=True)
    return task


def control(env):
    """How often the checker accepts all gold calls, and how often it notices that one is left out."""
    tasks = accepted = left_out = noticed = 0
    for task in env.tasks():
        tasks += 1
        for skip in range(-1, sum(len(turn["calls"]) for turn in task["turns"])):
            env.reset(task["id"])
            number = 0
            for n, turn in enumerate(task["turns"]):
                env.begin_turn(n)
                for call in turn["calls"]:
                    if number != skip:
                        env.call(call["server"], call["tool"], call["args"])
                    number += 1
            if skip < 0:
                accepted += env.check()
            else:
                left_out += 1
                noticed += not env.check()
    return {"tasks": tasks, "accepted": accepted, "left_out": left_out, "noticed": noticed}


def main():
    name, file = sys.argv[1:3]
    env = sets.load(name)
    if "--control" in sys.argv:
        made = control(env)
        print(name, made)
    else:
        made = {"tools": env.servers(), "tasks": [plan(env, task) for task in env.tasks()]}
        print(name, len(made["tasks"]), "tasks, gold accepted in", sum(task["gold"] for task in made["tasks"]))
    with open(file, "w") as out:
        json.dump(made, out)


if __name__ == "__main__":
    main()
