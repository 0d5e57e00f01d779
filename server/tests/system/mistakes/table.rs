//! Mistakes of people and models. `docs/reports/mistakes.md` has them with the messages of the program.

/// A mistake.
pub struct Mistake {
    pub what: &'static str,
    pub made: Made,
}

/// Where a mistake is made.
pub enum Made {
    /// In a command, in a folder with the files of `FILES`.
    Command(&'static [&'static str]),
    /// In a configuration of this name, which is checked.
    Config(&'static str, &'static str),
    /// In the entry of the server `shop`, whose tool is then called.
    Server(&'static str),
    /// In a script with the tools of `TOOLS`.
    Script(&'static str),
    /// In the port of a server.
    PortInUse,
    /// In the token of a client.
    WrongToken,
}
use Made::*;

pub const FILES: [(&str, &str); 2] = [("total.js", "return 1"), ("tools.json", TOOLS)];

pub const TOOLS: &str = r#"{"tools": [
    {"name": "users:get", "description": "Get a user",
     "inputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"], "additionalProperties": false},
     "responses": [{"input": null, "output": {"id": 1, "name": "Ada", "city": null}}]},
    {"name": "users:list", "description": "List users",
     "inputSchema": {"type": "object", "properties": {"status": {"enum": ["active", "blocked"]}, "limit": {"type": "integer", "maximum": 100}, "since": {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"}}, "additionalProperties": false},
     "responses": [{"input": null, "output": [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}]}]},
    {"name": "db:query", "responses": [{"input": null, "output": "[{'name': 'Ada', 'mail': None}]"}]}
]}"#;

const fn row(what: &'static str, made: Made) -> Mistake {
    Mistake { what, made }
}

