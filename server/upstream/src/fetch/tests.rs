//! Targets that `fetch` reaches, and targets that it refuses. The table of disguises is also in `docs/guide/fetch.md`.

use super::*;
use codecall_base::call::RunScope;
use codecall_base::client::Client;
use codecall_base::event::UpdateSink;
use serde_json::{Map, Value};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Addresses that no request reaches unless a manifest names them: what they are, and how they are written.
const LITERALS: &[(&str, &str)] = &[
    ("loopback", "http://127.0.0.1/"),
    ("loopback, another one", "http://127.8.9.10/"),
    ("loopback, short", "http://127.1/"),
    ("loopback, shorter", "http://127.0.1/"),
    ("loopback, decimal", "http://2130706433/"),
    ("loopback, octal", "http://0177.0.0.1/"),
    ("loopback, octal of one number", "http://017700000001/"),
    ("loopback, hexadecimal", "http://0x7f.0.0.1/"),
    ("loopback, hexadecimal of one number", "http://0x7f000001/"),
    ("loopback, mixed", "http://0x7f.1/"),
    ("loopback, with leading zeros", "http://127.0.0.01/"),
    ("loopback, trailing dot", "http://127.0.0.1./"),
    ("loopback, full-width digits", "http://１２７.０.０.１/"),
    ("loopback, ideographic dots", "http://127。0。0。1/"),
    ("loopback, half-width dots", "http://127｡0｡0｡1/"),
    ("loopback, circled digits", "http://①②⑦.⓪.⓪.①/"),
    ("loopback, percent-encoded", "http://%31%32%37.0.0.1/"),
    ("loopback, with a port", "http://127.0.0.1:8080/"),
    ("loopback behind a user", "http://api.example.com@127.0.0.1/"),
    ("loopback behind a user and password", "http://api.example.com:80@127.0.0.1/"),
    ("loopback behind a backslash", "http://127.0.0.1\\@api.example.com/"),
    ("loopback before a fragment", "http://127.0.0.1#@api.example.com/"),
    ("loopback before a query", "http://127.0.0.1?@api.example.com/"),
    ("loopback of IPv6", "http://[::1]/"),
    ("loopback of IPv6, in full", "http://[0000:0000:0000:0000:0000:0000:0000:0001]/"),
    ("unspecified", "http://0.0.0.0/"),
    ("unspecified, short", "http://0/"),
    ("unspecified of IPv6", "http://[::]/"),
    ("mapped to IPv6", "http://[::ffff:127.0.0.1]/"),
    ("mapped to IPv6, hexadecimal", "http://[::ffff:7f00:1]/"),
    ("mapped metadata", "http://[::ffff:169.254.169.254]/"),
    ("compatible with IPv6", "http://[::127.0.0.1]/"),
    ("NAT64", "http://[64:ff9b::7f00:1]/"),
    ("NAT64, local use", "http://[64:ff9b:1::7f00:1]/"),
    ("6to4", "http://[2002:7f00:1::]/"),
    ("6to4 of a private network", "http://[2002:c0a8:101::1]/"),
    ("Teredo", "http://[2001:0:7f00:1::1]/"),
    ("private, 10/8", "http://10.0.0.1/"),
    ("private, 10/8, decimal", "http://167772161/"),
    ("private, 172.16/12", "http://172.16.0.1/"),
    ("private, end of 172.16/12", "http://172.31.255.254/"),
    ("private, 192.168/16", "http://192.168.1.1/"),
    ("private, 192.168/16, hexadecimal", "http://0xc0a80101/"),
    ("shared by carriers", "http://100.64.0.1/"),
    ("metadata", "http://169.254.169.254/latest/meta-data/"),
    ("metadata, decimal", "http://2852039166/"),
    ("metadata, hexadecimal", "http://0xa9fea9fe/"),
    ("metadata, octal", "http://0251.0376.0251.0376/"),
    ("metadata of Alibaba", "http://100.100.100.200/"),
    ("metadata of Oracle", "http://192.0.0.192/"),
    ("metadata of EC2 on IPv6", "http://[fd00:ec2::254]/"),
    ("link-local", "http://169.254.1.1/"),
    ("link-local of IPv6", "http://[fe80::1]/"),
    ("unique local", "http://[fc00::1]/"),
    ("unique local, fd", "http://[fd12:3456:789a::1]/"),
    ("site-local", "http://[fec0::1]/"),
    ("multicast", "http://224.0.0.1/"),
    ("multicast of IPv6", "http://[ff02::1]/"),
    ("broadcast", "http://255.255.255.255/"),
    ("reserved", "http://240.0.0.1/"),
    ("documentation", "http://192.0.2.1/"),
    ("documentation of IPv6", "http://[2001:db8::1]/"),
    ("benchmarks", "http://198.18.0.1/"),
    ("the name of this machine", "http://localhost/"),
    ("the name of this machine, trailing dot", "http://localhost./"),
    ("a name below localhost", "http://api.localhost/"),
    ("a name that begins like an allowed one", "http://api.example.com.evil.test/"),
    ("a name that ends like an allowed one", "http://evilexample.com/"),
    ("files", "file:///etc/passwd"),
    ("gopher", "gopher://127.0.0.1:6379/_INFO"),
];

