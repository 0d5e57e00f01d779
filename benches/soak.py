"""Measures a server under mixed load: its resources before, during and after the load, and the response times of other clients.

    cargo build --profile dist && python benches/soak.py target/dist/codecall --minutes 60 --write docs/reports

There are four phases: two measured clients alone (one requests /healthz, one runs plain scripts), with ordinary clients,
with hostile ones in addition (scripts, upstreams, connections), and a pause after them. `--write` updates the tables and
the graph in docs/reports/trust.md. The script only needs Python. It fails if the server does not answer after the load, or if its
resources do not return to their earlier values.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UPSTREAM = ROOT / "server/tests/system/faults/upstream.py"
PLAIN = "return [3, 1, 2].sort().map((n) => n * 2)"
# Each ends at a limit or succeeds, and represents a class of findings.
SCRIPTS = {
    "loop": "for (;;) {}",
    "loop of awaits": "for (;;) { await null }",
    "names of tools": "await callTool('t' + ' /tmp/zz'.repeat(4e5), { a: 'x'.repeat(4e6) })",
    "tool that echoes": "await callTool('good:lie', { a: ' /tmp/zz'.repeat(4e5) })",
    "collation": "return '\\u0301'.repeat(2e5).localeCompare('\\u0301'.repeat(2e5) + 'a')",
    "numbers": "return Number('9'.repeat(1e7)) + +('1'.repeat(1e7))",
    "long texts compared": "const a = 'x'.repeat(2e7), b = 'x'.repeat(2e7) + 'y'; let n = 0; for (let i = 0; i < 1e5; i++) if (a === b) n++; return n",
    "BigInt": "return String(3n ** 1000000n).length",
    "name of 30 MB": "return getTool('x'.repeat(3e7))",
    "normalize": "return '\\ufdfa'.repeat(1e6).normalize('NFKD').length",
    "keys": "const o = Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => [`k${i}`, i])); let n = 0; for (let i = 0; i < 1e4; i++) n += Object.keys({ ...o }).length; return n",
    "promises": "return (await Promise.allSettled(Array(2e6).fill(1))).length",
    "regular expression": "return /(?=(x+)y)x/.test('x'.repeat(1e5))",
    "long regular expression": "return /" + "[\\p{L}\\p{N}]" * 4_000 + "/iu.test('x')",
    "replaceAll": "return 'a'.repeat(1e7).replaceAll('a', '').length",
    "replace with a function": "return 'a'.repeat(3e6).replace(/a/g, () => 'b').length",
    "spread of a text": "return [...'x'.repeat(3e7)].length",
    "growing text": "let s = 'x'; for (;;) s += s",
    "growing list": "const a = []; for (;;) a.push(new Array(1000).fill(0))",
    "sort": "const a = Array.from({ length: 3e5 }, (_, i) => `${(i * 7919) % 300007}`); for (;;) a.toSorted()",
    "long message": "throw new Error('x'.repeat(3e7))",
    "long logs": "for (;;) console.log('x'.repeat(1e5))",
    "deep result": "let o = 1; for (let i = 0; i < 1e5; i++) o = [o]; return o",
    "deep calls": "const f = () => f() + 1; return f()",
    "JSON": "return JSON.parse('['.repeat(5e6))",
    "no syntax": "(" * 50_000,
    "tools that hang": "await Promise.all([callTool('good:hang'), callTool('good:half')])",
    "tool that floods": "return await callTool('good:flood')",
    "tool of 100 MB": "return await callTool('good:long')",
    "nested tool": "return await callTool('good:deep')",
    "broken letters": "return await callTool('good:utf8')",
    "other ids": "return [await callTool('good:other'), await callTool('good:twice')]",
    "tool that asks": "return await callTool('good:asks')",
    "news of tools": "return await callTool('good:news')",
    "tool that crashes": "return await callTool('good:crash')",
    "calls without end": "for (;;) await callTool('good:ok', {}, { throwOnError: false })",
    "calls at once": "await Promise.all(Array.from({ length: 100 }, () => callTool('good:late')))",
}


def rpc(method, params, number=1):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


class Client:
    """MCP over HTTP, in a session."""

    HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

    def __init__(self, port, patience=120):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience)
        self.headers = dict(self.HEADERS)
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
        response, _ = self.post(rpc("initialize", client))
        self.headers["mcp-session-id"] = response.getheader("mcp-session-id") or ""
        self.headers["mcp-protocol-version"] = "2025-06-18"
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message):
        self.connection.request("POST", "/mcp", json.dumps(message), self.headers)
        response = self.connection.getresponse()
        return response, response.read()

    def call(self, tool, arguments):
        _, body = self.post(rpc("tools/call", {"name": tool, "arguments": arguments}))
        for line in body.decode().splitlines():
            line = line.removeprefix("data:").strip()
            if line.startswith("{") and "id" in (answer := json.loads(line)):
                return answer.get("result", answer)
        raise ConnectionError(body[:200])

    def close(self):
        self.connection.request("DELETE", "/mcp", headers=self.headers)
        self.connection.getresponse().read()
        self.connection.close()


# --- the clients; each is a process, which is restarted after any failure


def repeat(role, port, stop, *more):
    random.seed(os.getpid())
    if role not in (health, plain):
        # The clients get a low priority, so that they do not compete with the server for the processors.
        os.nice(10)
    while not stop.is_set():
        try:
            role(port, stop, *more)
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.1)


def health(port, stop, out):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    while not stop.is_set():
        began = time.perf_counter()
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        answer.read()
        out.put(("healthz", time.time(), time.perf_counter() - began, answer.status == 200))
        time.sleep(0.02)


def plain(port, stop, out):
    client = Client(port)
    while not stop.is_set():
        began = time.perf_counter()
        answer = client.call("codecall_execute", {"script": PLAIN})
        is_right = '"result":[2,4,6]' in answer.get("content", [{}])[0].get("text", "")
        out.put(("execute", time.time(), time.perf_counter() - began, is_right))
        time.sleep(0.05)
    client.close()


def ordinary(port, stop, out):
    client = Client(port)
    requests = [
        ("codecall_search", {"query": "list orders of a user"}),
        ("codecall_describe", {"toolNames": ["users:list", "orders:list"]}),
        ("codecall_execute", {"script": "const { items } = await users.list({}); return items.length"}),
        ("codecall_execute", {"script": "return await Promise.all([1, 2, 3].map(() => callTool('good:ok')))"}),
        ("codecall_invoke", {"tool": "users:get", "input": {"id": "usr_001"}}),
        ("code_execution", {"code": "return call_tool('users', 'list', {}).ok"}),
    ]
    for _ in range(30):
        if stop.is_set():
            break
        client.call(*random.choice(requests))
        out.put(("ordinary", time.time(), 0, True))
        time.sleep(0.1)
    client.close()


def scripts(port, stop, out):
    client = Client(port, patience=random.choice([1, 5, 120]))
    for _ in range(10):
        if stop.is_set():
            break
        name, script = random.choice(list(SCRIPTS.items()))
        if random.random() < 0.2:
            client.call("code_execution", {"code": script, "options": {"timeout_ms": 2_000}})
        else:
            client.call("codecall_execute", {"script": script})
        out.put(("hostile script", time.time(), 0, True))
    # It does not end its session.


def connections(port, stop, out):
    kind = random.choice(["idle", "half header", "half body", "body of 64 MB", "nonsense", "never reads", "vanishes", "headers"])
    sockets = []

    def connect():
        sockets.append(socket.create_connection(("127.0.0.1", port), timeout=10))
        return sockets[-1]

    call = json.dumps(rpc("tools/call", {"name": "codecall_execute", "arguments": {"script": "for (;;) {}"}}))
    head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n"
    match kind:
        case "idle":
            for _ in range(200):
                connect()
        case "half header":
            for _ in range(200):
                connect().sendall(b"POST /mcp HTTP/1.1\r\nhost: loc")
        case "half body":
            for _ in range(50):
                connect().sendall(f"{head}content-length: 100000\r\n\r\n{{".encode())
        case "body of 64 MB":
            connect().sendall(f"{head}content-length: 64000000\r\n\r\n".encode() + b" " * 64_000_000)
        case "nonsense":
            connect().sendall(os.urandom(100_000))
        case "never reads":
            for _ in range(10):
                request = json.dumps(rpc("tools/call", {"name": "codecall_execute", "arguments": {"script": "return 'x'.repeat(9e5)"}}))
                connect().sendall(f"{head}content-length: {len(request)}\r\n\r\n{request}".encode() * 20)
        case "vanishes":
            for _ in range(20):
                connect().sendall(f"{head}content-length: {len(call)}\r\n\r\n{call}".encode())
        case "headers":
            connect().sendall(b"GET /healthz HTTP/1.1\r\n" + b"x-a: b\r\n" * 100_000)
    out.put(("hostile connection", time.time(), 0, True))
    stop.wait(random.uniform(0, 3))
    for one in sockets:
        one.close()


# --- the server and its resources


def configuration(folder):
    wrong = {
        mode: {"command": sys.executable, "args": [str(UPSTREAM), mode], "startTimeoutMs": 5_000}
        for mode in ["good", "cursor", "same_cursor", "garbage", "endless", "dead", "silent", "drip", "deep_list", "names"]
    }
    config = {
        "mcpServers": wrong,
        "enable_code_execution": True,
        "vm": {"toolTimeoutMs": 3_000, "maxDurationMs": 10_000},
    }
    path = Path(folder, "config.json")
    path.write_text(json.dumps(config))
    return str(path)


def start(program, folder):
    log = open(Path(folder, "stderr"), "w")
    words = [program, "serve", "--http", "0", "--demo", "--config", configuration(folder)]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
    for _ in range(600):
        for line in Path(folder, "stderr").read_text().splitlines():
            if "http://127.0.0.1:" in line:
                return process, int(line.split("http://127.0.0.1:")[1].split("/")[0].split()[0])
        time.sleep(0.1)
    raise SystemExit("the server does not start")


def resources(pid):
    """Returns the resident memory in MB, and the numbers of threads, descriptors and children, children included."""
    status = Path(f"/proc/{pid}/status").read_text()
    number = lambda key: int(status.split(f"{key}:")[1].split()[0])
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        own, rest = text.split(" (", 1)
        parents.setdefault(int(rest.rsplit(") ", 1)[1].split()[1]), []).append(int(own))
    children, open_ones = 0, [pid]
    while open_ones:
        own = parents.get(open_ones.pop(), [])
        children += len(own)
        open_ones += own
    return number("VmRSS") / 1024, number("Threads"), len(os.listdir(f"/proc/{pid}/fd")), children


HELD = ["memory, MB", "threads", "descriptors", "children"]


def soak(program, minutes):
    seconds = minutes * 60
    parts = {"alone": seconds * 0.1, "ordinary": seconds * 0.1, "hostile": seconds * 0.7, "after": max(seconds * 0.1, 330)}
    samples, responses, began = [], [], None
    with tempfile.TemporaryDirectory() as folder:
        process, port = start(program, folder)
        out = multiprocessing.Queue()
        stops = {part: multiprocessing.Event() for part in parts}
        running = []

        def load(part, role, count):
            for _ in range(count):
                running.append(multiprocessing.Process(target=repeat, args=(role, port, stops[part], out), daemon=True))
                running[-1].start()

        def wait(part):
            print(f"{part}: {parts[part]:.0f} s", flush=True)
            end = time.time() + parts[part]
            while time.time() < end:
                if process.poll() is not None:
                    raise SystemExit(f"the server has ended with {process.returncode}:\n" + Path(folder, "stderr").read_text()[-3000:])
                samples.append((time.time() - began, part, *resources(process.pid)))
                while not out.empty():
                    responses.append((part, *out.get()))
                time.sleep(min(2, seconds / 200))

        time.sleep(15)
        began = time.time()
        load("after", health, 1)
        load("after", plain, 1)
        wait("alone")
        load("ordinary", ordinary, 3)
        wait("ordinary")
        load("hostile", scripts, 6)
        load("hostile", connections, 3)
        wait("hostile")
        stops["hostile"].set()
        stops["ordinary"].set()
        # A client that waits for a response does not see the event.
        for one in running[2:]:
            one.terminate()
        wait("after")
        stops["after"].set()
        lasting = samples[-1]
        process.terminate()
        code = process.wait(30)
    return samples, responses, lasting, code


# --- the report


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


def tables(samples, responses, minutes):
    by_part = lambda part: [sample for sample in samples if sample[1] == part]
    lines = [f"{minutes:g} minutes, sampled {len(samples)} times.", ""]
    lines += ["| what the server holds | before | beside ordinary clients | most beside hostile ones | after |", "|---|---:|---:|---:|---:|"]
    for at, name in enumerate(HELD, 2):
        last = lambda part: by_part(part)[-1][at]
        most = max(sample[at] for sample in by_part("hostile"))
        lines.append(f"| {name} | {last('alone'):.0f} | {last('ordinary'):.0f} | {most:.0f} | {last('after'):.0f} |")
    lines += ["", "| others wait, ms | alone | beside ordinary clients | beside hostile ones | after | factor |", "|---|---:|---:|---:|---:|---:|"]
    for what in ["healthz", "execute"]:
        for name, part in [("median", 0.5), ("p99", 0.99)]:
            cells = [quantile([t[3] for t in responses if t[:2] == (of, what)], part) * 1e3 for of in ["alone", "ordinary", "hostile", "after"]]
            lines.append(f"| `{what}`, {name} | " + " | ".join(f"{cell:.1f}" for cell in cells) + f" | {cells[2] / cells[1]:.1f} |")
    counts = {}
    for _, what, *_ in responses:
        counts[what] = counts.get(what, 0) + 1
    lines += ["", "Answered: " + ", ".join(f"{count:,} × {what}" for what, count in sorted(counts.items())) + "."]
    wrong = sum(not is_right for *_, is_right in responses)
    lines += [f"Wrong answers among those: {wrong}."]
    return "\n".join(lines)


def graph(samples):
    """Draws four curves over time, each with its own scale."""
    width, height, left = 900, 110, 60
    end = samples[-1][0]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height * 4 + 30}" font-family="sans-serif" font-size="11">']
    out.append('<rect width="100%" height="100%" fill="white"/>')
    x = lambda second: left + (width - left - 10) * second / end
    for part, colour in [("hostile", "#fdecea"), ("ordinary", "#eaf3fd")]:
        times = [sample[0] for sample in samples if sample[1] == part]
        out.append(f'<rect x="{x(times[0]):.0f}" width="{x(times[-1]) - x(times[0]):.0f}" y="0" height="{height * 4}" fill="{colour}"/>')
        out.append(f'<text x="{x(times[0]) + 4:.0f}" y="{height * 4 + 12}">{part}</text>')
    for row, name in enumerate(HELD):
        values = [sample[row + 2] for sample in samples]
        most, base = max(values) or 1, height * (row + 1) - 12
        points = " ".join(f"{x(sample[0]):.1f},{base - (height - 34) * sample[row + 2] / most:.1f}" for sample in samples)
        out.append(f'<polyline points="{points}" fill="none" stroke="#1f4e8c" stroke-width="1.2"/>')
        out.append(f'<line x1="{left}" x2="{width - 10}" y1="{base}" y2="{base}" stroke="#999"/>')
        out.append(f'<text x="{left + 4}" y="{base - height + 26}">{name}</text>')
        out.append(f'<text x="{left - 6}" y="{base - height + 38}" text-anchor="end">{most:.0f}</text>')
        out.append(f'<text x="{left - 6}" y="{base}" text-anchor="end">0</text>')
    out.append(f'<text x="{width - 10}" y="{height * 4 + 24}" text-anchor="end">{end / 60:.0f} minutes</text></svg>')
    return "\n".join(out) + "\n"


def write(folder, table, svg):
    (folder / "trust").mkdir(exist_ok=True)
    (folder / "trust/soak.svg").write_text(svg)
    page = folder / "trust.md"
    text = page.read_text()
    begin = text.index("\n", text.index("<!-- soak")) + 1
    end = text.index("<!-- /soak -->")
    image = "![What the server holds, over time](trust/soak.svg)"
    page.write_text(text[:begin] + f"{table}\n\n{image}\n" + text[end:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    samples, responses, lasting, code = soak(arguments.program, arguments.minutes)
    table = tables(samples, responses, arguments.minutes)
    print(table)
    if arguments.write:
        write(arguments.write, table, graph(samples))
    before = [sample for sample in samples if sample[1] == "ordinary"][-1]
    problems = []
    # Caches and idle threads may remain: a fifth, and a constant.
    for name, most, (was, now) in zip(HELD, [50, 8, 20, 3], zip(before[2:], lasting[2:])):
        if now > was * 1.2 + most:
            problems.append(f"{name}: {was:.0f} before, {now:.0f} after")
    if any(not is_right for *_, is_right in responses):
        problems.append("wrong answers")
    if not any(t[0] == "after" and t[1] == "execute" for t in responses):
        problems.append("no plain script is answered afterwards")
    if code != 0:
        problems.append(f"the server ended with {code}")
    for problem in problems:
        print("FAILED:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
