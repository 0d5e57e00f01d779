"""MCP servers (SDK `mcp`, streamable HTTP on loopback) around a set, and a route that controls it: server.py SET

It prints the port that it listens on.
"""

import contextlib
import socket
import sys

import uvicorn
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

import sets


def server(env, name, tools):
    listed = [types.Tool(name=t["name"], description=t["description"], input_schema=t["inputSchema"]) for t in tools]

    async def list_tools(context, params):
        return types.ListToolsResult(tools=listed)

    async def call_tool(context, params):
        text, error = env.call(name, params.name, dict(params.arguments or {}))
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=error)

    return Server(name, version="1", on_list_tools=list_tools, on_call_tool=call_tool)


def control(env):
    async def handle(request):
        match await request.json():
            case {"reset": task}:
                env.reset(task)
            case {"turn": n}:
                env.begin_turn(n)
            case "check":
                return JSONResponse(env.check())
        return JSONResponse(None)

    return Route("/control", handle, methods=["POST"])


def main():
    env = sets.load(sys.argv[1])
    managers = {
        name: StreamableHTTPSessionManager(server(env, name, tools), json_response=True, stateless=True)
        for name, tools in env.servers().items()
    }

    @contextlib.asynccontextmanager
    async def lifespan(app):
        async with contextlib.AsyncExitStack() as stack:
            for manager in managers.values():
                await stack.enter_async_context(manager.run())
            yield

    routes = [Mount(f"/{name}", app=manager.handle_request) for name, manager in managers.items()]
    app = Starlette(routes=[control(env), *routes], lifespan=lifespan)
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    # A client that reuses a connection must not find it closed.
    config = uvicorn.Config(app, log_level="error", timeout_keep_alive=3600)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