/// Addresses of names that no request reaches: what it is, and the addresses.
const RESOLVED: &[(&str, &[&str])] = &[
    ("a name of loopback", &["127.0.0.1"]),
    ("a name of IPv6 loopback", &["::1"]),
    ("a name of a private address", &["10.1.2.3"]),
    ("a name of a private address, 192.168", &["192.168.0.10"]),
    ("a name of a shared address", &["100.64.1.1"]),
    ("a name of the metadata service", &["169.254.169.254"]),
    ("a name of a mapped address", &["::ffff:10.0.0.1"]),
    ("a name of a NAT64 address", &["64:ff9b::a00:1"]),
    ("a name of a 6to4 address", &["2002:a00:1::1"]),
    ("a name of a unique local address", &["fd00::1"]),
    ("a name of a link-local address", &["fe80::1"]),
    ("a name of the unspecified address", &["0.0.0.0"]),
    ("a name of several private addresses", &["10.0.0.1", "127.0.0.1", "::1"]),
];

/// A server that answers with what a function gives for the head of a request, and notes the heads.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let (answer, seen) = (Arc::new(answer), Arc::clone(&heads));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    let mut piece = [0; 4096];
                    loop {
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        if let Some((head, body)) = text.split_once("\r\n\r\n") {
                            let length = head.lines().find_map(|line| {
                                let (name, value) = line.split_once(':')?;
                                name.eq_ignore_ascii_case("content-length")
                                    .then(|| value.trim().parse::<usize>().ok())?
                            });
                            if body.len() >= length.unwrap_or(0) {
                                break;
                            }
                        }
                        match stream.read(&mut piece).await {
                            Ok(0) | Err(_) => return,
                            Ok(count) => bytes.extend_from_slice(&piece[..count]),
                        }
                    }
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    seen.lock().expect("no test panics with the lock").push(text.clone());
                    let _ = stream.write_all(&answer(&text)).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { port, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no test panics with the lock").clone()
    }
}

fn plain(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-A: 1\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").into_bytes()
}

fn redirect_to(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .into_bytes()
}

fn rules(written: Value) -> Arc<[HostRule]> {
    serde_json::from_value::<Vec<HostRule>>(written).expect("rules").into()
}

/// A resolver that gives these addresses for every name, and counts how often it is asked.
fn lookup(answers: &[&[&str]]) -> (Arc<Lookup>, Arc<AtomicUsize>) {
    let answers: Vec<Vec<IpAddr>> =
        answers.iter().map(|one| one.iter().map(|address| address.parse().expect("an address")).collect()).collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let lookup: Arc<Lookup> = Arc::new(move |_| {
        let index = count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
        let answer = answers[index].clone();
        Box::pin(async move { Ok(answer) })
    });
    (lookup, asked)
}

fn config() -> FetchConfig {
    FetchConfig { timeout: Duration::from_secs(5), max_requests: 1_000, ..FetchConfig::default() }
}

async fn call(fetch: &Arc<dyn Upstream>, input: Value) -> Result<Value, ToolError> {
    let Value::Object(mut input) = input else { panic!("an object") };
    input.entry("method").or_insert("GET".into());
    let call = UpstreamCall {
        tool: Arc::new(definition()),
        input: Map::clone(&input),
        timeout: Duration::from_secs(5),
        cancel: CancellationToken::new(),
        run: None::<RunScope>,
        client: Client::default(),
        sink: UpdateSink::default(),
        sent: Arc::default(),
    };
    fetch.call(call).await.map(|result| result.value().into_owned())
}

