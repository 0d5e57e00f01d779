//! Oddities of MCP servers, as public reports have them, and what an agent sees of each.

/// An entry of a list of tools beside the good tool `ok`.
pub struct Listed {
    pub what: &'static str,
    /// The entry.
    pub entry: &'static str,
    /// Whether the entry is a tool.
    pub is_used: bool,
    /// A part of what `status` and search say of it; empty: nothing.
    pub says: &'static str,
}

const fn listed(what: &'static str, entry: &'static str, is_used: bool, says: &'static str) -> Listed {
    Listed { what, entry, is_used, says }
}

pub const ENTRIES: [Listed; 33] = [
    listed("an entry is `null`", "null", false, "it is null"),
    listed("an entry is a number", "5", false, "it is a number"),
    listed("an entry is a text", r#""odd""#, false, "it is a text"),
    listed("an entry is a list", "[]", false, "it is a list"),
    listed("a tool without a name", r#"{"inputSchema":{}}"#, false, "it has no name"),
    listed("an empty name", r#"{"name":"","inputSchema":{}}"#, false, "it has an empty name"),
    listed("a name that is a number", r#"{"name":7,"inputSchema":{}}"#, false, "its name is a number"),
    listed("a name that is `null`", r#"{"name":null,"inputSchema":{}}"#, false, "its name is null"),
    listed("`inputSchema` is `null`", r#"{"name":"odd","inputSchema":null}"#, true, "its 'inputSchema' is null"),
    listed("`inputSchema` is missing", r#"{"name":"odd"}"#, true, "it has no 'inputSchema'"),
    listed("`inputSchema` is `true`", r#"{"name":"odd","inputSchema":true}"#, true, "its 'inputSchema' is true"),
    listed("`inputSchema` is a list", r#"{"name":"odd","inputSchema":[]}"#, true, "its 'inputSchema' is a list"),
    listed(
        "`inputSchema` is JSON in a text",
        r#"{"name":"odd","inputSchema":"{\"type\":\"object\"}"}"#,
        true,
        "is a text",
    ),
    listed("`inputSchema` is another text", r#"{"name":"odd","inputSchema":"object"}"#, true, "is a text"),
    listed(
        "a description that is a number",
        r#"{"name":"odd","inputSchema":{},"description":5}"#,
        true,
        "'description'",
    ),
    listed(
        "a description that is a list",
        r#"{"name":"odd","inputSchema":{},"description":["a"]}"#,
        true,
        "'description'",
    ),
    listed("a title that is a number", r#"{"name":"odd","inputSchema":{},"title":7}"#, true, "'title'"),
    listed("`annotations` are a list", r#"{"name":"odd","inputSchema":{},"annotations":[]}"#, true, "destructive"),
    listed("`annotations` are a text", r#"{"name":"odd","inputSchema":{},"annotations":"safe"}"#, true, "destructive"),
    listed(
        "`readOnlyHint` is a text",
        r#"{"name":"odd","inputSchema":{},"annotations":{"readOnlyHint":"true"}}"#,
        true,
        "destructive",
    ),
    listed(
        "`destructiveHint` is a number",
        r#"{"name":"odd","inputSchema":{},"annotations":{"readOnlyHint":true,"destructiveHint":0}}"#,
        true,
        "destructive",
    ),
    listed(
        "`openWorldHint` is a list",
        r#"{"name":"odd","inputSchema":{},"annotations":{"openWorldHint":[]}}"#,
        true,
        "open-world",
    ),
    listed("a hint is `null`", r#"{"name":"odd","inputSchema":{},"annotations":{"readOnlyHint":null}}"#, true, ""),
    listed(
        "the title of `annotations` is a number",
        r#"{"name":"odd","inputSchema":{},"annotations":{"title":1}}"#,
        true,
        "the title",
    ),
    listed("`icons` are a text", r#"{"name":"odd","inputSchema":{},"icons":"x"}"#, true, "'icons'"),
    listed("an icon without an address", r#"{"name":"odd","inputSchema":{},"icons":[{"src":5}]}"#, true, "'icons'"),
    listed("`outputSchema` is a text", r#"{"name":"odd","inputSchema":{},"outputSchema":"x"}"#, true, "'outputSchema'"),
    listed("`outputSchema` is `null`", r#"{"name":"odd","inputSchema":{},"outputSchema":null}"#, true, ""),
    listed("`_meta` is a number", r#"{"name":"odd","inputSchema":{},"_meta":5}"#, true, "'_meta'"),
    listed("`execution` is a text", r#"{"name":"odd","inputSchema":{},"execution":"x"}"#, true, ""),
    listed(
        "a `$ref` to a definition that is not there",
        r##"{"name":"odd","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/X"}}}}"##,
        true,
        "",
    ),
    listed(
        "a `$ref` into an OpenAPI description",
        r##"{"name":"odd","inputSchema":{"$ref":"#/components/schemas/X"}}"##,
        true,
        "",
    ),
    listed(
        "a `$ref` to an address",
        r#"{"name":"odd","inputSchema":{"$ref":"https://example.com/schema.json"}}"#,
        true,
        "",
    ),
];

/// A list of tools as a whole, with what is beside it.
pub struct Page {
    pub what: &'static str,
    /// The result of tools/list.
    pub list: &'static str,
    /// The pages after the first: cursor and message.
    pub next: &'static [(&'static str, &'static str)],
    /// The names of the tools.
    pub tools: &'static [&'static str],
    pub says: &'static str,
}

const OK: &[&str] = &["ok"];
const SECOND: &str = r#"{"jsonrpc":"2.0","id":@ID@,"result":{"tools":[{"name":"second","inputSchema":{}}]}}"#;
const AGAIN: &str =
    r#"{"jsonrpc":"2.0","id":@ID@,"result":{"tools":[{"name":"second","inputSchema":{}}],"nextCursor":"2"}}"#;
const BROKEN: &str = r#"{"jsonrpc":"2.0","id":@ID@,"error":{"code":-32603,"message":"out of order"}}"#;

pub const PAGES: [Page; 9] = [
    Page {
        what: "`nextCursor` is empty",
        list: r#"{"tools":[{"name":"ok","inputSchema":{}}],"nextCursor":""}"#,
        next: &[],
        tools: OK,
        says: "",
    },
    Page {
        what: "`nextCursor` is `null`",
        list: r#"{"tools":[{"name":"ok","inputSchema":{}}],"nextCursor":null}"#,
        next: &[],
        tools: OK,
        says: "",
    },
    Page {
        what: "`nextCursor` is a number",
        list: r#"{"tools":[{"name":"ok","inputSchema":{}}],"nextCursor":2}"#,
        next: &[("2", SECOND)],
        tools: &["ok", "second"],
        says: "",
    },
    Page {
        what: "`nextCursor` is an object",
        list: r#"{"tools":[{"name":"ok","inputSchema":{}}],"nextCursor":{}}"#,
        next: &[],
        tools: OK,
        says: "'nextCursor' is an object",
    },
    Page {
        what: "`nextCursor` does not advance",
        list: r#"{"tools":[{"name":"ok","inputSchema":{}}],"nextCursor":"2"}"#,
        next: &[("2", AGAIN)],
        tools: &["ok", "second"],
        says: "already read",
    },
    Page {
        what: "the second page is an error",
        list: r#"{"tools":[{"name":"ok","inputSchema":{}}],"nextCursor":"2"}"#,
        next: &[("2", BROKEN)],
        tools: OK,
        says: "page 2 cannot be read",
    },
    Page {
        what: "the tools are an object",
        list: r#"{"tools":{"ok":{"inputSchema":{}},"second":{"inputSchema":null}}}"#,
        next: &[],
        tools: &["ok", "second"],
        says: "null",
    },
    Page {
        what: "`ttlMs` is a text",
        list: r#"{"tools":[{"name":"ok","inputSchema":{}}],"ttlMs":"x"}"#,
        next: &[],
        tools: OK,
        says: "",
    },
    Page { what: "the tools are `null`", list: r#"{"tools":null}"#, next: &[], tools: &[], says: "" },
];

/// The answer to a call.
pub struct Answer {
    pub what: &'static str,
    /// The lines of the answer over stdio, its body over HTTP.
    pub sent: &'static str,
    /// The result for a script, as JSON; after `!` a part of the error's message.
    pub gets: &'static str,
}

const fn answer(what: &'static str, sent: &'static str, gets: &'static str) -> Answer {
    Answer { what, sent, gets }
}

/// Results in `{"jsonrpc":"2.0","id":…,"result":…}`.
pub const RESULTS: [Answer; 44] = [
    answer(
        "`structuredContent` is `null` beside text",
        r#"{"content":[{"type":"text","text":"hello"}],"structuredContent":null}"#,
        r#""hello""#,
    ),
    answer(
        "`structuredContent` is `{}` beside text",
        r#"{"content":[{"type":"text","text":"hello"}],"structuredContent":{}}"#,
        r#""hello""#,
    ),
    answer(
        "`structuredContent` is `[]` beside text",
        r#"{"content":[{"type":"text","text":"hello"}],"structuredContent":[]}"#,
        r#""hello""#,
    ),
    answer("`structuredContent` is `{}` alone", r#"{"content":[],"structuredContent":{}}"#, "{}"),
    answer("`structuredContent` without `content`", r#"{"structuredContent":{"a":1}}"#, r#"{"a":1}"#),
    answer(
        "metadata beside text",
        r#"{"content":[{"type":"text","text":"hello"}],"structuredContent":{"length":5}}"#,
        r#"{"length":5,"text":"hello"}"#,
    ),
    answer("`content` is a text", r#"{"content":"hello"}"#, r#""hello""#),
    answer("`content` is `null`", r#"{"content":null}"#, "[]"),
    answer("`content` is one block", r#"{"content":{"type":"text","text":"hello"}}"#, r#""hello""#),
    answer("a block is a text", r#"{"content":["hello"]}"#, r#""hello""#),
    answer("a block is `null`", r#"{"content":[null,{"type":"text","text":"hello"}]}"#, r#""hello""#),
    answer("a block without a type", r#"{"content":[{"text":"hello"}]}"#, r#""hello""#),
    answer("a type in capitals", r#"{"content":[{"type":"TEXT","text":"hello"}]}"#, r#""hello""#),
    answer("a text that is a number", r#"{"content":[{"type":"text","text":5}]}"#, "5"),
    answer("a text that is `null`", r#"{"content":[{"type":"text","text":null}]}"#, r#"{"type":"text","text":null}"#),
    answer(
        "a kind of content that MCP does not have",
        r#"{"content":[{"type":"text","text":"hello"},{"type":"video","data":"AA=="}]}"#,
        r#"[{"type":"text","text":"hello"},{"type":"text","text":"{\"type\":\"video\",\"data\":\"AA==\"}"}]"#,
    ),
    answer(
        "`annotations` of a block are a text",
        r#"{"content":[{"type":"text","text":"hello","annotations":"x"}]}"#,
        r#""hello""#,
    ),
    answer(
        "the audience of a block is a text",
        r#"{"content":[{"type":"text","text":"hello","annotations":{"audience":"user"}}]}"#,
        r#""hello""#,
    ),
    answer(
        "a priority that is a text",
        r#"{"content":[{"type":"text","text":"hello","annotations":{"priority":"high"}}]}"#,
        r#""hello""#,
    ),
    answer("`_meta` of a block is a number", r#"{"content":[{"type":"text","text":"hello","_meta":5}]}"#, r#""hello""#),
    answer(
        "a link without a name",
        r#"{"content":[{"type":"resource_link","uri":"file:///a"}]}"#,
        r#"[{"type":"resource_link","name":"file:///a","uri":"file:///a"}]"#,
    ),
    answer(
        "an image without a media type",
        r#"{"content":[{"type":"image","data":"iVBORw0KGgo="}]}"#,
        r#"[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]"#,
    ),
    answer(
        "an image without data",
        r#"{"content":[{"type":"text","text":"hello"},{"type":"image","mimeType":"image/png"}]}"#,
        r#"[{"type":"text","text":"hello"},{"type":"text","text":"{\"type\":\"image\",\"mimeType\":\"image/png\"}"}]"#,
    ),
    answer(
        "a resource without an address",
        r#"{"content":[{"type":"resource","resource":{"text":"hello"}}]}"#,
        r#""hello""#,
    ),
    answer("`isError` is a text", r#"{"content":[{"type":"text","text":"no"}],"isError":"true"}"#, "!no"),
    answer("`isError` is `null`", r#"{"content":[{"type":"text","text":"hello"}],"isError":null}"#, r#""hello""#),
    answer(
        "`isError` is another text",
        r#"{"content":[{"type":"text","text":"hello"}],"isError":"false"}"#,
        r#""hello""#,
    ),
    answer("`_meta` is a text", r#"{"content":[{"type":"text","text":"hello"}],"_meta":"x"}"#, r#""hello""#),
    answer("the result is a text", r#""hello""#, r#""hello""#),
    answer("the result is a number", "42", "42"),
    answer("the result is a list", "[1,2]", "[1,2]"),
    answer("the result is `null`", "null", "[]"),
    answer("the result is `{}`", "{}", "[]"),
    answer("the result is data", r#"{"a":1}"#, r#"{"a":1}"#),
    answer("`toolResult`, as in 2024-10-07", r#"{"toolResult":{"a":1}}"#, r#"{"a":1}"#),
    answer(
        "digits that a number cannot hold",
        r#"{"content":[{"type":"text","text":"1234567890123456789"}]}"#,
        r#""1234567890123456789""#,
    ),
    answer("a version", r#"{"content":[{"type":"text","text":"1.10"}]}"#, r#""1.10""#),
    answer("digits with an exponent", r#"{"content":[{"type":"text","text":"1e10"}]}"#, r#""1e10""#),
    answer("digits that begin with zeros", r#"{"content":[{"type":"text","text":"007"}]}"#, r#""007""#),
    answer("a number", r#"{"content":[{"type":"text","text":"42"}]}"#, "42"),
    answer("a text in quotes", r#"{"content":[{"type":"text","text":"\"hello\""}]}"#, r#""hello""#),
    answer("JSON behind a byte order mark", r#"{"content":[{"type":"text","text":"\ufeff{\"a\":1}"}]}"#, r#"{"a":1}"#),
    answer("a list in a text", r#"{"content":[{"type":"text","text":" [1] "}]}"#, "[1]"),
    answer("Python's notation", r#"{"content":[{"type":"text","text":"{'a': None}"}]}"#, r#""{'a': None}""#),
];

/// Whole messages over stdio.
pub const LINES: [Answer; 14] = [
    answer("an error that is a text", r#"{"jsonrpc":"2.0","id":@ID@,"error":"no"}"#, "!no"),
    answer("an error without a code", r#"{"jsonrpc":"2.0","id":@ID@,"error":{"message":"no"}}"#, "!no"),
    answer(
        "an error whose code is a text",
        r#"{"jsonrpc":"2.0","id":@ID@,"error":{"code":"E1","message":"no"}}"#,
        "!no",
    ),
    answer("an error without a message", r#"{"jsonrpc":"2.0","id":@ID@,"error":{"code":1}}"#, r#"!{"code":1}"#),
    answer(
        "an id as text",
        r#"{"jsonrpc":"2.0","id":"@ID@","result":{"content":[{"type":"text","text":"hello"}]}}"#,
        r#""hello""#,
    ),
    answer(
        "an id with a fraction of zero",
        r#"{"jsonrpc":"2.0","id":@ID@.0,"result":{"content":[{"type":"text","text":"hello"}]}}"#,
        r#""hello""#,
    ),
    answer(
        "`error: null` beside a result",
        r#"{"jsonrpc":"2.0","id":@ID@,"error":null,"result":{"content":[{"type":"text","text":"hello"}]}}"#,
        r#""hello""#,
    ),
    answer(
        "`result: null` beside an error",
        r#"{"jsonrpc":"2.0","id":@ID@,"result":null,"error":{"code":1,"message":"no"}}"#,
        "!no",
    ),
    answer(
        "another version of JSON-RPC",
        r#"{"jsonrpc":"1.0","id":@ID@,"result":{"content":[{"type":"text","text":"hello"}]}}"#,
        r#""hello""#,
    ),
    answer("a response without a result", r#"{"jsonrpc":"2.0","id":@ID@}"#, "!The response cannot be parsed"),
    answer(
        "log lines, also with an id or a result",
        "{\"level\":\"info\",\"id\":@ID@,\"result\":\"started\"}\n{\"error\":\"none\",\"id\":null}\nplain text\n{\"jsonrpc\":\"2.0\",\"id\":@ID@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}",
        r#""hello""#,
    ),
    answer(
        "a response to a foreign id before it",
        "{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{\"content\":[]}}\n{\"jsonrpc\":\"2.0\",\"id\":@ID@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}",
        r#""hello""#,
    ),
    answer(
        "a byte order mark",
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":@ID@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}",
        r#""hello""#,
    ),
    answer(
        "a batch",
        "[{\"jsonrpc\":\"2.0\",\"id\":@ID@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}]",
        r#""hello""#,
    ),
];

/// An answer over HTTP.
pub struct Posted {
    pub what: &'static str,
    pub status: u16,
    pub media_type: &'static str,
    pub body: &'static str,
    pub gets: &'static str,
}

const fn posted(
    what: &'static str,
    status: u16,
    media_type: &'static str,
    body: &'static str,
    gets: &'static str,
) -> Posted {
    Posted { what, status, media_type, body, gets }
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const NO: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}"#;
const HELLO: &str = r#"{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"hello"}]}}"#;

pub const POSTED: [Posted; 30] = [
    posted("status 200, an error with `id: null`", 200, JSON, NO, "!no"),
    posted("status 400, an error with `id: null`", 400, JSON, NO, "!no"),
    posted("status 500, an error with `id: null`", 500, JSON, NO, "!no"),
    posted("status 503, an error with `id: null`", 503, JSON, NO, "!no"),
    posted("an error without an id", 400, JSON, r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"}}"#, "!no"),
    posted(
        "an error with the id `server-error`",
        400,
        JSON,
        r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32000,"message":"no"}}"#,
        "!no",
    ),
    posted(
        "an error with the id `server-error`, status 200",
        200,
        JSON,
        r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32000,"message":"no"}}"#,
        "!no",
    ),
    posted("an error that is a text", 400, JSON, r#"{"jsonrpc":"2.0","id":null,"error":"no"}"#, "!no"),
    posted("an error as `text/plain`", 400, "text/plain", NO, "!no"),
    posted(
        "an error as `application/problem+json`",
        500,
        "application/problem+json",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}"#,
        "!no",
    ),
    posted(
        "an error in events",
        200,
        EVENTS,
        "data: {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"no\"}}\n\n",
        "!no",
    ),
    posted("a media type in capitals", 200, "Application/JSON; Charset=UTF-8", HELLO, r#""hello""#),
    posted(
        "events in capitals",
        200,
        "TEXT/EVENT-STREAM",
        "data: {\"jsonrpc\":\"2.0\",\"id\":@ID@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}\n\n",
        r#""hello""#,
    ),
    posted("JSON as `text/plain`", 200, "text/plain", HELLO, r#""hello""#),
    posted("no media type", 200, "", HELLO, r#""hello""#),
    posted(
        "no `jsonrpc`",
        200,
        JSON,
        r#"{"id":@ID@,"result":{"content":[{"type":"text","text":"hello"}]}}"#,
        r#""hello""#,
    ),
    posted(
        "a result with `id: null`",
        200,
        JSON,
        r#"{"jsonrpc":"2.0","id":null,"result":{"content":[{"type":"text","text":"hello"}]}}"#,
        r#""hello""#,
    ),
    posted(
        "an id as text",
        200,
        JSON,
        r#"{"jsonrpc":"2.0","id":"@ID@","result":{"content":[{"type":"text","text":"hello"}]}}"#,
        r#""hello""#,
    ),
    posted(
        "a result of another request",
        200,
        JSON,
        r#"{"jsonrpc":"2.0","id":987654,"result":{"content":[]}}"#,
        "!it answers another request",
    ),
    posted(
        "a batch",
        200,
        JSON,
        "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}},{\"jsonrpc\":\"2.0\",\"id\":@ID@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}]",
        r#""hello""#,
    ),
    posted(
        "a byte order mark",
        200,
        JSON,
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":@ID@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}",
        r#""hello""#,
    ),
    posted("an empty body", 200, JSON, "", "!it is empty"),
    posted("HTML", 200, "text/html", "<html>", "!text/html"),
    posted("HTML with status 502", 502, "text/html", "<html>", "!502"),
    posted("status 404 without a session", 404, "text/html", "<html>", "!404"),
    posted(
        "a notification in place of an answer",
        200,
        JSON,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#,
        "!The response cannot be parsed",
    ),
    posted(
        "events that are no messages",
        200,
        EVENTS,
        ": comment\n\nevent: ping\ndata: {\"time\":1}\n\ndata: null\n\ndata:\n\nid: 7\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{\"content\":[]}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":@ID@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}\n\n",
        r#""hello""#,
    ),
    posted(
        "odd content in events",
        200,
        EVENTS,
        "data: {\"jsonrpc\":\"2.0\",\"id\":@ID@,\"result\":{\"content\":\"hello\"}}\n\n",
        r#""hello""#,
    ),
    posted("odd content", 200, JSON, r#"{"jsonrpc":"2.0","id":@ID@,"result":{"content":"hello"}}"#, r#""hello""#),
    posted(
        "lines that end with CR LF",
        200,
        EVENTS,
        "event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":@ID@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}\r\n\r\n",
        r#""hello""#,
    ),
];

/// Answers to `initialize`, after which the tool `ok` works.
pub const HANDSHAKES: [(&str, &str); 8] = [
    (
        "capabilities that are `true`",
        r#"{"jsonrpc":"2.0","id":@ID@,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":true},"serverInfo":{"name":"s","version":"1"}}}"#,
    ),
    (
        "no capabilities",
        r#"{"jsonrpc":"2.0","id":@ID@,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"}}}"#,
    ),
    (
        "no `serverInfo`",
        r#"{"jsonrpc":"2.0","id":@ID@,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}"#,
    ),
    (
        "`serverInfo` without a version",
        r#"{"jsonrpc":"2.0","id":@ID@,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s"}}}"#,
    ),
    (
        "a version that is a number",
        r#"{"jsonrpc":"2.0","id":@ID@,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":1}}}"#,
    ),
    (
        "`instructions` that are a list",
        r#"{"jsonrpc":"2.0","id":@ID@,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":["a"]}}"#,
    ),
    (
        "log lines before the answer",
        "{\"level\":\"info\",\"id\":@ID@}\nStarting…\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"up\"}}\n{\"jsonrpc\":\"2.0\",\"id\":@ID@,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}",
    ),
    (
        "a foreign response before the answer",
        "{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":@ID@,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}",
    ),
];
