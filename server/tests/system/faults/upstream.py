"""An MCP server that does something wrong, over standard input and output or over HTTP.

    python3 upstream.py MODE [LOG]              over standard input and output
    python3 upstream.py --http MODE PORT_FILE   over HTTP; the port is written to the file

MODE says what is wrong from the start; in mode `good` only its tools do wrong, each what it is called after.
LOG gets a line with the process id, and one for each cancellation. It needs nothing but Python.
"""

import json
import os
import sys
import time

TOOLS = [
    "ok", "lie", "hang", "crash", "half", "half_crash", "flood", "utf8", "twice", "other", "late", "long", "deep", "asks", "news",
    "noise", "wide", "control", "slow", "grow",
]  # fmt: skip
PAGE = 1_000


def schema(name):
    tool = {"name": name, "description": f"A tool that does {name}", "inputSchema": {"type": "object"}}
    if name == "lie":
        tool["outputSchema"] = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    return tool


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def nested(depth):
    return "[" * depth + "]" * depth


class Wrong:
    """What is said, whatever it is said over: `say` takes a message or bytes."""

    def __init__(self, mode, say, log=None):
        self.mode, self.say, self.log, self.late = mode, say, log, []
        self.note(f"pid {os.getpid()}")

    def note(self, line):
        if self.log:
            with open(self.log, "a") as file:
                file.write(line + "\n")

    def answer(self, number, result):
        self.say({"jsonrpc": "2.0", "id": number, "result": result})

    def raw(self, number, body):
        """An answer whose result is this text, whatever it is."""
        self.say(b'{"jsonrpc":"2.0","id":' + json.dumps(number).encode() + b',"result":' + body + b"}\n")

    def hear(self, message):
        method, number = message.get("method"), message.get("id")
        if method == "server/discover":
            self.say({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "Method not found"}})
        elif method == "initialize":
            if self.mode == "silent":
                return
            info = {"name": "wrong", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            self.answer(number, {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info})
        elif method == "tools/list":
            self.list(number, message.get("params") or {})
        elif method == "tools/call":
            self.call(number, message["params"]["name"], message["params"].get("arguments"))
        elif method == "notifications/cancelled":
            self.note("cancelled")
            for late in self.late:
                self.answer(late, text("too late"))
            self.late = []
        elif method == "ping":
            self.answer(number, {})

    def list(self, number, params):
        cursor = int((params or {}).get("cursor") or 0)
        match self.mode:
            case "cursor":
                tools = [schema(f"tool_{cursor}_{n}") for n in range(PAGE)]
                self.answer(number, {"tools": tools, "nextCursor": str(cursor + 1)})
            case "same_cursor":
                self.answer(number, {"tools": [schema("ok")], "nextCursor": "7"})
            case "empty_cursor":
                self.answer(number, {"tools": [], "nextCursor": str(cursor + 1)})
            case "deep_list":
                self.raw(number, b'{"tools":[{"name":"ok","inputSchema":{"type":"object","x":%s}}]}' % nested(1_000).encode())
            case "long_list":
                self.raw(number, b'{"tools":[{"name":"ok","description":"%s","inputSchema":{"type":"object"}}]}' % (b"x" * 100_000_000))
            case "double":
                self.answer(number, {"tools": [schema("ok"), schema("ok"), schema("ok")]})
            case "names":
                names = ["", "a" * 1_000_000, "\x1b[2Jok", "a:b:c", "codecall:execute", "\u202eko", "a\nb", "ok"]
                self.answer(number, {"tools": [schema(name) for name in names]})
            case _:
                self.answer(number, {"tools": [schema(name) for name in TOOLS]})

    def call(self, number, name, arguments):
        match name:
            case "lie":
                self.answer(number, text("three", structuredContent={"count": "three"}, isError=False))
            case "hang":
                self.note("hangs")
            case "crash":
                os._exit(3)
            case "half":
                self.say(b'{"jsonrpc":"2.0","id":%d,"resu' % number)
            case "half_crash":
                self.say(b'{"jsonrpc":"2.0","id":%d,"resu' % number)
                os._exit(3)
            case "flood":
                for n in range(20_000):
                    self.say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": f"noise {n}"}})
                self.answer(number, text("flooded"))
            case "utf8":
                self.raw(number, b'{"content":[{"type":"text","text":"\xff\xfe\xc3\x28\xed\xa0\x80"}]}')
                self.answer(number, text("after broken bytes"))
            case "twice":
                self.answer(number, text("first"))
                self.answer(number, text("second"))
                self.answer(number, {"content": "not a list"})
            case "other":
                for wrong in [number + 1_000, -1, "text", None, 1.5, 2**70, [number]]:
                    self.answer(wrong, text("for another"))
                self.answer(number, text("for this one"))
            case "slow":
                time.sleep(1)
                self.answer(number, text("at last"))
            case "late":
                self.late.append(number)
            case "long":
                self.raw(number, b'{"content":[{"type":"text","text":"' + b"x" * 100_000_000 + b'"}]}')
            case "deep":
                self.raw(number, b'{"content":[],"structuredContent":{"a":%s}}' % nested(1_000).encode())
            case "wide":
                self.raw(number, b'{"content":[],"structuredContent":{"a":[%s0]}}' % (b"0," * 2_000_000))
            case "control":
                told = "\x1b]0;owned\x07\x1b[2J\u202e\u0007\x9b31m\r\nroot@host:~# "
                self.answer(number, text(told, isError=True))
            case "asks":
                for n in range(500):
                    for method in ["sampling/createMessage", "elicitation/create", "roots/list", "no/such"]:
                        self.say({"jsonrpc": "2.0", "id": f"{method}{n}", "method": method, "params": {}})
                self.answer(number, text("asked"))
            case "news":
                for _ in range(5_000):
                    self.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
                self.answer(number, text("told"))
            case "grow":
                TOOLS.append("grown")
                self.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
                self.answer(number, text("grew"))
            case "noise":
                sys.stderr.write("noise\n" * 100_000 + "x" * 10_000_000)
                self.answer(number, text("loud"))
            case _:
                self.answer(number, text("fine"))


def over_stdio(mode, log):
    out = sys.stdout.buffer

    def say(message):
        out.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        out.flush()

    wrong = Wrong(mode, say, log)
    match mode:
        case "dead":
            sys.exit(1)
        case "garbage":
            while True:
                out.write(b"\xff\xfe\x00 no message \xc3\x28\n")
        case "endless":
            while True:
                out.write(b"x" * 65_536)
        case "drip":
            while True:
                say(b"{")
                time.sleep(0.2)
    for line in sys.stdin.buffer:
        wrong.hear(json.loads(line))


def over_http(mode, port_file):
    import socketserver
    from http.server import BaseHTTPRequestHandler

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.send_response(405)
            self.send_header("content-length", "0")
            self.end_headers()

        def do_DELETE(self):
            self.do_GET()

        expired = False

        def expire(self, _):
            type(self).expired = True
            self.refuse()

        def refuse(self):
            self.send_response(401)
            self.send_header("www-authenticate", 'Bearer error="invalid_token"')
            self.send_header("content-length", "0")
            self.end_headers()

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.expired and self.headers.get("authorization") != "Bearer renewed-0123456789":
                return self.refuse()
            message = json.loads(body)
            name = (message.get("params") or {}).get("name") if message.get("method") == "tools/call" else None
            wrong = name if name in WAYS else (mode if mode in WAYS and message.get("method") == "tools/list" else None)
            if wrong:
                return WAYS[wrong](self, message.get("id"))
            said = []
            Wrong(mode, said.append).hear(message)
            if "id" not in message:
                self.send_response(202)
                self.send_header("content-length", "0")
                return self.end_headers()
            answer = said[0] if said and isinstance(said[0], bytes) else json.dumps(said[0] if said else {}).encode()
            self.whole(answer)

        def whole(self, answer, kind="application/json"):
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def begin(self, kind="application/json", **headers):
            self.send_response(200)
            self.send_header("content-type", kind)
            for key, value in headers.items():
                self.send_header(key.replace("_", "-"), value)
            self.end_headers()

        def hang(self, _):
            time.sleep(600)

        def half_header(self, _):
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-ty")
            self.wfile.flush()
            time.sleep(600)

        def half_body(self, _):
            self.begin(content_length="1000000")
            self.wfile.write(b'{"jsonrpc":"2.0",')
            self.wfile.flush()
            time.sleep(600)

        def cut(self, _):
            self.begin(content_length="1000000")
            self.wfile.write(b'{"jsonrpc":"2.0",')
            self.close_connection = True

        def kind(self, _):
            self.whole(b"<html>", "text/html")

        def error(self, _):
            self.send_error(500, "x" * 10_000)

        def teapot(self, _):
            self.wfile.write(b"SSH-2.0-OpenSSH_9.7\r\n")
            self.close_connection = True

        def around(self, _):
            self.send_response(307)
            self.send_header("location", self.path)
            self.send_header("content-length", "0")
            self.end_headers()

        def endless(self, _):
            self.begin()
            self.close_connection = True
            while True:
                self.wfile.write(b" " * 65_536)

        def endless_events(self, _):
            self.begin("text/event-stream")
            self.close_connection = True
            while True:
                self.wfile.write(b": nothing\n" * 1_000)

        def endless_event(self, _):
            self.begin("text/event-stream")
            self.close_connection = True
            self.wfile.write(b"data: ")
            while True:
                self.wfile.write(b"x" * 65_536)

        def headers_flood(self, _):
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                self.wfile.write(b"x-header: xxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n" * 100)

    ways = "hang half_header half_body cut kind error teapot around endless endless_events endless_event headers_flood expire"
    WAYS = {way: getattr(Handler, way) for way in ways.split()}
    TOOLS[1:] = list(WAYS)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, allow_reuse_address, request_queue_size = True, True, 128

        def handle_error(self, *_):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    with open(port_file + ".new", "w") as file:
        file.write(str(server.server_address[1]))
    os.rename(port_file + ".new", port_file)
    server.serve_forever()


if __name__ == "__main__":
    words = sys.argv[1:]
    try:
        if words[:1] == ["--http"]:
            over_http(*words[1:])
        else:
            over_stdio(words[0], words[1] if len(words) > 1 else None)
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)