fn code(result: Result<Value, ToolError>) -> String {
    match result {
        Ok(value) => format!("it was answered: {value}"),
        Err(error) => error.code,
    }
}

#[tokio::test]
async fn no_disguise_reaches_an_address_that_is_not_named() {
    let (lookup, asked) = lookup(&[&["127.0.0.1"]]);
    let fetch = Fetcher::with_lookup(config(), lookup).for_run(rules(json!([
        "http://*.example.com",
        "http://api.example.com",
        "https://api.example.com"
    ])));
    for (what, url) in LITERALS {
        let refused = code(call(&fetch, json!({ "url": url })).await);
        assert!(matches!(&*refused, "FETCH_NOT_ALLOWED" | "INVALID_INPUT"), "{what}: {url}: {refused}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0, "nothing was resolved");
}

#[tokio::test]
async fn names_of_private_addresses_are_refused() {
    let port = Server::start(|_| plain("reached")).await.port;
    for (what, addresses) in RESOLVED {
        let (lookup, asked) = lookup(&[addresses]);
        let rules = rules(json!([format!("http://api.example.com:{port}")]));
        let fetch = Fetcher::with_lookup(config(), lookup).for_run(rules);
        let url = format!("http://api.example.com:{port}/");
        assert_eq!(code(call(&fetch, json!({ "url": url })).await), "FETCH_ADDRESS_REFUSED", "{what}");
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{what}");
    }
}

#[tokio::test]
async fn what_is_checked_is_what_is_connected_to() {
    let server = Server::start(|_| plain("reached")).await;
    let url = format!("http://api.example.com:{}/", server.port);
    let rule = json!([format!("http://api.example.com:{}", server.port)]);
    // Public when it is checked, loopback a moment later: it is asked once, and the answer that was checked is used.
    let (lookup, asked) = lookup(&[&["2001:4860:ffff::1"], &["127.0.0.1"]]);
    let limits = FetchConfig { timeout: Duration::from_millis(400), ..config() };
    let fetch = Fetcher::with_lookup(limits, lookup).for_run(rules(rule.clone()));
    let refused = code(call(&fetch, json!({ "url": url })).await);
    assert!(matches!(&*refused, "FETCH_FAILED" | "TOOL_TIMEOUT"), "{refused}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(code(call(&fetch, json!({ "url": url })).await), "FETCH_ADDRESS_REFUSED");
    assert!(server.heads().is_empty(), "nothing reached the server");
    // The other addresses of a name are used without the refused ones.
    let (lookup, _) = self::lookup(&[&["169.254.169.254", "127.0.0.1"]]);
    let private = json!([{"host": format!("http://api.example.com:{}", server.port), "private": true}]);
    let fetch = Fetcher::with_lookup(config(), Arc::clone(&lookup)).for_run(rules(private.clone()));
    assert_eq!(call(&fetch, json!({ "url": url })).await.expect("answered")["body"], "reached");
    // What the configuration forbids, no manifest allows.
    let strict = FetchConfig { allow_private: false, ..config() };
    let fetch = Fetcher::with_lookup(strict, lookup).for_run(rules(private));
    assert_eq!(code(call(&fetch, json!({ "url": url })).await), "FETCH_ADDRESS_REFUSED");
    let named = rules(json!([format!("http://127.0.0.1:{}", server.port)]));
    let fetch = Fetcher::new(strict).for_run(named);
    let url = format!("http://127.0.0.1:{}/", server.port);
    assert_eq!(code(call(&fetch, json!({ "url": url })).await), "FETCH_ADDRESS_REFUSED");
}

#[tokio::test]
async fn private_names_do_not_lead_to_special_addresses() {
    for address in ["169.254.169.254", "100.100.100.200", "fd00:ec2::254", "224.0.0.1", "::ffff:127.0.0.1"] {
        let (lookup, _) = lookup(&[&[address]]);
        let rules = rules(json!([{"host": "http://api.example.com", "private": true}]));
        let fetch = Fetcher::with_lookup(config(), lookup).for_run(rules);
        let refused = code(call(&fetch, json!({"url": "http://api.example.com/"})).await);
        assert_eq!(refused, "FETCH_ADDRESS_REFUSED", "{address}");
    }
}

#[tokio::test]
async fn redirects_are_checked() {
    for (what, target) in LITERALS {
        let location = target.to_string();
        // A header has no letters beyond ASCII.
        let Ok(location) = Url::parse(&location).map(String::from) else { continue };
        let server = Server::start(move |_| redirect_to(302, &location)).await;
        let fetch = Fetcher::new(config()).for_run(rules(json!([format!("http://127.0.0.1:{}", server.port)])));
        let refused = code(call(&fetch, json!({"url": format!("http://127.0.0.1:{}/", server.port)})).await);
        assert_eq!(refused, "FETCH_NOT_ALLOWED", "{what}: {target}");
        assert_eq!(server.heads().len(), 1, "{what}");
    }
}

#[tokio::test]
async fn other_origins_get_no_secrets() {
    let target = Server::start(|_| plain("there")).await;
    let location = format!("http://127.0.0.1:{}/b", target.port);
    let first = Server::start(move |_| redirect_to(307, &location)).await;
    let origins = json!([
        {"host": format!("http://127.0.0.1:{}", first.port), "methods": ["POST"]},
        {"host": format!("http://127.0.0.1:{}", target.port), "methods": ["POST"]},
    ]);
    let fetch = Fetcher::new(config()).for_run(rules(origins));
    let headers =
        json!([["authorization", "Bearer x"], ["cookie", "c=1"], ["x-api-key", "k"], ["content-type", "text/plain"]]);
    let url = format!("http://127.0.0.1:{}/a", first.port);
    let request = json!({"url": url, "method": "POST", "headers": headers, "body": "data"});
    let answer = call(&fetch, request).await.expect("answered");
    assert_eq!((&answer["redirected"], &answer["body"]), (&json!(true), &json!("there")));
    assert_eq!(answer["url"], format!("http://127.0.0.1:{}/b", target.port));
    let (sent, second) = (first.heads()[0].to_lowercase(), target.heads()[0].to_lowercase());
    assert!(sent.contains("bearer x") && sent.contains("x-api-key: k") && sent.contains("accept-encoding: identity"));
    assert!(!second.contains("bearer") && !second.contains("cookie") && !second.contains("x-api-key"), "{second}");
    assert!(second.contains("content-type: text/plain") && second.ends_with("data"), "{second}");
}

#[tokio::test]
async fn redirects_can_be_refused_or_kept() {
    let server =
        Server::start(|head| if head.starts_with("GET /a ") { redirect_to(302, "/b") } else { plain(head) }).await;
    let host = json!([{"host": format!("http://127.0.0.1:{}", server.port), "methods": ["GET", "POST"]}]);
    let fetch = Fetcher::new(config()).for_run(rules(host));
    let url = format!("http://127.0.0.1:{}/a", server.port);
    let manual = call(&fetch, json!({"url": url, "redirect": "manual"})).await.expect("answered");
    assert_eq!((&manual["status"], &manual["redirected"]), (&json!(302), &json!(false)));
    assert_eq!(code(call(&fetch, json!({"url": url, "redirect": "error"})).await), "FETCH_FAILED");
    let followed = call(&fetch, json!({ "url": url })).await.expect("answered");
    assert!(followed["body"].as_str().is_some_and(|head| head.starts_with("GET /b ")), "{followed}");
    let around = Server::start(|_| redirect_to(303, "/again")).await;
    let fetch = Fetcher::new(config()).for_run(rules(json!([format!("http://127.0.0.1:{}", around.port)])));
    assert_eq!(code(call(&fetch, json!({"url": format!("http://127.0.0.1:{}/", around.port)})).await), "FETCH_LIMIT");
    assert_eq!(around.heads().len(), 6);
}

#[tokio::test]
async fn everything_is_bounded() {
    let server = Server::start(|head| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        match path {
            "/long" => plain(&"x".repeat(5_000)),
            // Without a length.
            "/endless" => [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec(), vec![b'x'; 100_000]].concat(),
            "/headers" => {
                let many: String = (0..60).map(|number| format!("X-{number}: y\r\n")).collect();
                format!("HTTP/1.1 200 OK\r\n{many}Content-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
            }
            "/gzip" => {
                b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
                    .to_vec()
            }
            "/cut" => b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\nConnection: close\r\n\r\nabc".to_vec(),
            "/bytes" => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n\xff\x00".to_vec(),
            "/none" => b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".to_vec(),
            _ => plain("short"),
        }
    })
    .await;
    let limits = FetchConfig {
        max_response_bytes: 4_096,
        max_request_bytes: 100,
        max_headers: 50,
        max_requests: 12,
        ..config()
    };
    let host = json!([{"host": format!("http://127.0.0.1:{}", server.port), "methods": ["GET", "POST", "HEAD"]}]);
    let fetcher = Fetcher::new(limits);
    let fetch = fetcher.for_run(rules(host.clone()));
    let url = |path: &str| format!("http://127.0.0.1:{}{path}", server.port);
    for (path, expected) in [
        ("/long", "FETCH_LIMIT"),
        ("/endless", "FETCH_LIMIT"),
        ("/headers", "FETCH_LIMIT"),
        ("/gzip", "FETCH_FAILED"),
        ("/cut", "FETCH_FAILED"),
    ] {
        assert_eq!(code(call(&fetch, json!({"url": url(path)})).await), expected, "{path}");
    }
    assert_eq!(call(&fetch, json!({"url": url("/bytes")})).await.expect("answered")["bodyBase64"], "/wA=");
    let none = call(&fetch, json!({"url": url("/none")})).await.expect("answered");
    assert_eq!((&none["status"], none.get("body")), (&json!(204), None));
    let head = call(&fetch, json!({"url": url("/long"), "method": "HEAD"})).await.expect("answered");
    assert_eq!((&head["status"], head.get("body")), (&json!(200), None));
    let long = json!({"url": url("/"), "method": "POST", "body": "x".repeat(101)});
    assert_eq!(code(call(&fetch, long).await), "FETCH_LIMIT");
    assert_eq!(code(call(&fetch, json!({"url": url("/"), "method": "DELETE"})).await), "FETCH_NOT_ALLOWED");
    assert_eq!(code(call(&fetch, json!({"url": url("/"), "method": "TRACE"})).await), "INVALID_INPUT");
    for _ in 0..3 {
        assert_eq!(call(&fetch, json!({"url": url("/")})).await.expect("answered")["body"], "short");
    }
    assert_eq!(code(call(&fetch, json!({"url": url("/")})).await), "FETCH_LIMIT", "the requests of a run are counted");
    let other = fetcher.for_run(rules(host));
    assert_eq!(
        call(&other, json!({"url": url("/")})).await.expect("answered")["body"],
        "short",
        "of each run by itself"
    );
    let off = Fetcher::new(FetchConfig { enabled: false, ..limits }).for_run(rules(json!(["a.example"])));
    assert_eq!(code(call(&off, json!({"url": "https://a.example/"})).await), "FETCH_NOT_ALLOWED");
}

#[tokio::test]
async fn a_server_that_says_nothing_ends_the_request_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let limits = FetchConfig { timeout: Duration::from_millis(200), ..config() };
    let fetch = Fetcher::new(limits).for_run(rules(json!([format!("http://127.0.0.1:{port}")])));
    let error = call(&fetch, json!({"url": format!("http://127.0.0.1:{port}/?key=hidden")})).await.expect_err("silent");
    assert_eq!(error.code, "TOOL_TIMEOUT");
    drop(listener);
    let error = call(&fetch, json!({"url": format!("http://127.0.0.1:{port}/?key=hidden")})).await.expect_err("closed");
    assert_eq!(error.code, "FETCH_FAILED");
    assert!(!error.message.contains("hidden"), "{}", error.message);
}

#[test]
fn the_table_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/fetch.md");
    let (begin, end) = ("<!-- refused: written by the test -->\n", "<!-- /refused -->");
    let mut table = "| what | for example |\n|---|---|\n".to_owned();
    for (what, url) in LITERALS {
        table.push_str(&format!("| {what} | `{url}` |\n"));
    }
    for (what, addresses) in RESOLVED {
        table.push_str(&format!("| {what} | `{}` |\n", addresses.join("`, `")));
    }
    let text = std::fs::read_to_string(path).expect("the page");
    let (before, rest) = text.split_once(begin).expect("the mark");
    let (written, after) = rest.split_once(end).expect("the end mark");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, format!("{before}{begin}{table}{end}{after}")).expect("written");
    } else {
        assert_eq!(written, table, "UPDATE=1 writes it");
    }
}
