"""Measures the latency for a client over MCP: of small runs next to endless ones, and of searches in many tools.

    cargo build --profile dist && python benches/latency.py target/dist/codecall
    cargo build --profile dist --features embeddings && python benches/latency.py target/dist/codecall FOLDER_OF_A_MODEL

The script only needs Python. With a model it only measures first searches by meaning. docs/reference/limits.md and docs/reports/search.md
have the figures of an idle machine.
"""

import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TIMES = 1_000
LISTS = Path(__file__).parent.parent / "server/tests/search/tools"
# The endless runs, none of which reaches a limit during the measurement.
ENDLESS = {
    "alone": None,
    "loop": "for (;;) {}",
    "loop after an await": "await null; for (;;) {}",
    "await in a loop": "for (;;) { await null; }",
    "sort": "const a = Array.from({ length: 3e5 }, (_, i) => `${(i * 7919) % 300007}`); for (;;) { a.slice().sort(); }",
    "JSON.parse": "const t = JSON.stringify(Array.from({ length: 1e5 }, (_, i) => ({ i, a: [1, 2] }))); for (;;) { JSON.parse(t); }",
    "match": "const t = 'x'.repeat(3000); for (;;) { /(?=(x+)y)x/.test(t); }",
}
UNLIMITED = {
    "vm": {"preset": "experimental", "timeoutMs": 60_000, "maxDurationMs": 60_000, "maxSteps": 10**15, "maxIterations": 10**15},
    "pool": {"threads": 2},
}
SMALL = "return [3, 1, 2].sort().map((n) => n * 2)"


class Server:
    """`codecall serve`, and a client on its standard input and output."""

    def __init__(self, program, *words):
        self.process = subprocess.Popen([program, "serve", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.numbers = itertools.count()
        client = {"protocolVersion": "2025-06-18", "capabilities": {"experimental": {"codecall/structuredContent": {}}}, "clientInfo": {"name": "latency", "version": "1"}}
        self.wait(self.send("initialize", client))
        self.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def send(self, method, params):
        number = next(self.numbers)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return number

    def wait(self, number):
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == number:
                return answer["result"]
        raise SystemExit("the server is gone")

    def call(self, tool, arguments):
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def measure(self, tool, requests):
        took = []
        for arguments in requests:
            began = time.perf_counter()
            answer = self.wait(self.call(tool, arguments))
            took.append((time.perf_counter() - began) * 1e3)
            assert not answer.get("isError"), answer
        self.process.kill()
        took.sort()
        return f"median {took[len(took) // 2]:.2f}, p99 {took[len(took) * 99 // 100]:.2f}, longest {took[-1]:.2f} ms"


def runs(program, folder):
    config = Path(folder, "config.json")
    config.write_text(json.dumps(UNLIMITED))
    for name, script in ENDLESS.items():
        server = Server(program, "--config", str(config))
        if script:
            for _ in range(4):
                server.call("codecall_execute", {"script": script})
            time.sleep(1)
        print(f"small runs, {name}:", server.measure("codecall_execute", [{"script": SMALL}] * TIMES), flush=True)


def fixture(folder, count):
    """Writes a fixture with the tools of real servers, repeated under other names. Returns its path and their descriptions."""
    known = [tool for path in sorted(LISTS.glob("*.json")) for tool in json.loads(path.read_text())["tools"]]
    tools = [
        {**{key: tool.get(key, "") for key in ("description", "inputSchema")}, "name": f"app{n // 15}:{tool['name']}", "responses": []}
        for n, tool in enumerate(itertools.islice(itertools.cycle(known), count))
    ]
    path = Path(folder, "fixture.json")
    path.write_text(json.dumps({"tools": tools}))
    return str(path), [{"query": tool["description"][:80]} for tool in known if tool.get("description", "").strip()]


def searches(program, folder):
    for count in (600, 10_000):
        tools, queries = fixture(folder, count)
        server = Server(program, "--mock-tools", tools)
        requests = itertools.islice(itertools.cycle(queries), TIMES)
        print(f"searches in {count} tools:", server.measure("codecall_search", requests), flush=True)


def first_searches(program, folder, model):
    """Measures the time from the start of a process to the first answer by meaning. Earlier answers are by words, with a warning."""
    tools, queries = fixture(folder, 600)
    config, cached = Path(folder, "config.json"), {"store": f"{folder}/codecall.db"}
    for name, cache in {"without a file": {}, "into a file": cached, "from a file": cached}.items():
        config.write_text(json.dumps({"search": {"strategy": "hybrid", "modelDir": model}, **cache}))
        began = time.perf_counter()
        server = Server(program, "--mock-tools", tools, "--config", str(config))
        ready = time.perf_counter()
        while "warnings" in server.wait(server.call("codecall_search", queries[0]))["structuredContent"]:
            pass
        done = time.perf_counter()
        server.process.stdin.close()
        server.process.wait()
        print(f"600 tools, vectors {name}: started in {ready - began:.2f} s, found after {done - ready:.2f} s", flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) == 3:
            first_searches(sys.argv[1], folder, sys.argv[2])
        else:
            runs(sys.argv[1], folder)
            searches(sys.argv[1], folder)