pub const GROUPS: [(&str, &[Mistake]); 7] = [
    (
        "Commands",
        &[
            row("a misspelled command", Command(&["serv"])),
            row("a misspelled option", Command(&["run", "total.js", "--timout", "500"])),
            row("a misspelled preset", Command(&["run", "total.js", "--preset", "blanced"])),
            row("a number with a unit", Command(&["run", "total.js", "--timeout", "5s"])),
            row("a file that does not exist", Command(&["run", "totals.js"])),
            row("an input that is no JSON", Command(&["invoke", "--demo", "users:get", "{id: 1}"])),
            row("a misspelled tool", Command(&["invoke", "--demo", "users:gt", "{}"])),
            row("an unknown status", Command(&["history", "--status", "eror"])),
            row("a date in another format", Command(&["history", "--since", "03/04/2026"])),
            row("no port", Command(&["serve", "--http", "localhost"])),
            row("a port in use", PortInUse),
            row("a wrong token", WrongToken),
        ],
    ),
    (
        "Configuration",
        &[
            row("a misspelled key", Config("codecall.json", r#"{"mcpServrs": {}}"#)),
            row(
                "a misspelled key of a server",
                Config("codecall.json", r#"{"mcpServers": {"git": {"comand": "uvx"}}}"#),
            ),
            row("a text in place of a number", Config("codecall.json", r#"{"vm": {"timeoutMs": "5 s"}}"#)),
            row("a value that does not exist", Config("codecall.json", r#"{"front": "direkt"}"#)),
            row(
                "a text in place of a list",
                Config("codecall.json", r#"{"mcpServers": {"git": {"command": "uvx", "args": "mcp-server-git"}}}"#),
            ),
            row(
                "an address without `http://`",
                Config("codecall.json", r#"{"mcpServers": {"shop": {"url": "localhost:3000/mcp"}}}"#),
            ),
            row(
                "a variable that is not set",
                Config(
                    "codecall.json",
                    r#"{"mcpServers": {"gh": {"command": "gh", "env": {"TOKEN": "${GITHUB_TOKN}"}}}}"#,
                ),
            ),
            row("single quotes", Config("codecall.json", "{'vm': {}}")),
            row("a text of TOML without quotes", Config("codecall.toml", "[vm]\npreset = balanced")),
            row("YAML", Config("codecall.yaml", "vm:\n  preset: balanced")),
            row("a file of another program", Config("codecall.json", r#"{"servers": {"git": {"command": "uvx"}}}"#)),
            row(
                "a comment and a trailing comma",
                Config("codecall.json", "{\n  // limits\n  \"vm\": {\"timeoutMs\": 500},\n}"),
            ),
            row("a byte order mark", Config("codecall.json", "\u{feff}{\"vm\": {\"timeoutMs\": 500}}")),
        ],
    ),
    (
        "Servers",
        &[
            row("a program that is not installed", Server(r#"{"command": "mcp-server-shop"}"#)),
            row("arguments in `command`", Server(r#"{"command": "mcp-server-shop --stdio"}"#)),
            row("a folder that does not exist", Server(r#"{"command": "cat", "cwd": "shops"}"#)),
            row("a program that is no MCP server", Server(r#"{"command": "true"}"#)),
            row("an address where nothing listens", Server(r#"{"url": "http://127.0.0.1:9/mcp"}"#)),
        ],
    ),
    (
        "Inputs of tools",
        &[
            row("a missing argument", Script("return await users.get({})")),
            row("a misspelled argument", Script("return await users.list({ limt: 5 })")),
            row("a text in place of a number", Script("return await users.get({ id: '1' })")),
            row("a value that an enumeration lacks", Script("return await users.list({ status: 'activ' })")),
            row("a number that is too large", Script("return await users.list({ limit: 500 })")),
            row("a date in another format", Script("return await users.list({ since: '03/04/2026' })")),
            row("an argument without its name", Script("return await users.get(1)")),
            row("app and tool as two arguments", Script("return await callTool('users', 'get', { id: 1 })")),
            row("a function in place of a name", Script("return await callTool(users.get, { id: 1 })")),
        ],
    ),
    (
        "Promises and results",
        &[
            row(
                "a property of a promise",
                Script("const user = users.get({ id: 1 });\nreturn { name: user.name, id: 1 }"),
            ),
            row("`map` of a promise", Script("return users.list({}).map(({ name }) => name)")),
            row("a promise in a template", Script("const user = users.get({ id: 1 });\nreturn `Hello ${user}`")),
            row("a promise in a condition", Script("if (users.get({ id: 1 })) return 'found'")),
            row("a promise in a loop", Script("for (const user of users.list({})) return user.name")),
            row("a promise in JSON", Script("return JSON.stringify(users.get({ id: 1 }))")),
            row(
                "promises of `map`",
                Script("const all = [1, 2].map((id) => users.get({ id }));\nreturn all.map(({ name }) => name)"),
            ),
            row(
                "`forEach` with `async`",
                Script(
                    "const names = [];\n[1, 2].forEach(async (id) => names.push((await users.get({ id })).name));\nreturn names",
                ),
            ),
            row("no `return`", Script("const user = await users.get({ id: 1 });")),
            row(
                "braces without `return`",
                Script("const all = await users.list({});\nreturn all.map(({ name }) => { name })[0]"),
            ),
            row("`JSON.parse` of data", Script("return JSON.parse(await users.get({ id: 1 })).name")),
            row("a text of Python as a list", Script("return (await db.query({})).map(({ name }) => name)")),
            row("`content` of a result", Script("return (await users.get({ id: 1 })).content[0].text")),
        ],
    ),
    (
        "Names",
        &[
            row("a misspelled tool", Script("return await users.gett({ id: 1 })")),
            row("a misspelled tool by its name", Script("return await callTool('users:gt', { id: 1 })")),
            row("a misspelled app", Script("return await user.get({ id: 1 })")),
            row("a misspelled variable", Script("const usr = await users.get({ id: 1 });\nreturn uzr.name")),
            row("a misspelled method", Script("return (await users.list({})).mpa(({ name }) => name)")),
            row("a method of another language", Script("return 'a,b'.strip()")),
            row("a function of another language", Script("return len(await users.list({}))")),
            row("a meta-tool in a script", Script("return await codecall_search({ query: 'users' })")),
            row("a meta-tool by its name", Script("return await callTool('codecall_execute', { script: 'return 1' })")),
        ],
    ),
    (
        "Syntax",
        &[
            row("`require`", Script("const fs = require('fs');\nreturn 1")),
            row("`import`", Script("import { get } from 'axios';\nreturn 1")),
            row("`fetch`", Script("return await fetch('https://example.com')")),
            row("`process.env`", Script("return process.env.TOKEN")),
            row("`class`", Script("class User {}\nreturn 1")),
            row("`this`", Script("return this.name")),
            row("`eval`", Script("return eval('1 + 1')")),
            row("a constant that changes", Script("const n = 1;\nn = 2;\nreturn n")),
            row("a bracket that is not closed", Script("return await users.get({ id: 1 }")),
            row("Python", Script("def main():\n    return users.get(id=1)")),
            row("an endless loop", Script("while (true) {}")),
        ],
    ),
];
