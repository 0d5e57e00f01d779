"""What runs cost from Python, beside Monty: `python benches/packages/bench.py [SECONDS]`.

    maturin build --release --manifest-path runtime/python/Cargo.toml --out /tmp/wheels
    python -m venv benches/packages/.venv
    benches/packages/.venv/bin/pip install -r benches/packages/requirements.txt /tmp/wheels/*.whl
    benches/packages/.venv/bin/python benches/packages/bench.py

Each figure is the time of one run, the least of several rounds, on a machine without other work: processor time would leave
out the worker processes of Monty. Compiling is part of a fresh run.
"""

import asyncio
import json
import resource
import sys
import time

import agentscript
import pydantic_monty

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
ROUNDS = 5
WAITING = 10_000

JOIN = """
const [users, orders] = await Promise.all([listUsers({}), listOrders({})]);
const names = new Map(users.map((user) => [user.id, user.name]));
return orders.map((order) => names.get(order.user) + ': ' + order.total).join(', ');
"""
MONTY_JOIN = """
users = list_users()
orders = list_orders()
names = {user['id']: user['name'] for user in users}
', '.join([names[order['user']] + ': ' + str(order['total']) for order in orders])
"""
USERS = [{"id": n, "name": f"user {n}"} for n in range(10)]
ORDERS = [{"user": n % 10, "total": n * 3} for n in range(20)]
EXPECTED = ", ".join(f"user {n % 10}: {n * 3}" for n in range(20))


def list_users():
    return USERS


def list_orders():
    return ORDERS


async def list_users_async():
    return USERS


async def list_orders_async():
    return ORDERS


def microseconds(work):
    """The time of one call of `work`."""

    def repeat(count):
        for _ in range(count):
            work()

    return microseconds_of(repeat)


def microseconds_of(repeat):
    """The time of one run of those that `repeat(count)` makes."""
    repeat(1)
    count, least = 1, float("inf")
    for _ in range(ROUNDS):
        while True:
            began = time.perf_counter()
            repeat(count)
            used = time.perf_counter() - began
            if used >= SECONDS / ROUNDS / 2:
                break
            count *= 2
        least = min(least, used / count)
    return least * 1e6


def check(result, expected):
    assert result == expected, result


def asynchronously():
    """Fresh runs on one event loop, which is not part of the cost."""
    tools = agentscript.Toolset({"list_users": list_users_async, "list_orders": list_orders_async})

    async def times(count, script, expected, **options):
        for _ in range(count):
            check((await agentscript.run_async(script, **options)).result, expected)

    loop = asyncio.new_event_loop()
    try:
        yield "await run_async('1 + 1')", microseconds_of(lambda count: loop.run_until_complete(times(count, "1 + 1", 2)))
        yield (
            "the same, a join of two async tools",
            microseconds_of(lambda count: loop.run_until_complete(times(count, JOIN, EXPECTED, tools=tools))),
        )
    finally:
        loop.close()


def monty():
    """A fresh session of Monty for each run, in a worker process of its pool that waits for it."""

    def run(pool, program, expected, functions):
        with pool.checkout() as session:
            check(session.feed_run(program, external_lookup=functions), expected)

    functions = {"list_users": list_users, "list_orders": list_orders}
    with pydantic_monty.Monty() as pool:
        yield "Monty: 1 + 1", microseconds(lambda: run(pool, "1 + 1", 2, {}))
        yield "Monty: a join of two tools", microseconds(lambda: run(pool, MONTY_JOIN, EXPECTED, functions))


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


async def waiting():
    """Memory of runs that all wait for a tool at once, with their tasks."""
    ready = asyncio.Event()
    count = 0

    async def wait(n: int) -> int:
        nonlocal count
        count += 1
        await ready.wait()
        return n

    script = agentscript.compile("return await wait({ n: codecallContext.n })", tools=[wait], limits={"max_duration_ms": 600_000, "tool_timeout_ms": 600_000})
    before = resident()
    runs = [asyncio.create_task(script.run_async({"n": n})) for n in range(WAITING)]
    while count < WAITING:
        await asyncio.sleep(0.01)
    used = resident() - before
    ready.set()
    assert sum([outcome.result for outcome in await asyncio.gather(*runs)]) == sum(range(WAITING))
    return used / WAITING


def main():
    # Before the others, whose freed memory it would use.
    memory = asyncio.run(waiting())
    tools = agentscript.Toolset([list_users, list_orders])
    compiled, joined = agentscript.compile("1 + 1"), agentscript.compile(JOIN, tools=tools)
    rows = [
        ("run('1 + 1')", microseconds(lambda: check(agentscript.run("1 + 1").result, 2))),
        ("the same, compiled before", microseconds(lambda: check(compiled.run().result, 2))),
        ("a join of two tools", microseconds(lambda: check(agentscript.run(JOIN, tools=tools).result, EXPECTED))),
        ("the same, compiled before", microseconds(lambda: check(joined.run().result, EXPECTED))),
        *asynchronously(),
        *monty(),
    ]
    for name, cost in rows:
        print(f"{name:45} {cost:9.1f} µs")
    print(f"{WAITING} runs that wait, each with its task{memory / 1024:14.1f} KiB each")
    print(json.dumps(dict(python=sys.version.split()[0], agentscript=agentscript.__version__, rows=rows)), file=sys.stderr)


if __name__ == "__main__":
    main()
